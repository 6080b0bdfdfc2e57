//! Co-simulation: the hardware of `rtl/rtl`, verilated and linked into this crate, runs beside
//! `olaf-engine` on the same random traffic. Every outcome, every counter and every output must be
//! equal. `control` compares the decisions of the queue, [`frames`] the whole queue, `accelerator` the accelerator of
//! iSwitch. `bursts` measures: it plays the workers of OLAF §8.1, and the link behind the queue.
//!
//! Everything random follows from a seed, and a [`Mismatch`] names seed and cycle.

#![cfg_attr(not(feature = "compare"), allow(dead_code, reason = "a figure compares nothing"))]

#[cfg(feature = "compare")]
pub mod accelerator;
#[cfg(feature = "figures")]
pub mod bursts;
#[cfg(feature = "compare")]
pub mod control;
mod counters;
mod design;
mod ends;
pub mod frames;
mod mismatch;
mod phase;

pub use counters::{Answer, Ask};
pub use design::Shim;
pub use mismatch::{Mismatch, Run};
