//! Who is named where the workers of a job call different operations under one number.
//!
//! Every operation has a signature (kind, operator, type, size, root, tag) that has to be equal at all workers. The first one
//! that arrives is not right because it came first. So the authority waits until each member has said what it calls, or for
//! `PATIENCE`, and names a member of the smaller side. A call that its worker has refused, because the protocol lacks it, is
//! never right: that worker is named at once.

use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;
use olaf_wire::Call;
use olaf_wire::reduce::Called;

/// How long the authority waits for members that have not said what they call.
///
/// It is shorter than anybody notices, and longer than the workers of one step are usually apart.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a member says of an operation.
pub trait Says: Copy + Ord {
    /// Returns true if the member has refused the call, because its protocol lacks it.
    fn is_refused(self) -> bool;
}

impl Says for Call {
    fn is_refused(self) -> bool {
        self.is_refused()
    }
}

impl Says for Called {
    fn is_refused(self) -> bool {
        self.call.is_refused()
    }
}

/// Lanes, and the call in 4 bits.
impl<Lanes: Copy + Ord> Says for (Lanes, u8) {
    fn is_refused(self) -> bool {
        Call::from_narrow(self.1).is_refused()
    }
}

/// An operation that members call differently.
#[derive(Clone, Debug)]
pub struct Dispute<C> {
    since: Instant,
    /// By member.
    calls: BTreeMap<u32, C>,
    /// What those call that say nothing: there is a result of it.
    assumed: Option<C>,
}

/// The member that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Odd<C> {
    /// The member.
    pub member: u32,
    /// What it calls.
    pub calls: C,
    /// What most others call.
    pub others: C,
}

impl<C: Says> Dispute<C> {
    /// A new dispute. No member's call is known yet.
    #[must_use]
    pub const fn new(since: Instant) -> Self {
        Self { since, calls: BTreeMap::new(), assumed: None }
    }

    /// A member says what it calls. Its first word counts.
    pub fn note(&mut self, member: u32, calls: C) {
        self.calls.entry(member).or_insert(calls);
    }

    /// There is a result of this call. Members that say nothing have taken it.
    pub const fn assume(&mut self, calls: C) {
        self.assumed = Some(calls);
    }

    /// Returns true if two members are known to differ.
    #[must_use]
    pub fn has_sides(&self) -> bool {
        let mut calls = self.calls.values().chain(&self.assumed);
        let first = calls.next();
        calls.any(|other| Some(other) != first)
    }

    /// The member to name, once it is clear. `members`: how many may say what they call.
    #[must_use]
    pub fn odd(&self, now: Instant, members: usize) -> Option<Odd<C>> {
        if let Some(odd) = self.refused() {
            return Some(odd);
        }
        let silent = members.saturating_sub(self.calls.len());
        if silent > 0 && now.since(self.since) < PATIENCE {
            return None;
        }
        // How many there are, and the lowest rank.
        let mut sides: BTreeMap<C, (usize, u32)> = BTreeMap::new();
        for (member, calls) in &self.calls {
            sides.entry(*calls).or_insert((0, *member)).0 += 1;
        }
        if let Some(assumed) = self.assumed {
            sides.entry(assumed).or_insert((0, u32::MAX)).0 += silent;
        }
        // Of two sides of one size the one with a result is "the others", or else the one with the lowest rank.
        let most = |(calls, (size, first)): &(&C, &(usize, u32))| {
            (*size, self.assumed == Some(**calls), core::cmp::Reverse(*first))
        };
        let (others, _) = sides.iter().max_by_key(most)?;
        let mut calls = self.calls.iter();
        if let Some((member, calls)) = calls.find(|(_, calls)| *calls != others) {
            return Some(Odd { member: *member, calls: *calls, others: *others });
        }
        // All members here are at odds with a result from elsewhere.
        let others = self.assumed.filter(|assumed| assumed != others)?;
        let (member, calls) = self.calls.first_key_value()?;
        Some(Odd { member: *member, calls: *calls, others })
    }

