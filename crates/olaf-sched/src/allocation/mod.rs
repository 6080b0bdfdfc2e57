//! The allocation controller's state machine (MINA §IV-A): commands in, events and orders out.
//!
//! An [`Allocator`] queues jobs, gives the head its hosts ([`Placer`](crate::placement::Placer))
//! as soon as there are enough, plans trees ([`Forest`](crate::trees::Forest)) and moves the
//! running jobs from the trees that they hold to those that are planned, in two phases and
//! without a stop ([`Holds`]). The same commands give the same state, so that a service need only
//! keep the commands.
//!
//! The queue is strict: jobs begin in the order of submission and the head waits for its hosts, as
//! in MINA's simulation (§V-A). Nobody overtakes it (no backfill): that needs to know how long
//! jobs take, and a job that waits for many hosts would wait for ever without.

mod command;
mod event;
mod explain;
mod holds;
mod job;
mod snapshot;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use command::{Command, MOST_TEXT, Refusal, Request};
pub use event::{Event, TreeView, Waiting};
pub use explain::{Blocked, ClusterView, Explanation, HeldView, JobView, Wait};
pub use holds::{Hold, Holds, Phase};
pub use job::{Job, State};
pub use snapshot::{Snapshot, SnapshotError};

use crate::placement::{self, Placer};
use crate::topology::Topology;
use crate::trees::{self, Arrival, Change, Forest};
use crate::{AllReduceSpeed, Capacity, HostId, JobId, Pattern, Steps, SwitchId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What an allocator decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What a switch or port can sum for.
    pub capacity: Capacity,
    /// How hosts are chosen.
    pub placement: placement::Policy,
    /// How trees are.
    pub trees: trees::Policy,
    /// Of what is drawn for trees.
    pub seed: u64,
    /// How many jobs may wait; more are refused.
    pub most_queued: usize,
    /// How many jobs that have ended are remembered.
    pub most_ended: usize,
}

impl Config {
    const fn forest(&self) -> trees::Config {
        trees::Config {
            capacity: self.capacity,
            policy: self.trees,
            conflicts: trees::Conflicts::Capacity,
            seed: self.seed,
        }
    }
}

/// What a job wins by its tree, in host-nanoseconds a second of running; what a policy may weigh.
#[must_use]
pub fn gain(pattern: &Pattern, network: &AllReduceSpeed, hosts: u32) -> u64 {
    let steps = Steps::new(pattern, network, hosts);
    let won = u128::from(steps.gain_ns()) * u128::from(hosts) * 1_000_000_000;
    u64::try_from(won / u128::from(steps.none_ns.max(1))).unwrap_or(u64::MAX)
}

/// The controller's state. See the module's text.
#[derive(Clone, Debug)]
pub struct Allocator {
    topology: Arc<Topology>,
    config: Config,
    switches: BTreeMap<String, SwitchId>,
    hosts: BTreeMap<String, HostId>,
    placer: Placer,
    forest: Forest,
    holds: Holds,
    jobs: BTreeMap<JobId, Job>,
    next: JobId,
    queue: VecDeque<JobId>,
    running: BTreeSet<JobId>,
    /// Those that shall have a tree and hold none.
    wanting: BTreeSet<JobId>,
    /// The oldest first.
    ended: VecDeque<JobId>,
    drained_switches: BTreeSet<SwitchId>,
    drained_hosts: BTreeSet<HostId>,
}

/// What came of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// The job that was submitted.
    pub submitted: Option<JobId>,
    /// Whether anything is different now. A repeated acknowledgement changes nothing.
    pub changed: bool,
    /// In the order in which they happened.
    pub events: Vec<Event>,
}

impl Allocator {
    /// All hosts are free, no job waits.
    #[must_use]
    pub fn new(topology: Arc<Topology>, config: Config) -> Self {
        let switches = topology.switches().iter().zip(0u32..);
        let switches = switches.map(|(switch, n)| (switch.name.clone(), SwitchId(n))).collect();
        let hosts = topology.hosts().iter().zip(0u32..);
        let hosts = hosts.map(|(host, n)| (host.name.clone(), HostId(n))).collect();
        Self {
            placer: Placer::new(&topology, config.placement),
            forest: Forest::with(Arc::clone(&topology), config.forest()),
            holds: Holds::new(&topology, config.capacity, config.trees.shares()),
            switches,
            hosts,
            jobs: BTreeMap::new(),
            next: JobId(1),
            queue: VecDeque::new(),
            running: BTreeSet::new(),
            wanting: BTreeSet::new(),
            ended: VecDeque::new(),
            drained_switches: BTreeSet::new(),
            drained_hosts: BTreeSet::new(),
            topology,
            config,
        }
    }

