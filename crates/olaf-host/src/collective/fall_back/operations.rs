//! Operations: their numbers, the lanes that are saved for a second beginning, and how each one ends, once.

use super::super::{
    Buffer, Collective, Done, Failure, Label, Operation, OperationId, Reducer, Reduction, Sum,
};
use super::kept::{End, Kind, Outcome, copy_into};
use super::meeting::Standing;
use super::{At, FAREWELL, FallBack, NoWay, Off, State};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::reduce::{LaneType, Reason};

/// Lanes of the farewell. Programs hardly have a minimum of 13 bfloat16: so a worker that closes too early is noticed.
const FAREWELL_LANES: usize = 13;

/// An operation that has begun and not ended.
#[derive(Debug)]
pub(super) struct Open {
    kind: Kind,
    accepts_partial: bool,
    label: Label,
    began: Instant,
    /// The program's memory, while the operation is at no switch.
    buffer: Option<Box<dyn Buffer>>,
    /// This worker's lanes, over which results are written. Its memory is that of the result afterwards.
    saved: Vec<u8>,
    /// The lanes of a broadcast's root are the result.
    is_result: bool,
    is_farewell: bool,
}

impl Open {
    fn new(now: Instant, operation: &Operation) -> Self {
        let &Operation { lane_type, reduction, accepts_partial, label, ref buffer } = operation;
        let kind = Kind { lane_type, reduction, bytes: buffer.bytes().len() };
        Self {
            kind,
            accepts_partial,
            label,
            began: now,
            buffer: None,
            saved: Vec::new(),
            is_result: false,
            is_farewell: false,
        }
    }

    pub(super) const fn began(&self) -> Instant {
        self.began
    }

    /// The operation as it was when it began.
    fn again(&mut self) -> Option<Operation> {
        let mut buffer = self.buffer.take()?;
        let lanes = buffer.bytes_mut();
        if let Some(saved) = self.saved.get(..lanes.len()) {
            lanes.copy_from_slice(saved);
        }
        self.saved = Vec::new();
        let Self { kind: Kind { lane_type, reduction, .. }, accepts_partial, label, .. } = *self;
        Some(Operation { lane_type, reduction, buffer, accepts_partial, label })
    }
}

impl FallBack {
    pub(super) fn begin_next(
        &mut self,
        now: Instant,
        operation: Operation,
    ) -> Result<OperationId, (Failure, Operation)> {
        let number = self.begun;
        let failure = match self.at() {
            At::Closed => Some(Failure::NotJoined),
            At::Failed => self.left_because,
            At::First | At::Moving | At::Second => None,
        };
        if let Some(failure) = failure {
            return Err((failure, operation));
        }
        let mut open = Open::new(now, &operation);
        if let Some(outcome) = self.given.remove(&number) {
            open.buffer = Some(operation.buffer);
            self.open.insert(number, open);
            self.take(now, number, &outcome);
        } else if self.is_moving() {
            // Nothing has been written to its lanes.
            open.buffer = Some(operation.buffer);
            self.open.insert(number, open);
        } else {
            if matches!(self.state, State::First) {
                self.save(&mut open, operation.buffer.bytes());
            }
            let id = self.present_mut().begin(now, operation)?;
            self.at_end.insert(id, number);
            self.open.insert(number, open);
        }
        self.begun += 1;
        Ok(OperationId(number))
    }

    /// Saves this worker's lanes, where they matter, and has memory for the result otherwise.
    fn save(&mut self, open: &mut Open, lanes: &[u8]) {
        let rank = self.place.map(|place| place.rank);
        match open.kind.reduction {
            Reduction::Broadcast { root } if rank.is_some_and(|rank| rank != root) => {
                open.saved = self.kept.memory(lanes.len());
            }
            reduction => {
                open.saved = self.kept.copy(lanes);
                open.is_result =
                    rank.is_some_and(|root| reduction == Reduction::Broadcast { root });
            }
        }
    }

    /// This last operation ends when all workers have begun it, and they begin it when they have all results. None where
    /// nobody can lack a result of this worker.
    pub(super) fn begin_farewell(&mut self, now: Instant) -> Option<OperationId> {
        let may_give =
            (matches!(self.state, State::First) && self.off.is_none()) || self.is_moving();
        let others = self.place.is_some_and(|place| place.workers > 1);
        if !may_give || !others || self.begun == 0 || !self.open.is_empty() {
            return None;
        }
        self.patience = FAREWELL;
        let operation = Operation {
            lane_type: LaneType::Bf16,
            reduction: Reduction::Min,
            buffer: Box::new(vec![0; 2 * FAREWELL_LANES]),
            accepts_partial: false,
            label: Label::default(),
        };
        let id = self.begin_next(now, operation).ok()?;
        if let Some(open) = self.open.get_mut(&id.0) {
            open.is_farewell = true;
        }
        Some(id)
    }

    pub(super) fn ended_at_first(&mut self, now: Instant, done: Done) {
        let Done { id, outcome, buffer, .. } = done;
        let Some(number) = self.at_end.remove(&id) else { return };
        let Some(open) = self.open.get_mut(&number) else { return };
        open.buffer = Some(buffer);
        match outcome {
            outcome if End::of(outcome).is_some() => self.keep(number, outcome),
            Err(Failure::TimedOut) => {
                self.off = Some(Off::GivenUp);
            }
            Err(failure) => {
                self.move_after(now, failure);
                if self.is_moving() {
                    return;
                }
            }
            Ok(_) => {}
        }
        self.end(now, number, outcome);
    }

