//! The worker's end of `reduce` (`docs/design/028-reduce.md`).
//!
//! | file | what it decides |
//! |---|---|
//! | `joining` | how the end gets into a generation |
//! | `closing` | how a generation ends, and what becomes of its operations |
//! | `generation`, `operations`, `blocks`, `early` | what is open, sent and held |
//! | `exact` | how an order-free sum becomes integers and back |
//! | `incoming` | what a message from the switch changes |
//! | `outgoing` | what is sent next |
//! | `protest` | what follows where the others call something else |
//! | `missing` | when the end asks for results, and when the switch counts as silent |

mod blocks;
mod closing;
mod early;
mod exact;
mod generation;
mod incoming;
mod joining;
mod lanes;
mod missing;
mod operations;
mod outgoing;
mod protest;
mod statistics;
#[cfg(test)]
mod tests;

pub use statistics::ReducerStatistics;

use super::member::{self, Events, Joining, Leaving, Ledger, Progress, Quiet};
use super::path::Path;
use super::window::{Fixed, Window};
use super::{Collective, Config, Done, Failure, Operation, OperationId, Reduction, Standing};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use generation::Generation;
use missing::Asking;
use olaf_engine::report::{self, Report};
use olaf_engine::{
    Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why, WorkerEvent,
};
use olaf_wire::reduce::{ALL, Address, Clash, Closed, LaneType, Leave, Reason};
use operations::Open;
use protest::Protest;
use statistics::Counts;

/// One worker that reduces.
pub struct Reducer {
    config: Config,
    joining: Joining,
    /// When the first join left, in microseconds. An older welcome answers an older join.
    asks_since_us: u32,
    /// The generation in which the end was last; 0: none.
    last_generation: u32,
    /// The one that this end is in, or whose last operations it finishes.
    generation: Option<Generation>,
    /// Operations that wait for the next generation, in order.
    waiting: VecDeque<Open>,
    progress: Progress,
    leaving: Leaving<Leave>,
    /// Where the end moved away from: the word that its generation ends.
    moving: Leaving<Closed>,
    /// This end in its newest generation, and the first operation that it had no result of there.
    last_place: Option<(Address, u32)>,
    ledger: Ledger,
    window: Box<dyn Window>,
    path: Path,
    asking: Asking,
    quiet: Quiet,
    counts: Counts,
    events: Events,
    /// Of the newest generation that ended because workers called different operations.
    clash: Option<Clash>,
    protest: Option<Protest>,
}

impl Reducer {
    /// An end that has not joined.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            joining: Joining::default(),
            asks_since_us: 0,
            last_generation: 0,
            generation: None,
            waiting: VecDeque::new(),
            progress: Progress::default(),
            leaving: Leaving::default(),
            moving: Leaving::default(),
            last_place: None,
            ledger: Ledger::default(),
            window: Box::new(Fixed::new(1)),
            path: Path::default(),
            asking: Asking::default(),
            quiet: Quiet::default(),
            counts: Counts::default(),
            events: Events::default(),
            clash: None,
            protest: None,
            config,
        }
    }

    /// Begins to join. The end goes on until the switch lets it in or turns it away.
    pub fn join(&mut self, now: Instant) {
        if !self.joining.standing().is_part() {
            self.generation = None;
            self.progress.forget();
            self.begin_to_join(now, 0);
        }
    }

    /// Leaves the job, before the next operation. Open operations fail.
    pub fn leave(&mut self, now: Instant) {
        if let Some(generation) = self.generation.take() {
            self.abandon(&generation);
            let address = generation.address;
            let operation = generation.open.front().map(|open| open.at.number);
            let operation = operation.unwrap_or(generation.next_operation);
            self.leaving.begin(now, Leave { address, operation });
            self.fail(now, generation.open, Failure::NotJoined);
        } else if self.joining.standing().is_joining() {
            // The switch may have this end among those who wait for the next generation. It finds it
            // by its session.
            let address = self.address_of_join();
            let rank = if address.rank == ALL { 0 } else { address.rank };
            let address = Address { rank, ..address };
            self.leaving.begin(now, Leave { address, operation: u32::MAX });
        }
        let waiting = core::mem::take(&mut self.waiting);
        self.fail(now, waiting, Failure::NotJoined);
        self.joining.leave();
        self.progress.forget();
        self.window.forget();
        self.quiet.excuse();
        self.asking.stop();
    }

    /// Leaves as [`leave`](Self::leave) does, because the switch seems to have failed. Where it has not, it tells all other
    /// workers why: they come after this one.
    pub(super) fn move_away(&mut self, now: Instant) {
        self.note_place();
        if let Some(generation) = self.generation.take() {
            self.abandon(&generation);
            self.fail(now, generation.open, Failure::NotJoined);
        }
        self.leave(now);
        self.leaving.stop();
        if let Some((address, operation)) = self.last_place {
            let (culprit, reason) = (self.rank_of(address), Reason::SwitchSilent);
            self.moving.begin(now, Closed { address, operation, culprit, reason, clash: None });
        }
    }

    /// Returns true if the switch knows that this end has left, or nobody there answers.
    pub(super) fn has_left(&self) -> bool {
        self.standing() == Standing::Left && self.moving.at().or(self.leaving.at()).is_none()
    }

    /// Up to which block this end holds all results, and the slots of its generation.
    pub(super) fn held(&self) -> Option<(u32, u32)> {
        let Standing::In { .. } = self.standing() else { return None };
        self.generation.as_ref().map(|one| (one.blocks.holds(), one.blocks.slots()))
    }

    /// The next thing that happened to this end.
    pub(super) fn poll_worker_event(&mut self) -> Option<WorkerEvent> {
        self.events.poll()
    }

    /// Notes where this end is in its generation, before that is given up.
    fn note_place(&mut self) {
        if let Some(generation) = &self.generation {
            let operation = generation.open.front().map(|open| open.at.number);
            let operation = operation.unwrap_or(generation.next_operation);
            self.last_place = Some((generation.address, operation));
        }
    }

    /// The rank by which the switch names the member with that address.
    fn rank_of(&self, address: Address) -> u32 {
        self.config.rank.filter(|_| self.config.workers > 0).unwrap_or(address.rank)
    }

    /// Where this end stands.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.joining.standing()
    }

    /// Operations that have begun and not ended.
    #[must_use]
    pub fn open_operations(&self) -> usize {
        self.waiting.len() + self.generation.as_ref().map_or(0, |generation| generation.open.len())
    }

    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> ReducerStatistics {
        statistics::of(self, now)
    }

    /// Operations end that have no place in a generation.
    fn fail_unplaced(
        &mut self,
        now: Instant,
        open: impl IntoIterator<Item = Open>,
        failure: Failure,
    ) {
        for open in open {
            self.progress.begin(1);
            self.fail(now, [open], failure);
        }
    }

    /// Ends operations with the same failure.
    fn fail(&mut self, now: Instant, open: impl IntoIterator<Item = Open>, failure: Failure) {
        for open in open {
            self.ledger.end(open.end(now, Err(failure)));
        }
    }
}

