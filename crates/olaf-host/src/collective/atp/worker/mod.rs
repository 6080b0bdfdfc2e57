//! A worker of ATP (ATP §3.6, §3.7).
//!
//! | file | what it decides |
//! |---|---|
//! | `flow` | what is sent, answered and lost between the worker and one server |
//! | `overtaken` | which packets are lost |
//! | `operations` | where an operation's fragments lie |
//! | `incoming` | what a message from the switch changes |
//! | `outgoing` | what is sent next |

mod flow;
mod incoming;
mod operations;
mod outgoing;
mod overtaken;
mod statistics;
#[cfg(test)]
mod tests;

pub use statistics::WorkerStatistics;

use super::Options;
use super::fixed::SCALE;
use crate::collective::member::{self, Events, Leaving, Ledger, Progress};
use crate::collective::{
    Collective, Config, Done, Failure, Operation, OperationId, Reduction, Standing,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use flow::Flow;
use olaf_engine::keys::ConfigError;
use olaf_engine::report::{self, Report};
use olaf_engine::{
    Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why, WorkerEvent,
};
use olaf_wire::atp::{MAX_WORKERS, datagram_len};
use olaf_wire::operations_ahead;
use olaf_wire::reduce::{Clash, LaneType, Reason, WelcomeCode};
use operations::Open;
use statistics::Counts;

/// How the life of the job ends here.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// The first operation that fails.
    number: u64,
    failure: Failure,
    /// That operation has not begun here, and fails when it does: it fails at the other workers.
    dooms_next: bool,
}

/// One worker.
pub struct Worker {
    config: Config,
    own: Options,
    job: u16,
    scale: f64,
    /// Values that this end wants in a packet.
    values: u16,
    standing: Standing,
    /// One for each server.
    flows: Vec<Flow>,
    /// Those that have begun and not ended, in order.
    open: VecDeque<Open>,
    /// Operations that wait for the next life of the job.
    waiting: VecDeque<Open>,
    next_operation: u64,
    progress: Progress,
    closing: Option<Closing>,
    ledger: Ledger,
    /// By server.
    leaving: Vec<Leaving<(u8, u16)>>,
    /// The flow whose turn it is.
    turn: usize,
    is_silent: bool,
    other_version: Option<u8>,
    counts: Counts,
    events: Events,
    /// What the workers called when they last differed.
    clash: Option<Clash>,
}

impl Worker {
    /// A worker that has not joined.
    ///
    /// # Errors
    /// The key that cannot be, and why.
    pub fn new(config: Config, own: Options) -> Result<Self, ConfigError> {
        let own = own.check()?;
        let bad = |key, allowed| Err(ConfigError { key, allowed });
        let Ok(job) = u16::try_from(config.job.0) else {
            return bad("job", "must be below 65536: its field has 16 bits");
        };
        if config.workers == 0 || config.workers > MAX_WORKERS {
            return bad("workers", "must be from 1 to 32768: three bitmaps of 32 workers");
        }
        if config.rank.is_some_and(|rank| rank >= config.workers) {
            return bad("rank", "must be below the number of workers");
        }
        if config.rank.is_none() && own.servers > 1 {
            return bad("rank", "must be given where there are several servers");
        }
        if datagram_len(own.values.into()) > config.datagram_bytes as usize {
            return bad("values", "must fit a datagram of the path");
        }
        let scale = config.options.scale.unwrap_or(SCALE);
        if !(scale.is_finite() && scale > 0.0) {
            return bad("scale", "must be above 0");
        }
        Ok(Self {
            flows: (0..own.servers).map(|_| Flow::new(&own)).collect(),
            leaving: alloc::vec![Leaving::default(); usize::from(own.servers)],
            values: own.values,
            config,
            own,
            job,
            scale,
            standing: Standing::Left,
            open: VecDeque::new(),
            waiting: VecDeque::new(),
            next_operation: 0,
            progress: Progress::default(),
            closing: None,
            ledger: Ledger::default(),
            turn: 0,
            is_silent: false,
            other_version: None,
            counts: Counts::default(),
            events: Events::default(),
            clash: None,
        })
    }

    /// The worker goes on through another switch, as after it has moved (ATP §A.3). Its operations go
    /// on, too.
    pub fn set_switch(&mut self, now: Instant, switch: PeerId) {
        self.config.switch = switch;
        for flow in self.flows.iter_mut().filter(|flow| flow.joins.at().is_some()) {
            flow.joins.begin(now);
        }
    }

