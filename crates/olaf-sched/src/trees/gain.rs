//! Ours: what the jobs with conflict-free trees gain together is to be as large as it can be, and
//! no job's tree changes unless that pays.
//!
//! differs: MINA §III-C counts jobs and chooses anew at each arrival. Most recorded jobs gain
//! nothing by a tree (docs/design/015-trees.md), so counting gives places to jobs that have no
//! use for them; and choosing anew moved each job's tree five times.

use super::ground::{Ground, Place, Slot};
use super::seat::{Limits, Outcome, Seating, burden};
use super::{Join, Problem, Solution};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Each member that made room, and the member that it made room for.
pub(super) type MadeRoom = BTreeMap<Slot, Slot>;

/// Times that seats given up in one event are offered again.
const PASSES: usize = 3;

/// Seats each job that can be seated, lets the others take turns, and gives the trees that are left
/// to jobs that gain nothing. Looks only at jobs near those that came, left or moved.
pub(super) fn settle(ground: &mut Ground, limits: Limits, join: Join, new: &[Slot]) -> MadeRoom {
    let mut made_room = MadeRoom::new();
    let mut freed = ground.stirred();
    let mut seating = Seating::new(ground, limits);
    let mut open = near(seating.ground, &freed);
    open.extend(new);
    for _ in 0..PASSES {
        retain_unseated(seating.ground, &mut open);
        seat_all(&mut seating, open.clone(), &mut made_room);
        swap_all(&mut seating, &open, &mut made_room);
        freed = std::mem::take(&mut seating.freed);
        if freed.is_empty() {
            break;
        }
        open = near(seating.ground, &freed);
    }
    let mut left_over = ground.who_wants(&ground.stirred());
    left_over.extend(new);
    retain_unseated(ground, &mut left_over);
    join_all(ground, limits, join, &left_over);
    give_rest(ground, new);
    made_room
}

/// Makes a solver's choice the conflict-free set. A job that moved made room for the one that gains
/// most of those that were seated.
pub(super) fn adopt(
    ground: &mut Ground,
    limits: Limits,
    join: Join,
    problem: &Problem,
    solution: &Solution,
) -> MadeRoom {
    let slot = |ground: &Ground, job| ground.slot(job).expect("the problem is of this forest");
    let chosen: BTreeMap<Slot, usize> =
        solution.chosen.iter().map(|c| (slot(ground, c.job), c.candidate)).collect();
    let choosers: Vec<Slot> = problem.jobs.iter().map(|c| slot(ground, c.job)).collect();
    let (mut won, mut moved) = (Vec::new(), Vec::new());
    for &slot in &choosers {
        match (ground.member(slot).seat(), chosen.get(&slot)) {
            (Some(had), Some(&at)) if had != at => moved.push(slot),
            (None, Some(_)) => won.push(slot),
            _ => {}
        }
        if ground.member(slot).seat().is_some() {
            ground.put(slot, None);
        }
    }
    // A job that gains nothing gives way, and gets a tree that is left.
    let mut used: Vec<u32> = Vec::new();
    for (&slot, &at) in &chosen {
        used.extend_from_slice(ground.member(slot).candidates.uses(at));
    }
    used.sort_unstable();
    used.dedup();
    for slot in ground.who_wants(&used) {
        if ground.gain(slot) == 0 && ground.uses(slot).iter().any(|r| used.binary_search(r).is_ok())
        {
            ground.put(slot, None);
        }
    }
    for (slot, at) in chosen {
        ground.seat(slot, at);
    }
    let mut left_over = ground.who_wants(&ground.stirred());
    left_over.extend(choosers);
    retain_unseated(ground, &mut left_over);
    join_all(ground, limits, join, &left_over);
    give_rest(ground, &[]);
    let winner = won.into_iter().max_by_key(|&slot| ground.gain(slot));
    winner.map_or_else(MadeRoom::new, |winner| moved.into_iter().map(|m| (m, winner)).collect())
}

/// The members that could use a `freed` resource, themselves or by the move of a member that can.
fn near(ground: &Ground, freed: &[u32]) -> Vec<Slot> {
    let who = ground.who_wants(freed);
    let uses = |&slot: &Slot| ground.member(slot).seat().map_or(&[][..], |_| ground.uses(slot));
    let mut resources: Vec<u32> = who.iter().flat_map(uses).copied().collect();
    resources.extend(freed);
    resources.sort_unstable();
    resources.dedup();
    ground.who_wants(&resources)
}

/// Keeps the members that gain something and have no seat; those that gain most come first.
fn retain_unseated(ground: &Ground, open: &mut Vec<Slot>) {
    open.retain(|&slot| {
        let member = ground.member(slot);
        member.seat().is_none() && member.arrival.gain > 0 && member.candidates.len() > 0
    });
    open.sort_by_key(|&slot| (Reverse(ground.gain(slot)), ground.member(slot).arrival.job));
    open.dedup();
}

fn seat_all(seating: &mut Seating<'_>, mut open: Vec<Slot>, made_room: &mut MadeRoom) {
    open.reverse();
    // A dropped member gains less than the member that dropped it, so this ends.
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

/// Seats two or more members in place of one that is in the way of all of them.
fn swap_all(seating: &mut Seating<'_>, open: &[Slot], made_room: &mut MadeRoom) {
    let mut waiting: BTreeMap<Slot, Vec<Slot>> = BTreeMap::new();
    for &slot in open {
        if seating.ground.member(slot).seat().is_none() {
            for blocker in seating.only_blockers(slot) {
                waiting.entry(blocker).or_default().push(slot);
            }
        }
    }
    for (blocker, mut others) in waiting {
        others.retain(|&other| seating.ground.member(other).seat().is_none());
        if others.len() < 2 || seating.ground.member(blocker).seat().is_none() {
            continue;
        }
        let outcome = seating.replace(blocker, &others);
        note(made_room, others[0], &outcome);
    }
}

fn note(made_room: &mut MadeRoom, slot: Slot, outcome: &Outcome) {
    for &moved in &outcome.moved {
        made_room.insert(moved, slot);
    }
}

/// A member without a seat takes turns with the members that are least in its way.
fn join_all(ground: &mut Ground, limits: Limits, join: Join, left_over: &[Slot]) {
    for &slot in left_over {
        let allowed = |ground: &Ground, at: usize| match join {
            Join::None => false,
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

/// Jobs that gain nothing never cost another job anything: they get trees that no other job wants.
fn give_rest(ground: &mut Ground, new: &[Slot]) {
    let mut idle = ground.who_wants(&ground.stirred());
    idle.extend(new);
    idle.retain(|&slot| ground.gain(slot) == 0);
    idle.sort_by_key(|&slot| ground.member(slot).arrival.job);
    idle.dedup();
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
