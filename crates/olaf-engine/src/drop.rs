//! Every reason to drop a datagram, under the name that counters and logs use.

use crate::blocks::{pool, records};
use crate::rejection::Rejection;
use crate::seal;
use olaf_wire::{Refusal, WelcomeCode, reduce};

/// Every reason to drop a datagram; metrics, logs and tests derive from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Its bytes are no message.
    Malformed(Refusal),
    /// A message that only travels down came from below, or the reverse.
    WrongDirection,
    /// From the servers' link, but not from the job's server.
    NotTheServer,
    /// It names a life of the server that no answer to a join has confirmed.
    UnknownEpoch,
    /// It refuses a worker, and answers no join of that worker.
    NotAsked,
    /// Its job has no server here.
    UnknownJob,
    /// Its sender does this more often than it may.
    TooOften,
    /// It is not ours, and no list says that its sender may have it passed on.
    Foreign,
    /// Its join was refused.
    JoinRefused(WelcomeCode),
    /// The update met the queue, or the checks before it, and was turned away.
    Contribution(Rejection),
    /// The queue was full.
    QueueFull,
    /// Reward below the waiting update's by more than the gate's threshold.
    Filtered,
    /// The worker it is for is not known here.
    UnknownReceiver,
    /// It came as from a switch, and no list says that its sender is one.
    NotASwitch,
    /// The address that it would go to is not proved.
    NotProven,
    /// Too many datagrams already wait for that link.
    LinkFull,
    /// A piece of a sum met its table, and cannot be summed.
    Piece(pool::Reason),
    /// A piece of a sum met Trio-ML's records, and cannot be summed.
    Record(records::Reason),
    /// Its generation is not known here.
    UnknownGeneration,
    /// Its generation has no such member, or the member has left.
    NotAMember,
    /// It came from another address than its member's, or with another session.
    WrongSender,
    /// Its operation is another one at other workers.
    Mismatch,
    /// Its operation has more parameters than its job may have.
    TooManyParameters,
    /// Its join to a sum was refused.
    SumJoinRefused(reduce::WelcomeCode),
    /// It is not sealed as parties that share a key do it.
    Seal(seal::Reason),
    /// An end of the network, a worker or a server, refused it.
    End(Refused),
}

impl DropReason {
    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed(refusal) => refusal.name(),
            Self::WrongDirection => "wrong_direction",
            Self::NotTheServer => "not_the_server",
            Self::UnknownEpoch => "unknown_epoch",
            Self::NotAsked => "not_asked",
            Self::UnknownJob => "unknown_job",
            Self::TooOften => "too_often",
            Self::Foreign => "foreign",
            Self::JoinRefused(code) => code.name(),
            Self::Contribution(rejection) => rejection.name(),
            Self::QueueFull => "queue_full",
            Self::Filtered => "filtered",
            Self::UnknownReceiver => "unknown_receiver",
            Self::NotASwitch => "not_a_switch",
            Self::NotProven => "not_proven",
            Self::LinkFull => "link_full",
            Self::Piece(reason) => reason.name(),
            Self::Record(reason) => reason.name(),
            Self::UnknownGeneration => "unknown_generation",
            Self::NotAMember => "not_a_member",
            Self::WrongSender => "wrong_sender",
            Self::Mismatch => "mismatch",
            Self::TooManyParameters => "too_many_parameters",
            Self::SumJoinRefused(code) => code.name(),
            Self::Seal(reason) => reason.name(),
            Self::End(refused) => refused.name(),
        }
    }
}

/// Why an end of the network, a worker or a server, refuses a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// Its bytes are no message.
    Malformed(Refusal),
    /// A message that only travels the other way.
    WrongDirection,
    /// It came from a party that this end does not talk to.
    UnknownPeer,
    /// It names a job that this end does not have.
    UnknownJob,
    /// It names another worker, or another life of this one.
    NotForMe,
    /// Its worker has not joined, or was refused.
    UnknownWorker,
    /// It is of a life of its sender that is over.
    OldEpoch,
    /// It names a life of its sender that no answer to an own question has confirmed.
    UnknownEpoch,
    /// It does not fit the job's model.
    WrongSize,
    /// It names another cluster than its worker joined, or one that nobody joined.
    WrongCluster,
    /// It holds a number that is not finite.
    NonFinite,
    /// It came before.
    Duplicate,
    /// The worker was turned away.
    TurnedAway(WelcomeCode),
    /// A worker offered a model without being asked.
    NotAsked,
    /// The job has no model yet that an update could change.
    NotReady,
    /// It was computed on an older model than the one that a round of synchronous training is on.
    Stale,
    /// A description of a model that is none of the job's.
    BadLayout,
    /// Its sender does this more often than it may.
    TooOften,
    /// It came as from a switch, and no list says that its sender is one.
    NotASwitch,
    /// It asks for more than came, and its address is not proved.
    NotProven,
    /// It says to hold more contributions than the workers behind its sender may carry.
    TooManyContributors,
    /// It came after its sender was told that it is lost: the newer updates of its flow were too many.
    Overtaken,
    /// It is of another generation than the one that this end is in.
    OtherGeneration,
    /// It describes another operation than this end has begun under that number.
    Mismatch,
    /// Its operation has more parameters than its job may have.
    TooManyParameters,
    /// It is for later, and there is no room to keep it until then.
    NoRoom,
    /// It cannot be: nobody may send it before this end has said more.
    TooEarly,
    /// A signature under a model that is not the server's.
    WrongSignature,
    /// A signature of a version that the server had given up when this end asked.
    OldVersion,
    /// It asks for a signature, and this server has no secret of its job.
    CannotSign,
    /// `reduce`: the switch turned the worker away.
    NotAdmitted(reduce::WelcomeCode),
}

impl Refused {
    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed(refusal) => refusal.name(),
            Self::WrongDirection => "wrong_direction",
            Self::UnknownPeer => "unknown_peer",
            Self::UnknownJob => "unknown_job",
            Self::NotForMe => "not_for_me",
            Self::UnknownWorker => "unknown_worker",
            Self::OldEpoch => "old_epoch",
            Self::UnknownEpoch => "unknown_epoch",
            Self::WrongSize => "wrong_size",
            Self::WrongCluster => "wrong_cluster",
            Self::NonFinite => "non_finite",
            Self::Duplicate => "duplicate",
            Self::TurnedAway(code) => code.name(),
            Self::NotAsked => "not_asked",
            Self::NotReady => "not_ready",
            Self::Stale => "stale",
            Self::BadLayout => "bad_layout",
            Self::TooOften => "too_often",
            Self::NotASwitch => "not_a_switch",
            Self::NotProven => "not_proven",
            Self::TooManyContributors => "too_many_contributors",
            Self::Overtaken => "overtaken",
            Self::OtherGeneration => "other_generation",
            Self::Mismatch => "mismatch",
            Self::TooManyParameters => "too_many_parameters",
            Self::NoRoom => "no_room",
            Self::TooEarly => "too_early",
            Self::WrongSignature => "wrong_signature",
            Self::OldVersion => "old_version",
            Self::CannotSign => "cannot_sign",
            Self::NotAdmitted(code) => code.name(),
        }
    }
}
