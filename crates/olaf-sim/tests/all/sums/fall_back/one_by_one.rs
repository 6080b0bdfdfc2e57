//! What happens at each step, with one fault at a time.

use super::program::{Call, PATIENCE, Programs};
use crate::common::sums::Draws;
use crate::sums::job::{MS, Setting, peer};
use crate::sums::protocol::TOP;
use crate::sums::protocols::SECOND;
use olaf_host::collective::{At, Collective, Failure, NoWay, OperationId};
use olaf_wire::reduce::Reason;

fn sums(count: usize, at_once: usize) -> Programs {
    Programs::new(Setting::default(), vec![Call::sum(5000); count], at_once)
}

/// A worker on a busy machine takes the switch for silent, and moves. The others hear the switch well: they follow, and
/// none of them waits until an operation times out.
#[test]
fn a_worker_that_moves_alone_brings_the_others_after_it() {
    let draws = &mut Draws(1);
    let mut programs = sums(400, 2);
    programs.run_for(draws, 20 * MS);
    programs.mute(TOP, 1);
    let begun = programs.job.net.now();
    programs.run_to_the_end(draws, 3 * PATIENCE);
    assert!(programs.job.net.now().since(begun) > PATIENCE, "it has moved");
    programs.all_are_right();
    assert_eq!(programs.of(1).left_because, Some(Failure::SwitchSilent));
    for end in [0, 2] {
        let moved = Failure::Closed { reason: Reason::SwitchSilent, culprit: Some(1) };
        let of = programs.of(end);
        assert_eq!((of.at, of.left_because), (At::Second, Some(moved)), "{end}");
        assert!(of.operation > 0);
    }
}

/// It hears so from its heartbeats, and moves before its program calls anything.
#[test]
fn a_worker_that_computes_follows_at_once() {
    let draws = &mut Draws(2);
    let mut programs = sums(3, 1);
    (0..3).for_each(|end| programs.begin(end));
    programs.job.run_for(50 * MS);
    programs.mute(TOP, 0);
    programs.begin(0);
    programs.job.run_for(2 * PATIENCE);
    assert!((0..3).all(|end| programs.of(end).at == At::Second), "{}", programs.job.state());
    programs.run_to_the_end(draws, PATIENCE);
    programs.all_are_right();
}

/// Nobody waits for it: there is no error, however long its program computes.
#[test]
fn a_worker_that_waits_for_others_without_an_operation_waits_as_long_as_they_need() {
    let mut programs = sums(2, 1);
    (0..3).for_each(|end| programs.begin(end));
    programs.job.run_for(50 * MS);
    programs.job.kill(TOP);
    programs.job.start(TOP);
    // Heartbeats find a switch that knows nobody.
    programs.mute(SECOND, 2);
    programs.job.run_for(10 * programs.job.setting.own);
    let states = |programs: &Programs| (0..3).map(|end| programs.of(end).at).collect::<Vec<_>>();
    assert_eq!(states(&programs), [At::Moving; 3]);
    programs.mend(2);
    programs.job.run_for(2 * PATIENCE);
    assert_eq!(states(&programs), [At::Second; 3]);
}

#[test]
fn a_job_that_cannot_meet_says_how_many_have_come_and_all_its_operations_end() {
    let draws = &mut Draws(3);
    let mut programs = sums(6, 3);
    programs.job.run_for(20 * MS);
    programs.job.kill(peer(2));
    programs.job.kill(TOP);
    programs.begin(0);
    programs.begin(1);
    let own = programs.job.setting.own;
    programs.run_to_the_end(draws, own + 2 * PATIENCE);
    for end in [0, 1] {
        let Some(NoWay::NotMet { here, workers, waited }) = programs.of(end).no_way else {
            panic!("{}", programs.job.state());
        };
        // The first of them gives up when both have come.
        assert!((1..=2).contains(&here) && workers == 3 && waited >= own, "{here}, {waited:?}");
        assert_eq!(programs.job.outcomes(end), vec![Err(Failure::SwitchSilent); 6]);
    }
}

#[test]
fn without_a_second_switch_the_operations_end_in_time() {
    let draws = &mut Draws(4);
    let mut programs = sums(4, 2);
    programs.job.kill(TOP);
    programs.job.kill(SECOND);
    let own = programs.job.setting.own;
    programs.run_to_the_end(draws, own + 3 * PATIENCE);
    for end in 0..3 {
        let of = programs.of(end);
        assert!(matches!(of.no_way, Some(NoWay::NotMet { here: 0, .. })), "{of:?}");
        assert_eq!(of.at, At::Failed);
    }
}

/// The others may not sum their operation with its next one.
#[test]
fn an_operation_that_is_given_up_while_the_job_moves_ends_the_move() {
    let mut programs = sums(2, 1);
    programs.job.kill(TOP);
    (0..3).for_each(|end| programs.begin(end));
    programs.mute(SECOND, 1);
    programs.job.run_for(2 * PATIENCE);
    assert_eq!(programs.of(0).at, At::Moving);
    programs.job.give_up(0, 0);
    programs.job.run_for(MS);
    assert_eq!(programs.job.outcomes(0), [Err(Failure::TimedOut)]);
    assert_eq!(programs.of(0).at, At::Failed);
    programs.mend(1);
    programs.job.run_until_done(programs.job.setting.own + 2 * PATIENCE);
    assert!((1..3).all(|end| programs.job.outcomes(end) == [Err(Failure::SwitchSilent)]));
}

/// A worker that leaves has results that others lack.
#[test]
fn a_farewell_ends_when_nobody_lacks_a_result() {
    let mut programs = sums(1, 1);
    programs.job.run_for(20 * MS);
    (1..3).for_each(|end| programs.mute(TOP, end));
    (0..3).for_each(|end| programs.begin(end));
    programs.job.run_for(20 * MS);
    assert_eq!([0, 1, 2].map(|end| programs.job.open_at(end)), [Some(0), Some(1), Some(1)]);
    programs.job.kill(TOP);
    let farewell = programs.job.with(0, |worker, now| worker.say_farewell(now));
    assert_eq!(farewell, Some(OperationId(1)));
    programs.job.run_for(PATIENCE / 2);
    assert_eq!(programs.job.open_at(0), Some(1), "it may have to give its result");
    programs.job.run_until_done(2 * PATIENCE);
    programs.job.with(0, |worker, now| worker.leave(now));
    programs.job.run_for(MS);
    programs.all_are_right();
    assert_eq!([0, 1, 2].map(|end| programs.of(end).taken), [0, 1, 1]);
    assert_eq!(programs.of(0).given, 1);
}

/// It counts its operations from another one than the others.
#[test]
fn after_a_replacement_of_a_worker_the_second_switch_cannot_help() {
    let mut programs = sums(3, 1);
    (0..3).for_each(|end| programs.begin(end));
    programs.job.run_for(50 * MS);
    programs.job.kill(peer(2));
    programs.job.start(peer(2));
    programs.job.run_for(500 * MS);
    programs.job.kill(TOP);
    (0..3).for_each(|end| programs.begin(end));
    programs.job.run_until_done(programs.job.setting.own + 3 * PATIENCE);
    assert!((0..2).all(|end| programs.of(end).off.is_some()), "{}", programs.job.state());
    for end in 0..3 {
        let last = programs.job.outcomes(end).pop();
        assert!(last.is_some_and(|last| last.is_err()), "{end}: {last:?}");
    }
}
