//! Grants by the policies of [`sharing`](crate::sharing): the jobs' operations are taken forward
//! from what the hosts have told, every one asks [`decide_among`] as in the simulator, and the first
//! that the answer lets use the switches is given them shortly before it starts.
//!
//! So a prediction exists: [`group::simulate`](crate::sharing::group::simulate) of the same jobs and
//! policy is this without the time that packets, locks and processes take.

use super::{Grant, Policy, Progress};
use crate::sharing::group::{Event, first_event};
use crate::sharing::{self, Running, Scope, Surroundings, decide_among};
use crate::{JobId, Steps};
use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Break, Continue};

/// A job, as [`Foresight`] gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// Its pattern on its network.
    pub steps: Steps,
    /// How many hosts wait for its step to end.
    pub hosts: u32,
    /// How many steps it runs.
    pub count: u64,
    /// What its tree uses, ascending.
    pub resources: Vec<u32>,
    /// Of each of them.
    pub units: u32,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foresight {
    policy: sharing::Policy,
    /// A host asks for a grant this long before the grant's first operation starts.
    ahead_ns: u64,
    capacity: BTreeMap<u32, u32>,
    jobs: BTreeMap<JobId, Known>,
    /// When the next question is due, unless something is heard before.
    wake: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    sharer: Sharer,
    seen: Option<Seen>,
    /// The last that it was given; empty when it holds nothing.
    grant: Grant,
}

/// Where a job was when it was last heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// The index of its next operation; the one before it has begun.
    next: u64,
    in_network: bool,
    /// Of the host whose step began first.
    step_begin_ns: u64,
    /// A host told it; else it was concluded from an answer.
    told: bool,
    /// When the operation that began ends.
    ready_ns: u64,
}

impl Foresight {
    /// No job takes part yet. `capacity` is units by resource.
    #[must_use]
    pub const fn new(policy: sharing::Policy, ahead_ns: u64, capacity: BTreeMap<u32, u32>) -> Self {
        Self { policy, ahead_ns, capacity, jobs: BTreeMap::new(), wake: None }
    }

    /// A job takes part. It is given nothing before a host has told of its first operation, and
    /// nothing at all if switches do not shorten its steps.
    pub fn add(&mut self, job: JobId, sharer: Sharer) {
        self.jobs.insert(job, Known { sharer, seen: None, grant: Grant::default() });
    }
}

impl Policy for Foresight {
    fn turn(&mut self, now: u64, free: &[JobId]) -> Option<JobId> {
        let until = now.saturating_add(self.ahead_ns);
        let mut chosen = None;
        let mut course = Course::of(self, now);
        let beyond = course.run(until, |course, start| {
            let job = course.jobs[start.at].0;
            if start.asked && start.in_network && free.contains(&job) {
                chosen = Some(job);
                return Break(());
            }
            Continue(())
        });
        self.wake = beyond.map(|at| at.saturating_sub(self.ahead_ns)).filter(|at| *at > now);
        chosen
    }

    /// What starts soon, and what follows upon it without a gap in which others could have the
    /// switches. Nothing if the operation was missed: the next one has its own round.
    fn grant(&mut self, now: u64, job: JobId, next: u64) -> Option<Grant> {
        self.jobs.get_mut(&job)?.catch_up(now, next);
        let soon_ns = self.ahead_ns.saturating_mul(2);
        let longest = u64::try_from(self.jobs[&job].sharer.steps.len()).unwrap_or(u64::MAX);
        let mut grant: Option<Grant> = None;
        let mut end_ns = now;
        let mut course = Course::of(self, now);
        course.run(u64::MAX, |course, start| {
            if start.begin_ns > end_ns.saturating_add(soon_ns) {
                return Break(());
            }
            if course.jobs[start.at].0 != job {
                // A job that shall have the switches between two of its operations ends the range.
                let between = grant.is_some() && start.asked && start.in_network;
                let ends = between && course.conflict(start.at, job);
                return if ends { Break(()) } else { Continue(()) };
            }
            let to = start.index.saturating_add(1);
            match &mut grant {
                None if !start.in_network => return Continue(()),
                None => grant = Some(Grant { from: start.index, to }),
                Some(grant) if start.in_network && grant.to - grant.from < longest => grant.to = to,
                Some(_) => return Break(()),
            }
            end_ns = start.end_ns;
            Continue(())
        });
        self.jobs.get_mut(&job)?.grant = grant.unwrap_or_default();
        grant
    }

    fn observe(&mut self, now: u64, job: JobId, next: u64) {
        if let Some(known) = self.jobs.get_mut(&job)
            && known.seen.is_some()
        {
            known.catch_up(now, next);
        }
    }

