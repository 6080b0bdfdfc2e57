//! Which aggregation tree each running job has, if any (MINA §III-C).
//!
//! A [`Forest`] holds the trees of all running jobs. A job arrives, leaves, or a switch is drained;
//! each time the forest says whose tree changed, and why. Jobs whose trees conflict share
//! resources in time (MINA §III-D, the module `sharing`); a job without a tree does without.

mod first;

use crate::topology::{Capacity, Topology};
use crate::{HostId, JobId, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How trees are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Policy {
    /// Nobody has a tree.
    None,
    /// A new job gets the first tree that conflicts with nobody's, and keeps it; or none, for good
    /// (MINA §V-A, baselines).
    First,
}

/// A job that begins to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its name.
    pub job: JobId,
    /// Where it runs, ascending.
    pub hosts: Vec<HostId>,
    /// Units that it asks of each resource: 1, or slots of our own switches.
    pub units: u32,
    /// What it gains by its tree, in host-nanoseconds a second of running: what a policy may weigh.
    /// 0 for a job that is as fast without.
    pub gain: u64,
}

/// A job's tree changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whose.
    pub job: JobId,
    /// What it had.
    pub from: Option<Arc<Tree>>,
    /// What it has now.
    pub to: Option<Arc<Tree>>,
    /// Why.
    pub reason: Reason,
}

/// Why a job has the tree that it has, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// It has one host: nothing to sum.
    OneHost,
    /// The policy gives no trees.
    Off,
    /// No tree of it is free of conflicts.
    Conflict {
        /// How many were looked at.
        candidates: usize,
    },
    /// Its tree conflicts with nobody's.
    Alone,
}

/// The trees of all running jobs.
#[derive(Clone, Debug)]
pub struct Forest {
    topology: Arc<Topology>,
    capacity: Capacity,
    policy: Policy,
    jobs: BTreeMap<JobId, Member>,
    /// Of each resource: units that the trees hold.
    held: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Member {
    arrival: Arrival,
    tree: Option<Arc<Tree>>,
    reason: Reason,
}

impl Forest {
    /// No job runs.
    #[must_use]
    pub fn new(topology: Arc<Topology>, capacity: Capacity, policy: Policy) -> Self {
        let held = vec![0; capacity.resources(&topology)];
        Self { topology, capacity, policy, jobs: BTreeMap::new(), held }
    }

    /// Jobs begin to run, all at the same instant. Returns whose trees changed, the new jobs'
    /// first; a job that stays as it was is not among them.
    ///
    /// # Panics
    /// When a job is running already.
    pub fn arrive(&mut self, arrivals: Vec<Arrival>) -> Vec<Change> {
        let mut changes = Vec::new();
        for arrival in arrivals {
            let job = arrival.job;
            let (tree, reason) = match self.policy {
                Policy::None => (None, Reason::Off),
                Policy::First => first::choose(self, &arrival),
            };
            if let Some(tree) = &tree {
                self.hold(tree, arrival.units);
            }
            changes.push(Change { job, from: None, to: tree.clone(), reason: reason.clone() });
            let before = self.jobs.insert(job, Member { arrival, tree, reason });
            assert!(before.is_none(), "job {} arrives twice", job.0);
        }
        changes
    }

    /// A job has ended. Returns whose trees changed; its own is not among them.
    ///
    /// # Panics
    /// When it is not running.
    pub fn leave(&mut self, job: JobId) -> Vec<Change> {
        let member = self.jobs.remove(&job).expect("a job that leaves has arrived");
        if let Some(tree) = member.tree {
            for resource in tree.resources(self.capacity) {
                self.held[resource as usize] -= member.arrival.units;
            }
        }
        Vec::new()
    }

    /// The job's tree, and why it is that.
    #[must_use]
    pub fn tree(&self, job: JobId) -> Option<(Option<&Arc<Tree>>, &Reason)> {
        self.jobs.get(&job).map(|member| (member.tree.as_ref(), &member.reason))
    }

    fn fits(&self, tree: &Tree, units: u32) -> bool {
        let free =
            |resource: u32| self.capacity.units().saturating_sub(self.held[resource as usize]);
        tree.resources(self.capacity).into_iter().all(|resource| free(resource) >= units)
    }

    fn hold(&mut self, tree: &Tree, units: u32) {
        for resource in tree.resources(self.capacity) {
            self.held[resource as usize] += units;
        }
    }
}
