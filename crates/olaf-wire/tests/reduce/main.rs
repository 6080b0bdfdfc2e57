//! The messages of `reduce`: what is written is read back the same, and no bytes make a reader panic.
#![allow(clippy::unwrap_used, missing_docs)]

mod damage;
mod fields;
mod message;
mod rank_set;
mod round_trip;
