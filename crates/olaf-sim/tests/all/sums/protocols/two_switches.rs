//! `reduce` with a second switch.

use super::reduce::{end_adds_up, leave_of, switch_adds_up};
use super::{Reduce, place, proofs};
use crate::sums::job::{Setting, peer};
use crate::sums::protocol::{Known, Protocol, TOP};
use core::time::Duration;
use olaf_engine::switch::reduce::{Config as SwitchConfig, Switch};
use olaf_engine::{PeerId, PortId, Verdict, Wiring};
use olaf_host::collective::{Collective, Config, FallBack, Reduction};
use olaf_sim::Network;
use olaf_wire::Session;

/// The second switch.
pub(crate) const SECOND: PeerId = PeerId(2900);

#[derive(Clone, Debug)]
pub(crate) struct TwoSwitches;

impl Protocol for TwoSwitches {
    type Worker = FallBack;
    /// How long an operation waits for a move.
    type Own = Duration;
    type Config = SwitchConfig;

    const NAME: &'static str = "reduce with two switches";
    const LONG: usize = Reduce::LONG;

    fn own() -> Duration {
        Duration::from_secs(20)
    }

    fn config_with(jobs: u32, silence: Duration) -> SwitchConfig {
        Reduce::config_with(jobs, silence)
    }

    fn reductions(workers: u32) -> Vec<Reduction> {
        Reduce::reductions(workers)
    }

    fn lane(end: u32, number: u32, at: usize) -> f32 {
        Reduce::lane(end, number, at)
    }

    fn place_switches(net: &mut Network, setting: &Setting<Self>) {
        let (config, seed, settle) = (setting.config.clone(), setting.seed, setting.settle);
        let make = move |at: PeerId, life: u32| {
            let epoch = 1_000_000 * (life + 1) + at.0;
            let mut switch = Switch::new(config.clone(), epoch).expect("the set-up can be");
            proofs(seed, at, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
            switch.expect_strangers(settle);
            switch
        };
        let other = make.clone();
        place(net, setting, move |at, _, life| make(at, life));
        let wiring = Wiring::new(PortId::DOWNLINK);
        net.place_wired(SECOND, wiring, move |life, _| Box::new(other(SECOND, life)));
        (0..setting.workers).for_each(|end| net.join(peer(end), SECOND, setting.wire));
    }

    fn worker(setting: &Setting<Self>, config: Config) -> FallBack {
        let session = Session(config.session.0 + 500_000);
        let second = Config { switch: SECOND, session, ..config.clone() };
        FallBack::new(config, second, setting.own)
    }

    fn open_operations(worker: &FallBack) -> usize {
        worker.open_operations()
    }

    fn describe(net: &Network, setting: &Setting<Self>) -> String {
        let worker = |end| {
            let worker = net.node::<FallBack>(peer(end))?;
            let ends = core::iter::once(worker.first()).chain(worker.second());
            let ends: Vec<_> = ends.map(|end| end.statistics(net.now())).collect();
            Some(format!("{:?}\n{ends:?}\n", worker.second_switch()))
        };
        (0..setting.workers).filter_map(worker).collect()
    }

    /// What each party at a switch sent and received is accounted for.
    fn accounts(net: &Network, setting: &Setting<Self>) {
        for worker in (0..setting.workers).flat_map(|end| net.lives::<FallBack>(peer(end))) {
            let both = core::iter::once(worker.first()).chain(worker.second());
            both.for_each(|end| end_adds_up(net, end));
        }
        let switches = [TOP, SECOND].into_iter().flat_map(|at| net.lives::<Switch>(at));
        switches.for_each(|switch| switch_adds_up(net, switch));
    }

    fn known(net: &Network) -> Known {
        Reduce::known(net)
    }

    /// From the present end.
    fn leave_of(net: &Network, worker: PeerId) -> Vec<u8> {
        let worker = net.node::<FallBack>(worker).expect("it lives");
        leave_of(net, worker.second().unwrap_or(worker.first()))
    }

    fn inject(net: &mut Network, at: PeerId, from: PeerId, bytes: &[u8]) -> Option<Verdict> {
        Reduce::inject(net, at, from, bytes)
    }
}
