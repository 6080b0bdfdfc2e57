//! An operation that is open: where its blocks lie, and what has come of them.

use super::lanes;
use crate::collective::{Done, Failure, Operation, OperationId, Reduction, Sum};
use alloc::vec::Vec;
use core::ops::Range;
use olaf_engine::{Instant, Refused};
use olaf_wire::reduce::{Block, BlockResult, LaneType, Operator};

/// Where an operation lies in its generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct InGeneration {
    /// Its number, counted from 0 in the generation.
    pub(super) number: u32,
    /// Its first block.
    pub(super) first: u32,
    /// One after its last block.
    pub(super) end: u32,
    /// Bytes of the lanes of each block but the last.
    block_bytes: usize,
    /// Whether this end sends pieces of it.
    pub(super) sends: bool,
}

/// An operation that has begun and not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: OperationId,
    pub(super) began: Instant,
    operation: Operation,
    pub(super) at: InGeneration,
    /// Results that are here.
    received: u32,
    /// Contributors of the block with the fewest, and those that belong into it.
    fewest: Option<(u32, u32)>,
    not_finite: bool,
    /// The only worker whose lanes are missing, where that is known.
    missing: Option<u32>,
    /// This end's lanes, from the first result on, where the operation may have to begin again.
    saved: Option<Vec<u8>>,
}

impl Open {
    pub(super) fn new(id: OperationId, began: Instant, operation: Operation) -> Self {
        let at = InGeneration { number: 0, first: 0, end: 0, block_bytes: 1, sends: false };
        Self {
            id,
            began,
            operation,
            at,
            received: 0,
            fewest: None,
            not_finite: false,
            missing: None,
            saved: None,
        }
    }

    /// Gives the operation its place in a generation.
    ///
    /// # Errors
    /// Why it can have none.
    pub(super) fn place(
        &mut self,
        number: u32,
        first: u32,
        block_bytes: u32,
        (rank, workers): (u32, u32),
    ) -> Result<(), Failure> {
        let sends = match self.operation.reduction {
            Reduction::Broadcast { root } if root >= workers => {
                return Err(Failure::BadOperation("the root is no rank of the generation"));
            }
            Reduction::Broadcast { root } => root == rank,
            _ => true,
        };
        let lane = self.operation.lane_type.bytes();
        let block_bytes = block_bytes as usize / lane * lane;
        let blocks = self.bytes().len().div_ceil(block_bytes.max(1));
        let end = u32::try_from(blocks).ok().and_then(|blocks| first.checked_add(blocks));
        let Some(end) = end.filter(|end| *end < u32::MAX) else {
            return Err(Failure::BadOperation("its blocks are more than numbers can name"));
        };
        self.at = InGeneration { number, first, end, block_bytes, sends };
        Ok(())
    }

    /// Whether it has, or had, a place in a generation.
    pub(super) const fn has_place(&self) -> bool {
        self.at.end > 0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.operation.buffer.bytes()
    }

    pub(super) const fn lane_type(&self) -> LaneType {
        self.operation.lane_type
    }

    pub(super) const fn has(&self, block: u32) -> bool {
        self.at.first <= block && block < self.at.end
    }

    /// Where the lanes of a block lie.
    fn range(&self, block: u32) -> Range<usize> {
        let InGeneration { first, block_bytes, .. } = self.at;
        let start = block.saturating_sub(first) as usize * block_bytes;
        start..(start + block_bytes).min(self.bytes().len())
    }

    /// This end's lanes of a block.
    pub(super) fn lanes(&self, block: u32) -> &[u8] {
        self.bytes().get(self.range(block)).unwrap_or_default()
    }

    /// What a piece says of its block.
    pub(super) fn block(&self, number: u32) -> Block {
        let operation = &self.operation;
        Block {
            number,
            operation: self.at.number,
            first: self.at.first,
            lanes_of_operation: (self.bytes().len() / operation.lane_type.bytes()) as u64,
            lane_type: operation.lane_type,
            operator: match operation.reduction {
                Reduction::Sum | Reduction::Mean => Operator::Sum,
                Reduction::Min => Operator::Min,
                Reduction::Max => Operator::Max,
                Reduction::Broadcast { .. } => Operator::Broadcast,
            },
        }
    }

    /// Takes the result of one of its blocks into the buffer. `saves` keeps this end's lanes, which
    /// results overwrite.
    ///
    /// # Errors
    /// Why the result is none of this operation.
    pub(super) fn take(&mut self, result: &Arrived<'_>, saves: bool) -> Result<(), Refused> {
        let block = result.header.block.number;
        if self.block(block) != result.header.block {
            return Err(Refused::Mismatch);
        }
        let range = self.range(block);
        if range.len() != result.lanes.len() {
            return Err(Refused::WrongSize);
        }
        let (lane_type, reduction) = (self.operation.lane_type, self.operation.reduction);
        let is_broadcast = matches!(reduction, Reduction::Broadcast { .. });
        if saves && !is_broadcast && self.saved.is_none() {
            self.saved = Some(self.bytes().to_vec());
        }
        let Some(to) = self.operation.buffer.bytes_mut().get_mut(range) else {
            return Err(Refused::WrongSize);
        };
        let BlockResult { contributors, expected, marks, .. } = *result.header;
        match reduction {
            Reduction::Mean => lanes::divide(lane_type, result.lanes, contributors, to),
            _ => to.copy_from_slice(result.lanes),
        }
        self.received += 1;
        if self.fewest.is_none_or(|(fewest, _)| contributors < fewest) {
            self.fewest = Some((contributors, expected));
            self.missing = result.missing;
        }
        self.not_finite |= marks.not_finite;
        Ok(())
    }

    /// Whether all results are here.
    pub(super) const fn is_complete(&self) -> bool {
        self.received == self.at.end - self.at.first
    }

    /// Makes the operation as it was before its beginning, with this end's lanes; whether it can,
    /// because no lanes are overwritten or they are saved.
    pub(super) fn undo(&mut self) -> bool {
        let is_broadcast = matches!(self.operation.reduction, Reduction::Broadcast { .. });
        match self.saved.take() {
            Some(lanes) if lanes.len() == self.bytes().len() => {
                self.operation.buffer.bytes_mut().copy_from_slice(&lanes);
            }
            _ if is_broadcast || self.received == 0 => {}
            _ => return false,
        }
        (self.received, self.fewest, self.not_finite, self.missing) = (0, None, false, None);
        true
    }

    /// How the operation ended, all results being here.
    pub(super) fn outcome(&self) -> Result<Sum, Failure> {
        let (contributors, expected) = self.fewest.unwrap_or_default();
        if contributors < expected && !self.operation.accepts_partial {
            return Err(if self.not_finite {
                Failure::NotFinite { rank: self.missing }
            } else {
                Failure::Partial { contributors, expected }
            });
        }
        Ok(Sum { contributors, expected, not_finite: self.not_finite })
    }

    pub(super) fn end(self, now: Instant, outcome: Result<Sum, Failure>) -> Done {
        let took = now.since(self.began);
        Done { id: self.id, outcome, buffer: self.operation.buffer, took }
    }
}

/// A result that came: its header and its lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived<'a> {
    pub(super) header: &'a BlockResult,
    pub(super) lanes: &'a [u8],
    /// The only rank whose lanes are missing.
    pub(super) missing: Option<u32>,
}
