//! Who takes part: workers and switches that die, come back, come late, give up and leave. Every name comes in time.

use super::Protocol;
use super::job::{Job, MS, SILENCE, SWITCH_SILENCE, Setting, Task, closed, peer};
use super::protocol::TOP;
use olaf_host::collective::{Collective, Failure, Standing};
use olaf_sim::Wire;
use olaf_wire::reduce::Reason;

super::for_all_protocols!(
    a_job_begins_when_all_its_workers_are_here,
    a_death_ends_the_operation_at_all_others_with_the_name_of_the_dead,
    a_dead_worker_comes_back_and_the_job_goes_on,
    a_worker_that_comes_late_to_an_operation_that_failed_hears_so,
    the_death_of_the_switch_is_named_and_its_next_life_goes_on,
    the_death_of_the_authority_is_named_and_its_next_life_goes_on,
    an_authority_that_restarts_ends_what_was_open_and_the_job_goes_on,
    a_straggler_is_waited_for,
    an_operation_that_is_given_up_fails_at_all_workers,
    a_worker_that_leaves_is_named_to_the_others,
    operations_that_differ_are_told_to_all,
    an_idle_worker_that_was_deaf_for_long_sums_rightly_afterwards,
    a_worker_that_gave_up_what_it_could_not_hear_sums_rightly_afterwards,
);

fn a_job_begins_when_all_its_workers_are_here<P: Protocol>() {
    let mut job = Job::<P>::new(Setting::default());
    job.kill(peer(1));
    job.run_for(1000 * MS);
    assert_eq!(job.standing_at(peer(0)), Some(Standing::Joining { here: 2, workers: 3 }));
    // An operation waits for the worker, too.
    let task = Task::sum(1000, 0);
    job.begin_all(task);
    job.start(peer(1));
    job.run_for(10 * MS);
    job.begin(1, task);
    job.run_until_done(2000 * MS);
    job.all_are_right(&[task]);
    for end in 0..3 {
        let standing = job.standing_at(peer(end));
        let is_in = matches!(standing, Some(Standing::In { rank, workers: 3, .. }) if rank == end);
        assert!(is_in, "{end}: {standing:?}");
    }
}

fn a_death_ends_the_operation_at_all_others_with_the_name_of_the_dead<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::slow());
    job.begin_all(Task::sum(100, 0));
    job.run_until_done(100 * MS);
    job.begin_all(Task::sum(P::LONG, 1));
    job.begin_all(Task::sum(10, 2));
    job.run_for(2 * MS);
    job.kill(peer(2));
    job.run_for(MS);
    assert_eq!(job.open(), 4, "the operation was long enough");
    job.run_until_done(SILENCE * 3 / 2);
    for end in [0, 1] {
        let outcomes = job.outcomes(end);
        assert!(outcomes[0].is_ok());
        assert_eq!(outcomes[1..], [Err(closed(Reason::Dead, 2)); 2], "{end}");
    }
    job.accounts();
}

fn a_dead_worker_comes_back_and_the_job_goes_on<P: Protocol>() {
    for away in [100 * MS, 10 * SILENCE] {
        let mut job = Job::<P>::met(Setting::default());
        job.kill(peer(1));
        job.net.start_at(job.net.now() + away, peer(1));
        job.run_for(MS);
        for end in [0, 2] {
            job.begin(end, Task::sum(5000, 0));
        }
        job.run_for(away + SILENCE * 2);
        for end in [0, 2] {
            let outcome = job.outcome(end, 0).outcome;
            let is_named = matches!(outcome, Err(Failure::Closed { culprit: Some(1), .. }));
            assert!(is_named, "{end}: {outcome:?}");
        }
        job.sums(Task::sum(5000, 1), 1000 * MS);
        job.accounts();
    }
}

