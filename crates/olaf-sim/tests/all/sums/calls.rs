//! Workers that call different operations under one number (`docs/design/042-calls-that-differ.md`).
//!
//! No sum of different operations comes out, the worker that differs is named, and all workers stand at the same operation
//! then.

use super::Protocol;
use super::job::{Job, MS, Setting, Task, closed};
use olaf_host::collective::{Collective, Failure, Label, Operation, Reduction};
use olaf_wire::reduce::{LaneType, Reason};
use olaf_wire::{CallKind, Lacking};

super::for_all_protocols!(
    the_worker_that_differs_is_named,
    all_workers_stand_at_the_same_operation_after_a_call_that_differs,
    calls_that_change_together_are_summed,
    a_label_has_to_be_equal,
    a_call_that_differs_behind_a_lower_switch_fails_at_all,
    a_call_that_the_protocol_lacks_is_named_at_the_others,
    a_call_that_all_workers_refuse_fails_at_all,
    a_worker_that_is_late_hears_of_a_refused_call,
    operations_before_a_refused_call_have_their_sums,
    a_refused_call_behind_a_lower_switch_fails_at_all,
);

const LANES: usize = 40;

fn task(reduction: Reduction, lanes: usize) -> Task {
    Task { reduction, lanes, number: 1 }
}

/// Pairs of calls that no protocol may sum together. A broadcast from a root that is no part of the
/// disagreement has a result for those that agree: see `rows`.
fn pairs<P: Protocol>() -> Vec<(Task, Task)> {
    let plain: Vec<Reduction> = P::reductions(3)
        .into_iter()
        .filter(|reduction| !matches!(reduction, Reduction::Broadcast { .. }))
        .collect();
    let mut pairs = Vec::new();
    for one in &plain {
        let others = plain.iter().filter(|other| *other != one);
        pairs.extend(others.map(|other| (task(*one, LANES), task(*other, LANES))));
        pairs.push((task(*one, LANES + 1), task(*one, LANES)));
        pairs.push((task(*one, 40 * LANES), task(*one, LANES)));
        pairs.push((task(*one, LANES), task(*one, 4000)));
    }
    pairs
}

/// The odd worker comes first, in between, or last, and the others are a while apart.
fn the_worker_that_differs_is_named<P: Protocol>() {
    for (one, others) in pairs::<P>() {
        for odd in 0..3 {
            for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
                let mut job = Job::<P>::met(Setting::default());
                for end in order {
                    job.starts(end, if end == odd { one } else { others });
                    job.run_for(MS);
                }
                job.run_until_done(2000 * MS);
                let named =
                    (0..3).find(|named| job.outcomes(0) == [Err(closed(Reason::Mismatch, *named))]);
                let odd = if P::NAMES_THE_SMALLER_SIDE { odd } else { named.unwrap_or(odd) };
                for end in 0..3 {
                    let outcome = job.outcomes(end);
                    let expected = [Err(closed(Reason::Mismatch, odd))];
                    assert_eq!(outcome, expected, "{one:?}, {others:?}, {order:?}, at {end}");
                }
                job.accounts();
            }
        }
    }
}

/// Operations that were begun behind the one that failed fail, too.
fn all_workers_stand_at_the_same_operation_after_a_call_that_differs<P: Protocol>() {
    for (one, others) in pairs::<P>() {
        let mut job = Job::<P>::met(Setting::default());
        job.sums(Task::sum(LANES, 0), 1000 * MS);
        for end in 0..3 {
            job.starts(end, if end == 1 { one } else { others });
            (2..4).for_each(|number| job.starts(end, Task::sum(LANES, number)));
        }
        job.run_until_done(2000 * MS);
        for end in 0..3 {
            let failed = job.outcomes(end).iter().filter(|outcome| outcome.is_err()).count();
            assert_eq!(failed, 3, "{one:?}, {others:?}: {:?}", job.outcomes(end));
        }
        job.sums(Task::sum(LANES, 9), 2000 * MS);
    }
}

/// Every change costs at most time.
fn calls_that_change_together_are_summed<P: Protocol>() {
    let reductions = P::reductions(3);
    let calls = (0..12).map(|at| reductions[at * at % reductions.len()]);
    let calls = (0..).zip(calls);
    let calls: Vec<Task> = calls
        .map(|(number, reduction)| Task { reduction, lanes: 1 + 77 * number as usize, number })
        .collect();
    let mut job = Job::<P>::met(Setting::default());
    for call in &calls {
        job.begin_all(*call);
    }
    job.run_until_done(2000 * MS);
    job.all_are_right(&calls);
    job.accounts();
}

