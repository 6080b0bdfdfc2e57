//! Which of many has the earliest deadline, without a look at the others.

use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};

/// At most one deadline of each, in their order.
#[derive(Clone, Debug)]
pub struct Deadlines<K> {
    of: BTreeMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Deadlines<K> {
    /// The deadline of one is there from now on; none: it has none.
    pub fn set(&mut self, of: K, at: Option<Instant>) {
        let before = self.of.get(&of).copied();
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, of));
        }
        match at {
            Some(at) => {
                self.of.insert(of, at);
                self.order.insert((at, of));
            }
            None => {
                self.of.remove(&of);
            }
        }
    }

    /// The earliest deadline.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes out the one with the earliest deadline, where that has come.
    pub fn pop(&mut self, now: Instant) -> Option<K> {
        self.next().filter(|at| *at <= now)?;
        let (_, of) = self.order.pop_first()?;
        self.of.remove(&of);
        Some(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cmp::Ordering;
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use proptest::prelude::*;

    static COMPARED: AtomicU64 = AtomicU64::new(0);

    /// A job that counts how often it is looked at.
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

    /// Looks of one turn beside that many jobs: a deadline moves, another one comes, and the next is asked for.
    fn looks(jobs: u32) -> u64 {
        let mut deadlines = Deadlines::default();
        let at = Instant(1000);
        (0..jobs).for_each(|job| deadlines.set(Counted(job), Some(at)));
        COMPARED.store(0, Relaxed);
        deadlines.set(Counted(jobs / 2), Some(Instant(2000)));
        assert_eq!(deadlines.next(), Some(at));
        assert_eq!(deadlines.pop(at), Some(Counted(0)));
        COMPARED.load(Relaxed)
    }

    #[test]
    fn a_turn_beside_ten_thousand_jobs_looks_at_about_as_many_as_beside_ten() {
        let (few, many) = (looks(10), looks(10_000));
        assert!(few > 0 && many <= few + 200, "{few} and {many} looks");
    }

    proptest! {
        #[test]
        fn the_earliest_deadline_is_that_of_a_walk_through_all(
            steps in prop::collection::vec((0usize..6, prop::option::of(0u64..40)), 1..200),
        ) {
            let (mut deadlines, mut reference) = (Deadlines::default(), [None; 6]);
            let mut now = 0;
            for (of, after) in steps {
                let at = after.map(|after| Instant(now + after));
                deadlines.set(of, at);
                reference[of] = at;
                prop_assert_eq!(deadlines.next(), reference.iter().flatten().min().copied());
                now += 7;
                while let Some(over) = deadlines.pop(Instant(now)) {
                    prop_assert!(reference[over].take().is_some_and(|at| at.0 <= now));
                }
                prop_assert!(reference.iter().flatten().all(|at| at.0 > now));
                prop_assert_eq!(deadlines.of.len(), reference.iter().flatten().count());
            }
        }
    }
}
