//! ATP: its switches add, and its server decides who takes part.

use super::proofs;
use crate::common::sums::peer;
use crate::sums::job::Setting;
use crate::sums::protocol::{Known, Protocol, TOP, lower};
use core::time::Duration;
use olaf_engine::switch::atp::{Config as SwitchConfig, Switch};
use olaf_engine::{Engine, PeerId, PortId, Source, Verdict, Wiring};
use olaf_host::collective::atp::{AtpServer, Options, ServerConfig, Worker};
use olaf_host::collective::{Config, Reduction};
use olaf_sim::Network;
use olaf_wire::Session;
use olaf_wire::atp::Leave;
use olaf_wire::reduce::Reason;

/// The parameter server.
const SERVER: PeerId = PeerId(3000);

#[derive(Clone, Debug)]
pub(crate) struct Atp;

impl Protocol for Atp {
    type Worker = Worker;
    type Own = Options;
    type Config = (SwitchConfig, ServerConfig);

    const NAME: &'static str = "atp";
    const AUTHORITY: PeerId = SERVER;
    const SWITCH_ONLY_RELAYS: bool = true;
    const LONG: usize = 62 * 4000;

    fn own() -> Options {
        Options::default()
    }

    fn slow() -> Options {
        Options { first_packets: 20, most_packets: 20, ..Options::default() }
    }

    fn config_with(jobs: u32, silence: Duration) -> (SwitchConfig, ServerConfig) {
        let switch = SwitchConfig { jobs, silence, ..SwitchConfig::default() };
        (switch, ServerConfig { jobs, silence, ..ServerConfig::default() })
    }

    fn reductions(_: u32) -> Vec<Reduction> {
        vec![Reduction::Sum, Reduction::Mean]
    }

    /// An eighth of a small integer.
    fn lane(end: u32, number: u32, at: usize) -> f32 {
        let bits = (at as u32).wrapping_mul(7) + end * 13 + number * 5;
        f32::from((bits % 16) as u8) / 8.0 - 1.0
    }

    fn place_switches(net: &mut Network, setting: &Setting<Self>) {
        let settle = setting.settle;
        let ((for_switch, for_server), seed) = (setting.config.clone(), setting.seed);
        net.place(SERVER, move |life, _| {
            let epoch = u16::try_from(100 + 1000 * life).expect("few lives");
            let mut server = AtpServer::new(for_server.clone(), epoch).expect("the set-up can be");
            proofs(seed, SERVER, life).into_iter().for_each(|chance| server.demand_proofs(chance));
            server.expect_strangers(settle);
            Box::new(server)
        });
        for at in setting.switches() {
            let above = if at == TOP { SERVER } else { TOP };
            let wiring = Wiring::new(PortId::DOWNLINK).with(above, PortId::UPLINK);
            let for_switch = for_switch.clone();
            net.place_wired(at, wiring, move |life, _| {
                let mut switch = Switch::new(for_switch.clone(), at.0).expect("the set-up can be");
                switch.set_servers(&[above]);
                proofs(seed, at, life).into_iter().for_each(|chance| switch.demand_proofs(chance));
                Box::new(switch)
            });
        }
        net.join(TOP, SERVER, setting.wire);
        (0..setting.lower.len()).for_each(|at| net.join(lower(at), TOP, setting.wire));
    }

    fn worker(setting: &Setting<Self>, config: Config) -> Worker {
        Worker::new(config, setting.own.clone()).expect("the set-up can be")
    }

    fn open_operations(worker: &Worker) -> usize {
        worker.open_operations()
    }

    fn describe(net: &Network, setting: &Setting<Self>) -> String {
        let workers = (0..setting.workers).filter_map(|end| net.node::<Worker>(peer(end)));
        let workers = workers.map(|worker| format!("{:?}\n", worker.statistics()));
        let switches = setting.switches().into_iter().filter_map(|at| net.node::<Switch>(at));
        let switches = switches.map(|switch| format!("{:?}\n", switch.statistics()));
        let server = net.node::<AtpServer>(SERVER).into_iter();
        let server = server.map(|server| format!("{:?}\n", server.statistics()));
        workers.chain(switches).chain(server).collect()
    }

    fn accounts(net: &Network, setting: &Setting<Self>) {
        for end in 0..setting.workers {
            for worker in net.lives::<Worker>(peer(end)) {
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
        for switch in setting.switches().into_iter().flat_map(|at| net.lives::<Switch>(at)) {
            let of = switch.statistics().pieces;
            assert_eq!(of.received, of.settled(), "{of:?}");
        }
        for server in net.lives::<AtpServer>(SERVER) {
            let of = server.statistics().gradients;
            let fates = of.singles + of.sums + of.repeated + of.overlapping + of.late;
            let others = of.ran_over + of.not_float + of.mismatched + of.refused;
            assert_eq!(of.received, fates + others, "{of:?}");
        }
    }

    fn known(net: &Network) -> Known {
        let of = net.node::<AtpServer>(SERVER).expect("it lives").statistics();
        Known { jobs: of.jobs.iter().map(|job| job.job.into()).collect() }
    }

    fn leave_of(net: &Network, worker: PeerId) -> Vec<u8> {
        let of = net.node::<Worker>(worker).expect("it lives").statistics();
        let mut buf = vec![0; 128];
        let leave = Leave {
            job: 1,
            server: 0,
            session: Session(of.session),
            life: 0,
            reason: Reason::Left,
        };
        let len = leave.emit(&mut buf);
        buf.truncate(len);
        buf
    }

    fn inject(net: &mut Network, at: PeerId, from: PeerId, bytes: &[u8]) -> Option<Verdict> {
        if at == SERVER {
            let from = Source::end(from);
            net.with(at, |server: &mut AtpServer, now| server.handle_packet(now, from, bytes))
        } else {
            let from = Source::new(PortId::DOWNLINK, from);
            net.with(at, |switch: &mut Switch, now| switch.handle_packet(now, from, bytes))
        }
    }
}
