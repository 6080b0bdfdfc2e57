//! Seats a job in the conflict-free set by chains of moves: a job in its way is seated elsewhere, a
//! job in *that* way elsewhere again, and so on, a few jobs deep. A job that finds no other seat
//! loses its seat, if that costs less than the new seat gains.
//!
//! Example: A needs a link that B has, B could use a link that C has, and a third link is free. C
//! moves to the free link, B to C's link, and A gets its seat.
//!
//! The work is counted, not timed: the same commands give the same trees on every machine.

use super::ground::{Ground, Place, Slot};

/// The place that each member shall have.
type Plan = Vec<(Slot, Option<Place>)>;

/// What one event may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Longest chain of moves.
    pub(super) depth: u32,
    /// Looks at a resource, for the whole event.
    pub(super) work: u64,
    /// Cost of moving a job, in thousandths of its gain.
    pub(super) price_millis: u64,
}

/// Tries seats; undoes what does not pay.
pub(super) struct Seating<'a> {
    pub(super) ground: &'a mut Ground,
    limits: Limits,
    /// The members moved since the attempt began, with their places before.
    trail: Plan,
    /// Members that this attempt seated: it does not move them again.
    pinned: Vec<Slot>,
    cost: u64,
    left: u64,
    /// Resources of seats that were given up and perhaps not taken again.
    pub(super) freed: Vec<u32>,
}

/// The members that a new seat moved.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Seated elsewhere.
    pub(super) moved: Vec<Slot>,
    /// Without a seat now.
    pub(super) dropped: Vec<Slot>,
}

impl<'a> Seating<'a> {
    pub(super) fn new(ground: &'a mut Ground, limits: Limits) -> Self {
        let left = limits.work;
        Self {
            ground,
            limits,
            trail: Vec::new(),
            pinned: Vec::new(),
            cost: 0,
            left,
            freed: Vec::new(),
        }
    }

    /// Seats `slot` if that gains more than it costs.
    pub(super) fn seat(&mut self, slot: Slot) -> Outcome {
        let worth = self.worth(slot);
        if worth == 0 {
            return Outcome::default();
        }
        if let Some(at) = self.best_open(slot) {
            self.ground.seat(slot, at);
            return Outcome::default();
        }
        let mut best: Option<(u64, Plan)> = None;
        for depth in 1..=self.limits.depth {
            for at in 0..self.ground.member(slot).candidates.len() {
                if self.left == 0 {
                    break;
                }
                let bound = best.as_ref().map_or(worth, |(cost, _)| *cost);
                if self.force(slot, at, depth, bound) {
                    best = Some((self.cost, self.plan()));
                }
                self.undo(0);
            }
            // Chains of this length that drop no member cost less than longer ones.
            if best.as_ref().is_some_and(|(_, plan)| plan.iter().all(|(_, to)| to.is_some())) {
                break;
            }
        }
        let Some((_, plan)) = best else { return Outcome::default() };
        let mut outcome = Outcome::default();
        for (who, _) in &plan {
            self.freed.extend_from_slice(self.ground.uses(*who));
            self.ground.put(*who, None);
        }
        for (who, to) in plan {
            self.ground.put(who, to);
            if who != slot {
                if to.is_some() { &mut outcome.moved } else { &mut outcome.dropped }.push(who);
            }
        }
        outcome
    }

    /// Instead of `slot`, seats those of `others` that fit then, if they gain more together.
    pub(super) fn replace(&mut self, slot: Slot, others: &[Slot]) -> Outcome {
        let worths = others.iter().map(|&other| self.worth(other));
        let bound = worths.fold(0, u64::saturating_add);
        let lost = self.lost(slot);
        if bound <= lost {
            return Outcome::default();
        }
        let uses = self.ground.uses(slot).len();
        self.freed.extend_from_slice(self.ground.uses(slot));
        self.put(slot, None);
        let mut won = 0;
        for &other in others {
            let worth = self.worth(other);
            if let Some(at) = self.best_open(other) {
                self.put(other, Some(Place { candidate: at, seated: true }));
                won = u64::saturating_add(won, worth);
            }
        }
        if let Some(at) = self.best_open(slot) {
            self.put(slot, Some(Place { candidate: at, seated: true }));
        }
        if won <= lost {
            self.undo(0);
            self.freed.truncate(self.freed.len() - uses);
            return Outcome::default();
        }
        self.trail.clear();
        let seated = self.ground.member(slot).seat().is_some();
        Outcome {
            moved: if seated { vec![slot] } else { Vec::new() },
            dropped: if seated { Vec::new() } else { vec![slot] },
        }
    }

    /// Seated members that are alone in the way of a candidate of `slot`, ascending.
    pub(super) fn only_blockers(&mut self, slot: Slot) -> Vec<Slot> {
        let mut only = Vec::new();
        for at in 0..self.ground.member(slot).candidates.len() {
            if let Some(&[blocker]) = self.blockers(slot, at, u64::MAX).as_deref() {
                only.push(blocker);
            }
        }
        only.sort_unstable();
        only.dedup();
        only
    }

    /// Seats `slot` at candidate `at` and the members there elsewhere, for less than `bound`. If it
    /// fails, its changes stay on the trail for the caller to undo.
    fn force(&mut self, slot: Slot, at: usize, depth: u32, bound: u64) -> bool {
        let Some(mut blockers) = self.blockers(slot, at, bound) else { return false };
        for &blocker in &blockers {
            self.put(blocker, None);
        }
        self.put(slot, Some(Place { candidate: at, seated: true }));
        self.pinned.push(slot);
        blockers.sort_by_key(|&blocker| std::cmp::Reverse(self.ground.gain(blocker)));
        blockers.into_iter().all(|blocker| self.reseat(blocker, depth - 1, bound))
    }

