//! `olaf_queue_control` beside the engine's queue: every decision, every slot, every departure.

mod bench;
mod pins;
mod traffic;

pub use bench::{Counts, compare};
#[cfg(feature = "long")]
pub use pins::BROKEN;
pub use pins::{EIGHT_SLOTS, THREE_SLOTS};
