//! Which sender comes first within a tick: the orders that runs have covered, and those still open.
//!
//! A sender's *rank* is the fraction of its phase. No two senders have the same rank, so n senders
//! have n! orders of ranks. Most of them make the same run: a run depends on a few comparisons only,
//! and reports those as pairs (earlier, later). Every order that agrees with these pairs is covered
//! by that run. Every other order disagrees with at least one pair, and stays open.
//!
//! Example with three senders 0, 1, 2. Nothing is known, so the first run takes the order 0 1 2. It
//! depended on "0 before 1" only. The run therefore covers 0 1 2, 0 2 1 and 2 0 1. "1 before 0" stays
//! open and holds the other three orders: 1 0 2, 1 2 0 and 2 1 0. A run of 1 0 2 that depends on
//! nothing else covers these three. Two runs stand for six orders.

/// A set of senders: bit `n` is sender `n`.
pub(super) type Set = u64;

/// The set of one sender.
pub(super) const fn only(sender: usize) -> Set {
    1 << sender
}

/// The senders of a set, the lowest number first.
pub(super) fn each(mut set: Set) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        (set != 0).then(|| {
            let sender = set.trailing_zeros() as usize;
            set &= set - 1;
            sender
        })
    })
}

/// A partial order of ranks: entry `n` is the set of senders known to be later than sender `n`.
///
/// It is always *closed*: if 0 is before 1 and 1 before 2, then entry 0 holds 2 as well. One look at
/// a bit therefore answers "is it known that a is before b?".
pub(super) type Later = [Set];

/// Adds that sender `earlier` is before sender `later`, and everything that follows from it.
///
/// The reverse must not be known: then the result would be no order. What follows is
/// "x before y" for each x that is `earlier` or before it, and each y that is `later` or behind it.
/// These pairs alone close the order again: a new chain from x to y must use the new pair, so it
/// reaches `earlier` from x and y from `later`, and both parts were known.
///
/// Example: 0 is before 1, and 2 before 3. "1 before 2" adds 2 and 3 to the entries of both 0 and 1.
pub(super) fn add(order: &mut Later, earlier: usize, later: usize) {
    let behind = order[later] | only(later);
    for (sender, after) in order.iter_mut().enumerate() {
        if sender == earlier || *after & only(earlier) != 0 {
            *after |= behind;
        }
    }
}

/// Partial orders that no run has covered yet.
///
/// Each total order is in exactly one of them, or is covered by exactly one run: nothing is left out
/// and nothing is run twice. [`Open::branch`] keeps it so.
pub(super) struct Open {
    senders: usize,
    /// One partial order after another, `senders` entries each. It is a stack: the last order is
    /// taken first, so that few are open at a time.
    orders: Vec<Set>,
}

impl Open {
    pub(super) fn new(senders: usize) -> Self {
        Self { senders, orders: Vec::new() }
    }

