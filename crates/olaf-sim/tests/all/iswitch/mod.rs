//! iSwitch: ends and switches in a simulated network.

mod chaos;
mod faults;
mod job;
mod membership;
mod partial;
mod tree;
