//! The sharing controller: gives grants, job by job, and takes them back (MINA §IV-B, Figure 9).

use super::job::{Job, Phase};
use super::timing::{Bug, Timing, has};
use super::{Ballot, Body, Grant, Packet, Party, Policy};
use crate::JobId;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// What a job needs, as the controller must know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Needs {
    /// Number of its hosts; their ranks are 0, 1 and so on.
    pub hosts: u16,
    /// Resources that its tree uses: [`Tree::resources`](crate::Tree::resources), ascending.
    pub resources: Vec<u32>,
    /// Units that it needs of each of these resources.
    pub units: u32,
}

/// Why a job's tree is torn down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// This host did not answer.
    Silent(u16),
    /// Its hosts answer, but do not let go of the switches.
    Stuck,
    /// The caller said so.
    Told,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(host) => write!(f, "host {host} does not answer"),
            Self::Stuck => f.write_str("its hosts did not release the switches"),
            Self::Told => f.write_str("a caller reported that it had ended"),
        }
    }
}

/// What happened, and what the driver must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The hosts are told of the job's new grant.
    Granted(JobId, Grant),
    /// A round for a grant ended without one: a host was not ready in time, or one in doubt had the
    /// others refuse it.
    Aborted(JobId),
    /// The job holds nothing any more.
    Free(JobId),
    /// The job has failed. To do: tear its tree down at the switches, until that is done; then
    /// call [`fenced`](Controller::fenced). Until then what it held stays held.
    Fence(JobId, Failure),
    /// All hosts of the job have left: it is forgotten.
    Left(JobId),
    /// A controller of a later epoch is at work: this one says nothing more. To do: end.
    Superseded(u64),
}

/// Why a job is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadJob {
    /// There is one of this name.
    Known,
    /// It has no hosts.
    Hosts,
    /// It needs more units of this resource than there are.
    Units(u32),
}

impl fmt::Display for BadJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known => f.write_str("another job has this number: give another number"),
            Self::Hosts => f.write_str("hosts: a job needs at least one"),
            Self::Units(resource) => {
                write!(f, "it needs more units than resource {resource} has")
            }
        }
    }
}

impl std::error::Error for BadJob {}

/// See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller<P> {
    pub(super) epoch: u64,
    seed: u64,
    pub(super) timing: Timing,
    pub(super) bug: Bug,
    /// No ballot of this life for a job that is gone was larger.
    rounds: u64,
    pub(super) capacity: BTreeMap<u32, u32>,
    pub(super) jobs: BTreeMap<JobId, Job>,
    policy: P,
    pub(super) superseded: bool,
    out: VecDeque<Packet>,
    events: VecDeque<Event>,
}

