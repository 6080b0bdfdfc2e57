//! Switches: small engines over the shared tables, one for each protocol.

pub mod native;
pub mod reduce;
