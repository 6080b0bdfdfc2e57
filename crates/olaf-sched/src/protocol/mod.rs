//! Which job may use the switches, and when: the sharing controller and the hosts' runtime (MINA
//! §IV-B).
//!
//! Two state machines that exchange [`Packet`]s. The [`Controller`] gives a job a [`Grant`], the
//! right to use its tree for a range of operation indices; it gives on what conflicts only after
//! every host has said that nothing is held any more, or after the dead job's tree is torn down. A
//! [`Host`] launches each of its job's all-reduces in the mode that the grant says, and never waits
//! for a grant: without one it launches without the switches.
//!
//! Time, chance and bytes are arguments: `handle_*` takes in, then `poll_transmit`, `poll_event`
//! and `poll_timeout` give out, in this order. What holds and why, and how it was checked: design
//! note 018. `check/` runs these very machines in a model checker and in a simulated network.

mod controller;
mod doubt;
mod foresight;
mod host;
mod job;
mod options;
mod policy;
mod standing;
mod timing;

#[cfg(test)]
mod check;
#[cfg(test)]
mod foresight_tests;

pub use controller::{Controller, Event, Failure, Needs};
pub use foresight::{Foresight, Sharer};
pub use host::{Gone, Host, Launch, NotNow};
pub use olaf_wire::mina::{Ballot, Body, Grant, Packet, Party, Progress};
pub use options::SharingOptions;
pub use policy::Policy;
pub use standing::{Standing, Usage};
pub use timing::{Bug, HostTiming, Timing};
