//! Time that somebody else keeps: recorded traces and whole networks, in one process, in order.
//!
//! What this crate is: [`replay`](replay::replay) sends recorded arrivals through the very queue
//! and pacer that a switch runs.
//!
//! What it is not: it knows no clock, socket or thread, and draws no random number that its seed
//! does not fix, so that a run can be repeated to the bit.

pub mod replay;
