//! When what was delivered changes the model: at once, now and then, or round by round (OLAF §2.1).
//!
//! OLAF applies each update when it comes and answers with the model. The two ways it is compared
//! with collect: every delivery is acknowledged at once, so that nobody upstream waits for the
//! server, and the model goes out when the collection is applied. A collection that is not full
//! when its time is over is applied as it is: a worker that died holds up nobody for longer.

use super::Server;
use super::answers::Snapshot;
use super::job::{Delivery, Job, Member};
use super::rule::{Applied, Delivered, RuleConfig};
use crate::host::{HostEvent, Refused};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::engine::WorkerSeen;
use olaf_engine::{Instant, PeerId};
use olaf_wire::offsets::LANE;
use olaf_wire::{Address, Answer, ClusterId, JobId, Update, WorkerId};

/// When what was delivered changes the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// At once: asynchronous training as OLAF has it.
    Each,
    /// So many contributions together, once, by their mean; their workers went on meanwhile.
    Periodic {
        /// How many; `None` leaves it to the time.
        contributions: Option<u32>,
        /// At the latest so long after the first of them.
        after: Duration,
    },
    /// One contribution of every worker that is here, by their mean: synchronous training. Workers
    /// wait for the model.
    Round {
        /// A round ends so long after its first contribution, without those that are missing.
        deadline: Duration,
    },
}

impl Aggregate {
    /// How long a collection may stay open.
    const fn patience(self) -> Duration {
        match self {
            Self::Each => Duration::ZERO,
            Self::Periodic { after, .. } => after,
            Self::Round { deadline } => deadline,
        }
    }
}

/// What was delivered and is not in the model yet, segment by segment.
#[derive(Default)]
pub(super) struct Collection {
    segments: Vec<Collected>,
    since: Option<Instant>,
    /// Whom to send the model, and the answer to their newest delivery.
    answers: BTreeMap<(PeerId, ClusterId), Answer>,
    pub(super) waiting: u64,
    pub(super) closed: u64,
    /// Rounds that ended without somebody who was here.
    pub(super) short: u64,
}

/// Of one segment.
#[derive(Default)]
struct Collected {
    sum: Vec<f32>,
    weight: f64,
    /// Rewards times weights.
    reward: f64,
    /// Versions behind, times contributors.
    behind: u64,
    alone: u64,
    merged: u64,
    clusters: BTreeMap<ClusterId, u32>,
    /// Whose contributions are certainly here: of a merge only the first contributor is known.
    workers: BTreeSet<WorkerId>,
}

impl Collection {
    /// When it is applied at the latest.
    pub(super) fn ends(&self, aggregate: Aggregate) -> Option<Instant> {
        self.since.map(|since| since + aggregate.patience())
    }

    /// Notes whom to send the model.
    pub(super) fn owes(&mut self, peer: PeerId, answer: Answer) {
        self.answers.insert((peer, answer.address.cluster), answer);
    }

    pub(super) fn debts(&mut self) -> BTreeMap<(PeerId, ClusterId), Answer> {
        core::mem::take(&mut self.answers)
    }

    /// Whether every segment has all that it waits for.
    pub(super) fn is_full(
        &self,
        aggregate: Aggregate,
        members: &BTreeMap<WorkerId, Member>,
    ) -> bool {
        let full = |segment: &Collected| match aggregate {
            Aggregate::Each => true,
            Aggregate::Periodic { contributions, .. } => contributions
                .is_some_and(|wanted| segment.alone + segment.merged >= u64::from(wanted)),
            Aggregate::Round { .. } => here(members).all(|(cluster, count)| {
                segment.clusters.get(&cluster).is_some_and(|have| *have >= count)
            }),
        };
        self.since.is_some() && self.segments.iter().all(full)
    }

    /// Workers that are here and of which something is missing, as far as merges let us tell.
    pub(super) fn missing(&self, members: &BTreeMap<WorkerId, Member>) -> Vec<(WorkerId, Member)> {
        let mut missing = BTreeMap::new();
        for segment in &self.segments {
            for (cluster, count) in here(members) {
                if segment.clusters.get(&cluster).is_some_and(|have| *have >= count) {
                    continue;
                }
                let unheard = members.iter().filter(|(worker, member)| {
                    member.cluster == cluster && !member.silent && !segment.workers.contains(worker)
                });
                missing.extend(unheard.map(|(worker, member)| (*worker, member.clone())));
            }
        }
        missing.into_iter().collect()
    }
}

/// Clusters, and how many of their workers are here: joined and not silent.
fn here(members: &BTreeMap<WorkerId, Member>) -> impl Iterator<Item = (ClusterId, u32)> {
    let mut clusters: BTreeMap<ClusterId, u32> = BTreeMap::new();
    for member in members.values().filter(|member| !member.silent) {
        *clusters.entry(member.cluster).or_default() += 1;
    }
    clusters.into_iter()
}

impl Job {
    /// Takes one segment of an update into the collection.
    pub(super) fn collect(
        &mut self,
        now: Instant,
        update: &Update,
        lanes: &[u8],
    ) -> Result<Delivery, Refused> {
        if let Err(refused) = self.add(now, update, lanes) {
            self.fates.reject(refused, update.contributors);
            return Err(refused);
        }
        Ok(self.note_delivery(now, update))
    }

