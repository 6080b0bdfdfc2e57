//! What became of a sender's newest updates in one flow, as an answer says it.

use olaf_wire::{Ends, serial};

/// The 16 oldest of the 64 known numbers. If one of them has not come, it is given up: its sender
/// is told, and the update is refused if it comes later. No sane network reorders by 48 updates.
const GIVEN_UP: u64 = 0xffff << 48;
/// A number this far from the newest is of another life of the sender.
const ANOTHER_LIFE: u32 = 1 << 16;

/// Whether a number may come after a later one of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It may.
    Any,
    /// It is refused: what was left out never comes.
    Kept,
}

/// The last 64 numbers of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowEnds {
    ends: Ends,
    /// Numbers that came.
    seen: u64,
    /// Numbers since the first one that was heard of.
    counted: u64,
    /// Numbers whose end the sender was not told since it is known.
    untold: u64,
}

impl FlowEnds {
    /// An update of that number comes; whether it is to be taken. 0 is no number: the sender does
    /// not count.
    #[inline]
    pub fn arrives(&mut self, number: u32, order: Order) -> bool {
        let Ends { newest, .. } = self.ends;
        if number == 0 {
            return true;
        }
        let ahead = number.wrapping_sub(newest);
        let distance = ahead.min(ahead.wrapping_neg());
        if newest == 0 || distance >= ANOTHER_LIFE {
            let ends = Ends { newest: number, delivered: 0, ended: 0 };
            *self = Self { ends, seen: 1, counted: 1, untold: 0 };
            return true;
        }
        if serial::is_after(number, newest) {
            self.shift(ahead);
            self.ends.newest = number;
            let left_out = match order {
                Order::Kept => below(ahead) & !1,
                Order::Any => GIVEN_UP,
            };
            self.end(left_out & self.counted & !self.seen);
            self.seen |= 1;
            return true;
        }
        match Ends::bit(newest, number) {
            Some(bit) if self.ends.ended & bit == 0 => {
                self.seen |= bit;
                true
            }
            _ => false,
        }
    }

    fn shift(&mut self, by: u32) {
        // One comparison for all of them, and not one for each.
        let (kept, by) = if by < 64 { (u64::MAX, by) } else { (0, 0) };
        let shifted = |mask: u64| (mask & kept) << by;
        self.ends.delivered = shifted(self.ends.delivered);
        self.ends.ended = shifted(self.ends.ended);
        self.seen = shifted(self.seen);
        self.untold = shifted(self.untold);
        self.counted = shifted(self.counted) | if kept == 0 { u64::MAX } else { below(by) };
    }

    /// It reached the server.
    pub fn delivered(&mut self, number: u32) {
        if let Some(bit) = self.bit(number) {
            self.untold |= bit & !self.ends.delivered;
            self.ends.delivered |= bit;
            self.ends.ended &= !bit;
        }
    }

    /// It never will.
    pub fn ended(&mut self, number: u32) {
        if let Some(bit) = self.bit(number) {
            self.end(bit);
        }
    }

    fn end(&mut self, numbers: u64) {
        let new = numbers & !self.ends.delivered & !self.ends.ended;
        self.ends.ended |= new;
        self.untold |= new;
    }

    /// Takes in what is said of a number and those before it.
    pub fn note(&mut self, said: &Ends) {
        for behind in 0..64 {
            let number = said.newest.wrapping_sub(behind);
            if said.is_delivered(number) {
                self.delivered(number);
            } else if said.has_ended(number) {
                self.ended(number);
            }
        }
    }

    /// What is known; [`Ends::NONE`] before anything is.
    #[must_use]
    pub fn ends(&self) -> Ends {
        if self.ends.delivered | self.ends.ended == 0 { Ends::NONE } else { self.ends }
    }

    /// Says what is known; from now on the sender has been told.
    pub fn tell(&mut self) -> Ends {
        self.untold = 0;
        self.ends()
    }

    /// Returns true if the arrival of that number would push out an end that the sender was not
    /// told. The sender would then never hear of it.
    ///
    /// Example: number 1 was replaced, and the answer to its successor was to say so. Before that
    /// answer comes, the sender sends 65: only the ends of 2 to 65 are kept from then on.
    #[must_use]
    pub fn would_forget(&self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.ends.newest);
        self.untold != 0 && (self.untold.leading_zeros() + 1..ANOTHER_LIFE).contains(&ahead)
    }

    /// Returns true if it can speak of a number still.
    #[must_use]
    pub fn remembers(&self, number: u32) -> bool {
        self.bit(number).is_some()
    }

    fn bit(&self, number: u32) -> Option<u64> {
        if number == 0 || self.ends.newest == 0 {
            return None;
        }
        Ends::bit(self.ends.newest, number)
    }
}

/// Bits below a position; that of the newest included.
const fn below(position: u32) -> u64 {
    if position >= 64 { u64::MAX } else { (1 << position) - 1 }
}

