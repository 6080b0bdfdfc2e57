//! ATP in the simulated network: workers, one or two levels of switches, and servers.

mod job;

mod bytes;
mod congestion;
mod faults;
mod membership;
mod shortage;
mod sums;
