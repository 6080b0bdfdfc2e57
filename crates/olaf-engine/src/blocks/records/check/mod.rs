//! Every order of pieces, timers and results, on small cases (stateright).
//!
//! A piece may arrive at any time, again and again, or never; timers look at the table between any two events.
//! The table is the real one. Time is abstract: an event is *the next timer starts*, whenever that is.

mod system;
mod tests;
