//! Whether a cluster that is new here may join: somebody else says, and joins wait for the word.
//!
//! A proof that clusters fit the uplink together holds for those that it was made for, so one
//! question is put at a time: whoever answers it knows who is here, and the next is put when that
//! is settled.

use super::Switch;
use super::config::Admission;
use super::updates::seen;
use crate::drop::DropReason;
use crate::engine::{Source, Verdict};
use crate::event::{Event, WorkerSeen};
use crate::ids::{ClusterId, JobId, PeerId, WorkerId};
use crate::party::Ruling;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::time::Duration;
use olaf_wire::{Address, Join, WelcomeCode};
use serde::Serialize;

/// Joins held for one question; of further workers only the question is known, and they repeat
/// themselves.
const HELD_LIMIT: usize = 256;
/// One address may have this part of the questions, and two in any case: a stranger needs no worker to bring up
/// a question.
const SHARES: usize = 4;
/// Refusals remembered; the one that would pass first gives way.
const REFUSALS_LIMIT: usize = 1024;
/// Questions that were not asked are told of at most so often.
const TELL_NOT_ASKED_EVERY: Duration = Duration::from_secs(1);

/// Questions, and the answers that are remembered.
#[derive(Default)]
pub(super) struct Questions {
    /// In the order in which they came; the first is put, the others wait for their turn.
    open: VecDeque<Question>,
    /// Refused clusters, and until when.
    refused: BTreeMap<(JobId, ClusterId), Instant>,
    told_not_asked: Option<Instant>,
    pub(super) counts: Counts,
}

/// May that cluster join?
struct Question {
    name: (JobId, ClusterId),
    /// Whose join brought it up.
    asker: WorkerSeen,
    /// Since it was put.
    deadline: Option<Instant>,
    /// The newest join of each worker that waits.
    held: BTreeMap<WorkerId, Held>,
}

/// A join that waits.
struct Held {
    from: Source,
    join: Join,
    came: Instant,
}

/// `asked = admitted + refused + unanswered`, and one more while a question is put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Questions that were put.
    pub asked: u64,
    /// Of them, answered with yes,
    pub admitted: u64,
    /// with no,
    pub refused: u64,
    /// or by nobody who knew in time.
    pub unanswered: u64,
    /// Questions whose workers went before their turn came, or that gave way to another address's.
    pub withdrawn: u64,
    /// Joins that got the stated answer because too many questions were open.
    pub not_asked: u64,
    /// Joins that came while the question of their cluster was open.
    pub joins_held: u64,
}

impl Questions {
    /// When the question that is put goes unanswered.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.front().and_then(|question| question.deadline)
    }

    /// Questions, the one that is put included.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Questions that joins of that peer brought up.
    fn of(&self, peer: PeerId) -> usize {
        self.open.iter().filter(|question| question.asker.peer == peer).count()
    }

    /// Makes room for a question of a peer that has none: the newest of a peer that has several goes.
    /// Its workers repeat their joins. Says whether there is room.
    fn make_room(&mut self, for_peer: PeerId) -> bool {
        if self.of(for_peer) > 0 {
            return false;
        }
        let waits = |question: &Question| question.deadline.is_none();
        let several = |question: &Question| self.of(question.asker.peer) > 1;
        let newest = self.open.iter().rposition(|one| waits(one) && several(one));
        self.counts.withdrawn += u64::from(newest.is_some());
        newest.is_some_and(|at| self.open.remove(at).is_some())
    }

    /// Where those are whose joins wait.
    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.open.iter().flat_map(|question| question.held.values().map(|held| held.from.peer))
    }

    /// A worker that waits goes; whether it had waited.
    pub(super) fn forget(&mut self, peer: PeerId, address: &Address) -> bool {
        let mut waited = false;
        for question in &mut self.open {
            let held = question.held.get(&address.worker);
            let is_its = |held: &Held| held.from.peer == peer && held.join.address == *address;
            if held.is_some_and(is_its) {
                question.held.remove(&address.worker);
                waited = true;
            }
        }
        waited
    }

    /// Keeps a worker's join with the question of that number. Of each worker the newest counts,
    /// whichever cluster it names.
    fn hold(&mut self, now: Instant, from: Source, join: &Join, at: usize) {
        let Address { job, worker, .. } = join.address;
        for question in self.open.iter_mut().filter(|question| question.name.0 == job) {
            question.held.remove(&worker);
        }
        let held = &mut self.open[at].held;
        if held.len() < HELD_LIMIT {
            held.insert(worker, Held { from, join: join.without_padding(), came: now });
        }
    }

    /// The question that is put, if it is the one.
    fn take_put(&mut self, is_it: impl Fn(&Question) -> bool) -> Option<Question> {
        let put = self.open.front().filter(|question| question.deadline.is_some());
        if put.is_some_and(is_it) { self.open.pop_front() } else { None }
    }

    fn is_refused(&mut self, now: Instant, name: (JobId, ClusterId)) -> bool {
        let passed = self.refused.get(&name).is_some_and(|until| *until <= now);
        if passed {
            self.refused.remove(&name);
        }
        self.refused.contains_key(&name)
    }

    fn remember_refusal(&mut self, now: Instant, name: (JobId, ClusterId), until: Instant) {
        self.refused.retain(|_, until| *until > now);
        if self.refused.len() >= REFUSALS_LIMIT
            && let Some((first, _)) = self.refused.iter().min_by_key(|(_, until)| **until)
        {
            let first = *first;
            self.refused.remove(&first);
        }
        self.refused.insert(name, until);
    }
}

