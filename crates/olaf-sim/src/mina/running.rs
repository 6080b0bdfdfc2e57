//! A job on its hosts: its course, its tree, and the jobs that its tree conflicts with.

use super::course::{Course, Tally};
use super::outcome::{JobLine, JobOutcome, TreeSpan};
use super::sharers::JobIndex;
use olaf_sched::trees::Reason;
use olaf_sched::{HostId, JobId, Steps, Tree, sharing};
use std::sync::Arc;

/// How a job is taken forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nobody disturbs it: it has one event, its end. Until then all its all-reduces are in the
    /// network, or none.
    Alone { in_network: bool },
    /// Operation by operation.
    Among,
}

/// A tree and what it needs.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) tree: Arc<Tree>,
    /// By the capacity: what an all-reduce really uses.
    pub(super) resources: Arc<[u32]>,
    /// By the rule for conflicts: they decide which trees conflict with this one.
    pub(super) judged: Arc<[u32]>,
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) hosts: Vec<HostId>,
    pub(super) course: Course,
    pub(super) tally: Tally,
    pub(super) mode: Mode,
    /// Counts its events: one with an older stamp means nothing any more.
    pub(super) stamp: u32,
    /// Its tree, as the forest has it.
    pub(super) held: Option<Held>,
    /// From when the tree may be used.
    pub(super) usable_ns: u64,
    /// What the all-reduce that runs uses, of this tree or the one before.
    pub(super) using: Option<Held>,
    /// The tree changed while an all-reduce used it.
    pub(super) stale: bool,
    /// Whose trees conflict with its own, ascending.
    pub(super) rivals: Vec<JobIndex>,
    /// Its sharing group (MINA §III-C) without itself: rivals, their rivals and so on.
    pub(super) group: Vec<JobIndex>,
    pub(super) outcome: JobOutcome,
    pub(super) line: Option<JobLine>,
    /// Since when the tree is as it is, and the rivals.
    pub(super) tree_since_ns: u64,
    pub(super) shared_since_ns: Option<u64>,
}

impl Running {
    pub(super) fn new(
        hosts: Vec<HostId>,
        course: Course,
        outcome: JobOutcome,
        line: Option<JobLine>,
    ) -> Self {
        let now_ns = outcome.start_ns;
        Self {
            hosts,
            course,
            tally: Tally::default(),
            mode: Mode::Among,
            stamp: 0,
            held: None,
            usable_ns: now_ns,
            using: None,
            stale: false,
            rivals: Vec::new(),
            group: Vec::new(),
            outcome,
            line,
            tree_since_ns: now_ns,
            shared_since_ns: None,
        }
    }

    /// As a policy sees it.
    pub(super) fn seen(&self, job: JobIndex) -> sharing::Running<'_> {
        let course = &self.course;
        let until_ns = course.running_until_ns();
        sharing::Running {
            job: JobId(job.into()),
            steps: &course.steps,
            hosts: u32::try_from(self.hosts.len()).expect("a job has fewer than 2^32 hosts"),
            step_begin_ns: course.step_begin_ns,
            next: course.operation + usize::from(until_ns.is_some()),
            ready_ns: until_ns.unwrap_or_else(|| course.ready_ns()),
            in_network_now: course.in_network(),
            running: until_ns.is_some(),
            steps_left: course.left,
        }
    }

    /// Its tree is another one, or none, from `now_ns` on.
    pub(super) fn take(&mut self, held: Option<Held>, reason: &Reason, now_ns: u64) {
        let arrives = now_ns == self.outcome.start_ns;
        let counted = match (&self.held, &held) {
            (Some(_), Some(_)) => Some(&mut self.outcome.moved),
            (Some(_), None) => Some(&mut self.outcome.lost),
            (None, Some(_)) if !arrives => Some(&mut self.outcome.gained),
            _ => None,
        };
        if let Some(counted) = counted {
            *counted += 1;
        }
        if self.held.is_some() {
            self.outcome.tree_ns += now_ns - self.tree_since_ns;
        }
        self.tree_since_ns = now_ns;
        if let Some(line) = &mut self.line {
            if let Some(last) = line.trees.last_mut() {
                last.to_ns = now_ns;
            }
            let tree = held.as_ref().map(|held| &held.tree);
            line.trees.push(TreeSpan {
                from_ns: now_ns,
                to_ns: now_ns,
                root: tree.map(|tree| tree.root.0),
                switches: tree
                    .map_or_else(Vec::new, |tree| tree.switches.iter().map(|s| s.0).collect()),
                reason: reason.clone(),
            });
        }
        self.held = held;
    }

    /// Its rivals are these from `now_ns` on.
    pub(super) fn share(&mut self, rivals: Vec<JobIndex>, now_ns: u64) {
        if let Some(since_ns) = self.shared_since_ns.filter(|_| rivals.is_empty()) {
            self.outcome.shared_ns += now_ns - since_ns;
            self.shared_since_ns = None;
        } else if !rivals.is_empty() && self.shared_since_ns.is_none() {
            self.shared_since_ns = Some(now_ns);
        }
        self.rivals = rivals;
    }

    /// It has ended.
    pub(super) fn finish(mut self, now_ns: u64) -> (JobOutcome, Option<JobLine>) {
        self.share(Vec::new(), now_ns);
        if self.held.is_some() {
            self.outcome.tree_ns += now_ns - self.tree_since_ns;
        }
        self.outcome.end_ns = now_ns;
        self.outcome.in_network_ns = self.tally.in_network_ns;
        self.outcome.operations_with = self.tally.with;
        self.outcome.operations_without = self.tally.without;
        if let Some(line) = &mut self.line {
            if let Some(last) = line.trees.last_mut() {
                last.to_ns = now_ns;
            }
            line.uses = self.tally.uses;
        }
        (self.outcome, self.line)
    }
}

/// Returns true if a job with these steps ever uses its tree under this policy, so that others must
/// mind it. With a plan, one that is as fast without leaves it to others.
pub(super) fn wants(policy: sharing::Policy, steps: &Steps) -> bool {
    match policy {
        sharing::Policy::None => false,
        sharing::Policy::Greedy | sharing::Policy::Mina => true,
        sharing::Policy::Plan => steps.gain_ns() > 0,
    }
}
