//! How an end gets into a generation, and out of it.

use super::generation::Generation;
use super::{Open, Worker};
use crate::collective::{Failure, window};
use alloc::collections::VecDeque;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::Call;
use olaf_wire::iswitch::{
    ANY, Ack, Admission, Halt, Join, Leave, Outcome, SEG, Sender, program_of,
};
use olaf_wire::reduce::{Called, Clash, WelcomeCode};

impl Worker {
    pub(super) fn begin_to_join(&mut self, now: Instant) {
        self.joining.begin(now, self.config.workers);
        self.progress.joins_anew();
    }

    /// The next join, where its time has come.
    pub(super) fn next_join(&mut self, now: Instant) -> Option<Join> {
        self.joining.at().filter(|at| *at <= now)?;
        self.joining.sent(now);
        self.counts.joins += 1;
        let of_path = (self.config.datagram_bytes - SEG as u32) / 4;
        let wanted = self.config.options.block_bytes.map(|bytes| (bytes / 4).max(1));
        let wanted = wanted.or(self.own.packet_floats).unwrap_or(u32::MAX);
        Some(Join {
            generation: self.last_generation.unwrap_or(0),
            sender: Sender::Worker,
            job: self.config.job,
            session: self.config.session,
            rank: self.config.rank.unwrap_or(ANY),
            workers: self.config.workers,
            contributors: 1,
            packet_floats: of_path.min(wanted),
            operations: self.progress.tell(self.progress.begun()).unwrap_or(ANY),
            program: program_of(self.config.options.program),
            nonce: self.joining.nonce(),
        })
    }

    pub(super) fn handle_join_answer(
        &mut self,
        now: Instant,
        ack: &Ack,
        admission: &Admission,
    ) -> Result<(), Refused> {
        if admission.session != self.config.session {
            // It is for an earlier incarnation of this worker, or for another worker of this address.
            return Err(Refused::NotForMe);
        }
        if !self.joining.standing().is_joining() {
            // A repetition of the join was answered before, or this end has left.
            return Err(Refused::Duplicate);
        }
        let code = ack.outcome.of_join();
        match ack.outcome {
            Outcome::Success => self.enter(now, ack.generation, admission),
            Outcome::Waiting => {
                let Admission { here, workers, .. } = *admission;
                self.joining.heard(now, here, workers, admission.nonce);
                Ok(())
            }
            Outcome::Full
            | Outcome::Refused
            | Outcome::OtherVersion
            | Outcome::OtherProgram
            | Outcome::RankTaken
            | Outcome::Contested => {
                self.turned_away(now, code);
                Ok(())
            }
        }
    }

    /// The switch turned this end away.
    pub(super) fn turned_away(&mut self, now: Instant, code: WelcomeCode) {
        self.joining.turned_away(code);
        self.events.tell(WorkerEvent::JoinRefused(code));
        let open = self.generation.take().map(|generation| generation.open).unwrap_or_default();
        self.fail(now, open, Failure::Refused(code));
        let waiting = core::mem::take(&mut self.waiting);
        self.fail_unplaced(now, waiting, Failure::Refused(code));
        self.wish = None;
        self.quiet.excuse();
    }

    /// The generation begins.
    fn enter(&mut self, now: Instant, number: u8, admission: &Admission) -> Result<(), Refused> {
        let can_be = admission.rank < admission.workers
            && admission.workers == self.config.workers
            && admission.slots > 0
            && (1..=self.most_floats()).contains(&admission.packet_floats);
        if !can_be {
            // Its packets would not fit this end, or the switch takes it for another worker.
            return Err(Refused::Mismatch);
        }
        if self.last_generation == Some(number) {
            // The answer is older than the end of that generation.
            return Err(Refused::Duplicate);
        }
        let sets_h = self.own.threshold.is_some();
        let generation = Generation::new(now, number, admission, sets_h);
        let packet_bytes = SEG as u32 + 4 * admission.packet_floats;
        let Admission { workers, slots, .. } = *admission;
        let fixed = self.config.options.window_blocks;
        self.window = window::of_generation(fixed, workers, packet_bytes, slots);
        let rank = admission.rank;
        let number = u32::from(number);
        self.generation = Some(generation);
        self.joining.enter(number, rank, workers);
        self.counts.generations += 1;
        self.events.tell(WorkerEvent::InGeneration { generation: number, rank, workers });
        if self.progress.is_unheard(self.progress.begun(), admission.operations) {
            // The generation ends before this end has any operation there: those that wait begin in the next one.
            self.halt(now);
            return Ok(());
        }
        self.progress.align_anew(admission.operations);
        let waiting: VecDeque<Open> = core::mem::take(&mut self.waiting);
        for open in waiting {
            self.place(now, open);
        }
        Ok(())
    }

    fn most_floats(&self) -> u32 {
        (self.config.datagram_bytes - SEG as u32) / 4
    }

