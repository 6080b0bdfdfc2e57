//! Jobs that sum: operations end, and those that end well are exact.

use super::fault::Fault;
use super::{MS, NAMED_WITHIN};
use crate::common::sums::Draws;
use crate::sums::Protocol;
use crate::sums::job::{Job, Setting, Task, peer};
use crate::sums::protocol::TOP;
use core::time::Duration;
use olaf_host::collective::{Failure, OperationId};
use olaf_sim::Wire;

const SIZES: [usize; 4] = [1, 300, 4000, 50_000];
const OPERATIONS: u64 = 6;
/// An operation that a dead worker does not begin.
const EXTRA: Task = Task::sum(500, 50);
const LAST: Task = Task::sum(1000, 99);

pub(super) fn episode<P: Protocol>(seed: u64, fault: Fault) -> Option<Duration> {
    let draws = &mut Draws(seed);
    let wire = Wire {
        loss: draws.below(3) as f64 / 100.0,
        duplication: draws.below(3) as f64 / 100.0,
        delay: Duration::from_micros(50 + draws.below(1000)),
        jitter: Duration::from_micros(draws.below(100)),
        ..Wire::default()
    };
    let workers = 2 + draws.below(4) as u32;
    let mut job = Job::<P>::new(Setting { seed, workers, wire, ..Setting::default() });
    job.run_for(2000 * MS);
    let mut tasks: Vec<Task> = (0..OPERATIONS as u32)
        .map(|number| Task::sum(SIZES[draws.below(SIZES.len() as u64) as usize], number))
        .collect();
    for end in 0..workers {
        tasks.iter().for_each(|task| job.starts(end, *task));
    }
    job.run_for(MS * draws.below(60) as u32);
    let victim = draws.below(workers.into()) as u32;
    let places = (peer(victim), TOP, wire);
    let away = MS * (50 + draws.below(if fault == Fault::Switch { 300 } else { 3000 })) as u32;
    let happened = job.net.now();
    let survivors: Vec<u32> = (0..workers).filter(|end| *end != victim).collect();
    if fault == Fault::Restart {
        // What was open when a worker died is told to the others: something must be.
        job.net.kill_at(happened, peer(victim));
        job.run_for(MS);
        tasks.push(EXTRA);
        survivors.iter().for_each(|end| job.starts(*end, EXTRA));
    }
    fault.happen(&mut job, |job| &mut job.net, |job, time| job.run_for(time), places, away);
    if fault == Fault::Restart {
        job.ended.remove(&peer(victim));
    }
    let mut named = None;
    if fault == Fault::Kill {
        // Something that cannot end well is open at each survivor.
        job.run_for(MS);
        tasks.push(EXTRA);
        survivors.iter().for_each(|end| job.starts(*end, EXTRA));
        named = Some(until_named(&mut job, &survivors, victim, &tasks, happened));
    }
    job.run_for(8000 * MS);
    // Operations that a worker will never begin again are given up, as a program does at its limit.
    for end in 0..workers {
        (0..=OPERATIONS).for_each(|id| job.give_up(end, id));
    }
    assert!(job.ends_within(2000 * MS), "{} operations hang", job.open());
    for end in 0..workers {
        for (id, task) in (0..).zip(&tasks) {
            let is_wrong = ended(&job, end, id, *task) == Some(Ok(false));
            assert!(!is_wrong, "worker {end}, operation {id}: the sum is wrong");
        }
    }
    if fault != Fault::Kill {
        goes_on(&mut job, workers);
    }
    job.accounts();
    named
}

/// How that operation ended at a worker, and whether its lanes are the sum of all; none: it has not.
fn ended<P: Protocol>(
    job: &Job<P>,
    end: u32,
    id: u64,
    task: Task,
) -> Option<Result<bool, Failure>> {
    let ended = job.ended.get(&peer(end))?.get(&OperationId(id))?;
    let all: Vec<u32> = (0..job.setting.workers).collect();
    Some(ended.outcome.map(|_| ended.lanes == task.expected::<P>(&all)))
}

/// The time until each survivor had an operation that ended with the culprit's name.
fn until_named<P: Protocol>(
    job: &mut Job<P>,
    survivors: &[u32],
    victim: u32,
    tasks: &[Task],
    happened: olaf_engine::Instant,
) -> Duration {
    let names = |job: &Job<P>, end: u32| {
        (0..).zip(tasks).any(|(id, task)| {
            let ended = ended(job, end, id, *task);
            matches!(ended, Some(Err(Failure::Closed { culprit: Some(who), .. })) if who == victim)
        })
    };
    loop {
        let took = job.net.now().since(happened);
        let late: Vec<u32> = survivors.iter().copied().filter(|end| !names(job, *end)).collect();
        if late.is_empty() {
            return took;
        }
        assert!(took <= NAMED_WITHIN, "after {took:?} the workers {late:?} do not name {victim}");
        job.run_for(10 * MS);
    }
}

/// After the fault a new operation ends well at all workers. A worker that had nothing open when the
/// others closed is told so by its next operation: then the one after it must end well.
fn goes_on<P: Protocol>(job: &mut Job<P>, workers: u32) {
    job.run_for(5000 * MS);
    for number in [LAST.number, LAST.number + 1] {
        let task = Task { number, ..LAST };
        (0..workers).for_each(|end| job.starts(end, task));
        job.run_for(MS);
        assert!(job.ends_within(15_000 * MS), "the job does not go on: {} are open", job.open());
        let last = |end| {
            let (id, _) = job.ended.get(&peer(end))?.last_key_value()?;
            ended(job, end, id.0, task)
        };
        if (0..workers).all(|end| last(end) == Some(Ok(true))) {
            return;
        }
        let is_told = |end| matches!(last(end), Some(Err(Failure::Closed { .. })));
        let all: Vec<_> = (0..workers).map(last).collect();
        assert!(number == LAST.number && (0..workers).all(is_told), "the last sums are {all:?}");
    }
    unreachable!("the second round returns or fails");
}
