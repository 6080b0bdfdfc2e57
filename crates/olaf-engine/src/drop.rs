//! Every reason to drop a datagram, under the name that counters and logs use.

use crate::queue::discipline::Rejection;
use olaf_wire::{Refusal, WelcomeCode};

/// Every reason to drop a datagram; metrics, logs and tests derive from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Its bytes are no message.
    Malformed(Refusal),
    /// A message that only travels down came from below, or the reverse.
    WrongDirection,
    /// From the servers' link, but not from the job's server.
    NotTheServer,
    /// Its job has no server here.
    UnknownJob,
    /// Its join was refused.
    Refused(WelcomeCode),
    /// The update met the queue, or the checks before it, and was turned away.
    Contribution(Rejection),
    /// The queue was full.
    QueueFull,
    /// Reward below the waiting update's by more than the gate's threshold.
    Filtered,
    /// The worker it is for is not known here.
    UnknownReceiver,
    /// Too many datagrams already wait for that link.
    LinkFull,
}

impl DropReason {
    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed(refusal) => refusal.name(),
            Self::WrongDirection => "wrong_direction",
            Self::NotTheServer => "not_the_server",
            Self::UnknownJob => "unknown_job",
            Self::Refused(code) => code.name(),
            Self::Contribution(rejection) => rejection.name(),
            Self::QueueFull => "queue_full",
            Self::Filtered => "filtered",
            Self::UnknownReceiver => "unknown_receiver",
            Self::LinkFull => "link_full",
        }
    }
}
