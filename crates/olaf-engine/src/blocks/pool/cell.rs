//! One cell: the pieces of one block, their sum, and later the result.

use super::Piece;
use crate::lanes::Lanes;
use crate::time::Instant;
use olaf_wire::reduce::RankSet;

/// How far a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The cell has no block.
    Free,
    /// Pieces are missing.
    Open,
    /// No more pieces are added. A lower switch waits for the result from above.
    Summed,
    /// The lanes are the result.
    Final,
}

/// A cell and its block.
#[derive(Debug)]
pub struct Cell {
    state: State,
    /// The block; without meaning while the cell is free.
    pub block: u32,
    from: RankSet,
    /// Workers in the sum, or in the result.
    pub contributors: u32,
    /// A piece met congestion on its way.
    pub congested: bool,
    pub(super) due: Option<Instant>,
    /// The sum, or the result.
    pub lanes: Lanes,
}

impl Cell {
    pub(super) fn free() -> Self {
        Self {
            state: State::Free,
            block: 0,
            from: RankSet::new(),
            contributors: 0,
            congested: false,
            due: None,
            lanes: Lanes::default(),
        }
    }

    /// How far the block is.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The members whose pieces are in the sum.
    #[must_use]
    pub const fn from(&self) -> &RankSet {
        &self.from
    }

    /// Begins a block without a piece.
    pub(super) fn begin(&mut self, block: u32) {
        self.state = State::Open;
        self.block = block;
        self.from.clear();
        self.contributors = 0;
        self.congested = false;
    }

    /// Begins a block with its first piece, whose lanes are in `copy`.
    pub(super) fn open(&mut self, piece: &Piece<'_>, copy: &mut Lanes) {
        self.begin(piece.block);
        self.add(piece, copy);
    }

    /// Takes in a piece; `sum` has the sum with it.
    pub(super) fn add(&mut self, piece: &Piece<'_>, sum: &mut Lanes) {
        core::mem::swap(&mut self.lanes, sum);
        self.from.insert(piece.member);
        self.contributors = self.contributors.saturating_add(piece.contributors);
        self.congested |= piece.congested;
    }

    pub(super) fn sum_up(&mut self) {
        self.state = State::Summed;
    }

    pub(super) fn finish(&mut self) {
        self.state = State::Final;
    }

    pub(super) fn fulfil(&mut self, contributors: u32, result: &mut Lanes) {
        core::mem::swap(&mut self.lanes, result);
        self.contributors = contributors;
        self.state = State::Final;
    }

    pub(super) fn give_up(&mut self) {
        self.state = State::Free;
        self.from.clear();
    }
}
