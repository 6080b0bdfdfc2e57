//! An operation that is open: where its blocks lie, and what has come of them.

use super::exact::Exact;
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
    /// Its last number: an order-free sum has two.
    pub(super) last: u32,
    /// Its first block.
    pub(super) first: u32,
    /// Its first block with lanes; those before have exponents.
    lanes_from: u32,
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
    /// Results with lanes that are here.
    received_lanes: u32,
    /// This end's lanes, from the first result on, where the operation may have to begin again.
    saved: Option<Vec<u8>>,
    /// Of an order-free sum.
    exact: Option<Exact>,
}

impl Open {
    pub(super) fn new(id: OperationId, began: Instant, operation: Operation) -> Self {
        let at = InGeneration {
            number: 0,
            last: 0,
            first: 0,
            lanes_from: 0,
            end: 0,
            block_bytes: 1,
            sends: false,
        };
        Self {
            id,
            began,
            operation,
            at,
            received: 0,
            fewest: None,
            not_finite: false,
            missing: None,
            received_lanes: 0,
            saved: None,
            exact: None,
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
        scale: Option<f64>,
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
        let block_bytes = block_bytes.max(1);
        self.exact = if self.is_exact() {
            Some(Exact::new(self.bytes(), block_bytes, workers))
        } else {
            scale.filter(|_| self.may_be_scaled()).map(|scale| Exact::scaled(Some(scale)))
        };
        let blocks = |bytes: usize| u32::try_from(bytes.div_ceil(block_bytes)).ok();
        let exponents = self.exact.as_ref().map_or(0, |exact| exact.lanes().len());
        let lanes_from = blocks(exponents).and_then(|blocks| first.checked_add(blocks));
        let lanes = blocks(self.bytes().len());
        let end = lanes_from.zip(lanes).and_then(|(from, blocks)| from.checked_add(blocks));
        let (Some(lanes_from), Some(end)) = (lanes_from, end.filter(|end| *end < u32::MAX)) else {
            return Err(Failure::BadOperation("its blocks are more than numbers can name"));
        };
        let last = number + u32::from(exponents > 0);
        self.at = InGeneration { number, last, first, lanes_from, end, block_bytes, sends };
        Ok(())
    }

    /// Operations on the wire.
    pub(super) const fn numbers(&self) -> u32 {
        if self.is_exact() { 2 } else { 1 }
    }

    /// Returns true if the lanes come from that rank alone.
    pub(super) fn is_from(&self, rank: u32) -> bool {
        self.operation.reduction == Reduction::Broadcast { root: rank }
    }

    const fn is_exact(&self) -> bool {
        matches!(self.operation.reduction, Reduction::ExactSum | Reduction::ExactMean)
    }

    fn may_be_scaled(&self) -> bool {
        let is_sum = matches!(self.operation.reduction, Reduction::Sum | Reduction::Mean);
        is_sum && self.operation.lane_type == LaneType::F32
    }

    /// Returns true if this end sends a piece of the block.
    pub(super) fn sends(&self, block: u32) -> bool {
        match (&self.exact, self.lane_block(block)) {
            (Some(exact), Some(index)) => exact.fits(index),
            _ => self.at.sends,
        }
    }

    /// Returns true if its piece of the block can be sent now. The lanes of an order-free sum wait
    /// for all exponents.
    pub(super) const fn is_ready(&self, block: u32) -> bool {
        block < self.at.lanes_from || self.received >= self.at.lanes_from - self.at.first
    }

    /// The index of a block among those with lanes.
    fn lane_block(&self, block: u32) -> Option<usize> {
        block.checked_sub(self.at.lanes_from).map(|index| index as usize)
    }

    /// Returns true if it has, or had, a place in a generation.
    pub(super) const fn has_place(&self) -> bool {
        self.at.end > 0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.operation.buffer.bytes()
    }

    pub(super) const fn has(&self, block: u32) -> bool {
        self.at.first <= block && block < self.at.end
    }

    /// Where the lanes of a block lie: in the buffer, or among the exponents.
    fn range(&self, block: u32) -> Range<usize> {
        let InGeneration { first, lanes_from, block_bytes, .. } = self.at;
        let (first, len) = match (&self.exact, block < lanes_from) {
            (Some(exact), true) => (first, exact.lanes().len()),
            _ => (lanes_from, self.bytes().len()),
        };
        let start = block.saturating_sub(first) as usize * block_bytes;
        start..(start + block_bytes).min(len)
    }

    /// Bytes of a piece's lanes.
    pub(super) fn piece_bytes(&self, block: u32) -> usize {
        self.range(block).len()
    }

    /// Writes this end's lanes of a block into exactly that many bytes.
    pub(super) fn write_piece(&mut self, block: u32, out: &mut [u8]) {
        let range = self.range(block);
        let index = self.lane_block(block);
        let lanes = self.operation.buffer.bytes();
        match (&mut self.exact, index) {
            (Some(exact), Some(index)) => exact.write(index, &lanes[range], out),
            (Some(exact), None) => out.copy_from_slice(&exact.lanes()[range]),
            (None, _) => out.copy_from_slice(&lanes[range]),
        }
    }

    /// Returns true if the lanes of an order-free block were no numbers before they became
    /// integers.
    pub(super) fn is_not_finite(&self, block: u32) -> bool {
        let exact = self.exact.as_ref().zip(self.lane_block(block));
        exact.is_some_and(|(exact, index)| !exact.is_finite(index))
    }

    /// What a piece says of its block.
    pub(super) fn block(&self, number: u32) -> Block {
        let operation = &self.operation;
        let is_lanes = number >= self.at.lanes_from;
        let (first, len, lane_type, operator) = match (&self.exact, operation.reduction) {
            (Some(exact), _) if !is_lanes => {
                (self.at.first, exact.lanes().len(), LaneType::I32, Operator::Max)
            }
            (Some(_), _) => (self.at.lanes_from, self.bytes().len(), LaneType::I32, Operator::Sum),
            (None, reduction) => {
                let operator = match reduction {
                    Reduction::Sum
                    | Reduction::Mean
                    | Reduction::ExactSum
                    | Reduction::ExactMean
                    // Refused when it begins.
                    | Reduction::Pipelined { .. } => Operator::Sum,
                    Reduction::Min => Operator::Min,
                    Reduction::Max => Operator::Max,
                    Reduction::Broadcast { .. } => Operator::Broadcast,
                };
                (self.at.first, self.bytes().len(), operation.lane_type, operator)
            }
        };
        Block {
            number,
            operation: if is_lanes { self.at.last } else { self.at.number },
            first,
            lanes_of_operation: (len / lane_type.bytes()) as u64,
            lane_type,
            operator,
            call: operation.call(),
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
        let BlockResult { contributors, expected, marks, .. } = *result.header;
        let lane_block = self.lane_block(block);
        if !self.is_ready(block) {
            // The scale of these integers is not known yet.
            return Err(Refused::NotReady);
        }
        if let (Some(exact), None) = (&mut self.exact, lane_block) {
            exact.take(range, result.lanes, expected);
        } else {
            if saves && !is_broadcast && self.saved.is_none() {
                self.saved = Some(self.bytes().to_vec());
            }
            let Some(to) = self.operation.buffer.bytes_mut().get_mut(range) else {
                return Err(Refused::WrongSize);
            };
            match (&mut self.exact, lane_block) {
                (Some(exact), Some(index)) => {
                    let is_mean = matches!(reduction, Reduction::Mean | Reduction::ExactMean);
                    let by = if is_mean { contributors } else { 1 };
                    exact.sum(index, result.lanes, by, to);
                }
                _ if reduction == Reduction::Mean => {
                    lanes::divide(lane_type, result.lanes, contributors, to);
                }
                _ => to.copy_from_slice(result.lanes),
            }
            self.received_lanes += 1;
        }
        self.received += 1;
        if self.fewest.is_none_or(|(fewest, _)| contributors < fewest) {
            self.fewest = Some((contributors, expected));
            self.missing = result.missing;
        }
        self.not_finite |= marks.not_finite;
        Ok(())
    }

    /// Returns true if all results are here.
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
            _ if is_broadcast || self.received_lanes == 0 => {}
            _ => return false,
        }
        (self.received, self.received_lanes) = (0, 0);
        (self.fewest, self.not_finite, self.missing) = (None, false, None);
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
