//! What an engine tells people and metrics.

mod log;
mod words;

pub use log::Log;

use crate::ids::{ClusterId, JobId, PeerId, WorkerId};
use crate::party::{Allowance, Clipped, Ruling};
use crate::rejection::Rejection;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::{WelcomeCode, reduce, trio};

/// Events about the coming and going of workers, which strangers can cause: a large job may start at
/// once, and a flood is 100 lines a second. What is left out counts as forgotten.
pub const MEMBERSHIP_LINES: Allowance = Allowance { burst: 4096, every: Duration::from_millis(10) };

impl Event {
    /// Returns true if it tells of the coming or going of workers.
    #[must_use]
    pub const fn is_of_membership(&self) -> bool {
        matches!(
            self,
            Self::WorkerJoined(_)
                | Self::WorkerLeft(_)
                | Self::WorkerSilent(_)
                | Self::WorkerBack(_)
                | Self::WorkerMoved(_)
                | Self::WorkerRefused(..)
                | Self::Sum(
                    _,
                    SumEvent::WorkerRefused { .. }
                        | SumEvent::WorkerLeft { .. }
                        | SumEvent::WorkerMisplaced { .. }
                        | SumEvent::GenerationBegan { .. }
                        | SumEvent::GenerationClosed { .. }
                )
        )
    }
}

/// What happened, for people and metrics.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A worker was let in.
    WorkerJoined(WorkerSeen),
    /// A worker left.
    WorkerLeft(WorkerSeen),
    /// A worker has not been heard for the configured time.
    WorkerSilent(WorkerSeen),
    /// A silent worker is heard again.
    WorkerBack(WorkerSeen),
    /// A worker goes on from another address or in another cluster.
    WorkerMoved(WorkerSeen),
    /// A worker's join was refused.
    WorkerRefused(WorkerSeen, WelcomeCode),
    /// Whether this worker's cluster, which is new here, may join is asked:
    /// [`Switch::decide`](crate::Switch::decide) takes the answer. The clusters of the list
    /// run already.
    AdmissionWanted(WorkerSeen, Vec<(JobId, ClusterId)>),
    /// No answer came in time: the stated answer was given.
    AdmissionUnanswered(WorkerSeen, Ruling),
    /// Too many questions were open to ask about this worker's cluster: the stated answer was
    /// given.
    AdmissionNotAsked(WorkerSeen, Ruling),
    /// A job's server has not been heard for the configured time.
    ServerSilent(JobId, PeerId),
    /// A silent server is heard again.
    ServerBack(JobId, PeerId),
    /// A job's server began a new life.
    ServerRestarted(JobId, PeerId),
    /// A switch, above or below, has not been heard for the configured time.
    SwitchSilent(JobId, PeerId),
    /// A silent switch is heard again.
    SwitchBack(JobId, PeerId),
    /// A switch, above or below, began a new life.
    SwitchRestarted(JobId, PeerId),
    /// What goes up for a job comes back from that neighbour: switches send in a circle.
    Loop(JobId, PeerId),
    /// A contribution was turned away.
    ContributionRejected(WorkerSeen, Rejection),
    /// A contribution moved its model less than it asked for: its norm, weight, reward or movement was clipped.
    ContributionClipped(WorkerSeen, Clipped),
    /// A server's round ended without this worker's contribution.
    RoundWithout(WorkerSeen),
    /// A worker's model became its job's first, or the first after a restart of the server.
    ModelStarted {
        /// The job.
        job: JobId,
        /// The worker whose model it is.
        worker: WorkerId,
        /// The model's parameters.
        parameters: u32,
        /// The job's version from here.
        version: u32,
    },
    /// The model of a checkpoint is the job's; no worker had a newer one.
    ModelRestored {
        /// The job.
        job: JobId,
        /// The model's parameters.
        parameters: u32,
        /// The job's version from here.
        version: u32,
    },
    /// A server forgot a job that had no workers for the configured time.
    JobForgotten {
        /// The job.
        job: JobId,
        /// The newest version of its model.
        version: u32,
        /// For how long it had no workers.
        idle: Duration,
    },
    /// A worker of that job, which talks to the job through that peer, reports about itself.
    Worker(JobId, PeerId, WorkerEvent),
    /// A switch that sums tells of that job.
    Sum(JobId, SumEvent),
    /// An event of the program around an engine.
    Other(Box<Told>),
}

