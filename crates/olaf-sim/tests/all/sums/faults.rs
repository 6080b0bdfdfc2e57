//! What the network does to datagrams: every operation still ends in the exact sum at all workers.

use super::Protocol;
use super::job::{Job, MS, Setting, Task};
use core::time::Duration;
use olaf_sim::Wire;

super::for_all_protocols!(
    sums_are_exact_on_a_path_without_faults,
    sums_are_exact_whatever_is_lost,
    sums_are_exact_whatever_is_repeated_and_overtaken,
    sums_are_exact_on_a_slow_path,
);

/// A wire that loses, repeats and delays this share of the datagrams.
pub(super) fn bad(share: f64) -> Wire {
    Wire {
        loss: share,
        duplication: share,
        reordering: share,
        late: MS,
        delay: Duration::from_micros(200),
        jitter: Duration::from_micros(50),
        ..Wire::default()
    }
}

fn tasks<P: Protocol>(workers: u32) -> Vec<Task> {
    let lanes = [1, 5000, 300, 64_000, 2000, 20_000, 7, 1234];
    let reductions = P::reductions(workers).into_iter().cycle();
    let all = reductions.zip(lanes.into_iter().cycle()).take(16).zip(0..);
    all.map(|((reduction, lanes), number)| Task { reduction, lanes, number }).collect()
}

/// Runs operations of all kinds to their ends, and checks them.
pub(super) fn runs<P: Protocol>(setting: Setting<P>) -> Job<P> {
    let tasks = tasks::<P>(setting.workers);
    let mut job = Job::new(setting);
    // Several at once, then one after the other.
    let (at_once, later) = tasks.split_at(tasks.len() / 2);
    at_once.iter().for_each(|task| job.begin_all(*task));
    job.run_until_done(Duration::from_secs(120));
    for task in later {
        job.begin_all(*task);
        job.run_until_done(Duration::from_secs(60));
    }
    job.all_are_right(&tasks);
    job.accounts();
    job
}

pub(super) fn sums_are_exact_on_a_path_without_faults<P: Protocol>() {
    for (workers, datagram_bytes) in [(1, 1472), (2, 1472), (3, 8972), (5, 8972)] {
        runs(Setting::<P> { workers, datagram_bytes, ..Setting::default() });
    }
}

pub(super) fn sums_are_exact_whatever_is_lost<P: Protocol>() {
    for (seed, loss) in [(1, 0.001), (2, 0.01), (3, 0.05), (4, 0.1)] {
        for (workers, datagram_bytes) in [(2, 1472), (4, 8972), (5, 1472)] {
            let wire = Wire { loss, delay: Duration::from_micros(200), ..Wire::default() };
            runs(Setting::<P> { seed, workers, datagram_bytes, wire, ..Setting::default() });
        }
    }
}

pub(super) fn sums_are_exact_whatever_is_repeated_and_overtaken<P: Protocol>() {
    for (seed, share) in [(5, 0.02), (6, 0.1)] {
        for workers in 2..6 {
            runs(Setting::<P> { seed, workers, wire: bad(share), ..Setting::default() });
        }
    }
}

pub(super) fn sums_are_exact_on_a_slow_path<P: Protocol>() {
    // Where the authority is behind the switch, there are two links to it.
    let longest = if P::SWITCH_ONLY_RELAYS { 100 } else { 200 };
    for delay in [10, longest].map(Duration::from_millis) {
        let wire = Wire { loss: 0.02, delay, jitter: delay / 10, ..Wire::default() };
        runs(Setting::<P> { seed: 9, wire, ..Setting::default() });
    }
}
