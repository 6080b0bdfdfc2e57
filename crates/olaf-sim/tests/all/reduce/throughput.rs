//! How much of a link an operation fills, and what losses cost.

use super::job::*;
use super::socket::Socket;
use core::time::Duration;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::reduce::{Config as SwitchConfig, Switch};
use olaf_sim::Wire;

const RATE: u64 = 1_000_000_000;

/// Four ends at 1 Gbit/s and a round trip of 1 ms.
fn setting(seed: u64, loss: f64) -> Setting {
    let rate = BitsPerSecond::new(RATE);
    Setting {
        seed,
        workers: 4,
        wire: Wire { rate, delay: Duration::from_micros(500), loss, ..Wire::default() },
        datagram_bytes: 8972,
        switch: SwitchConfig::default(),
        ..Setting::default()
    }
}

/// The share of the line rate that an all-reduce of that many bytes gets, the third of three.
fn share(seed: u64, loss: f64, bytes: usize) -> f64 {
    let mut job = Job::new(setting(seed, loss));
    job.run_for(Duration::from_millis(100));
    let mut took = 0.0;
    for number in 0..3 {
        job.begin_all(Task::sum(bytes / 4, number));
        job.run_until_done(Duration::from_secs(60));
        let last = job.ended.values().filter_map(|ended| ended.values().last());
        took = last.map(|ended| ended.took.as_secs_f64()).fold(0.0, f64::max);
    }
    job.accounts();
    bytes as f64 * 8.0 / took / RATE as f64
}

fn mean(seeds: core::ops::Range<u64>, loss: f64, bytes: usize) -> f64 {
    let count = (seeds.end - seeds.start) as f64;
    seeds.map(|seed| share(seed, loss, bytes)).sum::<f64>() / count
}

#[test]
fn an_operation_fills_the_line() {
    // The header takes 0.7 %, and the last result comes a round trip after the last piece.
    let medium = share(1, 0.0, 3_300_000);
    assert!(medium > 0.95, "{medium}");
    let large = share(1, 0.0, 25_000_000);
    assert!(large > 0.98, "{large}");
}

#[test]
fn losses_cost_little() {
    let clean = share(1, 0.0, 3_300_000);
    for (loss, least) in [(0.0001, 0.99), (0.001, 0.95), (0.01, 0.80)] {
        let of_clean = mean(1..5, loss, 3_300_000) / clean;
        assert!(of_clean > least, "loss {loss}: {of_clean}");
    }
    let of_clean = share(1, 0.01, 25_000_000) / share(1, 0.0, 25_000_000);
    assert!(of_clean > 0.9, "{of_clean}");
}

/// One machine: an end writes 20 Gbit/s, the switch takes 1.5 us for a datagram, and its socket has
/// the usual size.
#[test]
fn the_socket_of_the_switch_rarely_overflows() {
    let each = Duration::from_nanos(1500);
    for (workers, least) in [(2, 0.95), (4, 0.7), (8, 0.3)] {
        let mut job = Job::new(Setting {
            workers,
            wire: Wire {
                rate: BitsPerSecond::new(20 * RATE),
                delay: Duration::from_micros(20),
                ..Wire::default()
            },
            socket: Some((212_992, each)),
            ..setting(1, 0.0)
        });
        job.run_for(Duration::from_millis(100));
        let mut shares = Vec::new();
        for number in 0..6 {
            let bytes = 10_000_000;
            job.begin_all(Task::sum(bytes / 4, number));
            job.run_until_done(Duration::from_secs(60));
            let last = job.ended.values().filter_map(|ended| ended.values().last());
            let took = last.map(|ended| ended.took.as_secs_f64()).fold(0.0, f64::max);
            let switch = each.as_secs_f64() * f64::from(workers) * (bytes / 8896) as f64;
            let limit = switch.max(bytes as f64 * 8.0 / 20e9);
            shares.push(limit / took);
        }
        let switch = job.net.node::<Socket>(SWITCH).expect("it lives");
        let lost = switch.dropped as f64 / switch.came as f64;
        assert!(lost < 0.05, "{workers} workers: {lost} of the datagrams found the socket full");
        // With 8 workers the socket has room for two datagrams of each.
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!(mean > least, "{workers} workers: {shares:.3?} of the switch's throughput");
    }
}

/// A million lanes over a round trip of 100 ms that loses one datagram in twenty: whoever asks for what is lost is
/// never refused, so that recovery takes as long as without limits.
#[test]
fn an_honest_worker_is_never_refused_for_asking_too_often() {
    let delay = Duration::from_millis(25);
    let wire = Wire { delay, loss: 0.05, ..Wire::default() };
    let setting = Setting { wire, switch: SwitchConfig::default(), ..Setting::default() };
    let mut job = Job::new(setting);
    job.begin_all(Task::sum(1_000_000, 1));
    job.run_until_done(Duration::from_secs(120));
    job.accounts();
    let switch = job.net.node::<Switch>(SWITCH).expect("it lives");
    let of = switch.statistics(job.net.now());
    let again = serde_json::to_value(&of).expect("plain data")["results_again"].as_u64();
    assert!(again > Some(50), "{of:?}");
    assert_eq!(of.refused.get("too_often"), None, "{of:?}");
}
