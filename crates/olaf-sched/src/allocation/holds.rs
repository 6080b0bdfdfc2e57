//! Which jobs may be using which resources at the switches: the accounting behind a migration in
//! two phases (MINA §IV-A a).
//!
//! A job *holds* a tree from the order to acquire it until the job reports that it released it, or
//! was fenced. A tree is given only if all jobs that must leave its switches have left them, or if
//! it fits beside the jobs that have not; so no two jobs meet beyond the capacity, in whatever
//! order they answer. Nobody holds one thing while it waits for another: a job waits with empty
//! hands, and what it waits for are releases, which wait for no job. Hence no deadlock.

use crate::topology::{Capacity, Topology};
use crate::{JobId, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far a job is with a tree that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It was told to acquire it, and has not answered.
    Acquiring,
    /// It uses it.
    Held,
    /// It was told to release it, and has not answered.
    Releasing,
    /// It is dead; the switches have not been heard of.
    Fencing,
}

/// A tree that a job has, or may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Which of the job's trees.
    pub generation: u64,
    /// The tree.
    pub tree: Arc<Tree>,
    /// Of each of its resources.
    pub units: u32,
    /// How far.
    pub phase: Phase,
}

impl Hold {
    const fn leaves(&self) -> bool {
        matches!(self.phase, Phase::Releasing | Phase::Fencing)
    }
}

/// All holds, and what they add up to.
#[derive(Clone, Debug)]
pub struct Holds {
    capacity: Capacity,
    /// Trees may be planned that conflict: their jobs take turns.
    shares: bool,
    jobs: BTreeMap<JobId, Hold>,
    /// Of each resource: units that are held. Wider than a job's: sharers add up.
    units: Vec<u64>,
    /// Of each resource: holds that are to go.
    leaving: Vec<u32>,
}

impl Holds {
    pub(super) fn new(topology: &Topology, capacity: Capacity, shares: bool) -> Self {
        let resources = capacity.resources(topology);
        Self {
            capacity,
            shares,
            jobs: BTreeMap::new(),
            units: vec![0; resources],
            leaving: vec![0; resources],
        }
    }

    /// What `job` holds.
    #[must_use]
    pub fn of(&self, job: JobId) -> Option<&Hold> {
        self.jobs.get(&job)
    }

    /// All, by job.
    pub fn iter(&self) -> impl Iterator<Item = (JobId, &Hold)> {
        self.jobs.iter().map(|(job, hold)| (*job, hold))
    }

    /// The first resource of `tree` for which `units` more must wait, because it has too few.
    ///
    /// Under a policy that shares, a job waits only for jobs that must leave. If there are none,
    /// the trees were planned to share the resource in time (MINA §III-D), and a sharing controller
    /// keeps the jobs apart. Under any other policy the capacity is never exceeded.
    #[must_use]
    pub fn waits_for(&self, tree: &Tree, units: u32) -> Option<u32> {
        tree.resources(self.capacity).into_iter().find(|&resource| {
            let at = resource as usize;
            (self.leaving[at] > 0 || !self.shares)
                && self.units[at] + u64::from(units) > u64::from(self.capacity.units())
        })
    }

    /// `job` gets the order to acquire.
    pub(super) fn give(&mut self, job: JobId, generation: u64, tree: Arc<Tree>, units: u32) {
        for resource in tree.resources(self.capacity) {
            self.units[resource as usize] += u64::from(units);
        }
        let hold = Hold { generation, tree, units, phase: Phase::Acquiring };
        let before = self.jobs.insert(job, hold);
        assert!(before.is_none(), "a tree is given to empty hands only: job {}", job.0);
    }

    /// `job` gets the order to release, or is fenced. Returns the generation, if it was not yet
    /// leaving or if the phase is another one now.
    pub(super) fn leave(&mut self, job: JobId, phase: Phase) -> Option<u64> {
        let hold = self.jobs.get_mut(&job)?;
        if hold.phase == phase || hold.phase == Phase::Fencing {
            return None;
        }
        if !hold.leaves() {
            for resource in hold.tree.resources(self.capacity) {
                self.leaving[resource as usize] += 1;
            }
        }
        hold.phase = phase;
        Some(hold.generation)
    }

    /// `job` has said that it uses what it was given. False where that changes nothing.
    pub(super) fn acquired(&mut self, job: JobId, generation: u64) -> bool {
        match self.jobs.get_mut(&job) {
            Some(hold) if hold.generation == generation && hold.phase == Phase::Acquiring => {
                hold.phase = Phase::Held;
                true
            }
            _ => false,
        }
    }

    /// Nobody uses this tree any more. False where that changes nothing.
    pub(super) fn released(&mut self, job: JobId, generation: u64) -> bool {
        match self.jobs.get(&job) {
            Some(hold) if hold.generation == generation && hold.leaves() => self.drop(job),
            _ => false,
        }
    }

    /// The job is gone, and the switches know.
    pub(super) fn drop(&mut self, job: JobId) -> bool {
        let Some(hold) = self.jobs.remove(&job) else { return false };
        for resource in hold.tree.resources(self.capacity) {
            self.units[resource as usize] -= u64::from(hold.units);
            self.leaving[resource as usize] -= u32::from(hold.leaves());
        }
        true
    }

    /// As it was: after a restart.
    pub(super) fn restore(&mut self, job: JobId, hold: Hold) {
        let Hold { generation, tree, units, phase } = hold;
        self.give(job, generation, tree, units);
        match phase {
            Phase::Acquiring => {}
            Phase::Held => {
                self.acquired(job, generation);
            }
            Phase::Releasing | Phase::Fencing => {
                self.leave(job, phase);
            }
        }
    }

    /// That what is counted is what is there.
    #[cfg(test)]
    pub(super) fn audit(&self, units: &[u64]) -> Result<(), String> {
        if self.units == units && self.leaving.iter().all(|n| *n == 0) {
            return Ok(());
        }
        Err(format!("counted {:?} and {:?} to go, there is {units:?}", self.units, self.leaving))
    }
}
