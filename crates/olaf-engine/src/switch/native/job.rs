//! What a switch remembers of a job: its server, shape, clusters and workers.

use super::answers::{Answering, Receiver, Unanswered};
use super::counters::{Account, Fates};
use super::ends::ClusterEnds;
use super::neighbours::{Below, Lives};
use super::ports::Place;
use super::screening::Taken;
use crate::ids::{ClusterId, PeerId, PortId, Session, WorkerId};
use crate::party::{AtPeer, Bucket, Clipping, Liveness, Members, Pace, Paces, Shape};
use crate::rejection::Rejection;
use crate::table::Table;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;

/// A job.
pub(super) struct Job {
    pub(super) server: PeerId,
    /// Named in the configuration: kept although no worker is in it.
    pub(super) configured: bool,
    pub(super) last_join: Instant,
    /// The peer whose join made the job known here.
    pub(super) opened_by: Option<PeerId>,
    /// A worker of it has proved its address, or need not.
    pub(super) has_proof: bool,
    /// The server's; it owes a heartbeat when something was sent to it.
    pub(super) liveness: Liveness,
    /// The switch above, by its lives; unknown where the server itself is.
    pub(super) above: Lives,
    /// What the party above wants echoed; 0: nothing so far.
    pub(super) nonce_above: u32,
    /// Switches that workers joined through.
    pub(super) below: BTreeMap<PeerId, Below>,
    /// When its members were last asked to join again.
    pub(super) asked_again: Option<Instant>,
    /// As the server says; no other party is believed.
    pub(super) shape: Option<Shape>,
    /// This switch's count of the updates that it sent up for this job, from 1; 0 acknowledges
    /// nothing.
    pub(super) hop_sequence: u32,
    pub(super) members: Members<Member>,
    pub(super) clusters: Table<ClusterId, Cluster>,
    /// How often its workers send.
    pub(super) paces: Paces,
    /// What its workers sent lately.
    pub(super) clipping: Clipping,
}

/// Joins of a worker that are remembered while their answers may still come, the newest ones: as many as the
/// worker itself remembers. A worker that hears nothing joins 5 times, and then once in its keepalive: with
/// 500 ms these are the joins of the last 30 s.
const ASKED: usize = 64;

/// A worker that joined, as this switch knows it.
pub(super) struct Member {
    pub(super) cluster: ClusterId,
    pub(super) session: Session,
    pub(super) peer: PeerId,
    /// The port on which it was last heard.
    pub(super) port: PortId,
    /// It joined through another switch, which sends for it and knows the receivers of the answers.
    pub(super) behind_switch: bool,
    /// Its last join: when the worker sent it, and how many switches it had passed.
    pub(super) joined: (u64, u8),
    /// How often it may go over to another cluster.
    pub(super) moves: Bucket,
    pub(super) asked: Asked,
    /// It asked to hear what is taken in of its cluster.
    pub(super) wants_notices: bool,
    /// The server let it in.
    pub(super) admitted: bool,
    pub(super) liveness: Liveness,
    pub(super) account: Account,
    pub(super) last_sequence: Option<u32>,
    pub(super) taken: Taken,
    pub(super) pace: Pace,
    /// When a rejection of each kind was last told, so that a flood of them is one line a second.
    pub(super) told: [Option<Instant>; Rejection::ALL.len()],
}

impl AtPeer for Member {
    fn peer(&self) -> PeerId {
        self.peer
    }

    fn cluster(&self) -> Option<ClusterId> {
        Some(self.cluster)
    }
}

impl Member {
    pub(super) fn place(&self) -> Place {
        Place { port: self.port, peer: self.peer }
    }

    pub(super) fn is(&self, peer: PeerId, session: Session) -> bool {
        self.peer == peer && self.session == session
    }
}

/// When a worker sent the joins that went up and whose answers may still come, oldest first. What says that
/// it answers none of them is not believed: a stranger who does not see the joins cannot name one.
pub(super) struct Asked(VecDeque<u64>);

impl Asked {
    /// Of a worker whose first join went up.
    pub(super) fn once(sent_at_ns: u64) -> Self {
        Self([sent_at_ns].into())
    }

    /// A join goes up.
    pub(super) fn note(&mut self, sent_at_ns: u64) {
        if !self.has(sent_at_ns) {
            if self.0.len() == ASKED {
                self.0.pop_front();
            }
            self.0.push_back(sent_at_ns);
        }
    }

    /// Returns true if a join of that time went up, and neither it nor a later one was answered
    /// before.
    pub(super) fn has(&self, sent_at_ns: u64) -> bool {
        self.0.contains(&sent_at_ns)
    }

    /// The server answered a join. Its answers come in order: those to the joins before came, or are lost.
    /// The join itself stays, because the network may repeat its answer. What a switch above says by itself
    /// is ahead of the server's answers.
    pub(super) fn answered(&mut self, sent_at_ns: u64) {
        if let Some(at) = self.0.iter().position(|asked| *asked == sent_at_ns) {
            self.0.drain(..at);
        }
    }
}

/// A cluster.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) last_heard: Option<Instant>,
    pub(super) fates: Fates,
    /// The ends of its senders' updates.
    pub(super) ends: ClusterEnds,
    /// Departures without an answer yet, oldest first.
    pub(super) unanswered: VecDeque<Unanswered>,
    /// Parties that must get a model: their departures were acknowledged without one.
    pub(super) owed: BTreeMap<Receiver, u32>,
    pub(super) answering: Option<Answering>,
    /// Workers that asked to hear what is taken in.
    pub(super) wants_notices: BTreeSet<WorkerId>,
}

impl Job {
    /// Returns true if the server has let a worker of it in, and the worker was where it said.
    pub(super) const fn is_confirmed(&self) -> bool {
        self.configured || self.shape.is_some() && self.has_proof
    }

    pub(super) fn new(server: PeerId) -> Self {
        Self {
            server,
            configured: false,
            has_proof: false,
            last_join: Instant(0),
            opened_by: None,
            liveness: Liveness::default(),
            above: Lives::default(),
            nonce_above: 0,
            below: BTreeMap::new(),
            asked_again: None,
            shape: None,
            hop_sequence: 0,
            members: Members::default(),
            clusters: Table::new(),
            paces: Paces::default(),
            clipping: Clipping::default(),
        }
    }
}

impl Cluster {
    /// Returns true if a worker wants to hear what is taken in.
    pub(super) fn note_wish(&mut self, worker: WorkerId, wants_notices: bool) {
        if wants_notices {
            self.wants_notices.insert(worker);
        } else {
            self.wants_notices.remove(&worker);
        }
    }

    pub(super) fn is_active(&self, now: Instant, window: Duration) -> bool {
        self.last_heard.is_some_and(|heard| now.since(heard) <= window)
    }
}
