//! Ours: try both answers, look where each leads, take the better (MINA §III-D asks for no more than
//! the improvement per accelerated time; patterns repeat, so the future is known).
//!
//! The rivals' next operations and mine are taken forward twice, once with each answer to the
//! question asked; every later question in that future gets the answer of a rule of thumb. It is
//! the authors' rule but for one word: an operation's gain is what its step ends earlier if all
//! operations *after* it use the switches too, not if none does. So an operation that the rest of
//! its step would make good anyhow gains nothing and lets others pass. The answer whose future is
//! less late, in host-nanoseconds, is taken; of two equal ones, yes.
//!
//! A future ends when each job has ended its present step, and the steps that it ends meanwhile. Of
//! a job that does not conflict with mine it knows only when that job's present use of the switches
//! ends. One question costs the operations of that future: counted and bounded, never timed.

use super::{Decision, Next, Reason, Running, Surroundings};
use crate::Steps;

/// Jobs that a future is made of: mine and those that start first of the others.
const MOST_JOBS: usize = 8;
/// Operations after which a future ends at the latest.
const MOST_OPERATIONS: u32 = 128;

pub(super) fn decide(
    now_ns: u64,
    me: &Running<'_>,
    rivals: &[Running<'_>],
    surroundings: &impl Surroundings,
) -> Decision {
    let Some(mine) = Next::of(me, now_ns) else {
        return Decision::yes(Reason::Free);
    };
    let first = rivals.iter().filter_map(|rival| {
        let start_ns = Next::of(rival, now_ns)?.start_ns;
        (start_ns < mine.end_with_ns()).then_some((start_ns, rival.job))
    });
    let Some((_, to)) = first.min() else {
        return Decision::yes(Reason::Free);
    };
    let Some(future) = Future::of(now_ns, me, rivals, surroundings) else {
        return Decision::yes(Reason::Free);
    };
    let until_ns = future.until_ns();
    if future.clone().lateness(false, until_ns) < future.lateness(true, until_ns) {
        Decision::no(Reason::Yields { to })
    } else {
        Decision::yes(Reason::Ahead)
    }
}

/// Jobs that share trees, from now on; the first of them is asking.
#[derive(Clone)]
struct Future<'a> {
    jobs: [Ahead<'a>; MOST_JOBS],
    len: usize,
}

impl<'a> Future<'a> {
    fn of(
        now_ns: u64,
        me: &Running<'a>,
        rivals: &[Running<'a>],
        surroundings: &impl Surroundings,
    ) -> Option<Self> {
        let mut future = Self { jobs: [Ahead::of(me, now_ns)?; MOST_JOBS], len: 1 };
        // Whose place in `rivals` it is; mine counts for nothing.
        let mut places = [0; MOST_JOBS];
        for (place, rival) in rivals.iter().enumerate() {
            let Some(mut theirs) = Ahead::of(rival, now_ns) else { continue };
            // Those that start first, of equal ones the first.
            let mut at = future.len;
            while at > 1 && theirs.start_ns < future.jobs[at - 1].start_ns {
                at -= 1;
            }
            if at == MOST_JOBS {
                continue;
            }
            theirs.free_ns = surroundings.free_ns(place);
            future.len = MOST_JOBS.min(future.len + 1);
            future.jobs[at..future.len].rotate_right(1);
            places[at..future.len].rotate_right(1);
            (future.jobs[at], places[at]) = (theirs, place);
        }
        for a in 0..future.len {
            for b in 0..a {
                if b == 0 || surroundings.conflict(places[a], places[b]) {
                    future.jobs[a].rivals |= 1 << b;
                    future.jobs[b].rivals |= 1 << a;
                }
            }
        }
        Some(future)
    }

    fn jobs(&self) -> &[Ahead<'a>] {
        &self.jobs[..self.len]
    }

    fn until_ns(&self) -> u64 {
        let ends = self.jobs().iter().map(|job| job.step_begin_ns + job.steps.all_ns);
        ends.max().unwrap_or(0)
    }

    /// How late the jobs are in the end, if the first starts its operation so.
    fn lateness(mut self, in_network: bool, until_ns: u64) -> i128 {
        self.start(0, in_network, until_ns);
        for _ in 0..MOST_OPERATIONS {
            let (mut at, mut start_ns, mut open) = (0, NEVER, false);
            for (job_at, job) in self.jobs().iter().enumerate() {
                open |= !job.counted;
                if job.start_ns < start_ns {
                    (at, start_ns) = (job_at, job.start_ns);
                }
            }
            if !open || start_ns == NEVER {
                break;
            }
            let in_network = start_ns >= self.jobs[at].free_ns && self.goes_ahead(at);
            self.start(at, in_network, until_ns);
        }
        self.jobs().iter().map(Ahead::lateness).sum()
    }

    fn start(&mut self, at: usize, in_network: bool, until_ns: u64) {
        let job = &mut self.jobs[at];
        let durations_ns = if in_network { &job.steps.with_ns } else { &job.steps.without_ns };
        let end_ns = job.start_ns + durations_ns[job.next];
        job.ready_ns = end_ns;
        job.next += 1;
        job.settle(until_ns);
        if in_network {
            let held_from = job.rivals;
            for (other, rival) in self.jobs[..self.len].iter_mut().enumerate() {
                if held_from & 1 << other != 0 {
                    rival.free_ns = rival.free_ns.max(end_ns);
                }
            }
        }
    }

    /// The rule of thumb.
    fn goes_ahead(&self, at: usize) -> bool {
        let me = &self.jobs[at];
        let now_ns = me.start_ns;
        let (end_ns, gain) = (me.end_with_ns(), me.gain());
        self.jobs().iter().enumerate().all(|(other, rival)| {
            me.rivals & 1 << other == 0 || rival.start_ns >= end_ns || {
                let (ours, theirs) = (end_ns - now_ns, rival.end_with_ns() - now_ns);
                rival.gain().saturating_mul(ours.into()) <= gain.saturating_mul(theirs.into())
            }
        })
    }
}

const NEVER: u64 = u64::MAX;

/// A job between two operations.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    steps: &'a Steps,
    hosts: u32,
    step_begin_ns: u64,
    next: usize,
    ready_ns: u64,
    steps_left: u64,
    /// Those that it conflicts with, a bit each.
    rivals: u8,
    /// When none of them uses what it would need.
    free_ns: u64,
    /// When it starts `next`; [`NEVER`] if it has ended its last step.
    start_ns: u64,
    /// Steps that it has ended since now, until the first that ended late enough to stop counting,
    /// and when the last of them did.
    ended: u64,
    ended_ns: u64,
    counted: bool,
}

impl<'a> Ahead<'a> {
    fn of(job: &Running<'a>, now_ns: u64) -> Option<Self> {
        let mut ahead = Self {
            steps: job.steps,
            hosts: job.hosts,
            step_begin_ns: job.step_begin_ns,
            next: job.next,
            ready_ns: job.ready_ns.max(now_ns),
            steps_left: job.steps_left,
            rivals: 0,
            free_ns: 0,
            start_ns: NEVER,
            ended: 0,
            ended_ns: 0,
            counted: false,
        };
        ahead.settle(NEVER);
        (ahead.start_ns != NEVER).then_some(ahead)
    }

    /// Passes the end of the step, if this is one, and finds out when the next operation starts.
    fn settle(&mut self, until_ns: u64) {
        if self.next == self.steps.len() {
            let end_ns = self.ready_ns.max(self.step_begin_ns + self.steps.compute_ns);
            (self.step_begin_ns, self.ready_ns, self.next) = (end_ns, end_ns, 0);
            self.steps_left = self.steps_left.saturating_sub(1);
            if !self.counted {
                self.ended += 1;
                self.ended_ns = end_ns;
            }
            if self.steps_left == 0 || self.steps.is_empty() {
                (self.start_ns, self.counted) = (NEVER, true);
                return;
            }
            self.counted |= end_ns >= until_ns;
        }
        self.start_ns = self.ready_ns.max(self.step_begin_ns + self.steps.start_ns[self.next]);
    }

    fn end_with_ns(&self) -> u64 {
        self.start_ns + self.steps.with_ns[self.next]
    }

    /// Host-nanoseconds that its step ends earlier by this operation, if those after it use the
    /// switches.
    fn gain(&self) -> u128 {
        let begun_ns = self.start_ns - self.step_begin_ns;
        let finish = |duration_ns| self.steps.finish_with_ns(self.next + 1, begun_ns + duration_ns);
        let gain_ns =
            finish(self.steps.without_ns[self.next]) - finish(self.steps.with_ns[self.next]);
        u128::from(gain_ns) * u128::from(self.hosts)
    }

    /// Host-nanoseconds since the begin of time that were not all-accelerated steps. Where the
    /// future ends within a step, the rest of it uses the switches.
    fn lateness(&self) -> i128 {
        let (end_ns, steps) = if self.counted {
            (self.ended_ns, self.ended)
        } else {
            let begun_ns = self.start_ns - self.step_begin_ns;
            let rest_ns = self.steps.finish_with_ns(self.next, begun_ns);
            (self.step_begin_ns + rest_ns, self.ended + 1)
        };
        // Below zero only where a job was said to be further than it can be.
        let late_ns = i128::from(end_ns) - i128::from(steps) * i128::from(self.steps.all_ns);
        late_ns * i128::from(self.hosts)
    }
}
