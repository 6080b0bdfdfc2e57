//! Who takes part: deaths, restarts, leaves, and the verbs that end a generation.

use super::job::*;
use core::time::Duration;
use olaf_engine::switch::iswitch::Switch;
use olaf_host::collective::{Collective, Failure, IswitchWorker, OperationId, Reduction, Standing};
use olaf_sim::Wire;
use olaf_wire::reduce::Reason;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_leave_leaves_the_others_their_results() {
    // Worker 0 leaves as soon as it has its result. Half of the results of the others are lost.
    let mut job = Job::new(Setting { seed: 4, ..Setting::default() });
    job.run_for(50 * MS);
    let lossy = Wire { loss: 0.5, ..job.setting.wire };
    for end in 1..3 {
        job.net.join_one_way(SWITCH, peer(end), lossy);
    }
    let task = Task::sum(5000, 0);
    job.begin_all(task);
    while !job.ended.contains_key(&peer(0)) {
        job.run_for(MS);
    }
    job.with(0, |worker, now| worker.leave(now));
    job.run_until_done(2000 * MS);
    job.all_are_right(&[task]);
    let of = job.net.node::<IswitchWorker>(peer(0)).unwrap();
    assert_eq!(of.standing(), Standing::Left);
    for end in 1..3 {
        job.with(end, |worker, now| worker.leave(now));
    }
    job.run_for(6000 * MS);
    let switch = job.net.node::<Switch>(SWITCH).unwrap();
    assert!(switch.statistics(job.net.now()).jobs.is_empty(), "nobody is left");
}

#[test]
fn an_operation_that_is_given_up_fails_everywhere() {
    let mut job = Job::new(Setting::default());
    job.run_for(50 * MS);
    let first = Task::sum(2000, 0);
    for end in 0..3 {
        job.begin(end, first);
    }
    for end in 0..2 {
        job.begin(end, Task::sum(2000, 1));
        job.begin(end, Task::sum(2000, 2));
    }
    job.run_for(20 * MS);
    job.with(0, |worker, now| worker.give_up(now, OperationId(1)));
    job.run_until_done(1000 * MS);
    for end in 0..3 {
        assert!(job.outcome(end, 0).outcome.is_ok(), "end {end}");
    }
    assert_eq!(job.outcome(0, 1).outcome, Err(Failure::TimedOut));
    assert_eq!(job.outcome(0, 2).outcome, Err(Failure::TimedOut));
    let failure = Failure::Closed { reason: Reason::Left, culprit: Some(0) };
    assert_eq!(job.outcome(1, 1).outcome, Err(failure));
    // Worker 2 begins operations 1 and 2 only now. They failed at the others, so they fail here.
    job.run_for(100 * MS);
    job.begin(2, Task::sum(2000, 1));
    job.begin(2, Task::sum(2000, 2));
    let last = Task { reduction: Reduction::Mean, ..Task::sum(2000, 3) };
    job.begin_all(last);
    job.run_until_done(1000 * MS);
    assert_eq!(job.outcome(2, 1).outcome, Err(failure));
    for end in 0..3 {
        assert!(job.outcome(end, 3).lanes == last.expected(&[0, 1, 2]), "end {end}");
    }
    job.accounts();
}

#[test]
fn reset_and_halt_end_the_open_operations_of_all() {
    for (reset, reason) in [(true, Reason::Renewed), (false, Reason::Left)] {
        let mut job = Job::new(Setting::default());
        job.run_for(50 * MS);
        for end in 0..2 {
            job.begin(end, Task::sum(2000, 0));
        }
        job.run_for(MS);
        job.with(1, |worker, now| if reset { worker.reset(now) } else { worker.halt(now) });
        job.run_until_done(1000 * MS);
        let failure = Failure::Closed { reason, culprit: Some(1) };
        for end in 0..2 {
            assert_eq!(job.outcome(end, 0).outcome, Err(failure));
        }
    }
}

#[test]
fn operations_that_do_not_match_are_named() {
    let mut job = Job::new(Setting::default());
    job.run_for(50 * MS);
    job.begin(0, Task::sum(2000, 0));
    job.begin(1, Task::sum(2000, 0));
    job.run_for(2 * MS);
    job.begin(2, Task::sum(100, 0));
    job.run_until_done(1000 * MS);
    for end in 0..3 {
        let failure = Failure::Closed { reason: Reason::Mismatch, culprit: Some(2) };
        assert_eq!(job.outcome(end, 0).outcome, Err(failure));
    }
}
