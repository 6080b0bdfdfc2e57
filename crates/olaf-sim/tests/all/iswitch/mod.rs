//! iSwitch: ends and switches in a simulated network.

mod chaos;
mod faults;
mod granularity;
mod hops;
mod job;
mod length;
mod membership;
mod non_finite;
mod partial;
mod party;
mod pipeline;
mod regular;
mod throughput;
mod tree;
mod weights;
