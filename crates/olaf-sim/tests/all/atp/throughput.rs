//! How much of a link an operation fills, and what losses cost.

use super::job::*;
use core::time::Duration;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::atp::Config as SwitchConfig;
use olaf_sim::Wire;

const RATE: u64 = 1_000_000_000;

/// Four workers at one switch with one server.
#[derive(Clone, Copy, Debug)]
enum Path {
    /// 1 Gbit/s everywhere and a round trip of 1 ms; datagrams are lost on each wire.
    Long,
    /// 1 Gbit/s to each worker and a round trip of 80 us; the server is at the switch.
    Short,
    /// 100 Mbit/s to the server, and 100 datagrams wait for it at the switch, which marks none.
    Narrow,
}

fn setting(seed: u64, path: Path, loss: f64) -> Setting {
    let us = Duration::from_micros;
    let rate = BitsPerSecond::new(RATE);
    let (delay, trunk_rate, trunk_loss, trunk_delay) = match path {
        Path::Long => (us(250), rate, loss, us(250)),
        Path::Short => (us(20), None, 0.0, us(20)),
        Path::Narrow => (us(250), None, 0.0, us(250)),
    };
    let switch = match path {
        Path::Narrow => SwitchConfig {
            uplink: BitsPerSecond::new(RATE / 10),
            link_limit: 100,
            ..SwitchConfig::default()
        },
        _ => SwitchConfig::default(),
    };
    let wire = Wire { rate, delay, loss, ..Wire::default() };
    let trunk = Wire { rate: trunk_rate, delay: trunk_delay, loss: trunk_loss, ..wire };
    Setting { seed, racks: vec![4], wire, trunk, switch, ..Setting::default() }
}

/// What an all-reduce of that many bytes gets, the third of three.
#[derive(Debug)]
struct Measured {
    /// Share of the line rate.
    share: f64,
    /// Packets of a worker that were sent again.
    resent: f64,
    /// Packets of a fragment that the server took.
    at_server: f64,
}

fn measure(seed: u64, path: Path, loss: f64, bytes: usize) -> Measured {
    let mut jobs = Jobs::new(setting(seed, path, loss));
    jobs.run_for(100 * MS);
    let mut took = 0.0;
    let tasks = [0, 1, 2].map(|number| Task::sum(bytes / 4, number));
    for task in tasks {
        let began = jobs.net.now();
        jobs.begin_all(0, task);
        jobs.run_until_done(Duration::from_secs(60));
        took = jobs.net.now().since(began).as_secs_f64();
    }
    jobs.all_are_right(0, &tasks);
    jobs.accounts();
    let fragments = jobs.worker(0, 0).statistics().fragments;
    let at = jobs.server(0).statistics();
    assert_eq!(at.collisions, 0, "16,384 aggregators are plenty");
    Measured {
        share: bytes as f64 * 8.0 / took / RATE as f64,
        resent: fragments.resent as f64 / fragments.sent as f64,
        at_server: at.gradients.received as f64 / at.fragments as f64,
    }
}

/// The mean share of the line over two seeds.
fn share(path: Path, loss: f64, bytes: usize) -> f64 {
    (1..3).map(|seed| measure(seed, path, loss, bytes).share).sum::<f64>() / 2.0
}

#[test]
fn an_operation_fills_the_line() {
    // 248 bytes of 278 are values, and the last result comes a round trip after the last packet.
    for path in [Path::Long, Path::Short] {
        let clean = measure(1, path, 0.0, 10_000_000);
        assert!(clean.share > 0.98 * 248.0 / 278.0, "{clean:?}");
    }
}

#[test]
fn losses_cost_little() {
    for path in [Path::Long, Path::Short] {
        let clean = measure(1, path, 0.0, 2_000_000).share;
        for (loss, least) in [(0.0001, 0.95), (0.001, 0.85), (0.01, 0.6)] {
            let of_clean = share(path, loss, 2_000_000) / clean;
            assert!(of_clean > least, "{path:?}, loss {loss}: {of_clean}");
        }
    }
}

#[test]
fn a_queue_that_overflows_is_no_noise() {
    for loss in [0.0, 0.001] {
        let narrow = measure(1, Path::Narrow, loss, 2_000_000);
        assert!(narrow.share > 0.95 * 0.1 * 248.0 / 278.0, "{narrow:?}");
        assert!(narrow.resent < 0.1 && narrow.at_server < 1.15, "{narrow:?}");
    }
}
