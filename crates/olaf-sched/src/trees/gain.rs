//! Ours: what the jobs with conflict-free trees gain together is to be as large as it can be, and
//! no job's tree changes unless that pays.
//!
//! differs: MINA §III-C counts jobs and chooses anew at each arrival. Most recorded jobs gain
//! nothing by a tree (docs/design/015-trees.md), so counting gives places to those who have no use
//! for them; and choosing anew moved each job's tree five times.

use super::Join;
use super::ground::{Ground, Place, Slot};
use super::seat::{Limits, Outcome, Seating, burden};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Who made room for whom, by slot.
pub(super) type MadeRoom = BTreeMap<Slot, Slot>;

/// Seats who can be seated, joins who cannot, gives what is left to those who gain nothing.
pub(super) fn settle(ground: &mut Ground, limits: Limits, join: Join) -> MadeRoom {
    let mut made_room = MadeRoom::new();
    let mut seating = Seating::new(ground, limits);
    seat_all(&mut seating, &mut made_room);
    if swap_all(&mut seating, &mut made_room) {
        seat_all(&mut seating, &mut made_room);
    }
    join_all(ground, limits, join);
    give_rest(ground);
    made_room
}

fn seat_all(seating: &mut Seating<'_>, made_room: &mut MadeRoom) {
    let mut open = unseated(seating.ground);
    open.reverse();
    // Whoever is dropped gains less than who dropped it, so this ends.
    while let Some(slot) = open.pop() {
        let outcome = seating.seat(slot);
        for &dropped in &outcome.dropped {
            let gain = seating.ground.gain(dropped);
            if gain > 0 {
                let at = open.partition_point(|&other| seating.ground.gain(other) < gain);
                open.insert(at, dropped);
            }
        }
        note(made_room, slot, &outcome);
    }
}

/// Who gains something and has no seat, those who gain most first.
fn unseated(ground: &Ground) -> Vec<Slot> {
    let mut open: Vec<Slot> = ground
        .slots()
        .filter(|&slot| {
            let member = ground.member(slot);
            member.seat().is_none() && member.arrival.gain > 0 && member.candidates.len() > 0
        })
        .collect();
    open.sort_by_key(|&slot| (Reverse(ground.gain(slot)), ground.member(slot).arrival.job));
    open
}

/// Two or more for one who is in the way of all of them.
fn swap_all(seating: &mut Seating<'_>, made_room: &mut MadeRoom) -> bool {
    let mut waiting: BTreeMap<Slot, Vec<Slot>> = BTreeMap::new();
    for slot in unseated(seating.ground) {
        for blocker in seating.only_blockers(slot) {
            waiting.entry(blocker).or_default().push(slot);
        }
    }
    let mut any = false;
    for (blocker, mut others) in waiting {
        others.retain(|&other| seating.ground.member(other).seat().is_none());
        if others.len() < 2 || seating.ground.member(blocker).seat().is_none() {
            continue;
        }
        let outcome = seating.replace(blocker, &others);
        any |= outcome.seated;
        note(made_room, others[0], &outcome);
    }
    any
}

fn note(made_room: &mut MadeRoom, slot: Slot, outcome: &Outcome) {
    for &moved in &outcome.moved {
        made_room.insert(moved, slot);
    }
}

/// Who has no seat takes turns with those who are least in its way.
fn join_all(ground: &mut Ground, limits: Limits, join: Join) {
    for slot in unseated(ground) {
        let allowed = |ground: &Ground, at: usize| match join {
            Join::Nobody => false,
            Join::One => groups(ground, slot, at) <= 1,
            Join::Several => true,
        };
        let now = ground.member(slot).place.map(|place| place.candidate);
        let now = now.filter(|&at| allowed(ground, at)).map(|at| (burden(ground, slot, at), at));
        let candidates = 0..ground.member(slot).candidates.len();
        let best = candidates
            .filter(|&at| allowed(ground, at))
            .map(|at| (burden(ground, slot, at), at))
            .min();
        let price = u128::from(ground.gain(slot)) * u128::from(limits.price_millis) / 1000;
        let to = match (now, best) {
            // A change must pay.
            (Some((now, at)), Some((best, _))) if u128::from(now.0 - best.0) <= price => Some(at),
            (_, best) => best.map(|(_, at)| at),
        };
        ground.put(slot, to.map(|candidate| Place { candidate, seated: false }));
    }
}

/// With how many groups candidate `at` of `slot` conflicts.
pub(super) fn groups(ground: &Ground, slot: Slot, at: usize) -> usize {
    let mut rivals = ground.rivals_at(slot, at);
    let mut groups = 0;
    while let Some(rival) = rivals.pop() {
        groups += 1;
        let group = ground.group(rival, Some(slot));
        rivals.retain(|rival| !group.contains(rival));
    }
    groups
}

/// Jobs that gain nothing never cost another anything: they have what nobody else wants.
fn give_rest(ground: &mut Ground) {
    let idle: Vec<Slot> = ground.slots().filter(|&slot| ground.gain(slot) == 0).collect();
    for &slot in &idle {
        if let Some(at) = ground.member(slot).seat()
            && !ground.is_free(slot, at)
        {
            ground.put(slot, None);
        }
    }
    for slot in idle {
        let member = ground.member(slot);
        if member.seat().is_none() {
            let free = (0..member.candidates.len()).find(|&at| ground.is_free(slot, at));
            ground.put(slot, free.map(|candidate| Place { candidate, seated: true }));
        }
    }
}
