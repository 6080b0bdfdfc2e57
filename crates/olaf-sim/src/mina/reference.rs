//! The same simulation, slow and obvious: every job operation by operation, every instant by
//! looking at all jobs, conflicts counted anew at each decision.

use super::outcome::{JobLine, JobOutcome, TreeSpan, Use};
use super::setting::{Checked, Setting, SettingError, Ties};
use olaf_sched::placement::Placer;
use olaf_sched::sharing::{self, Policy, Scope, Surroundings, decide_among};
use olaf_sched::trees::{Arrival, Change, Config, Conflicts, Forest};
use olaf_sched::{Capacity, HostId, JobId, Steps, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What must be the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) jobs: Vec<JobOutcome>,
    pub(super) lines: Vec<JobLine>,
}

struct Job {
    hosts: Vec<HostId>,
    steps: Arc<Steps>,
    left: u64,
    begin_ns: u64,
    /// The operation that runs, or starts next.
    operation: usize,
    ready_ns: u64,
    runs: Option<Runs>,
    tree: Option<Arc<Tree>>,
    usable_ns: u64,
    outcome: JobOutcome,
    line: JobLine,
}

struct Runs {
    since_ns: u64,
    until_ns: u64,
    /// By which tree the switches sum.
    tree: Option<Arc<Tree>>,
    /// The job was given another tree, or none, since: also if it then got this one again.
    changed: bool,
}

impl Job {
    fn operations_over(&self) -> bool {
        self.operation == self.steps.start_ns.len()
    }

    fn ends_ns(&self) -> Option<u64> {
        match &self.runs {
            Some(runs) => Some(runs.until_ns),
            None => self.operations_over().then(|| self.begin_ns + self.steps.compute_ns),
        }
    }

    fn starts_ns(&self) -> Option<u64> {
        let waits = self.runs.is_none() && !self.operations_over();
        waits.then(|| self.ready_ns.max(self.begin_ns + self.steps.start_ns[self.operation]))
    }

    fn seen(&self, job: usize) -> sharing::Running<'_> {
        sharing::Running {
            job: JobId(job as u64),
            steps: &self.steps,
            hosts: u32::try_from(self.hosts.len()).expect("few"),
            step_begin_ns: self.begin_ns,
            next: self.operation + usize::from(self.runs.is_some()),
            ready_ns: self.runs.as_ref().map_or(self.ready_ns, |runs| runs.until_ns),
            in_network_now: self.runs.as_ref().is_some_and(|runs| runs.tree.is_some()),
            running: self.runs.is_some(),
            steps_left: self.left,
        }
    }
}

struct Reference {
    checked: Checked,
    judge: Capacity,
    jobs: BTreeMap<usize, Job>,
    done: BTreeMap<usize, (JobOutcome, JobLine)>,
}

