//! A job of workers around one switch, or around a tree of switches, in a simulated network.

use super::protocol::{Protocol, TOP, lower};
pub(crate) use crate::common::sums::peer;
use crate::common::sums::{AllEnded, Ended, collect, operation};
use core::time::Duration;
use olaf_engine::{Instant, JobId, PeerId, Session};
use olaf_host::collective::{
    Collective, Config, Failure, Operation, OperationId, Options, Reduction, Standing, Sum,
};
use olaf_sim::{Network, Wire};
use olaf_wire::reduce::Reason;

pub(crate) const MS: Duration = Duration::from_millis(1);
/// A switch, and the server of ATP, wait for a silent worker for this time, and look several times in it.
pub(crate) const SILENCE: Duration = Duration::from_millis(1500);
/// A worker waits for a silent switch for this time.
pub(crate) const SWITCH_SILENCE: Duration = Duration::from_secs(5);
const START: Instant = Instant(1_700_000_000_000_000_000);
const JOB: JobId = JobId(1);

/// What a run is made of.
#[derive(Clone, Debug)]
pub(crate) struct Setting<P: Protocol> {
    pub(crate) seed: u64,
    pub(crate) workers: u32,
    /// How many workers are behind each lower switch; the others are behind the uppermost one.
    pub(crate) lower: Vec<u32>,
    /// The job goes on with those that are there.
    pub(crate) is_elastic: bool,
    /// Between each worker and its switch, and between switches.
    pub(crate) wire: Wire,
    pub(crate) datagram_bytes: u32,
    pub(crate) options: Options,
    /// How long jobs that name no program wait for others; 0: not at all.
    pub(crate) settle: Duration,
    pub(crate) own: P::Own,
    pub(crate) config: P::Config,
}

impl<P: Protocol> Default for Setting<P> {
    fn default() -> Self {
        Self {
            seed: 1,
            workers: 3,
            lower: Vec::new(),
            is_elastic: false,
            wire: Wire { delay: Duration::from_micros(100), ..Wire::default() },
            datagram_bytes: 1472,
            options: Options::default(),
            settle: Duration::ZERO,
            own: P::own(),
            config: P::config(8),
        }
    }
}

impl<P: Protocol> Setting<P> {
    /// Operations of [`Protocol::LONG`] take some milliseconds.
    pub(crate) fn slow() -> Self {
        Self { own: P::slow(), ..Self::default() }
    }

    /// The switches, the uppermost one first.
    pub(crate) fn switches(&self) -> Vec<PeerId> {
        core::iter::once(TOP).chain((0..self.lower.len()).map(lower)).collect()
    }

    /// The switch of a worker.
    pub(crate) fn switch_of(&self, end: u32) -> PeerId {
        let mut first = 0;
        for (at, workers) in self.lower.iter().enumerate() {
            first += workers;
            if end < first {
                return lower(at);
            }
        }
        TOP
    }
}

/// An operation that all workers begin, with lanes that depend on the worker and on a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) reduction: Reduction,
    pub(crate) lanes: usize,
    pub(crate) number: u32,
}

impl Task {
    pub(crate) const fn sum(lanes: usize, number: u32) -> Self {
        Self { reduction: Reduction::Sum, lanes, number }
    }

    pub(crate) fn operation<P: Protocol>(self, end: u32) -> Operation {
        let lanes = (0..self.lanes).map(|at| P::lane(end, self.number, at));
        operation(self.reduction, lanes, false)
    }

    /// What these workers should get.
    pub(crate) fn expected<P: Protocol>(self, ends: &[u32]) -> Vec<f32> {
        let each = |at: usize| ends.iter().map(move |end| P::lane(*end, self.number, at));
        let lanes = 0..self.lanes;
        match self.reduction {
            Reduction::Sum => lanes.map(|at| each(at).sum()).collect(),
            Reduction::Mean => lanes.map(|at| each(at).sum::<f32>() / ends.len() as f32).collect(),
            Reduction::Min => lanes.map(|at| each(at).fold(f32::MAX, f32::min)).collect(),
            Reduction::Max => lanes.map(|at| each(at).fold(f32::MIN, f32::max)).collect(),
            Reduction::Broadcast { root } => {
                lanes.map(|at| P::lane(ends[root as usize], self.number, at)).collect()
            }
            other => panic!("the suite has no {other:?}"),
        }
    }
}

/// The failure of an operation whose generation ended because of a worker.
pub(crate) const fn closed(reason: Reason, culprit: u32) -> Failure {
    Failure::Closed { reason, culprit: Some(culprit) }
}

/// A worker of another job in the same network.
pub(crate) fn guest(job: u32, end: u32) -> PeerId {
    PeerId(10_000 * job + end)
}

