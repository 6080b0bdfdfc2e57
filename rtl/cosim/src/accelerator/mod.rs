//! `iswitch_accelerator` beside the engine's switch of iSwitch: random datagrams in, and every datagram out bit for
//! bit.
//!
//! Both decide in the order of arrival alone. So the engine gets each datagram when the hardware has taken its last beat;
//! what leaves the hardware later must be what left the engine, in the same order. All counters must be equal
//! whenever everything has left.

mod bench;
mod counters;
mod datagram;
mod pins;
mod reference;
mod traffic;

pub use bench::{Accelerator, compare};
pub use counters::{COUNTERS, Counters, NAMES};
#[cfg(feature = "long")]
pub use pins::BROKEN;
pub use pins::{FOUR_PORTS, In, Out, THREE_PORTS};
