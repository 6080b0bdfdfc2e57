//! Workers that are never at the same operation, in a job that ends and begins again all the time.

use super::Protocol;
use super::chaos::some_setting;
use super::job::{Job, MS, Setting, Task, peer};
use crate::common::sums::{Draws, operation};
use olaf_host::collective::{Collective, Operation, Reduction};

super::for_all_protocols!(
    however_often_a_generation_ends_no_operation_meets_a_later_one,
    operations_that_some_have_begun_fail_at_the_others_too,
);

/// Operations of each worker.
const OPERATIONS: u32 = 60;

/// The last worker dies and comes back again and again, and gives zeros. The others begin their operations at
/// their own pace. An operation ends alike at all of them, and its sum is of that operation of each.
fn however_often_a_generation_ends_no_operation_meets_a_later_one<P: Protocol>() {
    let (mut sums, mut failures) = (0u64, 0u64);
    let seeds = u64::from(olaf_samples::cases(40));
    for seed in 0..seeds {
        let draws = &mut Draws(3000 + seed);
        let setting = some_setting::<P>(seed, draws);
        let others: Vec<u32> = (0..setting.workers - 1).collect();
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let lanes = [1, 300, 4000][draws.below(3) as usize];
        to_the_end(&mut job, draws, &others, lanes);
        for number in 0..OPERATIONS {
            let task = Task::sum(lanes, number);
            let first = job.outcome(0, number.into()).outcome;
            *(if first.is_ok() { &mut sums } else { &mut failures }) += 1;
            for end in &others {
                let ended = job.outcome(*end, number.into());
                let is_alike = ended.outcome.is_ok() == first.is_ok() || !P::FAILS_ALIKE;
                let outcome = ended.outcome;
                assert!(is_alike, "seed {seed}, {number}, {end}: {outcome:?}, {first:?}");
                let is_right = outcome.is_err() || ended.lanes == task.expected::<P>(&others);
                assert!(is_right, "seed {seed}, {number}, {end}: a wrong sum");
            }
        }
    }
    let is_mixed = sums > 5 * seeds && failures > 2 * seeds;
    assert!(is_mixed, "{sums} sums and {failures} failures of {seeds} jobs: this tests nothing");
}

/// Runs until the others have begun all their operations, and all have ended.
fn to_the_end<P: Protocol>(job: &mut Job<P>, draws: &mut Draws, others: &[u32], lanes: usize) {
    let last = others.len() as u32;
    let begin = |job: &mut Job<P>, end: u32, operation: Operation| {
        let begun = job.with(end, |worker, now| worker.begin(now, operation));
        begun.map_err(|(failure, _)| failure).expect("the operation begins");
    };
    let mut begun = vec![0; others.len()];
    for _ in 0..20_000 {
        let end = draws.below(others.len() as u64) as u32;
        for _ in 0..1 + draws.below(4) {
            let number = begun[end as usize];
            if number < OPERATIONS {
                begin(job, end, Task::sum(lanes, number).operation::<P>(end));
                begun[end as usize] += 1;
            }
        }
        match draws.below(20) {
            0 if job.lives(last) => job.kill(peer(last)),
            0..6 if !job.lives(last) => job.start(peer(last)),
            _ => {}
        }
        job.run_for(MS * (draws.below(3) * draws.below(12)) as u32);
        if let Some(open) = job.open_at(last) {
            for _ in open..3 {
                let zeros = (0..lanes).map(|_| 0.0);
                begin(job, last, operation(Reduction::Sum, zeros, false));
            }
        }
        let is_done = begun.iter().all(|begun| *begun == OPERATIONS);
        if is_done && others.iter().all(|end| job.open_at(*end) == Some(0)) {
            return;
        }
    }
}

/// The first worker is two operations ahead when a generation ends, and the second one has begun none.
fn operations_that_some_have_begun_fail_at_the_others_too<P: Protocol>() {
    let mut job = Job::<P>::met(Setting::default());
    (0..3).for_each(|number| job.starts(0, Task::sum(300, number)));
    job.starts(2, Task::sum(300, 0));
    job.run_for(5 * MS);
    job.give_up(2, 0);
    job.run_for(500 * MS);
    (0..3).for_each(|number| job.starts(1, Task::sum(300, number)));
    (1..3).for_each(|number| job.starts(2, Task::sum(300, number)));
    job.run_for(2000 * MS);
    no_sum_is_wrong(&mut job, 3);
}

/// All workers begin the operation with that number. It ends well, and those before it have ended well or failed.
#[track_caller]
fn no_sum_is_wrong<P: Protocol>(job: &mut Job<P>, last: u32) {
    job.begin_all(Task::sum(300, last));
    job.run_until_done(5000 * MS);
    for (end, number) in (0..3).flat_map(|end| (0..=last).map(move |number| (end, number))) {
        let ended = job.outcome(end, number.into());
        let is_right = ended.lanes == Task::sum(300, number).expected::<P>(&[0, 1, 2]);
        assert!(ended.outcome.is_err() || is_right, "{end}, {number}: a wrong sum");
        assert!(ended.outcome.is_ok() || number < last, "{end}: {:?}", ended.outcome);
    }
}
