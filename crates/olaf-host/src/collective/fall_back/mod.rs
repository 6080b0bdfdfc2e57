//! A worker with two switches: when the first one fails, all workers go on through the second one
//! (`docs/design/029-second-switch.md`).
//!
//! | file | what it decides |
//! |---|---|
//! | `operations` | numbers of operations, the lanes that are saved for a second beginning, and how each one ends |
//! | `moving` | when this worker moves, and how: leave, join, meet, go on |
//! | `meeting` | what all workers agree on |
//! | `kept` | the results that another worker may lack |
//!
//! Both ends are those of `reduce`. The second one joins when this worker moves: a datagram goes to the first switch, or
//! from then on to the second one.

mod kept;
mod meeting;
mod moving;
mod operations;

use super::{Collective, Config, Done, Failure, Operation, OperationId, Reducer, Standing};
use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;
use kept::{Kept, Outcome};
use meeting::Meeting;
use olaf_engine::report::Report;
use olaf_engine::{
    Engine, Event, Instant, JobId, PeerId, PortId, Source, Transmit, Verdict, Why, WorkerEvent,
};
use olaf_wire::reduce::{Clash, Reason, WelcomeCode};
use operations::Open;

/// A worker that leaves waits at most this long for the others to have all results.
pub const FAREWELL: Duration = Duration::from_secs(15);

/// Events that are kept for a driver that does not fetch them.
const MOST_EVENTS: usize = 1024;

/// Why the second switch cannot help this worker any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// The job began anew for that reason: its workers may count their operations from different ones.
    Anew(Reason),
    /// An operation of this worker was given up: it may be behind the others.
    GivenUp,
}

/// Why a job cannot go on through the second switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWay {
    /// This worker may not go on with the others.
    Off(Off),
    /// Not all workers have come to the second switch.
    NotMet {
        /// Workers that are there, as the switch said last; 0: it has said nothing.
        here: u32,
        /// Workers of the job.
        workers: u32,
        /// How long this worker has waited for them.
        waited: Duration,
    },
    /// The second switch turned the worker away.
    Refused(WelcomeCode),
    /// Another worker has this rank there.
    OtherRank(u32),
    /// Another program takes part there.
    OtherProgram,
    /// A worker was replaced, and counts its operations from another one.
    Replaced,
    /// This is the distance between the operations of two workers. It is too large to be true.
    Apart(u64),
    /// No worker has kept the result of that operation.
    NotKept(u64),
    /// What a worker gave in place of the result of that operation cannot be used.
    Unusable(u64),
    /// An operation of the meeting failed, after this time.
    Meeting(Failure, Duration),
}

/// Where a worker is between its two switches, as programs are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At the first one.
    First,
    /// On the way to the second one.
    Moving,
    /// At the second one.
    Second,
    /// The job cannot go on.
    Failed,
    /// The worker has left.
    Closed,
}

impl At {
    /// A short stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Moving => "moving",
            Self::Second => "second",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

/// How a worker stands with its two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondSwitch {
    /// Where the worker is.
    pub at: At,
    /// Why the second switch cannot help any more.
    pub off: Option<Off>,
    /// Why the first switch counts as failed.
    pub left_because: Option<Failure>,
    /// Why the job cannot go on through the second one.
    pub no_way: Option<NoWay>,
    /// The rank of this worker.
    pub rank: u32,
    /// The first operation that went on through the second switch.
    pub operation: u64,
    /// Results of other workers that this one took.
    pub taken: u64,
    /// Results that this worker gave to others.
    pub given: u64,
    /// Operations that began again.
    pub again: u64,
    /// Bytes of results that are kept for others.
    pub kept_bytes: usize,
}

/// Where the worker is between its two switches.
#[derive(Debug)]
enum State {
    First,
    /// It leaves the first switch.
    Leaving,
    /// It waits at the second one for all others.
    Joining,
    /// It agrees with them. The operation is one of the second end.
    Meeting(Meeting, OperationId),
    Second,
    Failed,
    Closed,
}

/// How the worker came to its place in the job.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The generation in which the operations are numbered.
    run: u32,
    rank: u32,
    workers: u32,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    operation: u64,
    taken: u64,
    given: u64,
    again: u64,
}

/// A worker with two switches.
pub struct FallBack {
    job: JobId,
    switches: [PeerId; 2],
    first: Reducer,
    second: Option<Reducer>,
    /// Of the second end, without its rank.
    second_config: Config,
    /// A move ends with an error after this time, in which an operation waits for it.
    patience: Duration,
    state: State,
    place: Option<Place>,
    off: Option<Off>,
    left_because: Option<Failure>,
    no_way: Option<NoWay>,
    moved_at: Instant,
    /// Operations that have begun.
    begun: u64,
    /// Those that have not ended, by number.
    open: BTreeMap<u64, Open>,
    /// The numbers of those that are at the present end.
    at_end: BTreeMap<OperationId, u64>,
    kept: Kept,
    /// Results of operations that have not begun here.
    given: BTreeMap<u64, Outcome>,
    ended: VecDeque<Done>,
    events: VecDeque<Event>,
    counts: Counts,
}

