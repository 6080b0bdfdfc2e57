//! Parties: who is active, which numbers of a sender came, and how datagrams pass from hop to hop.

pub mod active;
pub mod ends;
pub mod hops;
pub mod ruling;

pub use ends::FlowEnds;
pub use hops::Hops;
pub use ruling::Ruling;
