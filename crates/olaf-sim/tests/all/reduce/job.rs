//! A job of ends around one switch.

use super::socket::Socket;
pub(super) use crate::common::sums::peer;
use crate::common::sums::{AllEnded, collect, operation, proofs};
use core::time::Duration;
use olaf_engine::switch::reduce::{Config as SwitchConfig, Switch};
use olaf_engine::{Instant, JobId, PeerId, PortId, Session, Wiring};
use olaf_host::collective::{
    Collective, Config, Operation, OperationId, Options, Reducer, Reduction,
};
use olaf_sim::{Network, Wire};

pub(super) const SWITCH: PeerId = PeerId(1000);
const START: Instant = Instant(1_700_000_000_000_000_000);
const JOB: JobId = JobId(1);

/// What a run is made of.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) workers: u32,
    pub(super) is_elastic: bool,
    /// Between each end and the switch.
    pub(super) wire: Wire,
    pub(super) datagram_bytes: u32,
    pub(super) options: Options,
    pub(super) switch: SwitchConfig,
    /// Room of the switch's socket, and the time that the switch needs for a datagram.
    pub(super) socket: Option<(usize, Duration)>,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            seed: 1,
            workers: 3,
            is_elastic: false,
            wire: Wire { delay: Duration::from_micros(100), ..Wire::default() },
            datagram_bytes: 1472,
            options: Options::default(),
            switch: SwitchConfig { slots: 64, ..SwitchConfig::default() },
            socket: None,
        }
    }
}

/// An operation that all ends begin, with lanes that depend on the end and on a number.
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

/// A lane of an end: small, so that sums are exact in every order.
fn lane(end: u32, number: u32, at: usize) -> f32 {
    ((at as u32).wrapping_mul(7) + end * 13 + number * 5) as i32 as u8 as f32 - 100.0
}

impl Task {
    pub(super) const fn sum(lanes: usize, number: u32) -> Self {
        Self { reduction: Reduction::Sum, lanes, number }
    }

    fn operation(self, end: u32) -> Operation {
        let lanes = (0..self.lanes).map(|at| lane(end, self.number, at));
        operation(self.reduction, lanes, false)
    }

    /// What these ends, in the order of their ranks, should get.
    pub(super) fn expected(self, ends: &[u32]) -> Vec<f32> {
        let each = |at: usize| ends.iter().map(move |end| lane(*end, self.number, at));
        let lanes = 0..self.lanes;
        match self.reduction {
            Reduction::Sum | Reduction::ExactSum => lanes.map(|at| each(at).sum()).collect(),
            Reduction::Mean | Reduction::ExactMean => {
                lanes.map(|at| each(at).sum::<f32>() / ends.len() as f32).collect()
            }
            Reduction::Min => lanes.map(|at| each(at).fold(f32::MAX, f32::min)).collect(),
            Reduction::Max => lanes.map(|at| each(at).fold(f32::MIN, f32::max)).collect(),
            Reduction::Broadcast { root } => {
                lanes.map(|at| lane(ends[root as usize], self.number, at)).collect()
            }
            Reduction::Pipelined { .. } => panic!("`reduce` has no pipelined sums"),
        }
    }
}

