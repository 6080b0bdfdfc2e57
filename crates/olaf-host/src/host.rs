//! The contract between an end of the network and its driver.

use olaf_engine::engine::{Transmit, Why};
use olaf_engine::{Instant, PeerId};
use olaf_wire::{Refusal, WelcomeCode};

/// An end of the network: a worker or a parameter server, without its socket.
///
/// The order is that of [`olaf_engine::Engine`]: after every input a driver drains events, then
/// transmissions, then reads the next timeout. A host has one link, so there is no port.
pub trait Host {
    /// One datagram arrived.
    ///
    /// # Errors
    /// Why it was refused; it has been counted under that reason.
    fn handle_packet(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> Result<(), Refused>;

    /// The next datagram, written into `buf`, or nothing.
    fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit>;

    /// When to call [`handle_timeout`](Host::handle_timeout) next, and what for.
    fn poll_timeout(&self) -> Option<(Instant, Why)>;

    /// Time has come.
    fn handle_timeout(&mut self, now: Instant);

    /// The system would not send a datagram of so many bytes, because it is longer than the path
    /// takes; `largest` is what it would send, where it says so.
    fn handle_too_long(&mut self, _now: Instant, _bytes: usize, _largest: Option<u32>) {}

    /// What happened, for people and metrics.
    fn poll_event(&mut self) -> Option<HostEvent>;
}

/// Why a host refused a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// Its bytes are no message.
    Malformed(Refusal),
    /// A message that only travels the other way.
    WrongDirection,
    /// It came from a party that this host does not talk to.
    UnknownPeer,
    /// It names a job that this host does not have.
    UnknownJob,
    /// It names another worker, or another life of this one.
    NotForMe,
    /// Its worker has not joined, or was refused.
    UnknownWorker,
    /// It is of a life of its sender that is over.
    OldEpoch,
    /// It does not fit the job's model.
    WrongSize,
    /// It holds a number that is not finite.
    NonFinite,
    /// It came before.
    Duplicate,
    /// The worker was turned away.
    TurnedAway(WelcomeCode),
    /// A model was offered that nobody asked for.
    NotAsked,
    /// The job has no model yet that an update could change.
    NotReady,
    /// It was computed on an older model than the one that a round of synchronous training is on.
    Stale,
    /// A description of a model that is none of the job's.
    BadLayout,
    /// The server can take no more jobs.
    Full,
    /// So much later than newer ones of its flow that its sender was told that it is lost.
    Overtaken,
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
            Self::WrongSize => "wrong_size",
            Self::NonFinite => "non_finite",
            Self::Duplicate => "duplicate",
            Self::TurnedAway(code) => code.name(),
            Self::NotAsked => "not_asked",
            Self::NotReady => "not_ready",
            Self::Stale => "stale",
            Self::BadLayout => "bad_layout",
            Self::Full => "full",
            Self::Overtaken => "overtaken",
        }
    }
}

/// What happened at an end, for people and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// Worker: the job let this worker in.
    Joined {
        /// Version of the job's model; 0 where there is none yet.
        version: u32,
    },
    /// Worker: the job turned this worker away.
    TurnedAway(WelcomeCode),
    /// Worker: what the path to the server carries was found, and the model is cut to it.
    Path {
        /// Bytes of the longest IP packet that is known to pass, both ways.
        mtu_bytes: u32,
        /// Lanes of a segment.
        segment_lanes: u32,
    },
    /// Worker: the path does not carry what the job is cut to.
    PathTooNarrow(crate::push_pull::worker::TooNarrow),
    /// Worker: it does again.
    PathBack,
    /// Worker: the switch has not been heard for the configured time.
    SwitchSilent,
    /// Worker: the switch is heard again.
    SwitchBack,
    /// Worker: the switch began a new life.
    SwitchRestarted,
    /// Worker: the server has not been heard for the configured time.
    ServerSilent,
    /// Worker: the server is heard again.
    ServerBack,
    /// Worker: the server began a new life.
    ServerRestarted,
    /// Server: a worker's model became the job's first, or its first after a restart.
    ModelStarted {
        /// The job.
        job: olaf_wire::JobId,
        /// Whose model it is.
        worker: olaf_wire::WorkerId,
        /// Its parameters.
        parameters: u32,
        /// The job's version from here.
        version: u32,
    },
    /// Server: the model of a checkpoint is the job's; no worker had a newer one.
    ModelRestored {
        /// The job.
        job: olaf_wire::JobId,
        /// Its parameters.
        parameters: u32,
        /// The job's version from here.
        version: u32,
    },
    /// Server: a worker was let in.
    WorkerJoined(olaf_engine::WorkerSeen),
    /// Server: a worker said good-bye.
    WorkerLeft(olaf_engine::WorkerSeen),
    /// Server: a worker was turned away.
    WorkerRefused(olaf_engine::WorkerSeen, WelcomeCode),
    /// Server: a worker has not been heard for the configured time.
    WorkerSilent(olaf_engine::WorkerSeen),
    /// Server: a silent worker is heard again.
    WorkerBack(olaf_engine::WorkerSeen),
    /// Server: a round ended without this worker's contribution.
    RoundWithout(olaf_engine::WorkerSeen),
}
