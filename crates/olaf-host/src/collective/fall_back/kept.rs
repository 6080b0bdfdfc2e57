//! The results that a worker keeps because another worker may lack them.

use super::super::{Failure, Reduction, Sum};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use olaf_wire::reduce::LaneType;

/// After that many bytes of results the worker looks which of them all workers hold.
const STAMP_BYTES: usize = 4 << 20;
/// The same, of operations.
const STAMP_OPERATIONS: u32 = 256;
/// Memory of that many results is used again.
const MOST_FREE: usize = 4;
/// Results travel as lanes of this many bytes.
const WORD: usize = 8;

/// What an operation is. Workers whose operations differ in this must not share a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) lane_type: LaneType,
    pub(super) reduction: Reduction,
    /// Bytes of its lanes.
    pub(super) bytes: usize,
}

/// How an operation ended at all workers alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With lanes.
    Well(Sum),
    /// [`Failure::Partial`], with these contributors and expected workers.
    Partial(u32, u32),
    /// [`Failure::NotFinite`].
    NotFinite,
}

impl End {
    /// None: another worker may see another end.
    pub(super) const fn of(outcome: Result<Sum, Failure>) -> Option<Self> {
        match outcome {
            Ok(sum) => Some(Self::Well(sum)),
            Err(Failure::Partial { contributors, expected }) => {
                Some(Self::Partial(contributors, expected))
            }
            Err(Failure::NotFinite { .. }) => Some(Self::NotFinite),
            Err(_) => None,
        }
    }

    /// What a worker makes of it whose own call accepts a sum without some workers, or not.
    pub(super) const fn outcome(self, accepts_partial: bool) -> Result<Sum, Failure> {
        match self {
            Self::Well(sum) if sum.contributors < sum.expected && !accepts_partial => {
                let Sum { contributors, expected, .. } = sum;
                Err(Failure::Partial { contributors, expected })
            }
            Self::Well(sum) => Ok(sum),
            Self::Partial(contributors, expected) => {
                Err(Failure::Partial { contributors, expected })
            }
            Self::NotFinite => Err(Failure::NotFinite { rank: None }),
        }
    }
}

/// The end of an operation, as another worker may need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) kind: Kind,
    pub(super) end: End,
    /// The result, filled up to whole words; empty after a failure.
    pub(super) lanes: Vec<u8>,
}

/// Results that another worker may lack, the oldest first.
///
/// A worker that holds the result of block `b` knows that all workers hold the results of all blocks up to `b - 2 slots`:
/// otherwise the switch had no cell for block `b` (`docs/design/028-reduce.md`).
#[derive(Debug, Default)]
pub(super) struct Kept {
    results: BTreeMap<u64, Outcome>,
    bytes: usize,
    /// Blocks that this worker held, and its newest result then.
    stamps: VecDeque<(u32, u64)>,
    bytes_since: usize,
    count_since: u32,
    free: VecDeque<Vec<u8>>,
}

impl Kept {
    /// A copy of these lanes, filled up to whole words. It is made in memory of a result that nobody needs, where such
    /// memory fits: a large piece of new memory costs more than the copy.
    pub(super) fn copy(&mut self, lanes: &[u8]) -> Vec<u8> {
        let mut copy = self.memory(lanes.len());
        copy_into(&mut copy, lanes);
        copy
    }

