//! The way down: acknowledgements and models fan out to the workers concerned.

use super::job::{Cluster, Job};
use super::neighbours::everyone;
use super::ports::{Message, Place};
use super::{AnswerTo, Switch};
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::ids::{ClusterId, Flow, JobId, PeerId, PortId, WorkerId};
use crate::link::pacer::Acknowledged;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use olaf_wire::{Address, Answer, Ends, Kind, Packet, serial};

/// Unanswered departures remembered for each cluster; of older ones the answer goes to the whole
/// cluster.
pub(super) const UNANSWERED_LIMIT: usize = 4096;

/// A receiver of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Receiver {
    /// A worker of this switch's own.
    Worker(WorkerId),
    /// The switch before this one, which knows the contributors of its merges.
    Switch(PeerId),
}

/// Somebody whose update met a departing entry, and the newest of their own numbers in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharer {
    pub(super) receiver: Receiver,
    pub(super) sequence: u32,
}

/// A departure without an answer yet.
pub(super) struct Unanswered {
    pub(super) hop_sequence: u32,
    pub(super) segment: u32,
    pub(super) sharers: Vec<Sharer>,
}

/// The model answer that comes down for a cluster: all its segments go to the same receivers.
pub(super) struct Answering {
    /// Its version and what it acknowledges: a gated update is answered with the same version.
    of: (u32, u32),
    receivers: BTreeMap<Receiver, u32>,
}

impl Answering {
    /// Returns true if these are the receivers of a model of that version, and not of the whole
    /// cluster.
    pub(super) fn is_of(&self, version: u32) -> bool {
        self.of.0 == version && !self.receivers.is_empty()
    }

    pub(super) fn receivers(&self) -> impl Iterator<Item = Receiver> + '_ {
        self.receivers.keys().copied()
    }
}

impl Switch {
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
    ) -> Verdict {
        let answer = match Answer::parse(packet) {
            Ok(answer) => answer,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let id = answer.address.job;
        // A switch above says by itself what became of updates, and nothing else.
        if answer.epoch == 0 && (packet.kind() == Kind::Model || answer.acknowledges != 0) {
            return Verdict::Drop(DropReason::UnknownEpoch);
        }
        if let Err(reason) = self.heard_server(now, id, from.peer, answer.epoch, false) {
            return Verdict::Drop(reason);
        }
        let acknowledged = Acknowledges::of(&answer, packet.kind());
        if let Some(of) = acknowledged.credits(&answer) {
            self.ports.up.acknowledge(of, answer.acknowledges);
        }
        let to_cluster = self.config.answer_to == AnswerTo::Cluster;
        let Some(job) = self.jobs.get_mut(&id) else {
            return Verdict::Drop(DropReason::UnknownJob);
        };
        let is_model = packet.kind() == Kind::Model;
        let mut told = Vec::new();
        let receivers = if answer.address.worker == WorkerId::ALL {
            // A cluster without a worker of this switch needs no answer.
            let Some(cluster) = job.clusters.get_mut(&answer.address.cluster) else {
                return Verdict::Drop(DropReason::UnknownReceiver);
            };
            if answer.ends.newest != 0 {
                told = cluster.ends.settle(answer.segment, &answer.ends);
            }
            let concerned = if is_model {
                model_receivers(cluster, &answer, acknowledged)
            } else {
                acknowledge(cluster, answer.acknowledges, acknowledged)
            };
            // The known contributors, or, after a restart of this switch, the whole cluster.
            let answers = is_model || answer.acknowledges != 0;
            if to_cluster && answers || concerned.is_empty() && is_model {
                whole_cluster(job, answer.address.cluster, &concerned)
            } else {
                concerned
            }
        } else {
            BTreeMap::from([(Receiver::Worker(answer.address.worker), 0)])
        };
        // The answer tells its receivers the ends of their updates; other senders get an
        // acknowledgement of their own.
        let mut ends_of = |receiver| {
            let cluster = job.clusters.get_mut(&answer.address.cluster);
            cluster.map_or(Ends::NONE, |cluster| cluster.ends.tell(receiver, answer.segment))
        };
        let newest = answer.segments == 1 || !is_model;
        told.retain(|(receiver, ends)| {
            !newest || !receivers.contains_key(receiver) || *ends != ends_of(*receiver)
        });
        let receivers: Vec<(Receiver, u32, Ends)> = receivers
            .into_iter()
            .map(|(receiver, sequence)| {
                (receiver, sequence, if newest { ends_of(receiver) } else { Ends::NONE })
            })
            .collect();
        let flow = Flow { job: id, cluster: answer.address.cluster, segment: answer.segment };
        self.tell_ends(now, flow, told);
        let lanes: Arc<[u8]> = packet.lanes().into();
        let mut groups: Vec<Group> = Vec::new();
        let mut verdict = Verdict::Absorb;
        for (receiver, sequence, ends) in receivers {
            let Some((place, address)) = self.place_of(id, answer.address.cluster, receiver) else {
                if answer.address.worker != WorkerId::ALL {
                    verdict = Verdict::Drop(DropReason::UnknownReceiver);
                }
                continue;
            };
            if !self.proofs.is_proven(&(id, place.peer)) {
                self.counters.refuse(DropReason::NotProven);
                continue;
            }
            let told = Answer { address, acknowledges: sequence, ends, ..answer };
            Group::add(&mut groups, place, told);
        }
        for Group { port, to, answer } in groups {
            let to = match to[..] {
                [peer] => Receivers::One(peer),
                _ => Receivers::Many(to.into()),
            };
            let message = Message::Answer(answer, lanes.clone());
            let copies = to.as_slice().len();
            if let Verdict::Drop(reason) = self.send_to(now, port, to, from.class, message) {
                // Each receiver misses a datagram, as each would have counted as forwarded.
                (0..copies).for_each(|_| self.counters.refuse(reason));
            }
        }
        verdict
    }

    /// Where a receiver is, and by what name.
    pub(super) fn place_of(
        &self,
        id: JobId,
        cluster: ClusterId,
        receiver: Receiver,
    ) -> Option<(Place, Address)> {
        let job = self.jobs.get(&id)?;
        match receiver {
            Receiver::Switch(peer) => {
                let member = || job.members.values().find(|m| m.behind_switch && m.peer == peer);
                let below = job.below.get(&peer).map(|below| below.port);
                let port = below.or_else(|| member().map(|member| member.port))?;
                Some((Place { port, peer }, Address { cluster, ..everyone(id) }))
            }
            Receiver::Worker(worker) => {
                let member = job.members.get(&worker)?;
                let session = member.session;
                Some((member.place(), Address { job: id, cluster, worker, session }))
            }
        }
    }
}

