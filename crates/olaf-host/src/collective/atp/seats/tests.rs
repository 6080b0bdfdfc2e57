//! Seats by themselves: who has which bits, and who is in a packet.

use super::*;
use alloc::collections::BTreeSet;
use alloc::vec;
use proptest::prelude::*;

fn path(switches: &[u32]) -> Path {
    let mut path = Path::default();
    path.0[..switches.len()].copy_from_slice(switches);
    path
}

fn seated(paths: &[Path]) -> Seating {
    Seating::new(paths, LEVELS)
}

/// The packet of a worker.
fn packet(seat: &Seat) -> Header {
    let same_switch = seat.same_switch[0];
    let mut header = Header { upper: Some(seat.upper()), same_switch, ..Header::default() };
    for level in 0..LEVELS {
        header.set_bitmap(level, seat.bitmaps[level]);
        header.set_fan_in(level, seat.fan_ins[level]);
    }
    header
}

fn named(seating: &Seating, bitmaps: [u32; LEVELS]) -> Option<Vec<u32>> {
    let mut header = packet(&Seat::default());
    bitmaps.into_iter().enumerate().for_each(|(level, bitmap)| header.set_bitmap(level, bitmap));
    let mut ranks = Vec::new();
    let known = seating.ranks(&header, |rank| ranks.push(rank));
    ranks.sort_unstable();
    known.then_some(ranks)
}

/// What reaches the server when every worker sends one packet and every switch adds what it may: the
/// ranks in each packet. The slow, obvious reference model of the switches.
fn arrives(seating: &Seating, paths: &[Path]) -> Vec<Vec<u32>> {
    let mut on_the_way: Vec<(Header, usize, Vec<u32>)> = Vec::new();
    for (rank, seat) in (0..).zip(&seating.seats) {
        let mut header = packet(seat);
        header.set_level(seat.level.into());
        header.edge = seat.level > 0;
        on_the_way.push((header, 0, vec![rank]));
    }
    // By switch, level and higher bits: what waits there.
    let mut waiting: BTreeMap<(u32, Vec<u32>), (u32, Vec<u32>)> = BTreeMap::new();
    let mut arrived = Vec::new();
    while let Some((mut header, hop, mut ranks)) = on_the_way.pop() {
        let seat = seating.seats[ranks[0] as usize];
        let switch = paths[ranks[0] as usize].switches().nth(hop);
        let Some(switch) = switch.filter(|_| !seat.alone) else {
            arrived.push(ranks);
            continue;
        };
        let goes = loop {
            let level = header.level();
            if level >= LEVELS {
                break true;
            }
            if header.fan_in(level) > 1 {
                let key = (level..LEVELS)
                    .map(|at| if at == level { level as u32 } else { header.bitmap(at) });
                let open = waiting.entry((switch, key.collect())).or_default();
                assert_eq!(open.0 & header.bitmap(level), 0, "two members have one bit");
                open.0 |= header.bitmap(level);
                open.1.append(&mut ranks);
                if open.0.count_ones() < u32::from(header.fan_in(level)) {
                    break false;
                }
                assert_eq!(open.0.count_ones(), u32::from(header.fan_in(level)));
                (0..level).for_each(|below| header.set_bitmap(below, 0));
                header.set_bitmap(level, open.0);
                ranks = core::mem::take(&mut open.1);
                *open = Default::default();
                ranks.sort_unstable();
                let mut in_packet = Vec::new();
                assert!(seating.ranks(&header, |rank| in_packet.push(rank)));
                in_packet.sort_unstable();
                assert_eq!(in_packet, ranks, "the server reads what the switch added");
            }
            header.set_level(level + 1);
            if !header.same_switch_after(level) {
                break true;
            }
        };
        if goes {
            on_the_way.push((header, hop + 1, ranks));
        }
    }
    assert!(waiting.values().all(|(bitmap, _)| *bitmap == 0), "a sum waits for ever: {waiting:?}");
    arrived
}

