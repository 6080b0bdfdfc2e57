//! Where each worker sits in the tree of switches: its bits and fan-in degrees (ATP §3.2, §3.4).
//!
//! differs: the paper computes them from a topology that hosts know. Here they follow from the switches
//! that the workers' joins have passed.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use olaf_wire::atp::BITS;

/// The first two switches on a worker's way to its server; 0 stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The first edge switch.
    pub first: u32,
    /// The second one.
    pub second: u32,
}

/// A worker's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// Its bit in its group.
    pub bitmap0: u32,
    /// Its group's bit.
    pub bitmap1: u32,
    /// Workers of its group.
    pub fan_in0: u8,
    /// Groups that meet at its second edge switch.
    pub fan_in1: u8,
    /// It sends to its second edge switch at once (ATP Figure 9, w4 and w5).
    pub edge: bool,
    /// Its first edge switch is the second one, too.
    pub same_switch: bool,
    /// No switch adds its packets: there is none on the way, or the bitmaps reach no further.
    pub alone: bool,
}

/// The places of all workers.
#[derive(Clone, Debug, Default)]
pub struct Seating {
    /// By rank.
    pub seats: Vec<Seat>,
    /// Ranks by group and bit.
    groups: Vec<Vec<u32>>,
}

/// Workers that share a bit of the second bitmap.
#[derive(Debug)]
struct Unit {
    ranks: Vec<u32>,
    /// The switch where groups meet.
    meets_at: u32,
    edge: bool,
    same_switch: bool,
}

const GROUP: usize = BITS as usize;

impl Seating {
    /// Seats workers by their paths, in the order of their ranks; at most 1,024.
    #[must_use]
    pub fn new(paths: &[Path]) -> Self {
        let mut units = units(paths, true);
        if units.len() > GROUP {
            units = self::units(paths, false);
        }
        // Where the second bitmap is too short, the largest groups are added up, and the rest go alone.
        units.sort_by_key(|unit| core::cmp::Reverse(unit.ranks.len()));
        let seated = |units: &[Unit]| units.iter().map(|unit| unit.ranks.len()).sum::<usize>();
        while units.len() + (paths.len() - seated(&units)).div_ceil(GROUP) > GROUP {
            units.pop();
        }
        let mut seating =
            Self { seats: alloc::vec![Seat::default(); paths.len()], groups: Vec::new() };
        let mut alone: BTreeSet<u32> = (0..).take(paths.len()).collect();
        for unit in &units {
            unit.ranks.iter().for_each(|rank| {
                alone.remove(rank);
            });
            let others = units.iter().filter(|other| other.meets_at == unit.meets_at).count();
            let seat = Seat {
                fan_in1: u8::try_from(others).unwrap_or(u8::MAX),
                edge: unit.edge,
                same_switch: unit.same_switch,
                ..Seat::default()
            };
            seating.seat(&unit.ranks, seat);
        }
        let alone: Vec<u32> = alone.into_iter().collect();
        for ranks in alone.chunks(GROUP) {
            seating.seat(ranks, Seat { fan_in1: 1, alone: true, ..Seat::default() });
        }
        seating
    }

    fn seat(&mut self, ranks: &[u32], seat: Seat) {
        let bitmap1 = 1 << self.groups.len();
        let fan_in0 = u8::try_from(ranks.len()).unwrap_or(u8::MAX);
        for (bit, rank) in ranks.iter().enumerate() {
            self.seats[*rank as usize] = Seat { bitmap0: 1 << bit, bitmap1, fan_in0, ..seat };
        }
        self.groups.push(ranks.to_vec());
    }

    /// Calls `take` with the rank of each worker in a packet; false where a bit is nobody's.
    pub fn ranks(&self, bitmap0: u32, bitmap1: u32, mut take: impl FnMut(u32)) -> bool {
        let groups = bits(bitmap1).map(|group| self.groups.get(group));
        if bitmap1.count_ones() != 1 {
            let mut all = true;
            groups.for_each(|group| match group {
                Some(ranks) => ranks.iter().copied().for_each(&mut take),
                None => all = false,
            });
            return all && bitmap1 != 0;
        }
        let Some(ranks) = groups.flatten().next() else { return false };
        bits(bitmap0).all(|bit| ranks.get(bit).map(|rank| take(*rank)).is_some())
    }
}

