//! How far one address may move a model.
//!
//! An address that sends updates just below the limit of their norm, and as many as `max_rate` lets through, moves a
//! model 200 times as far as another one. So the product of both has a limit of its own.
//!
//! A *usual step* is one contribution as long as the median of the others' newest ones. The speed of an address is
//! its usual steps in a window that ends now, where older ones count less and less, by the second. The window is some
//! turns of the median worker, so that a job of short turns and one of long turns are bounded alike; and it is long
//! enough that the updates which a busy host holds back and sends together are no speed.
//!
//! An address votes with the fastest that it was lately. Equal workers that send in bursts are fast one after
//! the other, and their newest speeds would say little. An update that makes its address faster than the limit is
//! scaled down to it, and takes part with its direction: a fast machine is slowed, and loses nothing else.

use super::Clip;
use super::recent::{Recent, Seat, Voter};
use crate::table::{Hint, Table};
use crate::time::Instant;
use core::time::Duration;

/// Turns of the median worker in a window.
const TURNS: f64 = 8.0;
/// The shortest window and the longest. What a busy host holds back of an equal worker's updates, and sends together, is
/// below the usual limit for some of the shortest windows.
const WINDOW_S: (f64, f64) = (0.2, 600.0);
/// Windows after which the fastest that an address was counts a third; a window counts as one second at least.
const REMEMBERED: f64 = 8.0;
/// The share of the newest turn in the mean turn of an address.
const NEWEST: f64 = 1.0 / 8.0;
/// A turn counts as this multiple of the mean at most: a pause is no turn.
const LONGEST: f64 = 8.0;
/// A window that becomes longer by this factor makes the votes of before worthless.
const LONGER: f64 = 1.5;
/// How long the length of the window is used again.
const FRESH: Duration = Duration::from_secs(1);
/// Addresses that are remembered before the first look for quiet ones.
const ADDRESSES: usize = 1024;
/// The share of its steps that an address may move the model by before they are counted.
const SPARE: f64 = 1.0 / 16.0;
/// Windows after which nothing is left of the speed of a quiet address.
const KEPT: f64 = 4.0;

/// How far each address moved the model of a job lately.
#[derive(Debug)]
pub(super) struct Movement {
    addresses: Table<Voter, Address>,
    /// Of each address, the most usual steps in a window that it had lately.
    fastest: Recent,
    /// Of each address, the mean time between two of its contributions, in seconds.
    turns: Recent,
    window_s: f64,
    window_until: Instant,
    sweep_at: usize,
}

#[derive(Debug)]
struct Address {
    /// When its first update came, and its newest.
    since: Instant,
    newest: Instant,
    /// Usual steps in the window that ends with the newest update.
    steps: f64,
    /// The most that these were, which counts less and less.
    most: f64,
    /// Steps and turns since then: they are counted after that time, or when they are more than what it has to spare.
    noted: f64,
    turns: u32,
    noted_until: Instant,
    spare: f64,
    /// When its newest turn began, and what a turn takes.
    turn_began: Instant,
    turn_s: Option<f64>,
}

/// Where an address was found last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints {
    address: Hint,
    fastest: Seat,
    turn: Seat,
}

/// What moves the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) by: Voter,
    /// How far, in usual steps; above 0 and finite.
    pub(super) steps: f64,
    /// Contributions that begin here: none in a segment that is not the first of an update.
    pub(super) turns: u32,
}

impl Default for Movement {
    fn default() -> Self {
        Self {
            addresses: Table::new(),
            fastest: Recent::default(),
            turns: Recent::default(),
            window_s: WINDOW_S.0,
            window_until: Instant::default(),
            sweep_at: ADDRESSES,
        }
    }
}

impl Movement {
    /// How much of a move is kept, from 0 to 1. The move counts from then on, as far as it is kept.
    ///
    /// Most moves are only noted: nothing can be above the limit until the address has moved the model by what it has
    /// to spare, and an eighth of a window changes little.
    #[inline]
    pub(super) fn kept(&mut self, now: Instant, limit: Clip, of: Move, hints: &mut Hints) -> f64 {
        let address = self.addresses.at_or_insert(of.by, &mut hints.address, || Address::new(now));
        address.noted += of.steps;
        address.turns += of.turns;
        if now < address.noted_until && address.noted <= address.spare {
            return 1.0;
        }
        self.count(now, limit, of, hints)
    }

