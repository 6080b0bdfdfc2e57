//! The event queue, and what each event does.

use super::around::Around;
use super::course::{Kept, Next};
use super::outcome::{Costs, JobLine, JobOutcome, Outcome, Timeline};
use super::running::{Mode, Running, wants};
use super::setting::{Checked, Setting, SettingError};
use super::sharers::{JobIndex, Sharers};
use olaf_sched::Capacity;
use olaf_sched::placement::Placer;
use olaf_sched::sharing::{Scope, decide_among};
use olaf_sched::trees::{Config, Conflicts, Forest, Solve};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
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

/// In the order in which they happen. A change belongs to no job: its job and stamp are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at_ns: u64,
    phase: Phase,
    job: JobIndex,
    stamp: u32,
}

/// A run under way.
pub struct Simulation {
    pub(super) checked: Checked,
    pub(super) placer: Placer,
    pub(super) forest: Forest,
    /// Asked for better trees when jobs arrive, if the policy is to.
    pub(super) solver: Option<Box<dyn Solve + Send>>,
    pub(super) sharers: Sharers,
    /// By what trees are judged.
    pub(super) judge: Capacity,
    pub(super) window: Kept,
    pub(super) now_ns: u64,
    /// The first job in line, and since when it is the first.
    pub(super) head: usize,
    pub(super) head_since_ns: u64,
    /// Of each job of the list, while it runs.
    pub(super) running: Vec<Option<Box<Running>>>,
    pub(super) count: u64,
    /// Of each resource: units that all-reduces of jobs among others use now.
    in_use: Vec<u32>,
    /// Of each resource: units that they use by a tree that is no longer theirs.
    pub(super) stale: Vec<u32>,
    events: BinaryHeap<Reverse<Event>>,
    /// Jobs that ended at this instant.
    pub(super) ended: Vec<JobIndex>,
    /// Jobs whose surroundings changed at this instant.
    pub(super) unsettled: BTreeSet<JobIndex>,
    pub(super) lines: Vec<Option<JobLine>>,
    pub(super) outcome: Outcome,
    pub(super) costs: Costs,
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

    /// The all-reduce that used the switches has ended, or no job needs to know of it any more.
    pub(super) fn release(&mut self, job: JobIndex) {
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

    // Phase 3; the second is in `changes.rs`.

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

    /// Takes a job that went alone to this instant, and lets others see what it uses.
    pub(super) fn awaken(&mut self, job: JobIndex) {
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
    pub(super) fn schedule(&mut self, job: JobIndex) {
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

    pub(super) fn change_at(&mut self, at_ns: u64) {
        self.events.push(Reverse(Event { at_ns, phase: Phase::Changes, job: 0, stamp: 0 }));
    }
}
