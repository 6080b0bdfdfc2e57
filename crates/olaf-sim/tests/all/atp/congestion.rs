//! Windows follow the marks of switches; collision-prone indices are left.

use super::job::*;
use core::time::Duration;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::atp::Config as SwitchConfig;
use olaf_host::collective::atp::Options;
use olaf_sim::Wire;

#[test]
fn all_workers_see_the_marks_of_a_congested_switch() {
    let rate = BitsPerSecond::new(100_000_000);
    let switch = SwitchConfig { downlink: rate, ecn_depth: Some(40), ..SwitchConfig::default() };
    let mut jobs = Jobs::new(Setting { racks: vec![4], switch, ..Setting::default() });
    let task = Task::sum(62 * 3000, 0);
    jobs.begin_all(0, task);
    jobs.run_until_done(Duration::from_secs(20));
    jobs.all_are_right(0, &[task]);
    jobs.accounts();
    let windows: Vec<u32> =
        (0..4).map(|rank| jobs.worker(0, rank).statistics().flows[0].window_packets).collect();
    assert!(windows.iter().all(|window| *window < 200), "they began with 200: {windows:?}");
    let marked: Vec<u64> = (0..4).map(|rank| jobs.worker(0, rank).statistics().marked).collect();
    assert!(marked[0] > 0 && marked.iter().all(|count| *count == marked[0]), "{marked:?}");
}

/// A mark on the way up, in the sum, at the server and on the way down.
#[test]
fn a_mark_below_the_first_switch_reaches_the_workers_behind_the_second() {
    let rate = BitsPerSecond::new(20_000_000);
    let mut jobs = Jobs::new(Setting {
        racks: vec![2, 2],
        trunk: Wire { delay: Duration::from_micros(100), ..Wire::default() },
        switch: SwitchConfig { uplink: rate, ecn_depth: Some(30), ..SwitchConfig::default() },
        ..Setting::default()
    });
    let task = Task::sum(62 * 1000, 0);
    jobs.begin_all(0, task);
    jobs.run_until_done(Duration::from_secs(20));
    jobs.all_are_right(0, &[task]);
    for rank in 0..4 {
        assert!(jobs.worker(0, rank).statistics().marked > 0, "rank {rank}");
    }
}

#[test]
fn collisions_end_because_all_workers_leave_the_index_alike() {
    // Four jobs use half of the aggregators.
    let switch = SwitchConfig { aggregators: 256, ..SwitchConfig::default() };
    let own = Options { first_packets: 32, most_packets: 32, values: 4, ..Options::default() };
    let racks = vec![3];
    let mut jobs = Jobs::new(Setting { racks, jobs: 4, own, switch, ..Setting::default() });
    let tasks: Vec<Task> = (0..4).map(|number| Task::sum(4 * 2000, number)).collect();
    let mut collisions = Vec::new();
    for task in &tasks {
        (0..4).for_each(|job| jobs.begin_all(job, *task));
        jobs.run_until_done(Duration::from_secs(60));
        collisions.push(jobs.server(0).statistics().collisions);
    }
    (0..4).for_each(|job| jobs.all_are_right(job, &tasks));
    jobs.accounts();
    assert!(collisions[0] > 20, "{collisions:?}");
    assert_eq!(collisions[3], collisions[0], "none after the first operation");
    let replaced =
        |job: u32, rank: u32| jobs.worker(job, rank).statistics().flows[0].replaced_indices;
    for job in 0..4 {
        assert!((1..3).all(|rank| replaced(job, rank) == replaced(job, 0)), "job {job}");
    }
    assert!((0..4).any(|job| replaced(job, 0) > 0));
}
