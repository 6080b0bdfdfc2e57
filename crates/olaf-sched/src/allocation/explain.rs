//! Why a job sits where it sits: what an [`Allocator`] knows, by names, for people and pages.

use super::event::name;
use super::{Allocator, Job, Phase, State, TreeView, Waiting};
use crate::topology::Node;
use crate::{JobId, SwitchId, Tree, placement, trees};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A job in a line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobView {
    /// Its number.
    pub job: JobId,
    /// As submitted.
    pub name: String,
    /// As submitted.
    pub pattern: Option<String>,
    /// How many were asked for.
    pub hosts: u32,
    /// As submitted.
    pub units: u32,
    /// As submitted.
    pub steps: Option<u64>,
    /// What it wins by a tree, in host-nanoseconds a second.
    pub gain: u64,
    /// Where it is.
    pub state: State,
    /// In the queue; 1 is the head.
    pub position: Option<usize>,
    /// Milliseconds of the service's clock.
    pub submitted_ms: u64,
    /// The same.
    pub started_ms: Option<u64>,
    /// The same.
    pub ended_ms: Option<u64>,
    /// What was said of its end.
    pub note: Option<String>,
    /// Of its newest tree; 0 before the first.
    pub generation: u64,
    /// The root of the tree that it shall have.
    pub root: Option<String>,
    /// What it holds at the switches now.
    pub held: Option<HeldView>,
    /// How often it was told to give up a tree.
    pub migrations: u64,
}

/// A hold, by names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldView {
    /// Which of the job's trees.
    pub generation: u64,
    /// Its root.
    pub root: String,
    /// How far.
    pub phase: Phase,
}

/// A job, and all that was decided about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The job.
    pub job: JobView,
    /// Why it waits.
    pub waiting: Option<Waiting>,
    /// Its hosts, by the switches right above them: how many pieces it is in.
    pub hosts_by_switch: BTreeMap<String, Vec<String>>,
    /// Why these hosts.
    pub placed: Option<placement::Reason>,
    /// The tree that it shall have.
    pub tree: Option<TreeView>,
    /// Why that one, or why none.
    pub why_tree: Option<trees::Reason>,
    /// Jobs whose planned trees share resources with its own beyond the capacity: they take turns.
    pub shares_with: Vec<JobId>,
    /// What keeps it from acquiring its tree now.
    pub waits_for: Option<Wait>,
    /// If it has no tree: for each tree that it could have, the jobs in its way.
    pub blocked: Vec<Blocked>,
    /// When it has no tree: when the policy looks again.
    pub again: Option<trees::Again>,
}

/// A resource that is not free yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// Its name.
    pub resource: String,
    /// Jobs that must still release it, or be fenced.
    pub holders: Vec<JobId>,
    /// Its own earlier tree is what it has to release first.
    pub own: bool,
}

/// A tree that a job could have had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// Its root.
    pub root: String,
    /// A resource of it that has too few units left.
    pub resource: String,
    /// Whose trees use that.
    pub by: Vec<JobId>,
}

/// The cluster in a few numbers, and what is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterView {
    /// All.
    pub hosts: usize,
    /// Free and not drained.
    pub free_hosts: u32,
    /// All.
    pub switches: usize,
    /// What each resource can sum for, in words.
    pub capacity: String,
    /// Jobs that wait.
    pub queued: usize,
    /// Jobs with hosts.
    pub running: usize,
    /// Of those: with a tree that they use.
    pub with_tree: usize,
    /// Of those: between two trees.
    pub migrating: usize,
    /// Dead jobs whose trees are not fenced yet.
    pub fencing: usize,
    /// By name.
    pub drained_switches: Vec<String>,
    /// By name.
    pub drained_hosts: Vec<String>,
}

/// The most candidates that are looked at for [`Explanation::blocked`].
const MOST_BLOCKED: usize = 8;

impl Allocator {
    /// The jobs behind `after`, in the order of submission.
    pub fn list(&self, after: JobId) -> impl Iterator<Item = JobView> {
        // Once for all: to ask each job for its place would be quadratic.
        let positions: BTreeMap<JobId, usize> = self.queue.iter().copied().zip(1..).collect();
        self.jobs
            .range((Bound::Excluded(after), Bound::Unbounded))
            .map(move |(job, record)| self.line(*job, record, positions.get(job).copied()))
    }

    /// One job in a line.
    #[must_use]
    pub fn view(&self, job: JobId) -> Option<JobView> {
        self.job(job).map(|record| self.line(job, record, self.position(job)))
    }

    fn line(&self, job: JobId, record: &Job, position: Option<usize>) -> JobView {
        let held = self.holds.of(job).map(|hold| HeldView {
            generation: hold.generation,
            root: self.switch_name(hold.tree.root),
            phase: hold.phase,
        });
        JobView {
            job,
            name: record.request.name.clone(),
            pattern: record.request.pattern.clone(),
            hosts: record.request.hosts,
            units: record.request.units,
            steps: record.request.steps,
            gain: record.request.gain,
            state: record.state,
            position,
            submitted_ms: record.submitted_ms,
            started_ms: record.started_ms,
            ended_ms: record.ended_ms,
            note: record.note.clone(),
            generation: record.generation,
            root: record.tree.as_ref().map(|tree| self.switch_name(tree.root)),
            held,
            migrations: record.migrations,
        }
    }

