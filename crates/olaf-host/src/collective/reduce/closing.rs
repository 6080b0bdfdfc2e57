//! How a generation ends, and what becomes of its operations.

use super::Reducer;
use super::blocks::State;
use super::generation::{Closing, Generation};
use super::operations::Open;
use crate::collective::Failure;
use alloc::collections::VecDeque;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::reduce::{ALL, Closed, Leave, Reason, ReducePacket};

impl Reducer {
    pub(super) fn handle_closed(
        &mut self,
        now: Instant,
        packet: &ReducePacket<'_>,
    ) -> Result<(), Refused> {
        let closed = Closed::parse(packet).map_err(Refused::Malformed)?;
        if self.leaving.last(|leave| leave.address == closed.address).is_some() {
            // The switch has heard the leave, or never knew this end.
            self.leaving.stop();
            return Ok(());
        }
        let is_old = |told: &Closed| told.address.generation == closed.address.generation;
        if self.moving.at().is_some() && self.moving.last(is_old).is_some() {
            // The switch lives and has told the others, or was started again: it need not wait for this end.
            self.moving.stop();
            if let Some((address, operation)) = self.last_place {
                self.leaving.begin(now, Leave { address, operation });
            }
            return Ok(());
        }
        self.for_generation(&closed.address)?;
        self.heard(now);
        let culprit = (closed.culprit != ALL).then_some(closed.culprit);
        if closed.reason == Reason::Mismatch {
            self.clash = closed.clash;
        }
        self.close(now, self.closing_of(closed.operation, closed.reason, culprit));
        Ok(())
    }

    fn closing_of(&self, operation: u32, reason: Reason, culprit: Option<u32>) -> Closing {
        let is_elastic = self.config.workers == 0;
        let again_from = match reason {
            // Nobody is missing in the next generation.
            Reason::Renewed => operation,
            Reason::Joined | Reason::Left if is_elastic => operation,
            Reason::Dead if is_elastic => operation.saturating_add(1),
            _ => u32::MAX,
        };
        // Whatever is open in an unknown generation has no end.
        let operation = if reason == Reason::Unknown { 0 } else { operation };
        Closing { operation, reason, culprit, again_from, is_own: false }
    }

    /// The generation has no operation from `closing.operation` on. Earlier ones go on.
    pub(super) fn close(&mut self, now: Instant, closing: Closing) {
        let Some(generation) = &mut self.generation else { return };
        let number = generation.address.generation;
        if generation.closing.is_some_and(|before| before.operation <= closing.operation) {
            return self.finish_closing(now);
        }
        generation.closing = Some(closing);
        self.protest = None;
        let keeps = generation.open.partition_point(|open| open.at.last < closing.operation);
        let later = generation.open.split_off(keeps);
        let end = later.front().map_or(generation.next_block, |open| open.at.first);
        let end = end.min(generation.next_block);
        generation.next_block = end;
        generation.blocks.end_at(end);
        self.window.forget();
        for (_, entry) in generation.blocks.awaited(end) {
            if entry.state == State::Sent {
                self.window.on_sent();
            }
        }
        self.counts.in_flight = self.window.state().1.into();
        self.settle(now, later, closing);
        self.joining.wait_for_last(self.config.workers);
        let Closing { operation, reason, culprit, .. } = closing;
        self.events.tell(WorkerEvent::GenerationClosed {
            generation: number,
            operation,
            reason,
            culprit,
        });
        self.finish_closing(now);
    }

    /// Operations of a generation that ends begin again or fail. Those that wait already came
    /// later.
    fn settle(&mut self, now: Instant, later: VecDeque<Open>, closing: Closing) {
        let waited = core::mem::take(&mut self.waiting);
        let failure = closing.failure();
        for mut open in later {
            // Of an order-free sum the first operation may have its result: both begin again.
            let again =
                open.at.number >= closing.again_from || closing.again_from == closing.operation;
            // The root's rank may belong to another worker then.
            let has_root = closing.culprit.is_none_or(|culprit| !open.is_from(culprit));
            if again && has_root && open.undo() {
                self.counts.operations_again += 1;
                self.progress.take_back();
                self.waiting.push_back(open);
            } else {
                self.fail(now, [open], failure);
            }
        }
        for open in waited {
            // It was to begin again after an earlier closing, or has not begun.
            if open.has_place() && closing.again_from == u32::MAX {
                self.fail_unplaced(now, [open], failure);
            } else {
                self.waiting.push_back(open);
            }
        }
    }

    /// Joins again once nothing more is to be done in the generation.
    pub(super) fn finish_closing(&mut self, now: Instant) {
        let Some(mut generation) = self.generation.take_if(|generation| generation.is_drained())
        else {
            return;
        };
        let Some(closing) = generation.closing else { return };
        let dooms_next = generation.dooms_next().is_some();
        self.progress.generation_ended(closing.failure(), dooms_next);
        let number = generation.address.generation;
        self.abandon(&generation);
        if closing.is_own {
            let Generation { address, .. } = generation;
            self.leaving.once(now, Leave { address, operation: closing.operation });
        }
        self.begin_to_join(now, number);
    }

    /// The operation with that number ends with the failure. This end leaves its generation once it
    /// has the results of the operations before, and joins again.
    pub(super) fn leave_generation(&mut self, now: Instant, number: u32, failure: Failure) {
        let Some(generation) = &mut self.generation else { return };
        let Some(at) = generation.open.iter().position(|open| open.at.number == number) else {
            return;
        };
        let own = Closing {
            operation: number,
            reason: Reason::Left,
            culprit: Some(generation.rank),
            again_from: u32::MAX,
            is_own: true,
        };
        let given_up = generation.open.remove(at);
        if let Some(open) = &given_up {
            generation.next_block = open.at.first;
        }
        self.fail(now, given_up, failure);
        self.close(now, own);
    }

    /// What the generation still had is given up.
    pub(super) fn abandon(&mut self, generation: &Generation) {
        self.counts.early_discarded += generation.early.len() as u64;
        self.counts.in_flight = 0;
        self.window.forget();
    }

    pub(super) fn emit_leave(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        if let Some(closed) = self.moving.take(now) {
            self.counts.leaves += 1;
            return Some(closed.emit(buf));
        }
        let leave = self.leaving.take(now)?;
        self.counts.leaves += 1;
        Some(leave.emit(buf))
    }
}
