//! The contract between a switch's brain and its body.

use crate::ids::{ClusterId, JobId, PeerId, PortId, WorkerId};
use crate::queue::discipline::Rejection;
use crate::switch::native::Ruling;
use crate::time::Instant;
use olaf_wire::{Refusal, WelcomeCode};

/// A switch's brain. A driver owns the body: sockets, a simulated network, a test bench.
///
/// `handle_*` takes in, `poll_*` gives out. After every input a driver
/// 1. drains [`poll_event`](Engine::poll_event),
/// 2. drains [`poll_transmit`](Engine::poll_transmit) for each port,
/// 3. reads [`poll_timeout`](Engine::poll_timeout) and, when that time has come, calls
///    [`handle_timeout`](Engine::handle_timeout).
///
/// Output is pulled per port because updates merge *while they wait*: an engine that answered at
/// once could not express it. Time never runs backwards from call to call.
pub trait Engine {
    /// One datagram arrived.
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict;

    /// The next datagram that has left `port`'s link by `now`, written into `buf`, or nothing.
    ///
    /// `buf` must hold the largest datagram, [`olaf_wire::offsets::MAX_DATAGRAM`].
    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit>;

    /// When to call [`handle_timeout`](Engine::handle_timeout) next, and what for.
    fn poll_timeout(&self) -> Option<(Instant, Why)>;

    /// Time has come.
    fn handle_timeout(&mut self, now: Instant);

    /// What happened, for metrics and people; never needed for correctness.
    fn poll_event(&mut self) -> Option<Event>;
}

/// Where a datagram came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The link.
    pub port: PortId,
    /// The party behind it.
    pub peer: PeerId,
}

/// A datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// To whom.
    pub peer: PeerId,
    /// Its bytes, from the start of the buffer.
    pub len: usize,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Taken in; what follows from it comes out of `poll_transmit`.
    Absorb,
    /// Not ours: the driver passes it on, untouched, to that port's default peer.
    Forward(PortId),
    /// Refused, and counted under the reason.
    Drop(DropReason),
}

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

/// What a timeout is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A datagram's last bit leaves its link.
    Departure,
    /// A credit comes back although nobody acknowledged.
    CreditExpiry,
    /// Parties are looked at for silence.
    SilenceCheck,
    /// The question whether a cluster may join has gone unanswered for too long.
    AdmissionDeadline,
    /// A host repeats itself or asks again.
    Retransmission,
    /// A host answers what it has, complete or not.
    RoundEnd,
}

/// What happened, for people and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker was let in.
    WorkerJoined(WorkerSeen),
    /// A worker said good-bye.
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
    /// [`Switch::decide`](crate::Switch::decide) takes the answer.
    AdmissionWanted(WorkerSeen),
    /// Nobody who knew answered in time: the stated answer was given.
    AdmissionUnanswered(WorkerSeen, Ruling),
    /// Too many questions were open to ask about this worker's cluster: the stated answer was given.
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
