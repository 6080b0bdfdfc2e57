//! One cell: the sum of one packet, its counter, and later its result.

use super::{Piece, State};
use crate::blocks::ring;
use crate::lanes::{Aligned, typed};
use alloc::vec::Vec;
use olaf_wire::reduce::{LaneType, Operator, RankSet};

/// A cell and its packet.
#[derive(Clone, Debug)]
pub struct Cell {
    state: State,
    /// The packet, or the last one while the cell is free.
    pub index: u64,
    is_used: bool,
    /// Members whose vector 0 is in the sum.
    from: RankSet,
    /// Member and number of each other vector in the sum. Fewer than H, because H vectors complete a sum.
    further: Vec<(u32, u32)>,
    /// Vectors in the sum.
    pieces: u32,
    /// H of this sum.
    pub threshold: u32,
    /// Workers in the sum, or in the result.
    pub contributors: u32,
    /// The packet is the last of its vector.
    pub last: bool,
    /// A piece met congestion on its way.
    pub congested: bool,
    /// A float of a piece, or of their sum, is no finite number.
    not_finite: bool,
    sum: Aligned,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            state: State::Free,
            index: 0,
            is_used: false,
            from: RankSet::new(),
            further: Vec::new(),
            pieces: 0,
            threshold: 0,
            contributors: 0,
            last: false,
            congested: false,
            not_finite: false,
            sum: Aligned::default(),
        }
    }
}

impl ring::Cell for Cell {
    fn number(&self) -> Option<u64> {
        self.is_used.then_some(self.index)
    }

    fn state(&self) -> State {
        self.state
    }
}

impl Cell {
    /// How far the packet is.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The members whose first pieces are in the sum.
    #[must_use]
    pub const fn from(&self) -> &RankSet {
        &self.from
    }

    /// Returns true if that vector of a member is in the sum.
    #[must_use]
    pub fn has(&self, member: u32, vector: u32) -> bool {
        match vector {
            0 => self.from.contains(member),
            _ => self.further.contains(&(member, vector)),
        }
    }

    /// Pieces in the sum.
    #[must_use]
    pub const fn pieces(&self) -> u32 {
        self.pieces
    }

    /// The sum or the result: f32, little-endian.
    #[must_use]
    pub fn floats(&self) -> &[u8] {
        &self.sum
    }

    /// Begins a sum with its first piece; whether all its floats are finite.
    pub(super) fn open(&mut self, piece: &Piece<'_>, contributors: u32, threshold: u32) -> bool {
        self.begin(piece.index, piece.last, contributors);
        self.state = State::Open;
        self.threshold = threshold;
        let is_finite = typed::begin(&mut self.sum, LaneType::F32, piece.floats);
        self.note(piece, is_finite);
        is_finite
    }

    /// Adds a piece; whether it leaves the sum finite, or is finite itself where the sum was not.
    pub(super) fn add(&mut self, piece: &Piece<'_>, contributors: u32) -> bool {
        self.contributors += contributors;
        let mut is_finite =
            typed::combine(&mut self.sum, LaneType::F32, Operator::Sum, piece.floats);
        if self.not_finite {
            is_finite = typed::all_finite(LaneType::F32, piece.floats);
        }
        self.note(piece, is_finite);
        is_finite
    }

    /// Adds a piece that leaves the sum finite. A piece that does not leaves no trace: the sum with it is
    /// written to `spare` first.
    pub(super) fn add_if_finite(
        &mut self,
        piece: &Piece<'_>,
        contributors: u32,
        spare: &mut Aligned,
    ) -> bool {
        spare.resize(self.sum.len());
        spare.copy_from_slice(&self.sum);
        let is_finite = typed::combine(spare, LaneType::F32, Operator::Sum, piece.floats);
        if is_finite {
            core::mem::swap(&mut self.sum, spare);
            self.contributors += contributors;
            self.note(piece, true);
        }
        is_finite
    }

    /// No more pieces are added.
    pub(super) fn sum_up(&mut self) {
        self.state = State::Summed;
    }

    /// The sum is the result.
    pub(super) fn finish(&mut self) {
        self.state = State::Final;
    }

    /// The result came from above.
    pub(super) fn replace(&mut self, index: u64, last: bool, contributors: u32, floats: &[u8]) {
        if !self.is_used || self.index < index {
            self.begin(index, last, contributors);
        }
        self.contributors = contributors;
        self.sum.resize(floats.len());
        self.sum.copy_from_slice(floats);
        self.state = State::Final;
    }

    /// The sum is given up.
    pub(super) fn free(&mut self) {
        self.state = State::Free;
    }

    fn begin(&mut self, index: u64, last: bool, contributors: u32) {
        (self.index, self.is_used, self.last) = (index, true, last);
        (self.contributors, self.congested, self.not_finite) = (contributors, false, false);
        (self.from, self.pieces) = (RankSet::new(), 0);
        self.further.clear();
    }

    fn note(&mut self, piece: &Piece<'_>, is_finite: bool) {
        self.congested |= piece.congested;
        self.not_finite |= !is_finite;
        if piece.vector == 0 {
            self.from.insert(piece.member);
        } else {
            self.further.push((piece.member, piece.vector));
        }
        self.pieces += 1;
    }
}