fn bits(bitmap: u32) -> impl Iterator<Item = usize> {
    (0..GROUP).filter(move |bit| bitmap >> bit & 1 == 1)
}

/// Groups of workers with one path. Workers at a second edge switch stand for themselves, or else are
/// groups, too.
fn units(paths: &[Path], stand_for_themselves: bool) -> Vec<Unit> {
    let mut racks: BTreeMap<Path, Vec<u32>> = BTreeMap::new();
    for (rank, path) in (0..).zip(paths) {
        racks.entry(*path).or_default().push(rank);
    }
    racks.remove(&Path { first: 0, second: 0 });
    let uppers: BTreeSet<u32> = racks.keys().map(|path| path.second).filter(|id| *id > 0).collect();
    let mut units = Vec::new();
    for (path, ranks) in racks {
        let is_top = path.second == 0;
        let alone = is_top && uppers.contains(&path.first) && stand_for_themselves;
        let meets_at = if is_top { path.first } else { path.second };
        let chunks = ranks.chunks(if alone { 1 } else { GROUP });
        units.extend(chunks.map(|ranks| Unit {
            ranks: ranks.to_vec(),
            meets_at,
            edge: alone,
            same_switch: is_top && !alone,
        }));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(first: u32, second: u32) -> Path {
        Path { first, second }
    }

    fn named(seating: &Seating, bitmap0: u32, bitmap1: u32) -> Option<Vec<u32>> {
        let mut ranks = Vec::new();
        let known = seating.ranks(bitmap0, bitmap1, |rank| ranks.push(rank));
        known.then_some(ranks)
    }

    #[test]
    fn workers_at_one_switch_are_one_group() {
        let seating = Seating::new(&[path(7, 0); 4]);
        let seat = Seat {
            bitmap0: 4,
            bitmap1: 1,
            fan_in0: 4,
            fan_in1: 1,
            same_switch: true,
            ..Seat::default()
        };
        assert_eq!(seating.seats[2], seat);
        assert_eq!(named(&seating, 0b101, 1), Some(alloc::vec![0, 2]));
        assert_eq!(named(&seating, 0b10000, 1), None, "nobody's bit");
        assert_eq!(named(&seating, 1, 2), None);
    }

    #[test]
    fn figure_9_meets_at_the_servers_switch() {
        let paths = [path(1, 3), path(1, 3), path(2, 3), path(2, 3), path(3, 0), path(3, 0)];
        let seating = Seating::new(&paths);
        let of = |rank: usize| seating.seats[rank];
        assert_eq!(
            (of(0).fan_in0, of(0).fan_in1, of(0).edge, of(0).same_switch),
            (2, 4, false, false)
        );
        assert_eq!((of(5).fan_in0, of(5).fan_in1, of(5).edge), (1, 4, true));
        let all = seating.seats.iter().fold(0, |all, seat| all | seat.bitmap1);
        assert_eq!(all.count_ones(), 4, "two switches and two workers");
        let mut ranks = named(&seating, 0, all).expect("known");
        ranks.sort_unstable();
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_bitmaps_reach_1024_workers_at_one_switch() {
        let seating = Seating::new(&[path(7, 0); 1024]);
        assert!(seating.seats.iter().all(|seat| (seat.fan_in0, seat.fan_in1) == (32, 32)));
        assert!(seating.seats.iter().all(|seat| seat.same_switch && !seat.alone));
    }

    #[test]
    fn racks_beyond_the_second_bitmap_go_alone() {
        let mut paths: Vec<Path> = (1..=40).flat_map(|rack| [path(rack, 99); 2]).collect();
        paths.push(path(0, 0));
        let seating = Seating::new(&paths);
        let alone = seating.seats.iter().filter(|seat| seat.alone).count();
        assert!(alone > 0 && alone < 30, "{alone}");
        let added = seating.seats.iter().filter(|seat| !seat.alone);
        let groups: BTreeSet<u32> = added.clone().map(|seat| seat.bitmap1).collect();
        assert!(added.clone().all(|seat| usize::from(seat.fan_in1) == groups.len()));
        assert!(seating.seats[80].alone, "no switch is on its way");
        let all: BTreeSet<(u32, u32)> =
            seating.seats.iter().map(|seat| (seat.bitmap0, seat.bitmap1)).collect();
        assert_eq!(all.len(), paths.len(), "no two workers have the same bits");
    }
}
