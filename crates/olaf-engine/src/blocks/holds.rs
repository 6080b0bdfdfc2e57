//! Up to which block each member holds the results.

use alloc::vec;
use alloc::vec::Vec;

/// For each member: it holds the results of all blocks below this one. The smallest is always at
/// hand: every piece needs it.
#[derive(Clone, Debug)]
pub(super) struct Holds {
    of: Vec<u64>,
    min: u64,
    /// Members that hold no more than `min` says.
    at_min: usize,
}

impl Holds {
    pub(super) fn new(members: u32) -> Self {
        Self { of: vec![0; members as usize], min: 0, at_min: members as usize }
    }

    /// Members.
    pub(super) fn members(&self) -> u32 {
        self.of.len() as u32
    }

    /// Of a member, where the table has it.
    #[inline]
    pub(super) fn of(&self, member: u32) -> Option<u64> {
        self.of.get(member as usize).copied()
    }

    /// Of the slowest member.
    #[inline]
    pub(super) const fn min(&self) -> u64 {
        self.min
    }

    /// Notes what a member says; an older word of its changes nothing.
    #[inline]
    pub(super) fn note(&mut self, member: u32, holds: u64) {
        let Some(known) = self.of.get_mut(member as usize) else { return };
        if holds <= *known {
            return;
        }
        let was_slowest = *known == self.min;
        *known = holds;
        if was_slowest {
            self.at_min -= 1;
            if self.at_min == 0 {
                self.find_min();
            }
        }
    }

    /// The last of the slowest members has moved on. That happens once a block at most.
    fn find_min(&mut self) {
        self.min = self.of.iter().copied().min().expect("a table has members");
        self.at_min = self.of.iter().filter(|holds| **holds == self.min).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_slowest_member_is_always_known(notes in prop::collection::vec((0u32..5, 0u64..9), 0..60)) {
            let (mut holds, mut slow) = (Holds::new(4), [0u64; 4]);
            for (member, block) in notes {
                holds.note(member, block);
                if let Some(known) = slow.get_mut(member as usize) {
                    *known = block.max(*known);
                }
                prop_assert_eq!(Some(holds.min()), slow.iter().copied().min());
            }
        }
    }
}