/// Runs all jobs to their ends.
pub(super) fn simulate(setting: Setting) -> Result<Plain, SettingError> {
    let checked = setting.check()?;
    let setting = checked.setting.clone();
    let judge = match (setting.conflicts, setting.capacity) {
        (Conflicts::Switch, Capacity::PerPort(units)) => Capacity::PerSwitch(units),
        (_, capacity) => capacity,
    };
    let mut placer = Placer::new(&checked.topology, setting.placement);
    let config = Config {
        capacity: setting.capacity,
        policy: setting.trees,
        conflicts: setting.conflicts,
        seed: setting.seed,
    };
    let mut forest = Forest::with(Arc::clone(&checked.topology), config);
    let mut this = Reference { checked, judge, jobs: BTreeMap::new(), done: BTreeMap::new() };
    let (mut head, mut head_since_ns, mut now_ns) = (0, 0, 0);
    let mut rivals_before = BTreeMap::new();
    loop {
        // Phase 1.
        let mut ended = Vec::new();
        let numbers: Vec<usize> = this.jobs.keys().copied().collect();
        for number in numbers {
            if this.jobs[&number].ends_ns() == Some(now_ns) && this.end(number, now_ns) {
                ended.push(number);
            }
        }
        // Phase 2.
        let mut changes: Vec<Change> = Vec::new();
        let mut turns = match setting.ties {
            Ties::Together => vec![ended.clone()],
            _ => ended.iter().map(|&number| vec![number]).collect(),
        };
        if setting.ties == Ties::Backwards {
            turns.reverse();
        }
        if now_ns == 0 {
            turns = vec![Vec::new()];
        }
        for turn in turns {
            for &number in &turn {
                placer.release(&this.jobs[&number].hosts);
                let mut job = this.jobs.remove(&number).expect("it ended");
                if job.tree.is_some() {
                    job.outcome.tree_ns += now_ns - job.line.trees.last().expect("one").from_ns;
                }
                job.outcome.end_ns = now_ns;
                job.line.trees.last_mut().expect("it had a say").to_ns = now_ns;
                this.done.insert(number, (job.outcome, job.line));
                changes.extend(forest.leave(JobId(number as u64)));
            }
            let mut arrivals = Vec::new();
            while let Some(job) = setting.jobs.get(head)
                && let Ok(placement) = placer.place(job.hosts)
            {
                let steps = Arc::clone(&this.checked.steps[head]);
                let host_ns = u128::from(steps.none_ns - steps.all_ns) * u128::from(job.hosts);
                arrivals.push(Arrival {
                    job: JobId(head as u64),
                    hosts: placement.hosts.clone(),
                    units: 1,
                    gain: (host_ns * 1_000_000_000 / u128::from(steps.none_ns)) as u64,
                });
                let job = Job {
                    left: job.steps,
                    begin_ns: now_ns,
                    operation: 0,
                    ready_ns: now_ns,
                    runs: None,
                    tree: None,
                    usable_ns: now_ns,
                    outcome: JobOutcome {
                        queued_ns: head_since_ns,
                        start_ns: now_ns,
                        none_ns: steps.none_ns * job.steps,
                        all_ns: steps.all_ns * job.steps,
                        ..JobOutcome::default()
                    },
                    line: JobLine {
                        hosts: placement.hosts.iter().map(|host| host.0).collect(),
                        placement: Some(placement.reason),
                        ..JobLine::default()
                    },
                    steps,
                    hosts: placement.hosts,
                };
                this.jobs.insert(head, job);
                head += 1;
                head_since_ns = now_ns;
            }
            if !arrivals.is_empty() {
                changes.extend(forest.arrive(arrivals));
            }
        }
        this.take(changes, now_ns);
        this.count_sharing(&mut rivals_before, &ended, now_ns);
        // Phase 3.
        let numbers: Vec<usize> = this.jobs.keys().copied().collect();
        for number in numbers {
            if this.jobs[&number].starts_ns() == Some(now_ns) {
                this.start(number, now_ns);
            }
        }
        this.check_capacity();
        let next = this.jobs.values().filter_map(|job| job.ends_ns().or(job.starts_ns())).min();
        match next {
            Some(next_ns) => now_ns = next_ns,
            None => break,
        }
    }
    let (jobs, lines) = this.done.into_values().unzip();
    Ok(Plain { jobs, lines })
}

impl Reference {
    /// Returns whether the job is over.
    fn end(&mut self, number: usize, now_ns: u64) -> bool {
        let setting = &self.checked.setting;
        let job = self.jobs.get_mut(&number).expect("it runs");
        if let Some(runs) = job.runs.take() {
            if runs.tree.is_some() {
                job.outcome.operations_with += 1;
                job.outcome.in_network_ns += now_ns - runs.since_ns;
                let window = setting.timeline.expect("the reference keeps lines");
                if runs.since_ns < window.to_ns && now_ns > window.from_ns {
                    job.line.uses.push(Use { from_ns: runs.since_ns, to_ns: now_ns });
                }
                if runs.changed {
                    job.usable_ns = now_ns + setting.migration_ns;
                }
            } else {
                job.outcome.operations_without += 1;
            }
            job.operation += 1;
            job.ready_ns = now_ns;
            if !job.operations_over() || now_ns < job.begin_ns + job.steps.compute_ns {
                return false;
            }
        }
        job.left -= 1;
        job.begin_ns = now_ns;
        job.ready_ns = now_ns;
        job.operation = 0;
        job.left == 0
    }

    fn take(&mut self, changes: Vec<Change>, now_ns: u64) {
        let last: BTreeMap<JobId, Change> =
            changes.into_iter().map(|change| (change.job, change)).collect();
        for (number, change) in last {
            let Some(job) = self.jobs.get_mut(&(number.0 as usize)) else { continue };
            let new = job.outcome.start_ns == now_ns;
            if job.tree == change.to && !job.line.trees.is_empty() {
                continue;
            }
            match (&job.tree, &change.to) {
                (Some(_), Some(_)) => job.outcome.moved += 1,
                (Some(_), None) => job.outcome.lost += 1,
                (None, Some(_)) if !new => job.outcome.gained += 1,
                _ => {}
            }
            if let Some(span) = job.line.trees.last_mut() {
                span.to_ns = now_ns;
                if job.tree.is_some() {
                    job.outcome.tree_ns += now_ns - span.from_ns;
                }
            }
            let tree = change.to.as_ref();
            job.line.trees.push(TreeSpan {
                from_ns: now_ns,
                to_ns: now_ns,
                root: tree.map(|tree| tree.root.0),
                switches: tree
                    .map_or_else(Vec::new, |tree| tree.switches.iter().map(|s| s.0).collect()),
                reason: change.reason,
            });
            if !new {
                job.usable_ns = now_ns + self.checked.setting.migration_ns;
            }
            job.tree = change.to;
            if let Some(runs) = &mut job.runs {
                runs.changed = true;
            }
        }
    }

