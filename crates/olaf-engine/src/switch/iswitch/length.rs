//! How long the vectors of a job are.
//!
//! A data packet does not say how long its vector is (iSwitch §3.2). Its Seg has its index and says whether it is
//! the last packet of its vector. So the packets after a last one, up to the next, are one vector.

use crate::blocks::ByIndex;

/// Measures the vectors of a generation, packet by packet, in the order of their indices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    /// Floats that a vector may have; none: any number.
    most: Option<u64>,
    /// The first packet that no member has sent.
    next: u64,
    /// Floats of that packet's vector before it.
    floats: u64,
    /// Floats of a full packet. A vector may begin with a shorter one, a roll call, which does not count.
    packet_floats: u64,
    /// The vector of that packet began with a roll call.
    has_roll: bool,
}

impl Length {
    /// `most` floats in a vector; `u64::MAX`: any number.
    pub(super) fn new(most: u64, packet_floats: u32) -> Self {
        let most = Some(most).filter(|most| *most < u64::MAX);
        Self { most, next: 0, floats: 0, packet_floats: packet_floats.into(), has_roll: false }
    }

    /// Looks at the packets that have come since the last call, as far as none before them is missing. Whether
    /// one of them makes its vector too long. That is said once: the generation has to end.
    pub(super) fn is_exceeded(&mut self, table: &ByIndex) -> bool {
        let Some(most) = self.most else { return false };
        while let Some(cell) = table.cell(self.next) {
            let floats = cell.floats().len() as u64 / 4;
            let is_first = self.floats == 0 && !self.has_roll;
            self.has_roll |= is_first && !cell.last && floats < self.packet_floats;
            self.floats += if is_first && self.has_roll { 0 } else { floats };
            if self.floats > most {
                self.most = None;
                return true;
            }
            if cell.last {
                (self.floats, self.has_roll) = (0, false);
            }
            self.next += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::by_index::{Met, Piece};
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Packets of some vectors: floats of each, and whether it is the last one.
    fn packets() -> impl Strategy<Value = Vec<(usize, bool)>> {
        prop::collection::vec((1usize..5, prop::bool::weighted(0.3)), 1..60)
    }

    /// The longest vector of the packets, as a reader counts it.
    fn longest(packets: &[(usize, bool)]) -> usize {
        let vectors = packets.split_inclusive(|(_, is_last)| *is_last);
        vectors.map(|vector| vector.iter().map(|(floats, _)| floats).sum()).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn a_vector_is_too_long_when_its_packets_say_so_in_whatever_order_they_come(
            packets in packets(), most in 1usize..16, order in any::<prop::sample::Index>(), slots in 1u32..70,
        ) {
            let mut table = ByIndex::new(slots, vec![1]);
            let mut length = Length::new(most as u64, 1);
            let mut told = 0;
            let mut waiting: Vec<usize> = (0..packets.len()).collect();
            let mut seed = order.index(usize::MAX);
            while !waiting.is_empty() {
                // One of those that the table takes: a member is at most `slots` packets ahead.
                let window = waiting.iter().take_while(|at| **at < waiting[0] + slots as usize).count();
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = waiting.remove((seed >> 33) % window);
                let (count, last) = packets[at];
                let floats = vec![0; 4 * count];
                let index = at as u64;
                let piece = Piece {
                    index, member: 0, missing: 0, vector: 0, last, congested: false, floats: &floats,
                };
                let met = table.meet(&piece);
                prop_assert_eq!(met, Met::Complete);
                told += u32::from(length.is_exceeded(&table));
                table.finish_own(index);
                table.note_holds(0, table.first_incomplete());
            }
            prop_assert_eq!(told, u32::from(longest(&packets) > most));
        }
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let mut table = ByIndex::new(4, vec![1]);
        let mut length = Length::new(u64::MAX, 1);
        let piece = Piece {
            index: 0,
            member: 0,
            missing: 0,
            vector: 0,
            last: false,
            congested: false,
            floats: &[0; 4],
        };
        assert_eq!(table.meet(&piece), Met::Complete);
        assert!(!length.is_exceeded(&table));
        assert_eq!((length.next, length.floats), (0, 0));
    }
}
