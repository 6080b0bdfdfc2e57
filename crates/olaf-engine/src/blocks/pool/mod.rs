//! The table of `reduce` and SwitchML: a pool of slots with two cells each. The result of a block
//! stays in its cell until every member is known to hold it.
//!
//! The cells are a `Ring`, which has the rules by which no result is lost.
//!
//! Example of a pool of 4 slots and two members:
//!
//! | step | outcome | why |
//! |---|---|---|
//! | member 0 sends block 1 | `Opened` | the cell is free |
//! | member 1 sends block 1 | `Complete` | these are all members |
//! | member 0 sends block 5 | `Opened` | the other cell of slot 1; member 0 holds the result of 1 |
//! | member 1 sends block 1 again | `Repeated` | its result was lost; it still is in its cell |
//! | member 0 sends block 9 | `Refused(TooEarly)` | no member can hold the result of 5 yet |

mod cell;
#[cfg(all(test, feature = "model"))]
mod check;
mod counts;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
#[cfg(test)]
mod tests;

pub use super::ring::{MAX_SLOTS, State};
pub use cell::Cell;
pub use counts::Counts;

use super::ring::Ring;
use crate::lanes::{Aligned, typed};
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::reduce::{LaneType, MAX_RANKS, Operator};

/// One member's part of a block, or the sum of those behind a lower switch.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The block's number in the generation.
    pub block: u32,
    /// The member that sent the piece.
    pub member: u32,
    /// The member holds the results of all blocks below this one.
    pub holds: u32,
    /// Workers in the sum; 1 for a worker's own piece.
    pub contributors: u32,
    /// The path was congested on the way here.
    pub congested: bool,
    /// A lower switch says that a lane is no finite number.
    pub not_finite: bool,
    /// The longest that the block may stay incomplete; none: for ever.
    pub deadline: Option<Duration>,
    /// What a lane is.
    pub lane_type: LaneType,
    /// What becomes of the contributors' lanes. One piece completes a broadcast.
    pub operator: Operator,
    /// The lanes as they are on the wire.
    pub lanes: &'a [u8],
}

/// What a result from the switch above says beside its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// What a lane is.
    pub lane_type: LaneType,
    /// What became of the contributors' lanes.
    pub operator: Operator,
    /// A lane is no finite number.
    pub not_finite: bool,
    /// A piece met congestion on its way up.
    pub congested: bool,
}

/// What became of a piece. All but the first four leave the sums as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It is the first of its block.
    Opened,
    /// It was added; other members are still missing.
    Added,
    /// It was added, or is the only one, and no member is missing.
    Complete,
    /// The block is closed without this piece. The member gets the result.
    Late,
    /// This member's piece was here before. The member gets the result, where there is one.
    Repeated,
    /// The member said that it holds the result; the network repeated an old piece.
    Held,
    /// The block's cell still has a result that some member lacks.
    Occupied,
    /// The piece cannot be summed.
    Refused(Reason),
}

/// Why a piece cannot be summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The table has no such member.
    NotAMember,
    /// The generation ended before this block.
    Closed,
    /// No member can hold what it must hold before it sends this block.
    TooEarly,
    /// The piece has no contributor, or its sender says that it holds this very block.
    Impossible,
    /// The piece has another number of lanes than the block, or half a lane.
    WrongSize,
    /// The piece has another lane type or operator than the block, or is a second piece of a
    /// broadcast.
    Mismatch,
    /// A lane, or a sum with it, is not a finite number. Only where the table refuses such pieces.
    NonFinite,
}

impl Reason {
    /// A short stable name, for counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAMember => "not_a_member",
            Self::Closed => "closed",
            Self::TooEarly => "too_early",
            Self::Impossible => "impossible",
            Self::WrongSize => "wrong_size",
            Self::Mismatch => "mismatch",
            Self::NonFinite => "non_finite",
        }
    }
}

