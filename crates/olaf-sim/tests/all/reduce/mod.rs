//! `reduce`: ends and a switch in a simulated network.

mod job;
mod membership;
mod socket;
mod throughput;