    fn progress(&mut self, now: u64, job: JobId, progress: Progress) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let Progress { next, in_network, step_age_ns } = progress;
        let step_begin_ns = now.saturating_sub(step_age_ns);
        match &mut known.seen {
            Some(seen) if seen.next > next => return, // it was overtaken
            Some(seen) if seen.next == next && seen.told => {
                // Hosts drift apart by their delays. The first that launches the next operation
                // decides when a grant is too late.
                seen.step_begin_ns = seen.step_begin_ns.min(step_begin_ns);
                return;
            }
            _ => {}
        }
        let Some(operation) = known.operation(next) else { return };
        let steps = &known.sharer.steps;
        let durations = if in_network { &steps.with_ns } else { &steps.without_ns };
        known.seen = Some(Seen {
            next,
            in_network,
            step_begin_ns,
            told: true,
            ready_ns: now.saturating_add(durations[operation]),
        });
    }

    fn free(&mut self, now: u64, job: JobId) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        known.grant = Grant::default();
        if let Some(seen) = known.seen.as_mut().filter(|seen| seen.in_network) {
            seen.ready_ns = seen.ready_ns.min(now);
        }
    }

    fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    fn nobody(&mut self) {
        self.wake = None;
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.wake
    }
}

impl Known {
    /// Which of its step the operation before index `next` is. None where the job has no such
    /// operation: a host may tell any number, and nothing after it would count.
    fn operation(&self, next: u64) -> Option<usize> {
        let len = u64::try_from(self.sharer.steps.len()).ok().filter(|len| *len > 0)?;
        if next > self.sharer.count.saturating_mul(len) {
            return None;
        }
        usize::try_from(next.checked_sub(1)? % len).ok()
    }

    /// A host stands before `next`, and has not told when the one before it began: just now.
    fn catch_up(&mut self, now: u64, next: u64) {
        if self.seen.is_some_and(|seen| seen.next >= next) {
            return;
        }
        let Some(operation) = self.operation(next) else { return };
        let start_ns = self.sharer.steps.start_ns[operation];
        let begun = self.seen.map(|seen| seen.step_begin_ns).filter(|_| operation > 0);
        self.seen = Some(Seen {
            next,
            in_network: false,
            told: false,
            step_begin_ns: begun.unwrap_or_else(|| now.saturating_sub(start_ns)),
            ready_ns: now.saturating_add(self.sharer.steps.without_ns[operation]),
        });
    }

    fn running(&self, job: JobId, now: u64) -> Option<(u64, Running<'_>)> {
        let seen = self.seen?;
        let operation = self.operation(seen.next)?;
        let begun = (seen.next - 1) / u64::try_from(self.sharer.steps.len()).ok()?;
        let running = now < seen.ready_ns;
        let state = Running {
            job,
            steps: &self.sharer.steps,
            hosts: self.sharer.hosts,
            step_begin_ns: seen.step_begin_ns,
            next: operation + 1,
            ready_ns: seen.ready_ns,
            in_network_now: running && seen.in_network,
            running,
            steps_left: self.sharer.count.saturating_sub(begun),
        };
        Some((seen.next, state))
    }
}

/// The jobs that were heard of, taken forward from now.
struct Course<'a> {
    now: u64,
    policy: sharing::Policy,
    capacity: &'a BTreeMap<u32, u32>,
    jobs: Vec<(JobId, &'a Known)>,
    running: Vec<Running<'a>>,
    /// Of each job's next operation.
    index: Vec<u64>,
}

/// An operation that starts in a [`Course`].
struct Start {
    /// A place in the course's jobs.
    at: usize,
    index: u64,
    begin_ns: u64,
    end_ns: u64,
    in_network: bool,
    /// The policy said so; not a grant that was given.
    asked: bool,
}

impl<'a> Course<'a> {
    fn of(foresight: &'a Foresight, now: u64) -> Self {
        let mut course = Self {
            now,
            policy: foresight.policy,
            capacity: &foresight.capacity,
            jobs: Vec::new(),
            running: Vec::new(),
            index: Vec::new(),
        };
        for (job, known) in &foresight.jobs {
            if let Some((index, running)) = known.running(*job, now) {
                course.jobs.push((*job, known));
                course.running.push(running);
                course.index.push(index);
            }
        }
        course
    }