fn labelled<P: Protocol>(end: u32, label: Label) -> Operation {
    Operation { label, ..Task::sum(LANES, 0).operation::<P>(end) }
}

/// A caller's mark, or an array that is empty at one worker.
fn a_label_has_to_be_equal<P: Protocol>() {
    let tag = |tag| Label { tag, ..Label::default() };
    let empty = Label { is_empty: true, ..Label::default() };
    for (one, others, is_equal) in [
        (tag(5), tag(5), true),
        (empty, empty, true),
        (tag(5), tag(6), false),
        (tag(5), tag(0), false),
        (empty, tag(0), false),
    ] {
        let mut job = Job::<P>::met(Setting::default());
        for end in 0..3 {
            let operation = labelled::<P>(end, if end == 2 { one } else { others });
            let begun = job.with(end, |worker, now| worker.begin(now, operation));
            begun.map_err(|(failure, _)| failure).expect("the operation begins");
            job.run_for(MS);
        }
        job.run_until_done(2000 * MS);
        for end in 0..3 {
            let outcome = job.outcomes(end)[0];
            let is_named = outcome == Err(closed(Reason::Mismatch, 2));
            let is_right = if is_equal { outcome.is_ok() } else { is_named };
            assert!(is_right, "{one:?}, {others:?}: {outcome:?}");
        }
        job.sums(Task::sum(LANES, 1), 2000 * MS);
    }
}

/// Each lower switch has two workers, and the uppermost one.
fn a_call_that_differs_behind_a_lower_switch_fails_at_all<P: Protocol>() {
    let mean = task(Reduction::Mean, LANES);
    for odd in 0..5 {
        let setting = Setting { workers: 5, lower: vec![2, 2], ..Setting::default() };
        let mut job = Job::<P>::met(setting);
        for end in 0..5 {
            job.starts(end, if end == odd { mean } else { Task::sum(LANES, 1) });
        }
        job.run_until_done(5000 * MS);
        for end in 0..5 {
            let outcome = job.outcomes(end)[0];
            let is_told = matches!(outcome, Err(Failure::Closed { reason: Reason::Mismatch, .. }));
            assert!(is_told, "{odd} differs, at {end}: {outcome:?}");
        }
        job.sums(Task::sum(LANES, 2), 5000 * MS);
    }
}

/// Operations that the protocol lacks, with what they are called.
fn refused<P: Protocol>(end: u32) -> Vec<(Operation, Lacking)> {
    let with = |lane_type, reduction| Operation {
        lane_type,
        reduction,
        ..Task::sum(LANES, 1).operation::<P>(end)
    };
    let mut refused = vec![
        (with(LaneType::I32, Reduction::Mean), Lacking::Type),
        (with(LaneType::I32, Reduction::ExactSum), Lacking::Type),
    ];
    if !P::reductions(3).contains(&Reduction::Max) {
        refused.push((with(LaneType::F32, Reduction::Max), Lacking::Maximum));
        refused.push((with(LaneType::F32, Reduction::Min), Lacking::Minimum));
        refused.push((with(LaneType::I32, Reduction::Sum), Lacking::Type));
        refused.push((with(LaneType::F32, Reduction::ExactSum), Lacking::Else));
    }
    if !P::reductions(3).contains(&Reduction::Broadcast { root: 0 }) {
        refused.push((with(LaneType::F32, Reduction::Broadcast { root: 0 }), Lacking::Broadcast));
    }
    refused
}

fn starts<P: Protocol>(job: &mut Job<P>, end: u32, operation: Operation) {
    let begun = job.with(end, |worker, now| worker.begin(now, operation));
    begun.map_err(|(failure, _)| failure).expect("a refused call is an operation, too");
}

/// Its own error says what it lacks, and gives the caller its array back.
#[track_caller]
fn fails_as_refused<P: Protocol>(job: &Job<P>, end: u32, id: u64) {
    let ended = job.outcome(end, id);
    assert!(matches!(ended.outcome, Err(Failure::BadOperation(_))), "{:?}", ended.outcome);
    assert_eq!(ended.lanes.len(), LANES, "the caller's lanes");
}