/// Why an operation can never be.
fn refusal(operation: &Operation) -> Option<Failure> {
    let bytes = operation.buffer.bytes().len();
    let is_integer = matches!(operation.lane_type, LaneType::I32 | LaneType::I64);
    let is_exact = matches!(operation.reduction, Reduction::ExactSum | Reduction::ExactMean);
    if matches!(operation.reduction, Reduction::Pipelined { .. }) {
        Some(Failure::BadOperation("the protocol has no pipelined sums"))
    } else if bytes == 0 {
        Some(Failure::BadOperation("it has no lanes"))
    } else if !bytes.is_multiple_of(operation.lane_type.bytes()) {
        Some(Failure::BadOperation("its lanes are not whole"))
    } else if is_integer && operation.reduction == Reduction::Mean {
        Some(Failure::BadOperation("integers have no mean"))
    } else if is_exact && operation.lane_type != LaneType::F32 {
        Some(Failure::BadOperation("only f32 has an order-free sum; integers always have one"))
    } else {
        None
    }
}

impl Collective for Reducer {
    fn join(&mut self, now: Instant) {
        Self::join(self, now);
    }

    fn leave(&mut self, now: Instant) {
        Self::leave(self, now);
    }

    fn standing(&self) -> Standing {
        self.joining.standing()
    }

    fn switch_cores(&self) -> u32 {
        self.generation.as_ref().map_or(1, |generation| generation.cores)
    }

    fn begins_in(&self) -> Option<u32> {
        let generation = self.generation.as_ref().filter(|one| one.takes_operations())?;
        self.progress.doomed().next().is_none().then_some(generation.address.generation)
    }

    fn other_version(&self) -> Option<u8> {
        self.counts.other_version
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
        let doomed = self.progress.take_doomed().or_else(|| {
            let generation = self.generation.as_mut()?;
            generation.dooms_next().or_else(|| generation.cuts(&open))
        });
        if let Some(failure) = doomed {
            self.fail_unplaced(now, [open], failure);
        } else if self.generation.as_ref().is_some_and(Generation::takes_operations) {
            self.place(now, open);
        } else {
            self.waiting.push_back(open);
        }
        self.finish_closing(now);
        Ok(id)
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.ledger.poll()
    }

    fn give_up(&mut self, now: Instant, operation: OperationId) {
        if let Some(at) = self.waiting.iter().position(|open| open.id == operation) {
            // Those behind it would take the place of others' operations.
            let later = self.waiting.split_off(at);
            self.fail_unplaced(now, later, Failure::TimedOut);
            return;
        }
        let open = self.generation.iter().flat_map(|generation| &generation.open);
        if let Some(number) = open.clone().find(|open| open.id == operation).map(|o| o.at.number) {
            self.leave_generation(now, number, Failure::TimedOut);
        }
    }
}

impl Engine for Reducer {
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
        let asks = [self.asking.next(), self.protests_at()];
        let sends = [self.leaving.at(), self.moving.at(), self.joins_at()];
        member::timeout(sends.into_iter().chain(asks), self.falls_silent_at())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.falls_silent_at().is_some_and(|at| at <= now) {
            self.switch_is_silent(now);
        }
        self.look_for_missing(now);
        self.give_protest_up(now);
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
