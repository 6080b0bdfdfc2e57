//! The workers of a job, and how many of them are at each peer.
//!
//! A join asks how many workers its sender stands for, and any sender can send a join: the answer must
//! not take a look at each worker.

use super::job::Member;
use crate::ids::{PeerId, WorkerId};
use alloc::collections::BTreeMap;
use core::ops::Deref;

/// The workers by their ids. Reading goes to the map itself.
#[derive(Default)]
pub(super) struct Members {
    of: BTreeMap<WorkerId, Member>,
    at: BTreeMap<PeerId, usize>,
}

impl Deref for Members {
    type Target = BTreeMap<WorkerId, Member>;

    fn deref(&self) -> &Self::Target {
        &self.of
    }
}

impl Members {
    /// Workers at that peer: at a switch, all behind it.
    pub(super) fn at(&self, peer: PeerId) -> usize {
        self.at.get(&peer).copied().unwrap_or_default()
    }

    /// One of them. Whoever changes its peer says so to [`Members::moved`].
    pub(super) fn get_mut(&mut self, worker: &WorkerId) -> Option<&mut Member> {
        self.of.get_mut(worker)
    }

    /// All of them. Their peers do not change.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&WorkerId, &mut Member)> {
        self.of.iter_mut()
    }

    /// A worker was at one peer, and is at another from now on.
    pub(super) fn moved(&mut self, from: PeerId, to: PeerId) {
        leaves(&mut self.at, from);
        *self.at.entry(to).or_default() += 1;
    }

    pub(super) fn insert(&mut self, worker: WorkerId, member: Member) {
        *self.at.entry(member.peer).or_default() += 1;
        if let Some(before) = self.of.insert(worker, member) {
            leaves(&mut self.at, before.peer);
        }
    }

    pub(super) fn remove(&mut self, worker: &WorkerId) {
        if let Some(member) = self.of.remove(worker) {
            leaves(&mut self.at, member.peer);
        }
    }

    /// Forgets the others.
    pub(super) fn keep(&mut self, stays: impl Fn(&Member) -> bool) {
        let at = &mut self.at;
        self.of.retain(|_, member| {
            let stays = stays(member);
            if !stays {
                leaves(at, member.peer);
            }
            stays
        });
    }

    /// Whether the counts are those of looking at each worker.
    #[cfg(test)]
    pub(super) fn are_counted(&self) -> bool {
        let mut at = BTreeMap::new();
        self.of.values().for_each(|member| *at.entry(member.peer).or_default() += 1);
        at == self.at
    }
}

fn leaves(at: &mut BTreeMap<PeerId, usize>, peer: PeerId) {
    if let Some(workers) = at.get_mut(&peer) {
        *workers -= 1;
        if *workers == 0 {
            at.remove(&peer);
        }
    }
}
