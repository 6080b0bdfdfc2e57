//! Queues of updates: arrivals meet waiting entries, and one entry at a time departs.
//!
//! [`discipline`] says what a queue is; [`fifo`], [`merging`] (the queue of the OLAF paper) and
//! [`freshest`] are queues, each with its reference model in `reference`.

pub mod discipline;
pub mod fifo;
pub mod freshest;
pub mod kind;
pub mod merging;
pub mod slots;

pub use discipline::{Arrival, Discipline, Entry, EntryId, Outcome, Rejection};
pub use fifo::Fifo;
pub use freshest::Freshest;
pub use kind::QueueKind;
pub use merging::{Gate, Merging};
