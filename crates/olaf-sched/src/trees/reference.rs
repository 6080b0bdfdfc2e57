//! The slow and obvious word on what a forest must be, asked after each of a random sequence of
//! commands.

use super::*;
use crate::topology::FatTree;
use std::collections::{BTreeMap, BTreeSet};

/// What any forest must be, whatever its policy.
pub(super) fn check(forest: &Forest, arrivals: &BTreeMap<JobId, Arrival>) {
    forest.ground.audit();
    assert!(forest.jobs().eq(arrivals.keys().copied()));
    let rule = forest.ground.rule;
    let drained: BTreeSet<_> = forest.drained().collect();
    let mut held: BTreeMap<u32, u64> = BTreeMap::new();
    let mut uses: BTreeMap<JobId, Vec<u32>> = BTreeMap::new();
    for (&job, arrival) in arrivals {
        let (tree, _) = forest.tree(job).expect("it runs");
        if let Some(tree) = tree {
            assert!(tree.switches.iter().all(|switch| !drained.contains(switch)));
            if drained.is_empty() {
                let wanted =
                    crate::tree::reference::to(&forest.ground.topology, &arrival.hosts, tree.root);
                assert_eq!(Some(&**tree), wanted.as_ref());
            }
            for &resource in &tree.resources(rule) {
                *held.entry(resource).or_default() += u64::from(arrival.units);
            }
            uses.insert(job, tree.resources(rule));
        }
    }
    // Rivals: two users of a resource that is held beyond its capacity. Groups: jobs connected by
    // rivals.
    let over = |resource: &u32| held[resource] > rule.units().into();
    let mut group: BTreeMap<JobId, JobId> = uses.keys().map(|&job| (job, job)).collect();
    for (&job, mine) in &uses {
        let conflicts = |other: &Vec<u32>| mine.iter().any(|r| over(r) && other.contains(r));
        let rivals: Vec<_> = uses
            .iter()
            .filter(|(other, theirs)| **other != job && conflicts(theirs))
            .map(|(other, _)| *other)
            .collect();
        assert_eq!(forest.rivals(job), rivals);
        for rival in &rivals {
            let (a, b) = (group[&job], group[rival]);
            group.values_mut().filter(|of| **of == b).for_each(|of| *of = a);
        }
        let (_, reason) = forest.tree(job).expect("it runs");
        match reason {
            Reason::Shares { with } => assert_eq!(with, &rivals, "job {}", job.0),
            Reason::Alone | Reason::Moved { .. } => assert!(rivals.is_empty(), "job {}", job.0),
            other => panic!("job {} has a tree, and {other:?}", job.0),
        }
    }
    for &job in arrivals.keys() {
        let of = group.get(&job);
        let wanted: Vec<_> =
            group.iter().filter(|(_, g)| of == Some(*g)).map(|(job, _)| *job).collect();
        assert_eq!(forest.group(job), wanted);
    }
    if let Policy::First
    | Policy::FirstGain
    | Policy::Random
    | Policy::Mina { join: false, .. }
    | Policy::Gain { join: Join::None, .. }
    | Policy::Exact { join: Join::None, .. } = forest.config.policy
    {
        assert!(held.values().all(|&units| units <= rule.units().into()));
    }
    if let Policy::FirstGain = forest.config.policy {
        assert!(uses.keys().all(|job| arrivals[job].gain > 0), "a tree for nothing");
    }
    check_groups(forest, arrivals);
}

/// With how many groups a candidate conflicts, which `Join::One` asks: groups counted anew as
/// if the job had no tree.
fn check_groups(forest: &Forest, arrivals: &BTreeMap<JobId, Arrival>) {
    let ground = &forest.ground;
    let most = u64::from(ground.rule.units());
    for (&job, arrival) in arrivals {
        let slot = ground.slot(job).expect("it runs");
        let others: BTreeMap<JobId, Vec<u32>> = arrivals
            .keys()
            .filter(|&&other| other != job)
            .map(|&other| (other, ground.uses(ground.slot(other).expect("it runs")).to_vec()))
            .collect();
        let units = |of: &JobId| u64::from(arrivals[of].units);
        let held = |resource: &u32| -> u64 {
            others.iter().filter(|(_, uses)| uses.contains(resource)).map(|(of, _)| units(of)).sum()
        };
        // Jobs that conflict with the candidate, then what they conflict with, and so on.
        for at in 0..ground.member(slot).candidates.len() {
            let wanted = ground.member(slot).candidates.uses(at);
            let short = |r: &&u32| held(r) + u64::from(arrival.units) > most;
            let short: BTreeSet<u32> = wanted.iter().filter(short).copied().collect();
            let meets = |uses: &Vec<u32>| uses.iter().any(|resource| short.contains(resource));
            let mut rivals: BTreeSet<JobId> =
                others.iter().filter(|(_, uses)| meets(uses)).map(|(of, _)| *of).collect();
            let mut count = 0;
            while let Some(first) = rivals.pop_first() {
                count += 1;
                let (mut seen, mut open) = (BTreeSet::from([first]), vec![first]);
                while let Some(one) = open.pop() {
                    let over = |r: &&u32| held(r) > most;
                    let mine: Vec<u32> = others[&one].iter().filter(over).copied().collect();
                    for (of, uses) in &others {
                        if uses.iter().any(|r| mine.contains(r)) && seen.insert(*of) {
                            open.push(*of);
                        }
                    }
                }
                rivals.retain(|rival| !seen.contains(rival));
            }
            assert_eq!(gain::groups(ground, slot, at), count, "job {} candidate {at}", job.0);
        }
    }
}

