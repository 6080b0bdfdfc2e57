//! The event queue, and what each event does.

use super::around::Around;
use super::course::{Course, Kept, Next};
use super::outcome::{Costs, JobLine, JobOutcome, Outcome, Timeline};
use super::running::{Held, Mode, Running, wants};
use super::setting::{Checked, Setting, SettingError, Ties};
use super::sharers::{JobIndex, Sharers};
use olaf_sched::placement::{NoRoom, Placer};
use olaf_sched::sharing::{Scope, decide_among};
use olaf_sched::trees::{Arrival, Change, Config, Conflicts, Forest, Solve};
use olaf_sched::{Capacity, JobId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// Nanoseconds since some time: the driver's, to say what decisions cost. One that always says 0
/// will do.
pub type Clock<'a> = &'a mut dyn FnMut() -> u64;

/// What a turn of [`Simulation::advance`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// An operation started or ended.
    Operation,
    /// Jobs began or ended: this may have taken long.
    Jobs,
    /// Nothing: all jobs are over.
    Done,
}

/// Phases of an instant, see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Ends,
    Changes,
    Starts,
}

/// In the order in which they happen. A change is nobody's: its job and stamp are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u64,
    phase: Phase,
    job: JobIndex,
    stamp: u32,
}

/// A run under way.
pub struct Simulation {
    checked: Checked,
    placer: Placer,
    forest: Forest,
    /// Asked for better trees when jobs arrive, if the policy is to.
    solver: Option<Box<dyn Solve + Send>>,
    sharers: Sharers,
    /// By what trees are judged.
    judge: Capacity,
    window: Kept,
    now_ns: u64,
    /// The first job in line, and since when it is the first.
    head: usize,
    head_since_ns: u64,
    /// Of each job of the list, while it runs.
    running: Vec<Option<Box<Running>>>,
    count: u64,
    /// Of each resource: units that all-reduces of jobs among others use now.
    in_use: Vec<u32>,
    /// Of each resource: units that they use by a tree that is no longer theirs.
    stale: Vec<u32>,
    events: BinaryHeap<Reverse<Event>>,
    /// Jobs that ended at this instant.
    ended: Vec<JobIndex>,
    /// Jobs whose surroundings changed at this instant.
    unsettled: BTreeSet<JobIndex>,
    lines: Vec<Option<JobLine>>,
    outcome: Outcome,
    costs: Costs,
}

impl Simulation {
    /// All jobs wait in line at time 0.
    ///
    /// # Errors
    /// What of the setting cannot be, and where.
    pub fn new(setting: Setting) -> Result<Self, SettingError> {
        let checked = setting.check()?;
        let Checked { setting, topology, .. } = &checked;
        let judge = match (setting.conflicts, setting.capacity) {
            (Conflicts::Switch, Capacity::PerPort(units)) => Capacity::PerSwitch(units),
            (_, capacity) => capacity,
        };
        let config = Config {
            capacity: setting.capacity,
            policy: setting.trees,
            conflicts: setting.conflicts,
            seed: setting.seed,
        };
        let resources = setting.capacity.resources(topology);
        let jobs = setting.jobs.len();
        let window = setting.timeline.map(|window| (window.from_ns, window.to_ns));
        let mut events = BinaryHeap::new();
        events.push(Reverse(Event { at_ns: 0, phase: Phase::Changes, job: 0, stamp: 0 }));
        Ok(Self {
            placer: Placer::new(topology, setting.placement),
            forest: Forest::with(Arc::clone(topology), config),
            solver: None,
            sharers: Sharers::new(judge.resources(topology), judge.units()),
            judge,
            window,
            now_ns: 0,
            head: 0,
            head_since_ns: 0,
            running: std::iter::repeat_with(|| None).take(jobs).collect(),
            count: 0,
            in_use: vec![0; resources],
            stale: vec![0; resources],
            events,
            ended: Vec::new(),
            unsettled: BTreeSet::new(),
            lines: if window.is_some() { vec![None; jobs] } else { Vec::new() },
            outcome: Outcome { jobs: vec![JobOutcome::default(); jobs], ..Outcome::default() },
            costs: Costs::default(),
            checked,
        })
    }