    fn reseat(&mut self, slot: Slot, depth: u32, bound: u64) -> bool {
        let cost = self.cost;
        if let Some(at) = self.best_open(slot) {
            self.put(slot, Some(Place { candidate: at, seated: true }));
            self.cost = self.cost.saturating_add(self.moved(slot));
            return self.cost < bound;
        }
        if depth > 0 && self.ground.gain(slot) > 0 {
            let (mark, pins) = (self.trail.len(), self.pinned.len());
            for at in 0..self.ground.member(slot).candidates.len() {
                if self.left == 0 {
                    break;
                }
                self.cost = cost.saturating_add(self.moved(slot));
                if self.cost < bound && self.force(slot, at, depth, bound) {
                    return true;
                }
                self.pinned.truncate(pins);
                self.undo_to(mark);
            }
        }
        self.cost = cost.saturating_add(self.lost(slot));
        self.cost < bound
    }

    /// Seated members that must leave if `slot` is to have candidate `at`: of each resource those
    /// that gain least. None if they may not leave, or if that must cost `bound` or more.
    fn blockers(&mut self, slot: Slot, at: usize, bound: u64) -> Option<Vec<Slot>> {
        let [most, units] =
            [self.ground.rule.units(), self.ground.member(slot).arrival.units].map(u64::from);
        let mut blockers: Vec<Slot> = Vec::new();
        let mut least = self.cost;
        let uses = self.ground.member(slot).candidates.uses(at).len();
        self.left = self.left.saturating_sub(uses as u64);
        for n in 0..uses {
            let resource = self.ground.member(slot).candidates.uses(at)[n];
            let mut held = self.ground.seated_units(resource);
            if held + units <= most {
                continue;
            }
            let of = |who: Slot| u64::from(self.ground.member(who).arrival.units);
            let mut users: Vec<Slot> = self.ground.seated_users(resource).collect();
            users.retain(|user| {
                let leaves = blockers.contains(user);
                held -= if leaves { of(*user) } else { 0 };
                !leaves && *user != slot && !self.pinned.contains(user)
            });
            users.sort_by_key(|&user| (self.ground.gain(user), user));
            for user in users {
                if held + units <= most {
                    break;
                }
                held -= of(user);
                blockers.push(user);
                // A user whose candidates all need the resource cannot move away from it.
                let stuck = self.ground.member(user).candidates.forced.binary_search(&resource);
                let costs = stuck.is_ok() && most == units;
                least = least.saturating_add(if costs { self.lost(user) } else { 0 });
            }
            if held + units > most || least >= bound {
                return None;
            }
        }
        Some(blockers)
    }

    /// The open candidate in whose way the fewest are that share.
    fn best_open(&mut self, slot: Slot) -> Option<usize> {
        let mut best: Option<((u64, usize), usize)> = None;
        for at in 0..self.ground.member(slot).candidates.len() {
            let uses = self.ground.member(slot).candidates.uses(at).len();
            self.left = self.left.saturating_sub(uses as u64);
            if !self.ground.is_open(slot, at) {
                continue;
            }
            let burden = burden(self.ground, slot, at);
            if burden == (0, 0) {
                return Some(at);
            }
            if best.is_none_or(|(least, _)| burden < least) {
                best = Some((burden, at));
            }
        }
        best.map(|(_, at)| at)
    }

    fn put(&mut self, slot: Slot, place: Option<Place>) {
        self.trail.push((slot, self.ground.member(slot).place));
        self.ground.put(slot, place);
    }

    fn undo(&mut self, mark: usize) {
        self.undo_to(mark);
        self.pinned.clear();
        self.cost = 0;
    }

    fn undo_to(&mut self, mark: usize) {
        for (slot, place) in self.trail.drain(mark..).rev() {
            self.ground.put(slot, place);
        }
    }

    /// Where everyone on the trail stands now.
    fn plan(&self) -> Plan {
        let mut who: Vec<Slot> = self.trail.iter().map(|(slot, _)| *slot).collect();
        who.sort_unstable();
        who.dedup();
        who.into_iter().map(|slot| (slot, self.ground.member(slot).place)).collect()
    }

    /// What a seat is worth to a job that has none: if it shares, the change of its tree is off.
    fn worth(&self, slot: Slot) -> u64 {
        let member = self.ground.member(slot);
        let price = if member.place.is_some() { self.moved(slot) } else { 0 };
        member.arrival.gain.saturating_sub(price)
    }

    fn moved(&self, slot: Slot) -> u64 {
        let price =
            u128::from(self.ground.gain(slot)) * u128::from(self.limits.price_millis) / 1000;
        u64::try_from(price).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn lost(&self, slot: Slot) -> u64 {
        let gain = self.ground.gain(slot);
        if gain == 0 { 1 } else { gain.saturating_add(self.moved(slot)) }
    }
}

/// How much is in the way of candidate `at`: what rivals gain, and how many they are.
pub(super) fn burden(ground: &Ground, slot: Slot, at: usize) -> (u64, usize) {
    let rivals = ground.rivals_at(slot, at);
    let gains = rivals.iter().map(|&rival| ground.gain(rival));
    (gains.fold(0, u64::saturating_add), rivals.len())
}