fn a_worker_that_comes_late_to_an_operation_that_failed_hears_so<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    job.begin(0, Task::sum(100, 0));
    job.run_for(20 * MS);
    job.kill(peer(2));
    job.run_for(4000 * MS);
    job.begin(1, Task::sum(100, 0));
    // It may have to meet the others before it can know.
    job.start(peer(2));
    job.run_for(2000 * MS);
    for end in [0, 1] {
        assert_eq!(job.outcome(end, 0).outcome, Err(closed(Reason::Dead, 2)), "{end}");
    }
    job.sums(Task::sum(5000, 1), 1000 * MS);
    job.accounts();
}

fn the_death_of_the_switch_is_named_and_its_next_life_goes_on<P: Protocol>() {
    is_named::<P>(TOP);
}

fn the_death_of_the_authority_is_named_and_its_next_life_goes_on<P: Protocol>() {
    is_named::<P>(P::AUTHORITY);
}

fn is_named<P: Protocol>(victim: olaf_engine::PeerId) {
    let mut job = Job::<P>::met(Setting::slow());
    job.begin_all(Task::sum(P::LONG, 0));
    job.run_for(2 * MS);
    job.kill(victim);
    job.run_until_done(SWITCH_SILENCE + 1000 * MS);
    // An operation that begins meanwhile waits as long, and no longer.
    job.begin_all(Task::sum(10, 1));
    job.run_until_done(SWITCH_SILENCE + 1000 * MS);
    for end in 0..3 {
        assert_eq!(job.outcomes(end), [Err(Failure::SwitchSilent); 2], "{end}");
    }
    job.start(victim);
    job.run_for(1000 * MS);
    job.sums(Task::sum(10, 2), 100 * MS);
    job.accounts();
}

fn an_authority_that_restarts_ends_what_was_open_and_the_job_goes_on<P: Protocol>() {
    for is_elastic in [false, true] {
        if is_elastic && !P::HAS_ELASTIC_JOBS {
            continue;
        }
        let mut job = Job::<P>::met(Setting { is_elastic, ..Setting::slow() });
        job.begin_all(Task::sum(P::LONG, 0));
        job.run_for(2 * MS);
        job.kill(P::AUTHORITY);
        job.net.start_at(job.net.now() + 20 * MS, P::AUTHORITY);
        job.run_until_done(1000 * MS);
        let unknown = Failure::Closed { reason: Reason::Unknown, culprit: None };
        for end in 0..3 {
            assert_eq!(job.outcomes(end), [Err(unknown)], "{end}");
        }
        job.run_for(1000 * MS);
        job.sums(Task::sum(10, 1), 100 * MS);
        job.accounts();
    }
}

fn a_straggler_is_waited_for<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    let task = Task::sum(5000, 0);
    [0, 1].into_iter().for_each(|end| job.starts(end, task));
    job.run_for(SWITCH_SILENCE * 4);
    assert_eq!(job.open(), 2, "it lives, and nobody minds");
    job.begin(2, task);
    job.run_until_done(1000 * MS);
    job.all_are_right(&[task]);
    job.accounts();
}

fn an_operation_that_is_given_up_fails_at_all_workers<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    let task = Task::sum(3000, 0);
    // One worker begins it only later.
    [0, 1].into_iter().for_each(|end| job.starts(end, task));
    job.run_for(50 * MS);
    job.give_up(0, 0);
    job.run_until_done(1000 * MS);
    assert_eq!(job.outcome(0, 0).outcome, Err(Failure::TimedOut));
    assert_eq!(job.outcome(1, 0).outcome, Err(closed(Reason::Left, 0)));
    job.run_for(1000 * MS);
    job.begin(2, task);
    job.run_until_done(1000 * MS);
    assert_eq!(job.outcome(2, 0).outcome, Err(closed(Reason::Left, 0)));
    job.run_for(1000 * MS);
    job.sums(Task::sum(5000, 1), 1000 * MS);
    job.accounts();
}

