//! A scenario leaves out joins, models and wire; whole switches and hosts in a simulated network
//! come to the same ages and losses.

use core::time::Duration;
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{BitsPerSecond, Instant, PeerId, PortId, Switch, Wiring};
use olaf_host::age::AgeOfModel;
use olaf_host::transmission::{Control, Fair, TransmissionConfig, Unsent};
use olaf_host::{Server, ServerConfig, Worker, WorkerConfig};
use olaf_sim::study::scenario::{Scenario, ready_times, run};
use olaf_sim::{Network, Wire};
use olaf_wire::{Address, ClusterId, JobId, Session, WorkerId};
use serde_json::json;

const SERVER: PeerId = PeerId(9_000);
const ROOT: PeerId = PeerId(9_003);
const LEAVES: [PeerId; 2] = [PeerId(9_001), PeerId(9_002)];
/// Lanes of the model: with the header, 1,028 bytes.
const LANES: usize = 233;
const WORKERS: u32 = 100;
const SECONDS: u64 = 6;

/// Table 3's setting, as a scenario.
fn scenario(control: &str) -> Scenario {
    let switch = |name: &str, rate_bps: u64, slots: usize, upstream: Option<&str>| {
        json!({"name": name, "queue": "olaf", "slots": slots, "rate_bps": rate_bps,
               "upstream": upstream, "delay_ns": 100_000})
    };
    let group = |name: &str, switch: &str, interval_ms: u64| {
        json!({"name": name, "switch": switch, "clusters": 5, "workers": 10,
               "interval_ns": interval_ms * 1_000_000, "late_ns": 100_000_000,
               "packet_bytes": 96 + 4 * LANES})
    };
    serde_json::from_value(json!({
        "seed": 5, "duration_ns": SECONDS * 1_000_000_000,
        "switches": [switch("SW1", 1_900_000, 5, Some("SW3")),
                     switch("SW2", 1_898_100, 5, Some("SW3")), switch("SW3", 1_000_000, 8, None)],
        "groups": [group("S1", "SW1", 100), group("S2", "SW2", 300)],
        "answers": {"delay_ns": 300_000},
        "control": {"kind": control},
    }))
    .unwrap()
}

/// What of it is compared.
#[derive(Debug)]
struct Result {
    /// Mean age of the clusters of each half, seconds.
    ages: [f64; 2],
    /// Contributions dropped over received, at the root and at the leaves.
    dropped: f64,
    sent: u64,
}