impl Question {
    /// Drops the joins of those that have not repeated them: they have gone, or died.
    fn drop_stale(&mut self, now: Instant, silent_after: Duration) {
        self.held.retain(|_, held| now.since(held.came) < silent_after);
    }
}

impl Switch {
    /// The clusters that are here: some worker of theirs was passed on to its server and has
    /// neither left nor been forgotten.
    #[must_use]
    pub fn running(&self) -> BTreeSet<(JobId, ClusterId)> {
        let jobs = self.jobs.iter();
        jobs.flat_map(|(id, job)| job.members.values().map(|member| (*id, member.cluster)))
            .collect()
    }

    /// The answer to the question that is put; none where whoever was asked does not know, which
    /// calls for the stated answer. Says whether the question was still open; what waited on it goes
    /// on, or is turned away.
    pub fn decide(
        &mut self,
        now: Instant,
        job: JobId,
        cluster: ClusterId,
        ruling: Option<Ruling>,
    ) -> bool {
        let is_it = |question: &Question| question.name == (job, cluster);
        let Some(question) = self.asking.take_put(is_it) else { return false };
        let Some(ruling) = ruling else {
            self.leave_unanswered(now, question);
            return true;
        };
        match ruling {
            Ruling::Admit => self.asking.counts.admitted += 1,
            Ruling::Refuse => self.asking.counts.refused += 1,
        }
        self.conclude(now, question, ruling);
        true
    }

    /// The stated answer, where nobody gave one in time.
    pub(super) fn check_deadline(&mut self, now: Instant) {
        let is_late = |question: &Question| question.deadline.is_some_and(|at| at <= now);
        if let Some(question) = self.asking.take_put(is_late) {
            self.leave_unanswered(now, question);
        }
    }

    fn leave_unanswered(&mut self, now: Instant, question: Question) {
        let Some(policy) = self.config.admission() else { return };
        self.asking.counts.unanswered += 1;
        self.event(Event::AdmissionUnanswered(question.asker, policy.unanswered));
        self.conclude(now, question, policy.unanswered);
    }

    /// Holds a join back whose cluster is new here, or answers it as its cluster was answered;
    /// nothing where it may go on.
    pub(super) fn hold_back(&mut self, now: Instant, from: Source, join: &Join) -> Option<Verdict> {
        let policy = self.config.admission()?;
        if self.is_settled(now, join) {
            return None;
        }
        let name = (join.address.job, join.address.cluster);
        if self.asking.is_refused(now, name) {
            return Some(self.turn_away(now, from, join, WelcomeCode::NotAdmitted));
        }
        let known = self.asking.open.iter().position(|question| question.name == name);
        if known.is_none() && self.is_cluster_here(name) {
            return None;
        }
        if known.is_none() && self.asking.of(from.peer) >= (policy.max_questions / SHARES).max(2) {
            // Its other questions come first. It repeats its join.
            let code = WelcomeCode::AdmissionPending;
            let welcome = self.welcome(now, join.address, join.sent_at_ns, code);
            self.reply(now, from, welcome);
            return Some(Verdict::Drop(DropReason::TooOften));
        }
        if known.is_none()
            && self.asking.open.len() >= policy.max_questions
            && !self.asking.make_room(from.peer)
        {
            return self.not_asked(now, from, join, policy);
        }
        let at = known.unwrap_or_else(|| {
            let asker = seen(&join.address, from.peer);
            let held = BTreeMap::new();
            self.asking.open.push_back(Question { name, asker, deadline: None, held });
            self.asking.open.len() - 1
        });
        self.asking.hold(now, from, join, at);
        self.asking.counts.joins_held += 1;
        // One that goes over to a new cluster stays in its old one until it is settled.
        let job = self.jobs.get_mut(&join.address.job);
        if let Some(member) = job.and_then(|job| job.members.get_mut(&join.address.worker))
            && member.session == join.address.session
        {
            member.liveness.note(now);
        }
        // The worker hears that somebody is here: its question may take longer than its patience.
        let code = WelcomeCode::AdmissionPending;
        let welcome = self.welcome(now, join.address, join.sent_at_ns, code);
        self.reply(now, from, welcome);
        self.put_next(now);
        Some(Verdict::Absorb)
    }

