//! SetH and FBcast: sums without some of the workers.

use super::job::*;
use core::time::Duration;
use olaf_host::collective::{Failure, IswitchOptions, Options, Reduction};
use olaf_sim::Wire;

const MS: Duration = Duration::from_millis(1);

fn with_deadline(accepts_partial: bool) -> Setting {
    let options = Options { deadline: Some(20 * MS), ..Options::default() };
    Setting { options, accepts_partial, ..Setting::default() }
}

#[test]
fn a_straggler_is_left_out_after_the_deadline() {
    let mut job = Job::new(with_deadline(true));
    job.run_for(50 * MS);
    let task = Task { reduction: Reduction::Mean, ..Task::sum(2000, 0) };
    // The first mean has a roll call.
    for end in 0..3 {
        job.begin(end, task);
    }
    job.run_until_done(100 * MS);
    job.begin(0, task);
    job.begin(1, task);
    job.run_until_done(100 * MS);
    for end in 0..2 {
        let ended = job.outcome(end, 1);
        let sum = ended.outcome.unwrap();
        assert_eq!((sum.contributors, sum.expected), (2, 3));
        assert!(ended.lanes == task.expected(&[0, 1]), "the mean is of those that are in it");
        assert!(ended.took >= 20 * MS && ended.took < 40 * MS, "{:?}", ended.took);
    }
    // The straggler gets the same result.
    job.begin(2, task);
    job.run_until_done(100 * MS);
    assert!(job.outcome(2, 1).lanes == task.expected(&[0, 1]));
    assert_eq!(job.outcome(2, 1).outcome.unwrap().contributors, 2);
    job.accounts();
}

#[test]
fn a_partial_sum_is_an_error_where_it_is_not_accepted() {
    let mut job = Job::new(with_deadline(false));
    job.run_for(50 * MS);
    job.begin(0, Task::sum(2000, 0));
    job.begin(1, Task::sum(2000, 0));
    job.run_until_done(100 * MS);
    let failure = Failure::Partial { contributors: 2, expected: 3 };
    assert_eq!(job.outcome(0, 0).outcome, Err(failure));
}

#[test]
fn h_vectors_are_enough() {
    let own = IswitchOptions { threshold: Some(2), ..IswitchOptions::default() };
    for loss in [0.0, 0.02] {
        let wire = Wire { loss, ..Setting::default().wire };
        let own = own.clone();
        let mut job = Job::new(Setting { own, wire, accepts_partial: true, ..Setting::default() });
        job.run_for(50 * MS);
        let tasks: Vec<Task> = (0..6).map(|number| Task::sum(366 * 20, number)).collect();
        for task in &tasks {
            job.begin(0, *task);
            job.begin(1, *task);
            job.run_until_done(1000 * MS);
        }
        // A straggler takes every result.
        for task in &tasks {
            job.begin(2, *task);
        }
        job.run_until_done(1000 * MS);
        for end in 0..3 {
            for (id, task) in (0..).zip(&tasks) {
                let ended = job.outcome(end, id);
                assert_eq!(ended.outcome.map(|sum| sum.contributors), Ok(2), "end {end}");
                assert!(ended.lanes == task.expected(&[0, 1]), "end {end}, {id}");
            }
        }
        job.accounts();
    }
}

#[test]
fn a_straggler_that_is_left_out_for_long_holds_the_others_up_and_then_takes_all() {
    // 64 places: the others may be 128 packets ahead of the straggler.
    let own = IswitchOptions { threshold: Some(2), ..IswitchOptions::default() };
    let mut job = Job::new(Setting { own, accepts_partial: true, ..Setting::default() });
    job.run_for(50 * MS);
    let task = Task::sum(366 * 200, 0);
    job.begin(0, task);
    job.begin(1, task);
    job.run_for(200 * MS);
    assert_eq!(job.open(), 2, "results must stay for the straggler");
    job.begin(2, task);
    job.run_until_done(1000 * MS);
    for end in 1..3 {
        assert!(job.outcome(end, 0).lanes == job.outcome(0, 0).lanes, "end {end}");
    }
    job.accounts();
}
