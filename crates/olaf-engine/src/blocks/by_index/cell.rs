//! One cell: the sum of one packet, its counter, and later its result.

use super::{Piece, State};
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

    /// The members whose first pieces are in the sum.
    #[must_use]
    pub const fn from(&self) -> &RankSet {
        &self.from
    }

    /// Whether that vector of a member is in the sum.
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
        self.note(piece);
        typed::begin(&mut self.sum, LaneType::F32, piece.floats);
    }

    /// Adds a piece.
    pub(super) fn add(&mut self, piece: &Piece<'_>, contributors: u32) {
        self.contributors += contributors;
        self.congested |= piece.congested;
        self.note(piece);
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
        self.further.clear();
    }

    fn note(&mut self, piece: &Piece<'_>) {
        if piece.vector == 0 {
            self.from.insert(piece.member);
        } else {
            self.further.push((piece.member, piece.vector));
        }
        self.pieces += 1;
    }
}
