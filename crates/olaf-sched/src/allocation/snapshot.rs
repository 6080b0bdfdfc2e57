//! The whole state as plain data, so that a restart need not replay all commands since ever.

use super::{Allocator, Config, Hold, Job, Phase, State};
use crate::trees::{Arrival, Forest, Standing};
use crate::{HostId, JobId, LinkId, SwitchId, Topology, Tree};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// See the module. Its topology and its [`Config`] are kept beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    next: JobId,
    jobs: BTreeMap<JobId, Job>,
    queue: Vec<JobId>,
    ended: Vec<JobId>,
    holds: BTreeMap<JobId, Hold>,
    drained_hosts: Vec<HostId>,
    forest: Standing,
}

/// What is wrong with a snapshot: it was damaged, is of another topology, or this version of the
/// program would plan other trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotError(String);

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SnapshotError {}

impl Allocator {
    /// The state now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            next: self.next,
            jobs: self.jobs.clone(),
            queue: self.queue.iter().copied().collect(),
            ended: self.ended.iter().copied().collect(),
            holds: self.holds.iter().map(|(job, hold)| (job, hold.clone())).collect(),
            drained_hosts: self.drained_hosts.iter().copied().collect(),
            forest: self.forest.standing(),
        }
    }

    /// The state that a snapshot tells. Its trees are those of the snapshot, or there is an error;
    /// later decisions may be others than those of the state that it was taken from (see
    /// [`Forest::restore`]), which should then give way to this one.
    ///
    /// # Errors
    /// For what no state of this topology and config can be.
    pub fn restore(
        topology: Arc<Topology>,
        config: Config,
        snapshot: &Snapshot,
    ) -> Result<Self, SnapshotError> {
        snapshot.check(&topology)?;
        let mut new = Self::new(Arc::clone(&topology), config);
        new.next = snapshot.next;
        new.queue.extend(&snapshot.queue);
        new.ended.extend(&snapshot.ended);
        new.drained_switches.extend(&snapshot.forest.drained);
        for &host in &snapshot.drained_hosts {
            new.placer.drain(host);
            new.drained_hosts.insert(host);
        }
        let mut arrivals = Vec::new();
        for (&job, record) in &snapshot.jobs {
            if let Err(refusal) = new.may_ask(&record.request) {
                return Err(SnapshotError(format!("job {}: {refusal}", job.0)));
            }
            if record.state.runs() {
                new.placer.take(&record.hosts);
                new.running.insert(job);
                arrivals.push(Arrival {
                    job,
                    hosts: record.hosts.clone(),
                    units: record.request.units,
                    gain: record.request.gain,
                });
            }
            new.jobs.insert(job, record.clone());
        }
        new.forest = Forest::restore(topology, config.forest(), arrivals, &snapshot.forest);
        for (&job, hold) in &snapshot.holds {
            new.holds.restore(job, hold.clone());
        }
        for &job in &new.running {
            let record = &new.jobs[&job];
            let planned = new.forest.tree(job).and_then(|(tree, _)| tree);
            if planned != record.tree.as_ref() {
                return Err(SnapshotError(format!(
                    "job {}: this release plans another tree for it",
                    job.0
                )));
            }
            let held = new.holds.of(job).filter(|hold| hold.generation == record.generation);
            if record.tree.is_some() && held.is_none() {
                new.wanting.insert(job);
            }
        }
        Ok(new)
    }
}

impl Snapshot {
    /// That nothing in it is out of range or contradicts the rest: a file can be anything.
    fn check(&self, topology: &Topology) -> Result<(), SnapshotError> {
        let fail = |what: String| Err(SnapshotError(what));
        let host_there = |host: &HostId| host.index() < topology.hosts().len();
        let switch_there = |switch: &SwitchId| switch.index() < topology.switches().len();
        let link_there = |link: &LinkId| link.index() < topology.links().len();
        let tree_there = |tree: &Tree| {
            tree.switches.iter().chain([&tree.root]).all(switch_there)
                && tree.links.iter().all(link_there)
        };
        // As sets: a thousand jobs wait, or more.
        let queued: BTreeSet<_> = self.queue.iter().collect();
        let ended: BTreeSet<_> = self.ended.iter().collect();
        if queued.len() != self.queue.len() || ended.len() != self.ended.len() {
            return fail("queue or ended: names a job twice".into());
        }
        if self.next.0 > 1 << 53 {
            return fail(format!("next = {}: must be at most 2^53", self.next.0));
        }
        let mut taken = vec![false; topology.hosts().len()];
        for (job, record) in &self.jobs {
            let ascending = record.hosts.windows(2).all(|pair| pair[0] < pair[1]);
            if *job >= self.next || !ascending || !record.hosts.iter().all(host_there) {
                return fail(format!("job {}: its number or its hosts are impossible", job.0));
            }
            if !record.tree.as_deref().is_none_or(tree_there) {
                return fail(format!("job {}: its tree belongs to another topology", job.0));
            }
            if (record.state == State::Queued) != queued.contains(job)
                || record.state.ended() != ended.contains(job)
            {
                let state = record.state;
                return fail(format!("job {}: the lists contradict its state, {state}", job.0));
            }
            if record.state.runs() && record.hosts.len() != record.request.hosts as usize {
                return fail(format!(
                    "job {}: it has more or fewer hosts than it asked for",
                    job.0
                ));
            }
            for host in record.hosts.iter().filter(|_| record.state.runs()) {
                if std::mem::replace(&mut taken[host.index()], true) {
                    return fail(format!("job {}: another has its host {}", job.0, host.0));
                }
            }
        }
        let known = self.queue.iter().chain(&self.ended).chain(self.holds.keys());
        if let Some(unknown) = known.copied().find(|job| !self.jobs.contains_key(job)) {
            return fail(format!("job {}: nothing is known of it", unknown.0));
        }
        for (job, hold) in &self.holds {
            let dead = hold.phase == Phase::Fencing;
            let state = self.jobs[job].state;
            let cannot = state == State::Queued || dead != state.ended();
            if !tree_there(&hold.tree) || hold.generation == 0 || cannot {
                return fail(format!("job {}: its hold contradicts its state or topology", job.0));
            }
        }
        let drained = self.drained_hosts.iter().all(host_there);
        if !drained || !self.forest.drained.iter().all(switch_there) {
            return fail("a drained host or switch is not in this topology".into());
        }
        Ok(())
    }
}
