//! Jobs that sum: operations end, and those that end well are exact.

use super::fault::Fault;
use super::{Arena, MS, NAMED_WITHIN};
use crate::common::sums::Draws;
use core::time::Duration;
use olaf_host::collective::Failure;
use olaf_sim::Wire;

const SIZES: [usize; 4] = [1, 300, 4000, 50_000];
const OPERATIONS: u64 = 6;
/// Lanes and number of an operation that a dead worker does not begin.
const EXTRA: (usize, u32) = (500, 50);
const LAST: (usize, u32) = (1000, 99);

pub(super) fn episode<A: Arena>(seed: u64, fault: Fault) -> Option<Duration> {
    let draws = &mut Draws(seed);
    let wire = Wire {
        loss: draws.below(3) as f64 / 100.0,
        duplication: draws.below(3) as f64 / 100.0,
        delay: Duration::from_micros(50 + draws.below(1000)),
        jitter: Duration::from_micros(draws.below(100)),
        ..Wire::default()
    };
    let workers = 2 + draws.below(4) as u32;
    let mut job = A::new(seed, workers, wire);
    job.run_for(2000 * MS);
    let mut tasks: Vec<(usize, u32)> = (0..OPERATIONS as u32)
        .map(|number| (SIZES[draws.below(SIZES.len() as u64) as usize], number))
        .collect();
    for end in 0..workers {
        tasks.iter().for_each(|(lanes, number)| job.begin(end, *lanes, *number));
    }
    job.run_for(MS * draws.below(60) as u32);
    let victim = draws.below(workers.into()) as u32;
    let places = (A::worker(victim), A::switch(), wire);
    let away = MS * (50 + draws.below(if fault == Fault::Switch { 300 } else { 3000 })) as u32;
    let happened = job.net().now();
    let survivors: Vec<u32> = (0..workers).filter(|end| *end != victim).collect();
    if fault == Fault::Restart {
        // What was open when a worker died is told to the others: something must be.
        job.net().kill_at(happened, A::worker(victim));
        job.run_for(MS);
        tasks.push(EXTRA);
        survivors.iter().for_each(|end| job.begin(*end, EXTRA.0, EXTRA.1));
    }
    fault.happen(&mut job, |job| job.net(), |job, time| job.run_for(time), places, away);
    if fault == Fault::Restart {
        job.forget(victim);
    }
    let mut named = None;
    if fault == Fault::Kill {
        // Something that cannot end well is open at each survivor.
        job.run_for(MS);
        tasks.push(EXTRA);
        survivors.iter().for_each(|end| job.begin(*end, EXTRA.0, EXTRA.1));
        named = Some(until_named(&mut job, &survivors, victim, &tasks, happened));
    }
    job.run_for(8000 * MS);
    // Operations that a worker will never begin again are given up, as a program does at its limit.
    for end in 0..workers {
        (0..=OPERATIONS).for_each(|id| job.give_up(end, id));
    }
    assert!(job.ends_within(2000 * MS), "{} operations hang", job.open());
    for end in 0..workers {
        for (id, (lanes, number)) in (0..).zip(&tasks) {
            let is_wrong = job.ended(end, id, *lanes, *number) == Some(Ok(false));
            assert!(!is_wrong, "worker {end}, operation {id}: the sum is wrong");
        }
    }
    if fault != Fault::Kill {
        goes_on(&mut job, workers);
    }
    job.accounts();
    named
}

/// The time until each survivor had an operation that ended with the culprit's name.
fn until_named<A: Arena>(
    job: &mut A,
    survivors: &[u32],
    victim: u32,
    tasks: &[(usize, u32)],
    happened: olaf_engine::Instant,
) -> Duration {
    let names = |job: &A, end: u32| {
        (0..).zip(tasks).any(|(id, (lanes, number))| {
            let ended = job.ended(end, id, *lanes, *number);
            matches!(ended, Some(Err(Failure::Closed { culprit: Some(who), .. })) if who == victim)
        })
    };
    loop {
        let took = job.net().now().since(happened);
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
fn goes_on<A: Arena>(job: &mut A, workers: u32) {
    job.run_for(5000 * MS);
    let (lanes, first) = LAST;
    for number in [first, first + 1] {
        (0..workers).for_each(|end| job.begin(end, lanes, number));
        job.run_for(MS);
        assert!(job.ends_within(15_000 * MS), "the job does not go on: {} are open", job.open());
        let last = |end| job.last(end, lanes, number);
        if (0..workers).all(|end| last(end) == Some(Ok(true))) {
            return;
        }
        let is_told = |end| matches!(last(end), Some(Err(Failure::Closed { .. })));
        let all: Vec<_> = (0..workers).map(last).collect();
        assert!(number == first && (0..workers).all(is_told), "the last sums are {all:?}");
    }
    unreachable!("the second round returns or fails");
}