    /// The same, with a solver for trees that are to be exact.
    #[must_use]
    pub fn with_solver(self, solver: Box<dyn Solve + Send>) -> Self {
        Self { solver: Some(solver), ..self }
    }

    /// Takes one event from the queue.
    pub fn advance(&mut self, clock: Clock<'_>) -> Advanced {
        loop {
            let Some(Reverse(event)) = self.events.pop() else {
                return Advanced::Done;
            };
            self.now_ns = event.at_ns;
            if event.phase == Phase::Changes {
                self.change(clock);
                return Advanced::Jobs;
            }
            let job = event.job;
            let Some(running) = &mut self.running[job as usize] else { continue };
            if running.stamp != event.stamp {
                continue;
            }
            self.outcome.events += 1;
            match event.phase {
                Phase::Ends => self.end(job),
                Phase::Starts => self.start(job),
                Phase::Changes => unreachable!("it is nobody's"),
            }
            return Advanced::Operation;
        }
    }

    /// How far it is: jobs that are over, jobs that run, and the virtual time.
    #[must_use]
    pub fn progress(&self) -> (u64, u64, u64) {
        (self.head as u64 - self.count, self.count, self.now_ns)
    }

    /// What it came to, once all jobs are over, and what it cost.
    ///
    /// # Panics
    /// When they are not.
    #[must_use]
    pub fn finish(mut self) -> (Outcome, Costs) {
        assert!(self.events.is_empty() && self.count == 0, "all jobs are over");
        let jobs = &self.outcome.jobs;
        self.outcome.makespan_ns = jobs.iter().map(|job| job.end_ns).max().unwrap_or(0);
        self.outcome.operations =
            jobs.iter().map(|job| job.operations_with + job.operations_without).sum();
        self.outcome.hosts = self.checked.topology.hosts().len() as u64;
        if self.window.is_some() {
            let topology = &self.checked.topology;
            self.outcome.timeline = Some(Timeline {
                hosts: u32::try_from(topology.hosts().len()).expect("fewer than 2^32"),
                switches: topology.switches().iter().map(|s| s.name.clone()).collect(),
                tor_of: topology.hosts().iter().map(|h| topology.link(h.up[0]).parent.0).collect(),
                window: self.checked.setting.timeline,
                jobs: self.lines.into_iter().map(Option::unwrap_or_default).collect(),
            });
        }
        (self.outcome, self.costs)
    }

    // Phase 1.

    fn end(&mut self, job: JobIndex) {
        let now_ns = self.now_ns;
        let running = self.running[job as usize].as_deref_mut().expect("looked at before");
        if let Mode::Alone { in_network } = running.mode {
            let over = running.course.advance(now_ns, in_network, &mut running.tally, self.window);
            assert!(over, "its end was computed");
            self.over(job);
            return;
        }
        let ended = running.course.end(now_ns, &mut running.tally, self.window);
        if ended.in_network {
            self.release(job);
        }
        if ended.job {
            self.over(job);
        } else {
            self.schedule(job);
        }
    }

    fn over(&mut self, job: JobIndex) {
        self.ended.push(job);
        self.change_at(self.now_ns);
    }

    /// The all-reduce that used the switches has ended, or nobody needs to know of it any more.
    fn release(&mut self, job: JobIndex) {
        let running = self.running[job as usize].as_deref_mut().expect("it runs");
        let using = running.using.take().expect("what is in the network uses its tree");
        for &resource in &*using.resources {
            self.in_use[resource as usize] -= 1;
        }
        if std::mem::take(&mut running.stale) {
            running.usable_ns = self.now_ns + self.checked.setting.migration_ns;
            for &resource in &*using.resources {
                self.stale[resource as usize] -= 1;
            }
            let usable_ns = running.usable_ns;
            self.unsettled.insert(job);
            self.sharers.add_holders(&using.judged, &mut self.unsettled);
            self.change_at(self.now_ns);
            self.change_at(usable_ns);
        }
    }

