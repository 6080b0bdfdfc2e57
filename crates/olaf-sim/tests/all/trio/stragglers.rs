//! Workers that straggle: the others go on without them, and everybody gets the same results.

use super::job::*;
use core::time::Duration;
use olaf_engine::switch::trio::Switch;
use olaf_host::collective::trio::Worker;
use olaf_host::collective::{Failure, OperationId, Options, Reduction};
use olaf_sim::Wire;
use olaf_wire::reduce::Reason;

const TIMEOUT: Duration = Duration::from_millis(10);
const DEAF: Wire = Wire {
    rate: None,
    delay: Duration::from_micros(100),
    jitter: Duration::ZERO,
    loss: 1.0,
    duplication: 0.0,
    reordering: 0.0,
    late: Duration::ZERO,
    longest: 0,
    says_too_long: false,
};

fn setting() -> Setting {
    // The window of §6: every block of a test is on its way at once, and ages at the same time.
    let window_blocks = Some(4096);
    let options = Options { deadline: Some(TIMEOUT), window_blocks, ..Options::default() };
    Setting { workers: 4, options, accepts_partial: true, ..Setting::default() }
}

fn job(setting: Setting) -> Job {
    let mut job = Job::new(setting);
    job.run_for(1000 * MS);
    assert!((0..job.setting.workers).all(|end| job.is_in(end)));
    job
}

/// The result of an operation, which is the same at all workers: its contributors.
#[track_caller]
fn alike(job: &Job, id: u64) -> u32 {
    let first = &job.ended[&peer(0)][&OperationId(id)];
    for end in 1..job.setting.workers {
        let ended = &job.ended[&peer(end)][&OperationId(id)];
        assert_eq!(ended.outcome, first.outcome, "{id} at {end}");
        assert!(ended.lanes == first.lanes, "{id} at {end}");
    }
    first.outcome.expect("a partial sum is accepted").contributors
}

fn straggling(job: &Job, end: u32, of: u8) -> Option<&'static str> {
    let worker = job.net.node::<Worker>(peer(end)).expect("it is alive");
    worker.statistics(job.net.now()).stragglers.get(&of).copied()
}

#[test]
fn a_worker_that_stops_for_100_ms_delays_the_others_by_twice_the_time_out() {
    for reduction in [Reduction::Sum, Reduction::Mean] {
        for lanes in [10, 1000, 30_000] {
            let mut job = job(setting());
            let task = Task { reduction, lanes, number: 3 };
            (0..3).for_each(|end| job.starts(end, task));
            job.run_for(100 * MS);
            job.begin(3, task);
            job.run_until_done(100 * MS);
            for end in 0..3 {
                let took = job.ended[&peer(end)][&OperationId(0)].took;
                assert!(took >= TIMEOUT, "{took:?}");
                assert!(took <= 2 * TIMEOUT + MS, "{took:?} {lanes}");
            }
            assert_eq!(alike(&job, 0), 3);
            // §5: servers divide by the sources in the sum.
            assert!(job.ended[&peer(3)][&OperationId(0)].lanes == task.expected(&[0, 1, 2]));
            // It takes the results of blocks that it has not sent, and sends nothing.
            let worker = job.net.node::<Worker>(peer(3)).expect("it is alive");
            let pieces = worker.statistics(job.net.now()).pieces;
            assert!(pieces.sent == 0 && pieces.spared > 0, "{pieces:?}");
            // It keeps up again.
            job.begin_all(Task::sum(lanes, 4));
            job.run_until_done(100 * MS);
            assert_eq!(alike(&job, 1), 4);
            job.accounts();
        }
    }
}

#[test]
fn a_worker_that_is_cut_off_for_100_ms_amid_an_operation_gets_the_same_results() {
    for (seed, before) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        // The pieces of a window that is on its way come late.
        let mut setting = Setting { seed, ..setting() };
        setting.options.window_blocks = Some(8);
        let wire = setting.wire;
        let mut job = job(setting);
        let task = Task::sum(50_000, 1);
        job.begin_all(task);
        job.run_for(before * MS);
        let late = Wire { delay: 100 * MS, ..wire };
        job.net.join(peer(3), SWITCH, late);
        job.run_for(100 * MS);
        job.net.join(peer(3), SWITCH, wire);
        job.run_until_done(2000 * MS);
        assert_eq!(alike(&job, 0), 3, "{seed}");
        job.run_for(500 * MS);
        let switch = job.net.node::<Switch>(SWITCH).expect("it is alive");
        let of = switch.statistics(job.net.now());
        assert!(of.aged_blocks > 0 && of.pieces.late > 0, "{of:?}");
        assert_eq!(of.jobs[0].workers[3].late_pieces, of.pieces.late);
        job.accounts();
    }
}