/// Numbers of one sender that wait together: the newest, and which before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    newest: u32,
    mask: u64,
}

impl Numbers {
    pub(crate) const fn one(number: u32) -> Self {
        Self { newest: number, mask: 1 }
    }

    /// Adds a later number; false where the masks do not reach from the oldest to it.
    pub(crate) fn add(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.newest);
        if ahead <= self.mask.leading_zeros() && ahead < 64 {
            self.mask = self.mask << ahead | 1;
            self.newest = number;
            return true;
        }
        match Ends::bit(self.newest, number) {
            Some(bit) => {
                self.mask |= bit;
                true
            }
            None => false,
        }
    }

    /// What is said of them, all alike.
    pub(crate) const fn ends(self, delivered: bool) -> Ends {
        let Self { newest, mask } = self;
        if delivered {
            Ends { newest, delivered: mask, ended: 0 }
        } else {
            Ends { newest, delivered: 0, ended: mask }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn in_order_what_was_left_out_has_ended() {
        let mut flow = FlowEnds::default();
        assert!(flow.arrives(100, Order::Kept));
        assert_eq!(flow.ends(), Ends::NONE, "nothing is known of what came, nor of before");
        assert!(flow.arrives(103, Order::Kept));
        flow.delivered(100);
        assert_eq!(flow.ends(), Ends { newest: 103, delivered: 1 << 3, ended: 0b110 });
        assert!(!flow.arrives(101, Order::Kept));
    }

    #[test]
    fn out_of_order_what_is_left_out_is_waited_for_and_then_given_up() {
        let mut flow = FlowEnds::default();
        for number in (10..).take(3).chain(14..58) {
            assert!(flow.arrives(number, Order::Any));
        }
        assert!(!flow.ends().has_ended(13));
        let mut late = flow;
        assert!(late.arrives(13, Order::Any), "it was only late");
        (58..62).for_each(|number| assert!(flow.arrives(number, Order::Any)));
        assert!(flow.ends().has_ended(13) && !flow.arrives(13, Order::Any));
        assert!(!flow.ends().has_ended(9), "before the first nothing is known");
    }

    #[test]
    fn another_life_of_the_sender_counts_anew() {
        let mut flow = FlowEnds::default();
        flow.arrives(serial::of_life(1), Order::Any);
        flow.delivered(serial::of_life(1));
        flow.arrives(serial::of_life(2), Order::Any);
        assert_eq!(flow.ends(), Ends::NONE);
    }

    #[test]
    fn an_end_is_told_before_it_is_forgotten() {
        let mut flow = FlowEnds::default();
        flow.arrives(1, Order::Kept);
        flow.ended(1);
        assert!(!flow.would_forget(64) && flow.would_forget(65));
        let mut told = flow;
        assert_eq!(told.tell(), Ends { newest: 1, delivered: 0, ended: 1 });
        assert!(!told.would_forget(65), "it was told");
        told.ended(1);
        assert!(!told.would_forget(65), "that is no news");
        told.delivered(1);
        assert!(told.would_forget(65), "it arrived after all");
        flow.arrives(60, Order::Kept);
        assert!(!flow.would_forget(64) && flow.would_forget(65), "2 to 59 were left out");
    }

    #[test]
    fn numbers_that_wait_together_are_named_together_as_far_as_a_mask_reaches() {
        let mut numbers = Numbers::one(5);
        assert!(numbers.add(6) && numbers.add(9) && numbers.add(8));
        assert_eq!(numbers.ends(true), Ends { newest: 9, delivered: 0b11011, ended: 0 });
        assert!(numbers.add(68) && !numbers.add(69), "5 and 68 are 63 apart");
    }

    proptest! {
        #[test]
        fn what_is_said_is_what_happened(steps in prop::collection::vec((0i64..6, any::<bool>()), 1..300)) {
            let mut flow = FlowEnds::default();
            let mut fates: BTreeMap<u32, bool> = BTreeMap::new();
            let mut given_up: BTreeSet<u32> = BTreeSet::new();
            let mut number = 1000u32;
            for (skip, delivered) in steps {
                number += skip as u32;
                let taken = flow.arrives(number, Order::Any);
                if taken {
                    if delivered { flow.delivered(number) } else { flow.ended(number) }
                    let was = fates.get(&number).copied().unwrap_or(false);
                    fates.insert(number, delivered || was);
                }
                let ends = flow.ends();
                prop_assert_eq!(ends.delivered & ends.ended, 0);
                for behind in 0..64u32 {
                    let one = ends.newest.wrapping_sub(behind);
                    if ends.is_delivered(one) { prop_assert_eq!(fates.get(&one), Some(&true)); }
                    if ends.has_ended(one) {
                        prop_assert_ne!(fates.get(&one), Some(&true));
                        if !fates.contains_key(&one) { given_up.insert(one); }
                    }
                }
            }
            let taken: Vec<u32> = fates.keys().copied().collect();
            prop_assert!(taken.iter().all(|one| !given_up.contains(one)));
        }
    }
}
