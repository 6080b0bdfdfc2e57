//! The conflicts among the trees that jobs have now.

use std::collections::BTreeSet;

/// A running job: its place in the job list.
pub(super) type JobIndex = u32;

/// Of each resource by which trees are judged, the jobs whose trees use it.
#[derive(Debug)]
pub(super) struct Sharers {
    holders: Vec<Vec<JobIndex>>,
    /// How many jobs' trees may meet on a resource without a conflict.
    room: u32,
}

impl Sharers {
    pub(super) fn new(resources: usize, room: u32) -> Self {
        Self { holders: vec![Vec::new(); resources], room }
    }

    pub(super) fn join(&mut self, job: JobIndex, resources: &[u32]) {
        for &resource in resources {
            self.holders[resource as usize].push(job);
        }
    }

    pub(super) fn leave(&mut self, job: JobIndex, resources: &[u32]) {
        for &resource in resources {
            let holders = &mut self.holders[resource as usize];
            let at = holders.iter().position(|&holder| holder == job);
            holders.swap_remove(at.expect("a job leaves what it has joined"));
        }
    }

    /// All whose trees use one of these.
    pub(super) fn add_holders(&self, resources: &[u32], to: &mut BTreeSet<JobIndex>) {
        for &resource in resources {
            to.extend(&self.holders[resource as usize]);
        }
    }

    /// The jobs that a job's tree conflicts with, ascending.
    pub(super) fn rivals(&self, job: JobIndex, resources: &[u32]) -> Vec<JobIndex> {
        let mut rivals = Vec::new();
        for &resource in resources {
            let holders = &self.holders[resource as usize];
            if holders.len() > self.room as usize {
                rivals.extend(holders.iter().filter(|&&holder| holder != job));
            }
        }
        rivals.sort_unstable();
        rivals.dedup();
        rivals
    }
}
