//! `olaf_queue_control` beside the engine's queue: every decision, every slot, every departure.

mod bench;
mod pins;
mod traffic;

pub use bench::{Counts, compare};
pub use pins::{BROKEN, EIGHT_SLOTS, THREE_SLOTS};
