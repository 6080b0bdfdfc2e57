//! The workers of a job, and how many of them are at each peer and in each cluster.
//!
//! A join asks how many workers its sender stands for, and an update says how many contributions its
//! sender carries. Any sender can send both: the answer must not take a look at each worker.

use crate::ids::{ClusterId, PeerId, WorkerId};
use crate::table::{Hint, Table};
use alloc::collections::BTreeMap;
use core::ops::Deref;

/// Workers of one job that one peer may stand for when it joins for itself.
const WORKERS_OF_A_PEER: usize = 256;

/// A worker that is heard at a peer: its own address, or that of the switch that sends for it.
pub trait AtPeer {
    /// The peer.
    fn peer(&self) -> PeerId;

    /// The cluster that its join named, where clusters are counted.
    fn cluster(&self) -> Option<ClusterId> {
        None
    }
}

/// The workers of a job by their ids. Reading goes to the map itself.
#[derive(Debug)]
pub struct Members<M> {
    of: Table<WorkerId, M>,
    at: BTreeMap<PeerId, usize>,
    named: BTreeMap<ClusterId, usize>,
}

impl<M> Default for Members<M> {
    fn default() -> Self {
        Self { of: Table::new(), at: BTreeMap::new(), named: BTreeMap::new() }
    }
}

impl<M> Deref for Members<M> {
    type Target = Table<WorkerId, M>;

    fn deref(&self) -> &Self::Target {
        &self.of
    }
}

impl<M: AtPeer> Members<M> {
    /// Workers at that peer: at a switch, all behind it.
    #[must_use]
    pub fn at(&self, peer: PeerId) -> usize {
        self.at.get(&peer).copied().unwrap_or_default()
    }

    /// Returns true if a worker's join named that cluster.
    #[must_use]
    pub fn has_cluster(&self, cluster: ClusterId) -> bool {
        self.named.contains_key(&cluster)
    }

    /// Clusters that the joins named.
    #[must_use]
    pub fn clusters(&self) -> usize {
        self.named.len()
    }

    /// One of them. Whoever changes its peer or its cluster says so to [`Members::moved`] or
    /// [`Members::renamed`].
    pub fn get_mut(&mut self, worker: &WorkerId) -> Option<&mut M> {
        self.of.get_mut(worker)
    }

    /// The same. The hint says where the worker was found last.
    #[inline]
    pub fn at_hint(&mut self, worker: &WorkerId, hint: &mut Hint) -> Option<&mut M> {
        self.of.at(worker, hint)
    }

    /// Looks at all of them, in the order of their ids. Their peers and clusters do not change.
    pub fn for_each_mut(&mut self, look: impl FnMut(&WorkerId, &mut M)) {
        self.of.for_each_mut(look);
    }

    /// A worker was at one peer, and is at another from now on.
    pub fn moved(&mut self, from: PeerId, to: PeerId) {
        leaves(&mut self.at, from);
        *self.at.entry(to).or_default() += 1;
    }

    /// A worker was in one cluster, and is in another from now on.
    pub fn renamed(&mut self, from: ClusterId, to: ClusterId) {
        leaves(&mut self.named, from);
        *self.named.entry(to).or_default() += 1;
    }

    /// A worker joined. Returns what was known of it before.
    pub fn insert(&mut self, worker: WorkerId, member: M) -> Option<M> {
        *self.at.entry(member.peer()).or_default() += 1;
        if let Some(cluster) = member.cluster() {
            *self.named.entry(cluster).or_default() += 1;
        }
        let before = self.of.insert(worker, member)?;
        self.uncount(&before);
        Some(before)
    }

    /// A worker left.
    pub fn remove(&mut self, worker: &WorkerId) {
        if let Some(member) = self.of.remove(worker) {
            self.uncount(&member);
        }
    }

    fn uncount(&mut self, member: &M) {
        leaves(&mut self.at, member.peer());
        if let Some(cluster) = member.cluster() {
            leaves(&mut self.named, cluster);
        }
    }

