//! Jobs of workers behind switches, with their servers.

use crate::common::sums::proofs;
use core::time::Duration;
use olaf_engine::switch::atp::{Config as SwitchConfig, Switch};
use olaf_engine::{Instant, JobId, PeerId, PortId, Session, Wiring};
use olaf_host::collective::atp::{AtpServer, Options, ServerConfig, Topology, Worker};
use olaf_host::collective::{
    Collective, Config, Done, Failure, Label, Operation, OperationId, Options as CommonOptions,
    Reduction, Sum,
};
use olaf_sim::{Network, Wire};
use olaf_wire::atp::switch_id;
use olaf_wire::reduce::LaneType;
use std::collections::BTreeMap;

const START: Instant = Instant(1_700_000_000_000_000_000);
pub(super) const MS: Duration = Duration::from_millis(1);

/// The switch before the servers.
pub(super) const TOP: PeerId = PeerId(2000);

pub(super) fn server(index: u32) -> PeerId {
    PeerId(3000 + index)
}

/// A lower switch.
pub(super) fn rack(number: u32) -> PeerId {
    PeerId(1000 + number)
}

/// The number that a switch writes into joins: that of its name.
pub(super) fn number_of(at: PeerId) -> u32 {
    if at == TOP { switch_id("top") } else { switch_id(&format!("rack{}", at.0 - 1000)) }
}

/// What a run is made of.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) seed: u64,
    /// Workers of each job behind each lower switch; those of the last entry are behind the top.
    pub(super) racks: Vec<u32>,
    /// The switch above each lower switch, by its number; the top where there is none.
    pub(super) above: Vec<Option<u32>>,
    pub(super) jobs: u32,
    /// Between each worker and its switch.
    pub(super) wire: Wire,
    /// Between switches and servers.
    pub(super) trunk: Wire,
    pub(super) own: Options,
    pub(super) options: CommonOptions,
    pub(super) switch: SwitchConfig,
    pub(super) server: ServerConfig,
    pub(super) topology: Option<&'static str>,
    /// Workers ask for no rank.
    pub(super) without_wishes: bool,
    pub(super) keeps_records: bool,
}

impl Default for Setting {
    fn default() -> Self {
        let wire = Wire { delay: Duration::from_micros(100), ..Wire::default() };
        Self {
            seed: 1,
            racks: vec![3],
            above: Vec::new(),
            jobs: 1,
            wire,
            trunk: wire,
            own: Options::default(),
            options: CommonOptions::default(),
            switch: SwitchConfig::default(),
            server: ServerConfig::default(),
            topology: None,
            without_wishes: false,
            keeps_records: false,
        }
    }
}

impl Setting {
    pub(super) fn workers(&self) -> u32 {
        self.racks.iter().sum()
    }
}

/// An operation that all workers of a job begin, with lanes that depend on the worker and a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) reduction: Reduction,
    pub(super) lanes: usize,
    pub(super) number: u32,
    /// Lanes are that many times larger: sums of 10^8 times larger ones run over.
    pub(super) times: f32,
}

/// How an operation ended at a worker.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) outcome: Result<Sum, Failure>,
    pub(super) lanes: Vec<f32>,
}

pub(super) struct Jobs {
    pub(super) net: Network,
    pub(super) setting: Setting,
    /// By worker, in the order of `OperationId`.
    pub(super) ended: BTreeMap<PeerId, BTreeMap<OperationId, Ended>>,
}

/// A lane of a worker: an eighth of a small integer, so that sums are exact in every order.
fn lane(worker: u32, number: u32, at: usize) -> f32 {
    let bits = (at as u32).wrapping_mul(7) + worker * 13 + number * 5;
    f32::from((bits % 16) as u8) / 8.0 - 1.0
}

impl Task {
    pub(super) const fn sum(lanes: usize, number: u32) -> Self {
        Self { reduction: Reduction::Sum, lanes, number, times: 1.0 }
    }

    fn operation(self, worker: u32) -> Operation {
        let lanes = (0..self.lanes).map(|at| self.times * lane(worker, self.number, at));
        Operation {
            lane_type: LaneType::F32,
            reduction: self.reduction,
            buffer: Box::new(lanes.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()),
            accepts_partial: false,
            label: Label::default(),
        }
    }

