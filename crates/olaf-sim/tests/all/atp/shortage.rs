//! Fewer aggregators than the jobs need: never wrong, only more at the server (ATP §5.4).

use super::job::*;
use core::time::Duration;
use olaf_engine::switch::atp::Config as SwitchConfig;
use olaf_host::collective::atp::Options;

const WORKERS: u32 = 4;
/// Aggregators that a job can use at a time: one for each packet of its window.
const WINDOW: u32 = 64;

/// Packets that the server had to take for each fragment, with that share of the aggregators that the
/// jobs need.
fn packets_per_fragment(jobs: u32, percent: u32) -> f64 {
    let aggregators = jobs * WINDOW * percent / 100;
    let own = Options { first_packets: WINDOW, most_packets: WINDOW, ..Options::default() };
    let mut run = Jobs::new(Setting {
        racks: vec![WORKERS],
        jobs,
        own,
        switch: SwitchConfig { aggregators, ..SwitchConfig::default() },
        ..Setting::default()
    });
    let tasks: Vec<Task> = (0..4).map(|number| Task::sum(62 * 500, number)).collect();
    for job in 0..jobs {
        tasks.iter().for_each(|task| run.begin_all(job, *task));
    }
    run.run_until_done(Duration::from_secs(60));
    (0..jobs).for_each(|job| run.all_are_right(job, &tasks));
    run.accounts();
    let of = run.server(0).statistics();
    assert_eq!(of.fragments, u64::from(jobs) * 2000);
    of.gradients.received as f64 / of.fragments as f64
}

#[test]
fn with_too_few_aggregators_more_reaches_the_server_and_all_sums_are_right() {
    for jobs in 1..=4 {
        let [third, half, all, plenty] =
            [33, 50, 100, 10_000].map(|percent| packets_per_fragment(jobs, percent));
        let all_shares = [third, half, all, plenty];
        assert!(all_shares.iter().all(|share| (1.0..=2.0 * f64::from(WORKERS)).contains(share)));
        assert!(third > half && half > all && all > plenty, "{jobs} jobs: {all_shares:?}");
        assert!(plenty < 1.2, "{jobs} jobs: {plenty}");
    }
}

#[test]
fn without_memory_everything_reaches_the_server() {
    let switch = SwitchConfig { memory_bytes: 1, ..SwitchConfig::default() };
    let mut run = Jobs::new(Setting { racks: vec![WORKERS], switch, ..Setting::default() });
    let task = Task::sum(10_000, 0);
    run.begin_all(0, task);
    run.run_until_done(Duration::from_secs(60));
    run.all_are_right(0, &[task]);
    let of = run.server(0).statistics().gradients;
    assert_eq!((of.sums, of.singles), (0, u64::from(WORKERS) * 162));
}
