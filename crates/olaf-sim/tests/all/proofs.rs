//! Addresses are proved before models go there: honest workers learn through any weather and any number of
//! switches, and a stranger draws nothing to another's address.

use crate::common::{SERVER, ms, switch};
use core::time::Duration;
use olaf_engine::party::Chance;
use olaf_engine::switch::native::Config;
use olaf_engine::{Engine, Instant, PeerId, PortId, Source, Switch, Wiring};
use olaf_host::push_pull::worker::Standing;
use olaf_host::{Server, ServerConfig, Worker, WorkerConfig};
use olaf_sim::{Network, Wire};
use olaf_wire::{Fetch, Join, Kind, Packet};
use proptest::prelude::*;

const START: Instant = Instant(1_700_000_000_000_000_000);
const LANES: usize = 20;
const WORKERS: u32 = 3;

fn chance(seed: u32) -> Chance {
    let mut state = u64::from(seed) | 1;
    Box::new(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    })
}

fn a_switch(above: PeerId, life: u32) -> Switch {
    let mut switch = Switch::new(Config::default(), 200 + life).unwrap();
    switch.set_default_server(above);
    switch.demand_proofs(chance(life + 7 * above.0));
    switch
}

fn a_server(life: u32) -> Server {
    let mut server = Server::new(ServerConfig::default(), 100 + life).unwrap();
    server.demand_proofs(chance(life + 1));
    server
}

fn a_worker(number: u32, home: PeerId, life: u32, now: Instant) -> Worker {
    let address = olaf_samples::address(1, number, number);
    let session = olaf_wire::Session(1000 * (life + 1) + number);
    let address = olaf_wire::Address { session, ..address };
    let config =
        WorkerConfig { segment_lanes: 8, keepalive: ms(100), ..WorkerConfig::new(address, home) };
    let mut worker = Worker::new(config);
    worker.join(now, &[&[0.0; LANES]]).unwrap();
    worker
}

/// Workers behind a row of switches; each party demands proofs.
fn row(seed: u64, switches: usize, wire: Wire) -> Network {
    let mut net = Network::new(seed, START);
    for at in 0..switches {
        let above = if at + 1 < switches { switch(at + 1) } else { SERVER };
        net.join(switch(at), above, wire);
        let wiring = Wiring::new(PortId::DOWNLINK).with(above, PortId::UPLINK);
        net.place_wired(switch(at), wiring, move |life, _| Box::new(a_switch(above, life)));
    }
    net.place(SERVER, |life, _| Box::new(a_server(life)));
    let home = if switches == 0 { SERVER } else { switch(0) };
    for number in 0..WORKERS {
        let id = PeerId(number);
        net.join(id, home, wire);
        net.place(id, move |life, now| Box::new(a_worker(number, home, life, now)));
    }
    net
}

fn versions(net: &mut Network) -> Vec<u32> {
    let of = |number| net.node::<Worker>(PeerId(number)).unwrap();
    (0..WORKERS).map(|n| of(n).model().map_or(0, |model| model.version)).collect()
}

fn everyone_pushes(net: &mut Network, rounds: u32) {
    for _ in 0..rounds {
        for number in 0..WORKERS {
            net.with(PeerId(number), |worker: &mut Worker, now| {
                if worker.standing() == Standing::Joined {
                    worker.push(now, &[&[1.0; LANES]], 0.0, 1.0).unwrap();
                }
            });
        }
        net.run_for(ms(20));
    }
}