    // Phase 3.

    fn start(&mut self, job: JobIndex) {
        let in_network = self.may_use(job);
        let running = self.running[job as usize].as_deref_mut().expect("looked at before");
        running.course.start(self.now_ns, in_network);
        if in_network {
            self.occupy(job);
        }
        self.schedule(job);
    }

    fn may_use(&self, job: JobIndex) -> bool {
        let setting = &self.checked.setting;
        let me = self.running[job as usize].as_deref().expect("it runs");
        let Some(held) = &me.held else { return false };
        if me.usable_ns > self.now_ns || !wants(setting.sharing, &me.course.steps) {
            return false;
        }
        let units = setting.capacity.units();
        if held.resources.iter().any(|&resource| self.in_use[resource as usize] >= units) {
            return false;
        }
        let seen = match setting.sharing.scope() {
            _ if me.rivals.is_empty() => return true,
            Scope::Nobody => &[],
            Scope::Conflicting => me.rivals.as_slice(),
            Scope::Group => me.group.as_slice(),
        };
        let rivals = seen.iter().map(|&rival| {
            self.running[rival as usize].as_deref().expect("a rival runs").seen(rival)
        });
        let rivals = rivals.collect::<Vec<_>>();
        let surroundings = Around { running: &self.running, rivals: seen, asking: job };
        decide_among(setting.sharing, self.now_ns, &me.seen(job), &rivals, &surroundings).in_network
    }

    /// An all-reduce of the job uses its tree.
    fn occupy(&mut self, job: JobIndex) {
        let units = self.checked.setting.capacity.units();
        let running = self.running[job as usize].as_deref_mut().expect("it runs");
        let held = running.held.clone().expect("only a tree is used");
        for &resource in &*held.resources {
            let used = &mut self.in_use[resource as usize];
            *used += 1;
            assert!(*used <= units, "resource {resource} is used beyond its capacity");
        }
        running.using = Some(held);
    }

    // Phase 2.

    fn change(&mut self, clock: Clock<'_>) {
        let ended = std::mem::take(&mut self.ended);
        let each = |jobs: Vec<JobIndex>| jobs.into_iter().map(|job| vec![job]).collect();
        let turns: Vec<Vec<JobIndex>> = match self.checked.setting.ties {
            _ if self.now_ns == 0 => vec![Vec::new()],
            _ if ended.is_empty() => Vec::new(),
            Ties::Together => vec![ended],
            Ties::Forwards => each(ended),
            Ties::Backwards => each(ended.into_iter().rev().collect()),
        };
        // What counts is what a job has in the end.
        let mut changes = BTreeMap::new();
        for turn in turns {
            for change in self.turn(turn, clock) {
                changes.insert(change.job, change);
            }
        }
        for change in changes.values() {
            self.take(change);
        }
        self.settle();
    }

    /// These leave, and those at the head of the line arrive.
    fn turn(&mut self, ended: Vec<JobIndex>, clock: Clock<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        for job in ended {
            let begin = clock();
            changes.extend(self.leave(job));
            self.costs.leave_ns.push(clock() - begin);
        }
        let arrivals = self.place(clock);
        if !arrivals.is_empty() {
            let begin = clock();
            changes.extend(match &mut self.solver {
                Some(solver) => self.forest.arrive_with(arrivals, solver.as_mut()),
                None => self.forest.arrive(arrivals),
            });
            self.costs.trees_ns.push(clock() - begin);
            self.outcome.rebuilds += 1;
        }
        changes
    }

    fn leave(&mut self, job: JobIndex) -> Vec<Change> {
        let running = self.running[job as usize].take().expect("it ended just now");
        self.count -= 1;
        self.unsettled.remove(&job);
        self.unsettled.extend(&running.rivals);
        if let Some(held) = running.held.as_ref()
            && wants(self.checked.setting.sharing, &running.course.steps)
        {
            self.sharers.leave(job, &held.judged);
        }
        self.placer.release(&running.hosts);
        let (outcome, line) = running.finish(self.now_ns);
        self.outcome.jobs[job as usize] = outcome;
        if line.is_some() {
            self.lines[job as usize] = line;
        }
        self.forest.leave(JobId(job.into()))
    }

