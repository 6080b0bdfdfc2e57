//! Members that call different operations under one number.

use super::Switch;
use super::closing::culprit_is;
use super::generation::{End, Generation};
use crate::blocks::pool::State;
use crate::drop::DropReason;
use crate::engine::Verdict;
use crate::ids::JobId;
use crate::sums::{Dispute, Odd};
use crate::time::Instant;
use olaf_wire::reduce::{Called, Clash, Piece, Reason};

/// Most operations that have no piece yet and whose calls the switch keeps.
const MOST_AWAITED: usize = 64;

impl Switch {
    /// The sender reduces something else than the others under the same number, or there is a dispute about it. `fits`: the
    /// piece has the shape that is known.
    #[cold]
    pub(super) fn handle_mismatch(&mut self, now: Instant, piece: &Piece, fits: bool) -> Verdict {
        let address = piece.address;
        let known = self.jobs.get_mut(&address.job);
        let generation = known.and_then(|known| known.generation(address.generation));
        let is_disputed = generation.is_some_and(|generation| {
            generation.dispute(now, address.rank, piece.block.operation, &piece.block.called())
        });
        if is_disputed {
            self.name_the_odd(now, address.job, address.generation);
        } else if !fits {
            // All call the same, and yet this piece is out of place.
            self.end_because_of(now, piece, Reason::Mismatch);
        }
        Verdict::Drop(DropReason::Mismatch)
    }

    /// Ends a generation about whose operation there is a dispute, once it is clear whom to name.
    #[cold]
    pub(super) fn name_the_odd(&mut self, now: Instant, job: JobId, number: u32) {
        let known = self.jobs.get_mut(&job).and_then(|known| known.generation(number));
        let Some(generation) = known else { return };
        let Some((operation, dispute)) = &generation.dispute else { return };
        let members = generation.members.iter().filter(|member| !member.has_left).count();
        let Some(Odd { member, calls, others }) = dispute.odd(now, members) else { return };
        let clash = Some(Clash { culprit: calls, others });
        let (operation, reason) = (*operation, Reason::Mismatch);
        let culprit = Some(generation.name(member));
        self.close(now, job, number, End { operation, reason, clash, ..culprit_is(culprit, now) });
    }
}

impl Generation {
    /// Returns true if there is a dispute about the operation of a piece.
    #[inline]
    pub(super) fn is_disputed(&self, piece: &Piece) -> bool {
        let of = piece.block.operation;
        let is_here = self.dispute.as_ref().is_some_and(|(operation, _)| *operation == of);
        // Who sends no pieces may have said that it awaits something else.
        is_here || !self.awaited.is_empty() && !self.agrees(of, &piece.block.called())
    }

    /// Returns true if nobody is known to call the operation something else.
    pub(super) fn agrees(&self, operation: u32, called: &Called) -> bool {
        let known = self.shapes.called(operation).is_none_or(|known| known == *called);
        let said = self.awaited.get(&operation);
        known && said.is_none_or(|said| said.values().all(|said| said == called))
    }

    /// A member says what it awaits, without a piece. Returns true if there is a dispute.
    pub(super) fn hears_of(
        &mut self,
        now: Instant,
        rank: u32,
        awaits: Option<(u32, Called)>,
    ) -> bool {
        let Some((operation, called)) = awaits else { return self.dispute.is_some() };
        let is_over = operation < self.shapes.over() || !self.has(operation);
        if is_over || self.awaited.len() >= MOST_AWAITED && !self.awaited.contains_key(&operation) {
            self.awaited = self.awaited.split_off(&self.shapes.over());
            return self.dispute.is_some();
        }
        if !self.agrees(operation, &called) {
            return self.dispute(now, rank, operation, &called);
        }
        if self.shapes.called(operation).is_none() {
            self.awaited.entry(operation).or_default().insert(rank, called);
        }
        self.dispute.is_some()
    }

    /// Notes what a member calls an operation that another one calls something else. Returns true if there is a dispute:
    /// it is about the first operation that members call differently.
    fn dispute(&mut self, now: Instant, rank: u32, operation: u32, called: &Called) -> bool {
        if !self.has(operation) {
            return false;
        }
        let is_later = self.dispute.as_ref().is_some_and(|(first, _)| *first < operation);
        if is_later || self.agrees(operation, called) && self.dispute.is_none() {
            return is_later;
        }
        if self.dispute.as_ref().is_none_or(|(known, _)| *known != operation) {
            self.dispute = Some((operation, Dispute::new(now)));
        }
        let Some((_, dispute)) = &mut self.dispute else { return false };
        dispute.note(rank, *called);
        for (rank, said) in self.awaited.get(&operation).into_iter().flatten() {
            dispute.note(*rank, *said);
        }
        if let Some(known) = self.shapes.called(operation) {
            let mut blocks = self.shapes.blocks(operation);
            let cell = blocks.find_map(|block| self.pool.cell(block));
            if cell.is_none_or(|cell| cell.state() == State::Final) {
                dispute.assume(known);
            }
            let ranks = 0..self.members.len() as u32;
            let sent = ranks.filter(|rank| cell.is_some_and(|cell| cell.from().contains(*rank)));
            sent.for_each(|rank| dispute.note(rank, known));
        }
        let has_sides = dispute.has_sides();
        if !has_sides {
            self.dispute = None;
        }
        has_sides
    }
}
