//! What the network does to datagrams: every operation still ends in the exact sum at all ends.

use super::job::*;
use core::time::Duration;
use olaf_host::collective::{IswitchOptions, Reduction};
use olaf_sim::Wire;

fn tasks(workers: u32) -> Vec<Task> {
    let reductions = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::Broadcast { root: 0 },
        Reduction::Broadcast { root: workers - 1 },
    ];
    let lanes = [1, 5000, 300, 64_000, 2000, 20_000, 7, 1234];
    let both = reductions.into_iter().cycle().zip(lanes.into_iter().cycle()).take(12).zip(0..);
    both.map(|((reduction, lanes), number)| Task { reduction, lanes, number }).collect()
}

pub(super) fn runs(setting: Setting) {
    let workers = setting.workers;
    let mut job = Job::new(setting);
    let tasks = tasks(workers);
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
}

#[test]
fn sums_are_exact_on_a_path_without_faults() {
    let jumbo = IswitchOptions { packet_floats: None, ..IswitchOptions::default() };
    for (workers, datagram_bytes) in [(1, 1472), (2, 1472), (3, 8972), (5, 8972)] {
        runs(Setting { workers, datagram_bytes, own: jumbo.clone(), ..Setting::default() });
    }
    runs(Setting { workers: 2, ..Setting::default() });
}

#[test]
fn sums_are_exact_whatever_is_lost() {
    for (seed, loss) in [(1, 0.001), (2, 0.01), (3, 0.05), (4, 0.1)] {
        for workers in [2, 4, 5] {
            let wire = Wire { loss, delay: Duration::from_micros(200), ..Wire::default() };
            runs(Setting { seed, workers, wire, ..Setting::default() });
        }
    }
}

#[test]
fn sums_are_exact_whatever_is_repeated_and_overtaken() {
    for (seed, share) in [(5, 0.02), (6, 0.1)] {
        let wire = Wire {
            loss: share,
            duplication: share,
            reordering: share,
            late: Duration::from_millis(1),
            delay: Duration::from_micros(200),
            jitter: Duration::from_micros(50),
            ..Wire::default()
        };
        for workers in 2..6 {
            runs(Setting { seed, workers, wire, ..Setting::default() });
        }
    }
}

#[test]
fn sums_are_exact_on_a_slow_path() {
    for delay in [10, 200].map(Duration::from_millis) {
        let wire = Wire { loss: 0.02, delay, jitter: delay / 10, ..Wire::default() };
        runs(Setting { seed: 9, wire, ..Setting::default() });
    }
}