impl<P: Policy> Controller<P> {
    /// A controller that knows no job yet. `epoch` is larger than that of every controller before
    /// it; `capacity` is units by resource; `seed` spreads the retries.
    #[must_use]
    pub fn new(
        epoch: u64,
        seed: u64,
        timing: Timing,
        capacity: BTreeMap<u32, u32>,
        policy: P,
    ) -> Self {
        Self {
            epoch,
            seed,
            timing,
            bug: Bug::None,
            rounds: 0,
            capacity,
            jobs: BTreeMap::new(),
            policy,
            superseded: false,
            out: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// A job, new or running. It may hold anything until its hosts have said otherwise: they are
    /// asked first, and what they hold of another life of the controller is taken back.
    ///
    /// # Errors
    /// Why it is not taken; nothing has changed then.
    pub fn submit(&mut self, now: u64, job: JobId, needs: Needs) -> Result<(), BadJob> {
        if self.jobs.contains_key(&job) {
            return Err(BadJob::Known);
        }
        if needs.hosts == 0 {
            return Err(BadJob::Hosts);
        }
        let there = |resource| self.capacity.get(resource).copied().unwrap_or(0);
        if let Some(lacking) = needs.resources.iter().find(|r| there(r) < needs.units) {
            return Err(BadJob::Units(*lacking));
        }
        let ballot = Ballot { epoch: self.epoch, round: self.rounds };
        self.jobs.insert(job, Job::new(needs, ballot));
        if !has!(self.bug, SkipAsking) {
            self.prepare(now, job, false);
        }
        self.turn(now);
        Ok(())
    }

    /// A job has ended or failed, its hosts may be gone: its tree is torn down. Nothing when the
    /// job is unknown.
    pub fn fail(&mut self, job: JobId) {
        self.end(job, Failure::Told);
    }

    /// The switches refuse the job from now on: what it held is free.
    pub fn fenced(&mut self, now: u64, job: JobId) {
        if self.jobs.get(&job).is_some_and(|known| matches!(known.phase, Phase::Fencing(_))) {
            self.forget(job);
            self.turn(now);
        }
    }

    /// Takes back what the job holds, before it is used up.
    pub fn take_back(&mut self, now: u64, job: JobId) {
        let known = self.jobs.get(&job);
        let settled = |known: &Job| {
            matches!(known.phase, Phase::Settling { grant: Some(_), .. }) && known.all_settled()
        };
        if known.is_some_and(settled) {
            self.prepare(now, job, false);
        }
    }

    /// Takes in a packet of a host; what is of another round changes nothing.
    pub fn handle_packet(&mut self, now: u64, packet: &Packet) {
        let (Party::Host(rank), Party::Controller) = (packet.from, packet.to) else { return };
        if let Body::Settled { epoch, .. } = packet.body
            && epoch > self.epoch
        {
            return self.supersede(epoch);
        }
        // Also of a job that is forgotten: the answer to the last host may be lost.
        if packet.body == Body::Bye && !self.superseded {
            let (from, to) = (packet.to, packet.from);
            self.out.push_back(Packet { from, to, ..*packet });
        }
        let Some(job) = self.jobs.get_mut(&packet.job) else { return };
        let Some(host) = job.hosts.get_mut(usize::from(rank)) else { return };
        if matches!(job.phase, Phase::Fencing(_)) {
            return;
        }
        if !host.heard {
            // What was sent before it began does not count as unanswered by it.
            (host.heard, host.unanswered) = (true, 0);
        }
        if let Body::Progress(progress) = packet.body {
            self.policy.progress(now, packet.job, progress);
            return self.turn(now);
        }
        let current = packet.ballot == job.ballot;
        if current {
            host.unanswered = 0;
        }
        match (packet.body, job.phase) {
            (Body::Ready { next, held }, Phase::Preparing { .. }) if current => {
                host.ready = Some((next, held));
                self.policy.observe(now, packet.job, next);
                self.conclude(now, packet.job);
            }
            // It will not take part: another host in doubt has asked it first.
            (Body::Settled { .. }, Phase::Preparing { .. }) if current => {
                self.settle(now, packet.job, None);
            }
            (Body::Settled { next, held, .. }, Phase::Settling { .. }) if current => {
                host.settled = true;
                host.free |= !held;
                self.policy.observe(now, packet.job, next);
                self.released(now, packet.job);
            }
            (Body::Bye, _) => self.leave(now, packet.job, rank),
            _ => {}
        }
        self.turn(now);
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.out.pop_front()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let of = |job: &Job| match job.phase {
            Phase::Idle(0) => None,
            Phase::Idle(not_before) => Some(not_before),
            _ => job.at,
        };
        self.jobs.values().filter_map(of).chain(self.policy.poll_timeout()).min()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: u64) {
        let due = |job: &Job| job.at.is_some_and(|at| at <= now);
        let jobs: Vec<JobId> =
            self.jobs.iter().filter(|(_, job)| due(job)).map(|(id, _)| *id).collect();
        for job in jobs {
            self.expire(now, job);
        }
        for job in self.jobs.values_mut() {
            if matches!(job.phase, Phase::Idle(not_before) if not_before <= now) {
                job.phase = Phase::Idle(0);
            }
        }
        self.turn(now);
    }

    /// The sharing policy, to tell it of jobs.
    pub const fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// What is due of one job.
    pub(super) fn expire(&mut self, now: u64, id: JobId) {
        let timing = self.timing;
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.at.is_some()) else { return };
        match job.phase {
            Phase::Preparing { until, .. } if until <= now => self.settle(now, id, None),
            Phase::Preparing { until, .. } => {
                job.at = Some(until.min(now + timing.resend_ns));
                self.resend(id);
            }
            Phase::Settling { until, .. } => {
                let limit = |heard| if heard { timing.sendings } else { timing.first_sendings };
                let silent = job.hosts.iter().position(|h| h.unanswered >= limit(h.heard));
                if let Some(silent) = silent {
                    let rank = u16::try_from(silent).expect("a job has at most 65,535 hosts");
                    return self.end(id, Failure::Silent(rank));
                }
                let settled = job.all_settled();
                if settled && until <= now {
                    if job.take_backs >= timing.take_backs {
                        return self.end(id, Failure::Stuck);
                    }
                    job.take_backs += 1;
                    return self.prepare(now, id, false);
                }
                job.at = Some(now + timing.resend_ns);
                self.resend(id);
            }
            Phase::Idle(_) | Phase::Fencing(_) => {}
        }
    }

    /// Step 1: locks the hosts of a job, to give it something (`give`) or to learn what it holds
    /// and take that back. A new round has a new ballot: answers to the round before are ignored.
    fn prepare(&mut self, now: u64, id: JobId, give: bool) {
        let timing = self.timing;
        let job = self.jobs.get_mut(&id).expect("its callers know the job");
        job.ballot.round += 1;
        job.phase = Phase::Preparing { give, until: now + timing.prepare_ns };
        job.at = Some(now + timing.resend_ns.min(timing.prepare_ns));
        job.nobody_answered();
        self.resend(id);
    }

    /// Step 4: decides the outcome once all hosts are ready. Ready hosts launch nothing, so the
    /// indices that they told stay true until they hear the outcome.
    fn conclude(&mut self, now: u64, id: JobId) {
        let job = &self.jobs[&id];
        let Phase::Preparing { give, .. } = job.phase else { return };
        let Some((least, most, held)) = job.all_ready() else { return };
        let grant = if give {
            // differs: MINA aborts where the indices differ. Here nothing is held, so all hosts
            // have launched everything so far without the switches, and a host that lags behind
            // will do the same up to the largest index. The grant must therefore not begin before
            // that index, whatever the policy says. Example: the next operations are 4 and 5. A
            // grant from 4 would let one host run operation 4 in the switches that the other has
            // already run without them. A grant from 5 is the same for both.
            let chosen = self.policy.grant(now, id, most);
            chosen.map(|grant| Grant { from: grant.from.max(most), to: grant.to })
        } else if held && (least == most || has!(self.bug, SkipIndices)) {
            Some(Grant { from: most, to: most })
        } else {
            // Something is held and the indices differ: one host may have launched an operation
            // with the switches that another host has still to launch. Example: the grant is 3 to
            // 6, the next operations are 4 and 5. Taken back now, the first host would run
            // operation 4 without the switches, and the second has launched it with them. So
            // nothing changes, and the job is asked again later.
            None
        };
        self.settle(now, id, grant);
    }

    /// Step 5: tell the hosts.
    fn settle(&mut self, now: u64, id: JobId, grant: Option<Grant>) {
        let timing = self.timing;
        let retry_ns = self.retry_ns(id);
        let job = self.jobs.get_mut(&id).expect("its callers know the job");
        if let Phase::Preparing { give: true, .. } = job.phase {
            let event = match grant {
                Some(grant) => Event::Granted(id, grant),
                None => Event::Aborted(id),
            };
            self.events.push_back(event);
        }
        // A take-back that changed nothing is repeated as late as after a grant. Hosts that lag
        // behind catch up meanwhile, and a job must not be failed for a few slow launches.
        let giving = matches!(job.phase, Phase::Preparing { give: true, .. });
        let patience = if giving && grant.is_none() { retry_ns } else { timing.hold_ns };
        job.phase = Phase::Settling { grant, until: now + patience };
        job.at = Some(now + timing.resend_ns);
        job.nobody_answered();
        self.resend(id);
    }

    /// Step 7 and after: frees the job once all its hosts know the outcome and hold nothing. Only
    /// then may another job have its resources: a host that has not answered may still be using
    /// them. Hosts that know the outcome but still hold something are polled.
    fn released(&mut self, now: u64, id: JobId) {
        let retry_ns = self.retry_ns(id);
        let job = self.jobs.get_mut(&id).expect("its callers know the job");
        let Phase::Settling { grant, .. } = job.phase else { return };
        let free = job.all_free() || has!(self.bug, SkipRelease) && job.all_settled();
        if !free {
            if job.hosts.iter().all(|host| host.settled && host.unanswered == 0) {
                job.at = Some(now + self.timing.poll_ns);
            }
            return;
        }
        let not_before = if grant.is_some() { 0 } else { now + retry_ns };
        (job.phase, job.at, job.take_backs) = (Phase::Idle(not_before), None, 0);
        self.events.push_back(Event::Free(id));
        self.policy.free(now, id);
        self.forget_if_left(id);
    }

    /// A host left: nothing of it runs, and nothing will.
    fn leave(&mut self, now: u64, id: JobId, rank: u16) {
        let job = self.jobs.get_mut(&id).expect("its callers know the job");
        let host = &mut job.hosts[usize::from(rank)];
        (host.left, host.settled, host.free, host.unanswered) = (true, true, true, 0);
        self.released(now, id);
        self.forget_if_left(id);
    }

    fn forget_if_left(&mut self, id: JobId) {
        if self.jobs.get(&id).is_some_and(|job| job.hosts.iter().all(|host| host.left)) {
            self.forget(id);
            self.events.push_back(Event::Left(id));
        }
    }

    fn end(&mut self, id: JobId, why: Failure) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if matches!(job.phase, Phase::Fencing(_)) {
            return;
        }
        (job.phase, job.at) = (Phase::Fencing(why), None);
        self.events.push_back(Event::Fence(id, why));
        if has!(self.bug, SkipFence) {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: JobId) {
        if let Some(job) = self.jobs.remove(&id) {
            self.rounds = self.rounds.max(job.ballot.round);
        }
        self.policy.forget(id);
    }

    /// A later controller is at work, and takes back what this one gave. Two controllers must not
    /// both give, so this one forgets everything and says nothing more.
    fn supersede(&mut self, epoch: u64) {
        if !self.superseded {
            self.superseded = true;
            self.jobs.clear();
            self.out.clear();
            self.events.push_back(Event::Superseded(epoch));
        }
    }

    /// The pause after a round without agreement. It is drawn by chance, so that rounds and
    /// launches that met once do not meet again. The same job and round always draw the same pause.
    fn retry_ns(&self, id: JobId) -> u64 {
        let round = self.jobs.get(&id).map_or(0, |job| job.ballot.round);
        let mut chance = fastrand::Rng::with_seed(self.seed ^ id.0.rotate_left(32) ^ round);
        self.timing.retry_ns + chance.u64(0..=self.timing.retry_ns)
    }

    /// Begins rounds for jobs, in the policy's order, until nothing more fits. A round counts
    /// against capacity from its beginning: its outcome may be a grant.
    pub(super) fn turn(&mut self, now: u64) {
        loop {
            // This is called for every packet: it must cost nothing while no job waits.
            if !self.jobs.values().any(|job| !job.may_hold()) {
                return self.policy.nobody();
            }
            let used = self.used();
            let ready = |job: &Job| {
                matches!(job.phase, Phase::Idle(not_before) if not_before <= now)
                    && !job.hosts.iter().any(|host| host.left)
                    && self.fits(&job.needs, &used)
            };
            let free: Vec<JobId> =
                self.jobs.iter().filter(|(_, job)| ready(job)).map(|(id, _)| *id).collect();
            if free.is_empty() {
                return self.policy.nobody();
            }
            let chosen = self.policy.turn(now, &free).filter(|job| free.contains(job));
            let Some(job) = chosen else { return };
            self.prepare(now, job, true);
        }
    }

    /// Are there units left for it, beside all that may hold some?
    fn fits(&self, needs: &Needs, used: &BTreeMap<u32, u64>) -> bool {
        needs.resources.iter().all(|resource| {
            let there = self.capacity.get(resource).copied().unwrap_or(0);
            let used = used.get(resource).copied().unwrap_or(0);
            used + u64::from(needs.units) <= u64::from(there)
        })
    }

    /// Of each resource: units of jobs that may hold some.
    pub(super) fn used(&self) -> BTreeMap<u32, u64> {
        let mut used = BTreeMap::new();
        for job in self.jobs.values().filter(|job| job.may_hold()) {
            for resource in &job.needs.resources {
                *used.entry(*resource).or_default() += u64::from(job.needs.units);
            }
        }
        used
    }

    /// Sends what the round has to say now to each host that has not answered. A host has answered
    /// an outcome only once it holds nothing: the repeated packet is also the poll for that.
    fn resend(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let body = match job.phase {
            Phase::Preparing { .. } => Body::Prepare,
            Phase::Settling { grant: Some(grant), .. } => Body::Commit(grant),
            Phase::Settling { grant: None, .. } => Body::Abort,
            Phase::Idle(_) | Phase::Fencing(_) => return,
        };
        let ballot = job.ballot;
        for (rank, host) in (0..).zip(&mut job.hosts) {
            let answered = match body {
                Body::Prepare => host.ready.is_some() || host.left,
                _ => host.settled && host.free,
            };
            if !answered {
                host.unanswered += 1;
                let (from, to) = (Party::Controller, Party::Host(rank));
                self.out.push_back(Packet { job: id, ballot, from, to, body });
            }
        }
    }
}