    /// One step. `now_ms` is only remembered: nothing depends on it.
    ///
    /// # Errors
    /// When the command cannot be; nothing has changed then.
    pub fn apply(&mut self, now_ms: u64, command: &Command) -> Result<Outcome, Refusal> {
        let mut out = Outcome { changed: true, ..Outcome::default() };
        match command {
            Command::Submit(request) => self.submit(now_ms, request, &mut out)?,
            Command::Finish { job } => {
                let state = match self.running(*job)?.state {
                    State::Stopping => State::Cancelled,
                    _ => State::Finished,
                };
                self.end(now_ms, *job, state, None, &mut out);
            }
            Command::Fail { job, reason } => {
                text("reason", reason)?;
                self.fail(now_ms, *job, reason.clone(), &mut out)?;
            }
            Command::Cancel { job } => self.cancel(now_ms, *job, &mut out)?,
            Command::Released { job, generation } => {
                self.given(*job, *generation)?;
                out.changed = self.holds.released(*job, *generation);
            }
            Command::Acquired { job, generation } => {
                let newest = self.given(*job, *generation)?;
                let held = self.holds.of(*job).map(|hold| hold.generation);
                if *generation == newest && held != Some(newest) && self.running.contains(job) {
                    return Err(Refusal::NotAsked { job: *job, generation: newest });
                }
                out.changed = self.holds.acquired(*job, *generation);
            }
            Command::DrainSwitch { switch } => self.drain_switch(switch, true, &mut out)?,
            Command::UndrainSwitch { switch } => self.drain_switch(switch, false, &mut out)?,
            Command::DrainHost { host } => {
                let host = self.host(host)?;
                self.drain_host(host, &mut out);
            }
            Command::UndrainHost { host } => {
                let host = self.host(host)?;
                out.changed = self.placer.undrain(host);
                if out.changed {
                    self.drained_hosts.remove(&host);
                    let name = self.topology.hosts()[host.index()].name.clone();
                    out.events.push(Event::Drained { name, drained: false });
                }
            }
            Command::HostLost { host } => {
                let host = self.host(host)?;
                let victim = self.tenant(host);
                self.drain_host(host, &mut out);
                if let Some(job) = victim {
                    let name = &self.topology.hosts()[host.index()].name;
                    self.fail(now_ms, job, format!("its host {name} was lost"), &mut out)?;
                }
                out.changed |= victim.is_some();
            }
        }
        if out.changed {
            self.start_those_that_fit(now_ms, &mut out);
            self.give_what_is_free(&mut out);
        }
        Ok(out)
    }

    // Jobs come and go.

    /// That a job may ask for this, here, at any time.
    fn may_ask(&self, request: &Request) -> Result<(), Refusal> {
        text("name", &request.name)?;
        if let Some(pattern) = &request.pattern {
            text("pattern", pattern)?;
        }
        let cluster = u32::try_from(self.topology.hosts().len()).expect("fewer than 2^32 hosts");
        if request.hosts == 0 || request.hosts > cluster {
            return Err(Refusal::Hosts { hosts: request.hosts, cluster });
        }
        let capacity = self.config.capacity.units();
        if request.units == 0 || request.units > capacity {
            return Err(Refusal::Units { units: request.units, capacity });
        }
        if request.steps == Some(0) {
            return Err(Refusal::Steps);
        }
        Ok(())
    }

    fn submit(&mut self, now_ms: u64, request: &Request, out: &mut Outcome) -> Result<(), Refusal> {
        self.may_ask(request)?;
        if self.queue.len() >= self.config.most_queued {
            return Err(Refusal::QueueFull { waiting: self.queue.len() });
        }
        let job = self.next;
        self.next = JobId(job.0 + 1);
        self.jobs.insert(job, Job::new(request.clone(), now_ms));
        self.queue.push_back(job);
        out.submitted = Some(job);
        Ok(())
    }

    fn cancel(&mut self, now_ms: u64, job: JobId, out: &mut Outcome) -> Result<(), Refusal> {
        match self.job(job).ok_or(Refusal::NoJob { job })?.state {
            State::Queued => {
                self.queue.retain(|waiting| *waiting != job);
                self.ended(now_ms, job, State::Cancelled, None, out);
            }
            State::Running => {
                self.jobs.get_mut(&job).expect("looked up above").state = State::Stopping;
                out.events.push(Event::Stop { job });
            }
            State::Stopping => out.changed = false,
            state => return Err(Refusal::NotNow { job, state }),
        }
        Ok(())
    }

