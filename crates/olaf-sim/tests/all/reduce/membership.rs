//! Who takes part: deaths, restarts, joins, leaves and stragglers.

use super::job::*;
use core::time::Duration;
use olaf_engine::sums::SILENCE as SWITCH_SILENCE;
use olaf_host::collective::{Failure, OperationId, Reducer, Reduction, Standing, Sum};
use olaf_wire::reduce::Reason;

const MS: Duration = Duration::from_millis(1);
/// As long as an end waits for a silent switch.
const END_SILENCE: Duration = Duration::from_secs(5);

fn elastic(workers: u32) -> Setting {
    Setting { workers, is_elastic: true, ..Setting::default() }
}

fn started(setting: Setting) -> Job {
    let mut job = Job::new(setting);
    job.run_for(100 * MS);
    job
}

fn outcomes(job: &Job, end: u32) -> Vec<Result<Sum, Failure>> {
    job.ended.get(&peer(end)).into_iter().flat_map(|e| e.values()).map(|e| e.outcome).collect()
}

fn closed(reason: Reason, culprit: u32) -> Failure {
    Failure::Closed { reason, culprit: Some(culprit) }
}

#[test]
fn a_dead_worker_of_a_fixed_job_comes_back_and_the_job_goes_on() {
    let mut job = started(Setting::default());
    job.begin_all(Task::sum(100, 0));
    job.run_until_done(10 * MS);
    job.net.kill_at(job.net.now(), peer(1));
    job.net.start_at(job.net.now() + 100 * MS, peer(1));
    job.run_for(500 * MS);
    // The operation that would have come next failed with the generation.
    for end in [0, 2] {
        job.begin(end, Task::sum(100, 1));
        job.run_for(MS);
        assert_eq!(outcomes(&job, end)[1], Err(closed(Reason::Dead, 1)));
    }
    job.begin_all(Task::sum(100, 2));
    job.run_until_done(SWITCH_SILENCE * 2);
    for end in [0, 1, 2] {
        let last = job.ended[&peer(end)].values().last().expect("an operation has ended");
        assert_eq!(last.lanes, Task::sum(100, 2).expected(&[0, 1, 2]));
    }
    job.accounts();
}

#[test]
fn a_straggler_is_waited_for_and_asked_for_rarely() {
    let mut job = started(Setting::default());
    for end in [0, 1] {
        job.begin(end, Task::sum(5000, 0));
    }
    job.run_for(END_SILENCE * 4);
    job.begin(2, Task::sum(5000, 0));
    job.run_until_done(100 * MS);
    job.all_are_right(&[Task::sum(5000, 0)], &[0, 1, 2]);
    // Meanwhile the others have asked, but rarely: twice in a keepalive, for each of three blocks.
    let asks = job.net.node::<Reducer>(peer(0)).expect("it lives").statistics(job.net.now()).asks;
    assert!(asks < 300, "{asks}");
    job.accounts();
}

#[test]
fn a_worker_joins_an_elastic_job_between_two_operations() {
    let mut job = Job::new(Setting { workers: 2, ..elastic(2) });
    job.run_for(500 * MS);
    let first = Task::sum(3000, 0);
    job.begin_all(first);
    job.run_until_done(100 * MS);
    job.setting.workers = 3;
    job.place(2);
    job.run_for(500 * MS);
    let second = Task::sum(3000, 1);
    job.begin_all(second);
    job.run_until_done(100 * MS);
    for end in [0, 1] {
        assert_eq!(job.ended[&peer(end)][&OperationId(0)].lanes, first.expected(&[0, 1]));
        assert_eq!(job.ended[&peer(end)][&OperationId(1)].lanes, second.expected(&[0, 1, 2]));
    }
    assert_eq!(job.ended[&peer(2)][&OperationId(0)].lanes, second.expected(&[0, 1, 2]));
    job.accounts();
}

