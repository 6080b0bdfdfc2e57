//! An operation that is open: where its packets lie, and what has come of them.

use super::calls::RollCall;
use super::vectors::Vectors;
use crate::collective::{Done, Failure, Operation, OperationId, Reduction, Sum};
use core::ops::Range;
use olaf_engine::lanes::typed;
use olaf_engine::{Instant, Refused};
use olaf_wire::Call;
use olaf_wire::reduce::{Clash, LaneType};

/// Bytes of a float.
const FLOAT: usize = 4;
/// What a worker that is not the root of a broadcast adds: `x + (-0.0)` has the bits of `x`, whatever `x` is.
const NOTHING: [u8; FLOAT] = (-0.0f32).to_le_bytes();

/// An operation that has begun and not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: OperationId,
    pub(super) began: Instant,
    operation: Operation,
    /// Its first packet, and the first one behind it.
    pub(super) first: u64,
    pub(super) end: u64,
    packet_bytes: usize,
    /// Its first packet, where what this end calls differs from what it called before.
    roll: Option<RollCall>,
    /// Whether this end's floats belong into the sum.
    adds: bool,
    /// In asynchronous training: this end's vectors.
    pub(super) vectors: Vectors,
    received: u64,
    /// Contributors of the packet with the fewest.
    fewest: u32,
    not_finite: bool,
}

impl Open {
    pub(super) fn new(id: OperationId, began: Instant, operation: Operation) -> Self {
        Self {
            id,
            began,
            operation,
            first: 0,
            end: 0,
            packet_bytes: FLOAT,
            roll: None,
            adds: true,
            vectors: Vectors::default(),
            received: 0,
            fewest: u32::MAX,
            not_finite: false,
        }
    }

    /// Why the operation can never be.
    pub(super) fn refusal(operation: &Operation) -> Option<Failure> {
        let bytes = operation.buffer.bytes().len();
        let reduction = operation.reduction;
        let can_be = matches!(
            reduction,
            Reduction::Sum
                | Reduction::Mean
                | Reduction::Broadcast { .. }
                | Reduction::Pipelined { .. }
        );
        if operation.lane_type != LaneType::F32 {
            Some(Failure::BadOperation("iSwitch sums f32 alone"))
        } else if !can_be {
            Some(Failure::BadOperation("iSwitch has sums, means and broadcasts"))
        } else if bytes == 0 {
            Some(Failure::BadOperation("it has no lanes"))
        } else if !bytes.is_multiple_of(FLOAT) {
            Some(Failure::BadOperation("its lanes are not whole"))
        } else {
            None
        }
    }

    /// What this end calls.
    pub(super) const fn call(&self) -> Call {
        self.operation.call()
    }

    /// Gives the operation its packets, from `first` on. `last`: what this end called before.
    ///
    /// # Errors
    /// The root of a broadcast is no rank of the job.
    pub(super) fn place(
        &mut self,
        first: u64,
        packet_floats: u32,
        (rank, workers): (u32, u32),
        last: Call,
    ) -> Result<(), Failure> {
        if let Reduction::Broadcast { root } = self.operation.reduction {
            if root >= workers {
                return Err(Failure::BadOperation("the root is no rank of the generation"));
            }
            self.adds = root == rank;
        }
        self.packet_bytes = packet_floats as usize * FLOAT;
        self.roll = match self.iteration() {
            Some(_) => None,
            None if self.refused().is_some() => None,
            None => RollCall::before(self.call(), last, (rank, workers), packet_floats),
        };
        let packets = self.bytes().len().div_ceil(self.packet_bytes) as u64;
        let end = first + u64::from(self.roll.is_some()) + packets;
        (self.first, self.end) = (first, end);
        Ok(())
    }

    /// The iteration of a pipelined sum; none of any other operation.
    pub(super) const fn iteration(&self) -> Option<u64> {
        match self.operation.reduction {
            Reduction::Pipelined { iteration } => Some(iteration),
            _ => None,
        }
    }

    /// Returns true if it counts among the operations of the program, which fail alike at all workers.
    /// Pipelined sums do not: workers are at different iterations when they fail, and agree on one before
    /// they begin again.
    pub(super) const fn counts(&self) -> bool {
        self.iteration().is_none()
    }

    /// Bytes of its lanes.
    pub(super) fn len(&self) -> usize {
        self.bytes().len()
    }

    fn bytes(&self) -> &[u8] {
        self.operation.buffer.bytes()
    }

    fn range(&self, index: u64) -> Range<usize> {
        let data = self.first + u64::from(self.roll.is_some());
        let start = (index - data) as usize * self.packet_bytes;
        start..(start + self.packet_bytes).min(self.bytes().len())
    }

