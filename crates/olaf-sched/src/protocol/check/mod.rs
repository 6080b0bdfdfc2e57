//! The protocol checked: the machines of this crate, not a second writing of them.
//!
//! `model` explores every order of events of a small cluster with `stateright`; `network` plays
//! larger ones by chance, with loss, repetition, reordering and death. Design note 018 says what is
//! checked and counts the states.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a check says how much it looked at, and how long"
)]

#[cfg(feature = "model")]
mod cluster;
#[cfg(feature = "model")]
mod explore;
#[cfg(feature = "model")]
mod model;
mod network;
