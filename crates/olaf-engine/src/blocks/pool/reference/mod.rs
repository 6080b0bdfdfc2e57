//! The reference model: it keeps every block for ever and derives each answer from the rules of
//! `docs/design/028-reduce.md`.

mod number;

pub use number::Number;

use super::{About, Asked, Met, Piece, Reason};
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use olaf_wire::reduce::{LaneType, Operator};

/// What a member sent.
#[derive(Clone, Debug)]
pub struct Part {
    member: u32,
    contributors: u32,
    congested: bool,
    /// A lower switch says that a lane is not finite, or one is not.
    not_finite: bool,
    lanes: Vec<Number>,
}

/// What a block is, or what comes of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Workers in the sum.
    pub contributors: u32,
    /// A piece met congestion.
    pub congested: bool,
    /// A lane is not finite.
    pub not_finite: bool,
    /// The first member whose piece made it so.
    pub first_not_finite: Option<u32>,
    /// The lanes before they are rounded.
    pub lanes: Vec<Number>,
}

/// A block and everything that came for it.
#[derive(Clone, Debug)]
pub struct Block {
    /// What a lane is.
    pub lane_type: LaneType,
    operator: Operator,
    /// In the order of arrival.
    pieces: Vec<Part>,
    /// No more pieces are added.
    is_summed: bool,
    /// What came from above, or what the pieces came to.
    result: Option<Outcome>,
    /// When it goes without those that are missing.
    due: Option<Instant>,
}

impl Block {
    fn new(lane_type: LaneType, operator: Operator) -> Self {
        Self { lane_type, operator, pieces: vec![], is_summed: false, result: None, due: None }
    }

    /// The result, or what the pieces so far come to.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.result.clone().unwrap_or_else(|| self.outcome_of(self.pieces.len()))
    }

    /// What the first pieces come to.
    fn outcome_of(&self, count: usize) -> Outcome {
        let pieces = &self.pieces[..count];
        let first_not_finite = (0..count).find(|index| {
            let last = self.is_summed && index + 1 == self.pieces.len();
            let sum = self.sum(index + 1);
            pieces[*index].not_finite
                || !sum.iter().all(|lane| lane.is_finite())
                || last && !sum.iter().all(|lane| lane.rounds_to_finite(self.lane_type))
        });
        Outcome {
            contributors: pieces.iter().map(|piece| piece.contributors).sum(),
            congested: pieces.iter().any(|piece| piece.congested),
            not_finite: first_not_finite.is_some(),
            first_not_finite: first_not_finite.map(|index| pieces[index].member),
            lanes: self.sum(count),
        }
    }

    /// The sum of the first pieces.
    fn sum(&self, count: usize) -> Vec<Number> {
        let mut lanes = self.pieces[0].lanes.clone();
        for piece in &self.pieces[1..count] {
            for (lane, other) in lanes.iter_mut().zip(&piece.lanes) {
                *lane = lane.combine(*other, self.lane_type, self.operator);
            }
        }
        lanes
    }

    /// Lanes of a piece or of the result.
    fn lane_count(&self) -> usize {
        self.outcome().lanes.len()
    }

    fn has(&self, member: u32) -> bool {
        self.pieces.iter().any(|piece| piece.member == member)
    }
}

/// The reference model of [`super::Pool`].
#[derive(Debug)]
pub struct Reference {
    slots: u32,
    refuses_non_finite: bool,
    /// As [`super::Pool::last_piece_was_finite`].
    pub last_was_finite: bool,
    /// Every block that ever opened and was not given up.
    pub blocks: BTreeMap<u32, Block>,
    /// Every block that was given up.
    given_up: BTreeSet<u32>,
    holds: Vec<u32>,
    end: u32,
}

impl Reference {
    /// As [`super::Pool::new`] and [`super::Pool::refuse_non_finite`].
    #[must_use]
    pub fn new(slots: u32, members: u32, refuses_non_finite: bool) -> Self {
        let holds = vec![0; members as usize];
        Self {
            slots,
            refuses_non_finite,
            last_was_finite: true,
            blocks: BTreeMap::new(),
            given_up: BTreeSet::new(),
            holds,
            end: u32::MAX,
        }
    }

    fn has_result(&self, block: u32) -> bool {
        self.blocks.get(&block).is_some_and(|block| block.result.is_some())
    }

