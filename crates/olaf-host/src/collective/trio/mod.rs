//! The worker's end of Trio-ML (`docs/design/032-trio.md`).
//!
//! | file | what it decides |
//! |---|---|
//! | `joining` | how the end gets into a term |
//! | `closing` | how a term ends, and what becomes of its operations |
//! | `operations`, `early` | what is open, sent and held |
//! | `scaled` | how f32 become integers and back |
//! | `incoming` | what a message from the switch changes |
//! | `sending` | what is sent next |
//! | `missing` | when the end asks for results, and when the switch counts as silent |

mod closing;
mod early;
mod incoming;
mod joining;
mod missing;
mod operations;
mod options;
mod scaled;
mod sending;
mod statistics;
#[cfg(test)]
mod tests;

pub use options::Options;
pub use statistics::WorkerStatistics;

use super::member::{self, Doomed, Events, Joining, Leaving, Ledger, Quiet};
use super::path::Path;
use super::window::{Fixed, Window};
use super::{Collective, Config, Done, Failure, Operation, OperationId, Reduction, Standing};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use early::Early;
use missing::Asking;
use olaf_engine::keys::ConfigError;
use olaf_engine::report::{self, Report};
use olaf_engine::switch::NonFinite;
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_wire::reduce::{Clash, LaneType};
use olaf_wire::trio::{Closed, Leave};
use operations::Open;
use statistics::Counts;

/// Operations that may have blocks on their way. The switch tells twice as many apart.
const MOST_OPEN: usize = 32;

/// The time in which a job has the same workers.
#[derive(Debug)]
struct Term {
    number: u32,
    source: u8,
    workers: u8,
    gradients: usize,
    window: u64,
    /// The generation of the next operation, and the blocks before its first.
    next: u16,
    base: u64,
    open: VecDeque<Open>,
    early: Early,
    /// How it ended. The end then waits for the results of the operations that are finished.
    closed: Option<Closed>,
}

impl Term {
    /// Up to where results are held: a generation, its block, and the blocks before.
    fn holds(&self) -> (u16, u32, u64) {
        match self.open.front() {
            Some(open) => (open.generation, open.held, open.base + u64::from(open.held)),
            None => (self.next, 0, self.base),
        }
    }

    fn open_of(&mut self, generation: u16) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.generation == generation)
    }
}

/// One worker of Trio-ML.
pub struct Worker {
    config: Config,
    own: Options,
    gradients: u16,
    joining: Joining,
    /// The term in which the end was last; 0: none.
    last_term: u32,
    term: Option<Term>,
    /// Operations that wait for a place in a term, in order.
    waiting: VecDeque<Open>,
    doomed: Doomed,
    /// The newest generation that this end has begun.
    newest: u16,
    /// The same at the first hello since this end has been joining.
    told: Option<u16>,
    /// A term that this end left before it took part, because the switch had not heard how far its program is; 0: none.
    passed_term: u32,
    leaving: Leaving<Leave>,
    ledger: Ledger,
    window: Box<dyn Window>,
    path: Path,
    asking: Asking,
    quiet: Quiet,
    counts: Counts,
    events: Events,
    /// What the workers called when they last differed.
    clash: Option<Clash>,
}

impl Worker {
    /// An end that has not joined.
    ///
    /// # Errors
    /// The key of the set-up that cannot be, and why.
    pub fn new(config: Config, own: Options) -> Result<Self, ConfigError> {
        let config = Config { options: config.options.clone().check()?, ..config };
        let own = own.check(&config)?;
        Ok(Self {
            gradients: own.gradients_for(&config),
            joining: Joining::default(),
            last_term: 0,
            term: None,
            waiting: VecDeque::new(),
            doomed: Doomed::default(),
            newest: 0,
            told: None,
            passed_term: 0,
            leaving: Leaving::default(),
            ledger: Ledger::default(),
            window: Box::new(Fixed::new(1)),
            path: Path::default(),
            asking: Asking::default(),
            quiet: Quiet::default(),
            counts: Counts::default(),
            events: Events::default(),
            clash: None,
            config,
            own,
        })
    }

    /// Operations that have begun and not ended.
    #[must_use]
    pub fn open_operations(&self) -> usize {
        self.waiting.len() + self.term.as_ref().map_or(0, |term| term.open.len())
    }

    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> WorkerStatistics {
        statistics::of(self, now)
    }

    fn scale(&self) -> f64 {
        self.config.options.scale.unwrap_or(options::SCALE)
    }