#[track_caller]
fn all_are_told_apart(seating: &Seating) {
    let all: BTreeSet<[u32; LEVELS]> = seating.seats.iter().map(|seat| seat.bitmaps).collect();
    assert_eq!(all.len(), seating.seats.len(), "no two workers have the same bits");
    for (rank, seat) in (0..).zip(&seating.seats) {
        assert_eq!(named(seating, seat.bitmaps), Some(vec![rank]));
    }
}

#[test]
fn workers_at_one_switch_are_one_group() {
    let seating = seated(&[path(&[7]); 4]);
    let seat = Seat {
        bitmaps: [4, 1, 1, 1],
        fan_ins: [4, 1, 1, 1],
        same_switch: [true, false, false],
        ..Seat::default()
    };
    assert_eq!((seating.seats[2], seating.levels), (seat, 2));
    assert_eq!(named(&seating, [0b101, 1, 1, 1]), Some(vec![0, 2]));
    assert_eq!(named(&seating, [0b10000, 1, 1, 1]), None, "nobody's bit");
    assert_eq!(named(&seating, [1, 2, 1, 1]), None);
    assert_eq!(named(&seating, [1, 1, 2, 1]), None);
}

#[test]
fn figure_9_meets_at_the_servers_switch() {
    let paths = [&[1, 3][..], &[1, 3], &[2, 3], &[2, 3], &[3], &[3]].map(path);
    let seating = seated(&paths);
    let of = |rank: usize| seating.seats[rank];
    assert_eq!((of(0).fan_ins, of(0).level, of(0).same_switch[0]), ([2, 4, 1, 1], 0, false));
    assert_eq!((of(5).fan_ins, of(5).level, seating.levels), ([1, 4, 1, 1], 1, 2));
    let all = seating.seats.iter().fold(0, |all, seat| all | seat.bitmaps[1]);
    assert_eq!(all.count_ones(), 4, "two switches and two workers");
    assert_eq!(named(&seating, [0, all, 1, 1]), Some((0..6).collect()));
    assert_eq!(arrives(&seating, &paths).len(), 1);
}

#[test]
fn two_bitmaps_reach_1024_workers_at_one_switch() {
    let paths = [path(&[7]); 1024];
    let seating = seated(&paths);
    assert_eq!(seating.levels, 2);
    assert!(seating.seats.iter().all(|seat| seat.fan_ins == [32, 32, 1, 1]));
    assert!(seating.seats.iter().all(|seat| seat.same_switch[0] && !seat.alone));
    assert_eq!(arrives(&seating, &paths).len(), 1);
}

#[test]
fn more_workers_at_one_switch_have_more_levels_there() {
    for workers in [1025, 1500, 4096] {
        let paths = vec![path(&[7]); workers];
        let seating = seated(&paths);
        assert_eq!(seating.levels, LEVELS);
        assert!(seating.seats.iter().all(|seat| !seat.alone && seat.level == 0));
        all_are_told_apart(&seating);
        let came = arrives(&seating, &paths);
        assert_eq!(came.iter().map(Vec::len).collect::<Vec<_>>(), [workers]);
    }
    let seating = seated(&vec![path(&[7]); 32_768]);
    assert!(seating.seats.iter().all(|seat| seat.fan_ins == [32, 32, 32, 1]));
}

#[test]
fn forty_racks_meet_at_their_switch() {
    for (a_rack, levels) in [(2, 3), (38, 4), (102, 4)] {
        let paths: Vec<Path> = (0..40 * a_rack).map(|rank| path(&[1 + rank % 40, 99])).collect();
        let seating = seated(&paths);
        assert_eq!(seating.seats[0].fan_ins.iter().filter(|fan_in| **fan_in > 1).count(), levels);
        all_are_told_apart(&seating);
        assert_eq!(arrives(&seating, &paths).len(), 1, "one sum of {} workers", paths.len());
    }
}

