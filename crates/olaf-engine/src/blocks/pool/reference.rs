//! The slow twin: it keeps every block for ever and derives each answer from the rules of
//! `docs/design/028-reduce.md`.

use super::{Asked, Met, Piece, Reason};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// A block and everything that came for it.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The member, its contributors and its lanes, in the order of arrival.
    pub pieces: Vec<(u32, u32, Vec<f32>)>,
    /// No more pieces are added.
    pub is_summed: bool,
    /// Contributors and lanes of the result.
    pub result: Option<(u32, Vec<f32>)>,
    /// When it goes without those that are missing.
    pub due: Option<Instant>,
}

impl Block {
    /// Contributors and lanes: of the result, or of the pieces so far.
    #[must_use]
    pub fn sum(&self) -> (u32, Vec<f32>) {
        if let Some(result) = &self.result {
            return result.clone();
        }
        let mut lanes = self.pieces[0].2.clone();
        for (_, _, piece) in &self.pieces[1..] {
            lanes.iter_mut().zip(piece).for_each(|(lane, other)| *lane += other);
        }
        (self.pieces.iter().map(|(_, contributors, _)| contributors).sum(), lanes)
    }

    fn has(&self, member: u32) -> bool {
        self.pieces.iter().any(|(known, ..)| *known == member)
    }
}

/// The twin of [`super::Pool`].
#[derive(Debug)]
pub struct Reference {
    slots: u32,
    /// Every block that ever opened.
    pub blocks: BTreeMap<u32, Block>,
    holds: Vec<u32>,
    end: u32,
}

impl Reference {
    /// As [`super::Pool::new`].
    #[must_use]
    pub fn new(slots: u32, members: u32) -> Self {
        let holds = vec![0; members as usize];
        Self { slots, blocks: BTreeMap::new(), holds, end: u32::MAX }
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
        block < 2 * self.slots || self.holds.iter().all(|holds| *holds > block - 2 * self.slots)
    }

    fn is_past(&self, block: u32) -> bool {
        self.blocks.contains_key(&(block + 2 * self.slots))
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
        let lanes: Vec<f32> =
            piece.lanes.as_chunks::<4>().0.iter().map(|lane| f32::from_le_bytes(*lane)).collect();
        let finite = |lanes: &[f32]| lanes.iter().all(|lane| lane.is_finite());
        if is_new {
            if !self.gives_way(block) {
                return Met::Occupied;
            }
            if !finite(&lanes) {
                return Met::Refused(Reason::NonFinite);
            }
            let is_alone = self.holds.len() == 1;
            let due = piece.deadline.filter(|_| !is_alone).map(|deadline| now + deadline);
            let pieces = vec![(member, contributors, lanes)];
            self.blocks.insert(block, Block { pieces, is_summed: is_alone, result: None, due });
            return if is_alone { Met::Complete } else { Met::Opened };
        }
        if self.is_past(block) || self.holds[member as usize] > block {
            return Met::Held;
        }
        let members = self.holds.len();
        let known = self.blocks.get_mut(&block).expect("seen above");
        if known.has(member) {
            return Met::Repeated;
        }
        if known.is_summed {
            return Met::Late;
        }
        let mut with = known.clone();
        if with.pieces[0].2.len() != lanes.len() {
            return Met::Refused(Reason::WrongSize);
        }
        with.pieces.push((member, contributors, lanes));
        if !finite(&with.sum().1) {
            return Met::Refused(Reason::NonFinite);
        }
        with.is_summed = with.pieces.len() == members;
        let is_summed = with.is_summed;
        *known = with;
        if is_summed {
            known.due = None;
            Met::Complete
        } else {
            Met::Added
        }
    }

    /// As [`super::Pool::finish`].
    pub fn finish(&mut self, block: u32) {
        if !self.is_past(block)
            && let Some(block) = self.blocks.get_mut(&block)
            && block.is_summed
            && block.result.is_none()
        {
            block.result = Some(block.sum());
        }
    }

    /// As [`super::Pool::fulfil`].
    pub fn fulfil(&mut self, block: u32, contributors: u32, result: &[f32]) -> bool {
        let is_here = self.blocks.contains_key(&block);
        let may = block < self.end
            && contributors > 0
            && !self.is_past(block)
            && !self.has_result(block)
            && (is_here || self.may_be_sent(block) && self.gives_way(block))
            && result.iter().all(|lane| lane.is_finite());
        if may {
            let block = self.blocks.entry(block).or_default();
            block.is_summed = true;
            block.due = None;
            block.result = Some((contributors, result.to_vec()));
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

    /// As [`super::Pool::close`].
    pub fn close(&mut self, end: u32) {
        self.end = self.end.min(end);
        let end = self.end;
        self.blocks.retain(|number, block| *number < end || block.is_summed);
    }

    /// As [`super::Pool::first_incomplete`].
    #[must_use]
    pub fn first_incomplete(&self) -> u32 {
        let open = self.blocks.iter().find(|(_, block)| !block.is_summed);
        let next = self.blocks.keys().next_back().map_or(0, |newest| newest + 1);
        open.map_or(next, |(number, _)| *number)
    }
}