    /// Those at the head of the line for which there is room.
    fn place(&mut self, clock: Clock<'_>) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        while self.head < self.checked.setting.jobs.len() {
            let job = self.checked.setting.jobs[self.head];
            let begin = clock();
            let placement = match self.placer.place(job.hosts) {
                Ok(placement) => placement,
                Err(NoRoom::Busy { .. }) => break,
                Err(error) => unreachable!("the setting was checked: {error}"),
            };
            self.costs.placement_ns.push(clock() - begin);
            let steps = Arc::clone(&self.checked.steps[self.head]);
            let saved_ns = u128::from(steps.gain_ns()) * u128::from(job.hosts);
            let gain = saved_ns * 1_000_000_000 / u128::from(steps.none_ns);
            let index = u32::try_from(self.head).expect("fewer than 2^32 jobs, checked");
            arrivals.push(Arrival {
                job: JobId(index.into()),
                hosts: placement.hosts.clone(),
                units: 1,
                gain: u64::try_from(gain).unwrap_or(u64::MAX),
            });
            let outcome = JobOutcome {
                queued_ns: self.head_since_ns,
                start_ns: self.now_ns,
                none_ns: steps.none_ns * job.steps,
                all_ns: steps.all_ns * job.steps,
                ..JobOutcome::default()
            };
            let line = self.window.map(|_| JobLine {
                hosts: placement.hosts.iter().map(|host| host.0).collect(),
                placement: Some(placement.reason),
                ..JobLine::default()
            });
            let course = Course::new(steps, job.steps, self.now_ns);
            let running = Running::new(placement.hosts, course, outcome, line);
            self.running[self.head] = Some(Box::new(running));
            self.unsettled.insert(index);
            self.count += 1;
            self.outcome.most_running = self.outcome.most_running.max(self.count);
            self.head += 1;
            self.head_since_ns = self.now_ns;
        }
        arrivals
    }

    /// A job's tree is another one.
    fn take(&mut self, change: &Change) {
        let job = u32::try_from(change.job.0).expect("it is an index");
        let setting = &self.checked.setting;
        // One that ended at this instant may have been given a tree by another's end.
        let Some(running) = self.running[job as usize].as_deref() else { return };
        let same = running.held.as_ref().map(|held| &held.tree) == change.to.as_ref();
        if same && running.line.as_ref().is_none_or(|line| !line.trees.is_empty()) {
            return;
        }
        let wants = wants(setting.sharing, &running.course.steps);
        self.awaken(job);
        let held = change.to.as_ref().map(|tree| Held {
            tree: Arc::clone(tree),
            resources: tree.resources(self.checked.setting.capacity).into(),
            judged: tree.resources(self.judge).into(),
        });
        let migration_ns = self.checked.setting.migration_ns;
        let running = self.running[job as usize].as_deref_mut().expect("looked at before");
        if let Some(before) = running.held.as_ref().filter(|_| wants) {
            self.sharers.leave(job, &before.judged);
            self.sharers.add_holders(&before.judged, &mut self.unsettled);
        }
        if let Some(held) = held.as_ref().filter(|_| wants) {
            self.sharers.add_holders(&held.judged, &mut self.unsettled);
            self.sharers.join(job, &held.judged);
        }
        self.unsettled.insert(job);
        if running.outcome.start_ns < self.now_ns {
            running.usable_ns = self.now_ns + migration_ns;
        }
        running.take(held, &change.reason, self.now_ns);
        let usable_ns = running.usable_ns;
        if let Some(using) = running.using.as_ref().filter(|_| !running.stale) {
            running.stale = true;
            for &resource in &*using.resources {
                self.stale[resource as usize] += 1;
            }
        } else if usable_ns > self.now_ns {
            self.change_at(usable_ns);
        }
    }

    /// Those whose surroundings changed: who are their rivals now, and can they go alone?
    fn settle(&mut self) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let mut regrouped = Vec::new();
        for &job in &unsettled {
            let Some(running) = self.running[job as usize].as_deref() else { continue };
            let wants = wants(self.checked.setting.sharing, &running.course.steps);
            let rivals = match &running.held {
                Some(held) if wants => self.sharers.rivals(job, &held.judged),
                _ => Vec::new(),
            };
            if rivals != running.rivals {
                self.awaken(job);
                let running = self.running[job as usize].as_deref_mut().expect("it runs");
                running.share(rivals, self.now_ns);
                regrouped.push(job);
            }
        }
        if self.checked.setting.sharing.scope() == Scope::Group {
            self.regroup(&regrouped);
        }
        for job in unsettled {
            if self.running[job as usize].is_some() {
                self.settle_one(job);
            }
        }
    }

    /// Sharing groups of all that these can reach.
    fn regroup(&mut self, jobs: &[JobIndex]) {
        let mut seen = BTreeSet::new();
        for &job in jobs {
            if seen.contains(&job) {
                continue;
            }
            let mut group = BTreeSet::from([job]);
            let mut open = vec![job];
            while let Some(job) = open.pop() {
                let running = self.running[job as usize].as_deref().expect("a rival runs");
                open.extend(running.rivals.iter().filter(|&&rival| group.insert(rival)));
            }
            for &member in &group {
                let others = group.iter().copied().filter(|&other| other != member).collect();
                self.running[member as usize].as_deref_mut().expect("it runs").group = others;
            }
            seen.extend(group);
        }
    }

    fn settle_one(&mut self, job: JobIndex) {
        let sharing = self.checked.setting.sharing;
        let running = self.running[job as usize].as_deref().expect("looked at before");
        let wants = wants(sharing, &running.course.steps);
        let mode = match &running.held {
            _ if running.stale => Mode::Among,
            Some(held) if wants => {
                let waits = running.usable_ns > self.now_ns
                    || held.resources.iter().any(|&resource| self.stale[resource as usize] > 0);
                if waits || !running.rivals.is_empty() {
                    Mode::Among
                } else {
                    Mode::Alone { in_network: true }
                }
            }
            _ => Mode::Alone { in_network: false },
        };
        if mode == running.mode && running.stamp > 0 {
            return;
        }
        self.awaken(job);
        if mode != Mode::Among
            && self.running[job as usize].as_deref().is_some_and(|running| running.using.is_some())
        {
            self.release(job);
        }
        self.running[job as usize].as_deref_mut().expect("it runs").mode = mode;
        self.schedule(job);
    }

    /// Takes a job that went alone to this instant, and lets others see what it uses.
    fn awaken(&mut self, job: JobIndex) {
        let running = self.running[job as usize].as_deref_mut().expect("it runs");
        let Mode::Alone { in_network } = running.mode else { return };
        let over = running.course.advance(self.now_ns, in_network, &mut running.tally, self.window);
        assert!(!over, "its end is an event of its own");
        running.mode = Mode::Among;
        if running.course.in_network() {
            self.occupy(job);
        }
        self.schedule(job);
    }

    /// Puts the job's next event into the queue, in place of the one that may be there.
    fn schedule(&mut self, job: JobIndex) {
        let running = self.running[job as usize].as_deref_mut().expect("it runs");
        running.stamp += 1;
        let (at_ns, phase) = match running.mode {
            Mode::Alone { in_network } => (running.course.finish_ns(in_network), Phase::Ends),
            Mode::Among => match running.course.next() {
                Next::Start(at_ns) => (at_ns, Phase::Starts),
                Next::End(at_ns) => (at_ns, Phase::Ends),
                Next::Nothing => return,
            },
        };
        self.events.push(Reverse(Event { at_ns, phase, job, stamp: running.stamp }));
    }

    fn change_at(&mut self, at_ns: u64) {
        self.events.push(Reverse(Event { at_ns, phase: Phase::Changes, job: 0, stamp: 0 }));
    }
}
