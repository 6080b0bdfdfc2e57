//! When what was delivered changes the model: at once, now and then, or round by round (OLAF §2.1).
//!
//! OLAF applies each update when it comes and answers with the model. The two ways it is compared
//! with collect: every delivery is acknowledged at once, so that no sender waits for the
//! server, and the model goes out when the collection is applied. A collection that is not full
//! when its time is over is applied as it is: a worker that died does not hold up the others for
//! longer.

use super::Server;
use super::answers::Snapshot;
use super::applying::Delivery;
use super::job::{Job, Member};
use super::rule::{Applied, Delivered, RuleConfig};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::contribution::{Contribution, datagram_bytes};
use olaf_engine::event::WorkerSeen;
use olaf_engine::table::Table;
use olaf_engine::{Event, Refused};
use olaf_engine::{Instant, Lanes, PeerId};
use olaf_wire::{Address, AggregateKind, Answer, ClusterId, JobId, Update, WorkerId};

/// A worker that this number of rounds in a row went without is waited for no more, until it sends something:
/// one that only joins must not slow all others.
const MISSED: u32 = 3;

/// When what was delivered changes the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// At once: asynchronous training as OLAF has it.
    Each,
    /// The server merges the contributions of a period and applies them as one. Workers do not
    /// wait.
    Periodic {
        /// Contributions that end a period; `None` leaves the end to `after`.
        contributions: Option<u32>,
        /// The period ends at the latest this long after its first contribution.
        after: Duration,
    },
    /// One contribution of every worker that is here, as one merge: synchronous training. Workers
    /// wait for the model, and what none of them computed on the newest one is refused.
    Round {
        /// A round ends this time after its first contribution, even if contributions are missing.
        deadline: Duration,
    },
}

impl Aggregate {
    /// Which of them, without its numbers.
    #[must_use]
    pub const fn kind(self) -> AggregateKind {
        match self {
            Self::Each => AggregateKind::Each,
            Self::Periodic { .. } => AggregateKind::Periodic,
            Self::Round { .. } => AggregateKind::Round,
        }
    }

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
    /// Rounds that ended without a contribution of some worker that was here.
    pub(super) short: u64,
}

/// Of one segment.
#[derive(Default)]
struct Collected {
    /// Nothing before the first contribution.
    sum: Option<Contribution>,
    lanes: Lanes,
    /// Where the next sum's lanes are written: a refused contribution leaves no trace.
    spare: Lanes,
    /// Versions behind, times contributors.
    behind: u64,
    /// Contributions that changed the model meanwhile, times contributors.
    overlapped: f64,
    /// Contributions as far as they count as steps: of one update, no more than there are workers.
    steps: u32,
    alone: u64,
    merged: u64,
    reward_is_clipped: bool,
    /// Whose contributions are certainly here: of a merge only the first contributor is known.
    workers: BTreeSet<WorkerId>,
    /// Number of further contributors of each cluster behind each switch. Their workers are not known,
    /// but they are there.
    nameless: BTreeMap<(ClusterId, PeerId), u32>,
}

impl Collected {
    /// Adds a contribution or a merge of several; all of it, or nothing when a sum is not finite.
    fn take_in(&mut self, update: &Update, lanes: &[u8]) -> Result<(), Refused> {
        let new = Contribution::of_update(update, datagram_bytes(lanes));
        let (sum, finite) = match &self.sum {
            Some(sum) => {
                let sum = sum.with(&new).map_err(|_| Refused::NonFinite)?;
                (sum, olaf_engine::lanes::add(&mut self.spare, &self.lanes, lanes))
            }
            None if !new.reward.is_finite() => return Err(Refused::NonFinite),
            None => (new, olaf_engine::lanes::copy(&mut self.spare, lanes)),
        };
        if !finite {
            return Err(Refused::NonFinite);
        }
        self.sum = Some(sum);
        core::mem::swap(&mut self.lanes, &mut self.spare);
        if update.contributors == 1 {
            self.alone += 1;
        } else {
            self.merged += u64::from(update.contributors);
        }
        Ok(())
    }

    /// Notes the workers that an update stands for in a round on version `newest`. A merge that
    /// holds an older contribution stands for one worker with an unknown name: only one of its
    /// contributions certainly belongs to this round. An update that no switch has touched is of the
    /// worker that it names.
    fn note_who(&mut self, from: PeerId, update: &Update, newest: u32) {
        if update.hops == 0 {
            self.workers.insert(update.address.worker);
            return;
        }
        let nameless = if update.version_oldest < newest {
            1
        } else {
            self.workers.insert(update.address.worker);
            update.contributors - 1
        };
        let others = self.nameless.entry((update.address.cluster, from)).or_default();
        *others = others.saturating_add(nameless);
    }

