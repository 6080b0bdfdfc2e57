//! Two levels, as the paper has them: groups of workers at a first switch, which meet at a second one.

use super::{Path, Seat};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use olaf_wire::atp::BITS;

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

/// Seats workers by the first two switches of their paths. Beyond 1,024 workers that go alone, the places
/// are not unique.
pub(super) fn seats(paths: &[Path]) -> Vec<Seat> {
    let mut units = units(paths, true);
    if units.len() > GROUP {
        units = self::units(paths, false);
    }
    // Where the second bitmap is too short, the largest groups are added up, and the rest go alone.
    units.sort_by_key(|unit| core::cmp::Reverse(unit.ranks.len()));
    let seated = |units: &[Unit]| units.iter().map(|unit| unit.ranks.len()).sum::<usize>();
    while units.len() + (paths.len() - seated(&units)).div_ceil(GROUP) > GROUP {
        if units.pop().is_none() {
            break;
        }
    }
    let mut seats = alloc::vec![Seat::default(); paths.len()];
    let mut groups = 0;
    let mut alone: BTreeSet<u32> = (0..).take(paths.len()).collect();
    for unit in &units {
        unit.ranks.iter().for_each(|rank| {
            alone.remove(rank);
        });
        let others = units.iter().filter(|other| other.meets_at == unit.meets_at).count();
        let mut seat = Seat { level: u8::from(unit.edge), ..Seat::default() };
        seat.fan_ins[1] = u8::try_from(others).unwrap_or(u8::MAX);
        seat.same_switch[0] = unit.same_switch;
        sit(&mut seats, &mut groups, &unit.ranks, seat);
    }
    let alone: Vec<u32> = alone.into_iter().collect();
    for ranks in alone.chunks(GROUP) {
        sit(&mut seats, &mut groups, ranks, Seat { alone: true, ..Seat::default() });
    }
    seats
}

fn sit(seats: &mut [Seat], groups: &mut u32, ranks: &[u32], seat: Seat) {
    for (bit, rank) in ranks.iter().enumerate() {
        let mut seat = seat;
        (seat.bitmaps[0], seat.bitmaps[1]) = (1 << bit, 1 << (*groups % BITS));
        seat.fan_ins[0] = u8::try_from(ranks.len()).unwrap_or(u8::MAX);
        seats[*rank as usize] = seat;
    }
    *groups += 1;
}

/// Groups of workers with one path. Workers at a second edge switch stand for themselves, or else are
/// groups, too.
fn units(paths: &[Path], stand_for_themselves: bool) -> Vec<Unit> {
    let mut racks: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for (rank, path) in (0..).zip(paths) {
        racks.entry((path.0[0], path.0[1])).or_default().push(rank);
    }
    racks.remove(&(0, 0));
    let uppers: BTreeSet<u32> = racks.keys().map(|path| path.1).filter(|id| *id > 0).collect();
    let mut units = Vec::new();
    for ((first, second), ranks) in racks {
        let is_top = second == 0;
        let alone = is_top && uppers.contains(&first) && stand_for_themselves;
        let meets_at = if is_top { first } else { second };
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
