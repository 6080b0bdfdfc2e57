//! How a term ends, and what becomes of its operations.

use super::Worker;
use super::operations::Open;
use crate::collective::{Collective, Failure, OperationId, Standing};
use alloc::collections::VecDeque;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::reduce::{Clash, Reason};
use olaf_wire::trio::{ANY, Closed, Gone, Leave, TrioPacket};

impl Worker {
    pub(super) fn leave_of_term(&self) -> Leave {
        let term = self.term.as_ref();
        Leave {
            job: u8::try_from(self.config.job.0).unwrap_or(u8::MAX),
            term: term.map_or(0, |term| term.number),
            source: term.map_or(ANY, |term| term.source),
            session: self.config.session,
            reason: Reason::Left,
        }
    }

    /// Leaves the job. Open operations fail.
    pub(super) fn leave_job(&mut self, now: Instant) {
        if self.standing() == Standing::Left {
            return;
        }
        self.leaving.begin(now, self.leave_of_term());
        if let Some(mut term) = self.term.take() {
            self.fail(now, core::mem::take(&mut term.open), Failure::NotJoined);
            self.counts.early_discarded += term.early.len() as u64;
        }
        let waiting = core::mem::take(&mut self.waiting);
        self.fail(now, waiting, Failure::NotJoined);
        self.joining.leave();
        (self.newest, self.last_term) = (0, 0);
        self.doomed.set(0);
        self.window.forget();
        self.quiet.excuse();
        self.asking.stop();
    }

    /// Gives an operation up: the term ends for all workers.
    pub(super) fn give_up_placed(&mut self, now: Instant, operation: OperationId, why: Failure) {
        let is_refused = matches!(why, Failure::NotFinite { .. });
        let reason = if is_refused { Reason::Refused } else { Reason::Left };
        let leave = Leave { reason, ..self.leave_of_term() };
        let Some(term) = &mut self.term else { return };
        let Some(at) = term.open.iter().position(|open| open.id == operation) else { return };
        let open = term.open.remove(at);
        let is_closed = term.closed.is_some();
        self.fail(now, open, why);
        if is_closed {
            self.finish_closing(now);
        } else {
            self.leaving.begin(now, leave);
        }
    }

    /// A leave should have ended the term, and the switch does not answer it. Perhaps its answer was lost. The end joins anew.
    pub(super) fn give_leaving_up(&mut self, now: Instant) {
        if self.leaving.gives_up(now) {
            self.end_term(now, Failure::SwitchSilent);
        }
    }

    /// The switch says that a term has ended.
    pub(super) fn handle_closed(
        &mut self,
        now: Instant,
        packet: &TrioPacket<'_>,
    ) -> Result<(), Refused> {
        let closed = Closed::parse(packet).map_err(Refused::Malformed)?;
        if self.leaving.last(|leave| leave.term == closed.term).is_some() {
            self.leaving.stop();
        }
        let Some(term) = self.term.as_mut().filter(|term| term.number == closed.term) else {
            return Err(Refused::OtherGeneration);
        };
        let is_unknown = closed.reason == Reason::Unknown;
        if term.closed.is_some() && !is_unknown {
            self.heard();
            return Ok(());
        }
        term.closed = Some(closed);
        if closed.reason == Reason::Mismatch {
            self.clash = Clash::of(closed.sides);
        }
        let culprit = (closed.culprit != ANY).then_some(u32::from(closed.culprit));
        let reason = closed.reason;
        let generation = closed.term;
        let operation = closed.generation.into();
        let (finished, failed): (VecDeque<_>, VecDeque<_>) = core::mem::take(&mut term.open)
            .into_iter()
            .partition(|open| !is_unknown && closed.finishes(open.generation));
        term.open = finished;
        self.heard();
        self.events.tell(WorkerEvent::GenerationClosed { generation, operation, reason, culprit });
        let failure = Failure::Closed { reason, culprit };
        self.doomed.because(failure);
        self.fail(now, failed, failure);
        self.finish_closing(now);
        Ok(())
    }

    /// Joins anew once the last operation of a term that has ended is finished.
    pub(super) fn finish_closing(&mut self, now: Instant) {
        let is_over = |term: &super::Term| term.closed.is_some() && term.open.is_empty();
        if self.term.as_ref().is_some_and(is_over) {
            let term = self.term.take();
            self.counts.early_discarded += term.map_or(0, |term| term.early.len() as u64);
            self.begin_to_join(now);
        }
    }

    /// The term is lost: its operations fail, and the end joins anew.
    pub(super) fn end_term(&mut self, now: Instant, failure: Failure) {
        if let Some(mut term) = self.term.take() {
            let open = core::mem::take(&mut term.open);
            self.counts.early_discarded += term.early.len() as u64;
            self.doomed.because(failure);
            self.fail(now, open, failure);
            self.begin_to_join(now);
        }
    }

    /// The results of a generation are kept no longer: this end was away for too long.
    pub(super) fn handle_gone(
        &mut self,
        now: Instant,
        packet: &TrioPacket<'_>,
    ) -> Result<(), Refused> {
        let gone = Gone::parse(packet).map_err(Refused::Malformed)?;
        if gone.session != self.config.session {
            return Err(Refused::NotForMe);
        }
        let Some(term) = self.term.as_mut().filter(|term| term.number == gone.term) else {
            return Err(Refused::OtherGeneration);
        };
        // Otherwise an old piece came again, of a block whose result is here.
        let lacks = |open: &Open| open.generation == gone.generation && open.lacks(gone.block);
        let at = term.open.iter().position(lacks).ok_or(Refused::Duplicate)?;
        let open = term.open.remove(at);
        let culprit = Some(u32::from(term.source));
        self.heard();
        self.fail(now, open, Failure::Closed { reason: Reason::Dead, culprit });
        self.finish_closing(now);
        self.place_all(now);
        Ok(())
    }
}
