//! A few jobs that share one tree and nothing else, taken forward operation by operation
//! (MINA §V-C, Figure 12).

use super::{Decision, Policy, Reason, Running, decide};
use crate::{JobId, Steps};

/// How long a group runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Each job runs this number of steps, and leaves the tree to the others.
    Steps(u64),
    /// All jobs run for this time; a step that has not ended by then does not count.
    Ns(u64),
}

/// No group runs longer, so that no time overflows: 146 years.
pub const LONGEST_NS: u64 = 1 << 62;

impl Until {
    /// Returns true if `jobs` may run for longer than [`LONGEST_NS`], which cannot be simulated.
    #[must_use]
    pub fn is_too_long(self, jobs: &[(&Steps, u32)]) -> bool {
        let most_ns = |(job, _): &(&Steps, u32)| match self {
            Self::Steps(steps) => u128::from(steps) * u128::from(job.none_ns),
            Self::Ns(ns) => ns.into(),
        };
        jobs.iter().map(most_ns).any(|ns| ns > LONGEST_NS.into())
    }
}

/// What became of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Steps that ended.
    pub steps: u64,
    /// When the last of them did.
    pub ns: u64,
    /// The shortest of them.
    pub shortest_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// How long its operations used the switches, until then or later.
    pub in_network_ns: u64,
    /// Operations that did.
    pub in_network: u64,
    /// Operations in all.
    pub operations: u64,
}

/// An operation that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// An index into the group's jobs.
    pub job: usize,
    /// Which of its step.
    pub operation: usize,
    /// When.
    pub start_ns: u64,
    /// And until when.
    pub end_ns: u64,
    /// Whether the switches or the hosts sum it, and why.
    pub decision: Decision,
}

/// All `jobs` (each a pattern and its hosts) begin their first step at 0.
///
/// At one instant, what ends goes before what starts, and a job before those after it in `jobs`.
/// See [`Until::is_too_long`] before.
#[must_use]
pub fn simulate(policy: Policy, jobs: &[(&Steps, u32)], until: Until) -> Vec<Ran> {
    simulate_with(|now_ns, me, rivals| decide(policy, now_ns, me, rivals), jobs, until, |_| ())
}

/// As [`simulate`], but each job runs its own number of `steps`, as many as there are jobs.
#[must_use]
pub fn simulate_each(policy: Policy, jobs: &[(&Steps, u32)], steps: &[u64]) -> Vec<Ran> {
    let decide =
        |now_ns, me: &Running<'_>, rivals: &[Running<'_>]| decide(policy, now_ns, me, rivals);
    run(decide, jobs, |at| steps[at], u64::MAX, |_| ())
}

/// As [`simulate`], with any `policy` and an eye on each operation.
pub fn simulate_with(
    policy: impl FnMut(u64, &Running<'_>, &[Running<'_>]) -> Decision,
    jobs: &[(&Steps, u32)],
    until: Until,
    started: impl FnMut(Started),
) -> Vec<Ran> {
    match until {
        Until::Steps(steps) => run(policy, jobs, |_| steps, u64::MAX, started),
        Until::Ns(end_ns) => run(policy, jobs, |_| u64::MAX, end_ns, started),
    }
}