    /// Halt: the generation ends at a packet. What is before it ends with results.
    pub(super) fn handle_halt(&mut self, now: Instant, halt: &Halt) -> Result<(), Refused> {
        let generation = self.generation.as_mut();
        let generation = generation.filter(|generation| generation.number == halt.generation);
        let generation = generation.ok_or(Refused::OtherGeneration)?;
        if generation.has_ended {
            return Err(Refused::Duplicate);
        }
        let culprit = (halt.culprit < generation.workers).then_some(halt.culprit);
        let (reason, from) = (halt.reason, halt.index);
        let failure = Failure::Closed { reason, culprit };
        // The switch names who differs where no roll call did: it does not know what the workers call.
        let called = generation.open_of(from).and_then(|open| open.clash());
        self.clash = called.map(|(clash, _)| clash);
        self.named_calls = halt.calls;
        let own = generation.open_of(from).map(|open| open.call());
        generation.has_ended = true;
        generation.halted = Some((from, failure));
        generation.is_closing = true;
        generation.set_h_at = None;
        generation.ask_at = Some(now);
        let failed = generation.cut(from);
        let counted = failed.iter().filter(|open| open.counts()).count() as u32;
        let operation = generation.begun.saturating_sub(counted);
        let number = generation.number.into();
        self.wish = None;
        own.into_iter().for_each(|call| self.note_clash(call));
        self.window.forget();
        self.progress.generation_ended(failure, false);
        self.events.tell(WorkerEvent::GenerationClosed {
            generation: number,
            operation,
            reason,
            culprit,
        });
        self.fail(now, failed, failure);
        self.finish(now);
        Ok(())
    }

    /// Ends operations whose results are all here, in their order: while an earlier one may still fail, no worker
    /// may have finished a later one. Leaves a generation that has ended, after its last operation.
    pub(super) fn finish(&mut self, now: Instant) {
        let Some(generation) = &mut self.generation else { return };
        let workers = generation.workers;
        while generation.open.front().is_some_and(Open::is_complete) {
            let open = generation.open.pop_front().expect("it is at the front");
            let outcome = open.outcome(workers);
            self.ledger.end(open.end(now, outcome));
        }
        self.end_at_refused(now);
        let Some(generation) = &mut self.generation else { return };
        if generation.has_ended && generation.open.is_empty() && !generation.has_more_sums() {
            self.last_generation = Some(generation.number);
            self.agreed_before = generation.ends_without_sum();
            self.generation = None;
            self.begin_to_join(now);
        }
    }

    /// The worker that has ended the last generation has said what it calls. This end calls that.
    pub(super) fn note_clash(&mut self, own: Call) {
        if self.named_calls != 0 {
            let culprit = Called::of_floats(Call::from_narrow(self.named_calls), 0);
            self.clash = Some(Clash { culprit, others: Called::of_floats(own, 0) });
        }
    }

    /// When the switch counts as silent.
    pub(super) fn falls_silent_at(&self) -> Option<Instant> {
        let opens = self.generation.iter().filter_map(|generation| generation.open.front());
        let oldest = || self.waiting.front().into_iter().chain(opens).map(|open| open.began).min();
        self.quiet.falls_silent_at(self.config.options.silence, oldest)
    }

    /// The operations fail, and the end looks for the switch.
    pub(super) fn switch_is_silent(&mut self, now: Instant) {
        if self.quiet.fall_silent() {
            self.events.tell(WorkerEvent::SwitchSilent);
        }
        if let Some(generation) = self.generation.take() {
            self.last_generation = Some(generation.number);
            self.agreed_before = generation.ends_without_sum();
            self.progress.generation_ended(Failure::SwitchSilent, false);
            self.fail(now, generation.open, Failure::SwitchSilent);
            self.wish = None;
            self.window.forget();
            self.begin_to_join(now);
        }
        let silence = self.config.options.silence;
        let failed = self.quiet.take_overdue(now, silence, &mut self.waiting, |open| open.began);
        self.fail_unplaced(now, failed, Failure::SwitchSilent);
    }

    pub(super) fn leave_job(&mut self, now: Instant) {
        let (job, session) = (self.config.job, self.config.session);
        let was_part = self.joining.standing().is_part();
        let generation = self.generation.take();
        let number = generation.as_ref().map_or(0, |generation| generation.number);
        if was_part {
            self.leaving.begin(now, Leave { generation: number, job, session });
            self.counts.leaves += 1;
        }
        let open = generation.map(|generation| generation.open).unwrap_or_default();
        self.fail(now, open, Failure::NotJoined);
        let waiting = core::mem::take(&mut self.waiting);
        self.fail(now, waiting, Failure::NotJoined);
        self.joining.leave();
        self.wish = None;
        self.quiet.excuse();
        self.last_generation = None;
        self.agreed_before = false;
        self.progress.forget();
        self.window.forget();
    }
}
