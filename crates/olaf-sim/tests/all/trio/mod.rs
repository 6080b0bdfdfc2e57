//! Trio-ML in the simulated network.

mod faults;
mod job;
mod stragglers;
mod tree;