    /// What these workers should get.
    pub(super) fn expected(self, workers: u32) -> Vec<f32> {
        let each =
            |at: usize| (0..workers).map(move |worker| self.times * lane(worker, self.number, at));
        let by = if self.reduction == Reduction::Mean { workers as f32 } else { 1.0 };
        (0..self.lanes).map(|at| each(at).sum::<f32>() / by).collect()
    }
}

/// A worker of a job, both counted from 0.
pub(super) fn worker(job: u32, rank: u32) -> PeerId {
    PeerId(1 + 100_000 * (job + 1) + rank)
}

impl Jobs {
    pub(super) fn new(setting: Setting) -> Self {
        let mut net = Network::new(setting.seed, START);
        if !setting.keeps_records {
            net = net.without_records();
        }
        let servers = u32::from(setting.own.servers);
        let (config, topology) = (setting.server.clone(), setting.topology);
        let seed = setting.seed;
        for index in 0..servers {
            let config = config.clone();
            net.place(server(index), move |life, _| {
                let epoch = u16::try_from(100 + 7 * index + 1000 * life).unwrap();
                let mut server = AtpServer::new(config.clone(), epoch).expect("the set-up can be");
                proofs(seed, life).into_iter().for_each(|chance| server.demand_proofs(chance));
                if let Some(text) = topology {
                    server.set_topology(Topology::parse(text).expect("it is well-formed"));
                }
                Box::new(server)
            });
        }
        let mut top = Wiring::new(PortId::DOWNLINK);
        (0..servers).for_each(|index| top.place(server(index), PortId::UPLINK));
        let mut jobs = Self { net, setting, ended: BTreeMap::new() };
        jobs.place_switch(TOP, top, (0..servers).map(server).collect());
        for index in 0..servers {
            jobs.net.join(TOP, server(index), jobs.setting.trunk);
        }
        for number in 0..jobs.setting.racks.len() as u32 - 1 {
            let above = jobs.setting.above.get(number as usize).copied().flatten();
            let above = above.map_or(TOP, rack);
            let wiring = Wiring::new(PortId::DOWNLINK).with(above, PortId::UPLINK);
            jobs.place_switch(rack(number), wiring, vec![above]);
            jobs.net.join(rack(number), above, jobs.setting.trunk);
        }
        for job in 0..jobs.setting.jobs {
            (0..jobs.setting.workers()).for_each(|rank| jobs.place(job, rank));
        }
        jobs
    }

    fn place_switch(&mut self, at: PeerId, wiring: Wiring, servers: Vec<PeerId>) {
        let (config, seed) = (self.setting.switch.clone(), self.setting.seed);
        self.net.place_wired(at, wiring, move |life, _| {
            let mut switch = Switch::new(config.clone(), number_of(at)).expect("the set-up can be");
            switch.set_servers(&servers);
            proofs(seed, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
            Box::new(switch)
        });
    }

    /// The switch of a worker.
    pub(super) fn switch_of(&self, rank: u32) -> PeerId {
        let mut before = 0;
        for (number, workers) in (0..).zip(&self.setting.racks) {
            before += workers;
            if rank < before {
                let is_last = number as usize + 1 == self.setting.racks.len();
                return if is_last { TOP } else { rack(number) };
            }
        }
        TOP
    }

    fn place(&mut self, job: u32, rank: u32) {
        let switch = self.switch_of(rank);
        let workers = self.setting.workers();
        let (own, options) = (self.setting.own.clone(), self.setting.options.clone());
        let wishes = !self.setting.without_wishes;
        self.net.place(worker(job, rank), move |life, now| {
            let session = Session(1 + rank + 10_000 * life + 1_000_000 * job);
            let mut config = Config::new(JobId(1 + job), session, switch);
            config.workers = workers;
            config.rank = wishes.then_some(rank);
            config.options = options.clone();
            let mut worker = Worker::new(config, own.clone()).expect("the set-up can be");
            worker.join(now);
            Box::new(worker)
        });
        self.net.join(worker(job, rank), switch, self.setting.wire);
        // The first join found no wire.
    }

    pub(super) fn begin(&mut self, job: u32, rank: u32, task: Task) -> OperationId {
        let operation = task.operation(rank);
        let begun = self.net.with(worker(job, rank), |worker: &mut Worker, now| {
            worker.begin(now, operation).map_err(|(failure, _)| failure)
        });
        begun.expect("the worker is alive").expect("the operation begins")
    }

    /// Every worker of a job that is alive begins it.
    pub(super) fn begin_all(&mut self, job: u32, task: Task) {
        for rank in 0..self.setting.workers() {
            if self.net.node::<Worker>(worker(job, rank)).is_some() {
                self.begin(job, rank, task);
            }
        }
    }

    pub(super) fn workers(&self) -> Vec<PeerId> {
        let ranks = 0..self.setting.workers();
        (0..self.setting.jobs)
            .flat_map(|job| ranks.clone().map(move |rank| worker(job, rank)))
            .collect()
    }

    fn collect(&mut self) {
        for at in self.workers() {
            let done = self.net.with(at, |worker: &mut Worker, _| {
                core::iter::from_fn(|| worker.poll_done()).collect::<Vec<Done>>()
            });
            for done in done.into_iter().flatten() {
                let (lanes, _) = done.buffer.bytes().as_chunks();
                let lanes = lanes.iter().map(|lane| f32::from_le_bytes(*lane)).collect();
                let ended = Ended { outcome: done.outcome, lanes };
                self.ended.entry(at).or_default().insert(done.id, ended);
            }
        }
    }

    pub(super) fn open(&self) -> usize {
        let workers = self.workers().into_iter().filter_map(|at| self.net.node(at));
        workers.map(Worker::open_operations).sum()
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
            self.net.run_for(Duration::from_micros(100));
            self.collect();
        }
    }

