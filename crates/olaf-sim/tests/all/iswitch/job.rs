//! A job of ends around one switch, or around a tree of switches.

pub(super) use crate::common::sums::peer;
use crate::common::sums::{AllEnded, Ended, collect, operation, proofs};
use core::time::Duration;
use olaf_engine::switch::iswitch::{Config as SwitchConfig, Switch};
use olaf_engine::{Instant, JobId, PeerId, PortId, Session, Wiring};
use olaf_host::collective::{
    Collective, Config, IswitchOptions, IswitchWorker, Operation, OperationId, Options, Reduction,
};
use olaf_sim::network::Node;
use olaf_sim::{Network, Wire};

/// The uppermost switch.
pub(super) const SWITCH: PeerId = PeerId(1000);
const START: Instant = Instant(1_700_000_000_000_000_000);
const JOB: JobId = JobId(1);

/// What a run is made of.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) workers: u32,
    /// For each worker the leaf it is behind, from 0; none: it is behind the uppermost switch.
    pub(super) leaves: Vec<Option<u32>>,
    /// Between each end and its switch, and between switches.
    pub(super) wire: Wire,
    pub(super) options: Options,
    pub(super) own: IswitchOptions,
    pub(super) datagram_bytes: u32,
    pub(super) switch: SwitchConfig,
    pub(super) accepts_partial: bool,
    /// Events are kept.
    pub(super) keeps_records: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            seed: 1,
            workers: 3,
            leaves: Vec::new(),
            wire: Wire { delay: Duration::from_micros(100), ..Wire::default() },
            options: Options::default(),
            own: IswitchOptions::default(),
            datagram_bytes: 1472,
            switch: SwitchConfig { slots: 64, ..SwitchConfig::default() },
            accepts_partial: false,
            keeps_records: false,
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
pub(super) fn lane(end: u32, number: u32, at: usize) -> f32 {
    ((at as u32).wrapping_mul(7) + end * 13 + number * 5) as i32 as u8 as f32 - 100.0
}

impl Task {
    pub(super) const fn sum(lanes: usize, number: u32) -> Self {
        Self { reduction: Reduction::Sum, lanes, number }
    }

    pub(super) fn operation(self, end: u32, accepts_partial: bool) -> Operation {
        let lanes = (0..self.lanes).map(|at| lane(end, self.number, at));
        operation(self.reduction, lanes, accepts_partial)
    }

    /// What the ends should get where these took part.
    pub(super) fn expected(self, ends: &[u32]) -> Vec<f32> {
        let each = |at: usize| ends.iter().map(move |end| lane(*end, self.number, at));
        let lanes = 0..self.lanes;
        match self.reduction {
            Reduction::Sum => lanes.map(|at| each(at).sum()).collect(),
            Reduction::Mean => lanes.map(|at| each(at).sum::<f32>() / ends.len() as f32).collect(),
            Reduction::Broadcast { root } => {
                lanes.map(|at| lane(ends[root as usize], self.number, at)).collect()
            }
            other => panic!("iSwitch has no {other:?}"),
        }
    }
}

pub(super) fn leaf(number: u32) -> PeerId {
    PeerId(1001 + number)
}

