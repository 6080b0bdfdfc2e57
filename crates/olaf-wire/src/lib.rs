//! Bytes to meaning, and back: the datagrams of Olaf. [`mina`] has those of MINA's sharing
//! protocol, [`reduce`] those of the all-reduce through the switch, [`atp`] those of ATP, [`iswitch`]
//! those of iSwitch, [`trio`] those of Trio-ML. [`sealed`] is around all of them, between parties that
//! share a key.
//!
//! What this crate is: the one place that knows how a message looks on the wire. A
//! [`Packet`](packet::Packet) checks magic, version, kind and length once; the message types then
//! read plain structs from it, after which no length or flag is in doubt.
//!
//! What it is not: it decides nothing, keeps no state and does no arithmetic on payload lanes.
//!
//! Header fields are in network byte order; payload lanes are little-endian `f32`, so that a
//! processor can add them where they lie. All offsets stand in [`offsets`].

#![no_std]

extern crate alloc;

pub mod answer;
pub mod atp;
mod call;
pub mod fetch;
pub mod ids;
pub mod iswitch;
pub mod layout;
pub mod membership;
pub mod mina;
pub mod notice;
pub mod offsets;
mod operations;
pub mod packet;
pub mod reduce;
pub mod rule;
pub mod sealed;
pub mod serial;
pub mod signature;
pub mod trio;
pub mod update;

pub use answer::{Ages, Answer, Ends, QueueStatus};
pub use call::{Call, CallKind, Lacking, Sides};
pub use fetch::Fetch;
pub use ids::{ClusterId, JobId, Session, WorkerId};
pub use layout::{LAYOUT_PART, LayoutPart, MAX_LAYOUT, layout_parts};
pub use membership::{Join, JoinPath, Leave, Welcome, WelcomeCode};
pub use notice::Notice;
pub use operations::{operations_after, operations_ahead};
pub use packet::{Address, Kind, Packet, Refusal, join_of_another_version};
pub use rule::{AggregateKind, JobRule, RuleKind, ServerGate, Step};
pub use signature::{AskSignature, Hash, Signature};
pub use update::Update;
