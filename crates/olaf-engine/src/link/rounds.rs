//! Whose turn it is on a link that several share: deficit round robin, paid afterwards.
//!
//! Each sharer has a balance of bytes. In each round it gets a quantum for each share that it has. It
//! sends while its balance is above zero, and each departure is taken off the balance. A departure may
//! leave a debt, which the next rounds work off. So a departure's size has to be known only when it
//! begins, and after any time no sharer that always had something to send is behind its share by more
//! than a quantum and the longest departure.

use alloc::collections::{BTreeSet, VecDeque};

/// Bytes of a round for one share: less than a small datagram, so that no sharer sends several in a row.
/// Rounds in which nobody could send are passed in one step.
const QUANTUM: i64 = 64;

/// Whether a sharer can use its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Something of it may leave.
    Ready,
    /// Something of it waits and may not leave, as where no credit is left.
    Held,
    /// Nothing of it waits.
    Idle,
}

#[derive(Clone, Copy, Debug)]
struct Turn<K> {
    of: K,
    quantum: i64,
    balance: i64,
}

/// The order of turns, from the sharer whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Rounds<K> {
    turns: VecDeque<Turn<K>>,
    known: BTreeSet<K>,
}

impl<K> Default for Rounds<K> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), known: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Rounds<K> {
    /// Something of that sharer waits from now on.
    pub(super) fn wake(&mut self, of: K, share: u32) {
        let is_alone = self.turns.len() == 1 && self.turns[0].of == of;
        if !is_alone && self.known.insert(of) {
            let quantum = QUANTUM * i64::from(share.max(1));
            self.turns.push_back(Turn { of, quantum, balance: 0 });
        }
    }

    /// The sharer whose turn it is. One that is idle and has no debt leaves the order; an idle one does
    /// not save anything up.
    pub(super) fn next(&mut self, standing: impl Fn(K) -> Standing) -> Option<K> {
        loop {
            let mut rounds = None;
            let mut looked_at = 0;
            while looked_at < self.turns.len() {
                let Turn { of, quantum, balance } = self.turns[0];
                match standing(of) {
                    Standing::Ready if balance > 0 => return Some(of),
                    Standing::Ready => {
                        let wanted = (1 - balance + quantum - 1) / quantum;
                        rounds = Some(rounds.map_or(wanted, |rounds: i64| rounds.min(wanted)));
                    }
                    Standing::Idle if balance >= 0 => {
                        self.turns.pop_front();
                        self.known.remove(&of);
                        continue;
                    }
                    Standing::Idle | Standing::Held => {}
                }
                self.turns.rotate_left(1);
                looked_at += 1;
            }
            let rounds = rounds?;
            for turn in &mut self.turns {
                let most = match standing(turn.of) {
                    Standing::Ready => i64::MAX,
                    Standing::Held => turn.quantum.max(turn.balance),
                    Standing::Idle => 0,
                };
                turn.balance = (turn.balance + rounds * turn.quantum).min(most);
            }
        }
    }

    /// The sharer whose turn it is begins to send that number of bytes.
    pub(super) fn pay(&mut self, bytes: u32) {
        // Alone it owes nobody anything.
        if self.turns.len() > 1
            && let Some(turn) = self.turns.front_mut()
        {
            turn.balance -= i64::from(bytes);
            if turn.balance <= 0 {
                self.turns.rotate_left(1);
            }
        }
    }

