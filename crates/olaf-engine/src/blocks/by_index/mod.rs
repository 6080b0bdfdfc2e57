//! The table of iSwitch: a packet's index names the place where it is summed, and a counter for each
//! place says when H vectors are in the sum (iSwitch §3.3).
//!
//! differs: in the paper a place is cleared as soon as its sum has left. A lost result could then never be
//! asked for. Here the cells are a `Ring`, as those of `reduce`: a result stays until every member is known to hold
//! it. A member sends packet `i` only when it holds the results of all packets up to `i - slots`.
//!
//! differs: the paper's switch only counts the packets of a Seg, so a repeated packet counts twice. This table
//! also keeps the set of members whose packets are in the sum.
//!
//! A worker that trains asynchronously may send several vectors for one sum (iSwitch §4.1, Algorithm 1: *wait until
//! H gradient vectors received*). It numbers them, so a repeated one still counts once.

mod cell;
#[cfg(any(test, feature = "reference"))]
pub mod reference;
#[cfg(test)]
mod tests;

pub use super::pool::{Asked, Counts, MAX_SLOTS, Met, Reason, State};
pub use cell::Cell;

use super::ring::Ring;
use crate::lanes::{self, Aligned};
use alloc::vec::Vec;

/// One member's packet.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The packet's index in the generation.
    pub index: u64,
    /// The member that sent it.
    pub member: u32,
    /// Workers behind the member that are not in the piece; 0 of a worker.
    pub missing: u32,
    /// The member's vectors for this sum before this one; 0 of a switch.
    pub vector: u32,
    /// It is the last packet of its vector.
    pub last: bool,
    /// The path was congested on the way here.
    pub congested: bool,
    /// The floats: f32, little-endian.
    pub floats: &'a [u8],
}

/// The table of one job and one generation.
#[derive(Clone, Debug)]
pub struct ByIndex {
    /// Workers behind each member.
    weights: Vec<u32>,
    /// Pieces that complete a sum that begins now.
    threshold: u32,
    ring: Ring<Cell>,
    /// The first packet without a result.
    first_incomplete: u64,
    refuses_non_finite: bool,
    last_was_finite: bool,
    /// Where a sum is written before it is known to be finite.
    spare: Aligned,
    counts: Counts,
}

impl ByIndex {
    /// A table of `slots` slots. Each member stands for the given number of workers. H is the number of
    /// members, the default of iSwitch §3.2.
    ///
    /// # Panics
    /// When there are no slots, more than [`MAX_SLOTS`], no members, or a member without workers.
    #[must_use]
    pub fn new(slots: u32, weights: Vec<u32>) -> Self {
        assert!(!weights.contains(&0), "a table has members with workers");
        Self {
            threshold: weights.len() as u32,
            ring: Ring::new(slots, weights.len() as u32, Cell::default),
            weights,
            first_incomplete: 0,
            refuses_non_finite: false,
            last_was_finite: true,
            spare: Aligned::default(),
            counts: Counts::default(),
        }
    }

    /// SetH: sums that begin from now on are complete with `h` pieces, or with all members where those are
    /// fewer. Whether `h` can be.
    pub fn set_threshold(&mut self, h: u32) -> bool {
        let can_be = (1..=self.members()).contains(&h);
        if can_be {
            self.threshold = h;
        }
        can_be
    }

    /// Returns true if a piece with a NaN or an infinity, or with which the sum overflows, is refused and
    /// leaves no trace. Otherwise it is summed.
    pub const fn refuse_non_finite(&mut self, refuse: bool) {
        self.refuses_non_finite = refuse;
    }

    /// Takes in a piece.
    ///
    /// Example with H = 2: vectors 0 and 1 of the same member complete a sum. A vector that comes again is
    /// [`Met::Repeated`].
    pub fn meet(&mut self, piece: &Piece<'_>) -> Met {
        let at = self.ring.place(piece.index);
        self.last_was_finite = true;
        let met = self.met(piece, at);
        self.counts.note(met, self.ring[at].pieces());
        met
    }

    fn met(&mut self, piece: &Piece<'_>, at: usize) -> Met {
        let &Piece { index, member, .. } = piece;
        let Some(weight) = self.weights.get(member as usize).copied() else {
            return Met::Refused(Reason::NotAMember);
        };
        if piece.missing >= weight {
            return Met::Refused(Reason::Impossible);
        }
        if index >= self.ring.end() {
            return Met::Refused(Reason::Closed);
        }
        let is_new = self.ring.is_new(index);
        if is_new && !self.ring.may_be_sent(index) {
            return Met::Refused(Reason::TooEarly);
        }
        self.note_holds(member, self.ring.implied_by(index));
        let contributors = weight - piece.missing;
        if is_new {
            if !self.ring.gives_way(index) {
                return Met::Occupied;
            }
            if !piece.floats.len().is_multiple_of(4) {
                return Met::Refused(Reason::WrongSize);
            }
            if self.refuses_non_finite && !lanes::all_finite(piece.floats) {
                return Met::Refused(Reason::NonFinite);
            }
            self.last_was_finite = self.ring[at].open(piece, contributors, self.threshold);
        } else {
            let has_result = self.ring.holds_of(member).is_some_and(|holds| holds > index);
            let cell = &mut self.ring[at];
            if cell.index > index || has_result {
                return Met::Held;
            }
            if cell.has(member, piece.vector) {
                return Met::Repeated;
            }
            if cell.floats().len() != piece.floats.len() {
                return Met::Refused(Reason::WrongSize);
            }
            if cell.last != piece.last {
                return Met::Refused(Reason::Mismatch);
            }
            if cell.state() != State::Open {
                return Met::Late;
            }
            if !self.refuses_non_finite {
                self.last_was_finite = cell.add(piece, contributors);
            } else if !cell.add_if_finite(piece, contributors, &mut self.spare) {
                return Met::Refused(Reason::NonFinite);
            }
        }
        let cell = &mut self.ring[at];
        if cell.pieces() >= cell.threshold {
            cell.sum_up();
            return Met::Complete;
        }
        if is_new { Met::Opened } else { Met::Added }
    }

