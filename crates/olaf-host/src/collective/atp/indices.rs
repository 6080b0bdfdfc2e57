//! Which aggregator each fragment of a job meets in, and which other one takes its place after a
//! collision (ATP §3.5, §3.6).
//!
//! differs: the paper hashes job and sequence number, and replaces one index by another for all
//! fragments that have it. In our simulation this made collisions three times as frequent: many indices
//! end in the same few. Here a window of fragments has an index each, no two of a job the same where
//! that can be, and a fragment uses the index of the one a window before it. After a collision the
//! server gives that one place of the window another index. A worker sends no fragment of the place
//! before it has the answer that says so; so all workers change at the same fragment.

use alloc::vec::Vec;
use olaf_wire::atp::{aggregator_index, rehash};

/// Indices that are tried before two fragments of a window share one.
const TRIES: u32 = 64;

/// The indices of a window of fragments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indices {
    job: u16,
    aggregators: u32,
    /// By place in the window; empty without aggregators.
    of: Vec<u16>,
    /// How many places have an index.
    used: Vec<u16>,
}

impl Indices {
    /// The first indices of a job at a server. All workers and the server have the same.
    pub(super) fn new(job: u16, server: u8, window: u16, aggregators: u32) -> Self {
        let used = alloc::vec![0; aggregators as usize];
        let mut indices = Self { job, aggregators, of: Vec::new(), used };
        if aggregators > 0 {
            for place in 0..window {
                let index = indices.free(aggregator_index(job, server, place, aggregators));
                indices.used[usize::from(index)] += 1;
                indices.of.push(index);
            }
        }
        indices
    }

    /// The index of a fragment; 0 where there are no aggregators.
    pub(super) fn at(&self, sequence: u64) -> u16 {
        self.place(sequence).map_or(0, |place| self.of[place])
    }

    /// The fragment's place in the window has that index from now on.
    pub(super) fn set(&mut self, sequence: u64, index: u16) {
        let Some(place) = self.place(sequence) else { return };
        if u32::from(index) < self.aggregators {
            self.used[usize::from(self.of[place])] -= 1;
            self.used[usize::from(index)] += 1;
            self.of[place] = index;
        }
    }

    /// An index for the fragment's place after a collision, which the place has from now on.
    pub(super) fn replace(&mut self, sequence: u64) -> Option<u16> {
        let place = self.place(sequence).filter(|_| self.aggregators > 1)?;
        let index = self.free(rehash(self.of[place], self.job, self.aggregators));
        self.set(sequence, index);
        Some(index)
    }

    fn place(&self, sequence: u64) -> Option<usize> {
        (!self.of.is_empty()).then(|| (sequence % self.of.len() as u64) as usize)
    }

    /// That index, or one behind it that no place has.
    fn free(&self, mut index: u16) -> u16 {
        for _ in 0..TRIES {
            if self.used[usize::from(index)] == 0 {
                break;
            }
            index = rehash(index, self.job, self.aggregators);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn fragments_of_a_window_meet_in_different_aggregators() {
        let indices = Indices::new(1, 0, 200, 1024);
        let different: BTreeSet<u16> = (0..200).map(|sequence| indices.at(sequence)).collect();
        assert_eq!(different.len(), 200);
        assert_eq!(indices.at(7), indices.at(207), "a window later");
        assert_eq!(indices, Indices::new(1, 0, 200, 1024), "all compute the same");
    }

    #[test]
    fn after_a_collision_a_place_has_another_index() {
        let mut server = Indices::new(1, 0, 200, 1024);
        let mut worker = server.clone();
        let before = server.at(205);
        let index = server.replace(5).expect("there are others");
        worker.set(5, index);
        assert!(index != before && worker.at(205) == index && worker == server);
        assert_eq!((0..200).filter(|sequence| server.at(*sequence) == index).count(), 1);
    }

    #[test]
    fn too_few_aggregators_are_shared() {
        for aggregators in 0..4 {
            let mut indices = Indices::new(1, 0, 200, aggregators);
            (0..400).for_each(|sequence| {
                indices.replace(sequence);
                assert!(u32::from(indices.at(sequence)) < aggregators.max(1));
            });
            indices.set(3, u16::MAX);
            assert!(u32::from(indices.at(3)) < aggregators.max(1), "of a broken message");
        }
    }
}