impl Job {
    pub(super) fn new(setting: Setting) -> Self {
        let mut net = Network::new(setting.seed, START).without_records();
        let (config, socket, seed) = (setting.switch.clone(), setting.socket, setting.seed);
        net.place_wired(SWITCH, Wiring::new(PortId::DOWNLINK), move |life, _| {
            let epoch = 1_000_000 * (life + 1);
            let mut switch = Switch::new(config.clone(), epoch).expect("the set-up can be");
            proofs(seed, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
            match socket {
                Some((room, each)) => Box::new(Socket::new(switch, room, each)),
                None => Box::new(switch),
            }
        });
        let mut job = Self { net, setting, ended: AllEnded::new() };
        for end in 0..job.setting.workers {
            job.place(end);
        }
        job
    }

    /// The same with events kept.
    pub(super) fn place(&mut self, end: u32) {
        let Setting { is_elastic, workers, datagram_bytes, ref options, wire, .. } = self.setting;
        let options = options.clone();
        self.net.place(peer(end), move |life, now| {
            let session = Session(1 + end + 1000 * life);
            let mut config = Config::new(JOB, session, SWITCH);
            config.workers = if is_elastic { 0 } else { workers };
            config.rank = Some(end);
            config.datagram_bytes = datagram_bytes;
            config.options = options.clone();
            let mut reducer = Reducer::new(config);
            reducer.join(now);
            Box::new(reducer)
        });
        self.net.join(peer(end), SWITCH, wire);
        // The first join found no wire.
    }

    pub(super) fn begin(&mut self, end: u32, task: Task) -> OperationId {
        let operation = task.operation(end);
        let begun = self.net.with(peer(end), |reducer: &mut Reducer, now| {
            reducer.begin(now, operation).map_err(|(failure, _)| failure)
        });
        begun.expect("the end is alive").expect("the operation begins")
    }

    /// Every end that is alive begins it.
    pub(super) fn begin_all(&mut self, task: Task) {
        for end in 0..self.setting.workers {
            if self.net.node::<Reducer>(peer(end)).is_some() {
                self.begin(end, task);
            }
        }
    }

    /// What all parties say of themselves.
    pub(super) fn state(&self) -> String {
        let now = self.net.now();
        let ends = (0..self.setting.workers).filter_map(|end| self.net.node::<Reducer>(peer(end)));
        let mut all: Vec<String> = ends.map(|end| format!("{:?}", end.statistics(now))).collect();
        let is_bare = self.setting.socket.is_none();
        let switch = is_bare.then(|| self.net.node::<Switch>(SWITCH)).flatten();
        all.extend(switch.map(|switch| format!("{:?}", switch.statistics(now))));
        all.join("\n")
    }

    fn collect(&mut self) {
        collect::<Reducer>(&mut self.net, self.setting.workers, &mut self.ended);
    }

    pub(super) fn open(&self) -> usize {
        let ends = (0..self.setting.workers).filter_map(|end| self.net.node(peer(end)));
        ends.map(Reducer::open_operations).sum()
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        self.net.run_for(time);
        self.collect();
    }

    /// Runs until no operation is open at any living end, at most for that long.
    #[track_caller]
    pub(super) fn run_until_done(&mut self, at_most: Duration) {
        let until = self.net.now() + at_most;
        self.collect();
        while self.open() > 0 {
            assert!(
                self.net.now() < until,
                "{} operations are open\n{}",
                self.open(),
                self.state()
            );
            // An operation ends at a step of the network. The times in between are short.
            self.net.run_for(Duration::from_micros(50));
            self.collect();
        }
    }

    /// Every one of these operations, in the order of their beginning, has the exact result at all
    /// these ends.
    #[track_caller]
    pub(super) fn all_are_right(&self, tasks: &[Task], ends: &[u32]) {
        for end in ends {
            let ended = &self.ended[&peer(*end)];
            for (task, (id, ended)) in tasks.iter().zip(ended) {
                let sum = ended.outcome;
                assert!(sum.is_ok(), "end {end}, {id:?}: {sum:?}");
                assert!(ended.lanes == task.expected(ends), "end {end}, {id:?}, {task:?}");
            }
            assert_eq!(ended.len(), tasks.len(), "end {end}");
        }
    }

    /// What each end sent and received is accounted for, and so are the pieces at the switch.
    #[track_caller]
    pub(super) fn accounts(&self) {
        let now = self.net.now();
        for end in 0..self.setting.workers {
            for reducer in self.net.lives::<Reducer>(peer(end)) {
                let of = reducer.statistics(now);
                let operations = of.operations;
                assert_eq!(operations.begun, operations.done + operations.failed + operations.open);
                let pieces = of.pieces;
                assert_eq!(pieces.sent, pieces.answered + pieces.in_flight + pieces.abandoned);
                let results = of.results;
                assert_eq!(results.received, results.taken + results.early + results.refused);
                let kept = results.early - results.early_used - results.early_discarded;
                assert_eq!(kept, results.early_waiting);
            }
        }
        if self.setting.socket.is_some() {
            return;
        }
        for switch in self.net.lives::<Switch>(SWITCH) {
            let of = switch.statistics(now).pieces;
            let refused: u64 = of.refused.values().sum();
            let fates = of.summed + of.waiting + of.late + of.repeated + of.held + of.occupied;
            assert_eq!(of.received, fates + of.given_up + refused);
        }
    }
}
