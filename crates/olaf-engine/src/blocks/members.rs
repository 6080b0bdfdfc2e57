//! A set of the members of a table: the workers and switches whose pieces meet in it.

use alloc::vec;
use alloc::vec::Vec;

/// Members in one word.
const WORD: usize = u64::BITS as usize;

/// A set of members, by their numbers from 0.
///
/// Sets are equal when they have the same members, however large the tables are that they are of.
#[derive(Clone, Debug, Default, Eq)]
pub struct Members {
    words: Vec<u64>,
    count: u32,
}

impl Members {
    /// No member of a table of `size`.
    #[must_use]
    pub fn none(size: u32) -> Self {
        Self { words: vec![0; (size as usize).div_ceil(WORD)], count: 0 }
    }

    /// Adds a member; false where it was in the set. Grows where the member's number is larger than
    /// any before.
    pub fn insert(&mut self, member: u32) -> bool {
        let (at, bit) = place(member);
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        let is_new = self.words[at] & bit == 0;
        self.words[at] |= bit;
        self.count += u32::from(is_new);
        is_new
    }

    /// Whether a member is in the set.
    #[must_use]
    pub fn contains(&self, member: u32) -> bool {
        let (at, bit) = place(member);
        self.words.get(at).is_some_and(|word| word & bit != 0)
    }

    /// Forgets all members; keeps the memory.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
    }

    /// The number of members in the set.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let words = (0u32..).step_by(WORD).zip(&self.words);
        words.flat_map(|(first, word)| {
            (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

const fn place(member: u32) -> (usize, u64) {
    (member as usize / WORD, 1 << (member as usize % WORD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_is_a_set(numbers in prop::collection::vec(0u32..300, 0..80), size in 0u32..300) {
            let (mut members, mut twin) = (Members::none(size), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(members.insert(number), twin.insert(number));
                prop_assert_eq!(members.count() as usize, twin.len());
            }
            prop_assert!(members.iter().eq(twin.iter().copied()));
            prop_assert!((0..310).all(|one| members.contains(one) == twin.contains(&one)));
            let mut other = Members::default();
            twin.iter().for_each(|one| { other.insert(*one); });
            prop_assert_eq!(&members, &other);
            members.clear();
            prop_assert_eq!(members, Members::default());
        }
    }
}
