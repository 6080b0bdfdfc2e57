//! When rounds end: the earliest of all, without a look at the others.

use alloc::collections::BTreeSet;
use olaf_engine::Instant;

/// The ends of open rounds in their order.
#[derive(Debug)]
pub(super) struct Rounds<K> {
    ends: BTreeSet<(Instant, K)>,
}

impl<K: Ord> Default for Rounds<K> {
    fn default() -> Self {
        Self { ends: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Rounds<K> {
    /// The end of one round was at `before`, and is at `now`. None: the round is not open.
    pub(super) fn moved(&mut self, of: K, before: Option<Instant>, now: Option<Instant>) {
        if before == now {
            return;
        }
        if let Some(before) = before {
            self.ends.remove(&(before, of));
        }
        if let Some(now) = now {
            self.ends.insert((now, of));
        }
    }

    /// The earliest end.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// Takes out the earliest round that is over.
    pub(super) fn pop(&mut self, now: Instant) -> Option<K> {
        self.next().filter(|at| *at <= now)?;
        self.ends.pop_first().map(|(_, of)| of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cmp::Ordering;
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use core::time::Duration;
    use proptest::prelude::*;

    static COMPARED: AtomicU64 = AtomicU64::new(0);

    /// A cluster that counts how often it is compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Counted(u32);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.fetch_add(1, Relaxed);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    /// Comparisons of one turn beside that many open rounds: a round begins, one ends, and the next end is
    /// asked for. All rounds end at once, so that their order is that of the clusters.
    fn compared(clusters: u32) -> u64 {
        let mut rounds = Rounds::default();
        let at = Instant(1000);
        (0..clusters).for_each(|cluster| rounds.moved(Counted(cluster), None, Some(at)));
        COMPARED.store(0, Relaxed);
        rounds.moved(Counted(clusters), None, Some(at));
        assert_eq!(rounds.next(), Some(at));
        assert_eq!(rounds.pop(at), Some(Counted(0)));
        COMPARED.load(Relaxed)
    }

    #[test]
    fn a_turn_beside_ten_thousand_clusters_costs_about_what_it_costs_beside_ten() {
        let (few, many) = (compared(10), compared(10_000));
        assert!(few > 0 && many <= few + 64, "{few} and {many} comparisons");
    }

    proptest! {
        #[test]
        fn the_earliest_end_is_that_of_a_search_through_all(
            steps in prop::collection::vec((0usize..6, prop::option::of(0u64..40)), 1..200),
        ) {
            let (mut rounds, mut twin) = (Rounds::default(), [None; 6]);
            let mut now = Instant(0);
            for (of, end) in steps {
                let end = end.map(|after| now + Duration::from_nanos(after));
                rounds.moved(of, twin[of], end);
                twin[of] = end;
                prop_assert_eq!(rounds.next(), twin.iter().flatten().min().copied());
                now = now + Duration::from_nanos(7);
                while let Some(over) = rounds.pop(now) {
                    prop_assert!(twin[over].take().is_some_and(|at| at <= now));
                }
                prop_assert!(twin.iter().flatten().all(|at| *at > now));
            }
        }
    }
}