    /// A worker holds the result of `block - slots` before it sends `block`.
    fn may_be_sent(&self, block: u32) -> bool {
        block < self.slots || self.has_result(block - self.slots)
    }

    /// The cell of `block` had `block - 2 slots` before.
    fn gives_way(&self, block: u32) -> bool {
        block < 2 * self.slots || self.min_holds() > block - 2 * self.slots
    }

    /// A newer block took the cell, and may have been given up since.
    pub(super) fn is_past(&self, block: u32) -> bool {
        let newer = block + 2 * self.slots;
        self.blocks.contains_key(&newer) || self.given_up.contains(&newer)
    }

    /// As [`super::Pool::min_holds`].
    #[must_use]
    pub fn min_holds(&self) -> u32 {
        self.holds.iter().copied().min().expect("a table has members")
    }

    /// As [`super::Pool::note_holds`].
    pub fn note_holds(&mut self, member: u32, holds: u32) {
        if (member as usize) < self.holds.len() {
            let known = &mut self.holds[member as usize];
            *known = holds.max(*known);
        }
    }

    /// As [`super::Pool::meet`].
    pub fn meet(&mut self, now: Instant, piece: &Piece<'_>) -> Met {
        self.last_was_finite = true;
        let &Piece { block, member, contributors, .. } = piece;
        if member as usize >= self.holds.len() {
            return Met::Refused(Reason::NotAMember);
        }
        if contributors == 0 || piece.holds > block {
            return Met::Refused(Reason::Impossible);
        }
        if block >= self.end {
            return Met::Refused(Reason::Closed);
        }
        let is_new = !self.blocks.contains_key(&block);
        if is_new && !self.may_be_sent(block) {
            return Met::Refused(Reason::TooEarly);
        }
        self.note_holds(member, piece.holds);
        if block >= self.slots {
            self.note_holds(member, block - self.slots + 1);
        }
        if is_new && !self.gives_way(block) {
            return Met::Occupied;
        }
        if !is_new && (self.is_past(block) || self.holds[member as usize] > block) {
            return Met::Held;
        }
        let new = Block::new(piece.lane_type, piece.operator);
        let known = self.blocks.get(&block).unwrap_or(&new);
        if let Err(reason) = known.may_take(piece) {
            return Met::Refused(reason);
        }
        if known.has(member) {
            return Met::Repeated;
        }
        if known.is_summed {
            return Met::Late;
        }
        let with = known.with(piece, self.holds.len());
        let (before, after) = (known.pieces.len(), with.outcome());
        let was_finite = before == 0 || !with.outcome_of(before).not_finite;
        let overflows = was_finite && after.not_finite;
        let is_finite = !(with.pieces[before].not_finite || overflows);
        let rounds = after.lanes.iter().all(|lane| lane.rounds_to_finite(piece.lane_type));
        if self.refuses_non_finite && !(is_finite && rounds) {
            return Met::Refused(Reason::NonFinite);
        }
        self.last_was_finite = is_finite;
        let (is_complete, is_first) = (with.is_summed, before == 0);
        self.blocks.insert(block, with);
        match (is_complete, is_first) {
            (true, _) => {
                self.blocks.get_mut(&block).expect("just put there").due = None;
                Met::Complete
            }
            (false, true) => {
                let due = piece.deadline.map(|deadline| now + deadline);
                self.blocks.get_mut(&block).expect("just put there").due = due;
                Met::Opened
            }
            (false, false) => Met::Added,
        }
    }

    /// As [`super::Pool::finish`].
    pub fn finish(&mut self, block: u32) {
        if !self.is_past(block)
            && let Some(block) = self.blocks.get_mut(&block)
            && block.is_summed
            && block.result.is_none()
        {
            block.result = Some(block.outcome());
        }
    }