/// Receivers behind one port that hear the very same answer: it is written once for all of them.
struct Group {
    port: PortId,
    to: Vec<PeerId>,
    answer: Answer,
}

impl Group {
    /// Adds a receiver. Workers differ in their addresses; switches come one after the other.
    fn add(groups: &mut Vec<Self>, place: Place, answer: Answer) {
        match groups.last_mut() {
            Some(group) if group.port == place.port && group.answer == answer => {
                group.to.push(place.peer);
            }
            _ => groups.push(Self { port: place.port, to: vec![place.peer], answer }),
        }
    }
}

/// Which departures an answer's number speaks of, that one and all before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledges {
    /// All of the cluster, and of the job: a server answers in the order in which it was sent to.
    All,
    /// Those of one segment: another switch sends on what it holds of the others when their turn
    /// comes.
    Segment(u32),
    /// None: through another switch each segment has an acknowledgement of its own, and the model
    /// comes beside them.
    Nothing,
}

impl Acknowledges {
    fn of(answer: &Answer, kind: Kind) -> Self {
        match kind {
            _ if answer.queue.switches == 0 => Self::All,
            Kind::Model if answer.segments > 1 => Self::Nothing,
            _ => Self::Segment(answer.segment),
        }
    }

    /// What comes back of the uplink's credits.
    fn credits(self, answer: &Answer) -> Option<Acknowledged> {
        let Address { job, cluster, .. } = answer.address;
        match self {
            Self::All => Some(Acknowledged::Job(job)),
            Self::Segment(segment) => Some(Acknowledged::Flow(Flow { job, cluster, segment })),
            Self::Nothing => None,
        }
    }

    fn includes(self, segment: u32) -> bool {
        match self {
            Self::All => true,
            Self::Segment(only) => segment == only,
            Self::Nothing => false,
        }
    }
}

/// The server has acknowledged all departures up to `up_to`. Returns the receivers that contributed
/// to them, each with its newest number: the switch must send each of them a model.
///
/// Example: departures 4 (of A and B) and 5 (of A) wait. An answer up to 5 returns A and B; an
/// answer up to 4 returns the same two, and departure 5 still waits.
fn acknowledge(cluster: &mut Cluster, up_to: u32, of: Acknowledges) -> BTreeMap<Receiver, u32> {
    let mut concerned = BTreeMap::new();
    let mut at = 0;
    while up_to != 0
        && let Some(unanswered) = cluster.unanswered.get(at)
        && !serial::is_after(unanswered.hop_sequence, up_to)
    {
        if !of.includes(unanswered.segment) {
            at += 1;
            continue;
        }
        let answered = cluster.unanswered.remove(at).expect("looked at just above");
        for sharer in answered.sharers {
            let newest: &mut u32 = concerned.entry(sharer.receiver).or_default();
            *newest = serial::later(*newest, sharer.sequence);
        }
    }
    cluster.owed.extend(concerned.iter().map(|(receiver, sequence)| (*receiver, *sequence)));
    concerned
}

/// The receivers of a model, the same for each of its segments.
fn model_receivers(
    cluster: &mut Cluster,
    answer: &Answer,
    acknowledges: Acknowledges,
) -> BTreeMap<Receiver, u32> {
    let of = (answer.model_version, answer.acknowledges);
    // Receivers acknowledged only now must get a model too. If a model is half sent, they wait for
    // the next one.
    acknowledge(cluster, answer.acknowledges, acknowledges);
    if cluster.answering.as_ref().is_none_or(|a| a.of != of) {
        let receivers = core::mem::take(&mut cluster.owed);
        cluster.answering = Some(Answering { of, receivers });
    }
    let answering = cluster.answering.as_ref().expect("set just above when it was not");
    answering.receivers.clone()
}

/// Every receiver in a cluster, with its number if it has one. A switch stands for all workers behind
/// it.
fn whole_cluster(
    job: &Job,
    cluster: ClusterId,
    concerned: &BTreeMap<Receiver, u32>,
) -> BTreeMap<Receiver, u32> {
    let receivers = job.receivers_in(cluster).into_iter();
    receivers.map(|receiver| (receiver, concerned.get(&receiver).copied().unwrap_or(0))).collect()
}

impl Job {
    /// Every receiver in a cluster; a switch below stands there once for each worker behind it.
    pub(super) fn receivers_in(&self, cluster: ClusterId) -> Vec<Receiver> {
        let members = self.members.iter().filter(|(_, member)| member.cluster == cluster);
        members
            .map(|(id, member)| {
                if member.behind_switch {
                    Receiver::Switch(member.peer)
                } else {
                    Receiver::Worker(*id)
                }
            })
            .collect()
    }
}