impl FallBack {
    /// An end that has not joined. `first` and `second` differ in their switch, the length of datagrams and the session. A
    /// move ends with an error after `patience`, in which an operation waits for it.
    #[must_use]
    pub fn new(first: Config, second: Config, patience: Duration) -> Self {
        Self {
            job: first.job,
            switches: [first.switch, second.switch],
            first: Reducer::new(first),
            second: None,
            second_config: second,
            patience,
            state: State::First,
            place: None,
            off: None,
            left_because: None,
            no_way: None,
            moved_at: Instant::default(),
            begun: 0,
            open: BTreeMap::new(),
            at_end: BTreeMap::new(),
            kept: Kept::default(),
            given: BTreeMap::new(),
            ended: VecDeque::new(),
            events: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Operations that have begun and not ended.
    #[must_use]
    pub fn open_operations(&self) -> usize {
        self.open.len()
    }

    /// The end at the first switch.
    #[must_use]
    pub const fn first(&self) -> &Reducer {
        &self.first
    }

    /// The end at the second switch, once this worker has gone there.
    #[must_use]
    pub const fn second(&self) -> Option<&Reducer> {
        self.second.as_ref()
    }

    const fn is_moving(&self) -> bool {
        matches!(self.at(), At::Moving)
    }

    const fn at(&self) -> At {
        match self.state {
            State::First => At::First,
            State::Leaving | State::Joining | State::Meeting(..) => At::Moving,
            State::Second => At::Second,
            State::Failed => At::Failed,
            State::Closed => At::Closed,
        }
    }

    fn present(&self) -> &Reducer {
        self.second.as_ref().unwrap_or(&self.first)
    }

    /// Takes what the ends have to say, and does what follows from it.
    fn settle(&mut self, now: Instant) {
        loop {
            self.look_at_first(now);
            if let Some(done) = self.first.poll_done() {
                self.ended_at_first(now, done);
            } else if let Some(done) = self.second.as_mut().and_then(Reducer::poll_done) {
                self.ended_at_second(now, done);
            } else if !self.goes_on_moving(now) {
                break;
            }
        }
        while let Some(what) = self.second.as_mut().and_then(Reducer::poll_worker_event) {
            self.tell(self.switches[1], what);
        }
    }

    fn tell(&mut self, switch: PeerId, what: WorkerEvent) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event::Worker(self.job, switch, what));
    }
}

impl Collective for FallBack {
    fn join(&mut self, now: Instant) {
        self.first.join(now);
    }

    fn leave(&mut self, now: Instant) {
        self.close(now);
    }

    fn standing(&self) -> Standing {
        match self.at() {
            At::Failed | At::Closed => Standing::Left,
            At::First | At::Moving | At::Second => self.present().standing(),
        }
    }

    fn other_version(&self) -> Option<u8> {
        self.present().other_version()
    }

    fn clash(&self) -> Option<Clash> {
        self.present().clash()
    }

    fn begin(
        &mut self,
        now: Instant,
        operation: Operation,
    ) -> Result<OperationId, (Failure, Operation)> {
        let begun = self.begin_next(now, operation);
        self.settle(now);
        begun
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.ended.pop_front()
    }

    fn give_up(&mut self, now: Instant, operation: OperationId) {
        self.end_early(now, operation.0);
        self.settle(now);
    }

    fn limits_since(&self) -> Option<Instant> {
        (!self.is_moving()).then_some(self.moved_at)
    }

    fn say_farewell(&mut self, now: Instant) -> Option<OperationId> {
        let begun = self.begin_farewell(now);
        self.settle(now);
        begun
    }

    fn second_switch(&self) -> Option<SecondSwitch> {
        let Counts { operation, taken, given, again } = self.counts;
        Some(SecondSwitch {
            at: self.at(),
            off: self.off,
            left_because: self.left_because,
            no_way: self.no_way,
            rank: self.place.map_or(0, |place| place.rank),
            operation,
            taken,
            given,
            again,
            kept_bytes: self.kept.bytes(),
        })
    }
}

impl Engine for FallBack {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let verdict = match &mut self.second {
            Some(second) if from.peer == self.switches[1] => second.handle_packet(now, from, bytes),
            _ => self.first.handle_packet(now, from, bytes),
        };
        self.settle(now);
        verdict
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let first = self.first.poll_transmit(now, port, buf);
        first.or_else(|| self.second.as_mut()?.poll_transmit(now, port, buf))
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let second = self.second.as_ref().and_then(Engine::poll_timeout);
        if matches!(self.state, State::Leaving) && self.first.has_left() {
            // Its last word has gone.
            return Some((self.moved_at, Why::Retransmission));
        }
        let late = self.late_at().map(|at| (at, Why::BlockDeadline));
        [self.first.poll_timeout(), second, late].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        let is_due = |end: &Reducer| end.poll_timeout().is_some_and(|(at, _)| at <= now);
        if is_due(&self.first) {
            self.first.handle_timeout(now);
        }
        if let Some(second) = self.second.as_mut().filter(|second| is_due(second)) {
            second.handle_timeout(now);
        }
        self.settle(now);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.switches.into_iter().for_each(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.present().report(now, to);
    }

    fn handle_too_long(&mut self, now: Instant, bytes: usize, largest: Option<u32>) {
        match &mut self.second {
            Some(second) => second.handle_too_long(now, bytes, largest),
            None => self.first.handle_too_long(now, bytes, largest),
        }
    }
}
