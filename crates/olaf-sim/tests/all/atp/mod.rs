//! ATP in the simulated network: workers, one to four levels of switches, and servers.

mod arena;
mod job;

pub(crate) use arena::Arena;

mod bytes;
mod congestion;
mod faults;
mod forged;
mod levels;
mod membership;
mod precision;
mod shortage;
mod sums;
mod throughput;
mod topology;