    fn wants(&self, job: &Job) -> bool {
        match self.checked.setting.sharing {
            Policy::None => false,
            Policy::Greedy | Policy::Mina => true,
            Policy::Plan => job.steps.none_ns > job.steps.all_ns,
        }
    }

    /// With whose trees the job's conflicts.
    fn rivals(&self, number: usize) -> BTreeSet<usize> {
        let wanted = |job: &Job| -> Vec<u32> {
            let tree = job.tree.as_ref().filter(|_| self.wants(job));
            tree.map_or_else(Vec::new, |tree| tree.resources(self.judge))
        };
        let mut rivals = BTreeSet::new();
        for resource in wanted(&self.jobs[&number]) {
            let holders = self.jobs.iter().filter(|(_, job)| wanted(job).contains(&resource));
            let holders: Vec<usize> = holders.map(|(&other, _)| other).collect();
            if holders.len() > self.judge.units() as usize {
                rivals.extend(holders);
            }
        }
        rivals.remove(&number);
        rivals
    }

    fn group(&self, number: usize) -> BTreeSet<usize> {
        let mut group = BTreeSet::from([number]);
        let mut open = vec![number];
        while let Some(member) = open.pop() {
            open.extend(self.rivals(member).into_iter().filter(|&rival| group.insert(rival)));
        }
        group.remove(&number);
        group
    }

    /// Adds to each job the time since its rivals, if it had any, came to be.
    fn count_sharing(&mut self, since: &mut BTreeMap<usize, u64>, ended: &[usize], now_ns: u64) {
        for number in ended {
            if let Some(since_ns) = since.remove(number) {
                self.done.get_mut(number).expect("it ended").0.shared_ns += now_ns - since_ns;
            }
        }
        let shares: BTreeSet<usize> =
            self.jobs.keys().copied().filter(|&number| !self.rivals(number).is_empty()).collect();
        for (&number, job) in &mut self.jobs {
            if shares.contains(&number) {
                since.entry(number).or_insert(now_ns);
            } else if let Some(since_ns) = since.remove(&number) {
                job.outcome.shared_ns += now_ns - since_ns;
            }
        }
    }

    /// Of each resource, how many all-reduces use it now.
    fn used(&self) -> BTreeMap<u32, u32> {
        let mut used = BTreeMap::new();
        let trees = self.jobs.values().filter_map(|job| job.runs.as_ref()?.tree.as_ref());
        for resource in trees.flat_map(|tree| tree.resources(self.checked.setting.capacity)) {
            *used.entry(resource).or_default() += 1;
        }
        used
    }

    fn check_capacity(&self) {
        let units = self.checked.setting.capacity.units();
        assert!(self.used().values().all(|&used| used <= units), "beyond capacity");
    }

    fn may_use(&self, number: usize, now_ns: u64) -> bool {
        let setting = &self.checked.setting;
        let me = &self.jobs[&number];
        let Some(tree) = &me.tree else { return false };
        let used = self.used();
        let free = |resource| used.get(resource).copied().unwrap_or(0) < setting.capacity.units();
        if !self.wants(me)
            || me.usable_ns > now_ns
            || !tree.resources(setting.capacity).iter().all(free)
        {
            return false;
        }
        if self.rivals(number).is_empty() {
            return true;
        }
        let seen = match setting.sharing.scope() {
            Scope::Nobody => BTreeSet::new(),
            Scope::Conflicting => self.rivals(number),
            Scope::Group => self.group(number),
        };
        let rivals: Vec<_> = seen.iter().map(|other| self.jobs[other].seen(*other)).collect();
        let around = Around { this: self, seen: seen.into_iter().collect(), asking: number };
        decide_among(setting.sharing, now_ns, &me.seen(number), &rivals, &around).in_network
    }

    fn start(&mut self, number: usize, now_ns: u64) {
        let in_network = self.may_use(number, now_ns);
        let job = self.jobs.get_mut(&number).expect("it runs");
        let durations = if in_network { &job.steps.with_ns } else { &job.steps.without_ns };
        job.runs = Some(Runs {
            since_ns: now_ns,
            until_ns: now_ns + durations[job.operation],
            tree: job.tree.clone().filter(|_| in_network),
            changed: false,
        });
    }
}

/// What a policy may ask about those that it sees.
struct Around<'a> {
    this: &'a Reference,
    seen: Vec<usize>,
    asking: usize,
}

impl Surroundings for Around<'_> {
    fn conflict(&self, a: usize, b: usize) -> bool {
        self.this.rivals(self.seen[a]).contains(&self.seen[b])
    }

    fn free_ns(&self, rival: usize) -> u64 {
        let others = self.this.rivals(self.seen[rival]).into_iter();
        let others = others.filter(|&other| other != self.asking);
        let runs = others.filter_map(|other| self.this.jobs[&other].runs.as_ref());
        runs.filter(|runs| runs.tree.is_some()).map(|runs| runs.until_ns).max().unwrap_or(0)
    }
}
