//! How much of a link an operation fills, and what losses cost.

use super::job::*;
use core::time::Duration;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::reduce::Config as SwitchConfig;
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