#[test]
fn a_partial_sum_that_is_not_accepted_fails_at_all_workers() {
    let mut job = job(Setting { accepts_partial: false, ..setting() });
    let task = Task::sum(1000, 1);
    (0..3).for_each(|end| job.starts(end, task));
    job.run_for(50 * MS);
    job.begin(3, task);
    job.run_until_done(100 * MS);
    for ended in job.ended.values().flat_map(|ended| ended.values()) {
        assert_eq!(ended.outcome, Err(Failure::Partial { contributors: 3, expected: 4 }));
    }
}

#[test]
fn a_straggler_is_temporary_first_and_permanent_later_and_all_are_told() {
    let mut job = job(setting());
    job.net.kill_at(job.net.now(), peer(3));
    job.run_for(MS);
    let mut times = Vec::new();
    for number in 0..100 {
        job.begin_all(Task::sum(1000, number));
        job.run_until_done(100 * MS);
        job.run_for(20 * MS);
        let of = |end| job.ended[&peer(end)].values().last().expect("it has ended");
        assert!(of(0).lanes == Task::sum(1000, number).expected(&[0, 1, 2]));
        times.push((of(1).took, straggling(&job, 2, 3)));
    }
    assert!(times.iter().any(|(_, what)| *what == Some("temporary")));
    let (took, what) = times.last().expect("there were some");
    // Blocks no longer wait for it.
    assert!(*what == Some("permanent") && *took < MS, "{took:?} {what:?}");
    // It begins a new life: a new term, of all four.
    job.net.start_at(job.net.now(), peer(3));
    job.run_for(1000 * MS);
    assert!((0..4).all(|end| job.is_in(end)), "{}", job.state());
    let task = Task::sum(1000, 200);
    job.begin_all(task);
    job.run_until_done(1000 * MS);
    for end in 0..4 {
        let ended = job.ended[&peer(end)].values().last().expect("it has ended");
        assert!(ended.outcome.is_ok() && ended.lanes == task.expected(&[0, 1, 2, 3]));
    }
    job.accounts();
}

#[test]
fn a_permanent_straggler_that_comes_back_fails_what_it_missed_and_goes_on() {
    let mut job = job(setting());
    let wire = job.setting.wire;
    job.net.join(peer(3), SWITCH, DEAF);
    for number in 0..100 {
        (0..3).for_each(|end| job.starts(end, Task::sum(3000, number)));
        job.run_until_done(100 * MS);
        job.run_for(20 * MS);
    }
    assert_eq!(straggling(&job, 0, 3), Some("permanent"));
    job.net.join(peer(3), SWITCH, wire);
    // It is in time to say that it has heard nothing, before it gives the switch up.
    for number in 0..100 {
        job.begin(3, Task::sum(3000, number));
        job.run_for(MS);
    }
    job.run_until_done(5000 * MS);
    let gone = Failure::Closed { reason: Reason::Dead, culprit: Some(3) };
    for (id, ended) in &job.ended[&peer(3)] {
        match ended.outcome {
            Ok(sum) => {
                assert_eq!(sum.contributors, 3);
                assert!(ended.lanes == job.ended[&peer(0)][id].lanes);
            }
            Err(failure) => assert_eq!(failure, gone, "{id:?}"),
        }
    }
    for number in 100..140 {
        job.begin_all(Task::sum(3000, number));
        job.run_until_done(100 * MS);
        job.run_for(50 * MS);
    }
    assert_eq!(alike(&job, 139), 4);
    assert_eq!(straggling(&job, 0, 3), Some("not"), "{}", job.state());
    job.accounts();
}

#[test]
fn results_are_alike_whatever_is_lost_while_workers_straggle() {
    for seed in 0..10 {
        let wire = Wire { loss: 0.02, delay: Duration::from_micros(200), ..Wire::default() };
        let mut job = job(Setting { seed, wire, ..setting() });
        for number in 0..12 {
            let task = Task::sum(1 + 1500 * number as usize, number);
            for end in 0..4 {
                let lag = (seed as u32 * 7 + number * 3 + end * 5) % 4;
                job.run_for(lag * 6 * MS);
                job.begin(end, task);
            }
            job.run_until_done(3000 * MS);
            alike(&job, number.into());
        }
        job.accounts();
    }
}