#[test]
fn racks_whose_way_has_no_switch_in_common_are_told_apart() {
    let mut paths: Vec<Path> = (1..=40).flat_map(|rack| [path(&[rack]); 3]).collect();
    paths.extend([Path::default(); 5]);
    let seating = seated(&paths);
    all_are_told_apart(&seating);
    let came = arrives(&seating, &paths);
    assert_eq!(came.iter().filter(|ranks| ranks.len() == 3).count(), 40);
    assert_eq!(came.len(), 45, "five go alone");
}

#[test]
fn four_levels_of_switches_have_a_bitmap_each() {
    // Rack, pod, core, and the switch before the server; one worker is at each of the upper three.
    let mut paths: Vec<Path> = Vec::new();
    for rank in 0..16 {
        paths.push(path(&[100 + rank / 2, 200 + rank / 4, 300 + rank / 8, 400]));
    }
    paths.extend([path(&[200, 300, 400]), path(&[300, 400]), path(&[400])]);
    let seating = seated(&paths);
    assert_eq!(seating.seats[0].fan_ins, [2, 3, 3, 3]);
    assert_eq!([16, 17, 18].map(|rank| seating.seats[rank].level), [1, 2, 3]);
    assert!(seating.seats.iter().all(|seat| !seat.alone && seat.same_switch == [false; 3]));
    all_are_told_apart(&seating);
    assert_eq!(arrives(&seating, &paths), [(0..19).collect::<Vec<_>>()]);
}

#[test]
fn branches_of_different_heights_meet_at_the_same_level() {
    let paths = [&[1, 2, 3, 9][..], &[1, 2, 3, 9], &[4, 9], &[4, 9], &[9]].map(path);
    let seating = seated(&paths);
    assert_eq!(seating.seats[2].level, 0, "its switch takes partial sums along");
    assert_eq!(arrives(&seating, &paths), [[0, 1, 2, 3, 4]]);
}

#[test]
fn what_the_bitmaps_do_not_reach_is_added_as_far_as_they_do() {
    // 40 cores with three pods each, which have three racks of two workers: 40 take two levels.
    let way = |rank: u32| [1000 + rank / 2, 2000 + rank / 6, 3000 + rank / 18, 9];
    let paths: Vec<Path> = (0..720).map(|rank| path(&way(rank))).collect();
    let seating = seated(&paths);
    all_are_told_apart(&seating);
    let came = arrives(&seating, &paths);
    assert_eq!(came.len(), 120, "racks and pods add; cores and the last switch do not");
}

#[test]
fn a_life_that_began_with_two_levels_keeps_them() {
    let paths = [&[1, 2, 3][..], &[1, 2, 3], &[4, 5, 3], &[4, 5, 3]].map(path);
    assert_eq!(Seating::new(&paths, LEVELS).levels, LEVELS);
    let seating = Seating::new(&paths, 2);
    assert_eq!(seating.levels, 2);
    assert!(seating.seats.iter().all(|seat| seat.bitmaps[2..] == [1, 1]));
    assert_eq!(arrives(&seating, &paths).len(), 2, "the third switch passes them on");
}

proptest! {
    /// Whatever joins say: no two workers have the same bits, no sum waits for somebody who sends
    /// elsewhere, and what a switch adds is what the server reads.
    #[test]
    fn any_joins_lead_to_seats_that_fit(
        all in prop::collection::vec(prop::collection::vec(1u32..6, 0..5), 1..60),
        times in prop_oneof![Just(1usize), Just(1), Just(40)],
    ) {
        let mut paths: Vec<Path> = all.iter().map(|switches| path(switches)).collect();
        let first = paths[0];
        paths.extend(vec![first; times - 1]);
        for most in [2, LEVELS] {
            let seating = Seating::new(&paths, most);
            all_are_told_apart(&seating);
            let mut came = arrives(&seating, &paths).concat();
            came.sort_unstable();
            prop_assert_eq!(came, (0..paths.len() as u32).collect::<Vec<_>>());
        }
    }
}
