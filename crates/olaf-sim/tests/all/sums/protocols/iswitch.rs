//! iSwitch.

use super::{place, proofs};
use crate::common::sums::peer;
use crate::sums::job::Setting;
use crate::sums::protocol::{Known, Protocol, TOP};
use core::time::Duration;
use olaf_engine::switch::iswitch::{Config as SwitchConfig, Switch};
use olaf_engine::{Ecn, Engine, PeerId, PortId, Source, TrafficClass, Verdict};
use olaf_host::collective::{Config, IswitchOptions, IswitchWorker, Reduction};
use olaf_sim::Network;
use olaf_wire::iswitch::{CONTROL_CLASS, Control, Leave};
use olaf_wire::{JobId, Session};

#[derive(Clone, Debug)]
pub(crate) struct Iswitch;

impl Protocol for Iswitch {
    type Worker = IswitchWorker;
    type Own = IswitchOptions;
    type Config = SwitchConfig;

    const NAME: &'static str = "iswitch";
    const NAMES_THE_SMALLER_SIDE: bool = false;
    const LONG: usize = 500_000;

    fn own() -> IswitchOptions {
        IswitchOptions::default()
    }

    fn config_with(jobs: u32, silence: Duration) -> SwitchConfig {
        SwitchConfig { slots: 64, jobs, silence, ..SwitchConfig::default() }
    }

    fn reductions(workers: u32) -> Vec<Reduction> {
        vec![
            Reduction::Sum,
            Reduction::Mean,
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
            let epoch = 77 * (life + 1) + at.0;
            let mut switch = Switch::new(config.clone(), epoch).expect("the set-up can be");
            above.into_iter().for_each(|above| switch.set_upstream(above, bytes));
            proofs(seed, at, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
            switch.expect_strangers(settle);
            switch
        });
    }

    fn worker(setting: &Setting<Self>, config: Config) -> IswitchWorker {
        IswitchWorker::new(config, setting.own.clone()).expect("the set-up can be")
    }

    fn open_operations(worker: &IswitchWorker) -> usize {
        worker.open_operations()
    }

    fn describe(net: &Network, setting: &Setting<Self>) -> String {
        let now = net.now();
        let workers = (0..setting.workers).filter_map(|end| net.node::<IswitchWorker>(peer(end)));
        let workers = workers.map(|worker| format!("{:?}\n", worker.statistics(now)));
        let switches = setting.switches().into_iter().filter_map(|at| net.node::<Switch>(at));
        workers.chain(switches.map(|switch| format!("{:?}\n", switch.statistics(now)))).collect()
    }

    fn accounts(net: &Network, setting: &Setting<Self>) {
        let now = net.now();
        for end in 0..setting.workers {
            for worker in net.lives::<IswitchWorker>(peer(end)) {
                let of = worker.statistics(now);
                let operations = of.operations;
                assert_eq!(operations.begun, operations.done + operations.failed + operations.open);
                let results = of.results;
                let fates = results.taken + results.again + results.early + results.refused;
                assert_eq!(results.received, fates);
            }
        }
        for switch in setting.switches().into_iter().flat_map(|at| net.lives::<Switch>(at)) {
            let of = switch.statistics(now).pieces;
            let refused: u64 = of.refused.values().sum();
            let fates = of.summed + of.waiting + of.late + of.repeated + of.held + of.occupied;
            assert_eq!(of.received, fates + of.given_up + refused);
        }
    }

    fn known(net: &Network) -> Known {
        let of = net.node::<Switch>(TOP).expect("it lives").statistics(net.now());
        Known { jobs: of.jobs.iter().map(|job| job.job).collect() }
    }

    fn leave_of(net: &Network, worker: PeerId) -> Vec<u8> {
        let of = net.node::<IswitchWorker>(worker).expect("it lives").statistics(net.now());
        let (generation, session) = (of.generation.unwrap_or(0), Session(of.session));
        let mut buf = vec![0; 128];
        let len = Control::Leave(Leave { generation, job: JobId(1), session }).emit(&mut buf);
        buf.truncate(len);
        buf
    }

    fn inject(net: &mut Network, at: PeerId, from: PeerId, bytes: &[u8]) -> Option<Verdict> {
        let class = TrafficClass::new(CONTROL_CLASS, Ecn::NotCapable);
        let from = Source { class, ..Source::new(PortId::DOWNLINK, from) };
        net.with(at, |switch: &mut Switch, now| switch.handle_packet(now, from, bytes))
    }
}