/// The others hear at once who it was, and what it called; all stand at the same operation then.
fn a_call_that_the_protocol_lacks_is_named_at_the_others<P: Protocol>() {
    for at in 0..refused::<P>(0).len() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let odd = 1;
            let mut job = Job::<P>::met(Setting::default());
            job.sums(Task::sum(LANES, 0), 100 * MS);
            let (operation, lacking) = refused::<P>(odd).swap_remove(at);
            let mut operation = Some(operation);
            for end in order {
                match operation.take_if(|_| end == odd) {
                    Some(operation) => starts(&mut job, end, operation),
                    None => job.starts(end, Task::sum(LANES, 1)),
                }
                job.run_for(MS / 2);
            }
            job.run_until_done(10 * MS);
            fails_as_refused(&job, odd, 1);
            for end in [0, 2] {
                let outcome = job.outcome(end, 1).outcome;
                assert_eq!(outcome, Err(closed(Reason::Mismatch, odd)), "{lacking:?} at {end}");
                let clash =
                    job.with(end, |worker, _| worker.clash()).expect("both calls are known");
                assert_eq!(clash.culprit.call.kind(), CallKind::Refused(lacking));
                assert_eq!(clash.others.call.kind(), CallKind::Plain);
            }
            job.sums(Task::sum(LANES, 2), 1000 * MS);
            job.accounts();
        }
    }
}

/// They agree, and yet nothing can come of it.
fn a_call_that_all_workers_refuse_fails_at_all<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    for round in 0..3 {
        for end in 0..3 {
            let (operation, _) = refused::<P>(end).swap_remove(0);
            starts(&mut job, end, operation);
        }
        job.run_until_done(1000 * MS);
        (0..3).for_each(|end| fails_as_refused(&job, end, 2 * round));
        job.sums(Task::sum(LANES, 2), 1000 * MS);
    }
}

/// It calls nothing for a while, and its next call fails as those of the others did.
fn a_worker_that_is_late_hears_of_a_refused_call<P: Protocol>() {
    for late in [0, 2] {
        let mut job = Job::<P>::met(Setting::default());
        let (operation, _) = refused::<P>(1).swap_remove(0);
        starts(&mut job, 1, operation);
        let other = 2 - late;
        job.starts(other, Task::sum(LANES, 0));
        job.run_for(300 * MS);
        let mismatch = Err(closed(Reason::Mismatch, 1));
        assert_eq!(job.outcome(other, 0).outcome, mismatch);
        job.starts(late, Task::sum(LANES, 0));
        job.run_until_done(1000 * MS);
        assert_eq!(job.outcome(late, 0).outcome, mismatch);
        fails_as_refused(&job, 1, 0);
        job.sums(Task::sum(LANES, 1), 1000 * MS);
    }
}

fn operations_before_a_refused_call_have_their_sums<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::slow());
    let before = [Task::sum(P::LONG, 1), Task::sum(LANES, 2)];
    for end in 0..3 {
        before.iter().for_each(|task| job.starts(end, *task));
        if end == 1 {
            let (operation, _) = refused::<P>(1).swap_remove(0);
            starts(&mut job, 1, operation);
        } else {
            job.starts(end, Task::sum(LANES, 3));
        }
        job.starts(end, Task::sum(LANES, 4));
    }
    job.run_until_done(2000 * MS);
    for end in 0..3 {
        for (id, task) in (0..).zip(&before) {
            let ended = job.outcome(end, id);
            assert!(ended.outcome.is_ok(), "{id} at {end}: {:?}", ended.outcome);
            assert!(ended.lanes == task.expected::<P>(&[0, 1, 2]), "{id} at {end}");
        }
        assert!(job.outcome(end, 2).outcome.is_err());
    }
    job.sums(Task::sum(LANES, 5), 2000 * MS);
}

fn a_refused_call_behind_a_lower_switch_fails_at_all<P: Protocol>() {
    for odd in [0, 4] {
        let setting = Setting { workers: 5, lower: vec![2, 2], ..Setting::default() };
        let mut job = Job::<P>::met(setting);
        for end in 0..5 {
            if end == odd {
                let (operation, _) = refused::<P>(end).swap_remove(0);
                starts(&mut job, end, operation);
            } else {
                job.starts(end, Task::sum(LANES, 1));
            }
        }
        job.run_until_done(1000 * MS);
        for end in (0..5).filter(|end| *end != odd) {
            let outcome = job.outcome(end, 0).outcome;
            let is_told = matches!(outcome, Err(Failure::Closed { reason: Reason::Mismatch, .. }));
            assert!(is_told, "{odd} differs, at {end}: {outcome:?}");
        }
        fails_as_refused(&job, odd, 0);
        job.sums(Task::sum(LANES, 2), 2000 * MS);
    }
}