    /// Returns true if it needs no looking for the worker's cluster: the worker is in it, or what
    /// becomes of the join does not depend on it.
    fn is_settled(&self, now: Instant, join: &Join) -> bool {
        let Some(job) = self.jobs.get(&join.address.job) else {
            return self.jobs.len() >= self.config.max_jobs || self.is_full();
        };
        match job.members.get(&join.address.worker) {
            Some(member) if member.session == join.address.session => {
                member.cluster == join.address.cluster
            }
            // A living worker's id, or no room: turned away as ever.
            Some(member) => !member.liveness.is_overdue(now, self.config.silent_after),
            None => self.is_full(),
        }
    }

    fn is_cluster_here(&self, (job, cluster): (JobId, ClusterId)) -> bool {
        let job = self.jobs.get(&job);
        job.is_some_and(|job| job.members.values().any(|member| member.cluster == cluster))
    }

    /// The stated answer to a join for which there is no room to ask; told once a second, for it
    /// takes a flood to come to this.
    fn not_asked(
        &mut self,
        now: Instant,
        from: Source,
        join: &Join,
        policy: Admission,
    ) -> Option<Verdict> {
        self.asking.counts.not_asked += 1;
        let told = self.asking.told_not_asked;
        if told.is_none_or(|told| now.since(told) >= TELL_NOT_ASKED_EVERY) {
            self.asking.told_not_asked = Some(now);
            let asker = seen(&join.address, from.peer);
            self.event(Event::AdmissionNotAsked(asker, policy.unanswered));
        }
        match policy.unanswered {
            Ruling::Admit => None,
            Ruling::Refuse => {
                let code = WelcomeCode::NotAdmitted;
                let welcome = self.welcome(now, join.address, join.sent_at_ns, code);
                self.reply(now, from, welcome);
                Some(Verdict::Drop(DropReason::JoinRefused(code)))
            }
        }
    }

    /// Lets everyone who waited on a question know, or go on; then the next is put.
    fn conclude(&mut self, now: Instant, mut question: Question, ruling: Ruling) {
        question.drop_stale(now, self.config.silent_after);
        if let (Ruling::Refuse, Some(policy)) = (ruling, self.config.admission()) {
            self.asking.remember_refusal(now, question.name, now + policy.refused_for);
        }
        for held in question.held.into_values() {
            let verdict = match ruling {
                Ruling::Admit => self.take_join(now, held.from, &held.join),
                Ruling::Refuse => {
                    self.turn_away(now, held.from, &held.join, WelcomeCode::NotAdmitted)
                }
            };
            if let Verdict::Drop(reason) = verdict {
                self.counters.refuse(reason);
            }
        }
        self.put_next(now);
    }

    /// Puts the question whose turn it is, unless it is put already.
    fn put_next(&mut self, now: Instant) {
        let Some(policy) = self.config.admission() else { return };
        let silent_after = self.config.silent_after;
        while let Some(question) = self.asking.open.front_mut().filter(|q| q.deadline.is_none()) {
            question.drop_stale(now, silent_after);
            let Some(held) = question.held.values().next() else {
                self.asking.open.pop_front();
                self.asking.counts.withdrawn += 1;
                continue;
            };
            question.asker = seen(&held.join.address, held.from.peer);
            question.deadline = Some(now + policy.timeout);
            let asker = question.asker;
            self.asking.counts.asked += 1;
            let running = self.running().into_iter().collect();
            self.event(Event::AdmissionWanted(asker, running));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_refusals_are_remembered_and_the_first_to_pass_gives_way() {
        let mut asking = Questions::default();
        let (now, name) = (Instant(1), |cluster| (JobId(1), ClusterId(cluster)));
        for cluster in 0..2_000 {
            // Those of later clusters pass earlier.
            asking.remember_refusal(now, name(cluster), Instant(10_000 - u64::from(cluster)));
            assert!(asking.refused.len() <= REFUSALS_LIMIT);
        }
        assert_eq!(asking.refused.len(), REFUSALS_LIMIT);
        assert!(asking.is_refused(now, name(0)) && asking.is_refused(now, name(1_999)));
        assert!(!asking.is_refused(now, name(1_998)), "it gave way to the last one");
        assert!(!asking.is_refused(Instant(10_000), name(0)), "its time is over");
    }
}