impl Job {
    pub(super) fn new(setting: Setting) -> Self {
        let (config, seed) = (setting.switch.clone(), setting.seed);
        Self::with_switch(setting, Wiring::new(PortId::DOWNLINK), move |life, _| {
            let mut switch =
                Switch::new(config.clone(), 77 * (life + 1)).expect("the set-up can be");
            proofs(seed, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
            Box::new(switch)
        })
    }

    /// The same with another uppermost switch, or other wiring.
    pub(super) fn with_switch(
        setting: Setting,
        wiring: Wiring,
        switch: impl FnMut(u32, Instant) -> Box<dyn Node> + Send + 'static,
    ) -> Self {
        let mut net = Network::new(setting.seed, START);
        if !setting.keeps_records {
            net = net.without_records();
        }
        net.place_wired(SWITCH, wiring, switch);
        let leaves = setting.leaves.iter().flatten().max().map_or(0, |last| last + 1);
        for number in 0..leaves {
            let (config, bytes) = (setting.switch.clone(), setting.datagram_bytes);
            let seed = setting.seed;
            let wiring = Wiring::new(PortId::DOWNLINK).with(SWITCH, PortId::UPLINK);
            net.place_wired(leaf(number), wiring, move |life, _| {
                let epoch = 1000 * number + 77 * (life + 1);
                let mut switch = Switch::new(config.clone(), epoch).expect("the set-up can be");
                switch.set_upstream(SWITCH, bytes);
                proofs(seed, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
                Box::new(switch)
            });
            net.join(leaf(number), SWITCH, setting.wire);
        }
        let mut job = Self { net, setting, ended: AllEnded::new() };
        for end in 0..job.setting.workers {
            job.place(end);
        }
        job
    }

    /// The switch that an end is behind.
    pub(super) fn switch_of(&self, end: u32) -> PeerId {
        self.setting.leaves.get(end as usize).copied().flatten().map_or(SWITCH, leaf)
    }

    fn place(&mut self, end: u32) {
        let Setting { workers, datagram_bytes, ref options, ref own, wire, .. } = self.setting;
        let (options, own) = (options.clone(), own.clone());
        let switch = self.switch_of(end);
        self.net.place(peer(end), move |life, now| {
            let mut config = Config::new(JOB, Session(1 + end + 1000 * life), switch);
            config.workers = workers;
            config.rank = Some(end);
            config.datagram_bytes = datagram_bytes;
            config.options = options.clone();
            let mut worker = IswitchWorker::new(config, own.clone()).expect("the set-up can be");
            worker.join(now);
            Box::new(worker)
        });
        self.net.join(peer(end), switch, wire);
    }

    pub(super) fn with<T>(
        &mut self,
        end: u32,
        act: impl FnOnce(&mut IswitchWorker, Instant) -> T,
    ) -> T {
        self.net.with(peer(end), act).expect("the end is alive")
    }

    pub(super) fn begin(&mut self, end: u32, task: Task) -> OperationId {
        let operation = task.operation(end, self.setting.accepts_partial);
        let begun = self.with(end, |worker, now| worker.begin(now, operation));
        begun.map_err(|(failure, _)| failure).expect("the operation begins")
    }

    /// Every end that is alive begins it.
    pub(super) fn begin_all(&mut self, task: Task) {
        for end in 0..self.setting.workers {
            if self.net.node::<IswitchWorker>(peer(end)).is_some() {
                self.begin(end, task);
            }
        }
    }

    /// What all parties say of themselves.
    pub(super) fn state(&self) -> String {
        let now = self.net.now();
        let ends = 0..self.setting.workers;
        let ends = ends.filter_map(|end| self.net.node::<IswitchWorker>(peer(end)));
        let mut all: Vec<String> = ends.map(|end| format!("{:?}", end.statistics(now))).collect();
        for switch in self.switches() {
            let switch = self.net.node::<Switch>(switch);
            all.extend(switch.map(|switch| format!("{:?}", switch.statistics(now))));
        }
        all.join("\n")
    }

    pub(super) fn switches(&self) -> Vec<PeerId> {
        let leaves = self.setting.leaves.iter().flatten().max().map_or(0, |last| last + 1);
        core::iter::once(SWITCH).chain((0..leaves).map(leaf)).collect()
    }

    fn collect(&mut self) {
        collect::<IswitchWorker>(&mut self.net, self.setting.workers, &mut self.ended);
    }

    pub(super) fn open(&self) -> usize {
        let ends = (0..self.setting.workers).filter_map(|end| self.net.node(peer(end)));
        ends.map(IswitchWorker::open_operations).sum()
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
            let (open, now) = (self.open(), self.net.now());
            assert!(now < until, "{open} operations are open\n{}", self.state());
            self.net.run_for(Duration::from_micros(50));
            self.collect();
        }
    }

    pub(super) fn outcome(&self, end: u32, id: u64) -> &Ended {
        &self.ended[&peer(end)][&OperationId(id)]
    }

    /// Every one of these operations, in the order of their beginning, has the exact result at all ends.
    #[track_caller]
    pub(super) fn all_are_right(&self, tasks: &[Task]) {
        let ends: Vec<u32> = (0..self.setting.workers).collect();
        for end in &ends {
            let ended = &self.ended[&peer(*end)];
            for (task, (id, ended)) in tasks.iter().zip(ended) {
                let sum = ended.outcome;
                assert!(sum.is_ok(), "end {end}, {id:?}: {sum:?}");
                assert!(ended.lanes == task.expected(&ends), "end {end}, {id:?}, {task:?}");
            }
            assert_eq!(ended.len(), tasks.len(), "end {end}");
        }
    }

    /// What each end sent and received is accounted for, and so are the pieces at every switch.
    #[track_caller]
    pub(super) fn accounts(&self) {
        let now = self.net.now();
        for end in 0..self.setting.workers {
            for worker in self.net.lives::<IswitchWorker>(peer(end)) {
                let of = worker.statistics(now);
                let operations = of.operations;
                assert_eq!(operations.begun, operations.done + operations.failed + operations.open);
                let results = of.results;
                let fates = results.taken + results.again + results.early + results.refused;
                assert_eq!(results.received, fates);
            }
        }
        for switch in self.switches() {
            for switch in self.net.lives::<Switch>(switch) {
                let of = switch.statistics(now).pieces;
                let refused: u64 = of.refused.values().sum();
                let fates = of.summed + of.waiting + of.late + of.repeated + of.held + of.occupied;
                assert_eq!(of.received, fates + of.given_up + refused);
            }
        }
    }
}
