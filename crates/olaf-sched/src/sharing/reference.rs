//! The optimum of a small group by trying everything: what policies are measured against.

use crate::Steps;

/// A job on its way.
#[derive(Clone, Copy)]
struct At<'a> {
    steps: &'a Steps,
    hosts: u32,
    begin_ns: u64,
    next: usize,
    ready_ns: u64,
    left: u64,
}

impl At<'_> {
    /// When it starts its next operation; past ends of steps. None when it has ended.
    fn start_ns(&mut self) -> Option<u64> {
        while self.left > 0 && self.next == self.steps.len() {
            let end_ns = self.ready_ns.max(self.begin_ns + self.steps.compute_ns);
            (self.begin_ns, self.ready_ns, self.next) = (end_ns, end_ns, 0);
            self.left -= 1;
        }
        (self.left > 0).then(|| self.ready_ns.max(self.begin_ns + self.steps.start_ns[self.next]))
    }
}

/// The least sum of hosts x (time at which the job ends) when each job runs `steps` steps. Two to
/// the number of operations in all, at the worst.
pub(super) fn least_ns(jobs: &[(&Steps, u32)], steps: u64) -> u64 {
    let all = jobs.iter().map(|&(pattern, hosts)| At {
        steps: pattern,
        hosts,
        begin_ns: 0,
        next: 0,
        ready_ns: 0,
        left: steps,
    });
    least_from(&mut all.collect::<Vec<_>>(), 0)
}

fn least_from(jobs: &mut [At<'_>], free_ns: u64) -> u64 {
    let starts = jobs.iter_mut().enumerate().filter_map(|(at, job)| Some((job.start_ns()?, at)));
    let Some((start_ns, at)) = starts.min() else {
        return jobs.iter().map(|job| job.begin_ns * u64::from(job.hosts)).sum();
    };
    let mut least = u64::MAX;
    for in_network in [true, false] {
        if in_network && start_ns < free_ns {
            continue;
        }
        let mut after = jobs.to_vec();
        let job = &mut after[at];
        let of = if in_network { &job.steps.with_ns } else { &job.steps.without_ns };
        job.ready_ns = start_ns + of[job.next];
        job.next += 1;
        let free_ns = if in_network { job.ready_ns } else { free_ns };
        least = least.min(least_from(&mut after, free_ns));
    }
    least
}
