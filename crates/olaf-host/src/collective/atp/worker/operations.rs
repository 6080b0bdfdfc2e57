//! Operations: their lanes, and where their fragments lie in the flows.

use crate::collective::atp::fixed;
use crate::collective::{Buffer, Done, Failure, Operation, OperationId, Reduction, Sum};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use olaf_engine::Instant;

/// Bytes of a lane.
const LANE: usize = 4;

/// An operation that has begun and not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: OperationId,
    begun: Instant,
    buffer: Box<dyn Buffer>,
    reduction: Reduction,
    /// What this end calls, as the tensor key says it.
    pub(super) call: u8,
    /// Its number in the job's life.
    pub(super) number: u64,
    /// The first sequence number in each flow.
    pub(super) first: Vec<u64>,
    /// Fragments in each flow.
    count: Vec<u64>,
    /// Lanes of a fragment.
    values: usize,
    /// Fragments without a result.
    left: u64,
    not_finite: bool,
}

impl Open {
    pub(super) fn new(id: OperationId, begun: Instant, operation: Operation) -> Self {
        Self {
            id,
            begun,
            call: operation.call().narrow(),
            buffer: operation.buffer,
            reduction: operation.reduction,
            number: 0,
            first: Vec::new(),
            count: Vec::new(),
            values: 1,
            left: 0,
            not_finite: false,
        }
    }

    pub(super) fn lanes(&self) -> usize {
        self.buffer.bytes().len() / LANE
    }

    /// Gives the operation its place behind all others: fragment `p` belongs to server `p mod servers`
    /// (ATP §2.1: each has a part of the tensor).
    pub(super) fn place(&mut self, number: u64, next: &mut [u64], values: u16) {
        (self.number, self.values) = (number, usize::from(values.max(1)));
        let fragments = self.lanes().div_ceil(self.values) as u64;
        let servers = next.len() as u64;
        self.left = fragments;
        (self.first, self.count) = (next.to_vec(), Vec::new());
        for (server, next) in (0..).zip(next) {
            let count = (fragments + servers - 1).saturating_sub(server) / servers;
            self.count.push(count);
            *next += count;
        }
    }

    /// Returns true if the flow has a part of it.
    pub(super) fn has_part(&self, flow: usize) -> bool {
        self.count.get(flow).is_some_and(|count| *count > 0)
    }

    pub(super) fn has(&self, flow: usize, sequence: u64) -> bool {
        let after = sequence.checked_sub(self.first[flow]);
        after.is_some_and(|after| after < self.count[flow])
    }

    /// The bytes of a fragment's lanes.
    fn range(&self, flow: usize, sequence: u64) -> Range<usize> {
        let fragment = (sequence - self.first[flow]) as usize * self.first.len() + flow;
        let start = fragment * self.values * LANE;
        start..(start + self.values * LANE).min(self.buffer.bytes().len())
    }

    /// The lanes of a fragment, little-endian.
    pub(super) fn fragment(&self, flow: usize, sequence: u64) -> &[u8] {
        &self.buffer.bytes()[self.range(flow, sequence)]
    }

    /// Takes the result of a fragment; false where it has another length.
    pub(super) fn take(&mut self, flow: usize, sequence: u64, values: &[u8], workers: u32) -> bool {
        let range = self.range(flow, sequence);
        if range.len() != values.len() {
            return false;
        }
        let by = if self.reduction == Reduction::Mean { workers } else { 1 };
        self.not_finite |= !fixed::take(values, by, &mut self.buffer.bytes_mut()[range]);
        self.left -= 1;
        true
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.left == 0
    }

    pub(super) const fn sum(&self, workers: u32) -> Sum {
        Sum { contributors: workers, expected: workers, not_finite: self.not_finite }
    }

    pub(super) fn end(self, now: Instant, outcome: Result<Sum, Failure>) -> Done {
        Done { id: self.id, outcome, buffer: self.buffer, took: now.since(self.begun) }
    }
}