fn a_worker_that_leaves_is_named_to_the_others<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    [0, 1].into_iter().for_each(|end| job.starts(end, Task::sum(100, 0)));
    job.run_for(10 * MS);
    job.with(2, |worker, now| worker.leave(now));
    job.run_until_done(100 * MS);
    for end in [0, 1] {
        assert_eq!(job.outcome(end, 0).outcome, Err(closed(Reason::Left, 2)), "{end}");
    }
    assert_eq!(job.standing_at(peer(2)), Some(Standing::Left));
    // It may join again.
    job.with(2, |worker, now| worker.join(now));
    job.run_for(1000 * MS);
    job.sums(Task::sum(100, 1), 1000 * MS);
    job.accounts();
}

fn operations_that_differ_are_told_to_all<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    [0, 1].into_iter().for_each(|end| job.starts(end, Task::sum(2000, 0)));
    job.run_for(2 * MS);
    job.begin(2, Task::sum(100, 0));
    job.run_until_done(1000 * MS);
    for end in 0..3 {
        let outcome = job.outcome(end, 0).outcome;
        let is_told = matches!(outcome, Err(Failure::Closed { reason: Reason::Mismatch, .. }));
        assert!(is_told, "{end}: {outcome:?}");
    }
    job.run_for(1000 * MS);
    job.sums(Task::sum(1000, 2), 1000 * MS);
    job.accounts();
}

/// From now on nothing comes to the last worker; or all comes again.
fn deafen<P: Protocol>(job: &mut Job<P>, end: u32, is_deaf: bool) {
    let loss = if is_deaf { 1.0 } else { 0.0 };
    let wire = Wire { loss, ..job.setting.wire };
    job.net.join_one_way(TOP, peer(end), wire);
}

/// The switch hears it all the time, so it has its place. The operations before have the same shape: the results of theirs
/// would be wrong.
fn an_idle_worker_that_was_deaf_for_long_sums_rightly_afterwards<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    for number in 0..3 {
        job.sums(Task::sum(1000, number), 1000 * MS);
    }
    deafen(&mut job, 2, true);
    job.run_for(2 * SWITCH_SILENCE);
    deafen(&mut job, 2, false);
    job.run_for(1000 * MS);
    job.begin_all(Task::sum(1000, 3));
    job.run_until_done(3000 * MS);
    let fourth: Vec<_> = (0..3).map(|end| job.outcome(end, 3).outcome).collect();
    if P::AUTHORITY == TOP {
        assert!(fourth.iter().all(Result::is_ok), "nothing was lost: {fourth:?}");
    } else {
        // differs: a worker of ATP leaves.
        assert!(fourth.iter().all(Result::is_err), "{fourth:?}");
    }
    job.run_for(1000 * MS);
    job.sums(Task::sum(1000, 4), 1000 * MS);
    job.accounts();
}

/// Its operation fails, and those that the others have begun with it. The next ones meet again.
fn a_worker_that_gave_up_what_it_could_not_hear_sums_rightly_afterwards<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    for number in 0..3 {
        job.sums(Task::sum(1000, number), 1000 * MS);
    }
    job.begin(2, Task::sum(1000, 3));
    job.run_for(10 * MS);
    deafen(&mut job, 2, true);
    job.run_for(3 * SWITCH_SILENCE / 2);
    assert_eq!(job.open_at(2), Some(0), "it has failed");
    deafen(&mut job, 2, false);
    job.run_for(1000 * MS);
    (0..2).for_each(|end| job.starts(end, Task::sum(1000, 3)));
    job.run_until_done(3000 * MS);
    let all: Vec<u32> = (0..3).collect();
    for end in 0..2 {
        let ended = job.outcome(end, 3);
        let is_right =
            ended.outcome.is_err() || ended.lanes == Task::sum(1000, 3).expected::<P>(&all);
        assert!(is_right, "{end}: a wrong sum");
    }
    job.goes_on(Task::sum(1000, 4), 3000 * MS);
    job.sums(Task::sum(1000, 6), 1000 * MS);
    job.accounts();
}
