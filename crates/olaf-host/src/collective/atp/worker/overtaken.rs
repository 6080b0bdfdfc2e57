//! Which packets are lost: those that answers to later ones have overtaken (ATP §3.6, §3.7).
//!
//! differs: the paper looks at the expected fragment alone, and finds one loss a round trip. Here every
//! packet that three later ones overtake is lost. A packet that is sent again counts anew, so that its
//! own loss is found in the same way and not by a time-out.

use alloc::collections::VecDeque;

/// Answers to later packets that mean a loss (ATP §3.7).
const OUT_OF_ORDER: usize = 3;
/// Packets beyond twice the open fragments that are kept at least.
const MOST_STALE: usize = 256;

/// The packets of a flow in the order of sending.
#[derive(Debug, Default)]
pub(super) struct Overtaken {
    /// Packets sent so far; the first one has number 1.
    sent: u64,
    /// Number and fragment of those that nothing has overtaken yet.
    on_the_way: VecDeque<(u64, u64)>,
    /// The three newest packets with an answer, the newest first.
    newest: [u64; OUT_OF_ORDER],
}

impl Overtaken {
    /// A packet of that fragment is sent. Returns the packet's number.
    pub(super) fn on_sent(&mut self, sequence: u64) -> u64 {
        self.sent += 1;
        self.on_the_way.push_back((self.sent, sequence));
        self.sent
    }

    /// The answer to a packet came.
    pub(super) fn on_answer(&mut self, packet: u64) {
        let place = self.newest.iter().position(|newest| *newest < packet);
        if let Some(place) = place {
            self.newest[place..].rotate_right(1);
            self.newest[place] = packet;
        }
    }

    /// The next packet that three answered ones have overtaken, and its fragment. The caller knows
    /// whether the fragment has an answer.
    pub(super) fn pop(&mut self) -> Option<(u64, u64)> {
        let third = self.newest[OUT_OF_ORDER - 1];
        let first = self.on_the_way.front()?;
        if first.0 < third { self.on_the_way.pop_front() } else { None }
    }

    /// Forgets packets that others have taken the place of, once there are many: while no answer comes,
    /// fragments are sent again and again.
    pub(super) fn forget(&mut self, fragments: usize, is_current: impl Fn(u64, u64) -> bool) {
        if self.on_the_way.len() > 2 * fragments + MOST_STALE {
            self.on_the_way.retain(|(packet, sequence)| is_current(*packet, *sequence));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(overtaken: &mut Overtaken) -> alloc::vec::Vec<u64> {
        core::iter::from_fn(|| overtaken.pop()).map(|(_, sequence)| sequence).collect()
    }

    #[test]
    fn three_answers_to_later_packets_mean_a_loss() {
        let mut overtaken = Overtaken::default();
        (10..20).for_each(|sequence| {
            overtaken.on_sent(sequence);
        });
        overtaken.on_answer(2);
        overtaken.on_answer(3);
        assert!(lost(&mut overtaken).is_empty(), "two");
        overtaken.on_answer(5);
        // The third newest answer is that of packet 2.
        assert_eq!(lost(&mut overtaken), [10]);
        overtaken.on_answer(4);
        assert_eq!(lost(&mut overtaken), [11], "3, 4 and 5 have answers");
    }

    #[test]
    fn a_packet_that_is_sent_again_counts_anew() {
        let mut overtaken = Overtaken::default();
        for sequence in [7, 8, 9, 10] {
            overtaken.on_sent(sequence);
        }
        [2, 3, 4].into_iter().for_each(|packet| overtaken.on_answer(packet));
        assert_eq!(lost(&mut overtaken), [7]);
        assert_eq!(overtaken.on_sent(7), 5);
        assert!(lost(&mut overtaken).is_empty());
        for sequence in [11, 12, 13] {
            let packet = overtaken.on_sent(sequence);
            overtaken.on_answer(packet);
        }
        assert_eq!(lost(&mut overtaken), [8, 9, 10, 7], "8 to 10 have answers, as the flow knows");
    }
}