    /// The workers without a contribution here. Of a cluster behind a switch it returns all such workers,
    /// or none if merges may hold their contributions: it is not known whose contributions those are.
    fn missing<'a>(
        &self,
        members: &'a Table<WorkerId, Member>,
    ) -> impl Iterator<Item = (WorkerId, &'a Member)> {
        let mut unheard: BTreeMap<(ClusterId, PeerId), Vec<(WorkerId, &Member)>> = BTreeMap::new();
        let waited_for = |member: &Member| !member.liveness.is_silent() && member.missed < MISSED;
        let here = members.iter().filter(|(_, member)| waited_for(member));
        for (worker, member) in here.filter(|(worker, _)| !self.workers.contains(worker)) {
            let at = (member.cluster, member.peer);
            unheard.entry(at).or_default().push((*worker, member));
        }
        unheard.retain(|at, workers| {
            workers.len() > self.nameless.get(at).map_or(0, |count| *count as usize)
        });
        unheard.into_values().flatten()
    }
}

impl Collection {
    /// When it is applied at the latest.
    pub(super) fn ends(&self, aggregate: Aggregate) -> Option<Instant> {
        self.since.map(|since| since + aggregate.patience())
    }

    /// Notes a receiver of the model.
    pub(super) fn owes(&mut self, peer: PeerId, answer: Answer) {
        self.answers.insert((peer, answer.address.cluster), answer);
    }

    pub(super) fn debts(&mut self) -> BTreeMap<(PeerId, ClusterId), Answer> {
        core::mem::take(&mut self.answers)
    }

    /// Returns true if every segment has all that it waits for.
    pub(super) fn is_full(&self, aggregate: Aggregate, members: &Table<WorkerId, Member>) -> bool {
        let full = |segment: &Collected| match aggregate {
            Aggregate::Each => true,
            Aggregate::Periodic { contributions, .. } => contributions
                .is_some_and(|wanted| segment.alone + segment.merged >= u64::from(wanted)),
            Aggregate::Round { .. } => segment.missing(members).next().is_none(),
        };
        self.since.is_some() && self.segments.iter().all(full)
    }

    /// Workers that are here without all of their contributions, as far as merges let us tell.
    pub(super) fn missing(&self, members: &Table<WorkerId, Member>) -> Vec<(WorkerId, Member)> {
        let missing = self.segments.iter().flat_map(|segment| segment.missing(members));
        let by_id: BTreeMap<WorkerId, &Member> = missing.collect();
        by_id.into_iter().map(|(worker, member)| (worker, member.clone())).collect()
    }
}

impl Job {
    /// When its collection ends, or its wait for a newer model.
    pub(super) fn deadline(&self, aggregate: Aggregate) -> Option<Instant> {
        let both = [self.collection.ends(aggregate), self.resumes_at()];
        both.into_iter().flatten().min()
    }

    /// Takes one segment of an update into the collection.
    pub(super) fn collect(
        &mut self,
        now: Instant,
        aggregate: Aggregate,
        from: PeerId,
        update: &Update,
        lanes: &[u8],
    ) -> Result<Delivery, Refused> {
        if let Err(refused) = self.add(now, aggregate, from, update, lanes) {
            self.fates.reject(refused, update.contributors);
            return Err(refused);
        }
        Ok(self.note_delivery(now, update))
    }