    /// Ends operations with the same failure.
    fn fail(&mut self, now: Instant, open: impl IntoIterator<Item = Open>, failure: Failure) {
        for open in open {
            let in_flight = open.in_flight();
            self.counts.abandoned += in_flight;
            (0..in_flight).for_each(|_| self.window.on_result(now, None, false));
            self.ledger.end(open.end(now, Err(failure)));
        }
    }

    /// Ends operations that have no place in a term. The other workers count them.
    fn fail_waiting(
        &mut self,
        now: Instant,
        open: impl IntoIterator<Item = Open>,
        failure: Failure,
    ) {
        for open in open {
            if self.last_term > 0 {
                self.newest = self.newest.wrapping_add(1);
            }
            self.fail(now, [open], failure);
        }
    }

    /// Gives the waiting operations their places in the term.
    fn place_all(&mut self, now: Instant) {
        while !self.waiting.is_empty()
            && let Some(failure) = self.doomed.take()
        {
            self.newest = self.newest.wrapping_add(1);
            let open = self.waiting.pop_front();
            self.fail(now, open, failure);
        }
        let scale = self.scale();
        let is_strict = self.own.non_finite == NonFinite::Refuse;
        loop {
            let Some(term) = self.term.as_mut().filter(|term| term.closed.is_none()) else {
                return;
            };
            if self.leaving.last(|leave| leave.term == term.number).is_some() {
                // The term ends because of an operation that this end has given up. Later ones have their places in the
                // next term.
                return;
            }
            if term.open.front().is_some_and(|first| {
                usize::from(term.next.wrapping_sub(first.generation)) >= MOST_OPEN
            }) {
                return;
            }
            let Some(mut open) = self.waiting.pop_front() else { return };
            open.place(term.next, term.base, term.gradients, scale);
            let generation = open.generation;
            let id = open.id;
            // It has its place at the other workers, too.
            let refused = (is_strict && !open.is_finite())
                .then(|| Failure::NotFinite { rank: Some(term.source.into()) });
            (self.newest, term.next) = (generation, generation.wrapping_add(1));
            term.base += u64::from(open.blocks());
            term.open.push_back(open);
            self.asking.awaits(now, self.patience());
            if let Some(failure) = refused {
                self.give_up_placed(now, id, failure);
                return;
            }
            self.take_early(now, generation);
        }
    }
}

/// Why an operation can never be.
fn refusal(operation: &Operation) -> Option<Failure> {
    let bytes = operation.buffer.bytes().len();
    let reason = if bytes == 0 {
        "it has no lanes"
    } else if operation.lane_type != LaneType::F32 {
        "Trio-ML sums f32 alone"
    } else if !bytes.is_multiple_of(scaled::LANE) {
        "its lanes are not whole"
    } else if !matches!(operation.reduction, Reduction::Sum | Reduction::Mean) {
        "Trio-ML has sums and means alone"
    } else if !operations::can_be_numbered(bytes) {
        "its lanes are more than numbers can name"
    } else {
        return None;
    };
    Some(Failure::BadOperation(reason))
}

impl Collective for Worker {
    fn join(&mut self, now: Instant) {
        if !self.joining.standing().is_part() {
            self.term = None;
            self.begin_to_join(now);
        }
    }

    fn leave(&mut self, now: Instant) {
        self.leave_job(now);
    }

    fn standing(&self) -> Standing {
        self.joining.standing()
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
        let why = refusal(&operation);
        let operation = self.ledger.admit(operation, why);
        let id = self.ledger.begin();
        let open = Open::new(id, now, operation);
        self.waiting.push_back(open);
        self.place_all(now);
        Ok(id)
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.ledger.poll()
    }

    fn give_up(&mut self, now: Instant, operation: OperationId) {
        if let Some(at) = self.waiting.iter().position(|open| open.id == operation) {
            // Those behind it would take the place of others' operations.
            let later = self.waiting.split_off(at);
            self.fail_waiting(now, later, Failure::TimedOut);
            return;
        }
        self.give_up_placed(now, operation, Failure::TimedOut);
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
        let sends = [self.leaving.at(), self.joins_at(), self.asking.next()];
        member::timeout(sends, self.falls_silent_at())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.falls_silent_at().is_some_and(|at| at <= now) {
            self.switch_is_silent(now);
        }
        self.look_for_missing(now);
        self.give_leaving_up(now);
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
