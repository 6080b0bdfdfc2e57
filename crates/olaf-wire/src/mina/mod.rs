//! The messages of MINA's sharing protocol (MINA §IV-B, Figure 9): which job may use the switches
//! for which of its all-reduces.
//!
//! The sharing controller and the hosts of a job exchange [`Packet`]s. The decisions are in
//! `olaf-sched`; here are the messages and their bytes. [`Here`] is the message of the rehearsal,
//! which stands in for an all-reduce where no gradients are summed.

mod codec;
mod here;

pub use codec::{LEN, MAGIC, VERSION, offsets};
pub use here::Here;

/// A job, in the order of arrival. Wider than a job id of Olaf's own messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct JobId(pub u64);

impl JobId {
    /// As an index into a list of jobs.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One attempt to change a job's grant. A later attempt is larger, even of another controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// The life of the controller: larger than that of every controller before it; from 1.
    pub epoch: u64,
    /// The attempt in that life for this job; from 1.
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
    /// Returns true if this operation is to use the switches.
    #[must_use]
    pub const fn covers(self, index: u64) -> bool {
        self.from <= index && index < self.to
    }

    /// Returns true if it covers an operation of this index or of a later one.
    #[must_use]
    pub const fn has_left(self, next: u64) -> bool {
        next < self.to && self.from < self.to
    }
}

/// The progress of a job. Each of its hosts tells it when an operation begins. Only the policy
/// hears of it: lost or late progress costs time, no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Progress {
    /// The index of the next operation: the one before it begins now.
    pub next: u64,
    /// The operation that begins uses the switches.
    pub in_network: bool,
    /// The time since the operation's step began.
    pub step_age_ns: u64,
}

/// A sender or a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// The sharing controller.
    Controller,
    /// A host of the packet's job, by its rank in the job.
    Host(u16),
}

/// One message between the controller and a host, or between two hosts; about one ballot of one
/// job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packet {
    /// The job whose grant it is about.
    pub job: JobId,
    /// The attempt to change the grant. Of [`Body::Bye`]: the last that the host knows.
    pub ballot: Ballot,
    /// The sender.
    pub from: Party,
    /// The receiver.
    pub to: Party,
    /// The content.
    pub body: Body,
}

/// The content of a packet: MINA §IV-B, Figure 9, and what lost messages and dead parties require.
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
        /// The largest epoch it has heard of: a controller learns from it that it was replaced.
        epoch: u64,
    },
    /// Host to host: do you know the outcome? The sender takes it from no controller any more.
    Ask,
    /// Host to host: no; and the sender takes it from no controller any more either.
    InDoubt,
    /// Host to controller: its progress. Belongs to no ballot, and is said once.
    Progress(Progress),
    /// Host to controller: it has ended; nothing of it runs, and nothing will. Back from the controller: it
    /// has heard so, and the host need not repeat it.
    Bye,
}
