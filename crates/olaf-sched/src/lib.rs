//! MINA: the scarce aggregation capacity of a cluster's switches, shared out in space and in time.
//!
//! What this crate is: the decisions, each a function of the state that gives the decision *and
//! its reason*. Where a job's hosts are (MINA §III-B), through which switches its sum flows
//! (§III-C), and which of its all-reduces may use the switches when several jobs want them
//! (§III-D); with the topology, the patterns of communication and the words they share.
//!
//! What it is not: it knows no clock, socket, file or thread, and draws no random number that its
//! seed does not fix. The simulator (`olaf-sim`), the service and its runtime (Python, over
//! `olaf-py`) drive this one core.
//!
//! Times are whole nanoseconds, so that sums of them are exact, in any order, on every platform.

pub mod allocation;
pub mod ids;
pub mod pattern;
pub mod placement;
pub mod protocol;
pub mod sharing;
pub mod topology;
pub mod tree;
pub mod trees;

pub use ids::{HostId, JobId, LinkId, SwitchId};
pub use pattern::{AllReduceSpeed, Operation, Pattern, Steps};
pub use topology::{Capacity, Topology};
pub use tree::Tree;
