//! `reduce`.

use super::{place, proofs};
use crate::common::sums::peer;
use crate::sums::job::Setting;
use crate::sums::protocol::{Known, Protocol, TOP};
use core::time::Duration;
use olaf_engine::switch::reduce::{Config as SwitchConfig, Switch};
use olaf_engine::{Engine, PeerId, PortId, Source, Verdict};
use olaf_host::collective::{Config, Reducer, Reduction};
use olaf_sim::Network;
use olaf_wire::reduce::{Address, Leave};
use olaf_wire::{JobId, Session};

#[derive(Clone, Debug)]
pub(crate) struct Reduce;

impl Protocol for Reduce {
    type Worker = Reducer;
    type Own = ();
    type Config = SwitchConfig;

    const NAME: &'static str = "reduce";
    const HAS_ELASTIC_JOBS: bool = true;
    const LONG: usize = 2_000_000;

    fn own() {}

    fn config_with(jobs: u32, silence: Duration) -> SwitchConfig {
        SwitchConfig { slots: 64, jobs, silence, ..SwitchConfig::default() }
    }

    fn reductions(workers: u32) -> Vec<Reduction> {
        vec![
            Reduction::Sum,
            Reduction::Mean,
            Reduction::Min,
            Reduction::Max,
            Reduction::Broadcast { root: 0 },
            Reduction::Broadcast { root: workers - 1 },
        ]
    }

    fn lane(end: u32, number: u32, at: usize) -> f32 {
        ((at as u32).wrapping_mul(7) + end * 13 + number * 5) as i32 as u8 as f32 - 100.0
    }

    fn place_switches(net: &mut Network, setting: &Setting<Self>) {
        let settle = setting.settle;
        let (config, seed, bytes) = (setting.config.clone(), setting.seed, setting.datagram_bytes);
        place(net, setting, move |at, above, life| {
            let epoch = 1_000_000 * (life + 1) + at.0;
            let mut switch = Switch::new(config.clone(), epoch).expect("the set-up can be");
            above.into_iter().for_each(|above| switch.set_upstream(above, bytes));
            proofs(seed, at, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
            switch.expect_strangers(settle);
            switch
        });
    }

    fn worker(_: &Setting<Self>, config: Config) -> Reducer {
        Reducer::new(config)
    }

    fn open_operations(worker: &Reducer) -> usize {
        worker.open_operations()
    }

    fn describe(net: &Network, setting: &Setting<Self>) -> String {
        let now = net.now();
        let workers = (0..setting.workers).filter_map(|end| net.node::<Reducer>(peer(end)));
        let workers = workers.map(|worker| format!("{:?}\n", worker.statistics(now)));
        let switches = setting.switches().into_iter().filter_map(|at| net.node::<Switch>(at));
        workers.chain(switches.map(|switch| format!("{:?}\n", switch.statistics(now)))).collect()
    }

    fn accounts(net: &Network, setting: &Setting<Self>) {
        let ends = (0..setting.workers).flat_map(|end| net.lives::<Reducer>(peer(end)));
        ends.for_each(|end| end_adds_up(net, end));
        let switches = setting.switches().into_iter().flat_map(|at| net.lives::<Switch>(at));
        switches.for_each(|switch| switch_adds_up(net, switch));
    }

    fn known(net: &Network) -> Known {
        let of = net.node::<Switch>(TOP).expect("it lives").statistics(net.now());
        Known { jobs: of.jobs.iter().map(|job| job.job).collect() }
    }

    fn leave_of(net: &Network, worker: PeerId) -> Vec<u8> {
        leave_of(net, net.node::<Reducer>(worker).expect("it lives"))
    }

    fn inject(net: &mut Network, at: PeerId, from: PeerId, bytes: &[u8]) -> Option<Verdict> {
        let from = Source::new(PortId::DOWNLINK, from);
        net.with(at, |switch: &mut Switch, now| switch.handle_packet(now, from, bytes))
    }
}

/// What an end sent and received is accounted for.
#[track_caller]
pub(super) fn end_adds_up(net: &Network, end: &Reducer) {
    let of = end.statistics(net.now());
    let operations = of.operations;
    assert_eq!(operations.begun, operations.done + operations.failed + operations.open);
    let pieces = of.pieces;
    assert_eq!(pieces.sent, pieces.answered + pieces.in_flight + pieces.abandoned);
    let results = of.results;
    assert_eq!(results.received, results.taken + results.early + results.refused);
    let kept = results.early - results.early_used - results.early_discarded;
    assert_eq!(kept, results.early_waiting);
}

/// Each piece that came to a switch has one fate.
#[track_caller]
pub(super) fn switch_adds_up(net: &Network, switch: &Switch) {
    let of = switch.statistics(net.now()).pieces;
    let refused: u64 = of.refused.values().sum();
    let fates = of.summed + of.waiting + of.late + of.repeated + of.held + of.occupied;
    assert_eq!(of.received, fates + of.given_up + refused);
}

/// The leave that an end would send from where it is.
pub(super) fn leave_of(net: &Network, end: &Reducer) -> Vec<u8> {
    let of = end.statistics(net.now());
    let address = Address {
        job: JobId(1),
        generation: of.generation.unwrap_or(0),
        rank: of.rank.unwrap_or(0),
        session: Session(of.session),
    };
    let mut buf = vec![0; 128];
    let len = Leave { address, operation: 0 }.emit(&mut buf);
    buf.truncate(len);
    buf
}
