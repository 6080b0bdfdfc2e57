//! One cell: the pieces of one block, their sum, and later the result.

use super::{About, Piece, State};
use crate::blocks::ring;
use crate::lanes::{Aligned, typed};
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::reduce::{LaneType, Operator, RankSet};

/// A cell and its block.
#[derive(Clone, Debug)]
pub struct Cell {
    state: State,
    /// The block, or the last one while the cell is free.
    pub block: u32,
    /// The cell has, or had, a block.
    is_used: bool,
    from: RankSet,
    /// Pieces in the sum: the length of `from`, which takes long to count.
    pieces: u32,
    /// The member whose piece came last.
    latest: u32,
    /// Workers in the sum, or in the result.
    pub contributors: u32,
    /// A piece met congestion on its way.
    pub congested: bool,
    not_finite: bool,
    first_not_finite: Option<u32>,
    pub(super) due: Option<Instant>,
    lane_type: LaneType,
    operator: Operator,
    /// The sum, or the result, in the form of [`typed`].
    sum: Aligned,
    /// Every member holds the result: its lanes are gone.
    pub(super) is_released: bool,
}

impl ring::Cell for Cell {
    #[inline]
    fn number(&self) -> Option<u64> {
        self.is_used.then_some(self.block.into())
    }

    #[inline]
    fn state(&self) -> State {
        self.state
    }
}

impl Cell {
    pub(super) fn free() -> Self {
        Self {
            state: State::Free,
            block: 0,
            is_used: false,
            from: RankSet::new(),
            pieces: 0,
            latest: 0,
            contributors: 0,
            congested: false,
            not_finite: false,
            first_not_finite: None,
            due: None,
            lane_type: LaneType::F32,
            operator: Operator::Sum,
            sum: Aligned::default(),
            is_released: false,
        }
    }

    /// How far the block is.
    #[must_use]
    #[inline]
    pub const fn state(&self) -> State {
        self.state
    }

    /// The members whose pieces are in the sum.
    #[must_use]
    pub const fn from(&self) -> &RankSet {
        &self.from
    }

    /// Pieces in the sum: the number of members in [`Cell::from`].
    #[must_use]
    #[inline]
    pub const fn pieces(&self) -> u32 {
        self.pieces
    }

    /// What a lane is.
    #[must_use]
    pub const fn lane_type(&self) -> LaneType {
        self.lane_type
    }

    /// What becomes of the contributors' lanes.
    #[must_use]
    pub const fn operator(&self) -> Operator {
        self.operator
    }

    /// Lanes of the block.
    #[must_use]
    pub fn lane_count(&self) -> usize {
        self.sum.len() / typed::bytes_in_sum(self.lane_type)
    }

    /// Bytes of the result on the wire.
    #[must_use]
    pub fn result_bytes(&self) -> usize {
        self.lane_count() * self.lane_type.bytes()
    }

    /// Writes the sum, or the result, as lanes on the wire; f16 and bf16 are rounded here.
    ///
    /// # Panics
    /// When `buf` is not exactly [`Cell::result_bytes`] long.
    pub fn write_result(&self, buf: &mut [u8]) {
        typed::write(&self.sum, self.lane_type, buf);
    }

    /// A lane of a piece, or of the result, is no finite number.
    #[must_use]
    pub const fn not_finite(&self) -> bool {
        self.not_finite
    }

    /// The first member whose piece made it so; none where the result from above says it.
    #[must_use]
    pub const fn first_not_finite(&self) -> Option<u32> {
        self.first_not_finite
    }

    /// Returns true if a piece or a result has the block's lane type, operator and number of lanes.
    pub(super) fn is_like(&self, lane_type: LaneType, operator: Operator, lanes: &[u8]) -> bool {
        self.lane_type == lane_type
            && self.operator == operator
            && self.result_bytes() == lanes.len()
    }

