//! Workers, servers and switches, connected by hand.
//!
//! One program for all files: linking a program for each file took longer than the tests themselves.
//! `make lint` checks that no file is missing here.
#![allow(clippy::unwrap_used, missing_docs)]

mod atp_server;
mod checkpoint;
mod collecting;
mod forgetting;
mod hostile;
mod hostile_bounds;
mod hostile_claims;
mod layouts;
mod lying_switch;
mod merges;
mod refusals;
mod several_switches;
mod signatures;
mod starving;
mod through_a_switch;