    fn fail(
        &mut self,
        now_ms: u64,
        job: JobId,
        reason: String,
        out: &mut Outcome,
    ) -> Result<(), Refusal> {
        match self.job(job).ok_or(Refusal::NoJob { job })?.state {
            State::Queued => {
                self.queue.retain(|waiting| *waiting != job);
                self.ended(now_ms, job, State::Failed, Some(reason), out);
            }
            State::Running | State::Stopping => {
                self.end(now_ms, job, State::Failed, Some(reason), out);
            }
            state => return Err(Refusal::NotNow { job, state }),
        }
        Ok(())
    }

    /// A job with hosts ends.
    fn end(
        &mut self,
        now_ms: u64,
        job: JobId,
        state: State,
        note: Option<String>,
        out: &mut Outcome,
    ) {
        let hosts = self.jobs[&job].hosts.clone();
        self.placer.release(&hosts);
        self.running.remove(&job);
        self.wanting.remove(&job);
        self.ended(now_ms, job, state, note, out);
        if state == State::Failed {
            // It may still be sending: its resources are given on when the switches refuse it.
            if let Some(generation) = self.holds.leave(job, Phase::Fencing) {
                out.events.push(Event::Fence { job, generation });
            }
        } else {
            self.holds.drop(job);
        }
        let changes = self.forest.leave(job);
        self.plan(changes, out);
    }

    fn ended(
        &mut self,
        now_ms: u64,
        job: JobId,
        state: State,
        note: Option<String>,
        out: &mut Outcome,
    ) {
        let record = self.jobs.get_mut(&job).expect("a job that ends is known");
        record.state = state;
        record.ended_ms = Some(now_ms);
        record.note.clone_from(&note);
        record.tree = None;
        out.events.push(Event::Ended { job, state, note });
        self.ended.push_back(job);
        while self.ended.len() > self.config.most_ended {
            // A job that is not fenced yet is remembered longer: the fencing process asks for it.
            let known = |job: &JobId| self.holds.of(*job).is_none();
            let Some(at) = self.ended.iter().position(known) else { break };
            let oldest = self.ended.remove(at).expect("its place was just found");
            self.jobs.remove(&oldest);
        }
    }

    // Switches and hosts come and go.

    fn drain_switch(&mut self, name: &str, drain: bool, out: &mut Outcome) -> Result<(), Refusal> {
        let no_node = || Refusal::NoNode { what: "switch", name: name.to_owned() };
        let switch = *self.switches.get(name).ok_or_else(no_node)?;
        out.changed = if drain {
            self.drained_switches.insert(switch)
        } else {
            self.drained_switches.remove(&switch)
        };
        if out.changed {
            out.events.push(Event::Drained { name: name.to_owned(), drained: drain });
            let changes =
                if drain { self.forest.drain_switch(switch) } else { self.forest.undrain(switch) };
            self.plan(changes, out);
        }
        Ok(())
    }

    fn drain_host(&mut self, host: HostId, out: &mut Outcome) {
        out.changed = self.placer.drain(host);
        if !out.changed {
            return;
        }
        self.drained_hosts.insert(host);
        let name = self.topology.hosts()[host.index()].name.clone();
        out.events.push(Event::Drained { name, drained: true });
    }

    // What follows from that.

    /// The head, and those behind it, as long as there are hosts for them.
    fn start_those_that_fit(&mut self, now_ms: u64, out: &mut Outcome) {
        let mut arrivals = Vec::new();
        while let Some(&job) = self.queue.front() {
            let record = self.jobs.get_mut(&job).expect("a job that waits is known");
            let Ok(placement) = self.placer.place(record.request.hosts) else { break };
            self.queue.pop_front();
            self.running.insert(job);
            record.state = State::Running;
            record.started_ms = Some(now_ms);
            record.hosts.clone_from(&placement.hosts);
            record.placed = Some(placement.reason.clone());
            let names = placement.hosts.iter();
            let names = names.map(|host| self.topology.hosts()[host.index()].name.clone());
            out.events.push(Event::Started {
                job,
                hosts: names.collect(),
                reason: placement.reason,
            });
            arrivals.push(Arrival {
                job,
                hosts: placement.hosts,
                units: record.request.units,
                gain: record.request.gain,
            });
        }
        if let Some(job) = out.submitted
            && let Some(position) = self.position(job)
        {
            out.events.push(Event::Queued { job, position, why: self.waiting(position) });
        }
        if !arrivals.is_empty() {
            let changes = self.forest.arrive(arrivals);
            self.plan(changes, out);
        }
    }

