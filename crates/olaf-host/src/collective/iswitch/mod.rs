//! The worker's end of iSwitch (`docs/design/030-iswitch.md`).
//!
//! | file | what it decides |
//! |---|---|
//! | `joining` | how the end gets into a generation, and out of it |
//! | `calls` | that all workers call the same |
//! | `generation`, `operations` | what is open, sent and held |
//! | `incoming` | what a message from the switch changes |
//! | `outgoing` | what is sent next, and when results are asked for |
//! | `pipeline` | Algorithm 1: the threads LGC and LWU of asynchronous training |
//! | `vectors` | the vectors of this worker for sums of asynchronous training |

mod calls;
mod generation;
mod incoming;
mod joining;
mod operations;
mod options;
mod outgoing;
pub mod pipeline;
mod statistics;
#[cfg(test)]
mod tests;
mod vectors;

pub use options::Options;
pub use statistics::WorkerStatistics;

use super::member::{self, Events, Joining, Leaving, Ledger, Progress, Quiet};
use super::path::Path;
use super::window::{Fixed, Window};
use super::{Buffer, Collective, Commit, Config, Done, Failure, Operation, OperationId, Standing};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use generation::Generation;
use olaf_engine::keys::ConfigError;
use olaf_engine::report::{self, Report};
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_wire::iswitch::{Leave, MAX_WORKERS};
use olaf_wire::reduce::Clash;
use operations::Open;
use statistics::Counts;

/// Why this end wants its generation to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Halt,
    /// This end calls another operation than the others.
    Mismatch,
    Reset,
}

/// One worker.
pub struct Worker {
    config: Config,
    own: Options,
    joining: Joining,
    /// The last generation.
    last_generation: Option<u8>,
    leaving: Leaving<Leave>,
    /// The one that this end is in, or whose last operations it finishes.
    generation: Option<Generation>,
    /// Repeated until the generation ends.
    wish: Option<(Wish, Instant)>,
    /// Operations that wait for the next generation, in order.
    waiting: VecDeque<Open>,
    progress: Progress,
    /// The last operation of the last generation was no pipelined sum, and none has begun since.
    agreed_before: bool,
    ledger: Ledger,
    window: Box<dyn Window>,
    path: Path,
    quiet: Quiet,
    other_version: Option<u8>,
    counts: Counts,
    events: Events,
    /// What the workers called when they last differed.
    clash: Option<Clash>,
    /// What the worker called that has ended the last generation; 0: it did not say.
    named_calls: u8,
}

impl Worker {
    /// An end that has not joined.
    ///
    /// # Errors
    /// The key that cannot be, and why: `workers` must be from 1 to 2,047, and a packet must hold a float.
    pub fn new(config: Config, own: Options) -> Result<Self, ConfigError> {
        let own = own.check()?;
        if !(1..=MAX_WORKERS).contains(&config.workers) {
            return Err(ConfigError { key: "workers", allowed: "must be from 1 to 2047" });
        }
        if own.threshold.is_some_and(|h| h > config.workers) {
            return Err(ConfigError { key: "threshold", allowed: "must be at most `workers`" });
        }
        if config.datagram_bytes < 12 {
            return Err(ConfigError { key: "datagram_bytes", allowed: "must be at least 12" });
        }
        Ok(Self {
            own,
            joining: Joining::default(),
            last_generation: None,
            leaving: Leaving::default(),
            generation: None,
            wish: None,
            waiting: VecDeque::new(),
            progress: Progress::default(),
            agreed_before: false,
            ledger: Ledger::default(),
            window: Box::new(Fixed::new(1)),
            path: Path::default(),
            quiet: Quiet::default(),
            other_version: None,
            counts: Counts::default(),
            events: Events::default(),
            clash: None,
            named_calls: 0,
            config,
        })
    }

    /// Operations that have begun and not ended.
    #[must_use]
    pub fn open_operations(&self) -> usize {
        self.waiting.len() + self.generation.as_ref().map_or(0, |generation| generation.open.len())
    }

    /// Reset: clears the job's buffers and counters on the switch. Open operations fail at all workers, and
    /// all workers join again.
    pub fn reset(&mut self, now: Instant) {
        self.wish_for(now, Wish::Reset);
    }

    /// Halt: suspends the job on all workers. Open operations fail at all workers, and all workers join again.
    pub fn halt(&mut self, now: Instant) {
        self.wish_for(now, Wish::Halt);
    }

    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> WorkerStatistics {
        statistics::of(self, now)
    }

    fn wish_for(&mut self, now: Instant, wish: Wish) {
        let generation = self.generation.as_mut().filter(|generation| !generation.has_ended);
        if let Some(generation) = generation {
            generation.is_closing = true;
            self.wish.get_or_insert((wish, now));
        }
    }

    /// Ends operations with the same failure.
    fn fail(&mut self, now: Instant, open: impl IntoIterator<Item = Open>, failure: Failure) {
        for open in open {
            self.ledger.end(open.end(now, Err(failure)));
        }
    }

    /// Operations end that have no packets in a generation.
    fn fail_unplaced(
        &mut self,
        now: Instant,
        open: impl IntoIterator<Item = Open>,
        failure: Failure,
    ) {
        for open in open {
            self.progress.begin(open.counts().into());
            self.fail(now, [open], failure);
        }
    }

