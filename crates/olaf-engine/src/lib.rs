//! What an aggregation switch decides, and nothing else.
//!
//! Time, chance and bytes are arguments: this crate knows no socket, clock, thread or random
//! source, and walks no map whose order is not its keys'. Sockets (`olaf-net`), a simulated
//! network (`olaf-sim`) and recorded traces drive the same code.
//!
//! From the inside out: [`lanes`] has all arithmetic on payloads. A [`Discipline`] keeps waiting
//! updates (the module [`queue`]); [`blocks`] has the tables in which the pieces of a block meet. A
//! [`Link`] puts a pacer before a queue and says when an update has left. [`party`] knows who is
//! alive and what one worker may do, [`sums`] what the authorities of all sums decide alike, [`seal`]
//! who has a key. A [`Switch`] speaks the protocol of `olaf-wire` around them, behind the [`Engine`]
//! trait; beside it are the switches that sum ([`switch`]): `reduce`, iSwitch, ATP and Trio-ML.

#![no_std]
#![cfg_attr(test, allow(clippy::disallowed_macros, reason = "each test has a thread"))]

extern crate alloc;

pub mod blocks;
pub mod contribution;
pub mod drop;
pub mod engine;
pub mod event;
pub mod ids;
pub mod keys;
pub mod lanes;
pub mod link;
pub mod party;
pub mod queue;
pub mod rejection;
pub mod report;
pub mod seal;
pub mod sums;
pub mod switch;
pub mod table;
#[cfg(test)]
mod testing;
pub mod time;
pub mod units;
pub mod wiring;

pub use contribution::Contribution;
pub use drop::{DropReason, Refused};
pub use engine::{Ecn, Engine, Receivers, Source, TrafficClass, Transmit, Verdict, Why};
pub use event::{Event, SumEvent, TooNarrow, WorkerEvent, WorkerSeen};
pub use ids::{ClusterId, Flow, JobId, PeerId, PortId, Session, WorkerId};
pub use lanes::Lanes;
pub use link::Link;
pub use party::{Arrivals, FlowEnds};
pub use queue::{Arrival, Discipline, Entry, EntryId, Outcome, QueueKind};
pub use rejection::Rejection;
pub use report::Report;
pub use seal::Sealed;
pub use switch::native::Switch;
pub use time::{BitsPerSecond, Instant};
pub use wiring::Wiring;
