//! The messages of `reduce`, an all-reduce through the switch (`docs/design/028-reduce.md`).
//!
//! A worker cuts each operation into blocks and sends its [`Piece`] of each block. The switch sums
//! the pieces and sends the [`BlockResult`] to all. A worker that misses results sends an [`Ask`],
//! and a switch that misses pieces a [`Want`]. [`Join`], [`Welcome`], [`Leave`] and [`Closed`] say
//! who is in a generation, and when it begins and ends.
//!
//! A [`ReducePacket`] checks a datagram; the message types read plain structs from it. Every offset
//! stands in [`offsets`].

mod arithmetic;
mod block;
mod called;
mod membership;
mod missing;
pub mod offsets;
mod packet;
mod rank_set;

pub use arithmetic::{LaneType, Operator};
pub use block::{Block, BlockResult, Marks, Piece, datagram_len};
pub use called::{Called, Clash};
pub use membership::{Closed, Join, Leave, Reason, Welcome, WelcomeCode};
pub use missing::{Ask, Blocks, Want};
pub use offsets::{ALL, MAX_CORES, MAX_RANKS};
pub use packet::{Address, Kind, ReducePacket, job_of, join_of_another_version};
pub use rank_set::RankSet;
