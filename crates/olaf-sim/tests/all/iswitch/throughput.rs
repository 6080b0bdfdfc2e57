//! How much of a link an operation fills, and what losses cost.

use super::job::*;
use core::time::Duration;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::iswitch::{Config as SwitchConfig, Switch};
use olaf_host::collective::IswitchOptions;
use olaf_sim::Wire;

const RATE: u64 = 1_000_000_000;

/// The share of the line rate that an all-reduce of that many bytes gets, the third of three: four ends at
/// 1 Gbit/s and a round trip of 1 ms.
fn share(seed: u64, loss: f64, bytes: usize, packet_floats: u32) -> f64 {
    let rate = BitsPerSecond::new(RATE);
    let mut job = Job::new(Setting {
        seed,
        workers: 4,
        wire: Wire { rate, delay: Duration::from_micros(500), loss, ..Wire::default() },
        datagram_bytes: 8972,
        own: IswitchOptions { packet_floats: Some(packet_floats), ..IswitchOptions::default() },
        switch: SwitchConfig::default(),
        ..Setting::default()
    });
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

#[test]
fn an_operation_fills_the_line() {
    // The last result comes a round trip after the last packet.
    let medium = share(1, 0.0, 3_300_000, 366);
    assert!(medium > 0.93, "{medium}");
    let large = share(1, 0.0, 25_000_000, 366);
    assert!(large > 0.97, "{large}");
}

#[test]
fn losses_cost_little() {
    let clean = share(1, 0.0, 3_300_000, 366);
    for (loss, least) in [(0.0001, 0.93), (0.001, 0.88), (0.01, 0.7)] {
        let shares = (1..3).map(|seed| share(seed, loss, 3_300_000, 366));
        let of_clean = shares.sum::<f64>() / 2.0 / clean;
        assert!(of_clean > least, "loss {loss}: {of_clean}");
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