    /// Operations that have begun and not ended.
    #[must_use]
    pub fn open_operations(&self) -> usize {
        self.waiting.len() + self.open.len()
    }

    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self) -> WorkerStatistics {
        statistics::of(self)
    }

    /// Ends operations with the same failure.
    fn fail(&mut self, now: Instant, open: impl IntoIterator<Item = Open>, failure: Failure) {
        for open in open {
            self.ledger.end(open.end(now, Err(failure)));
        }
    }

    /// Operations end that have no place in a life. They count all the same: the other workers begin them, too.
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

    /// Asks all servers to be let in.
    fn begin_to_join(&mut self, now: Instant) {
        self.standing = Standing::Joining { here: 0, workers: self.config.workers };
        self.closing = None;
        self.progress.joins_anew();
        for flow in &mut self.flows {
            self.counts.abandoned += flow.in_flight();
            let closed = flow.seat.map_or(flow.closed, |seat| seat.life);
            *flow = Flow::new(&self.own);
            flow.closed = closed;
            flow.joins.begin(now);
        }
    }

    /// A server has let this end in. When all have, operations begin.
    fn begin_life(&mut self, now: Instant) {
        let seats: Option<Vec<_>> = self.flows.iter().map(|flow| flow.seat).collect();
        let Some(seats) = seats else { return };
        let Some(first) = seats.first().copied() else { return };
        let further = |one, other| if operations_ahead(other, one) > 0 { other } else { one };
        let furthest = seats.iter().map(|seat| seat.operations).fold(first.operations, further);
        let count = self.progress.begun_and_doomed();
        if self.progress.is_unheard(count, furthest) {
            let failure = Failure::Closed { reason: Reason::Left, culprit: Some(first.rank) };
            return self.close(now, Closing { number: 0, failure, dooms_next: false });
        }
        self.progress.align(furthest);
        for (flow, seat) in self.flows.iter_mut().zip(&seats) {
            let skipped = operations_ahead(furthest, seat.operations);
            flow.skipped = u64::try_from(skipped).unwrap_or(0);
        }
        let (generation, rank, workers) = (first.life.into(), first.rank, first.workers);
        self.standing = Standing::In { generation, rank, workers };
        self.next_operation = 0;
        self.counts.lives += 1;
        self.events.tell(WorkerEvent::InGeneration { generation, rank, workers });
        for open in core::mem::take(&mut self.waiting) {
            match self.progress.take_doomed() {
                Some(failure) => self.fail_unplaced(now, [open], failure),
                None => self.place(now, open),
            }
        }
    }

    /// Gives an operation its place behind all others.
    fn place(&mut self, now: Instant, mut open: Open) {
        self.progress.begin(1);
        let number = self.next_operation;
        let values = self.flows[0].seat.map_or(1, |seat| seat.values);
        let mut next: Vec<u64> = self.flows.iter().map(|flow| flow.next).collect();
        open.place(number, &mut next, values);
        self.next_operation += 1;
        let ends = |(at, flow): (usize, &Flow)| {
            open.has_part(at) && flow.ends_at.is_some_and(|ends_at| ends_at <= number)
        };
        if let Some(closing) = self
            .closing
            .filter(|closing| closing.dooms_next && self.flows.iter().enumerate().any(ends))
        {
            self.fail(now, [open], closing.failure);
            self.close(now, Closing { number, dooms_next: false, ..closing });
            return;
        }
        self.flows.iter_mut().zip(next).for_each(|(flow, next)| flow.next = next);
        self.open.push_back(open);
    }

    /// The life of the job ends with that operation; the earlier ones go on.
    fn close(&mut self, now: Instant, closing: Closing) {
        let kept = self.open.iter().take_while(|open| open.number < closing.number).count();
        let failed = self.open.split_off(kept);
        if let Some(first) = failed.front() {
            for (flow, from) in self.flows.iter_mut().zip(&first.first) {
                let before = flow.in_flight();
                flow.cut(*from);
                self.counts.abandoned += before - flow.in_flight();
            }
        }
        self.fail(now, failed, closing.failure);
        self.closing = Some(closing);
        self.finish_closing(now);
    }

    /// Joins again once nothing more is to be done.
    fn finish_closing(&mut self, now: Instant) {
        let Some(closing) = self.closing else { return };
        if !closing.dooms_next && self.open.is_empty() {
            self.progress.generation_ended(closing.failure, false);
            self.begin_to_join(now);
        }
    }

    /// Ends the operations that have all results, in order: while an earlier one may fail, no worker
    /// may have finished a later one.
    fn end_complete(&mut self, now: Instant) {
        while self.open.front().is_some_and(Open::is_complete) {
            let Some(open) = self.open.pop_front() else { break };
            let sum = open.sum(self.config.workers);
            self.ledger.end(open.end(now, Ok(sum)));
        }
        self.finish_closing(now);
    }

    /// A server does not want this end.
    fn turned_away(&mut self, now: Instant, code: WelcomeCode) {
        self.stop(now, Failure::Refused(code));
        self.standing = Standing::Refused(code);
        self.events.tell(WorkerEvent::JoinRefused(code));
    }

    /// All operations fail, and nothing more is sent.
    fn stop(&mut self, now: Instant, failure: Failure) {
        let open = core::mem::take(&mut self.open);
        self.fail(now, open, failure);
        let waiting = core::mem::take(&mut self.waiting);
        self.fail_unplaced(now, waiting, failure);
        self.progress.generation_ended(failure, false);
        self.begin_to_join(now);
        self.flows.iter_mut().for_each(|flow| flow.joins.stop());
    }

    /// When a server that owes an answer has failed.
    fn falls_silent_at(&self) -> Option<Instant> {
        let owed = self.flows.iter().filter_map(|flow| flow.owed).min()?;
        Some(owed + self.config.options.silence)
    }

    /// Nothing was heard of the switch, or of the server behind it.
    fn switch_is_silent(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.is_silent, true) {
            self.events.tell(WorkerEvent::SwitchSilent);
        }
        self.stop(now, Failure::SwitchSilent);
        self.flows.iter_mut().for_each(|flow| flow.joins.begin(now));
    }
}

