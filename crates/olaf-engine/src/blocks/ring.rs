//! The places of a table that keeps results: two cells for each slot, and what each member holds.
//!
//! Block `b` of a generation belongs in slot `b mod slots`, and in cell `(b / slots) mod 2` of that slot. Three
//! rules follow, and with them no result is lost that somebody needs (`docs/design/028-reduce.md`):
//!
//! 1. A member sends block `b` only when it holds the results of all blocks up to `b - slots`. So a piece of
//!    block `b` says that its sender holds them.
//! 2. Block `b` can be sent once the other cell of its slot has the result of block `b - slots`.
//! 3. A result gives its cell to block `b` when every member holds block `b - 2 * slots`.
//!
//! `Ring` has these rules, and no sums: what a cell adds up, and what a piece of a closed block is worth, the table
//! decides.

use super::holds::Holds;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Most slots of a table.
pub const MAX_SLOTS: u32 = 1 << 20;

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

/// What a ring has to know of a cell.
pub(super) trait Cell {
    /// The number of its block, or of the last one while it is free; none: it never had one.
    fn number(&self) -> Option<u64>;
    /// How far the block is.
    fn state(&self) -> State;
}

/// Two cells for each slot, and what each member holds. A cell's index is its [`Ring::place`].
#[derive(Clone, Debug)]
pub(super) struct Ring<C> {
    slots: u32,
    cells: Vec<C>,
    holds: Holds,
    end: u64,
}

impl<C: Cell> Ring<C> {
    /// A ring of `slots` slots for `members` members, numbered from 0.
    ///
    /// # Panics
    /// When one of the two is 0, or there are more than [`MAX_SLOTS`] slots.
    pub(super) fn new(slots: u32, members: u32, cell: impl FnMut() -> C) -> Self {
        assert!((1..=MAX_SLOTS).contains(&slots), "a table has slots");
        assert!(members > 0, "a table has members");
        let cells = core::iter::repeat_with(cell).take(2 * slots as usize).collect();
        Self { slots, cells, holds: Holds::new(members), end: u64::MAX }
    }

    /// Slots.
    pub(super) const fn slots(&self) -> u32 {
        self.slots
    }

    /// Members.
    pub(super) fn members(&self) -> u32 {
        self.holds.members()
    }

    /// All cells.
    pub(super) fn cells(&self) -> &[C] {
        &self.cells
    }

    /// The generation has no block from this one on; `u64::MAX` while it is open.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The index of a block's cell.
    #[inline]
    pub(super) fn place(&self, block: u64) -> usize {
        (block % (2 * u64::from(self.slots))) as usize
    }

    /// The cell of a block that has begun and was not given up or overtaken.
    #[inline]
    pub(super) fn known(&self, block: u64) -> Option<&C> {
        let cell = &self.cells[self.place(block)];
        (cell.number() == Some(block) && cell.state() != State::Free).then_some(cell)
    }

    /// As [`Ring::known`], where the block is in that state.
    pub(super) fn known_as(&mut self, state: State, block: u64) -> Option<&mut C> {
        let at = self.place(block);
        let cell = &mut self.cells[at];
        (cell.number() == Some(block) && cell.state() == state).then_some(cell)
    }

    /// Returns true if the block would be new: its cell never had it or a later one.
    #[inline]
    pub(super) fn is_new(&self, block: u64) -> bool {
        self.cells[self.place(block)].number() < Some(block)
    }

    /// Returns true if the block's cell has a newer block, or had one that was given up.
    pub(super) fn is_past(&self, block: u64) -> bool {
        self.cells[self.place(block)].number() > Some(block)
    }

    /// Rule 2. Returns true if a member can hold what it must hold before it sends the block.
    #[inline]
    pub(super) fn may_be_sent(&self, block: u64) -> bool {
        let Some(before) = block.checked_sub(self.slots.into()) else { return true };
        self.known(before).is_some_and(|cell| cell.state() == State::Final)
    }

    /// Rule 3. Returns true if the block's cell is free for it, or has a result that every member holds.
    #[inline]
    pub(super) fn gives_way(&self, block: u64) -> bool {
        let Some(older) = block.checked_sub(2 * u64::from(self.slots)) else { return true };
        self.holds.min() > older
    }

    /// Rule 1. The sender of a piece of that block holds the results of all blocks below this one.
    #[inline]
    pub(super) fn implied_by(&self, block: u64) -> u64 {
        (block + 1).saturating_sub(self.slots.into())
    }

    /// A member holds the results of all blocks below `holds`; an older word of its changes nothing.
    #[inline]
    pub(super) fn note_holds(&mut self, member: u32, holds: u64) {
        self.holds.note(member, holds);
    }

    /// A member holds the results of all blocks below this one; none: there is no such member.
    #[inline]
    pub(super) fn holds_of(&self, member: u32) -> Option<u64> {
        self.holds.of(member)
    }

    /// Every member holds the results of all blocks below this one.
    #[inline]
    pub(super) const fn min_holds(&self) -> u64 {
        self.holds.min()
    }

    /// The generation ends before that block, or where it was said to end if that is earlier. Gives `give_up` the
    /// cells whose sums will not be complete. Older blocks go on as before.
    pub(super) fn close(&mut self, end: u64, give_up: impl FnMut(&mut C)) {
        self.end = self.end.min(end);
        let end = Some(self.end);
        let lost = |cell: &&mut C| cell.state() == State::Open && cell.number() >= end;
        self.cells.iter_mut().filter(lost).for_each(give_up);
    }
}

impl<C> Index<usize> for Ring<C> {
    type Output = C;

    #[inline]
    fn index(&self, place: usize) -> &C {
        &self.cells[place]
    }
}

impl<C> IndexMut<usize> for Ring<C> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut C {
        &mut self.cells[place]
    }
}
