//! Virtual time, which the caller keeps: recorded traces and whole networks, in one process, in
//! order.
//!
//! What this crate is: [`replay`](study::replay::replay) sends recorded arrivals through the very queue
//! and pacer that a switch runs; a [`Network`] joins switches, workers and servers by links that
//! take their time, lose, repeat and reorder, and lets parties die and be born again; a
//! [`Job`](job::Job) is such a network around learners that the caller runs; [`sums`] runs jobs that sum
//! their gradients, over links that they share.
//!
//! What it is not: it knows no clock, socket or thread, and draws no random number that its seed
//! does not fix, so that a run can be repeated to the bit.

mod chance;
pub mod job;
pub mod mina;
pub mod network;
pub mod study;
pub mod sums;
pub mod trace;
pub mod wire;

pub use network::{Network, Node};
pub use trace::{Lot, Record};
pub use wire::{Wire, WireCounts};
