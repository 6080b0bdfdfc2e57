//! ATP in the simulated network: workers, one to four levels of switches, and servers.

mod bytes;
mod congestion;
mod faults;
mod forged;
mod job;
mod levels;
mod membership;
mod precision;
mod shortage;
mod sums;
mod throughput;
mod topology;