fn run(
    mut policy: impl FnMut(u64, &Running<'_>, &[Running<'_>]) -> Decision,
    jobs: &[(&Steps, u32)],
    steps_of: impl Fn(usize) -> u64,
    end_ns: u64,
    mut started: impl FnMut(Started),
) -> Vec<Ran> {
    let mut running: Vec<Running<'_>> = jobs
        .iter()
        .enumerate()
        .map(|(number, &(steps, hosts))| Running {
            job: JobId(number as u64),
            steps,
            hosts,
            step_begin_ns: 0,
            next: 0,
            ready_ns: 0,
            in_network_now: false,
            running: false,
            steps_left: steps_of(number),
        })
        .collect();
    let mut ran = vec![Ran { shortest_ns: u64::MAX, ..Ran::default() }; jobs.len()];
    let mut rivals = Vec::with_capacity(jobs.len());
    while let Some((now_ns, event, at)) = first_event(&running) {
        if now_ns > end_ns {
            break;
        }
        match event {
            Event::OperationEnds => {
                running[at].running = false;
                running[at].in_network_now = false;
            }
            Event::StepEnds => {
                let (job, ran) = (&mut running[at], &mut ran[at]);
                let took_ns = now_ns - job.step_begin_ns;
                ran.steps += 1;
                ran.ns = now_ns;
                ran.shortest_ns = ran.shortest_ns.min(took_ns);
                ran.longest_ns = ran.longest_ns.max(took_ns);
                job.steps_left -= 1;
                (job.step_begin_ns, job.ready_ns, job.next) = (now_ns, now_ns, 0);
            }
            Event::OperationStarts => {
                let decision = if running.iter().any(|job| job.in_network_now) {
                    Decision::BUSY
                } else {
                    rivals.clear();
                    let others = running.iter().enumerate();
                    let others = others.filter(|(other, job)| *other != at && job.steps_left > 0);
                    rivals.extend(others.map(|(_, job)| *job));
                    policy(now_ns, &running[at], &rivals)
                };
                let (job, ran) = (&mut running[at], &mut ran[at]);
                let steps = job.steps;
                let of = if decision.in_network { &steps.with_ns } else { &steps.without_ns };
                let duration_ns = of[job.next];
                let end_ns = now_ns + duration_ns;
                started(Started {
                    job: at,
                    operation: job.next,
                    start_ns: now_ns,
                    end_ns,
                    decision,
                });
                ran.operations += 1;
                if decision.in_network {
                    ran.in_network += 1;
                    ran.in_network_ns += duration_ns;
                }
                (job.running, job.in_network_now) = (true, decision.in_network);
                (job.ready_ns, job.next) = (end_ns, job.next + 1);
            }
        }
    }
    for ran in &mut ran {
        ran.shortest_ns = ran.shortest_ns.min(ran.longest_ns);
    }
    ran
}

/// What happens next to a job; of those at one instant, the smallest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    OperationEnds,
    StepEnds,
    OperationStarts,
}

pub(crate) fn first_event(jobs: &[Running<'_>]) -> Option<(u64, Event, usize)> {
    let each = jobs.iter().enumerate().filter(|(_, job)| job.steps_left > 0);
    each.map(|(at, job)| {
        let steps = job.steps;
        if job.running {
            (job.ready_ns, Event::OperationEnds, at)
        } else if job.next < steps.len() {
            let start_ns = job.step_begin_ns + steps.start_ns[job.next];
            (job.ready_ns.max(start_ns), Event::OperationStarts, at)
        } else {
            (job.ready_ns.max(job.step_begin_ns + steps.compute_ns), Event::StepEnds, at)
        }
    })
    .min()
}

/// (JCT without the switches - JCT) / (JCT without - JCT with them always), each summed over the
/// jobs and the steps that they ran; weighted by their hosts if `weighted`. None if no job could
/// gain (MINA §V-A).
#[must_use]
pub fn score(jobs: &[(&Steps, u32)], ran: &[Ran], weighted: bool) -> Option<f64> {
    let (mut gained, mut possible) = (0i128, 0i128);
    for ((steps, hosts), ran) in jobs.iter().zip(ran) {
        let weight = if weighted { i128::from(*hosts) } else { 1 };
        let none_ns = i128::from(ran.steps) * i128::from(steps.none_ns);
        gained += weight * (none_ns - i128::from(ran.ns));
        possible += weight * i128::from(ran.steps) * i128::from(steps.gain_ns());
    }
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people: 53 bits are plenty")]
    (possible > 0).then(|| gained as f64 / possible as f64)
}

impl Decision {
    /// By its reason, whether another job was in the way.
    #[must_use]
    pub const fn contended(&self) -> bool {
        matches!(self.reason, Reason::Busy | Reason::Ahead | Reason::Yields { .. })
    }
}