    /// Gives an operation its packets in the generation, or lets it wait for the next one.
    fn place(&mut self, now: Instant, mut open: Open) {
        // Pipelined sums fail, too, and do not count.
        let counts = open.counts();
        let doomed =
            if counts { self.progress.take_doomed() } else { self.progress.doomed().next() };
        if let Some(failure) = doomed {
            self.note_clash(open.call());
            return self.fail_unplaced(now, [open], failure);
        }
        if self.generation.as_ref().is_some_and(Generation::has_more_sums) {
            return self.place_after_end(now, open);
        }
        let is_sum = open.iteration().is_some();
        // A training agrees on its weights before the first sum. If the generation of the agreement has ended, so has the
        // training, at all workers.
        let comes_late = is_sum && self.agreed_before;
        self.agreed_before &= is_sum;
        let generation = self.generation.as_mut();
        let generation = generation.filter(|one| !one.is_closing && !comes_late);
        let Some(generation) = generation else {
            if is_sum {
                // The operations before it were in a generation that ends or has ended.
                let failure = self.progress.doomed().why();
                return self.fail(now, [open], failure);
            }
            return self.waiting.push_back(open);
        };
        generation.begun += u32::from(counts);
        self.progress.begin(counts.into());
        let who = (generation.rank, generation.workers);
        let last = generation.call;
        match open.place(generation.next_index(), generation.packet_floats, who, last) {
            Ok(()) => generation.push(now, open),
            Err(failure) => self.fail(now, [open], failure),
        }
        self.end_at_refused(now);
    }

    /// An operation that this end has refused ends the generation, once those before it have ended: nothing of it is summed,
    /// and the switch names this end.
    fn end_at_refused(&mut self, now: Instant) {
        let first = self.generation.iter().find_map(|generation| generation.open.front());
        if first.is_some_and(|open| open.refused().is_some()) {
            self.wish_for(now, Wish::Mismatch);
        }
    }

    /// An operation begins in a generation that has ended, and whose pipelined sums this end has not all begun.
    fn place_after_end(&mut self, now: Instant, mut open: Open) {
        let Some(generation) = &mut self.generation else { return };
        let Some((end, failure)) = generation.halted else { return };
        let who = (generation.rank, generation.workers);
        let is_sum = open.iteration().is_some();
        let last = generation.call;
        let placed = open.place(generation.next_index(), generation.packet_floats, who, last);
        if is_sum && placed.is_ok() && open.end <= end {
            generation.push(now, open);
        } else if is_sum {
            // The first sum that has no result at the other workers either.
            generation.forgo_sums();
            self.fail(now, [open], failure);
            self.finish(now);
        } else {
            generation.forgo_sums();
            self.waiting.push_back(open);
            self.finish(now);
        }
    }
}

impl Collective for Worker {
    fn join(&mut self, now: Instant) {
        if !self.joining.standing().is_part() {
            self.begin_to_join(now);
        }
    }

    fn leave(&mut self, now: Instant) {
        self.leave_job(now);
    }

    fn standing(&self) -> Standing {
        self.joining.standing()
    }

    fn other_version(&self) -> Option<u8> {
        self.other_version
    }

    fn clash(&self) -> Option<Clash> {
        self.clash
    }

    fn begin(
        &mut self,
        now: Instant,
        operation: Operation,
    ) -> Result<OperationId, (Failure, Operation)> {
        if let Some(failure) = self.joining.standing().refusal() {
            return Err((failure, operation));
        }
        let why = Open::refusal(&operation);
        let operation = self.ledger.admit(operation, why);
        let id = self.ledger.begin();
        let open = Open::new(id, now, operation);
        // Operations fail in a generation alone: before it begins, they wait for what it says.
        if self.generation.is_some() || open.iteration().is_some() {
            self.place(now, open);
        } else {
            self.waiting.push_back(open);
        }
        Ok(id)
    }

    fn contribute(
        &mut self,
        _now: Instant,
        began: u64,
        bound: u64,
        vector: Box<dyn Buffer>,
    ) -> Result<Commit, Failure> {
        match self.joining.standing().refusal() {
            Some(failure) => Err(failure),
            None => self.take_vector(began, bound, vector),
        }
    }

    fn end_pipeline(&mut self, now: Instant) {
        // The sums of a generation that has ended failed with it. The next one has none of theirs.
        let of_training = self.generation.as_mut().is_some_and(Generation::forgo_sums);
        if of_training {
            self.halt(now);
            self.finish(now);
        }
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.ledger.poll()
    }

    fn give_up(&mut self, now: Instant, operation: OperationId) {
        if let Some(at) = self.waiting.iter().position(|open| open.id == operation) {
            // Those behind it would take the place of others' operations.
            let later = self.waiting.split_off(at);
            return self.fail_unplaced(now, later, Failure::TimedOut);
        }
        let Some(generation) = &mut self.generation else { return };
        let of = generation.open.iter().find(|open| open.id == operation);
        let Some(first) = of.map(|open| open.first) else { return };
        let given_up = generation.cut(first);
        self.fail(now, given_up, Failure::TimedOut);
        self.wish_for(now, Wish::Halt);
        self.finish(now);
    }
}

impl Engine for Worker {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        match self.take_packet(now, from, bytes) {
            Ok(()) => Verdict::Absorb,
            Err(refused) => {
                *self.counts.refused.entry(refused.name()).or_default() += 1;
                Verdict::refused(refused)
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, _port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.emit(now, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        member::timeout([self.sends_at()], self.falls_silent_at())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.falls_silent_at().is_some_and(|at| at <= now) {
            self.switch_is_silent(now);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let what = self.events.poll()?;
        Some(Event::Worker(self.config.job, self.config.switch, what))
    }

    /// An end talks to its switch alone.
    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        keep(self.config.switch);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(now), to);
    }
}
