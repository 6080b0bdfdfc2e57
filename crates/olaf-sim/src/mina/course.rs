//! One job's way through its steps: when its next operation starts, and when the running one ends.
//!
//! Knows no other job. The caller says at each start whether the job may use the switches. For a
//! job that no other disturbs it says so once: then whole steps are one multiplication.

use super::outcome::Use;
use olaf_sched::Steps;
use std::sync::Arc;

/// What a job has done so far, and the uses of the switches that the timeline wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Time in which an all-reduce of it ran in the network.
    pub(super) in_network_ns: u64,
    /// All-reduces with the switches.
    pub(super) with: u64,
    /// All-reduces without.
    pub(super) without: u64,
    /// Uses of the switches in the window, in order.
    pub(super) uses: Vec<Use>,
}

/// Of which part of the run every use is kept: from and up to.
pub(super) type Kept = Option<(u64, u64)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// For the next operation's gradient.
    Waiting,
    /// An operation runs.
    Running { since_ns: u64, until_ns: u64, in_network: bool },
    /// All operations of the step are over, its computation is not.
    Computing,
    /// All steps are over.
    Done,
}

/// What comes next, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// An operation starts.
    Start(u64),
    /// An operation or a step ends.
    End(u64),
    /// The job is over.
    Nothing,
}

/// What has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// It was an operation, and the switches summed.
    pub(super) in_network: bool,
    /// It was the job's last step.
    pub(super) job: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Course {
    pub(super) steps: Arc<Steps>,
    /// Steps that are not over.
    pub(super) left: u64,
    pub(super) step_begin_ns: u64,
    /// The operation that starts next, or runs.
    pub(super) operation: usize,
    /// When the operation before ended, or the step began.
    ready_ns: u64,
    state: State,
}

impl Course {
    /// A job of `count` steps, at least one, begins.
    pub(super) fn new(steps: Arc<Steps>, count: u64, now_ns: u64) -> Self {
        let (left, step_begin_ns, ready_ns) = (count, now_ns, now_ns);
        let mut course =
            Self { steps, left, step_begin_ns, operation: 0, ready_ns, state: State::Waiting };
        course.begin_step(now_ns);
        course
    }

    pub(super) fn next(&self) -> Next {
        match self.state {
            State::Waiting => {
                let gradient_ns = self.step_begin_ns + self.steps.start_ns[self.operation];
                Next::Start(gradient_ns.max(self.ready_ns))
            }
            State::Running { until_ns, .. } => Next::End(until_ns),
            State::Computing => Next::End(self.step_begin_ns + self.steps.compute_ns),
            State::Done => Next::Nothing,
        }
    }

    /// The switches sum for it now.
    pub(super) const fn in_network(&self) -> bool {
        matches!(self.state, State::Running { in_network: true, .. })
    }

    /// An operation of it runs, until then.
    pub(super) const fn running_until_ns(&self) -> Option<u64> {
        match self.state {
            State::Running { until_ns, .. } => Some(until_ns),
            _ => None,
        }
    }

    /// When it became free.
    pub(super) const fn ready_ns(&self) -> u64 {
        self.ready_ns
    }

    /// The next operation starts.
    pub(super) fn start(&mut self, now_ns: u64, in_network: bool) {
        debug_assert_eq!(self.next(), Next::Start(now_ns));
        let durations = if in_network { &self.steps.with_ns } else { &self.steps.without_ns };
        let until_ns = now_ns + durations[self.operation];
        self.state = State::Running { since_ns: now_ns, until_ns, in_network };
    }

    /// What runs ends: an operation, or the step's computation.
    pub(super) fn end(&mut self, now_ns: u64, tally: &mut Tally, window: Kept) -> Ended {
        debug_assert_eq!(self.next(), Next::End(now_ns));
        let mut ended = Ended { in_network: false, job: false };
        if let State::Running { since_ns, in_network, .. } = self.state {
            if in_network {
                tally.with += 1;
                tally.in_network_ns += now_ns - since_ns;
                if window.is_some_and(|(from, to)| since_ns < to && now_ns > from) {
                    tally.uses.push(Use { from_ns: since_ns, to_ns: now_ns });
                }
            } else {
                tally.without += 1;
            }
            ended.in_network = in_network;
            self.operation += 1;
            self.ready_ns = now_ns;
            if self.operation < self.steps.start_ns.len() {
                self.state = State::Waiting;
                return ended;
            }
            if now_ns < self.step_begin_ns + self.steps.compute_ns {
                self.state = State::Computing;
                return ended;
            }
        }
        self.left -= 1;
        ended.job = self.left == 0;
        if ended.job {
            self.state = State::Done;
        } else {
            self.begin_step(now_ns);
        }
        ended
    }

    fn begin_step(&mut self, now_ns: u64) {
        self.step_begin_ns = now_ns;
        self.ready_ns = now_ns;
        self.operation = 0;
        self.state = if self.steps.start_ns.is_empty() { State::Computing } else { State::Waiting };
    }

    /// Goes on alone, each operation in the network or none, through all that ends by `now_ns` and
    /// all that starts before: what the event queue would have done by the time at which the
    /// cluster changes at `now_ns`. Returns whether the job is over.
    pub(super) fn advance(
        &mut self,
        now_ns: u64,
        in_network: bool,
        tally: &mut Tally,
        window: Kept,
    ) -> bool {
        loop {
            if self.operation == 0 && self.running_until_ns().is_none() && self.left > 1 {
                self.advance_steps(now_ns, in_network, tally, window);
            }
            match self.next() {
                Next::Start(at_ns) if at_ns < now_ns => self.start(at_ns, in_network),
                Next::End(at_ns) if at_ns <= now_ns => {
                    if self.end(at_ns, tally, window).job {
                        return true;
                    }
                }
                _ => return false,
            }
        }
    }

    /// At a step's begin: all whole steps but the last that end by `now_ns`, at once.
    fn advance_steps(&mut self, now_ns: u64, in_network: bool, tally: &mut Tally, window: Kept) {
        let step_ns = self.step_ns(in_network);
        let mut whole = (now_ns.saturating_sub(self.step_begin_ns) / step_ns).min(self.left - 1);
        if let Some((from_ns, to_ns)) = window.filter(|_| in_network)
            && self.step_begin_ns < to_ns
        {
            // One by one through the window, whose uses are kept.
            whole = whole.min(from_ns.saturating_sub(self.step_begin_ns) / step_ns);
        }
        if whole == 0 {
            return;
        }
        let operations = whole * self.steps.start_ns.len() as u64;
        if in_network {
            tally.with += operations;
            tally.in_network_ns += whole * self.steps.with_ns.iter().sum::<u64>();
        } else {
            tally.without += operations;
        }
        self.left -= whole;
        self.begin_step(self.step_begin_ns + whole * step_ns);
    }

    /// When the job ends if it goes on alone.
    pub(super) fn finish_ns(&self, in_network: bool) -> u64 {
        let mut step = self.clone();
        step.left = 1;
        let mut unseen = Tally::default();
        let end_ns = loop {
            match step.next() {
                Next::Start(at_ns) => step.start(at_ns, in_network),
                Next::End(at_ns) => {
                    step.end(at_ns, &mut unseen, None);
                    if step.left == 0 {
                        break at_ns;
                    }
                }
                Next::Nothing => break self.ready_ns,
            }
        };
        end_ns + self.left.saturating_sub(1) * self.step_ns(in_network)
    }

    fn step_ns(&self, in_network: bool) -> u64 {
        if in_network { self.steps.all_ns } else { self.steps.none_ns }
    }
}
