//! Where the maps of a switch have what belongs to a flow: remembered from its last update.
//!
//! An update looks into a dozen maps, and the next update of its sender and segment finds the same places.
//! A record keeps these places. Each place is [checked](crate::table) when it is used, so that a record
//! can say nothing wrong: a flow that finds no record is slower, and treated as with one. A sender that
//! picks its numbers so that its flows push out the record of another sender gains nothing else.

use crate::ids::PeerId;
use crate::link;
use crate::party::{clip, pace};
use crate::table::Hint;
use alloc::vec;
use alloc::vec::Vec;
use olaf_wire::Update;

/// Records of a switch at first, and at most.
const FEWEST: usize = 64;
const MOST: usize = 1 << 14;

/// Places of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints {
    /// Whose they are, as a hash. Flows of equal hashes share a record.
    of: u32,
    pub(super) job: Hint,
    pub(super) member: Hint,
    pub(super) arrivals: Hint,
    pub(super) cluster: Hint,
    pub(super) taken: Hint,
    pub(super) pace: pace::Hints,
    pub(super) ends: Hint,
    pub(super) clip: clip::Hints,
    pub(super) link: link::Hints,
    pub(super) meeting: Hint,
    pub(super) sharer: Seat,
    pub(super) held: Seat,
}

/// Where a list had a party last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat(pub(super) u32);

impl Default for Seat {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

/// The records of all flows.
#[derive(Debug, Default)]
pub(super) struct Flows {
    records: Vec<Hints>,
    /// Updates that found no record of their flow, since the records became more.
    shared: usize,
}

impl Flows {
    /// The record of an update's flow.
    #[inline]
    pub(super) fn of(&mut self, peer: PeerId, update: &Update) -> &mut Hints {
        let hash = hash(peer, update);
        let at = self.find(hash).unwrap_or_else(|| self.take_over(hash));
        &mut self.records[at]
    }

    /// A flow has two places, so that few flows meet in one.
    #[inline]
    fn find(&self, hash: u32) -> Option<usize> {
        let at = hash as usize & self.records.len().wrapping_sub(1);
        let is_at = |at: usize| self.records.get(at).is_some_and(|record| record.of == hash);
        if is_at(at) { Some(at) } else { Some(at ^ 1).filter(|at| is_at(*at)) }
    }

    /// A flow without a record takes that of another one, which moves to its second place.
    #[inline(never)]
    fn take_over(&mut self, hash: u32) -> usize {
        self.shared += 1;
        let count = self.records.len();
        if count == 0 || self.shared > count && count < MOST {
            let count = (2 * count).max(FEWEST);
            (self.records, self.shared) = (vec![Hints::default(); count], 0);
        }
        let at = hash as usize & (self.records.len() - 1);
        self.records.swap(at, at ^ 1);
        self.records[at] = Hints { of: hash, ..Hints::default() };
        at
    }
}

/// Spreads numbers that are close to each other, as ids and segments are, over all bits.
#[inline]
const fn hash(peer: PeerId, update: &Update) -> u32 {
    let of = (peer.0 as u64) << 32 | update.address.worker.0 as u64;
    let at = (update.address.job.0 as u64) << 32 | update.segment as u64;
    let hash = (of ^ at.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 32 ^ hash >> 20) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(worker: u32, segment: u32) -> Update {
        Update { segment, ..olaf_samples::update(olaf_samples::address(1, 0, worker), 1) }
    }

    #[test]
    fn the_flows_of_many_workers_and_segments_get_records_of_their_own() {
        let mut flows = Flows::default();
        for _ in 0..64 {
            for (worker, segment) in (0..64).flat_map(|worker| (0..8).map(move |s| (worker, s))) {
                flows.of(PeerId(100 + worker), &update(worker, segment));
            }
        }
        let used = flows.records.iter().filter(|record| record.of != 0).count();
        assert!(used > 400 && flows.records.len() <= 4096, "{used} of {}", flows.records.len());
    }

    #[test]
    fn a_sender_that_names_ever_new_workers_does_not_grow_the_records_beyond_their_most() {
        let mut flows = Flows::default();
        for worker in 0..1_000_000 {
            flows.of(PeerId(1), &update(worker, 0));
        }
        assert_eq!(flows.records.len(), MOST);
    }
}