    /// Forgets the others.
    pub fn keep(&mut self, stays: impl Fn(&M) -> bool) {
        let (at, named) = (&mut self.at, &mut self.named);
        self.of.retain(|_, member| {
            let stays = stays(member);
            if !stays {
                leaves(at, member.peer());
                member.cluster().iter().for_each(|cluster| leaves(named, *cluster));
            }
            stays
        });
    }

    /// Returns true if one more worker of that peer is too many. `hops` are the switches that the
    /// worker's join has passed: a switch stands for all workers behind it, and no switch for more than
    /// a quarter of all that there may be.
    #[must_use]
    pub fn is_crowded(&self, peer: PeerId, hops: u8, max_workers: usize) -> bool {
        self.at(peer) >= if hops == 0 { WORKERS_OF_A_PEER } else { (max_workers / 4).max(1) }
    }

    /// Returns true if the counts are those of looking at each worker.
    #[cfg(test)]
    pub(crate) fn are_counted(&self) -> bool {
        let (mut at, mut named) = (BTreeMap::new(), BTreeMap::new());
        for member in self.of.values() {
            *at.entry(member.peer()).or_default() += 1;
            if let Some(cluster) = member.cluster() {
                *named.entry(cluster).or_default() += 1;
            }
        }
        (&at, &named) == (&self.at, &self.named)
    }
}

fn leaves<P: Ord>(places: &mut BTreeMap<P, usize>, place: P) {
    if let Some(workers) = places.get_mut(&place) {
        *workers -= 1;
        if *workers == 0 {
            places.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use proptest::prelude::*;

    struct At<'a>(PeerId, ClusterId, &'a Cell<usize>);

    impl AtPeer for At<'_> {
        fn peer(&self) -> PeerId {
            self.2.set(self.2.get() + 1);
            self.0
        }

        fn cluster(&self) -> Option<ClusterId> {
            self.2.set(self.2.get() + 1);
            Some(self.1)
        }
    }

    #[test]
    fn a_count_looks_at_no_worker_however_many_there_are() {
        let looks = Cell::new(0);
        let mut members = Members::default();
        for worker in 0..10_000 {
            members
                .insert(WorkerId(worker), At(PeerId(worker / 100), ClusterId(worker / 10), &looks));
        }
        looks.set(0);
        assert_eq!((members.at(PeerId(7)), members.at(PeerId(100))), (100, 0));
        assert!(!members.is_crowded(PeerId(7), 0, 400) && members.is_crowded(PeerId(7), 1, 400));
        assert_eq!((members.clusters(), members.has_cluster(ClusterId(1_000))), (1_000, false));
        assert!(members.has_cluster(ClusterId(999)));
        assert_eq!(looks.get(), 0);
    }

    proptest! {
        #[test]
        fn the_counts_are_those_of_looking_at_each_worker(
            steps in prop::collection::vec((0u8..5, 0u32..12, 0u32..4, 0u32..5), 0..200),
        ) {
            let looks = Cell::new(0);
            let mut members = Members::default();
            for (step, worker, peer, cluster) in steps {
                let (worker, peer) = (WorkerId(worker), PeerId(peer));
                let cluster = ClusterId(cluster);
                match step {
                    0 | 1 => {
                        let known = members.contains_key(&worker);
                        let member = At(peer, cluster, &looks);
                        prop_assert_eq!(members.insert(worker, member).is_some(), known);
                    }
                    2 => members.remove(&worker),
                    3 => {
                        let Some(member) = members.get_mut(&worker) else { continue };
                        let (was_at, was_in) = (member.0, member.1);
                        (member.0, member.1) = (peer, cluster);
                        members.moved(was_at, peer);
                        members.renamed(was_in, cluster);
                    }
                    _ => members.keep(|member| member.0 != peer),
                }
                prop_assert!(members.are_counted());
            }
        }
    }
}
