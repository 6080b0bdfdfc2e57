//! The operations of a worker: their numbers, how they ended, and how many there were.

use crate::collective::{Done, OperationId};
use alloc::collections::VecDeque;
use serde::Serialize;

/// Operations that have begun, and those that have ended and wait for the program.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    begun: u64,
    done: u64,
    failed: u64,
    ended: VecDeque<Done>,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Operations {
    pub begun: u64,
    pub done: u64,
    pub failed: u64,
    pub open: u64,
}

impl Ledger {
    /// The operation that begins next.
    pub(crate) const fn next(&self) -> OperationId {
        OperationId(self.begun)
    }

    /// The next operation begins.
    pub(crate) const fn begin(&mut self) -> OperationId {
        let id = self.next();
        self.begun += 1;
        id
    }

    /// An operation has ended.
    pub(crate) fn end(&mut self, done: Done) {
        match done.outcome {
            Ok(_) => self.done += 1,
            Err(_) => self.failed += 1,
        }
        self.ended.push_back(done);
    }

    /// The next one that the program is told of.
    pub(crate) fn poll(&mut self) -> Option<Done> {
        self.ended.pop_front()
    }

    pub(crate) const fn operations(&self, open: usize) -> Operations {
        let Self { begun, done, failed, .. } = *self;
        Operations { begun, done, failed, open: open as u64 }
    }
}