    /// Begins a block without a piece.
    fn begin(&mut self, block: u32, lane_type: LaneType, operator: Operator) {
        self.state = State::Open;
        self.block = block;
        self.is_used = true;
        self.is_released = false;
        self.from.clear();
        self.pieces = 0;
        self.contributors = 0;
        self.congested = false;
        self.not_finite = false;
        self.first_not_finite = None;
        self.lane_type = lane_type;
        self.operator = operator;
    }

    /// Gives up the memory of a result that every member holds.
    pub(super) fn release(&mut self) -> Aligned {
        self.is_released = true;
        core::mem::take(&mut self.sum)
    }

    /// Takes memory for the lanes, unless it has some.
    pub(super) fn take_memory(&mut self, free: &mut Vec<Aligned>) {
        if self.is_released || !self.is_used {
            self.sum = free.pop().unwrap_or_default();
        }
    }

    /// Begins a block with its first piece; whether all its lanes are finite.
    pub(super) fn open(&mut self, piece: &Piece<'_>) -> bool {
        self.begin(piece.block, piece.lane_type, piece.operator);
        let is_finite = typed::begin(&mut self.sum, piece.lane_type, piece.lanes);
        self.note(piece, is_finite)
    }

    /// Takes in a piece; whether it leaves the sum finite, or is finite itself where the sum was not.
    pub(super) fn add(&mut self, piece: &Piece<'_>) -> bool {
        let Piece { lane_type, operator, lanes, .. } = *piece;
        let mut is_finite = typed::combine(&mut self.sum, lane_type, operator, lanes);
        if self.not_finite {
            is_finite = typed::all_finite(lane_type, lanes);
        }
        self.note(piece, is_finite)
    }

    /// Takes in a piece that leaves the sum finite. A piece that does not leaves no trace: the sum
    /// with it is written to `spare` first.
    pub(super) fn add_if_finite(&mut self, piece: &Piece<'_>, spare: &mut Aligned) -> bool {
        let Piece { lane_type, operator, lanes, .. } = *piece;
        spare.resize(self.sum.len());
        spare.copy_from_slice(&self.sum);
        let is_finite = !piece.not_finite
            && typed::combine(spare, lane_type, operator, lanes)
            && typed::rounds_to_finite(spare, lane_type);
        if is_finite {
            core::mem::swap(&mut self.sum, spare);
            self.note(piece, true);
        }
        is_finite
    }

    /// Notes all that a piece says beside its lanes.
    fn note(&mut self, piece: &Piece<'_>, lanes_are_finite: bool) -> bool {
        self.from.insert(piece.member);
        self.pieces += 1;
        self.latest = piece.member;
        self.contributors = self.contributors.saturating_add(piece.contributors);
        self.congested |= piece.congested;
        let is_finite = lanes_are_finite && !piece.not_finite;
        if !is_finite {
            self.note_not_finite(piece.member);
        }
        is_finite
    }

    fn note_not_finite(&mut self, member: u32) {
        self.not_finite = true;
        self.first_not_finite.get_or_insert(member);
    }

    /// No more pieces are added; whether the sum is finite once it is rounded, too. Otherwise the
    /// member whose piece came last is the one to name.
    pub(super) fn sum_up(&mut self) -> bool {
        self.state = State::Summed;
        if self.not_finite || typed::rounds_to_finite(&self.sum, self.lane_type) {
            return true;
        }
        self.note_not_finite(self.latest);
        false
    }

    pub(super) fn finish(&mut self) {
        self.state = State::Final;
    }

    /// Takes the result from above. The cell is free, or has the block.
    pub(super) fn fulfil(&mut self, block: u32, contributors: u32, result: &[u8], about: &About) {
        if self.state == State::Free || self.block != block {
            self.begin(block, about.lane_type, about.operator);
        }
        typed::begin(&mut self.sum, about.lane_type, result);
        self.contributors = contributors;
        self.not_finite = about.not_finite;
        self.first_not_finite = self.first_not_finite.filter(|_| about.not_finite);
        self.congested = about.congested;
        self.state = State::Final;
    }

    pub(super) fn give_up(&mut self) {
        self.state = State::Free;
        self.from.clear();
        self.pieces = 0;
    }
}
