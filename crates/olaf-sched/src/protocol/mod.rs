//! Who may use the switches when: the sharing controller and the hosts' runtime (MINA §IV-B).
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

pub mod codec;
mod controller;
mod doubt;
mod foresight;
mod host;
mod job;
mod policy;
mod timing;

#[cfg(test)]
mod check;
#[cfg(test)]
mod foresight_tests;

pub use controller::{Controller, Event, Failure, Members};
pub use foresight::{Foresight, Sharer};
pub use host::{Gone, Host, Launch, NotNow};
pub use policy::Policy;
pub use timing::{Bug, HostTiming, Timing};

use crate::JobId;

/// One attempt to change a job's grant. A later one is larger, of whichever controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// Which life of the controller: larger than that of every controller before it; from 1.
    pub epoch: u64,
    /// Which attempt of that life for this job; from 1.
    pub round: u64,
}

/// The operations of a job that use the switches: those of index `from` up to, not including, `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// The first.
    pub from: u64,
    /// One after the last.
    pub to: u64,
}

impl Grant {
    /// Is this operation to use the switches?
    #[must_use]
    pub const fn covers(self, index: u64) -> bool {
        self.from <= index && index < self.to
    }

    /// Does it cover an operation of this index or of a later one?
    #[must_use]
    pub const fn has_left(self, next: u64) -> bool {
        next < self.to && self.from < self.to
    }
}

/// How far a job is, as each of its hosts tells it when an operation begins. Only the policy hears of
/// it: what is lost or late costs time, no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Progress {
    /// The index of the next operation: the one before it begins now.
    pub next: u64,
    /// That one uses the switches.
    pub in_network: bool,
    /// How long ago its step began.
    pub step_age_ns: u64,
}

/// Who speaks, or is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// The sharing controller.
    Controller,
    /// A host of the packet's job, by its rank in it.
    Host(u16),
}

/// What the two, and hosts among themselves, say to each other; each about one ballot of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packet {
    /// Whose grant.
    pub job: JobId,
    /// Which attempt to change it. Of [`Body::Bye`]: the last that the host knows.
    pub ballot: Ballot,
    /// Who says it.
    pub from: Party,
    /// To whom.
    pub to: Party,
    /// What.
    pub body: Body,
}

/// MINA §IV-B, Figure 9, and what it takes when messages are lost and parties die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// Controller to host: launch nothing more until the outcome (step 1).
    Prepare,
    /// Host to controller: it launches nothing more (step 3).
    Ready {
        /// The index of its next operation.
        next: u64,
        /// It holds the switches: an operation that uses them runs, or its grant has some left.
        held: bool,
    },
    /// The outcome is this grant, in place of the one before (step 5). From the controller, and
    /// from a host to one in doubt.
    Commit(Grant),
    /// The outcome is that nothing changes. From the controller, and from a host to one in doubt.
    Abort,
    /// Host to controller: it knows the outcome and goes on (step 7); and again when it no longer
    /// holds the switches.
    Settled {
        /// The index of its next operation.
        next: u64,
        /// It holds the switches.
        held: bool,
        /// The largest epoch it has heard of: how a controller learns that it was replaced.
        epoch: u64,
    },
    /// Host to host: do you know the outcome? It takes it from no controller any more.
    Ask,
    /// Host to host: no; and I take it from no controller any more either.
    InDoubt,
    /// Host to controller: how far it is. Belongs to no ballot, and is said once.
    Progress(Progress),
    /// Host to controller: it has ended; nothing of it runs, and nothing will.
    Bye,
}
