//! The way down: acknowledgements and models fan out to the workers concerned.

use super::job::Cluster;
use super::{AnswerTo, Down, Switch};
use crate::engine::{DropReason, Source, Verdict};
use crate::ids::{PeerId, WorkerId};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use olaf_wire::{Address, Answer, Kind, Packet, Session, Welcome};

/// Unanswered departures remembered for each cluster; of older ones the answer goes to the whole
/// cluster.
pub(super) const UNANSWERED_LIMIT: usize = 4096;

/// A worker whose update met a departing entry, and the newest of its own numbers in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharer {
    pub(super) worker: WorkerId,
    pub(super) sequence: u32,
}

/// The model answer that comes down for a cluster: all its segments go to the same workers.
pub(super) struct Answering {
    /// Its version and what it acknowledges: a gated update is answered with the same version.
    of: (u32, u32),
    receivers: BTreeMap<WorkerId, u32>,
}

impl Switch {
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let answer = match Answer::parse(packet) {
            Ok(answer) => answer,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let id = answer.address.job;
        if let Err(reason) = self.heard_server(now, id, from.peer, answer.epoch) {
            return Verdict::Drop(reason);
        }
        self.uplink.acknowledge(id, answer.acknowledges);
        let to_cluster = self.config.answer_to == AnswerTo::Cluster;
        let Some(job) = self.jobs.get_mut(&id) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        let receivers = if answer.address.worker == WorkerId::ALL {
            let cluster = job.clusters.entry(answer.address.cluster).or_default();
            let concerned = if packet.kind() == Kind::Model {
                model_receivers(cluster, &answer)
            } else {
                acknowledged(cluster, answer.acknowledges)
            };
            // Who is known to share, or, after a restart of this switch, everyone.
            if to_cluster || concerned.is_empty() && packet.kind() == Kind::Model {
                let members =
                    job.members.iter().filter(|(_, m)| m.cluster == answer.address.cluster);
                members.map(|(id, _)| (*id, concerned.get(id).copied().unwrap_or(0))).collect()
            } else {
                concerned
            }
        } else {
            BTreeMap::from([(answer.address.worker, 0)])
        };
        let bytes: Arc<[u8]> = bytes.into();
        let mut verdict = Verdict::Absorb;
        let mut switches: BTreeMap<PeerId, u32> = BTreeMap::new();
        for (worker, sequence) in receivers {
            let Some(member) = self.jobs.get(&id).and_then(|job| job.members.get(&worker)) else {
                if answer.address.worker != WorkerId::ALL {
                    verdict = Verdict::Drop(DropReason::UnknownReceiver);
                }
                continue;
            };
            let (peer, session) = (member.peer, member.session);
            if member.behind_switch && sequence > 0 {
                // One answer for the switch before this one, which knows who shared in its merges.
                let newest = switches.entry(peer).or_default();
                *newest = sequence.max(*newest);
                continue;
            }
            let address = Address { job: id, cluster: answer.address.cluster, worker, session };
            let down = Down { peer, bytes: bytes.clone(), receiver: Some((address, sequence)) };
            if let Verdict::Drop(reason) = self.send_down(down) {
                self.counters.refuse(reason);
            }
        }
        for (peer, sequence) in switches {
            let (cluster, worker) = (answer.address.cluster, WorkerId::ALL);
            let address = Address { job: id, cluster, worker, session: Session(0) };
            let down = Down { peer, bytes: bytes.clone(), receiver: Some((address, sequence)) };
            if let Verdict::Drop(reason) = self.send_down(down) {
                self.counters.refuse(reason);
            }
        }
        verdict
    }

    /// Sends a welcome of this switch's own.
    pub(super) fn reply(&mut self, peer: PeerId, welcome: &Welcome) {
        let mut bytes = [0; olaf_wire::offsets::welcome::LEN];
        let len = welcome.emit(&mut bytes);
        if let Verdict::Drop(reason) =
            self.send_down(Down { peer, bytes: bytes[..len].into(), receiver: None })
        {
            self.counters.refuse(reason);
        }
    }
}

/// Workers whose departures up to `up_to` are acknowledged now; they are owed a model from here on.
fn acknowledged(cluster: &mut Cluster, up_to: u32) -> BTreeMap<WorkerId, u32> {
    let mut concerned = BTreeMap::new();
    while cluster.unanswered.front().is_some_and(|(sequence, _)| *sequence <= up_to) {
        let (_, sharers) = cluster.unanswered.pop_front().expect("just seen at the front");
        for sharer in sharers {
            let newest: &mut u32 = concerned.entry(sharer.worker).or_default();
            *newest = sharer.sequence.max(*newest);
        }
    }
    cluster.owed.extend(concerned.iter().map(|(worker, sequence)| (*worker, *sequence)));
    concerned
}

/// The workers that a model is for, the same for each of its segments.
fn model_receivers(cluster: &mut Cluster, answer: &Answer) -> BTreeMap<WorkerId, u32> {
    let of = (answer.model_version, answer.acknowledges);
    // Those acknowledged only now are owed a model; in the middle of one they wait for the next.
    acknowledged(cluster, answer.acknowledges);
    if cluster.answering.as_ref().is_none_or(|a| a.of != of) {
        let receivers = core::mem::take(&mut cluster.owed);
        cluster.answering = Some(Answering { of, receivers });
    }
    let answering = cluster.answering.as_ref().expect("set just above when it was not");
    answering.receivers.clone()
}