pub(crate) struct Job<P: Protocol> {
    pub(crate) net: Network,
    pub(crate) setting: Setting<P>,
    pub(crate) ended: AllEnded,
}

impl<P: Protocol> Job<P> {
    pub(crate) fn new(setting: Setting<P>) -> Self {
        Self::within(Network::new(setting.seed, START).without_records(), setting)
    }

    /// The same, with all datagrams and events kept.
    pub(crate) fn recorded(setting: Setting<P>) -> Self {
        Self::within(Network::new(setting.seed, START), setting)
    }

    fn within(mut net: Network, setting: Setting<P>) -> Self {
        P::place_switches(&mut net, &setting);
        let mut job = Self { net, setting, ended: AllEnded::new() };
        for end in 0..job.setting.workers {
            job.place(end);
        }
        job
    }

    /// A job whose workers have met.
    #[track_caller]
    pub(crate) fn met(setting: Setting<P>) -> Self {
        let mut job = Self::new(setting);
        job.run_for(1000 * MS);
        assert!((0..job.setting.workers).all(|end| job.is_in(end)), "{}", job.state());
        job
    }

    pub(crate) fn place(&mut self, end: u32) {
        let workers = if self.setting.is_elastic { 0 } else { self.setting.workers };
        self.place_at(peer(end), JOB, end, workers, 1 + end);
    }

    /// A worker of another job, behind the uppermost switch. Its job waits for that many workers.
    pub(crate) fn place_guest(&mut self, job: u32, end: u32, workers: u32) {
        self.place_at(guest(job, end), JobId(job), end, workers, 10_000 * job + end);
    }

    /// A worker at that address, whose first life has that session.
    pub(crate) fn place_at(&mut self, at: PeerId, id: JobId, end: u32, workers: u32, session: u32) {
        let switch = if id == JOB { self.setting.switch_of(end) } else { TOP };
        let options = self.setting.options.clone();
        let rank = Some(end);
        let own = Config { workers, rank, options, ..Config::new(id, Session(session), switch) };
        self.place_as(at, own);
    }

    /// A worker at that address, whose first life is set up like that.
    pub(crate) fn place_as(&mut self, at: PeerId, own: Config) {
        let (setting, switch) = (self.setting.clone(), own.switch);
        self.net.place(at, move |life, now| {
            let config = Config {
                datagram_bytes: setting.datagram_bytes,
                session: Session(own.session.0 + 1000 * life),
                ..own.clone()
            };
            let mut worker = P::worker(&setting, config);
            worker.join(now);
            Box::new(worker)
        });
        // The first join finds no wire.
        self.net.join(at, switch, self.setting.wire);
    }

    #[track_caller]
    pub(crate) fn with<T>(
        &mut self,
        end: u32,
        act: impl FnOnce(&mut P::Worker, Instant) -> T,
    ) -> T {
        self.net.with(peer(end), act).expect("the worker is alive")
    }

    #[track_caller]
    pub(crate) fn begin(&mut self, end: u32, task: Task) -> OperationId {
        let operation = task.operation::<P>(end);
        let begun = self.with(end, |worker, now| worker.begin(now, operation));
        begun.map_err(|(failure, _)| failure).expect("the operation begins")
    }

    /// The same, for an operation that needs no name.
    #[track_caller]
    pub(crate) fn starts(&mut self, end: u32, task: Task) {
        self.begin(end, task);
    }

    /// Every worker that is alive begins it.
    #[track_caller]
    pub(crate) fn begin_all(&mut self, task: Task) {
        for end in 0..self.setting.workers {
            if self.lives(end) {
                self.begin(end, task);
            }
        }
    }

    pub(crate) fn give_up(&mut self, end: u32, id: u64) {
        let give_up = |worker: &mut P::Worker, now| worker.give_up(now, OperationId(id));
        self.net.with(peer(end), give_up);
    }

    pub(crate) fn kill(&mut self, at: PeerId) {
        self.net.kill_at(self.net.now(), at);
    }

    pub(crate) fn start(&mut self, at: PeerId) {
        self.net.start_at(self.net.now(), at);
    }

    pub(crate) fn lives(&self, end: u32) -> bool {
        self.net.node::<P::Worker>(peer(end)).is_some()
    }

    pub(crate) fn standing_at(&self, at: PeerId) -> Option<Standing> {
        self.net.node::<P::Worker>(at).map(Collective::standing)
    }

    pub(crate) fn is_in(&self, end: u32) -> bool {
        matches!(self.standing_at(peer(end)), Some(Standing::In { .. }))
    }