    /// Those that have something waiting, or a debt.
    pub(super) fn sharers(&self) -> impl Iterator<Item = K> {
        self.turns.iter().map(|turn| turn.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const LONGEST: u32 = 65_000;

    #[test]
    fn sharers_of_equal_shares_take_turns() {
        let mut rounds = Rounds::default();
        ["a", "b", "c"].into_iter().for_each(|of| rounds.wake(of, 1));
        let mut order = Vec::new();
        for _ in 0..6 {
            order.push(rounds.next(|_| Standing::Ready).expect("all are ready"));
            rounds.pay(9216);
        }
        assert_eq!(order, ["a", "b", "c", "a", "b", "c"]);
    }

    #[test]
    fn a_sharer_whose_updates_are_held_keeps_its_place() {
        let mut rounds = Rounds::default();
        ["a", "b"].into_iter().for_each(|of| rounds.wake(of, 1));
        let held = |of| if of == "a" { Standing::Held } else { Standing::Ready };
        for _ in 0..4 {
            assert_eq!(rounds.next(held), Some("b"));
            rounds.pay(9216);
        }
        assert_eq!(rounds.next(|_| Standing::Held), None);
        assert_eq!(rounds.next(|_| Standing::Ready), Some("a"), "and it waited longest");
    }

    #[test]
    fn a_sharer_whose_updates_are_held_saves_nothing_up() {
        let mut rounds = Rounds::default();
        ["a", "b"].into_iter().for_each(|of| rounds.wake(of, 1));
        for _ in 0..50 {
            let held = |of| if of == "a" { Standing::Held } else { Standing::Ready };
            assert_eq!(rounds.next(held), Some("b"));
            rounds.pay(9216);
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(rounds.next(|_| Standing::Ready).expect("both are ready"));
            rounds.pay(9216);
        }
        assert_eq!(order, ["a", "b", "a", "b"]);
    }

    #[test]
    fn a_sharer_alone_comes_into_no_debt() {
        let mut rounds = Rounds::default();
        rounds.wake("a", 1);
        for _ in 0..100 {
            assert_eq!(rounds.next(|_| Standing::Ready), Some("a"));
            rounds.pay(LONGEST);
        }
        rounds.wake("b", 1);
        let mut firsts = Vec::new();
        for _ in 0..4 {
            firsts.push(rounds.next(|_| Standing::Ready).expect("both are ready"));
            rounds.pay(9216);
        }
        assert_eq!(firsts.iter().filter(|of| **of == "a").count(), 2, "{firsts:?}");
    }

    proptest! {
        /// The reference model is the definition: bytes in proportion to shares. Sharer 0 always has something;
        /// the others come and go, with debts, in the way that is best for them.
        #[test]
        fn whoever_always_has_something_gets_its_share(
            shares in prop::collection::vec(1u32..5, 2..6),
            steps in prop::collection::vec((1u32..=LONGEST, prop::bits::u8::ANY), 1..400),
        ) {
            let mut rounds = Rounds::default();
            let mut sent = vec![0u64; shares.len()];
            for (bytes, waits) in steps {
                let waits = |of: usize| of == 0 || waits & (1 << of) != 0;
                for of in (0..shares.len()).filter(|of| waits(*of)) {
                    rounds.wake(of, shares[of]);
                }
                let standing = |of| if waits(of) { Standing::Ready } else { Standing::Idle };
                let turn = rounds.next(standing).expect("sharer 0 is ready");
                prop_assert!(waits(turn), "never one that has nothing");
                rounds.pay(bytes);
                sent[turn] += u64::from(bytes);
                for of in 1..shares.len() {
                    // What another has sent beyond its share, measured in the bytes of sharer 0.
                    let fair = sent[of] as f64 / f64::from(shares[of]) * f64::from(shares[0]);
                    let behind = fair - sent[0] as f64;
                    let scale = f64::from(shares[0]);
                    let bound = scale * (2.0 * QUANTUM as f64 + 2.0 * f64::from(LONGEST));
                    prop_assert!(behind <= bound, "{behind} bytes behind, {bound} are allowed");
                }
            }
        }

        /// While a sharer is ready, one sends. No sharer that waits is forgotten.
        #[test]
        fn the_link_is_never_idle_while_something_is_ready(
            steps in prop::collection::vec((0usize..4, 0u32..2000, 0u8..3), 1..200),
        ) {
            let mut rounds = Rounds::default();
            let mut waiting = [0u32; 4];
            for (of, bytes, verb) in steps {
                if verb == 0 {
                    waiting[of] += 1;
                    rounds.wake(of, 1);
                    continue;
                }
                // Verb 2 holds the sharers with an even number.
                let standing = |of: usize| match waiting[of] {
                    0 => Standing::Idle,
                    _ if verb == 2 && of.is_multiple_of(2) => Standing::Held,
                    _ => Standing::Ready,
                };
                let is_ready = (0..4).any(|of| standing(of) == Standing::Ready);
                let turn = rounds.next(standing);
                prop_assert_eq!(turn.is_some(), is_ready);
                if let Some(turn) = turn {
                    prop_assert!(standing(turn) == Standing::Ready);
                    waiting[turn] -= 1;
                    rounds.pay(bytes);
                }
            }
        }
    }
}