/// What a switch that sums tells of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumEvent {
    /// A generation has begun.
    GenerationBegan {
        /// Its number.
        generation: u32,
        /// Its members.
        workers: u32,
    },
    /// A generation ends, or ends earlier than was said before.
    GenerationClosed {
        /// Its number.
        generation: u32,
        /// The first operation that it does not finish.
        operation: u32,
        /// Why it ends.
        reason: reduce::Reason,
        /// Rank and address of the worker that is the reason.
        culprit: Option<(u32, PeerId)>,
    },
    /// A worker's join was refused.
    WorkerRefused {
        /// Where it came from.
        peer: PeerId,
        /// Why.
        code: reduce::WelcomeCode,
    },
    /// A worker left.
    WorkerLeft {
        /// Its rank.
        rank: u32,
        /// Where it was.
        peer: PeerId,
    },
    /// ATP: a worker is behind other switches than the topology says.
    WorkerMisplaced {
        /// Its rank.
        rank: u32,
        /// Where its join came from.
        peer: PeerId,
    },
    /// The switch above has more cores than this one: the job's workers are refused.
    CoresDiffer {
        /// Cores of this switch.
        here: u32,
        /// Cores of the switch above.
        above: u32,
    },
    /// A worker's piece has a NaN or an infinity.
    NonFinite {
        /// Its rank.
        rank: u32,
        /// The operation.
        operation: u32,
    },
    /// Trio-ML: a worker straggles, or no longer does.
    Straggler {
        /// Its rank.
        rank: u32,
        /// Where it is.
        peer: PeerId,
        /// What it is now.
        straggling: trio::Straggling,
        /// Blocks that went without it.
        events: u32,
    },
}

/// What a worker reports about itself and its way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// The job let this worker in.
    Joined {
        /// Version of the job's model; 0 where there is none yet.
        version: u32,
    },
    /// The job turned this worker away.
    TurnedAway(WelcomeCode),
    /// The worker found out what the path to the server carries, and cut the model to it.
    Path {
        /// Bytes of the longest IP packet that is known to pass, both ways.
        mtu_bytes: u32,
        /// Lanes of a segment.
        segment_lanes: u32,
    },
    /// The path does not carry the segments that the job is cut to.
    PathTooNarrow(TooNarrow),
    /// The path carries them again.
    PathBack,
    /// The switch has not been heard for the configured time.
    SwitchSilent,
    /// The switch is heard again.
    SwitchBack,
    /// The switch began a new life.
    SwitchRestarted,
    /// The server has not been heard for the configured time.
    ServerSilent,
    /// The server is heard again.
    ServerBack,
    /// The server began a new life.
    ServerRestarted,
    /// A model is not the one that the server signed: a switch on the way changed it. The model is not
    /// taken.
    ModelForged {
        /// Its version, as the switch said.
        version: u32,
    },
    /// A signature under a model is not the server's: a switch on the way made or changed it.
    SignatureForged {
        /// Its version, as the switch said.
        version: u32,
    },
    /// No signature came for a model in time, and the model is not taken: the server has no key of the
    /// job, or a switch on the way keeps signatures back.
    ModelUnsigned {
        /// Its version, as the switch said.
        version: u32,
    },
    /// The worker has a switch's key alone: it cannot check who made its models, and takes them
    /// unchecked.
    ModelsUnchecked,
    /// `reduce`: a generation has begun, and the worker is in it.
    InGeneration {
        /// The generation.
        generation: u32,
        /// The worker's rank in it.
        rank: u32,
        /// Its workers.
        workers: u32,
    },
    /// `reduce`: the generation has ended.
    GenerationClosed {
        /// The generation.
        generation: u32,
        /// The first operation that it does not finish.
        operation: u32,
        /// Why it has ended.
        reason: reduce::Reason,
        /// The rank of the worker that is the reason, where it is one of the generation.
        culprit: Option<u32>,
    },
    /// `reduce`: the switch turned the worker away.
    JoinRefused(reduce::WelcomeCode),
    /// Trio-ML: a worker of the job straggles, or no longer does.
    Straggler {
        /// Its rank.
        rank: u32,
        /// What it is now.
        straggling: trio::Straggling,
        /// Blocks that went without it.
        events: u32,
    },
}

/// A path that does not carry the segments that a job is cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooNarrow {
    /// Bytes of an IP packet with a segment of the job.
    pub needed_mtu_bytes: u32,
    /// Bytes of the longest IP packet that passes, as far as was seen.
    pub mtu_bytes: u32,
    /// Lanes of a segment of the job.
    pub segment_lanes: u32,
}

/// An event of the program around an engine, such as a checkpoint that was not written.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The event's name.
    pub name: String,
    /// Its fields, in order.
    pub fields: Vec<(String, Said)>,
}

/// A field of [`Told`].
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A count, an id, a time.
    Number(u64),
    /// A path, an address, a reason.
    Text(String),
}

/// The worker an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerSeen {
    /// Its job.
    pub job: JobId,
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its id, or the id it claims.
    pub worker: WorkerId,
    /// Where the datagram came from.
    pub peer: PeerId,
}
