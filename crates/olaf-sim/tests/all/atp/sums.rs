//! Sums on a path without faults.

use super::job::*;
use core::time::Duration;
use olaf_host::collective::atp::Options;
use olaf_host::collective::{Collective, Reduction, Standing};

const LONG: Duration = Duration::from_secs(60);

fn tasks() -> Vec<Task> {
    let lanes = [1, 62, 63, 5000, 20_000, 7, 300];
    let of = |(lanes, number): (usize, u32)| Task {
        reduction: if number % 2 == 0 { Reduction::Sum } else { Reduction::Mean },
        ..Task::sum(lanes, number)
    };
    lanes.into_iter().zip(0..).map(of).collect()
}

fn runs(setting: Setting) -> Jobs {
    let mut jobs = Jobs::new(setting);
    let tasks = tasks();
    let (at_once, later) = tasks.split_at(4);
    at_once.iter().for_each(|task| jobs.begin_all(0, *task));
    jobs.run_until_done(LONG);
    for task in later {
        jobs.begin_all(0, *task);
        jobs.run_until_done(LONG);
    }
    jobs.all_are_right(0, &tasks);
    jobs.accounts();
    jobs
}

#[test]
fn sums_of_one_switch_are_exact() {
    for workers in [1, 2, 3, 8] {
        let jobs = runs(Setting { racks: vec![workers], ..Setting::default() });
        let of = jobs.server(0).statistics().gradients;
        assert_eq!(of.singles + of.sums, of.received, "nothing comes twice: {of:?}");
        let Standing::In { workers: of, rank, .. } = jobs.worker(0, 0).standing() else {
            panic!("it is in")
        };
        assert_eq!((of, rank), (workers, 0));
    }
}

#[test]
fn sums_of_two_levels_are_exact() {
    for racks in [vec![2, 2, 2], vec![3, 1, 0], vec![1, 1, 1, 1]] {
        runs(Setting { racks, ..Setting::default() });
    }
}

#[test]
fn several_servers_have_a_part_of_each_tensor() {
    for servers in [2, 3, 4] {
        let own = Options { servers, ..Options::default() };
        let jobs = runs(Setting { own, racks: vec![2, 1, 1], ..Setting::default() });
        let fragments: Vec<u64> = (0..u32::from(servers))
            .map(|index| jobs.server(index).statistics().fragments)
            .collect();
        let (most, least) = (fragments.iter().max(), fragments.iter().min());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 7), "{fragments:?}");
    }
}

#[test]
fn larger_packets_have_more_values() {
    let own = Options { values: 360, ..Options::default() };
    let jobs = runs(Setting { own, ..Setting::default() });
    let fragments = jobs.server(0).statistics().fragments;
    assert_eq!(fragments, tasks().iter().map(|task| task.lanes.div_ceil(360) as u64).sum::<u64>());
}

#[test]
fn sequence_numbers_wrap() {
    let own = Options { values: 4, ..Options::default() };
    let mut jobs = Jobs::new(Setting { own, racks: vec![2], ..Setting::default() });
    // 75,000 fragments, and again as many.
    let tasks = [Task::sum(300_000, 0), Task::sum(300_000, 1)];
    tasks.iter().for_each(|task| jobs.begin_all(0, *task));
    jobs.run_until_done(LONG);
    jobs.all_are_right(0, &tasks);
    jobs.accounts();
    assert_eq!(jobs.server(0).statistics().fragments, 150_000);
}

#[test]
fn more_than_32_workers_share_a_switch() {
    let mut jobs = Jobs::new(Setting { racks: vec![40], ..Setting::default() });
    let tasks = [Task::sum(5000, 0)];
    jobs.begin_all(0, tasks[0]);
    jobs.run_until_done(LONG);
    jobs.all_are_right(0, &tasks);
    jobs.accounts();
    let of = jobs.server(0).statistics().gradients;
    assert!(of.sums > 60, "most fragments come as one sum: {of:?}");
    // In racks of more than 32 workers, too.
    let mut jobs = Jobs::new(Setting { racks: vec![34, 3, 1], ..Setting::default() });
    jobs.begin_all(0, tasks[0]);
    jobs.run_until_done(LONG);
    jobs.all_are_right(0, &tasks);
    jobs.accounts();
}

#[test]
fn sums_that_run_over_are_sent_again_as_floats() {
    // 2^31 stands for 21.5. Lanes of up to 20 fit, and sums of them do not; the others do not fit alone.
    for (racks, times) in [(vec![15], 20.0), (vec![2, 2, 0], 20.0), (vec![1], 1e4), (vec![3], 1e6)]
    {
        let mut jobs = Jobs::new(Setting { racks, ..Setting::default() });
        let tasks = [Task { times, ..Task::sum(2000, 0) }, Task::sum(2000, 1)];
        tasks.iter().for_each(|task| jobs.begin_all(0, *task));
        jobs.run_until_done(LONG);
        jobs.all_are_right(0, &tasks);
        jobs.accounts();
        assert!(jobs.server(0).statistics().parameters.requests > 0);
        assert!(jobs.worker(0, 0).statistics().parameters.float_requests > 0);
    }
}

#[test]
fn what_is_no_number_arrives_as_such() {
    let mut jobs = Jobs::new(Setting::default());
    jobs.begin_all(0, Task { times: f32::INFINITY, ..Task::sum(100, 0) });
    jobs.run_until_done(LONG);
    for rank in 0..3 {
        let ended = jobs.ended[&worker(0, rank)].values().next().unwrap();
        assert!(ended.outcome.is_ok_and(|sum| sum.not_finite), "{:?}", ended.outcome);
    }
}