/// The same workers, ready at the same times, with everything a real job has.
fn whole(scenario: &Scenario, control: Control) -> Result {
    let link = Wire { delay: Duration::from_micros(100), ..Wire::default() };
    let mut net = Network::new(1, Instant(0));
    let slow = Duration::from_secs(1_000);
    let server = move |_, _| {
        let config = ServerConfig { silent_after: slow, ..ServerConfig::default() };
        Box::new(Server::new(config, 7).unwrap()) as Box<dyn olaf_sim::Node>
    };
    net.place(SERVER, server);
    let switch = |slots: usize, rate: u64, above: PeerId| {
        move |life, _| {
            let pacing = Pacing::Rate(BitsPerSecond::new(rate).unwrap());
            let config = Config { slots, silent_after: slow, ..Config::default() }.paced(pacing);
            let mut switch = Switch::new(config, 300 + above.0 + life).unwrap();
            switch.set_default_server(above);
            Box::new(switch) as Box<dyn olaf_sim::Node>
        }
    };
    let below = |above| Wiring::new(PortId::DOWNLINK).with(above, PortId::UPLINK);
    net.place_wired(ROOT, below(SERVER), switch(8, 1_000_000, SERVER));
    net.place_wired(LEAVES[0], below(ROOT), switch(5, 1_900_000, ROOT));
    net.place_wired(LEAVES[1], below(ROOT), switch(5, 1_898_100, ROOT));
    net.join(ROOT, SERVER, link);
    LEAVES.iter().for_each(|leaf| net.join(*leaf, ROOT, link));
    for id in 0..WORKERS {
        let leaf = LEAVES[(id / 50) as usize];
        let address = Address {
            job: JobId(1),
            cluster: ClusterId(id / 10),
            worker: WorkerId(id),
            session: Session(id + 1),
        };
        net.place(PeerId(id), move |_, _| {
            let transmission = TransmissionConfig { control, unsent: Unsent::Carry };
            let config = WorkerConfig {
                keepalive: slow,
                silent_after: slow,
                transmission,
                chance_seed: u64::from(id),
                ..WorkerConfig::new(address, leaf)
            };
            Box::new(Worker::new(config))
        });
        net.join(PeerId(id), leaf, Wire::default());
    }
    for id in 0..WORKERS {
        let join = |w: &mut Worker, now| w.join(now, &[&[0.0; LANES]]).unwrap();
        net.with(PeerId(id), join).unwrap();
        net.run_for(Duration::from_millis(5));
    }
    net.run_for(Duration::from_secs(2));
    let begin = net.now();
    let mut ages: Vec<AgeOfModel> = vec![AgeOfModel::new(); 10];
    let mut newest = [0; 10];
    for ready in ready_times(scenario).unwrap() {
        net.run_until(Instant(begin.0 + ready.at_ns));
        let push = |w: &mut Worker, now| w.push(now, &[&[1.0; LANES]], 0.0, 1.0).unwrap();
        net.with(PeerId(ready.worker), push).unwrap();
    }
    net.run_until(begin + Duration::from_secs(SECONDS));
    // Ages from the bytes that reached the server, not from what it says of itself.
    for record in net.trace() {
        if record.to != SERVER || record.lot != olaf_sim::Lot::Delivered {
            continue;
        }
        let packet = olaf_wire::Packet::new_checked(&record.bytes).unwrap();
        if let Ok(update) = olaf_wire::Update::parse(&packet) {
            ages.iter_mut().for_each(|age| age.observe_from(record.at));
            let cluster = update.address.cluster.0 as usize;
            newest[cluster] = update.generated_newest_ns.max(newest[cluster]);
            ages[cluster].deliver(record.at, update.generated_newest_ns);
        }
    }
    assert!(newest.iter().all(|newest| *newest > 0));
    let end = net.now();
    let mean = |ages: &[AgeOfModel]| {
        ages.iter().map(|age| age.mean_ns(end).unwrap()).sum::<f64>() / ages.len() as f64 / 1e9
    };
    let dropped: u64 = LEAVES
        .iter()
        .chain([&ROOT])
        .map(|id| net.node::<Switch>(*id).unwrap().fates().0)
        .map(|fates| fates.dropped)
        .sum();
    let sent =
        (0..WORKERS).map(|id| net.node::<Worker>(PeerId(id)).unwrap().statistics(end).datagrams);
    Result {
        ages: [mean(&ages[..5]), mean(&ages[5..])],
        dropped: dropped as f64 / ready_times(scenario).unwrap().len() as f64,
        sent: sent.sum(),
    }
}

fn lean(scenario: &Scenario) -> Result {
    let outcome = run(scenario).unwrap();
    let mean = |group: &str| {
        let own = outcome.clusters.iter().filter(|c| c.group == group);
        own.map(|c| c.age_mean_ns.unwrap()).sum::<f64>() / 5.0 / 1e9
    };
    Result {
        ages: [mean("S1"), mean("S2")],
        dropped: outcome.fates.dropped as f64 / outcome.fates.generated as f64,
        sent: outcome.packets_sent,
    }
}

#[track_caller]
fn assert_close(lean: &Result, whole: &Result, tolerance: f64) {
    for (a, b) in lean.ages.iter().zip(&whole.ages) {
        assert!((a / b - 1.0).abs() < tolerance, "{lean:?} {whole:?}");
    }
    assert!((lean.dropped - whole.dropped).abs() < 0.03, "{lean:?} {whole:?}");
    let sent = lean.sent as f64 / whole.sent as f64;
    assert!((sent - 1.0).abs() < tolerance, "{lean:?} {whole:?}");
}

#[test]
fn without_control() {
    let scenario = scenario("off");
    assert_close(&lean(&scenario), &whole(&scenario, Control::Off), 0.05);
}

#[test]
fn with_the_fair_control() {
    let scenario = scenario("fair");
    let whole = whole(&scenario, Control::Fair(Fair::default()));
    assert_close(&lean(&scenario), &whole, 0.1);
}
