//! Trio-ML.

use super::{place, proofs};
use crate::common::sums::peer;
use crate::sums::job::Setting;
use crate::sums::protocol::{Known, Protocol, TOP};
use core::time::Duration;
use olaf_engine::switch::trio::{Config as SwitchConfig, Switch};
use olaf_engine::{Engine, PeerId, PortId, Source, Verdict};
use olaf_host::collective::trio::{Options as Own, Worker};
use olaf_host::collective::{Config, Reduction};
use olaf_sim::Network;
use olaf_wire::Session;
use olaf_wire::reduce::Reason;
use olaf_wire::trio::Leave;

#[derive(Clone, Debug)]
pub(crate) struct Trio;

impl Protocol for Trio {
    type Worker = Worker;
    type Own = Own;
    type Config = SwitchConfig;

    const NAME: &'static str = "trio";
    // Results that were on their way when a term ended are lost.
    const FAILS_ALIKE: bool = false;
    const LONG: usize = 1_000_000;

    fn own() -> Own {
        Own::default()
    }

    fn slow() -> Own {
        Own { window: 64, ..Own::default() }
    }

    fn config_with(jobs: u32, silence: Duration) -> SwitchConfig {
        SwitchConfig { jobs, silence, ..SwitchConfig::default() }
    }

    fn reductions(_: u32) -> Vec<Reduction> {
        vec![Reduction::Sum, Reduction::Mean]
    }

    /// Whole 64ths, which the scale of 10^8 keeps exactly.
    fn lane(end: u32, number: u32, at: usize) -> f32 {
        let byte = (at as u32).wrapping_mul(7) + end * 13 + number * 5;
        (f32::from(byte as u8) - 100.0) / 64.0
    }

    fn place_switches(net: &mut Network, setting: &Setting<Self>) {
        let settle = setting.settle;
        let (config, seed) = (setting.config.clone(), setting.seed);
        place(net, setting, move |at, above, life| {
            let epoch = 1_000_000 * (life + 1) + at.0;
            let mut switch = Switch::new(config.clone(), epoch).expect("the set-up can be");
            above.into_iter().for_each(|above| switch.set_upstream(above));
            proofs(seed, at, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
            switch.expect_strangers(settle);
            switch
        });
    }

    fn worker(setting: &Setting<Self>, config: Config) -> Worker {
        Worker::new(config, setting.own.clone()).expect("the set-up can be")
    }

    fn open_operations(worker: &Worker) -> usize {
        worker.open_operations()
    }

    fn describe(net: &Network, setting: &Setting<Self>) -> String {
        let now = net.now();
        let workers = (0..setting.workers).filter_map(|end| net.node::<Worker>(peer(end)));
        let workers = workers.map(|worker| format!("{:?}\n", worker.statistics(now)));
        let switches = setting.switches().into_iter().filter_map(|at| net.node::<Switch>(at));
        workers.chain(switches.map(|switch| format!("{:?}\n", switch.statistics(now)))).collect()
    }

    fn accounts(net: &Network, setting: &Setting<Self>) {
        let now = net.now();
        for end in 0..setting.workers {
            for worker in net.lives::<Worker>(peer(end)) {
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
        for switch in setting.switches().into_iter().flat_map(|at| net.lives::<Switch>(at)) {
            let of = switch.statistics(now).pieces;
            let refused: u64 = of.refused.values().sum();
            let fates = of.summed + of.waiting + of.late + of.repeated + of.overtaken;
            assert_eq!(of.received, fates + of.given_up + refused);
        }
    }

    fn known(net: &Network) -> Known {
        let of = net.node::<Switch>(TOP).expect("it lives").statistics(net.now());
        Known { jobs: of.jobs.iter().map(|job| job.job.into()).collect() }
    }

    fn leave_of(net: &Network, worker: PeerId) -> Vec<u8> {
        let of = net.node::<Worker>(worker).expect("it lives").statistics(net.now());
        let leave = Leave {
            job: 1,
            term: of.term.unwrap_or(0),
            source: of.rank.map_or(0, |rank| rank as u8),
            session: Session(of.session),
            reason: Reason::Left,
        };
        let mut buf = vec![0; 128];
        let len = leave.emit(&mut buf);
        buf.truncate(len);
        buf
    }

    fn inject(net: &mut Network, at: PeerId, from: PeerId, bytes: &[u8]) -> Option<Verdict> {
        let from = Source::new(PortId::DOWNLINK, from);
        net.with(at, |switch: &mut Switch, now| switch.handle_packet(now, from, bytes))
    }
}
