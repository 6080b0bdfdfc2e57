//! Which aggregator a worker's fragment asks for: our rule, and those that the paper compares.

use super::indices::Indices;
use super::options::{Allocation, Options};
use alloc::vec::Vec;
use olaf_wire::atp::{aggregator_index, rehash};

/// The aggregators of a job at a server, as a worker asks for them.
#[derive(Debug)]
pub(super) enum Allocated {
    Window(Indices),
    Hashed(Hashed),
    Row(Row),
}

impl Default for Allocated {
    fn default() -> Self {
        Self::Window(Indices::default())
    }
}

impl Allocated {
    /// The aggregators that all workers of a job begin with.
    pub(super) fn new(
        (job, server): (u16, u8),
        window: u16,
        aggregators: u32,
        options: &Options,
    ) -> Self {
        match options.allocation {
            Allocation::Window => Self::Window(Indices::new(job, server, window, aggregators)),
            Allocation::Hashed => Self::Hashed(Hashed::new(job, server, aggregators)),
            Allocation::Linear => Self::Row(Row { first: 0, count: aggregators, is_own: false }),
            Allocation::Static => {
                let count = aggregators / u32::from(options.parts);
                Self::Row(Row { first: u32::from(options.part) * count, count, is_own: true })
            }
        }
    }

    /// The index of a fragment; 0 where there are no aggregators.
    pub(super) fn at(&self, sequence: u64) -> u16 {
        match self {
            Self::Window(indices) => indices.at(sequence),
            Self::Hashed(hashed) => hashed.at(sequence),
            Self::Row(row) => row.at(sequence),
        }
    }

    /// A parameter packet says that a fragment met a collision at that index. `new` is the index that the server
    /// gives its place in the window.
    pub(super) fn collided(&mut self, sequence: u64, index: u16, new: u16) {
        match self {
            Self::Window(indices) => indices.set(sequence, new),
            Self::Hashed(hashed) => hashed.replace(index),
            Self::Row(_) => {}
        }
    }

    /// How many fragments a worker may be ahead of its first one without an answer: the server's `window`, or the
    /// aggregators that no other job takes.
    pub(super) fn most_ahead(&self, window: u16) -> u32 {
        match self {
            Self::Row(row) if row.is_own => row.count.clamp(1, window.into()),
            _ => window.into(),
        }
    }
}

/// `HASH(job, sequence) % N`, and `HASH(index) % N` in place of an index after a collision (ATP §3.5, §3.6).
///
/// differs: in the paper the server computes the new index. It is a function of the old one, so that each worker
/// computes the same here.
#[derive(Debug)]
pub(super) struct Hashed {
    job: u16,
    server: u8,
    /// What became of each index.
    now: Vec<u16>,
}

impl Hashed {
    fn new(job: u16, server: u8, aggregators: u32) -> Self {
        let now = (0..aggregators).map(|index| u16::try_from(index).unwrap_or(u16::MAX)).collect();
        Self { job, server, now }
    }

    fn at(&self, sequence: u64) -> u16 {
        let count = u32::try_from(self.now.len()).unwrap_or(u32::MAX);
        let index = aggregator_index(self.job, self.server, sequence as u16, count);
        self.now.get(usize::from(index)).copied().unwrap_or(0)
    }

    /// All fragments that would have had that index have another one from now on.
    fn replace(&mut self, index: u16) {
        let count = u32::try_from(self.now.len()).unwrap_or(u32::MAX);
        let new = rehash(index, self.job, count);
        self.now.iter_mut().filter(|now| **now == index).for_each(|now| *now = new);
    }
}

/// `sequence % N`, in all aggregators or in a part of them (ATP §5.4).
#[derive(Debug)]
pub(super) struct Row {
    first: u32,
    count: u32,
    /// No other job has them.
    is_own: bool,
}

impl Row {
    fn at(&self, sequence: u64) -> u16 {
        let within = sequence.checked_rem(self.count.into()).unwrap_or(0);
        u16::try_from(u64::from(self.first) + within).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    fn allocated(change: impl FnOnce(&mut Options)) -> Allocated {
        let mut options = Options::default();
        change(&mut options);
        Allocated::new((7, 0), 500, 90, &options)
    }

    #[test]
    fn a_static_part_is_a_jobs_own_and_its_window() {
        let part = |part| {
            allocated(|options| {
                (options.allocation, options.parts, options.part) = (Allocation::Static, 3, part);
            })
        };
        let indices = |of: &Allocated| (0..500).map(|at| of.at(at)).collect::<BTreeSet<u16>>();
        for at in 0..3 {
            let first = 30 * at;
            assert_eq!(indices(&part(at)), (first..first + 30).collect());
            assert_eq!(part(at).most_ahead(500), 30);
        }
    }

    #[test]
    fn a_row_counts_through_all_aggregators_whatever_collides() {
        let mut row = allocated(|options| options.allocation = Allocation::Linear);
        row.collided(3, 3, 60);
        assert_eq!([row.at(0), row.at(3), row.at(89), row.at(90)], [0, 3, 89, 0]);
        assert_eq!(row.most_ahead(500), 500);
    }

    #[test]
    fn after_a_collision_a_hash_has_another_index_for_all_its_fragments() {
        let mut hashed = allocated(|options| options.allocation = Allocation::Hashed);
        let before: Vec<u16> = (0..5000).map(|at| hashed.at(at)).collect();
        assert!(before[..500] != before[500..1000], "no window of fragments repeats");
        let (index, new) = (before[3], rehash(before[3], 7, 90));
        assert_ne!(index, new);
        // The server's own choice counts for the other rule.
        hashed.collided(3, index, 89);
        for (at, before) in (0..).zip(&before) {
            assert_eq!(hashed.at(at), if *before == index { new } else { *before });
        }
    }

    #[test]
    fn without_aggregators_there_is_one_index() {
        for allocation in [Allocation::Hashed, Allocation::Linear, Allocation::Static] {
            let options = Options { allocation, ..Options::default() };
            let mut none = Allocated::new((7, 0), 500, 0, &options);
            none.collided(1, 0, 3);
            assert_eq!((none.at(0), none.at(9)), (0, 0));
        }
    }
}
