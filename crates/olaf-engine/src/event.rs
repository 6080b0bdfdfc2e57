//! What an engine tells people and metrics.

use crate::ids::{ClusterId, JobId, PeerId, WorkerId};
use crate::party::Ruling;
use crate::queue::discipline::Rejection;
use olaf_wire::WelcomeCode;

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