    /// An operation of the program has ended at the second switch.
    pub(super) fn ended(&mut self, now: Instant, done: Done) {
        let Some(number) = self.at_end.remove(&done.id) else { return };
        let Some(open) = self.open.get_mut(&number) else { return };
        open.buffer = Some(done.buffer);
        self.end(now, number, done.outcome);
    }

    /// Another worker may lack this result.
    fn keep(&mut self, number: u64, outcome: Result<Sum, Failure>) {
        if !matches!(self.state, State::First) && !self.is_moving() {
            return;
        }
        let Some((open, end)) = self.open.get_mut(&number).zip(End::of(outcome)) else { return };
        let mut lanes = core::mem::take(&mut open.saved);
        match &open.buffer {
            Some(buffer) if outcome.is_ok() && !open.is_result => {
                copy_into(&mut lanes, buffer.bytes());
            }
            _ if outcome.is_ok() => {}
            _ => lanes = Vec::new(),
        }
        let first = &self.first;
        self.kept.add(number, Outcome { kind: open.kind, end, lanes }, || first.held());
    }

    /// The operation ends, for the program, too.
    fn end(&mut self, now: Instant, number: u64, outcome: Result<Sum, Failure>) {
        let Some(open) = self.open.remove(&number) else { return };
        let took = now.since(open.began);
        let buffer = open.buffer.unwrap_or_else(|| Box::new(Vec::new()));
        self.ended.push_back(Done { id: OperationId(number), outcome, buffer, took });
    }

    /// The operation ends with the result of another worker.
    fn take(&mut self, now: Instant, number: u64, outcome: &Outcome) {
        let Some(open) = self.open.get_mut(&number) else { return };
        if outcome.kind != open.kind {
            let mismatch = Failure::Closed { reason: Reason::Mismatch, culprit: None };
            return self.end(now, number, Err(mismatch));
        }
        let ended = outcome.end.outcome(open.accepts_partial);
        if let (Ok(_), Some(buffer)) = (ended, &mut open.buffer) {
            let lanes = buffer.bytes_mut();
            let bytes = lanes.len();
            lanes.copy_from_slice(&outcome.lanes[..bytes]);
        }
        self.end(now, number, ended);
    }

    /// Open operations end with the results that were given, or begin again at the second switch, in their order.
    pub(super) fn begin_again(&mut self, now: Instant) {
        let numbers: Vec<u64> = self.open.keys().copied().collect();
        for number in numbers {
            if let Some(outcome) = self.given.remove(&number) {
                self.take(now, number, &outcome);
                continue;
            }
            let Some(open) = self.open.get_mut(&number) else { continue };
            if open.is_farewell {
                // All have met: nobody lacks a result of this worker.
                let workers = self.place.map_or(0, |place| place.workers);
                let all = Sum { contributors: workers, expected: workers, not_finite: false };
                self.end(now, number, Ok(all));
                continue;
            }
            let Some(operation) = open.again() else { continue };
            self.counts.again += 1;
            match self.present_mut().begin(now, operation) {
                Ok(id) => {
                    self.at_end.insert(id, number);
                }
                Err((failure, operation)) => {
                    if let Some(open) = self.open.get_mut(&number) {
                        open.buffer = Some(operation.buffer);
                    }
                    self.end(now, number, Err(failure));
                }
            }
        }
    }

    /// All operations that are at no switch end with this failure.
    pub(super) fn fail_open(&mut self, now: Instant, failure: Failure) {
        let at_none = self.open.iter().filter(|(_, open)| open.buffer.is_some());
        let numbers: Vec<u64> = at_none.map(|(number, _)| *number).collect();
        numbers.into_iter().for_each(|number| self.end(now, number, Err(failure)));
    }

    /// The program gives an operation up.
    pub(super) fn end_early(&mut self, now: Instant, number: u64) {
        let Some(open) = self.open.get(&number) else { return };
        if open.buffer.is_some() {
            // It moves. The others would wait for it, or sum it with the next one.
            self.off = Some(Off::GivenUp);
            self.end(now, number, Err(Failure::TimedOut));
            return self.cannot_go_on(now, NoWay::Off(Off::GivenUp));
        }
        let at = self.at_end.iter().find(|(_, its)| **its == number).map(|(id, _)| *id);
        if let Some(id) = at {
            self.present_mut().give_up(now, id);
        }
    }

    /// Since when an operation waits.
    pub(super) fn oldest_began(&self) -> Option<Instant> {
        self.open.values().map(Open::began).min()
    }

    pub(super) fn standing_in_meeting(&self) -> Option<Standing> {
        let place = self.place?;
        let open = self.open.keys().copied().collect();
        Some(Standing { rank: place.rank, run: place.run, begun: self.begun, open })
    }

    fn present_mut(&mut self) -> &mut Reducer {
        self.second.as_mut().unwrap_or(&mut self.first)
    }

    /// How long the present wait has lasted.
    pub(super) fn waited(&self, now: Instant) -> Duration {
        now.since(self.moved_at)
    }
}