    /// First phase: a job that shall have another tree than it holds releases the one it holds.
    fn plan(&mut self, changes: Vec<Change>, out: &mut Outcome) {
        for Change { job, to, reason, .. } in changes {
            let Some(record) = self.jobs.get_mut(&job) else { continue };
            if record.generation > 0 && record.tree == to {
                continue;
            }
            record.generation += 1;
            let generation = record.generation;
            let root = to.as_ref().map(|tree| tree.root);
            let root = root.map(|root| self.topology.switches()[root.index()].name.clone());
            out.events.push(Event::Planned { job, generation, root, reason });
            record.tree = to;
            if record.tree.is_some() {
                self.wanting.insert(job);
            } else {
                self.wanting.remove(&job);
            }
            if let Some(generation) = self.holds.leave(job, Phase::Releasing) {
                self.jobs.get_mut(&job).expect("looked up above").migrations += 1;
                out.events.push(Event::Release { job, generation });
            }
        }
    }

    /// Second phase: a job that holds no tree gets its tree once all jobs that must leave the tree
    /// have left it.
    fn give_what_is_free(&mut self, out: &mut Outcome) {
        let mut given = Vec::new();
        for &job in &self.wanting {
            let record = &self.jobs[&job];
            let tree = record.tree.as_ref().expect("a job that wants has a tree planned");
            let units = record.request.units;
            if self.holds.of(job).is_some() || self.holds.waits_for(tree, units).is_some() {
                continue;
            }
            let generation = record.generation;
            self.holds.give(job, generation, Arc::clone(tree), units);
            out.events.push(Event::Acquire {
                job,
                generation,
                tree: TreeView::new(&self.topology, tree),
            });
            given.push(job);
        }
        for job in given {
            self.wanting.remove(&job);
        }
    }

    // Look-ups.

    /// A job that waits, runs, or ended not long ago.
    #[must_use]
    pub fn job(&self, job: JobId) -> Option<&Job> {
        self.jobs.get(&job)
    }

    /// All of them, in the order of submission.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &Job)> {
        self.jobs.iter().map(|(job, record)| (*job, record))
    }

    /// What the running jobs hold, and the dead ones that are not fenced.
    #[must_use]
    pub const fn holds(&self) -> &Holds {
        &self.holds
    }

    /// 1 is the head; none when it does not wait.
    #[must_use]
    pub fn position(&self, job: JobId) -> Option<usize> {
        self.queue.iter().position(|waiting| *waiting == job).map(|at| at + 1)
    }

    fn waiting(&self, position: usize) -> Waiting {
        let head = self.queue[0];
        if position > 1 {
            return Waiting::Behind { head };
        }
        Waiting::Hosts { hosts: self.jobs[&head].request.hosts, free: self.placer.free() }
    }

    fn running(&self, job: JobId) -> Result<&Job, Refusal> {
        let record = self.job(job).ok_or(Refusal::NoJob { job })?;
        if record.state.runs() {
            return Ok(record);
        }
        Err(Refusal::NotNow { job, state: record.state })
    }

    /// The newest generation, if `generation` was one of the job's.
    fn given(&self, job: JobId, generation: u64) -> Result<u64, Refusal> {
        let newest = self.job(job).ok_or(Refusal::NoJob { job })?.generation;
        if generation == 0 || generation > newest {
            return Err(Refusal::Generation { job, generation, newest });
        }
        Ok(newest)
    }

    /// The job that runs on a host.
    fn tenant(&self, host: HostId) -> Option<JobId> {
        let on = |job: &&JobId| self.jobs[*job].hosts.binary_search(&host).is_ok();
        self.running.iter().find(on).copied()
    }

    fn host(&self, name: &str) -> Result<HostId, Refusal> {
        let no_node = || Refusal::NoNode { what: "host", name: name.to_owned() };
        self.hosts.get(name).copied().ok_or_else(no_node)
    }
}

fn text(field: &'static str, text: &str) -> Result<(), Refusal> {
    if text.is_empty() || text.len() > MOST_TEXT || text.chars().any(char::is_control) {
        return Err(Refusal::Text { field });
    }
    Ok(())
}