    /// Returns true if the latest piece was finite, and the sum with it, where the sum was so before. A piece
    /// that is in no sum counts as finite.
    #[must_use]
    pub const fn last_piece_was_finite(&self) -> bool {
        self.last_was_finite
    }

    /// Returns true if the next packet waits until some member holds an older result.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        !self.ring.gives_way(self.first_incomplete)
    }

    /// A member said, with a piece or without, that it holds the results of all packets below `holds`. It
    /// cannot hold a result that does not exist.
    pub fn note_holds(&mut self, member: u32, holds: u64) {
        self.ring.note_holds(member, holds.min(self.first_incomplete));
    }

    /// FBcast: the packet's sum goes without the members that are missing. Whether it has begun and was not
    /// complete.
    pub fn force(&mut self, index: u64) -> bool {
        let Some(cell) = self.ring.known_as(State::Open, index) else { return false };
        cell.sum_up();
        self.counts.close(cell.pieces());
        true
    }

    /// The sum of a packet is its result: there is no switch above.
    ///
    /// # Panics
    /// When the sum is not complete.
    pub fn finish_own(&mut self, index: u64) {
        self.ring.known_as(State::Summed, index).expect("callers complete it first").finish();
        self.move_on();
    }

    /// Takes the result of a packet from the switch above. `contributors` workers are in it. Returns false if
    /// the result was here before, or its cell has another packet.
    pub fn finish(&mut self, index: u64, last: bool, contributors: u32, floats: &[u8]) -> bool {
        let at = self.ring.place(index);
        let cell = &self.ring[at];
        if index >= self.ring.end() || !floats.len().is_multiple_of(4) {
            return false;
        }
        if self.ring.is_new(index) {
            if !self.ring.may_be_sent(index) || !self.ring.gives_way(index) {
                return false;
            }
        } else if cell.index != index
            || cell.state() == State::Final
            || cell.floats().len() != floats.len()
            || cell.last != last
        {
            return false;
        } else if cell.state() == State::Open {
            // The switch above was told to go without the sum of this one.
            self.counts.give_up(cell.pieces());
        }
        self.ring[at].replace(index, last, contributors, floats);
        self.move_on();
        true
    }

    fn move_on(&mut self) {
        while self.result_or_past(self.first_incomplete) {
            self.first_incomplete += 1;
        }
    }

    fn result_or_past(&self, index: u64) -> bool {
        let is_final = |cell: &Cell| cell.state() == State::Final;
        self.ring.is_past(index) || self.ring.known(index).is_some_and(is_final)
    }

    /// What a member's question for a result finds.
    #[must_use]
    pub fn ask(&self, member: u32, index: u64) -> Asked {
        let Some(holds) = self.ring.holds_of(member) else { return Asked::Nothing };
        if index >= self.ring.end() {
            return Asked::Nothing;
        }
        if holds > index {
            return Asked::Held;
        }
        let cell = &self.ring[self.ring.place(index)];
        if self.ring.is_new(index) {
            return match (self.ring.may_be_sent(index), self.ring.gives_way(index)) {
                (false, _) => Asked::Nothing,
                (true, false) => Asked::Waiting,
                (true, true) => Asked::Wanted,
            };
        }
        match cell.state() {
            _ if cell.index > index => Asked::Held,
            State::Final => Asked::Result,
            State::Open if !cell.has(member, 0) => Asked::Wanted,
            State::Open | State::Summed | State::Free => Asked::Waiting,
        }
    }

    /// The generation ends: it has no packet from `end` on. An end that was said before stays where it is
    /// earlier.
    pub fn close(&mut self, end: u64) {
        self.ring.close(end, |cell| {
            self.counts.give_up(cell.pieces());
            cell.free();
        });
    }

    /// The cell of a packet, where it has begun and was not overtaken.
    #[must_use]
    pub fn cell(&self, index: u64) -> Option<&Cell> {
        self.ring.known(index)
    }

    /// Members without a piece in the sum of an incomplete packet.
    pub fn missing_members(&self, index: u64) -> impl Iterator<Item = u32> + use<'_> {
        let cell = self.cell(index).filter(|cell| cell.state() == State::Open);
        let members = cell.map_or(0, |_| self.members());
        (0..members).filter(move |member| cell.is_some_and(|cell| !cell.has(*member, 0)))
    }

    /// The first packet without a result.
    #[must_use]
    pub const fn first_incomplete(&self) -> u64 {
        self.first_incomplete
    }

    /// The first packet that the generation does not have; `u64::MAX` while it is open.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.ring.end()
    }

    /// Every member holds the results of all packets below this one.
    #[must_use]
    pub const fn min_holds(&self) -> u64 {
        self.ring.min_holds()
    }

    /// Its slots.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.ring.slots()
    }

    /// Its members.
    #[must_use]
    pub fn members(&self) -> u32 {
        self.weights.len() as u32
    }

    /// H for sums that begin now.
    #[must_use]
    pub const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Places with a sum that has begun and has no result.
    #[must_use]
    pub fn open(&self) -> usize {
        let cells = self.ring.cells().iter();
        cells.filter(|cell| matches!(cell.state(), State::Open | State::Summed)).count()
    }

    /// What became of the pieces so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.clone();
        counts.waiting = counts.received - counts.settled();
        counts
    }
}