/// What a question for a block's result finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The result is in its cell.
    Result,
    /// This member's piece is missing.
    Wanted,
    /// Other members' pieces are missing, or the result from above.
    Waiting,
    /// The member said that it holds it.
    Held,
    /// There is no such member, its generation has ended before this block, or it cannot have sent
    /// the block yet.
    Nothing,
}

/// The table of one job and one generation.
#[derive(Clone, Debug)]
pub struct Pool {
    ring: Ring<Cell>,
    refuses_non_finite: bool,
    last_was_finite: bool,
    /// Where a sum is written before it is known to be finite.
    spare: Aligned,
    /// Memory of results that every member holds. The last is the next to be used: it is still in
    /// the processor's caches, however many slots there are.
    free: Vec<Aligned>,
    /// Of incomplete blocks, the earliest first.
    deadlines: BTreeSet<(Instant, u32)>,
    counts: Counts,
}

impl Pool {
    /// A table of `slots` slots for `members` members, numbered from 0.
    ///
    /// # Panics
    /// When one of the two is 0, or there are more than [`MAX_SLOTS`] slots or [`MAX_RANKS`] members.
    #[must_use]
    pub fn new(slots: u32, members: u32) -> Self {
        assert!(members <= MAX_RANKS, "a set of ranks names no more members");
        Self {
            ring: Ring::new(slots, members, Cell::free),
            refuses_non_finite: false,
            last_was_finite: true,
            spare: Aligned::default(),
            free: Vec::new(),
            deadlines: BTreeSet::new(),
            counts: Counts::default(),
        }
    }

    /// Returns true if a piece with a NaN or an infinity, or with which the sum overflows, is
    /// refused and leaves no trace. Otherwise it is summed, and its cell says so:
    /// [`Cell::not_finite`].
    pub const fn refuse_non_finite(&mut self, refuse: bool) {
        self.refuses_non_finite = refuse;
    }

    /// Takes in a piece.
    #[inline]
    pub fn meet(&mut self, now: Instant, piece: &Piece<'_>) -> Met {
        let at = self.ring.place(piece.block.into());
        self.last_was_finite = true;
        let met = self.met(now, piece, at);
        self.counts.note(met, self.ring[at].pieces());
        met
    }

    fn met(&mut self, now: Instant, piece: &Piece<'_>, at: usize) -> Met {
        let &Piece { block, member, .. } = piece;
        let number = u64::from(block);
        if member >= self.ring.members() {
            return Met::Refused(Reason::NotAMember);
        }
        if piece.contributors == 0 || piece.holds > block {
            return Met::Refused(Reason::Impossible);
        }
        if number >= self.ring.end() {
            return Met::Refused(Reason::Closed);
        }
        let is_new = self.ring.is_new(number);
        if is_new && !self.ring.may_be_sent(number) {
            return Met::Refused(Reason::TooEarly);
        }
        self.hold(member, self.ring.implied_by(number).max(piece.holds.into()));
        if is_new {
            return self.open(now, piece, at);
        }
        let cell = &self.ring[at];
        if cell.block > block || self.ring.holds_of(member).is_some_and(|holds| holds > number) {
            return Met::Held;
        }
        let has_piece = cell.from().contains(member);
        if let Err(reason) = fits(cell, piece, has_piece) {
            return Met::Refused(reason);
        }
        match cell.state() {
            _ if has_piece => Met::Repeated,
            State::Open => self.add(piece, at),
            State::Free | State::Summed | State::Final => Met::Late,
        }
    }