    /// All that was decided about a job.
    #[must_use]
    pub fn explain(&self, job: JobId) -> Option<Explanation> {
        let record = self.job(job)?;
        let position = self.position(job);
        let mut hosts_by_switch = BTreeMap::<String, Vec<String>>::new();
        for &host in &record.hosts {
            let above = self.topology.up(Node::Host(host)).iter();
            let above: Vec<_> =
                above.map(|link| self.switch_name(self.topology.link(*link).parent)).collect();
            let host = self.topology.hosts()[host.index()].name.clone();
            hosts_by_switch.entry(above.join("+")).or_default().push(host);
        }
        let tree = record.tree.as_deref();
        let running = record.state.runs();
        Some(Explanation {
            job: self.line(job, record, position),
            waiting: position.map(|position| self.waiting(position)),
            hosts_by_switch,
            placed: record.placed.clone(),
            tree: tree.map(|tree| TreeView::new(&self.topology, tree)),
            why_tree: self.forest.tree(job).map(|(_, reason)| reason.clone()),
            shares_with: if tree.is_some() { self.forest.rivals(job) } else { Vec::new() },
            waits_for: tree.and_then(|tree| self.wait(job, record, tree)),
            again: (running && tree.is_none()).then(|| self.config.trees.again()),
            blocked: if running && tree.is_none() { self.blocked(job, record) } else { Vec::new() },
        })
    }

    /// The cluster in a few numbers.
    #[must_use]
    pub fn cluster(&self) -> ClusterView {
        let count =
            |phase: Phase| self.holds.iter().filter(|(_, hold)| hold.phase == phase).count();
        let hosts = self.topology.hosts();
        ClusterView {
            hosts: hosts.len(),
            free_hosts: self.placer.free(),
            switches: self.topology.switches().len(),
            capacity: self.config.capacity.to_string(),
            queued: self.queue.len(),
            running: self.running.len(),
            with_tree: count(Phase::Held),
            migrating: count(Phase::Acquiring) + count(Phase::Releasing) + self.empty_handed(),
            fencing: count(Phase::Fencing),
            drained_switches: self.drained_switches.iter().map(|s| self.switch_name(*s)).collect(),
            drained_hosts: self
                .drained_hosts
                .iter()
                .map(|host| hosts[host.index()].name.clone())
                .collect(),
        }
    }

    fn empty_handed(&self) -> usize {
        self.wanting.iter().filter(|job| self.holds.of(**job).is_none()).count()
    }

    /// Of each resource: the running jobs whose planned trees use it, and how many units.
    fn planned_users(&self) -> BTreeMap<u32, (u32, BTreeSet<JobId>)> {
        let mut users = BTreeMap::<u32, (u32, BTreeSet<JobId>)>::new();
        for &job in &self.running {
            let record = &self.jobs[&job];
            let Some(tree) = &record.tree else { continue };
            for resource in tree.resources(self.config.capacity) {
                let (units, jobs) = users.entry(resource).or_default();
                *units += record.request.units;
                jobs.insert(job);
            }
        }
        users
    }

    fn wait(&self, job: JobId, record: &Job, tree: &Tree) -> Option<Wait> {
        let held = self.holds.of(job);
        if let Some(hold) = held {
            let own = hold.generation != record.generation;
            return own.then(|| Wait {
                resource: self.switch_name(hold.tree.root),
                holders: vec![job],
                own,
            });
        }
        let resource = self.holds.waits_for(tree, record.request.units)?;
        let uses = |tree: &Tree| tree.resources(self.config.capacity).contains(&resource);
        // It will take turns with jobs that share and stay, so these are not in its way.
        let in_the_way = |phase| {
            !self.config.trees.shares() || matches!(phase, Phase::Releasing | Phase::Fencing)
        };
        let holders =
            self.holds.iter().filter(|(_, hold)| in_the_way(hold.phase) && uses(&hold.tree));
        Some(Wait {
            resource: self.resource_name(resource),
            holders: holders.map(|(holder, _)| holder).collect(),
            own: false,
        })
    }

    fn blocked(&self, job: JobId, record: &Job) -> Vec<Blocked> {
        let capacity = self.config.capacity;
        let users = self.planned_users();
        let roots = self.forest.candidates(job).iter().take(MOST_BLOCKED);
        let trees = roots.filter_map(|root| Tree::to(&self.topology, &record.hosts, *root));
        let blocked = trees.filter_map(|tree| {
            let drained = tree.switches.iter().find(|s| self.drained_switches.contains(s));
            let (resource, by) = if let Some(drained) = drained {
                (self.switch_name(*drained), Vec::new())
            } else {
                let few = |resource: &u32| {
                    let held = users.get(resource).map_or(0, |(units, _)| *units);
                    held + record.request.units > capacity.units()
                };
                let resource = tree.resources(capacity).into_iter().find(few)?;
                let by = users.get(&resource).map(|(_, jobs)| jobs.iter().copied().collect());
                (self.resource_name(resource), by.unwrap_or_default())
            };
            Some(Blocked { root: self.switch_name(tree.root), resource, by })
        });
        blocked.collect()
    }

    fn switch_name(&self, switch: SwitchId) -> String {
        self.topology.switches()[switch.index()].name.clone()
    }

    fn resource_name(&self, resource: u32) -> String {
        if let crate::Capacity::PerPort(_) = self.config.capacity {
            let link = self.topology.link(crate::LinkId(resource));
            let ends = [link.child, Node::Switch(link.parent)];
            return ends.map(|end| name(&self.topology, end)).join(" -> ");
        }
        self.switch_name(SwitchId(resource))
    }
}