    /// The number of the generation that a worker is in.
    pub(crate) fn generation_at(&self, at: PeerId) -> Option<u32> {
        match self.standing_at(at)? {
            Standing::In { generation, .. } => Some(generation),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> String {
        let standing =
            |end| self.standing_at(peer(end)).map_or(String::new(), |of| format!("{of:?}\n"));
        let standings: String = (0..self.setting.workers).map(standing).collect();
        standings + &P::describe(&self.net, &self.setting)
    }

    fn collect(&mut self) {
        collect::<P::Worker>(&mut self.net, self.setting.workers, &mut self.ended);
    }

    pub(crate) fn open_at(&self, end: u32) -> Option<usize> {
        self.net.node(peer(end)).map(P::open_operations)
    }

    pub(crate) fn open(&self) -> usize {
        (0..self.setting.workers).filter_map(|end| self.open_at(end)).sum()
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        self.net.run_for(time);
        self.collect();
    }

    /// Runs until nothing is open, at most for that long. Returns true if nothing is.
    pub(crate) fn ends_within(&mut self, time: Duration) -> bool {
        self.runs_until(time, |job| job.open() == 0)
    }

    /// Runs until that is so, at most for that long. Returns true if it is.
    pub(crate) fn runs_until(&mut self, time: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let until = self.net.now() + time;
        self.collect();
        while !is_so(self) {
            if self.net.now() >= until {
                return false;
            }
            self.run_for(Duration::from_micros(100));
        }
        true
    }

    /// Runs until no operation is open at any living worker, at most for that long.
    #[track_caller]
    pub(crate) fn run_until_done(&mut self, at_most: Duration) {
        let is_done = self.ends_within(at_most);
        assert!(is_done, "{} are open after {at_most:?}\n{}", self.open(), self.state());
    }

    #[track_caller]
    pub(crate) fn outcome(&self, end: u32, id: u64) -> &Ended {
        let ended = self.ended.get(&peer(end)).and_then(|ended| ended.get(&OperationId(id)));
        ended.unwrap_or_else(|| panic!("operation {id} at {end} has not ended\n{}", self.state()))
    }

    /// How the operations of a worker ended, in order.
    pub(crate) fn outcomes(&self, end: u32) -> Vec<Result<Sum, Failure>> {
        let ended = self.ended.get(&peer(end)).into_iter().flat_map(|ended| ended.values());
        ended.map(|ended| ended.outcome).collect()
    }

    /// Every one of these operations, in the order of their beginning, has the exact result at all workers.
    #[track_caller]
    pub(crate) fn all_are_right(&self, tasks: &[Task]) {
        let ends: Vec<u32> = (0..self.setting.workers).collect();
        for end in &ends {
            let ended = &self.ended[&peer(*end)];
            for (task, (id, ended)) in tasks.iter().zip(ended) {
                assert!(ended.outcome.is_ok(), "end {end}, {id:?}: {:?}", ended.outcome);
                assert!(ended.lanes == task.expected::<P>(&ends), "end {end}, {id:?}, {task:?}");
            }
            assert_eq!(ended.len(), tasks.len(), "end {end}");
        }
    }

    /// All workers begin this operation, and it ends in time with the sum of all of them.
    #[track_caller]
    pub(crate) fn sums(&mut self, task: Task, within: Duration) {
        self.begin_all(task);
        self.run_until_done(within);
        let all: Vec<u32> = (0..self.setting.workers).collect();
        for end in &all {
            let ended = self.ended[&peer(*end)].values().last().expect("it has ended");
            assert!(ended.outcome.is_ok(), "end {end}: {:?}\n{}", ended.outcome, self.state());
            assert!(ended.lanes == task.expected::<P>(&all), "end {end}: a wrong sum");
        }
    }

    /// The same, where a generation has ended meanwhile: workers that had nothing open then are told by their next
    /// operation. It fails at all workers, and the one after it ends well.
    #[track_caller]
    pub(crate) fn goes_on(&mut self, task: Task, within: Duration) {
        self.begin_all(task);
        self.run_until_done(within);
        let last = |end| self.outcomes(end).last().copied();
        let is_told = |outcome| matches!(outcome, Some(Err(Failure::Closed { .. })));
        if (0..self.setting.workers).any(|end| last(end).is_some_and(|outcome| outcome.is_err())) {
            let all: Vec<_> = (0..self.setting.workers).map(last).collect();
            assert!(all.iter().copied().all(is_told), "{all:?}\n{}", self.state());
            self.run_for(within);
        }
        self.sums(Task { number: task.number + 1, ..task }, within);
    }

    #[track_caller]
    pub(crate) fn accounts(&self) {
        P::accounts(&self.net, &self.setting);
    }
}