    /// Forward until `until`, or until `each` breaks. Returns when the first thing after that
    /// happens.
    fn run(
        &mut self,
        until: u64,
        mut each: impl FnMut(&Self, &Start) -> ControlFlow<()>,
    ) -> Option<u64> {
        for _ in 0..MOST_EVENTS {
            let (now, event, at) = first_event(&self.running)?;
            if now > until {
                return Some(now);
            }
            match event {
                Event::OperationEnds => {
                    let job = &mut self.running[at];
                    (job.running, job.in_network_now) = (false, false);
                }
                Event::StepEnds => {
                    let job = &mut self.running[at];
                    job.steps_left -= 1;
                    (job.step_begin_ns, job.ready_ns, job.next) = (now, now, 0);
                }
                // Nobody has told of it: it is late, and may start any time.
                Event::OperationStarts if now < self.now => self.running[at].ready_ns = self.now,
                Event::OperationStarts => {
                    let start = self.start(now, at);
                    if each(self, &start).is_break() {
                        return None;
                    }
                    let job = &mut self.running[at];
                    job.ready_ns = start.end_ns;
                    (job.running, job.in_network_now) = (true, start.in_network);
                    job.next += 1;
                    self.index[at] = self.index[at].saturating_add(1);
                }
            }
        }
        None
    }

    fn start(&self, begin_ns: u64, at: usize) -> Start {
        let (index, known, job) = (self.index[at], self.jobs[at].1, &self.running[at]);
        let asked = !known.grant.has_left(index);
        let in_network = if asked {
            job.steps.gain_ns() > 0 && !self.busy(at) && self.decide(begin_ns, at)
        } else {
            known.grant.covers(index)
        };
        let of = if in_network { &job.steps.with_ns } else { &job.steps.without_ns };
        let end_ns = begin_ns.saturating_add(of[job.next]);
        Start { at, index, begin_ns, end_ns, in_network, asked }
    }

    fn decide(&self, now: u64, at: usize) -> bool {
        let places: Vec<usize> = match self.policy.scope() {
            Scope::Nobody => Vec::new(),
            Scope::Conflicting => self.others(at).filter(|&other| self.meet(at, other)).collect(),
            Scope::Group => self.group(at),
        };
        let rivals: Vec<Running<'_>> = places.iter().map(|&place| self.running[place]).collect();
        let around = Around { course: self, places: &places };
        decide_among(self.policy, now, &self.running[at], &rivals, &around).in_network
    }

    /// Others use, or may use any time, what it would need.
    fn busy(&self, at: usize) -> bool {
        let mine = &self.jobs[at].1.sharer;
        mine.resources.iter().any(|resource| {
            let used = self.others(at).filter(|&other| {
                let held = self.jobs[other].1.grant.has_left(self.index[other]);
                let theirs = &self.jobs[other].1.sharer.resources;
                (held || self.running[other].in_network_now) && theirs.contains(resource)
            });
            let used: u64 = used.map(|other| u64::from(self.jobs[other].1.sharer.units)).sum();
            used + u64::from(mine.units) > self.there(*resource)
        })
    }

    /// The trees of two of the jobs conflict.
    fn meet(&self, a: usize, b: usize) -> bool {
        let [a, b] = [a, b].map(|at| &self.jobs[at].1.sharer);
        let units = u64::from(a.units) + u64::from(b.units);
        a.resources.iter().any(|r| b.resources.contains(r) && units > self.there(*r))
    }

    fn conflict(&self, at: usize, job: JobId) -> bool {
        let other = self.jobs.iter().position(|(known, _)| *known == job);
        other.is_some_and(|other| self.meet(at, other))
    }

    /// Those whose trees conflict with its own, or with one of those, and so on.
    fn group(&self, at: usize) -> Vec<usize> {
        let mut group = vec![at];
        let mut seen = 0;
        while let Some(&member) = group.get(seen) {
            let more: Vec<usize> = self
                .others(member)
                .filter(|other| !group.contains(other) && self.meet(member, *other))
                .collect();
            group.extend(more);
            seen += 1;
        }
        group.remove(0);
        group.sort_unstable();
        group
    }

    /// Jobs beside it that have steps to run.
    fn others(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.jobs.len()).filter(move |&other| other != at && self.running[other].steps_left > 0)
    }

    fn there(&self, resource: u32) -> u64 {
        self.capacity.get(&resource).copied().unwrap_or(0).into()
    }
}

/// What a policy may ask about the rivals that it is shown.
struct Around<'a, 'b> {
    course: &'a Course<'b>,
    /// Of each rival: its place in the course.
    places: &'a [usize],
}

impl Surroundings for Around<'_, '_> {
    fn conflict(&self, a: usize, b: usize) -> bool {
        self.course.meet(self.places[a], self.places[b])
    }

    fn free_ns(&self, rival: usize) -> u64 {
        let place = self.places[rival];
        let users = self.course.others(place).filter(|&other| {
            self.course.running[other].in_network_now && self.course.meet(place, other)
        });
        users.map(|other| self.course.running[other].ready_ns).max().unwrap_or(0)
    }
}

/// Of one look ahead: bounds its time. A question looks at some milliseconds, a grant at a step.
const MOST_EVENTS: usize = 10_000;
