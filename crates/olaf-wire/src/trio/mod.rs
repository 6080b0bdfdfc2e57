//! The messages of Trio-ML (Yang et al., SIGCOMM 2022; `docs/design/032-trio.md`).
//!
//! A worker sends its part of each block of gradients to the switch. The switch sends the sum to all
//! workers. Both are a [`Block`]: the 12-byte header of Figure 8, and the gradients.
//!
//! differs: the paper configures jobs by hand and loses a job with its first lost packet. Here a
//! worker says [`Hello`], asks for what it misses ([`Ask`]), and says [`Leave`]; a switch answers
//! with [`Welcome`], [`Want`], [`Gone`], [`Straggler`] and [`Closed`]. These messages have the same
//! header. The values of `age_op` that the paper leaves free say which one it is, and `grad_cnt`
//! counts the words behind the header.
//!
//! A [`TrioPacket`] checks a datagram; the message types read plain structs from it. Every offset
//! stands in [`offsets`].

mod block;
mod joining;
mod missing;
pub mod offsets;
mod packet;
mod telling;

pub use block::{Block, datagram_len};
pub use joining::{Hello, Leave, Welcome};
pub use missing::{Ask, Gone, Want};
pub use offsets::{ANY, DEFAULT_PORT, MAX_GRADIENTS, MAX_WORKERS};
pub use packet::{Kind, TrioPacket, job_of};
pub use telling::{Closed, Straggler, Straggling};
