//! A job of workers around one switch, or around two under a third.

pub(super) use crate::common::sums::peer;
use crate::common::sums::{AllEnded, collect, operation, proofs};
use core::time::Duration;
use olaf_engine::switch::trio::{Config as SwitchConfig, Switch};
use olaf_engine::{Instant, JobId, PeerId, PortId, Session, Wiring};
use olaf_host::collective::trio::{Options as Own, Worker};
use olaf_host::collective::{
    Collective, Config, Operation, OperationId, Options, Reduction, Standing,
};
use olaf_sim::{Network, Wire};

pub(super) const SWITCH: PeerId = PeerId(1000);
pub(super) const MS: Duration = Duration::from_millis(1);
const START: Instant = Instant(1_700_000_000_000_000_000);
const JOB: JobId = JobId(7);

/// What a run is made of.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) workers: u32,
    /// Between each worker and its switch, and between switches.
    pub(super) wire: Wire,
    pub(super) datagram_bytes: u32,
    pub(super) options: Options,
    pub(super) own: Own,
    pub(super) switch: SwitchConfig,
    /// How many workers each lower switch has; none: one switch has all.
    pub(super) lower: Vec<u32>,
    pub(super) accepts_partial: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            seed: 1,
            workers: 3,
            wire: Wire { delay: Duration::from_micros(100), ..Wire::default() },
            datagram_bytes: 1472,
            options: Options::default(),
            own: Own::default(),
            switch: SwitchConfig::default(),
            lower: Vec::new(),
            accepts_partial: false,
        }
    }
}

/// An operation that all workers begin, with lanes that depend on the worker and on a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) reduction: Reduction,
    pub(super) lanes: usize,
    pub(super) number: u32,
}

pub(super) struct Job {
    pub(super) net: Network,
    pub(super) setting: Setting,
    pub(super) ended: AllEnded,
}

/// A lane of a worker: whole 64ths, which the scale of 10^8 keeps exactly.
fn lane(end: u32, number: u32, at: usize) -> f32 {
    let byte = (at as u32).wrapping_mul(7) + end * 13 + number * 5;
    (f32::from(byte as u8) - 100.0) / 64.0
}

impl Task {
    pub(super) const fn sum(lanes: usize, number: u32) -> Self {
        Self { reduction: Reduction::Sum, lanes, number }
    }

    fn operation(self, end: u32, accepts_partial: bool) -> Operation {
        let lanes = (0..self.lanes).map(|at| lane(end, self.number, at));
        operation(self.reduction, lanes, accepts_partial)
    }

    /// What these workers should get.
    pub(super) fn expected(self, ends: &[u32]) -> Vec<f32> {
        let sum = |at: usize| ends.iter().map(|end| lane(*end, self.number, at)).sum::<f32>();
        let by = if self.reduction == Reduction::Mean { ends.len() as f32 } else { 1.0 };
        (0..self.lanes).map(|at| (f64::from(sum(at)) / f64::from(by)) as f32).collect()
    }
}

pub(super) fn lower(at: usize) -> PeerId {
    PeerId(2000 + at as u32)
}

impl Job {
    pub(super) fn new(setting: Setting) -> Self {
        let net = Network::new(setting.seed, START).without_records();
        let mut job = Self { net, setting, ended: AllEnded::new() };
        job.place_switch(SWITCH, None);
        let lowers = job.setting.lower.clone();
        for at in 0..lowers.len() {
            job.place_switch(lower(at), Some(SWITCH));
            job.net.join(lower(at), SWITCH, job.setting.wire);
        }
        for end in 0..job.setting.workers {
            job.place(end);
        }
        job
    }