    /// Empty memory with room for that many bytes, in whole words.
    pub(super) fn memory(&mut self, bytes: usize) -> Vec<u8> {
        let bytes = words(bytes);
        let fits = self.free.iter().position(|free| free.capacity() == bytes);
        let free = fits.and_then(|at| self.free.remove(at));
        free.unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    /// Keeps a result. `held` says now and then up to which block this worker holds results, and the slots of its
    /// generation; none outside of a generation.
    pub(super) fn add(
        &mut self,
        operation: u64,
        outcome: Outcome,
        held: impl FnOnce() -> Option<(u32, u32)>,
    ) {
        let bytes = outcome.lanes.len();
        self.results.insert(operation, outcome);
        self.bytes += bytes;
        self.bytes_since += bytes;
        self.count_since += 1;
        if self.bytes_since < STAMP_BYTES && self.count_since < STAMP_OPERATIONS {
            return;
        }
        (self.bytes_since, self.count_since) = (0, 0);
        let Some((holds, slots)) = held() else { return };
        while let Some(&(then, newest)) = self.stamps.front() {
            if u64::from(then) + 2 * u64::from(slots) > u64::from(holds) {
                break;
            }
            self.stamps.pop_front();
            self.drop_up_to(newest);
        }
        self.stamps.push_back((holds, operation));
    }

    pub(super) fn of(&self, operation: u64) -> Option<&Outcome> {
        self.results.get(&operation)
    }

    /// Bytes of all results.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn drop_up_to(&mut self, newest: u64) {
        let later = self.results.split_off(&(newest + 1));
        for outcome in core::mem::replace(&mut self.results, later).into_values() {
            self.bytes -= outcome.lanes.len();
            if outcome.lanes.is_empty() {
                continue;
            }
            if self.free.len() == MOST_FREE {
                self.free.pop_front();
            }
            self.free.push_back(outcome.lanes);
        }
    }
}

/// The length of lanes that are filled up to whole words.
pub(super) const fn words(bytes: usize) -> usize {
    bytes.next_multiple_of(WORD)
}

/// Overwrites a copy with these lanes, filled up to whole words.
pub(super) fn copy_into(copy: &mut Vec<u8>, lanes: &[u8]) {
    copy.clear();
    copy.extend_from_slice(lanes);
    copy.resize(words(lanes.len()), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(bytes: usize) -> Outcome {
        let sum = Sum { contributors: 3, expected: 3, not_finite: false };
        let kind = Kind { lane_type: LaneType::F32, reduction: Reduction::Sum, bytes };
        Outcome { kind, end: End::Well(sum), lanes: alloc::vec![7; words(bytes)] }
    }

    #[test]
    fn a_result_is_kept_until_all_workers_are_known_to_hold_it() {
        let mut kept = Kept::default();
        // Each result has one block of 64 KiB, and a stamp comes after 64 of them. There are 16 slots.
        for operation in 0..1000_u64 {
            kept.add(operation, outcome(64 << 10), || Some((operation as u32 + 1, 16)));
            let held = operation as u32 + 1;
            let newest = (0..=operation).rev().take_while(|old| kept.of(*old).is_some()).count();
            assert!(newest >= 32.min(operation as usize + 1), "{held}: two times the slots");
            assert!(kept.bytes() <= (32 + 3 * 64) * (64 << 10), "{held}: {} bytes", kept.bytes());
            assert_eq!(kept.bytes(), newest * (64 << 10), "the newest ones, and no others");
        }
    }

    #[test]
    fn outside_of_a_generation_nothing_is_dropped() {
        let mut kept = Kept::default();
        (0..300).for_each(|operation| kept.add(operation, outcome(64 << 10), || None));
        assert!((0..300).all(|operation| kept.of(operation).is_some()));
    }

    #[test]
    fn memory_of_a_result_that_nobody_needs_is_used_again() {
        let mut kept = Kept::default();
        for operation in 0..100_u64 {
            kept.add(operation, outcome(STAMP_BYTES), || Some((operation as u32 * 100, 16)));
        }
        let dropped: Vec<_> = kept.free.iter().map(|free| free.as_ptr()).collect();
        assert_eq!(dropped.len(), MOST_FREE);
        assert!(dropped.contains(&kept.copy(&alloc::vec![1; STAMP_BYTES - 3]).as_ptr()));
        assert!(!dropped.contains(&kept.copy(&[1; 9]).as_ptr()), "no memory of another size");
        assert_eq!(kept.copy(&[1; 9]), [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
