//! What an aggregation switch decides, and nothing else.
//!
//! Time, chance and bytes are arguments: this crate knows no socket, clock, thread or random
//! source, and walks no map whose order is not its keys'. Sockets (`olaf-net`), a simulated
//! network (`olaf-sim`) and recorded traces drive the same code.
//!
//! From the inside out: a [`Discipline`] keeps waiting updates ([`fifo`], [`olaf`],
//! [`freshest`]); an
//! [`Egress`](egress::Egress) puts a pacer before one and says when an update has left; a
//! [`Switch`] speaks the protocol of `olaf-wire` around it, behind the [`Engine`] trait.

#![no_std]

extern crate alloc;

pub mod active;
pub mod discipline;
pub mod egress;
pub mod ends;
pub mod engine;
pub mod fifo;
pub mod freshest;
pub mod hops;
pub mod ids;
mod lane_buffer;
pub mod lanes;
pub mod olaf;
pub mod pacer;
pub mod queues;
pub mod slots;
pub mod switch;
#[cfg(test)]
mod testing;
pub mod time;
pub mod units;

pub use discipline::{Arrival, Discipline, Entry, EntryId, Outcome, Rejection};
pub use ends::FlowEnds;
pub use engine::{Engine, Event, Source, Transmit, Verdict};
pub use hops::Hops;
pub use ids::{ClusterId, Flow, JobId, PeerId, PortId, Session, WorkerId};
pub use lane_buffer::Lanes;
pub use switch::Switch;
pub use time::{BitsPerSecond, Instant};
