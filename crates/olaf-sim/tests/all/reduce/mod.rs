//! `reduce`: ends and a switch in a simulated network.

mod chaos;
mod faults;
mod job;
mod membership;
mod socket;
mod throughput;

crate::chaos::arena!(olaf_host::collective::Reducer);
