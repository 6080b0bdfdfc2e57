//! What the network does to datagrams: every operation still ends in the exact sum at all ends.

use super::job::*;
use core::time::Duration;
use olaf_host::collective::{IswitchOptions, Reduction};

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
