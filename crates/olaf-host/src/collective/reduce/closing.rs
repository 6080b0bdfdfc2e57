//! How a generation ends, and what becomes of its operations.

use super::blocks::State;
use super::generation::Closing;
use super::operations::Open;
use super::{Reducer, Standing};
use crate::collective::Failure;
use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::reduce::{ALL, Closed, Leave, Reason, ReducePacket, Welcome};

/// A good-bye is repeated after this time, then after twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// So often at most: a switch that is not there misses nobody.
const MOST_TRIES: u32 = 5;

/// How the last generation ended, as the next one must confirm it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    generation: u32,
    closing: Closing,
    is_elastic: bool,
}

impl Again {
    /// The failure of the operations that wait, where the new generation does not begin with them.
    pub(super) fn contradicts(&self, welcome: &Welcome) -> Option<Failure> {
        let Closing { operation, again_from, .. } = self.closing;
        let begins = welcome.operation == operation || welcome.operation == again_from;
        // One switch numbers the generations of all its jobs.
        let follows = (welcome.address.generation.wrapping_sub(self.generation) as i32) > 0;
        (self.is_elastic && !(follows && begins)).then(|| self.closing.failure())
    }
}

/// A good-bye that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    leave: Leave,
    next: Instant,
    wait: Duration,
    tries: u32,
}

impl Leaving {
    /// Sent once: nobody waits for the good-bye of an end that does not come back.
    pub(super) const fn last(leave: Leave, now: Instant) -> Self {
        Self { leave, next: now, wait: FIRST_WAIT, tries: MOST_TRIES - 1 }
    }
}

impl Reducer {
    pub(super) fn handle_closed(
        &mut self,
        now: Instant,
        packet: &ReducePacket<'_>,
    ) -> Result<(), Refused> {
        let closed = Closed::parse(packet).map_err(Refused::Malformed)?;
        self.for_generation(&closed.address)?;
        self.heard(now);
        self.leaving = None;
        let culprit = (closed.culprit != ALL).then_some(closed.culprit);
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
    fn close(&mut self, now: Instant, closing: Closing) {
        let Some(generation) = &mut self.generation else { return };
        let number = generation.address.generation;
        if generation.closing.is_some_and(|before| before.operation <= closing.operation) {
            return self.finish_closing(now);
        }
        generation.closing = Some(closing);
        let keeps = generation.open.partition_point(|open| open.at.number < closing.operation);
        let later = generation.open.split_off(keeps);
        let end = later.front().map_or(generation.next_block, |open| open.at.first);
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
        self.standing = Standing::Joining { here: 0, workers: self.config.workers };
        let (reason, culprit) = (closing.reason, closing.culprit);
        let event = WorkerEvent::GenerationClosed { generation: number, reason, culprit };
        self.events.push_back(event);
        self.finish_closing(now);
    }

    /// Operations of a generation that ends begin again or fail. Those that wait already came
    /// later.
    fn settle(&mut self, now: Instant, later: VecDeque<Open>, closing: Closing) {
        let waited = core::mem::take(&mut self.waiting);
        let failure = closing.failure();
        for mut open in later {
            if open.at.number >= closing.again_from && open.undo() {
                self.counts.operations_again += 1;
                self.waiting.push_back(open);
            } else {
                self.fail(now, [open], failure);
            }
        }
        for open in waited {
            // It was to begin again after an earlier closing, or has not begun.
            if open.has_place() && closing.again_from == u32::MAX {
                self.fail(now, [open], failure);
            } else {
                self.waiting.push_back(open);
            }
        }
    }

    /// Joins again once nothing more is to be done in the generation.
    pub(super) fn finish_closing(&mut self, now: Instant) {
        let Some(generation) = self.generation.take_if(|generation| generation.is_drained()) else {
            return;
        };
        let Some(closing) = generation.closing else { return };
        // This end has not begun the operation that failed at the others.
        let fails = generation.next_operation == closing.operation
            && closing.again_from > closing.operation
            && closing.reason != Reason::Unknown
            && !closing.is_own;
        self.doomed = fails.then(|| closing.failure());
        let is_elastic = self.config.workers == 0;
        let number = generation.address.generation;
        self.again = (!closing.is_own && closing.reason != Reason::Unknown).then_some(Again {
            generation: number,
            closing,
            is_elastic,
        });
        self.abandon(&generation);
        self.begin_to_join(now, number);
    }

    /// This end leaves its generation, and joins again. The operation with that number ends with
    /// the failure.
    pub(super) fn leave_generation(&mut self, now: Instant, number: u32, failure: Failure) {
        let Some(generation) = &mut self.generation else { return };
        let address = generation.address;
        let at = generation.open.iter().position(|open| open.at.number == number);
        let given_up = at.and_then(|at| generation.open.remove(at));
        let first = given_up.as_ref().map(|open| open.at.first);
        self.fail(now, given_up, failure);
        let leave = Leave { address, operation: number };
        self.leaving = Some(Leaving { leave, next: now, wait: FIRST_WAIT, tries: 0 });
        let own = Closing {
            operation: number,
            reason: Reason::Left,
            culprit: Some(address.rank),
            again_from: u32::MAX,
            is_own: true,
        };
        if let (Some(generation), Some(first)) = (&mut self.generation, first) {
            generation.next_block = generation.next_block.min(first);
        }
        self.close(now, own);
    }

    /// What the generation still had is given up.
    pub(super) fn abandon(&mut self, generation: &super::generation::Generation) {
        self.counts.early_discarded += generation.early.len() as u64;
        self.counts.in_flight = 0;
        self.window.forget();
    }

    /// When the good-bye is sent next.
    pub(super) fn leaves_at(&self) -> Option<Instant> {
        self.leaving.map(|leaving| leaving.next)
    }

    pub(super) fn emit_leave(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let leaving = self.leaving.as_mut().filter(|leaving| leaving.next <= now)?;
        if leaving.tries == MOST_TRIES {
            return None;
        }
        leaving.tries += 1;
        leaving.next = now + leaving.wait;
        leaving.wait *= 2;
        let leave = leaving.leave;
        if self.standing == Standing::Left {
            self.leaving = None;
        }
        self.counts.leaves += 1;
        Some(leave.emit(buf))
    }

    /// A good-bye that nobody answers is repeated only so often.
    pub(super) fn repeat_leave(&mut self, now: Instant) {
        if self.leaving.is_some_and(|leaving| leaving.tries == MOST_TRIES && leaving.next <= now) {
            self.leaving = None;
        }
    }
}
