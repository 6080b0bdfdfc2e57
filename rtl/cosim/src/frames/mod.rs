//! `olaf_queue` beside the engine's queue: random frames in, and every frame out bit for bit.
//!
//! The hardware says when it decides about an update, locks an entry, and frees a slot. The bench does the
//! same in the engine's queue, in the same order; what leaves, each fate, and all counters must then be equal.

mod bench;
mod counters;
mod frame;
mod generator;
mod pins;
mod reference;

pub use bench::{Queue, compare};
pub use counters::{COUNTERS, Counters, NAMES};
#[cfg(feature = "figures")]
pub(crate) use frame::{Beat, Frame, bytes_of};
#[cfg(feature = "long")]
pub use pins::BROKEN;
#[cfg(feature = "figures")]
pub use pins::JUMBO;
#[cfg(feature = "compare")]
pub use pins::THREE_SLOTS;
pub use pins::{EIGHT_SLOTS, In, Out};