    /// Counts what was noted of an address, this move included.
    #[inline(never)]
    fn count(&mut self, now: Instant, limit: Clip, of: Move, hints: &mut Hints) -> f64 {
        let window_s = self.window_s(now);
        let address = self.addresses.at_or_insert(of.by, &mut hints.address, || Address::new(now));
        if address.turns > 0
            && let Some(turn_s) = address.turn(now)
        {
            let own = self.turns.own(of.by, &mut hints.turn);
            self.turns.note(now, of.by, own, turn_s);
        }
        // What was noted came soon after the last time: it was a burst, and is older now.
        address.steps += core::mem::take(&mut address.noted) - of.steps;
        address.most = address.most.max(address.steps);
        address.grow_older(now, window_s);
        let own = self.fastest.own(of.by, &mut hints.fastest);
        let (limit, least) = match limit {
            Clip::At(a_second) => (Clip::At(a_second * window_s), 0.0),
            // A worker whose vote is of few steps is as fast as one turn after the other makes it.
            Clip::Median(multiple) => (limit, multiple * TURNS),
            Clip::Off => (limit, 0.0),
        };
        let before = address.steps;
        address.steps += of.steps;
        let wanted = address.steps;
        let is_over = |limit: f64| wanted > limit.max(least);
        let cut = match self.fastest.limit_below(limit, own, wanted, is_over) {
            None => 0.0,
            Some(limit) => {
                let limit = limit.max(least);
                // Whoever was faster before anybody knew what is usual gives nothing back.
                address.steps -= (before - limit).max(0.0);
                (address.steps - limit).clamp(0.0, of.steps)
            }
        };
        address.steps -= cut;
        address.most = address.most.max(address.steps);
        address.spare =
            if cut > 0.0 { 0.0 } else { (least - address.steps).max(address.steps * SPARE) };
        address.noted_until = now + Duration::from_secs_f64(window_s / TURNS);
        // The first steps of a newcomer say nothing yet about what is usual.
        if now.since(address.since).as_secs_f64() >= window_s {
            self.fastest.note(now, of.by, own, address.most);
        }
        self.forget(now, window_s);
        1.0 - cut / of.steps
    }

    fn forget(&mut self, now: Instant, window_s: f64) {
        if self.addresses.len() >= self.sweep_at {
            let kept = Duration::from_secs_f64(KEPT * window_s.max(1.0));
            self.addresses.retain(|_, address| now.since(address.newest) < kept);
            self.sweep_at = ADDRESSES.max(2 * self.addresses.len());
        }
    }

    fn window_s(&mut self, now: Instant) -> f64 {
        if now >= self.window_until {
            self.renew_window(now);
        }
        self.window_s
    }

    #[inline(never)]
    fn renew_window(&mut self, now: Instant) {
        let turn_s = self.turns.median(None).unwrap_or(0.0);
        let window_s = (TURNS * turn_s).clamp(WINDOW_S.0, WINDOW_S.1);
        if window_s > LONGER * self.window_s {
            // In a longer window each address is faster: what it was in a short one is no measure of the others.
            self.fastest = Recent::default();
        }
        self.window_s = window_s;
        self.window_until = now + FRESH;
    }
}

impl Address {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            newest: now,
            steps: 0.0,
            most: 0.0,
            noted: 0.0,
            turns: 0,
            noted_until: now,
            spare: 0.0,
            turn_began: now,
            turn_s: None,
        }
    }

    /// Counts the turns that were noted. The result is the mean time that one takes, once it is known.
    fn turn(&mut self, now: Instant) -> Option<f64> {
        let turns = f64::from(core::mem::take(&mut self.turns));
        let took = now.since(self.turn_began).as_secs_f64() / turns;
        self.turn_began = now;
        if self.since == now {
            return None;
        }
        let mean =
            self.turn_s.map_or(took, |mean| mean + (took.min(mean * LONGEST) - mean) * NEWEST);
        self.turn_s = Some(mean);
        Some(mean)
    }

    /// Steps before now count less.
    fn grow_older(&mut self, now: Instant, window_s: f64) {
        let passed_s = now.since(self.newest).as_secs_f64();
        self.steps *= decayed(passed_s / window_s);
        self.most *= decayed(passed_s / (REMEMBERED * window_s.max(1.0)));
        self.newest = now;
    }
}

/// About `exp(-windows)`, without its price: `(1 + windows / 8) ^ -8`.
#[inline]
fn decayed(windows: f64) -> f64 {
    let root = 1.0 / (1.0 + windows * 0.125);
    let fourth = root * root * (root * root);
    fourth * fourth
}

#[cfg(test)]
mod tests;