    fn add(
        &mut self,
        now: Instant,
        aggregate: Aggregate,
        from: PeerId,
        update: &Update,
        lanes: &[u8],
    ) -> Result<(), Refused> {
        self.fits(update, lanes)?;
        // A straggler's contribution to a round that is over is none to the next one.
        if matches!(aggregate, Aggregate::Round { .. }) && update.version_newest < self.version {
            return Err(Refused::Stale);
        }
        let behind = u64::from(self.behind(update)) * u64::from(update.contributors);
        let overlapped = self.changed_since(update) * f64::from(update.contributors);
        let steps = update.contributors.min(self.counted().here);
        let collection = &mut self.collection;
        collection.segments.resize_with(update.segments as usize, Collected::default);
        let segment = &mut collection.segments[update.segment as usize];
        segment.take_in(update, lanes)?;
        segment.note_who(from, update, self.version);
        segment.behind += behind;
        segment.overlapped += overlapped;
        segment.steps = segment.steps.saturating_add(steps);
        segment.reward_is_clipped |= self.reward_is_clipped;
        collection.waiting += u64::from(update.contributors);
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
        let active = f64::from(self.counted().active);
        self.effect = 1.0;
        self.collection.waiting = 0;
        self.collection.since = None;
        self.collection.closed += 1;
        for (at, segment) in segments.into_iter().enumerate() {
            let Some(header) = segment.sum else { continue };
            let contributors = u64::from(header.contributors);
            let sum: Vec<u8> = segment.lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
            let delivered = Delivered {
                sum: &sum,
                weight: header.weight,
                reward: header.reward,
                reward_is_clipped: segment.reward_is_clipped,
                versions_behind: u32::try_from(segment.behind / contributors).unwrap_or(u32::MAX),
                contributors: segment.steps,
                // The collection's own contributors overlap each other, and count as such.
                overlapped: (active - contributors as f64)
                    .max(segment.overlapped / contributors as f64),
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
        if let Some(member) = job.members.get_mut(&update.address.worker)
            && member.peer == from
        {
            // Also where what it sends is too late: with the newest model it may be in time again.
            member.missed = 0;
        }
        let delivery = match job.collect(now, self.config.aggregate(), from, update, lanes) {
            Err(Refused::Stale) => {
                self.answer_stale(now, from, update);
                return Err(Refused::Stale);
            }
            collected => collected?,
        };
        if let Some(flow) = self.flow_ends(from, update) {
            flow.delivered(update.flow_sequence);
        }
        let answer = Answer {
            delivered_version: delivery.newest_version,
            delivered_newest_ns: delivery.newest_generation_ns,
            ages: self.ages(now, id, update.address.cluster),
            ..self.answer_to(now, from, update)
        };
        self.answers.acknowledge(from, answer);
        let job = self.jobs.get_mut(&id).expect("it was there a few lines above");
        job.collection.owes(from, answer);
        self.close_if_full(now, id);
        Ok(())
    }

    /// Sends whoever is behind the newest model, without which they could share in no round: the
    /// one they were sent was lost, or is on its way. Of several segments the last asks for it.
    fn answer_stale(&mut self, now: Instant, from: PeerId, update: &Update) {
        let Some(job) = self.jobs.get(&update.address.job) else { return };
        if update.segment + 1 < update.segments {
            return;
        }
        if let Some((_, snapshot, _)) = job.snapshot(job.version) {
            let (shape, answer) = (job.shape, self.answer_to(now, from, update));
            self.answers.model(from, answer, shape, snapshot);
        }
    }

    pub(super) fn close_if_full(&mut self, now: Instant, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.collection.is_full(self.config.aggregate(), &job.members) {
            self.close(now, id);
        }
    }

    /// Applies a job's collection and sends the model to all that shared in it; in a round also to
    /// those it had to do without, so that they do not wait for ever.
    fn close(&mut self, now: Instant, id: JobId) {
        let config = &self.config;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let missing = match config.aggregate() {
            Aggregate::Round { .. } => job.collection.missing(&job.members),
            _ => Vec::new(),
        };
        let debts = job.collection.debts();
        let snapshot = job.apply_collected(config.aggregate(), config.rule, config.keep_versions);
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
            let member = self.jobs.get_mut(&id).and_then(|job| job.members.get_mut(&worker));
            if let Some(member) = member {
                member.missed += 1;
            }
            self.event(Event::RoundWithout(WorkerSeen { job: id, cluster, worker, peer }));
        }
        self.plan(id);
    }

    /// Applies collections whose time is over, and starts restored jobs for which no worker has a newer model.
    pub(super) fn meet_deadlines(&mut self, now: Instant) {
        let aggregate = self.config.aggregate();
        while let Some(id) = self.deadlines.pop(now) {
            let is_over = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            let Some(job) = self.jobs.get(&id) else { continue };
            let (ends, resumes) = (job.collection.ends(aggregate), job.resumes_at());
            if is_over(ends) {
                self.close(now, id);
            }
            if is_over(resumes) {
                self.resume(now, id);
            }
            self.plan(id);
        }
    }

    /// Notes when there is something to do for a job.
    pub(super) fn plan(&mut self, id: JobId) {
        let aggregate = self.config.aggregate();
        self.deadlines.set(id, self.jobs.get(&id).and_then(|job| job.deadline(aggregate)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_collection_is_never_full_and_never_ends() {
        let collection = Collection::default();
        let members = Table::new();
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
