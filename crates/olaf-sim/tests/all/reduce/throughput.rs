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
    if std::env::var("SHOW").is_ok() {
        println!("{loss} {bytes} {took} {}", job.state());
    }
    bytes as f64 * 8.0 / took / RATE as f64
}

#[test]
#[ignore = "prints figures"]
fn shares() {
    for bytes in [40_000, 3_300_000, 25_000_000] {
        let clean = share(1, 0.0, bytes);
        let lossy = [0.0001, 0.001, 0.01].map(|loss| {
            let seeds = 1..6;
            seeds.map(|seed| share(seed, loss, bytes)).sum::<f64>() / 5.0 / clean
        });
        println!("{bytes}: {clean:.3} of the line, then {lossy:.3?} of that");
    }
}
