//! An operation: its blocks, and what has come of them. An operation is one generation.

use super::scaled::{LANE, are_finite, dequantize, quantize};
use crate::collective::{Done, Failure, Operation, OperationId, Reduction, Sum};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use olaf_engine::{Instant, Refused};
use olaf_wire::trio::Block;

/// How far a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// This end has sent nothing of it.
    Unsent,
    /// Its piece is on its way, and has not been asked for or sent again.
    Sent,
    /// The same, but it has.
    Again,
    /// The result is here.
    Done,
}

/// A block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    /// When its piece was sent, or asked for, last.
    pub(super) at: Instant,
}

/// An operation that has begun and not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: OperationId,
    pub(super) began: Instant,
    operation: Operation,
    pub(super) generation: u16,
    /// Blocks of the term before its first.
    pub(super) base: u64,
    gradients: usize,
    scale: f64,
    pub(super) slots: Vec<Slot>,
    /// The next block to send.
    pub(super) next: u32,
    /// All results before this block are here.
    pub(super) held: u32,
    received: usize,
    /// Blocks whose pieces the switch wants again.
    pub(super) wanted: VecDeque<u32>,
    fewest: Option<u8>,
    is_out_of_range: bool,
}

/// Returns true if numbers can name the blocks of that many bytes: with the fewest gradients of a block there are the most.
pub(super) fn can_be_numbered(bytes: usize) -> bool {
    blocks_of(bytes, 1).is_some()
}

fn blocks_of(bytes: usize, gradients: usize) -> Option<u32> {
    let blocks = bytes.div_ceil(gradients * LANE);
    u32::try_from(blocks).ok().filter(|blocks| *blocks < u32::MAX)
}

impl Open {
    pub(super) fn new(id: OperationId, began: Instant, operation: Operation) -> Self {
        Self {
            id,
            began,
            operation,
            generation: 0,
            base: 0,
            gradients: 1,
            scale: 1.0,
            slots: Vec::new(),
            next: 0,
            held: 0,
            received: 0,
            wanted: VecDeque::new(),
            fewest: None,
            is_out_of_range: false,
        }
    }

    /// What this end calls, as a block says it.
    pub(super) const fn call(&self) -> u8 {
        self.operation.call().narrow()
    }

    /// The lanes of this end.
    pub(super) fn lanes(&self) -> &[u8] {
        self.operation.buffer.bytes()
    }

    /// Returns true if each lane of this end is a finite number.
    pub(super) fn is_finite(&self) -> bool {
        are_finite(self.lanes())
    }

    /// Blocks that it would have with that many gradients each; none: more than numbers can name.
    pub(super) fn blocks_of(&self, gradients: usize) -> Option<u32> {
        blocks_of(self.lanes().len(), gradients)
    }

    /// Gives the operation its place in a term.
    pub(super) fn place(&mut self, generation: u16, base: u64, gradients: usize, scale: f64) {
        let blocks = self.blocks_of(gradients).unwrap_or(0);
        (self.generation, self.base) = (generation, base);
        (self.gradients, self.scale) = (gradients, scale);
        let slot = Slot { state: State::Unsent, at: Instant(0) };
        self.slots = vec![slot; blocks as usize];
    }

    pub(super) fn blocks(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("place() has counted them")
    }

    fn range(&self, block: u32) -> Range<usize> {
        let start = block as usize * self.gradients * LANE;
        start..(start + self.gradients * LANE).min(self.lanes().len())
    }

    /// The next block that has neither been sent nor answered.
    pub(super) fn next_to_send(&mut self) -> Option<u32> {
        while let Some(slot) = self.slots.get(self.next as usize) {
            if slot.state == State::Unsent {
                return Some(self.next);
            }
            self.next += 1;
        }
        None
    }

    /// The next block that the switch wants again.
    pub(super) fn next_wanted(&mut self) -> Option<u32> {
        while let Some(block) = self.wanted.pop_front() {
            let state = self.slots[block as usize].state;
            if matches!(state, State::Sent | State::Again) {
                return Some(block);
            }
        }
        None
    }

    /// The switch wants the piece of a block again.
    pub(super) fn want(&mut self, block: u32) {
        if block < self.next && !self.wanted.contains(&block) {
            self.wanted.push_back(block);
        }
    }

    /// Returns true if the result of a block is not here.
    pub(super) fn lacks(&self, block: u32) -> bool {
        self.slots.get(block as usize).is_some_and(|slot| slot.state != State::Done)
    }

    pub(super) fn is_last(&self, block: u32) -> bool {
        block as usize + 1 == self.slots.len()
    }

    /// Gradients of a block.
    pub(super) fn gradients_of(&self, block: u32) -> usize {
        self.range(block).len() / LANE
    }

    /// Writes this end's gradients of a block into exactly that many bytes.
    pub(super) fn write(&mut self, block: u32, out: &mut [u8]) {
        let range = self.range(block);
        let fits = quantize(&self.operation.buffer.bytes()[range], self.scale, out);
        self.is_out_of_range |= !fits;
    }

    /// Takes the result of a block; the state in which the block was.
    ///
    /// # Errors
    /// Why the result is none of this operation.
    pub(super) fn take(&mut self, block: &Block, gradients: &[u8]) -> Result<State, Refused> {
        let number = block.block;
        let Some(slot) = self.slots.get(number as usize).copied() else {
            return Err(Refused::Mismatch);
        };
        if block.is_final != self.is_last(number) || block.call != self.call() {
            return Err(Refused::Mismatch);
        }
        let range = self.range(number);
        if range.len() != gradients.len() {
            return Err(Refused::WrongSize);
        }
        if slot.state == State::Done {
            return Err(Refused::Duplicate);
        }
        let is_mean = self.operation.reduction == Reduction::Mean;
        // Trio-ML §5: servers divide by the number of sources in the sum.
        let by = if is_mean { block.sources.into() } else { 1 };
        let Some(to) = self.operation.buffer.bytes_mut().get_mut(range) else {
            return Err(Refused::WrongSize);
        };
        self.is_out_of_range |= !dequantize(gradients, self.scale, by, to);
        self.fewest = Some(self.fewest.map_or(block.sources, |fewest| fewest.min(block.sources)));
        self.slots[number as usize].state = State::Done;
        self.received += 1;
        while self.slots.get(self.held as usize).is_some_and(|slot| slot.state == State::Done) {
            self.held += 1;
        }
        Ok(slot.state)
    }

    /// Returns true if all results are here.
    pub(super) fn is_complete(&self) -> bool {
        self.received == self.slots.len()
    }

    /// Pieces on their way.
    pub(super) fn in_flight(&self) -> u64 {
        let is_sent = |slot: &&Slot| matches!(slot.state, State::Sent | State::Again);
        self.slots.iter().filter(is_sent).count() as u64
    }

    /// How the operation ended, all results being here, of a job of that many workers.
    pub(super) fn outcome(&self, workers: u8) -> Result<Sum, Failure> {
        let (contributors, expected) = (self.fewest.unwrap_or(workers).into(), workers.into());
        if contributors < expected && !self.operation.accepts_partial {
            return Err(Failure::Partial { contributors, expected });
        }
        Ok(Sum { contributors, expected, not_finite: self.is_out_of_range })
    }

    pub(super) fn end(self, now: Instant, outcome: Result<Sum, Failure>) -> Done {
        let took = now.since(self.began);
        Done { id: self.id, outcome, buffer: self.operation.buffer, took }
    }
}
