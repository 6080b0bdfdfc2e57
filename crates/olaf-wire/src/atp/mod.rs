//! The messages of ATP, an aggregation service with parameter servers (ATP §3.3;
//! `docs/design/031-atp.md`).
//!
//! A worker sends gradient fragment packets ([`Header`] and values) towards its server. Switches add
//! them up on the way. The server answers with parameter packets, which have the same format. [`Join`],
//! [`Welcome`], [`Leave`], [`Left`] and [`Closed`] set a job up; the paper does that beside its protocol.
//!
//! An [`AtpPacket`] checks a datagram; the message types read plain structs from it. Every offset
//! stands in [`offsets`].

mod control;
mod frame;
mod index;
mod key;
pub mod offsets;
mod packet;
mod upper;

pub use control::{
    Closed, Join, Leave, Left, Welcome, answer_to_another_version, other_version_of,
};
pub use frame::{Header, datagram_len};
pub use index::{aggregator_index, rehash, switch_id};
pub use key::{Key, widen};
pub use offsets::{ANY, BITS, LEVELS, MAX_AGGREGATORS, MAX_SERVERS, MAX_WORKERS, VALUES};
pub use packet::{AtpPacket, Kind, job_of};
pub use upper::Upper;