    /// As [`super::Pool::fulfil`].
    pub fn fulfil(&mut self, block: u32, contributors: u32, result: &[u8], about: &About) -> bool {
        let lanes = Number::read(about.lane_type, result);
        let fits = match self.blocks.get(&block) {
            Some(known) => {
                let kind = (known.lane_type, known.operator);
                kind == (about.lane_type, about.operator) && known.lane_count() == lanes.len()
            }
            None => self.may_be_sent(block) && self.gives_way(block),
        };
        let may = fits
            && block < self.end
            && contributors > 0
            && result.len().is_multiple_of(about.lane_type.bytes())
            && !self.is_past(block)
            && !self.has_result(block);
        if may {
            let new = Block::new(about.lane_type, about.operator);
            let block = self.blocks.entry(block).or_insert(new);
            block.is_summed = true;
            block.due = None;
            let first = (!block.pieces.is_empty()).then(|| block.outcome().first_not_finite);
            let About { congested, not_finite, .. } = *about;
            let first_not_finite = first.flatten().filter(|_| not_finite);
            block.result =
                Some(Outcome { contributors, congested, not_finite, first_not_finite, lanes });
        }
        may
    }

    /// As [`super::Pool::asked`].
    #[must_use]
    pub fn asked(&self, member: u32, block: u32) -> Asked {
        let Some(holds) = self.holds.get(member as usize) else { return Asked::Nothing };
        match self.blocks.get(&block) {
            _ if block >= self.end => Asked::Nothing,
            None if !self.may_be_sent(block) => Asked::Nothing,
            _ if *holds > block || self.is_past(block) => Asked::Held,
            None => Asked::Wanted,
            Some(known) if known.result.is_some() => Asked::Result,
            Some(known) if known.is_summed || known.has(member) => Asked::Waiting,
            Some(_) => Asked::Wanted,
        }
    }

    /// As [`super::Pool::next_deadline`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.blocks.values().filter_map(|block| block.due).min()
    }

    /// As [`super::Pool::poll_overdue`].
    pub fn poll_overdue(&mut self, now: Instant) -> Option<u32> {
        let due = self.next_deadline().filter(|due| *due <= now)?;
        let (number, block) = self.blocks.iter_mut().find(|(_, block)| block.due == Some(due))?;
        block.is_summed = true;
        block.due = None;
        Some(*number)
    }

    /// As [`super::Pool::go_without`].
    pub fn go_without(&mut self, block: u32) -> bool {
        let open = self.blocks.get_mut(&block).filter(|block| !block.is_summed);
        let is_open = open.is_some();
        if let Some(block) = open {
            block.is_summed = true;
            block.due = None;
        }
        is_open
    }

    /// As [`super::Pool::close`].
    pub fn close(&mut self, end: u32) {
        self.end = self.end.min(end);
        let open = self.blocks.range(self.end..).filter(|(_, block)| !block.is_summed);
        self.given_up.extend(open.map(|(number, _)| *number));
        self.blocks.retain(|number, _| !self.given_up.contains(number));
    }

    /// As [`super::Pool::first_incomplete`].
    #[must_use]
    pub fn first_incomplete(&self) -> u32 {
        let open = self.blocks.iter().find(|(_, block)| !block.is_summed);
        let next = self.blocks.keys().next_back().map_or(0, |newest| newest + 1);
        open.map_or(next, |(number, _)| *number)
    }
}

impl Block {
    /// Returns true if a piece has the shape of the block, which may have none yet.
    fn may_take(&self, piece: &Piece<'_>) -> Result<(), Reason> {
        let is_root = self.pieces.is_empty() || self.has(piece.member);
        if (self.lane_type, self.operator) != (piece.lane_type, piece.operator)
            || self.operator == Operator::Broadcast && !is_root
        {
            return Err(Reason::Mismatch);
        }
        let lanes = piece.lanes.len() / piece.lane_type.bytes();
        let is_new = self.pieces.is_empty() && self.result.is_none();
        let is_whole = piece.lanes.len().is_multiple_of(piece.lane_type.bytes());
        let fits = is_whole && (is_new || self.lane_count() == lanes);
        if fits { Ok(()) } else { Err(Reason::WrongSize) }
    }

    /// The same with a piece, which may be the last of it.
    fn with(&self, piece: &Piece<'_>, members: usize) -> Self {
        let lanes = Number::read(piece.lane_type, piece.lanes);
        let mut with = self.clone();
        with.pieces.push(Part {
            member: piece.member,
            contributors: piece.contributors,
            congested: piece.congested,
            not_finite: piece.not_finite || !lanes.iter().all(|lane| lane.is_finite()),
            lanes,
        });
        with.is_summed = with.pieces.len() == members || self.operator == Operator::Broadcast;
        with
    }
}
