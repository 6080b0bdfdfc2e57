//! Trio-ML in the simulated network.

mod chaos;
mod faults;
mod job;
mod stragglers;
mod tree;