    /// The roll call, if the packet is its.
    fn roll_at(&mut self, index: u64) -> Option<&mut RollCall> {
        self.roll.as_mut().filter(|_| index == self.first)
    }

    /// What this end calls, as 4 bits say it, where it has refused the call.
    pub(super) fn refused(&self) -> Option<u8> {
        self.operation.label.lacks.map(|_| self.call().narrow())
    }

    /// Returns true if this end may send the packet: not before it knows that all call the same.
    pub(super) fn is_ready(&self, index: u64) -> bool {
        self.refused().is_none()
            && self.roll.as_ref().is_none_or(|roll| index == self.first || roll.has_agreed())
    }

    /// What the workers call, where they differ, and whether this end is the one to be named.
    pub(super) fn clash(&self) -> Option<(Clash, bool)> {
        let roll = self.roll.as_ref()?;
        let lanes = if self.operation.label.is_empty { 0 } else { self.len() / FLOAT };
        Some((roll.clash(lanes as u64)?, roll.is_odd()))
    }

    /// Returns true if the packet is the last of the vector.
    pub(super) const fn is_last(&self, index: u64) -> bool {
        index + 1 == self.end
    }

    /// Writes this end's floats of a packet; returns their bytes. `vector` is 0 except in asynchronous training.
    pub(super) fn write(&mut self, index: u64, vector: u32, out: &mut [u8]) -> usize {
        if let Some(roll) = self.roll_at(index) {
            let out = &mut out[..roll.len()];
            roll.write(out);
            return out.len();
        }
        let range = self.range(index);
        let out = &mut out[..range.len()];
        if let Some(vector) = self.vectors.bytes(vector) {
            out.copy_from_slice(&vector[range]);
        } else if self.adds {
            out.copy_from_slice(&self.bytes()[range]);
        } else {
            out.as_chunks_mut().0.fill(NOTHING);
        }
        out.len()
    }

    /// Takes a result, which is the sum of `vectors` vectors. Several of them may be of one worker where it
    /// `is_numbered`.
    ///
    /// # Errors
    /// The result is none of this operation.
    pub(super) fn take(
        &mut self,
        index: u64,
        last: bool,
        (vectors, is_numbered): (u32, bool),
        floats: &[u8],
    ) -> Result<(), Refused> {
        if let Some(roll) = self.roll_at(index) {
            if roll.len() != floats.len() {
                return Err(Refused::WrongSize);
            }
            if last {
                return Err(Refused::Mismatch);
            }
            roll.take(floats);
            self.received += 1;
            return Ok(());
        }
        let range = self.range(index);
        if range.len() != floats.len() {
            return Err(Refused::WrongSize);
        }
        if last != self.is_last(index) || vectors == 0 {
            return Err(Refused::Mismatch);
        }
        let is_mean =
            matches!(self.operation.reduction, Reduction::Mean | Reduction::Pipelined { .. });
        let Some(to) = self.operation.buffer.bytes_mut().get_mut(range) else {
            return Err(Refused::WrongSize);
        };
        if is_mean {
            let floats = floats.as_chunks().0;
            for (to, float) in to.as_chunks_mut().0.iter_mut().zip(floats) {
                *to = (f32::from_le_bytes(*float) / vectors as f32).to_le_bytes();
            }
        } else {
            to.copy_from_slice(floats);
        }
        self.not_finite |= !typed::all_finite(LaneType::F32, floats);
        // Outside asynchronous training each worker has one vector, without a number. So the sum lacks a worker at least.
        let lacks = is_numbered && self.iteration().is_none();
        let contributors = if lacks { vectors - 1 } else { vectors };
        self.fewest = self.fewest.min(contributors.max(1));
        self.received += 1;
        self.vectors.progressed();
        Ok(())
    }

    /// Returns true if all results are here.
    pub(super) const fn is_complete(&self) -> bool {
        self.received == self.end - self.first
    }

    /// How the operation ended, all results being here.
    pub(super) const fn outcome(&self, workers: u32) -> Result<Sum, Failure> {
        let (contributors, expected) = (self.fewest, workers);
        let may_lack = self.operation.accepts_partial || self.iteration().is_some();
        if contributors < expected && !may_lack {
            return Err(Failure::Partial { contributors, expected });
        }
        Ok(Sum { contributors, expected, not_finite: self.not_finite })
    }

    pub(super) fn end(self, now: Instant, outcome: Result<Sum, Failure>) -> Done {
        let took = now.since(self.began);
        Done { id: self.id, outcome, buffer: self.operation.buffer, took }
    }
}
