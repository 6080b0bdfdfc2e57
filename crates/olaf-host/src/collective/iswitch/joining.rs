//! How an end gets into a generation, and out of it.

use super::generation::Generation;
use super::{Open, Worker};
use crate::collective::path::micros;
use crate::collective::window::{Aimd, Fixed, Window};
use crate::collective::{Failure, Standing};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::{Instant, Refused, WorkerEvent};
use olaf_wire::iswitch::{ANY, Ack, Admission, Halt, Join, Leave, Outcome, SEG, Sender};
use olaf_wire::reduce::WelcomeCode;

/// A join is repeated after this time, then after twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// The first windows of all workers together have this many bytes: a switch's socket takes as many
/// without a loss.
const FIRST_BYTES_OF_ALL: u32 = 256 << 10;
/// The first window of a worker has at most this many bytes.
const FIRST_BYTES: u32 = 64 << 10;

/// Joins on their way.
#[derive(Debug, Default)]
pub(super) struct Joining {
    /// When the next leaves.
    pub(super) next: Instant,
    wait: Duration,
    /// The last generation.
    last: Option<u8>,
    /// The number with which the end proves its address; 0: none asked for.
    nonce: u32,
}

impl Worker {
    pub(super) fn begin_to_join(&mut self, now: Instant) {
        (self.joining.next, self.joining.wait) = (now, FIRST_WAIT);
        self.standing = Standing::Joining { here: 0, workers: self.config.workers };
    }

    /// The next join, where its time has come.
    pub(super) fn next_join(&mut self, now: Instant) -> Option<Join> {
        let is_joining = matches!(self.standing, Standing::Joining { .. });
        if !is_joining || self.generation.is_some() || self.joining.next > now {
            return None;
        }
        self.joining.next = now + self.joining.wait;
        self.joining.wait = (self.joining.wait * 2).min(LONGEST_WAIT);
        self.counts.joins += 1;
        let of_path = (self.config.datagram_bytes - SEG as u32) / 4;
        let wanted = self.config.options.block_bytes.map(|bytes| (bytes / 4).max(1));
        let wanted = wanted.or(self.own.packet_floats).unwrap_or(u32::MAX);
        Some(Join {
            generation: self.joining.last.unwrap_or(0),
            sender: Sender::Worker,
            job: self.config.job,
            session: self.config.session,
            rank: self.config.rank.unwrap_or(ANY),
            workers: self.config.workers,
            contributors: 1,
            packet_floats: of_path.min(wanted),
            operations: self.progress.begun().unwrap_or(ANY),
            sent_at_us: micros(now),
            nonce: self.joining.nonce,
        })
    }

    pub(super) fn handle_join_answer(
        &mut self,
        now: Instant,
        ack: &Ack,
        admission: &Admission,
    ) -> Result<(), Refused> {
        if admission.session != self.config.session {
            return Err(Refused::NotForMe);
        }
        if !matches!(self.standing, Standing::Joining { .. }) || self.generation.is_some() {
            return Err(Refused::Duplicate);
        }
        let code = ack.outcome.of_join();
        match ack.outcome {
            Outcome::Success => self.enter(now, ack.generation, admission),
            Outcome::Waiting => {
                let Admission { here, workers, .. } = *admission;
                self.standing = Standing::Joining { here, workers };
                self.prove_address(now, admission.nonce);
                Ok(())
            }
            Outcome::Full | Outcome::Refused | Outcome::OtherVersion => {
                self.turned_away(now, code);
                Ok(())
            }
        }
    }

    /// The switch lets this end in once it joins with that number: at once. 0: nothing is left to prove.
    fn prove_address(&mut self, now: Instant, nonce: u32) {
        if nonce != 0 && nonce != self.joining.nonce {
            self.joining.nonce = nonce;
            (self.joining.next, self.joining.wait) = (now, FIRST_WAIT);
        }
    }