    /// What all parties say of themselves.
    pub(super) fn state(&self) -> String {
        let mut state = String::new();
        for at in self.workers() {
            if let Some(worker) = self.net.node::<Worker>(at) {
                state += &format!("{at:?} {:?}\n", worker.statistics());
            }
        }
        for index in 0..u32::from(self.setting.own.servers) {
            if let Some(node) = self.net.node::<AtpServer>(server(index)) {
                state += &format!("server {index} {:?}\n", node.statistics());
            }
        }
        for at in self.switches() {
            if let Some(switch) = self.net.node::<Switch>(at) {
                state += &format!("{at:?} {:?}\n", switch.statistics());
            }
        }
        state
    }

    pub(super) fn switches(&self) -> Vec<PeerId> {
        (0..self.setting.racks.len() as u32 - 1).map(rack).chain([TOP]).collect()
    }

    pub(super) fn server(&self, index: u32) -> &AtpServer {
        self.net.node(server(index)).expect("it lives")
    }

    pub(super) fn switch(&self, at: PeerId) -> &Switch {
        self.net.node(at).expect("it lives")
    }

    pub(super) fn worker(&self, job: u32, rank: u32) -> &Worker {
        self.net.node(worker(job, rank)).expect("it lives")
    }

    /// Every one of these operations, in the order of their beginning, has the exact result at all
    /// workers of a job.
    #[track_caller]
    pub(super) fn all_are_right(&self, job: u32, tasks: &[Task]) {
        let workers = self.setting.workers();
        for rank in 0..workers {
            let ended = &self.ended[&worker(job, rank)];
            for (task, (id, ended)) in tasks.iter().zip(ended) {
                let sum = ended.outcome;
                assert!(sum.is_ok(), "rank {rank}, {id:?}: {sum:?}");
                assert!(ended.lanes == task.expected(workers), "rank {rank}, {id:?}, {task:?}");
            }
            assert_eq!(ended.len(), tasks.len(), "rank {rank}");
        }
    }

    /// Every packet at every party has one fate.
    #[track_caller]
    pub(super) fn accounts(&self) {
        for at in self.workers() {
            for worker in self.net.lives::<Worker>(at) {
                let of = worker.statistics();
                let operations = of.operations;
                assert_eq!(operations.begun, operations.done + operations.failed + operations.open);
                let sent = of.fragments;
                assert_eq!(sent.sent, sent.answered + sent.in_flight + sent.abandoned, "{of:?}");
                let came = of.parameters;
                let fates = came.taken + came.repeated + came.float_requests + came.refused;
                assert_eq!(came.received, fates, "{of:?}");
            }
        }
        for at in self.switches() {
            for switch in self.net.lives::<Switch>(at) {
                let of = switch.statistics().pieces;
                assert_eq!(of.received, of.settled(), "{of:?}");
            }
        }
        for index in 0..u32::from(self.setting.own.servers) {
            for node in self.net.lives::<AtpServer>(server(index)) {
                let of = node.statistics().gradients;
                let fates = of.singles + of.sums + of.repeated + of.overlapping + of.late;
                let others = of.ran_over + of.not_float + of.mismatched + of.refused;
                assert_eq!(of.received, fates + others, "{of:?}");
            }
        }
    }
}
