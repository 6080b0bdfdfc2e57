//! Which vector a packet is of, and whose vectors were told of.
//!
//! A data packet does not say where its vector begins (iSwitch §3.2). Each vector begins behind the last packet of the
//! one before it.

use alloc::collections::BTreeSet;

/// The vectors of a generation that are not complete.
#[derive(Clone, Debug, Default)]
pub(super) struct Vectors {
    /// The first packet of each vector, as far as the last packet before it came. The first vector begins at 0.
    firsts: BTreeSet<u64>,
    /// Vectors whose last packets came.
    ended: u32,
    /// Vectors, by their first packets, and members whose packets in them were no finite numbers.
    told: BTreeSet<(u64, u32)>,
    /// Packets with a worker's vector of a number above 0 in their sums.
    numbered: BTreeSet<u64>,
}

impl Vectors {
    /// Packet `index` is the last one of its vector. All packets below `complete` have results: members' packets
    /// below it are in no sum any more, and vectors that end there are forgotten.
    pub(super) fn end_at(&mut self, index: u64, complete: u64) {
        let is_new = self.firsts.insert(index + 1);
        self.ended = self.ended.saturating_add(is_new.into());
        let oldest = self.first_of(complete);
        self.firsts = self.firsts.split_off(&oldest);
        self.told = self.told.split_off(&(oldest, 0));
    }

    /// Vectors whose last packets came.
    pub(super) const fn ended(&self) -> u32 {
        self.ended
    }

    /// Returns true if a vector with a number above 0 is in the sum of packet `index`. Cells of packets below
    /// `oldest` have given way.
    pub(super) fn note_numbered(&mut self, index: u64, is_numbered: bool, oldest: u64) {
        if is_numbered {
            self.numbered.insert(index);
            self.numbered = self.numbered.split_off(&oldest);
        } else {
            self.numbered.remove(&index);
        }
    }

    /// See [`note_numbered`](Self::note_numbered).
    pub(super) fn is_numbered(&self, index: u64) -> bool {
        self.numbered.contains(&index)
    }

    /// The first packet of the vector that a packet is of. While the last packet of the vector before is missing, that
    /// is the first packet of the vector before.
    pub(super) fn first_of(&self, index: u64) -> u64 {
        self.firsts.range(..=index).next_back().copied().unwrap_or(0)
    }

    /// Returns true if nobody was told yet that the member's packets in that vector are no finite
    /// numbers.
    pub(super) fn is_news(&mut self, first: u64, member: u32) -> bool {
        self.told.insert((first, member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_begins_behind_the_last_packet_of_the_one_before() {
        let mut vectors = Vectors::default();
        assert_eq!(vectors.first_of(70), 0, "nothing has ended");
        vectors.end_at(9, 0);
        vectors.end_at(4, 0);
        vectors.end_at(4, 0);
        let first_of = |index| vectors.first_of(index);
        assert_eq!([0, 4, 5, 9, 10, 70].map(first_of), [0, 0, 5, 5, 10, 10]);
    }

    #[test]
    fn each_member_is_news_once_in_each_vector() {
        let mut vectors = Vectors::default();
        vectors.end_at(4, 0);
        assert!(vectors.is_news(0, 1) && vectors.is_news(0, 2) && vectors.is_news(5, 1));
        assert!(!vectors.is_news(0, 1) && !vectors.is_news(5, 1));
    }

    #[test]
    fn vectors_with_results_are_forgotten() {
        let mut vectors = Vectors::default();
        for vector in 0..1000 {
            let first = vector * 3;
            assert!(vectors.is_news(vectors.first_of(first), 0));
            vectors.end_at(first + 2, first.saturating_sub(30));
            assert!(vectors.firsts.len() <= 12 && vectors.told.len() <= 12, "{vectors:?}");
            assert!(!vectors.is_news(vectors.first_of(first), 0), "it is of an open vector");
        }
    }
}