    /// The switch turned this end away.
    pub(super) fn turned_away(&mut self, now: Instant, code: WelcomeCode) {
        self.standing = Standing::Refused(code);
        self.tell(WorkerEvent::JoinRefused(code));
        let open = self.generation.take().map(|generation| generation.open).unwrap_or_default();
        self.fail(now, open, Failure::Refused(code));
        let waiting = core::mem::take(&mut self.waiting);
        self.fail_unplaced(now, waiting, Failure::Refused(code));
        (self.wish, self.waiting_since) = (None, None);
    }

    /// The generation begins.
    fn enter(&mut self, now: Instant, number: u8, admission: &Admission) -> Result<(), Refused> {
        let can_be = admission.rank < admission.workers
            && admission.workers == self.config.workers
            && admission.slots > 0
            && (1..=self.most_floats()).contains(&admission.packet_floats);
        if !can_be {
            return Err(Refused::Mismatch);
        }
        if self.joining.last == Some(number) {
            // The answer is older than the end of that generation.
            return Err(Refused::Duplicate);
        }
        let sets_h = self.own.threshold.is_some();
        let generation = Generation::new(now, number, admission, sets_h);
        self.window = window(&self.config, admission);
        let (rank, workers) = (admission.rank, admission.workers);
        let number = u32::from(number);
        self.generation = Some(generation);
        self.standing = Standing::In { generation: number, rank, workers };
        self.counts.generations += 1;
        self.tell(WorkerEvent::InGeneration { generation: number, rank, workers });
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
        self.window.forget();
        self.progress.generation_ended(failure, false);
        self.tell(WorkerEvent::GenerationClosed { generation: number, operation, reason, culprit });
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
            match outcome {
                Ok(_) => self.counts.operations_done += 1,
                Err(_) => self.counts.operations_failed += 1,
            }
            self.done.push_back(open.end(now, outcome));
        }
        if generation.has_ended && generation.open.is_empty() && !generation.has_more_sums() {
            self.joining.last = Some(generation.number);
            self.agreed_before = generation.ends_without_sum();
            self.generation = None;
            self.begin_to_join(now);
        }
    }

    /// When the switch counts as silent.
    pub(super) fn falls_silent_at(&self) -> Option<Instant> {
        let since = self.waiting_since?;
        let is_part = matches!(self.standing, Standing::Joining { .. } | Standing::In { .. });
        is_part.then(|| since + self.config.options.silence)
    }

    /// The switch did not answer for the configured time.
    pub(super) fn switch_is_silent(&mut self, now: Instant) {
        self.tell(WorkerEvent::SwitchSilent);
        if let Some(generation) = self.generation.take() {
            self.joining.last = Some(generation.number);
            self.agreed_before = generation.ends_without_sum();
            self.progress.generation_ended(Failure::SwitchSilent, false);
            self.fail(now, generation.open, Failure::SwitchSilent);
        }
        let waiting = core::mem::take(&mut self.waiting);
        self.fail_unplaced(now, waiting, Failure::SwitchSilent);
        (self.wish, self.waiting_since) = (None, None);
        self.window.forget();
        self.begin_to_join(now);
    }

    pub(super) fn leave_job(&mut self, now: Instant) {
        let (job, session) = (self.config.job, self.config.session);
        let was_part = matches!(self.standing, Standing::Joining { .. } | Standing::In { .. });
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
        self.standing = Standing::Left;
        (self.wish, self.waiting_since) = (None, None);
        self.joining.last = None;
        self.agreed_before = false;
        self.progress.forget();
        self.window.forget();
    }
}

/// The window of a generation.
fn window(config: &crate::collective::Config, admission: &Admission) -> Box<dyn Window> {
    let slots = admission.slots;
    if let Some(packets) = config.options.window_blocks {
        return Box::new(Fixed::new(packets.min(slots)));
    }
    let bytes = (FIRST_BYTES_OF_ALL / admission.workers.max(1)).min(FIRST_BYTES);
    let packet = SEG as u32 + 4 * admission.packet_floats;
    Box::new(Aimd::new((bytes / packet).max(2), slots))
}