    /// A member that has refused a call which another one has not.
    fn refused(&self) -> Option<Odd<C>> {
        let (member, calls) = self.calls.iter().find(|(_, calls)| calls.is_refused())?;
        let mut all = self.calls.values().chain(&self.assumed);
        let others = all.find(|other| !other.is_refused())?;
        Some(Odd { member: *member, calls: *calls, others: *others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Says for char {
        fn is_refused(self) -> bool {
            self == 'r'
        }
    }

    fn dispute(calls: &[(u32, char)]) -> Dispute<char> {
        let mut dispute = Dispute::new(Instant(0));
        calls.iter().for_each(|(member, calls)| dispute.note(*member, *calls));
        dispute
    }

    #[test]
    fn the_smaller_side_is_named_whoever_came_first() {
        let odd = |calls: &[_]| dispute(calls).odd(Instant(0), calls.len());
        let first = Odd { member: 0, calls: 'm', others: 's' };
        assert_eq!(odd(&[(0, 'm'), (1, 's'), (2, 's')]), Some(first));
        assert_eq!(odd(&[(2, 's'), (1, 's'), (0, 'm')]), Some(first));
        let last = Odd { member: 2, calls: 'm', others: 's' };
        assert_eq!(odd(&[(0, 's'), (1, 's'), (2, 'm')]), Some(last));
        let one_of_two = Odd { member: 1, calls: 's', others: 'm' };
        assert_eq!(odd(&[(1, 's'), (0, 'm')]), Some(one_of_two));
        assert_eq!(odd(&[(0, 's'), (1, 's')]), None, "they agree");
    }

    #[test]
    fn who_has_refused_the_call_is_named_at_once() {
        let odd = |calls: &[_]| dispute(calls).odd(Instant(0), 5);
        let refused = |others| Some(Odd { member: 1, calls: 'r', others });
        assert_eq!(odd(&[(1, 'r'), (2, 's')]), refused('s'), "nobody else has said anything");
        let most = [(0, 's'), (1, 'r'), (2, 'r'), (3, 'r')];
        assert_eq!(odd(&most), refused('s'), "not the smaller side");
        assert_eq!(odd(&[(1, 'r'), (2, 'r')]), None, "others may have called the same");
    }

    #[test]
    fn a_member_that_says_nothing_is_waited_for_a_while() {
        let dispute = dispute(&[(0, 'm'), (1, 's')]);
        let late = Instant(PATIENCE.as_nanos() as u64);
        assert_eq!(dispute.odd(Instant(late.0 - 1), 3), None);
        assert!(dispute.odd(late, 3).is_some());
        assert!(dispute.odd(Instant(0), 2).is_some(), "all have said it");
    }

    #[test]
    fn who_says_nothing_has_taken_the_result() {
        let late = Instant(PATIENCE.as_nanos() as u64);
        let mut dispute = dispute(&[(0, 's'), (1, 'b')]);
        dispute.assume('b');
        assert!(dispute.has_sides());
        assert_eq!(dispute.odd(Instant(0), 3), None, "it may still object");
        let odd = Odd { member: 0, calls: 's', others: 'b' };
        assert_eq!(dispute.odd(late, 3), Some(odd));
        assert_eq!(dispute.odd(late, 2), Some(odd), "the side with a result");
    }

    #[test]
    fn members_may_be_at_odds_with_a_result_from_elsewhere() {
        let mut dispute = dispute(&[(0, 's')]);
        assert!(!dispute.has_sides());
        dispute.assume('b');
        assert!(dispute.has_sides());
        let odd = Odd { member: 0, calls: 's', others: 'b' };
        assert_eq!(dispute.odd(Instant(0), 1), Some(odd));
    }

    #[test]
    fn the_first_word_of_a_member_counts() {
        let mut dispute = dispute(&[(0, 'm'), (1, 's'), (2, 's')]);
        dispute.note(0, 's');
        assert_eq!(dispute.odd(Instant(0), 3).map(|odd| odd.member), Some(0));
    }
}