#[test]
fn workers_join_an_elastic_job_while_it_works() {
    for seed in 0..10 {
        let mut job = Job::new(Setting { seed, ..elastic(2) });
        job.run_for(500 * MS);
        for number in 0..6 {
            if number == 2 || number == 4 {
                let new = job.setting.workers;
                job.setting.workers += 1;
                job.place(new);
                job.run_for(MS * seed as u32 / 4);
            }
            job.begin(0, Task::sum(20_000, number));
            job.begin(1, Task::sum(20_000, number));
            // Those that joined take part from the generation on that has them.
            while job.open() > 0 {
                for end in 2..job.setting.workers {
                    let node = job.net.node::<Reducer>(peer(end)).expect("it lives");
                    let is_in = matches!(node.standing(), Standing::In { .. });
                    if is_in && node.open_operations() == 0 {
                        job.begin(end, Task::sum(20_000, number));
                    }
                }
                job.run_for(MS);
                assert!(job.net.now().0 < 1_700_000_100_000_000_000, "{number} hangs");
                let others = (0..2).map(|end| job.net.node::<Reducer>(peer(end)));
                if others.flatten().all(|end| end.open_operations() == 0) {
                    break;
                }
            }
        }
        for end in [0, 1] {
            assert!(outcomes(&job, end).iter().all(Result::is_ok), "{:?}", outcomes(&job, end));
        }
        job.accounts();
    }
}

#[test]
fn an_elastic_job_goes_on_without_the_dead() {
    let mut job = started(elastic(3));
    job.run_for(500 * MS);
    job.begin_all(Task::sum(2_000_000, 0));
    job.begin_all(Task::sum(500, 1));
    job.begin_all(Task::sum(5000, 2));
    job.run_for(3 * MS);
    job.net.kill_at(job.net.now(), peer(2));
    job.run_until_done(SWITCH_SILENCE * 3 / 2);
    for end in [0, 1] {
        assert_eq!(outcomes(&job, end)[0], Err(closed(Reason::Dead, 2)));
        for number in [1, 2] {
            let ended = &job.ended[&peer(end)][&OperationId(number)];
            assert!(ended.outcome.is_ok(), "{:?}", ended.outcome);
            let task = Task::sum(if number == 1 { 500 } else { 5000 }, number as u32);
            assert_eq!(ended.lanes, task.expected(&[0, 1]));
        }
    }
    job.accounts();
}

#[test]
fn a_worker_that_leaves_an_elastic_job_is_not_waited_for() {
    let mut job = started(elastic(3));
    job.run_for(500 * MS);
    job.begin_all(Task::sum(500, 0));
    job.run_until_done(100 * MS);
    job.net.with(peer(2), |reducer: &mut Reducer, now| reducer.leave(now));
    for end in [0, 1] {
        job.begin(end, Task::sum(500, 1));
    }
    job.run_until_done(500 * MS);
    for end in [0, 1] {
        assert_eq!(
            job.ended[&peer(end)][&OperationId(1)].lanes,
            Task::sum(500, 1).expected(&[0, 1])
        );
    }
    job.accounts();
}

#[test]
fn a_deadline_ends_an_operation_without_the_straggler_and_counts_who_is_in() {
    let mut setting = Setting::default();
    setting.options.deadline = Some(20 * MS);
    let mut job = started(setting);
    for end in [0, 1] {
        job.begin(end, Task::sum(5000, 0));
    }
    job.run_until_done(100 * MS);
    let partial = Failure::Partial { contributors: 2, expected: 3 };
    for end in [0, 1] {
        assert_eq!(outcomes(&job, end), [Err(partial)]);
    }
    // The straggler takes the same sums, and sends nothing for them.
    job.begin(2, Task::sum(5000, 0));
    job.run_until_done(100 * MS);
    let end = &job.ended[&peer(2)][&OperationId(0)];
    assert_eq!(end.outcome, Err(partial));
    assert_eq!(end.lanes, Task::sum(5000, 0).expected(&[0, 1]));
    job.begin_all(Task::sum(5000, 1));
    job.run_until_done(100 * MS);
    assert_eq!(job.ended[&peer(2)][&OperationId(1)].lanes, Task::sum(5000, 1).expected(&[0, 1, 2]));
    job.accounts();
}

#[test]
fn operations_that_differ_end_with_an_error_that_names_a_worker() {
    let mut job = started(Setting::default());
    for end in [0, 1] {
        job.begin(end, Task::sum(500, 0));
    }
    job.begin(2, Task { reduction: Reduction::Max, lanes: 500, number: 0 });
    job.run_until_done(500 * MS);
    for end in 0..3 {
        assert_eq!(outcomes(&job, end), [Err(closed(Reason::Mismatch, 2))]);
    }
    job.accounts();
}
