//! The operations of a worker: their numbers, how they ended, and how many there were.
//!
//! A call that the worker refuses, because its protocol lacks it, is an operation, too: the others have begun one, and have to
//! hear what this worker called. So an operation of one lane stands for it, whose signature says that. It fails for the caller
//! however it ends.

use crate::collective::{Buffer, Done, Failure, Operation, OperationId};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use serde::Serialize;

/// Operations that have begun, and those that have ended and wait for the program.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    begun: u64,
    done: u64,
    failed: u64,
    ended: VecDeque<Done>,
    /// Why the calls were refused for which operations stand, and the callers' lanes.
    refused: BTreeMap<OperationId, (Failure, Box<dyn Buffer>)>,
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

    /// The operation that stands for a call, which begins next: the call itself, or what tells the others that this end
    /// refuses it, and why.
    pub(crate) fn admit(&mut self, operation: Operation, refusal: Option<Failure>) -> Operation {
        let Some(why) = refusal else { return operation };
        let stand_in = operation.stand_in();
        self.refused.insert(self.next(), (why, operation.buffer));
        stand_in
    }

    /// The next operation begins.
    pub(crate) const fn begin(&mut self) -> OperationId {
        let id = self.next();
        self.begun += 1;
        id
    }

    /// An operation has ended.
    pub(crate) fn end(&mut self, mut done: Done) {
        if let Some((why, buffer)) = self.refused.remove(&done.id) {
            (done.outcome, done.buffer) = (Err(why), buffer);
        }
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
