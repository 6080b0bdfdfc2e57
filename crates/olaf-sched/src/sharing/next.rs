//! A job's next operation, seen from now.

use super::Running;
use crate::Steps;

/// The next operation that a job will start, as far as that can be told now.
#[derive(Clone, Copy, Debug)]
pub struct Next<'a> {
    steps: &'a Steps,
    step_begin_ns: u64,
    operation: usize,
    /// When it starts.
    pub start_ns: u64,
}

impl<'a> Next<'a> {
    /// None for a job whose last operation has started. After the last of a step comes the first of
    /// the next step, which begins when this one ends.
    #[must_use]
    pub fn of(job: &Running<'a>, now_ns: u64) -> Option<Self> {
        let steps = job.steps;
        let free_ns = job.ready_ns.max(now_ns);
        let (step_begin_ns, operation) = if job.next < steps.len() {
            (job.step_begin_ns, job.next)
        } else if job.steps_left > 1 && !steps.is_empty() {
            (free_ns.max(job.step_begin_ns + steps.compute_ns), 0)
        } else {
            return None;
        };
        let start_ns = free_ns.max(step_begin_ns + steps.start_ns[operation]);
        Some(Self { steps, step_begin_ns, operation, start_ns })
    }

    /// When it ends if the switches sum.
    #[must_use]
    pub fn end_with_ns(&self) -> u64 {
        self.start_ns + self.steps.with_ns[self.operation]
    }

    /// How much earlier its step ends if this operation uses the switches and none after it does.
    #[must_use]
    pub fn gain_ns(&self) -> u64 {
        let begun_ns = self.start_ns - self.step_begin_ns;
        let finish = |duration_ns: u64| {
            self.steps.finish_without_ns(self.operation + 1, begun_ns + duration_ns)
        };
        finish(self.steps.without_ns[self.operation]) - finish(self.steps.with_ns[self.operation])
    }
}
