//! Where updates come from, and which of them came before.

use crate::ids::Session;
use crate::party::Liveness;
use alloc::collections::VecDeque;
use olaf_wire::serial;

/// Hop sequences seen of one hop, for each of its sender's last lives: what an old life still had on
/// the way may arrive after the new one's first, and counts once all the same.
#[derive(Debug, Default)]
pub struct Hops {
    /// When a worker last joined through it or a datagram came from it. It outlives its workers for
    /// a while: what they pushed last may still wait in the switch when they have left.
    pub liveness: Liveness,
    /// The life that began last comes first.
    lives: VecDeque<Life>,
}

/// Of one life: the newest sequence seen, and which of the 1,024 before it.
#[derive(Debug)]
struct Life {
    session: Session,
    newest: u32,
    seen: [u64; Life::WORDS],
}

impl Hops {
    const LIVES: usize = 4;

    /// Whether a datagram comes for the first time.
    pub fn is_news(&mut self, session: Session, sequence: u32) -> bool {
        if let Some(life) = self.lives.iter_mut().find(|life| life.session == session) {
            return life.is_news(sequence);
        }
        self.lives.truncate(Self::LIVES - 1);
        let mut life = Life { session, newest: sequence, seen: [0; Life::WORDS] };
        life.mark(sequence);
        self.lives.push_front(life);
        true
    }
}

impl Life {
    const WORDS: usize = 16;
    const WINDOW: u32 = Self::WORDS as u32 * 64;

    /// Whether a sequence comes for the first time. One far older than the newest cannot be told
    /// from a repetition, and counts as one.
    fn is_news(&mut self, sequence: u32) -> bool {
        let ahead = sequence.wrapping_sub(self.newest);
        if serial::is_after(sequence, self.newest) {
            for skipped in 1..=ahead.min(Self::WINDOW) {
                self.clear(self.newest.wrapping_add(skipped));
            }
            self.newest = sequence;
            self.mark(sequence);
            return true;
        }
        let behind = self.newest.wrapping_sub(sequence);
        if behind >= Self::WINDOW || self.is_marked(sequence) {
            return false;
        }
        self.mark(sequence);
        true
    }

    fn place(sequence: u32) -> (usize, u64) {
        let bit = sequence % Self::WINDOW;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn mark(&mut self, sequence: u32) {
        let (word, bit) = Self::place(sequence);
        self.seen[word] |= bit;
    }

    fn clear(&mut self, sequence: u32) {
        let (word, bit) = Self::place(sequence);
        self.seen[word] &= !bit;
    }

    fn is_marked(&self, sequence: u32) -> bool {
        let (word, bit) = Self::place(sequence);
        self.seen[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_hop_knows_repetitions_as_a_set_does(steps in prop::collection::vec(-40i64..60, 1..400)) {
            let mut hops = Hops::default();
            let mut seen = BTreeSet::new();
            let mut newest = 5_000i64;
            for step in steps {
                let sequence = newest + step;
                newest = newest.max(sequence);
                let news = seen.insert(sequence);
                prop_assert_eq!(hops.is_news(Session(1), sequence as u32), news);
            }
        }
    }

    #[test]
    fn another_life_of_the_sender_counts_from_anew() {
        let mut hops = Hops::default();
        assert!(hops.is_news(Session(1), 1));
        assert!(!hops.is_news(Session(1), 1));
        assert!(hops.is_news(Session(2), 1));
    }

    #[test]
    fn what_an_old_life_had_on_the_way_does_not_make_the_new_one_forget() {
        let mut hops = Hops::default();
        assert!(hops.is_news(Session(1), 1));
        assert!(hops.is_news(Session(2), 1));
        assert!(hops.is_news(Session(1), 2));
        assert!(!hops.is_news(Session(2), 1));
        assert!(!hops.is_news(Session(1), 1));
    }
}
