//! The groups of a job that are added up at this switch.

use alloc::collections::BTreeMap;
use olaf_wire::atp::{BITS, Header, LEVELS};

/// Most groups of a job at a switch. 32,768 workers at one switch are 1,057 groups at three levels.
const MOST: usize = 2048;

/// A level, and the group whose members meet there: the bits of the higher levels.
pub(super) fn place_of(header: &Header, level: usize) -> u32 {
    let bit = |above: usize| header.bitmap(above).trailing_zeros() % BITS;
    let group = (level + 1..LEVELS).rev().fold(0, |group, above| group * BITS + bit(above));
    group * LEVELS as u32 + level as u32
}

/// The places of a job's fragments, numbered in the order of their first packets.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<u32, u32>);

impl Places {
    /// The number of a place; none where there are too many.
    pub(super) fn number(&mut self, place: u32) -> Option<u32> {
        let next = self.0.len();
        match self.0.get(&place) {
            Some(number) => Some(*number),
            None if next >= MOST => None,
            None => {
                let number = next as u32;
                self.0.insert(place, number);
                Some(number)
            }
        }
    }

    /// All places with their numbers.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().map(|(place, number)| (*place, *number))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use olaf_wire::atp::Upper;

    #[test]
    fn groups_and_levels_have_different_places() {
        let mut all = BTreeSet::new();
        for (group1, group2, group3) in (0..4).flat_map(|a| (0..3).map(move |b| (a, b, a ^ b))) {
            let upper = Upper { bitmaps: [1 << group2, 1 << group3], ..Upper::default() };
            let header = Header { bitmap1: 1 << group1, upper: Some(upper), ..Header::default() };
            all.insert((0, place_of(&header, 0)));
            all.insert((1, place_of(&header, 1)));
            all.insert((3, place_of(&header, 3)));
        }
        let places: BTreeSet<u32> = all.iter().map(|(_, place)| *place).collect();
        assert_eq!(places.len(), all.len());
        assert_eq!(all.iter().filter(|(level, _)| *level == 0).count(), 12);
        assert_eq!(all.iter().filter(|(level, _)| *level == 3).count(), 1);
    }

    #[test]
    fn a_switch_keeps_so_many_places_at_most() {
        let mut places = Places::default();
        let numbers: BTreeSet<u32> = (0..5000).filter_map(|place| places.number(place)).collect();
        assert_eq!(numbers.len(), MOST);
        assert_eq!(places.number(3), Some(3), "a known one keeps its number");
        places.clear();
        assert_eq!(places.number(4999), Some(0));
    }
}
