//! One cell: the sum of one packet, its counter, and later its result.

use super::{Piece, State};
use crate::lanes::{Aligned, typed};
use olaf_wire::reduce::{LaneType, Operator, RankSet};

/// A cell and its packet.
#[derive(Clone, Debug)]
pub struct Cell {
    state: State,
    /// The packet, or the last one while the cell is free.
    pub index: u64,
    is_used: bool,
    from: RankSet,
    /// Pieces in the sum: the length of `from`, which takes long to count.
    pieces: u32,
    /// H of this sum.
    pub threshold: u32,
    /// Workers in the sum, or in the result.
    pub contributors: u32,
    /// The packet is the last of its vector.
    pub last: bool,
    /// A piece met congestion on its way.
    pub congested: bool,
    sum: Aligned,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            state: State::Free,
            index: 0,
            is_used: false,
            from: RankSet::new(),
            pieces: 0,
            threshold: 0,
            contributors: 0,
            last: false,
            congested: false,
            sum: Aligned::default(),
        }
    }
}

impl Cell {
    /// How far the packet is.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The members whose pieces are in the sum.
    #[must_use]
    pub const fn from(&self) -> &RankSet {
        &self.from
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

    /// Whether the cell is free for that packet, or has an earlier one.
    pub(super) const fn is_before(&self, index: u64) -> bool {
        !self.is_used || self.index < index
    }

    /// Begins a sum with its first piece.
    pub(super) fn open(&mut self, piece: &Piece<'_>, contributors: u32, threshold: u32) {
        self.begin(piece.index, piece.last, contributors);
        self.state = State::Open;
        self.threshold = threshold;
        self.congested = piece.congested;
        self.note(piece.member);
        typed::begin(&mut self.sum, LaneType::F32, piece.floats);
    }

    /// Adds a piece.
    pub(super) fn add(&mut self, piece: &Piece<'_>, contributors: u32) {
        self.contributors += contributors;
        self.congested |= piece.congested;
        self.note(piece.member);
        typed::combine(&mut self.sum, LaneType::F32, Operator::Sum, piece.floats);
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
        if self.is_before(index) {
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
        (self.contributors, self.congested) = (contributors, false);
        (self.from, self.pieces) = (RankSet::new(), 0);
    }

    fn note(&mut self, member: u32) {
        self.from.insert(member);
        self.pieces += 1;
    }
}