    /// Opens a block with its first piece.
    fn open(&mut self, now: Instant, piece: &Piece<'_>, at: usize) -> Met {
        let block = piece.block;
        if !self.ring.gives_way(block.into()) {
            return Met::Occupied;
        }
        if !piece.lanes.len().is_multiple_of(piece.lane_type.bytes()) {
            return Met::Refused(Reason::WrongSize);
        }
        let is_finite = || !piece.not_finite && typed::all_finite(piece.lane_type, piece.lanes);
        if self.refuses_non_finite && !is_finite() {
            return Met::Refused(Reason::NonFinite);
        }
        self.ring[at].take_memory(&mut self.free);
        self.last_was_finite = self.ring[at].open(piece);
        if self.ring.members() == 1 || piece.operator == Operator::Broadcast {
            self.close_cell(block);
            return Met::Complete;
        }
        if let Some(deadline) = piece.deadline {
            let due = now + deadline;
            self.ring[at].due = Some(due);
            self.deadlines.insert((due, block));
        }
        Met::Opened
    }

    /// Adds a piece to an open block.
    fn add(&mut self, piece: &Piece<'_>, at: usize) -> Met {
        let cell = &mut self.ring[at];
        if !self.refuses_non_finite {
            self.last_was_finite = cell.add(piece);
        } else if !cell.add_if_finite(piece, &mut self.spare) {
            return Met::Refused(Reason::NonFinite);
        }
        if cell.pieces() < self.ring.members() {
            return Met::Added;
        }
        self.close_cell(piece.block);
        Met::Complete
    }

    /// Returns true if the latest piece was finite, and the sum with it, where the sum was so
    /// before. A piece without an effect on sums counts as finite.
    #[must_use]
    pub const fn last_piece_was_finite(&self) -> bool {
        self.last_was_finite
    }

    /// Returns true if a member could send the block by now, or could once.
    fn was_possible(&self, block: u64) -> bool {
        !self.ring.is_new(block) || self.ring.may_be_sent(block)
    }

    /// A member said, with a piece or without, that it holds the results of all blocks below this
    /// one. The claim harms only a member that lies: it can no longer ask for them.
    pub fn note_holds(&mut self, member: u32, holds: u32) {
        self.hold(member, holds.into());
    }

    fn hold(&mut self, member: u32, holds: u64) {
        let before = self.ring.min_holds();
        self.ring.note_holds(member, holds);
        if self.ring.min_holds() > before {
            self.release(before);
        }
    }

    /// Gives up the memory of results that every member holds now, from that block on.
    fn release(&mut self, from: u64) {
        let held = self.ring.min_holds();
        let cells = self.ring.cells().len() as u64;
        for block in from.max(held.saturating_sub(cells))..held {
            let cell = self.ring.known_as(State::Final, block);
            if let Some(cell) = cell.filter(|cell| !cell.is_released) {
                self.free.push(cell.release());
            }
        }
    }

    /// Every member holds the results of all blocks below this one.
    #[must_use]
    pub const fn min_holds(&self) -> u32 {
        self.ring.min_holds() as u32
    }

    /// A complete sum is the result: at the uppermost switch, where nothing else comes.
    pub fn finish(&mut self, block: u32) {
        if let Some(cell) = self.ring.known_as(State::Summed, block.into()) {
            cell.finish();
        }
    }

    /// The result came from the switch above; whether it has a cell now. It may come although
    /// members are missing here: the switch above did not wait for this one. A result of another
    /// lane type, operator or size than the pieces of the block has no cell.
    pub fn fulfil(&mut self, block: u32, contributors: u32, result: &[u8], about: &About) -> bool {
        let is_whole = result.len().is_multiple_of(about.lane_type.bytes());
        if contributors == 0 || !is_whole || !self.takes_result(block, result, about) {
            return false;
        }
        self.go_without(block);
        let at = self.ring.place(block.into());
        self.ring[at].take_memory(&mut self.free);
        self.ring[at].fulfil(block, contributors, result, about);
        true
    }

    /// Returns true if the result of a block can be taken in: the block is in its cell without one,
    /// or may open.
    fn takes_result(&self, block: u32, result: &[u8], about: &About) -> bool {
        let (ring, number) = (&self.ring, u64::from(block));
        number < ring.end()
            && match ring.known(number) {
                Some(cell) => {
                    cell.state() != State::Final
                        && cell.is_like(about.lane_type, about.operator, result)
                }
                None => !ring.is_past(number) && ring.may_be_sent(number) && ring.gives_way(number),
            }
    }