    /// Opens an order without any known pair: it holds every total order. Returns it, so that the
    /// caller can [`add`] the pairs that are known from the start.
    pub(super) fn push_any(&mut self) -> &mut Later {
        let start = self.orders.len();
        self.orders.resize(start + self.senders, 0);
        &mut self.orders[start..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Takes out the order pushed last; false where none is open.
    pub(super) fn pop(&mut self, into: &mut [Set]) -> bool {
        let Some(start) = self.orders.len().checked_sub(self.senders) else { return false };
        into.copy_from_slice(&self.orders[start..]);
        self.orders.truncate(start);
        true
    }

    /// A run was made of a total order that agrees with `order`. It depended on the `needed` pairs
    /// (earlier, later), which are all true of it. Narrows `order` to what the run covers, and opens
    /// the rest.
    ///
    /// With pairs p, q, r the rest of `order` is split by the *first* pair that a total order
    /// violates: "not p", "p and not q", "p and q and not r". These parts do not overlap. Together
    /// with the run's own part, "p and q and r", they are all of `order`. "Not (a before b)" is "b
    /// before a", for ranks differ.
    ///
    /// Example: nothing is known of 0, 1, 2, and the run 0 1 2 needed (0, 1) and (1, 2). Opened are
    /// "1 before 0" (three orders) and "0 before 1, 2 before 1" (0 2 1 and 2 0 1). The run covers
    /// the sixth order, itself.
    pub(super) fn branch(&mut self, order: &mut Later, needed: &[(u8, u8)]) {
        for (earlier, later) in needed.iter().map(|pair| (usize::from(pair.0), usize::from(pair.1)))
        {
            // The pair follows from `order` and the pairs before it: no order is left that
            // violates this pair first.
            if order[earlier] & only(later) != 0 {
                continue;
            }
            // Neither the pair nor its reverse is known (the reverse would contradict the run), so
            // both are possible: the reverse is opened, and `order` goes on with the pair.
            let start = self.orders.len();
            self.orders.extend_from_slice(order);
            add(&mut self.orders[start..], later, earlier);
            add(order, earlier, later);
        }
    }
}

/// A total order that agrees with a partial one: `sorted` becomes the senders, the earliest first.
///
/// The number of later senders alone sorts them. If a is before b, then a's set holds b and, because
/// the order is closed, all of b's set. So a's set is larger, and a comes first. Senders with sets
/// of the same size are not ordered with each other; they stay in the order of their numbers, so
/// that a sweep makes the same runs each time.
pub(super) fn extend(order: &Later, sorted: &mut [u8]) {
    for (index, sender) in sorted.iter_mut().enumerate() {
        *sender = u8::try_from(index).expect("there are at most 64 senders");
    }
    sorted.sort_by_key(|sender| core::cmp::Reverse(order[usize::from(*sender)].count_ones()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_covers_all_orders_that_agree_with_its_pairs() {
        // The example at the top: two runs for six orders.
        let mut open = Open::new(3);
        open.push_any();
        let (mut order, mut sorted, mut runs) = ([0; 3], [0; 3], Vec::new());
        while open.pop(&mut order) {
            extend(&order, &mut sorted);
            runs.push(sorted);
            let at = |sender| sorted.iter().position(|other| *other == sender);
            let pair = if at(0) < at(1) { (0, 1) } else { (1, 0) };
            open.branch(&mut order, &[pair]);
        }
        assert_eq!(runs, [[0, 1, 2], [1, 0, 2]]);
    }

    #[test]
    fn a_pair_that_follows_opens_nothing() {
        let mut open = Open::new(3);
        let mut order = [0; 3];
        open.branch(&mut order, &[(0, 1), (1, 2), (0, 2)]);
        assert_eq!(order, [0b110, 0b100, 0]);
        let mut opened = [0; 3];
        assert!(open.pop(&mut opened), "0 before 1, and 2 before 1");
        assert_eq!(opened, [0b010, 0, 0b010]);
        assert!(open.pop(&mut opened), "1 before 0");
        assert_eq!(opened, [0, 0b001, 0]);
        assert!(!open.pop(&mut opened), "(0, 2) follows from the other two");
    }

    #[test]
    fn what_follows_is_known() {
        let mut order = [0; 4];
        add(&mut order, 2, 1);
        add(&mut order, 1, 3);
        add(&mut order, 0, 2);
        assert_eq!(order, [0b1110, 0b1000, 0b1010, 0]);
        let mut sorted = [0; 4];
        extend(&order, &mut sorted);
        assert_eq!(sorted, [0, 2, 1, 3]);
    }

    #[test]
    fn branches_hold_every_order_once() {
        // Every run depends on all pairs: as many runs as there are orders.
        let mut open = Open::new(5);
        open.push_any();
        let (mut order, mut sorted) = ([0; 5], [0; 5]);
        let mut seen = std::collections::BTreeSet::new();
        while open.pop(&mut order) {
            extend(&order, &mut sorted);
            assert!(seen.insert(sorted));
            let pairs: Vec<_> = sorted.windows(2).map(|pair| (pair[0], pair[1])).collect();
            open.branch(&mut order, &pairs);
        }
        assert_eq!(seen.len(), 120);
    }
}
