//! Who takes part.
