//! Trio-ML in the simulated network.

mod chaos;
mod faults;
mod forged;
mod job;
mod stragglers;
mod tree;

crate::chaos::arena!(olaf_host::collective::trio::Worker);