#[test]
fn a_proof_takes_a_worker_one_round_trip_more_at_most() {
    // 10 ms each way, through two switches and the server: 60 ms.
    let wire = Wire { delay: ms(10), ..Wire::default() };
    let mut net = row(1, 2, wire);
    net.run_for(ms(2_000));
    // A model is here. A worker that comes now needs two round trips: it joins, and proves and asks.
    let late = PeerId(9);
    net.join(late, switch(0), wire);
    net.place(late, |life, now| Box::new(a_worker(9, switch(0), life, now)));
    net.run_for(ms(119));
    let standing = |net: &Network| net.node::<Worker>(late).unwrap().standing();
    assert_eq!(standing(&net), Standing::Joining);
    net.run_for(ms(3));
    assert_eq!(standing(&net), Standing::Joined);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(24), ..ProptestConfig::default() })]

    #[test]
    fn everyone_learns_in_any_weather_and_after_any_restart(
        seed: u64, switches in 0usize..3, loss in 0.0f64..0.25, repeats in 0.0f64..0.2,
        jitter in 0u64..4, restarted in 0usize..4,
    ) {
        let wire = Wire {
            delay: Duration::from_micros(300), jitter: ms(jitter), loss, duplication: repeats, ..Wire::default()
        };
        let mut net = row(seed, switches, wire);
        net.run_for(ms(3_000));
        // Of all round trips, a fifth succeeds in the worst weather: a worker may need longer to join.
        let began = net.now();
        let mut before = vec![0];
        while before.contains(&0) && net.now().since(began) < ms(20_000) {
            everyone_pushes(&mut net, 20);
            before = versions(&mut net);
        }
        prop_assert!(before.iter().all(|version| *version > 0), "{before:?}");
        // One of the parties forgets everything.
        let dead = match restarted {
            3 => SERVER,
            at if at < switches => switch(at),
            _ => PeerId(1),
        };
        net.kill_at(net.now(), dead);
        net.start_at(net.now() + ms(50), dead);
        net.run_for(ms(8_000));
        everyone_pushes(&mut net, 30);
        net.run_for(ms(1_000));
        let all: Vec<_> =
            (0..WORKERS).map(|n| net.node::<Worker>(PeerId(n)).unwrap().standing()).collect();
        prop_assert!(all.iter().all(|standing| *standing == Standing::Joined), "{all:?}");
        let after = versions(&mut net);
        prop_assert!(after.iter().zip(&before).all(|(after, before)| after > before), "{before:?} {after:?}");
    }

    /// A stranger forges the victim's address: joins, fetches, updates, in any order, with any nonce.
    #[test]
    fn nothing_but_answers_to_joins_goes_to_an_address_that_echoes_nothing(
        steps in prop::collection::vec((0u8..4, any::<u32>()), 1..200),
    ) {
        const VICTIM: PeerId = PeerId(66);
        let mut server = a_server(1);
        let mut switch = a_switch(SERVER, 1);
        let mut buf = vec![0; 65_536];
        let mut now = START;
        let honest = olaf_samples::address(1, 0, 1);
        let (mut came, mut went) = (0usize, 0usize);
        // An honest worker brings the model.
        let mut worker = Worker::new(WorkerConfig::new(honest, PeerId(2000)));
        worker.join(now, &[&[0.5; LANES]]).unwrap();
        let mut steps = steps.into_iter();
        let victim = olaf_samples::address(1, 0, 66);
        for tick in 0..2_000u32 {
            now = now + ms(1);
            if tick > 200 {
                let Some((verb, nonce)) = steps.next() else { break };
                let len = match verb {
                    0 => Join { nonce, sent_at_ns: now.0, ..olaf_samples::join(victim, 20, 2208) }.emit(&mut buf),
                    1 => Join { sent_at_ns: now.0, ..olaf_samples::join(victim, 20, 2208) }.emit(&mut buf),
                    2 => Fetch { address: victim, version: 0, first: 0, mask: 1, have_version: 0 }.emit(&mut buf),
                    _ => olaf_samples::update(victim, tick).emit(&[1.0; LANES], &mut buf),
                };
                came += len;
                switch.handle_packet(now, Source::new(PortId::DOWNLINK, VICTIM), &buf[..len]);
            }
            for engine in [&mut worker as &mut dyn Engine, &mut switch, &mut server] {
                if engine.poll_timeout().is_some_and(|(at, _)| at <= now) {
                    engine.handle_timeout(now);
                }
            }
            for _ in 0..6 {
                while let Some(sent) = worker.poll_transmit(now, PortId(0), &mut buf) {
                    switch.handle_packet(now, Source::new(PortId::DOWNLINK, PeerId(1)), &buf[..sent.len]);
                }
                while let Some(sent) = switch.poll_transmit(now, PortId::UPLINK, &mut buf) {
                    server.handle_packet(now, Source::end(PeerId(2000)), &buf[..sent.len]);
                }
                while let Some(sent) = server.poll_transmit(now, PortId(0), &mut buf) {
                    switch.handle_packet(now, Source::new(PortId::UPLINK, SERVER), &buf[..sent.len]);
                }
                while let Some(sent) = switch.poll_transmit(now, PortId::DOWNLINK, &mut buf) {
                    for peer in sent.to.as_slice() {
                        if *peer == VICTIM {
                            went += sent.len;
                            let kind = Packet::new_checked(&buf[..sent.len]).unwrap().kind();
                            prop_assert_eq!(kind, Kind::Welcome);
                        } else {
                            worker.handle_packet(now, Source::end(PeerId(2000)), &buf[..sent.len]);
                        }
                    }
                }
            }
            if tick > 200 && tick % 20 == 0 {
                let _ = worker.push(now, &[&[1.0; LANES]], 0.0, 1.0);
            }
            prop_assert!(went <= 3 * came, "{went} bytes went, {came} came");
        }
        prop_assert_eq!(worker.standing(), Standing::Joined);
    }
}