    fn place_switch(&mut self, id: PeerId, above: Option<PeerId>) {
        let (config, seed) = (self.setting.switch.clone(), self.setting.seed);
        let wiring = Wiring::new(PortId::DOWNLINK);
        let wiring = match above {
            Some(above) => wiring.with(above, PortId::UPLINK),
            None => wiring,
        };
        self.net.place_wired(id, wiring, move |life, _| {
            let epoch = 1_000_000 * (life + 1) + id.0;
            let mut switch = Switch::new(config.clone(), epoch).expect("the set-up can be");
            above.into_iter().for_each(|above| switch.set_upstream(above));
            proofs(seed, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
            Box::new(switch)
        });
    }

    /// The switch of a worker.
    pub(super) fn switch_of(&self, end: u32) -> PeerId {
        let mut first = 0;
        for (at, workers) in self.setting.lower.iter().enumerate() {
            first += workers;
            if end < first {
                return lower(at);
            }
        }
        SWITCH
    }

    fn place(&mut self, end: u32) {
        let switch = self.switch_of(end);
        let Setting { workers, datagram_bytes, ref options, ref own, wire, .. } = self.setting;
        let (options, own) = (options.clone(), own.clone());
        self.net.place(peer(end), move |life, now| {
            let config = Config {
                workers,
                rank: Some(end),
                datagram_bytes,
                options: options.clone(),
                ..Config::new(JOB, Session(1 + end + 1000 * life), switch)
            };
            let mut worker = Worker::new(config, own.clone()).expect("the set-up can be");
            worker.join(now);
            Box::new(worker)
        });
        self.net.join(peer(end), switch, wire);
    }

    pub(super) fn begin(&mut self, end: u32, task: Task) -> OperationId {
        let operation = task.operation(end, self.setting.accepts_partial);
        let begun = self.net.with(peer(end), |worker: &mut Worker, now| {
            worker.begin(now, operation).map_err(|(failure, _)| failure)
        });
        begun.expect("the worker is alive").expect("the operation begins")
    }

    /// The same, for an operation that needs no name.
    pub(super) fn starts(&mut self, end: u32, task: Task) {
        self.begin(end, task);
    }

    pub(super) fn give_up(&mut self, end: u32, id: OperationId) {
        self.net.with(peer(end), |worker: &mut Worker, now| worker.give_up(now, id));
    }

    /// Every worker that is alive begins it.
    pub(super) fn begin_all(&mut self, task: Task) {
        for end in 0..self.setting.workers {
            if self.net.node::<Worker>(peer(end)).is_some() {
                self.begin(end, task);
            }
        }
    }

    pub(super) fn is_in(&self, end: u32) -> bool {
        let worker = self.net.node::<Worker>(peer(end));
        worker.is_some_and(|worker| matches!(worker.standing(), Standing::In { .. }))
    }

    /// What all parties say of themselves.
    pub(super) fn state(&self) -> String {
        let now = self.net.now();
        let ends = (0..self.setting.workers).filter_map(|end| self.net.node::<Worker>(peer(end)));
        let mut all: Vec<String> = ends.map(|end| format!("{:?}", end.statistics(now))).collect();
        let switches = self.switches();
        let switches = switches.into_iter().filter_map(|at| self.net.node::<Switch>(at));
        all.extend(switches.map(|switch| format!("{:?}", switch.statistics(now))));
        all.join("\n")
    }

    fn switches(&self) -> Vec<PeerId> {
        (0..self.setting.lower.len()).map(lower).chain([SWITCH]).collect()
    }

    fn collect(&mut self) {
        collect::<Worker>(&mut self.net, self.setting.workers, &mut self.ended);
    }

    pub(super) fn open(&self) -> usize {
        let ends = (0..self.setting.workers).filter_map(|end| self.net.node(peer(end)));
        ends.map(Worker::open_operations).sum()
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        self.net.run_for(time);
        self.collect();
    }

    /// Runs until no operation is open at any living worker, at most for that long.
    #[track_caller]
    pub(super) fn run_until_done(&mut self, at_most: Duration) {
        let until = self.net.now() + at_most;
        self.collect();
        while self.open() > 0 {
            assert!(self.net.now() < until, "{} are open\n{}", self.open(), self.state());
            self.net.run_for(Duration::from_micros(50));
            self.collect();
        }
    }

    /// Every one of these operations has the exact result at all these workers.
    #[track_caller]
    pub(super) fn all_are_right(&self, tasks: &[Task], ends: &[u32]) {
        for end in ends {
            let ended = &self.ended[&peer(*end)];
            for (task, (id, ended)) in tasks.iter().zip(ended) {
                assert!(ended.outcome.is_ok(), "end {end}, {id:?}: {:?}", ended.outcome);
                assert!(ended.lanes == task.expected(ends), "end {end}, {id:?}, {task:?}");
            }
            assert_eq!(ended.len(), tasks.len(), "end {end}");
        }
    }

    /// What each worker sent and received is accounted for, and so are the pieces at each switch.
    #[track_caller]
    pub(super) fn accounts(&self) {
        let now = self.net.now();
        for end in 0..self.setting.workers {
            for worker in self.net.lives::<Worker>(peer(end)) {
                let of = worker.statistics(now);
                let operations = of.operations;
                assert_eq!(operations.begun, operations.done + operations.failed + operations.open);
                let pieces = of.pieces;
                assert_eq!(pieces.sent, pieces.answered + pieces.in_flight + pieces.abandoned);
                let results = of.results;
                assert_eq!(results.received, results.taken + results.early + results.refused);
                let kept = results.early - results.early_used - results.early_discarded;
                assert_eq!(kept, results.early_waiting, "{of:?}");
            }
        }
        for switch in self.switches() {
            for switch in self.net.lives::<Switch>(switch) {
                let of = switch.statistics(now).pieces;
                let refused: u64 = of.refused.values().sum();
                let fates = of.summed + of.waiting + of.late + of.repeated + of.overtaken;
                assert_eq!(of.received, fates + of.given_up + refused);
            }
        }
    }
}
