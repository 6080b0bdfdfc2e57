//! How far the programs of a job's workers are, as their joins say: the next generation begins behind the one that is the
//! furthest. The others let operations fail that this one has begun.

use alloc::vec::Vec;
use olaf_wire::{operations_after, operations_ahead};

/// Operations that a member may have begun without any packets of theirs having come here.
const MOST_UNSEEN: u32 = 1024;

/// The operations of a generation that a member has begun by its own count, as far as it is believed. The generation began
/// at `start`, and has seen packets of `seen` operations.
#[must_use]
pub fn begun(count: u32, start: u32, seen: u32) -> u32 {
    // A member that never heard of the generation may be behind its beginning.
    let ahead = u32::try_from(operations_ahead(count, start)).unwrap_or(0);
    ahead.min(seen.saturating_add(MOST_UNSEEN))
}

/// The count that a generation begins at in a new life of the authority, which knows nothing of the one before: it believes
/// the count in the middle, and those that are not too far ahead of it. None: no member's program has begun any.
#[must_use]
pub fn furthest(counts: impl Iterator<Item = u32>) -> Option<u32> {
    let counts: Vec<u32> = counts.collect();
    let one = *counts.first()?;
    let mut ahead: Vec<i32> = counts.iter().map(|count| operations_ahead(*count, one)).collect();
    ahead.sort_unstable();
    let most = ahead[(ahead.len() - 1) / 2].saturating_add_unsigned(MOST_UNSEEN);
    let furthest = ahead.into_iter().rev().find(|ahead| *ahead <= most)?;
    Some(operations_after(one, furthest.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_believed_as_far_as_can_be() {
        assert_eq!(begun(45, 40, 0), 5);
        assert_eq!(begun(39, 40, 7), 0, "it never heard of the generation");
        assert_eq!(begun(1_000_000, 40, 7), 1031);
        assert_eq!(begun(1, (1 << 31) - 2, 0), 3, "counts begin again");
    }

    #[test]
    fn a_new_life_believes_those_near_the_one_in_the_middle() {
        let furthest = |counts: &[u32]| furthest(counts.iter().copied());
        assert_eq!(furthest(&[57, 55]), Some(57));
        assert_eq!(furthest(&[]), None);
        assert_eq!(furthest(&[5000, 0]), Some(0), "one of them is wrong");
        assert_eq!(furthest(&[57, 55, 1_000_000]), Some(57));
        assert_eq!(furthest(&[57, 55, 0]), Some(57));
        assert_eq!(furthest(&[(1 << 31) - 2, 1, (1 << 31) - 1]), Some(1), "counts begin again");
    }
}
