//! Who comes first within a tick: what is known of it, and what is still open.
//!
//! A sender's *rank* is the fraction of its phase. Ranks are compared only where a run depends on
//! it; what it depended on is a list of pairs, and the orders that disagree with one of them are
//! the runs still to be seen.

/// Senders, as a bit each.
pub(super) type Set = u64;

/// The set of one.
pub(super) const fn only(sender: usize) -> Set {
    1 << sender
}

/// The senders of a set.
pub(super) fn each(mut set: Set) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        (set != 0).then(|| {
            let sender = set.trailing_zeros() as usize;
            set &= set - 1;
            sender
        })
    })
}

/// A partial order of ranks: of each sender, those known to be later.
pub(super) type Later = [Set];

/// Adds that one sender is earlier than another, with what follows from it.
pub(super) fn add(order: &mut Later, earlier: usize, later: usize) {
    let behind = order[later] | only(later);
    let moved = only(earlier);
    for (sender, after) in order.iter_mut().enumerate() {
        if sender == earlier || *after & moved != 0 {
            *after |= behind;
        }
    }
}

/// Partial orders that no run has been made for. Together with those of the runs made they hold
/// every total order once.
pub(super) struct Open {
    senders: usize,
    orders: Vec<Set>,
}

impl Open {
    pub(super) fn new(senders: usize) -> Self {
        Self { senders, orders: Vec::new() }
    }

    /// An order of which nothing is known yet.
    pub(super) fn push_any(&mut self) -> &mut Later {
        let start = self.orders.len();
        self.orders.resize(start + self.senders, 0);
        &mut self.orders[start..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Takes out the one pushed last.
    pub(super) fn pop(&mut self, into: &mut [Set]) -> bool {
        let Some(start) = self.orders.len().checked_sub(self.senders) else { return false };
        into.copy_from_slice(&self.orders[start..]);
        self.orders.truncate(start);
        true
    }

    /// A run of `order` depended on these pairs (earlier, later), all true of it: what else could
    /// be is open.
    pub(super) fn branch(&mut self, order: &mut Later, needed: &[(u8, u8)]) {
        for (earlier, later) in needed.iter().map(|pair| (usize::from(pair.0), usize::from(pair.1)))
        {
            if order[earlier] & only(later) != 0 {
                continue;
            }
            let start = self.orders.len();
            self.orders.extend_from_slice(order);
            add(&mut self.orders[start..], later, earlier);
            add(order, earlier, later);
        }
    }
}

/// A total order in keeping with a partial one: senders, the earliest first.
pub(super) fn extend(order: &Later, sorted: &mut [u8]) {
    for (index, sender) in sorted.iter_mut().enumerate() {
        *sender = u8::try_from(index).expect("there are at most 64 senders");
    }
    // Who is earlier than another has all of the other's later ones, and the other.
    sorted.sort_by_key(|sender| core::cmp::Reverse(order[usize::from(*sender)].count_ones()));
}

#[cfg(test)]
mod tests {
    use super::*;

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