    /// What a member finds that asks for the result of a block.
    #[must_use]
    pub fn asked(&self, member: u32, block: u32) -> Asked {
        let number = u64::from(block);
        let Some(holds) = self.ring.holds_of(member) else { return Asked::Nothing };
        if number >= self.ring.end() || !self.was_possible(number) {
            return Asked::Nothing;
        }
        if holds > number || self.ring.is_past(number) {
            return Asked::Held;
        }
        match self.ring.known(number) {
            None => Asked::Wanted,
            Some(cell) if cell.state() == State::Final => Asked::Result,
            Some(cell) if cell.state() == State::Summed || cell.from().contains(member) => {
                Asked::Waiting
            }
            Some(_) => Asked::Wanted,
        }
    }

    /// The cell of a block that has opened and not given way, until every member holds the result.
    #[must_use]
    #[inline]
    pub fn cell(&self, block: u32) -> Option<&Cell> {
        self.ring.known(block.into()).filter(|cell| !cell.is_released)
    }

    /// When a block is overdue next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// The next block that is overdue by now. From here on its sum is complete with the pieces that
    /// it has.
    pub fn poll_overdue(&mut self, now: Instant) -> Option<u32> {
        let (_, block) = *self.deadlines.first().filter(|(due, _)| *due <= now)?;
        self.go_without(block);
        Some(block)
    }

    /// The missing pieces of an open block will not come: from here on its sum is complete. Whether
    /// the block was open.
    pub fn go_without(&mut self, block: u32) -> bool {
        let Some(cell) = self.ring.known_as(State::Open, block.into()) else { return false };
        self.counts.close(cell.pieces());
        self.close_cell(block);
        true
    }

    /// The generation ends before that block: pieces of it and of later blocks are refused, and
    /// those that wait are given up. Older blocks go on as before.
    pub fn close(&mut self, end: u32) {
        self.ring.close(end.into(), |cell| {
            if let Some(due) = cell.due.take() {
                self.deadlines.remove(&(due, cell.block));
            }
            self.counts.give_up(cell.pieces());
            cell.give_up();
        });
    }

    /// The first block that is not summed yet.
    #[must_use]
    pub fn first_incomplete(&self) -> u32 {
        let open = self.ring.cells().iter().filter(|cell| cell.state() == State::Open);
        let newest = self.ring.cells().iter().filter(|cell| cell.state() != State::Free);
        let next = newest.map(|cell| cell.block + 1).max().unwrap_or(0);
        open.map(|cell| cell.block).min().unwrap_or(next)
    }

    /// What became of all pieces.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let open = self.ring.cells().iter().filter(|cell| cell.state() == State::Open);
        let waiting = open.map(|cell| u64::from(cell.pieces())).sum();
        Counts { waiting, ..self.counts.clone() }
    }

    /// The number of slots.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.ring.slots()
    }

    /// An open block is complete, or goes without those that are missing.
    fn close_cell(&mut self, block: u32) {
        let at = self.ring.place(block.into());
        let cell = &mut self.ring[at];
        if let Some(due) = cell.due.take() {
            self.deadlines.remove(&(due, block));
        }
        self.last_was_finite &= cell.sum_up();
    }
}

/// Returns true if a piece has the shape of its block. A member repeats a piece as it was, and only
/// the root sends one of a broadcast.
fn fits(cell: &Cell, piece: &Piece<'_>, has_piece: bool) -> Result<(), Reason> {
    let is_second = piece.operator == Operator::Broadcast && !has_piece && cell.pieces() > 0;
    if cell.lane_type() != piece.lane_type || cell.operator() != piece.operator || is_second {
        return Err(Reason::Mismatch);
    }
    let is_as_long = cell.result_bytes() == piece.lanes.len();
    if is_as_long { Ok(()) } else { Err(Reason::WrongSize) }
}