/// The gain of the jobs that conflict with no other.
pub(super) fn gained(forest: &Forest, arrivals: &BTreeMap<JobId, Arrival>) -> u64 {
    let seated = |job: JobId| {
        let slot = forest.ground.slot(job).expect("it runs");
        forest.ground.member(slot).seat().is_some()
    };
    arrivals.values().filter(|a| seated(a.job)).map(|a| a.gain).sum()
}

/// The most that jobs can gain whose trees do not conflict: all choices.
pub(super) fn optimum(forest: &Forest, arrivals: &BTreeMap<JobId, Arrival>) -> u64 {
    fn most(
        rest: &[(u64, u32, Vec<Vec<u32>>)],
        held: &mut BTreeMap<u32, u32>,
        capacity: u32,
    ) -> u64 {
        let Some(((gain, units, trees), rest)) = rest.split_first() else { return 0 };
        let mut best = most(rest, held, capacity);
        for tree in trees {
            if tree.iter().all(|r| held.get(r).copied().unwrap_or(0) + units <= capacity) {
                tree.iter().for_each(|r| *held.entry(*r).or_default() += units);
                best = best.max(gain + most(rest, held, capacity));
                tree.iter().for_each(|r| *held.entry(*r).or_default() -= units);
            }
        }
        best
    }
    let rule = forest.ground.rule;
    let jobs: Vec<_> = arrivals
        .values()
        .filter(|arrival| arrival.gain > 0)
        .map(|arrival| {
            let topology = &forest.ground.topology;
            let roots = crate::tree::reference::roots(topology, &arrival.hosts);
            let tree = |root| crate::tree::reference::to(topology, &arrival.hosts, root);
            let trees = roots.into_iter().filter_map(tree).map(|tree| tree.resources(rule));
            (arrival.gain, arrival.units, trees.collect())
        })
        .collect();
    most(&jobs, &mut BTreeMap::new(), rule.units())
}

/// A cluster of degree 4 whose hosts are taken at random.
pub(super) struct Churn {
    pub(super) arrivals: BTreeMap<JobId, Arrival>,
    free: BTreeSet<HostId>,
    next: u64,
    rng: fastrand::Rng,
    most_units: u32,
}

impl Churn {
    pub(super) fn new(topology: &Topology, most_units: u32, seed: u64) -> Self {
        let hosts = u32::try_from(topology.hosts().len()).expect("few");
        let rng = fastrand::Rng::with_seed(seed);
        let free = (0..hosts).map(HostId).collect();
        Self { arrivals: BTreeMap::new(), free, next: 0, rng, most_units }
    }

    fn arrival(&mut self) -> Option<Arrival> {
        let wanted = self.rng.usize(1..6);
        let free: Vec<_> = self.free.iter().copied().collect();
        let mut hosts = self.rng.choose_multiple(&free, wanted);
        hosts.sort_unstable();
        let hosts: Vec<HostId> = hosts.into_iter().copied().collect();
        if hosts.is_empty() {
            return None;
        }
        hosts.iter().for_each(|host| {
            self.free.remove(host);
        });
        self.next += 1;
        let gain = if self.rng.u32(..3) == 0 { 0 } else { self.rng.u64(1..100) };
        let units = self.rng.u32(1..=self.most_units);
        let arrival = Arrival { job: JobId(self.next), hosts, units, gain };
        self.arrivals.insert(arrival.job, arrival.clone());
        Some(arrival)
    }

    /// One command; what it said.
    pub(super) fn step(&mut self, forest: &mut Forest) -> Vec<Change> {
        let switches = u32::try_from(forest.ground.topology.switches().len()).expect("few");
        match self.rng.u32(..20) {
            0 => forest.drain_switch(SwitchId(self.rng.u32(..switches))),
            1 | 2 => {
                let drained: Vec<_> = forest.drained().collect();
                self.rng.choice(drained).map_or(Vec::new(), |switch| forest.undrain(switch))
            }
            3..=8 if !self.arrivals.is_empty() => {
                let jobs: Vec<JobId> = self.arrivals.keys().copied().collect();
                let job = *self.rng.choice(&jobs).expect("not empty");
                let arrival = self.arrivals.remove(&job).expect("it runs");
                self.free.extend(arrival.hosts);
                forest.leave(job)
            }
            n => {
                let count = if n == 19 { 2 } else { 1 };
                let arrivals: Vec<_> = (0..count).filter_map(|_| self.arrival()).collect();
                forest.arrive(arrivals)
            }
        }
    }
}

pub(super) fn cluster() -> Arc<Topology> {
    Arc::new(Topology::fat_tree(FatTree::of_degree(4).expect("even")).expect("small"))
}
