//! Engines in a simulated network, and the studies.
//!
//! One program for all files: linking a program for each file took longer than the tests themselves.
//! `make lint` checks that no file is missing here.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

mod admission;
mod age_bound;
mod aggregate;
mod atp;
mod chain;
mod chaos;
mod death;
mod delivery;
mod downlink;
mod ends;
mod iswitch;
mod job;
mod network;
mod path;
mod proofs;
mod reduce;
mod replay;
mod replay_errors;
mod replay_model;
mod restore;
mod scenario;
mod scenario_agrees;
mod scenario_ends;
mod shares;
mod signed;
mod slow_paths;
mod slow_uplinks;
mod sums;
mod tree;
mod trio;
mod virtual_job;
