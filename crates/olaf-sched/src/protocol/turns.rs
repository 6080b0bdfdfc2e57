//! A policy that shares by turns: each job gets, step by step, the all-reduces that shorten it.

use super::{Grant, Policy};
use crate::{JobId, Steps};
use std::collections::BTreeMap;

/// Which all-reduces of a job's step are worth the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Worth {
    /// All-reduces of a step.
    pub operations: u64,
    /// The first that is worth it; from there on all are. `operations` if none is.
    pub first: u64,
    /// When that one starts at the earliest, from the step's begin.
    pub start_ns: u64,
}

impl Worth {
    /// The shortest tail of the step with which it ends as early as if all its all-reduces used the
    /// switches: what comes before only waits the longer for its gradients.
    #[must_use]
    pub fn of(steps: &Steps) -> Self {
        let (none, operations) = (steps.duration_ns(|_| false), steps.len());
        let first = if none == steps.all_ns {
            operations
        } else {
            let as_short = |first: &usize| steps.duration_ns(|i| i >= *first) == steps.all_ns;
            (0..operations).rev().find(as_short).unwrap_or(0)
        };
        let start_ns = steps.start_ns.get(first).copied().unwrap_or(0);
        Self { operations: operations as u64, first: first as u64, start_ns }
    }

    /// The next operations of index `next` or later that are worth it, in one step.
    #[must_use]
    pub const fn from(&self, next: u64) -> Option<Grant> {
        if self.first >= self.operations {
            return None;
        }
        let begin = next - next % self.operations;
        // A host that names an index at the end of numbers is broken; the sum must not be.
        let first = begin.saturating_add(self.first);
        let from = if first > next { first } else { next };
        Some(Grant { from, to: begin.saturating_add(self.operations) })
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Turns {
    jobs: BTreeMap<JobId, Waiting>,
    /// A grant comes so long before its first operation can start.
    ahead_ns: u64,
    now: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    worth: Worth,
    /// It cannot start an operation that is worth it before.
    not_before: u64,
}

impl Turns {
    /// Grants come so long before they can be used: some times what a round takes.
    #[must_use]
    pub fn new(ahead_ns: u64) -> Self {
        Self { ahead_ns, ..Self::default() }
    }

    /// A job takes part.
    pub fn add(&mut self, job: JobId, worth: Worth) {
        self.jobs.insert(job, Waiting { worth, not_before: 0 });
    }
}

impl Policy for Turns {
    /// Of those that may start one that is worth it: who could for the longest time.
    fn turn(&mut self, now: u64, free: &[JobId]) -> Option<JobId> {
        self.now = now;
        let waits = |job: &JobId| self.jobs.get(job).map(|waiting| (waiting.not_before, *job));
        let (not_before, job) = free.iter().filter_map(waits).min()?;
        (not_before <= now).then_some(job)
    }

    fn grant(&mut self, _now: u64, job: JobId, next: u64) -> Option<Grant> {
        self.jobs.get(&job)?.worth.from(next)
    }

    fn observe(&mut self, now: u64, job: JobId, next: u64) {
        let Some(waiting) = self.jobs.get_mut(&job) else { return };
        let worth = waiting.worth;
        waiting.not_before = if worth.first >= worth.operations {
            u64::MAX
        } else if next.is_multiple_of(worth.operations) {
            // Its last operation may still run; its step begins no earlier than now.
            now + worth.start_ns.saturating_sub(self.ahead_ns)
        } else {
            now
        };
    }

    fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    fn poll_timeout(&self) -> Option<u64> {
        let later = |waiting: &Waiting| {
            (self.now < waiting.not_before && waiting.not_before < u64::MAX)
                .then_some(waiting.not_before)
        };
        self.jobs.values().filter_map(later).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Network, Operation, Pattern};

    #[test]
    fn the_shortest_tail_that_is_as_good_as_all() {
        let network =
            Network { bytes_per_second: 1_000_000_000, speedup_millis: 2000, latency_ns: 0 };
        let operation = |start_ns, bytes| Operation { start_ns, bytes };
        let of = |compute_ns, operations| {
            let pattern = Pattern { name: "p".into(), compute_ns, operations };
            Worth::of(&Steps::new(&pattern, &network, 2))
        };
        // The first ends before the second's gradient is there, in either mode.
        let tail = of(500, vec![operation(0, 100), operation(400, 300)]);
        assert_eq!(tail, Worth { operations: 2, first: 1, start_ns: 400 });
        assert_eq!(tail.from(4), Some(Grant { from: 5, to: 6 }));
        assert_eq!(tail.from(5), Some(Grant { from: 5, to: 6 }));
        // Each delays the next.
        assert_eq!(of(10, vec![operation(0, 100), operation(10, 300)]).first, 0);
        // Computation hides all of it.
        assert_eq!(of(5000, vec![operation(0, 100)]).from(0), None);
    }

    #[test]
    fn nobody_is_given_what_it_cannot_use_yet() {
        let mut turns = Turns::new(10);
        let worth = Worth { operations: 3, first: 1, start_ns: 100 };
        turns.add(JobId(1), worth);
        turns.add(JobId(2), worth);
        turns.observe(1000, JobId(1), 6);
        assert_eq!(turns.turn(1000, &[JobId(1), JobId(2)]), Some(JobId(2)));
        assert_eq!(turns.turn(1000, &[JobId(1)]), None);
        assert_eq!(turns.poll_timeout(), Some(1090));
        assert_eq!(turns.turn(1090, &[JobId(1)]), Some(JobId(1)));
        assert_eq!(turns.grant(1090, JobId(1), 6), Some(Grant { from: 7, to: 9 }));
    }
}