/// Why an operation can never be.
fn refusal(operation: &Operation) -> Option<Failure> {
    let bytes = operation.buffer.bytes().len();
    if !matches!(operation.reduction, Reduction::Sum | Reduction::Mean) {
        Some(Failure::BadOperation("ATP has sums and means"))
    } else if operation.lane_type != LaneType::F32 {
        Some(Failure::BadOperation("ATP adds f32"))
    } else if bytes == 0 {
        Some(Failure::BadOperation("it has no lanes"))
    } else if !bytes.is_multiple_of(4) {
        Some(Failure::BadOperation("its lanes are not whole"))
    } else if u32::try_from(bytes / 4).is_err() {
        Some(Failure::BadOperation("the tensor length has 32 bits"))
    } else {
        None
    }
}

impl Collective for Worker {
    fn join(&mut self, now: Instant) {
        if !self.standing.is_part() {
            // A newcomer has nothing behind it that may fail.
            self.progress.forget();
            self.leaving.iter_mut().for_each(Leaving::stop);
            self.begin_to_join(now);
        }
    }

    fn leave(&mut self, now: Instant) {
        for (server, flow) in (0..).zip(&self.flows) {
            if flow.joins.at().is_some() {
                let life = flow.seat.map_or(0, |seat| seat.life);
                self.leaving[usize::from(server)].begin(now, (server, life));
            }
        }
        self.stop(now, Failure::NotJoined);
        self.progress.forget();
        self.standing = Standing::Left;
    }

    fn standing(&self) -> Standing {
        self.standing
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
        if let Some(failure) = self.standing.refusal() {
            return Err((failure, operation));
        }
        let why = refusal(&operation);
        let operation = self.ledger.admit(operation, why);
        let id = self.ledger.begin();
        let open = Open::new(id, now, operation);
        if let Some(failure) = self.progress.take_doomed() {
            self.fail_unplaced(now, [open], failure);
            return Ok(id);
        }
        let takes = self.closing.is_none_or(|closing| closing.dooms_next);
        if matches!(self.standing, Standing::In { .. }) && takes {
            self.place(now, open);
        } else {
            self.waiting.push_back(open);
        }
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
        let Some(at) = self.open.iter().position(|open| open.id == operation) else { return };
        let number = self.open[at].number;
        let culprit = match self.standing {
            Standing::In { rank, .. } => Some(rank),
            _ => None,
        };
        let failure = Failure::Closed { reason: Reason::Left, culprit };
        // Those behind it fail because of it; the given-up one has its own failure.
        if at + 1 < self.open.len() {
            self.close(now, Closing { number: number + 1, failure, dooms_next: false });
        }
        self.close(now, Closing { number, failure: Failure::TimedOut, dooms_next: false });
        self.progress.generation_ended(failure, false);
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
        let sends = self.flows.iter().flat_map(|flow| [flow.timer(), flow.joins.at()]);
        let leaves = self.leaving.iter().map(Leaving::at);
        member::timeout(sends.chain(leaves), self.falls_silent_at())
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.falls_silent_at().is_some_and(|at| at <= now) {
            self.switch_is_silent(now);
        }
        let longest = self.config.options.longest_wait();
        for flow in &mut self.flows {
            self.counts.time_outs += u64::from(flow.look(now, longest) > 0);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let what = self.events.poll()?;
        Some(Event::Worker(self.config.job, self.config.switch, what))
    }

    /// A worker talks to its switch alone.
    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        keep(self.config.switch);
    }

    fn report(&self, _now: Instant, to: &mut dyn Report) {
        report::walk(&self.statistics(), to);
    }
}