    fn add(&mut self, now: Instant, update: &Update, lanes: &[u8]) -> Result<(), Refused> {
        self.fits(update, lanes)?;
        // One of them would spoil all that it is summed with.
        if !olaf_engine::lanes::all_finite(lanes) {
            return Err(Refused::NonFinite);
        }
        let behind = u64::from(self.behind(update)) * u64::from(update.contributors);
        let collection = &mut self.collection;
        collection.segments.resize_with(update.segments as usize, Collected::default);
        let segment = &mut collection.segments[update.segment as usize];
        segment.sum.resize(lanes.len() / LANE, 0.0);
        for (sum, lane) in segment.sum.iter_mut().zip(lanes.chunks_exact(LANE)) {
            *sum += f32::from_le_bytes([lane[0], lane[1], lane[2], lane[3]]);
        }
        segment.weight += update.weight;
        segment.reward += update.reward * update.weight;
        segment.behind += behind;
        let contributors = u64::from(update.contributors);
        if update.contributors == 1 {
            segment.alone += 1;
        } else {
            segment.merged += contributors;
        }
        let cluster = segment.clusters.entry(update.address.cluster).or_default();
        *cluster = cluster.saturating_add(update.contributors);
        segment.workers.insert(update.address.worker);
        collection.waiting += contributors;
        collection.since.get_or_insert(now);
        Ok(())
    }

    /// Applies what was collected, once, by its mean, and publishes the version that results. A
    /// round makes a version in any case: its workers wait for one.
    pub(super) fn apply_collected(
        &mut self,
        aggregate: Aggregate,
        config: RuleConfig,
        keep: usize,
    ) -> Snapshot {
        let segments = core::mem::take(&mut self.collection.segments);
        let count = segments.len() as u32;
        self.collection.waiting = 0;
        self.collection.since = None;
        self.collection.closed += 1;
        for (at, segment) in segments.into_iter().enumerate() {
            let contributors = segment.alone + segment.merged;
            if contributors == 0 {
                continue;
            }
            let sum: Vec<u8> = segment.sum.iter().flat_map(|lane| lane.to_le_bytes()).collect();
            let delivered = Delivered {
                sum: &sum,
                weight: segment.weight,
                reward: segment.reward / segment.weight,
                versions_behind: u32::try_from(segment.behind / contributors).unwrap_or(u32::MAX),
            };
            match self.apply_segment(at, count, &delivered, config) {
                Some(Applied::Yes) => {
                    self.fates.delivered_alone += segment.alone;
                    self.fates.delivered_merged += segment.merged;
                }
                Some(Applied::Gated) => self.fates.gated += contributors,
                Some(Applied::NonFinite) => {
                    self.fates.reject_received(Refused::NonFinite, contributors)
                }
                None => self.fates.reject_received(Refused::NotReady, contributors),
            }
        }
        if matches!(aggregate, Aggregate::Round { .. }) {
            self.must_publish();
        }
        self.publish(keep)
    }
}

impl Server {
    /// Takes an update into its job's collection, and applies that if it is full now.
    pub(super) fn collect_update(
        &mut self,
        now: Instant,
        from: PeerId,
        update: &Update,
        lanes: &[u8],
    ) -> Result<(), Refused> {
        let id = update.address.job;
        let job = self.jobs.get_mut(&id).ok_or(Refused::UnknownJob)?;
        let delivery = job.collect(now, update, lanes)?;
        let answer = Answer {
            delivered_version: delivery.newest_version,
            delivered_newest_ns: delivery.newest_generation_ns,
            ..self.answer_to(now, update)
        };
        self.answers.acknowledge(from, answer);
        let job = self.jobs.get_mut(&id).expect("it was there a few lines above");
        job.collection.owes(from, answer);
        self.close_if_full(now, id);
        Ok(())
    }

    pub(super) fn close_if_full(&mut self, now: Instant, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.collection.is_full(self.config.aggregate, &job.members) {
            self.close(now, id);
        }
    }

    /// Applies a job's collection and sends the model to all that shared in it; in a round also to
    /// those it had to do without, so that they do not wait for ever.
    fn close(&mut self, now: Instant, id: JobId) {
        let config = &self.config;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let missing = match config.aggregate {
            Aggregate::Round { .. } => job.collection.missing(&job.members),
            _ => Vec::new(),
        };
        let debts = job.collection.debts();
        let snapshot = job.apply_collected(config.aggregate, config.rule, config.keep_versions);
        job.collection.short += u64::from(!missing.is_empty());
        let (shape, version) = (job.shape, job.version);
        for ((peer, _), answer) in debts {
            let answer = Answer { model_version: version, server_time_ns: now.0, ..answer };
            self.answers.model(peer, answer, shape, snapshot.clone());
        }
        for (worker, member) in missing {
            let (cluster, peer, session) = (member.cluster, member.peer, member.session);
            let answer = self.model_for(now, id, Address { job: id, cluster, worker, session });
            self.answers.model(peer, answer, shape, snapshot.clone());
            self.event(HostEvent::RoundWithout(WorkerSeen { job: id, cluster, worker, peer }));
        }
    }

    /// Applies collections whose time is over, and rounds that wait for nobody who is still here.
    pub(super) fn end_collections(&mut self, now: Instant) {
        let aggregate = self.config.aggregate;
        if aggregate == Aggregate::Each {
            return;
        }
        let over = |job: &Job| job.collection.ends(aggregate).is_some_and(|at| at <= now);
        let ids = self.jobs.iter().filter(|(_, job)| over(job)).map(|(id, _)| *id);
        for id in ids.collect::<Vec<_>>() {
            self.close(now, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_collection_is_never_full_and_never_ends() {
        let collection = Collection::default();
        let members = BTreeMap::new();
        let after = Duration::from_millis(5);
        for aggregate in [
            Aggregate::Periodic { contributions: None, after },
            Aggregate::Periodic { contributions: Some(1), after },
            Aggregate::Round { deadline: after },
        ] {
            assert!(!collection.is_full(aggregate, &members));
            assert_eq!(collection.ends(aggregate), None);
        }
    }
}
