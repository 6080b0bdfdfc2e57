//! Deaths, restarts and losses at random times: every operation ends, and it ends alike at all workers that
//! live through it.

use super::job::*;
use crate::common::sums::{Draws, some_wire};
use core::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn setting(seed: u64, draws: &mut Draws) -> Setting {
    let wire = some_wire(draws);
    let workers = 2 + draws.below(4) as u32;
    let is_tree = draws.below(2) == 0;
    let leaves = (0..workers).map(|end| is_tree.then_some(end % 2)).collect();
    Setting { seed, workers, wire, leaves, ..Setting::default() }
}

fn tasks(draws: &mut Draws) -> Vec<Task> {
    let sizes = [1, 300, 4000, 50_000];
    (0..8).map(|number| Task::sum(sizes[draws.below(4) as usize], number)).collect()
}

#[test]
fn sums_without_stragglers_are_alike_at_all_workers() {
    let mut partial = 0;
    for seed in 0..30 {
        let draws = &mut Draws(2000 + seed);
        let mut setting = setting(seed, draws);
        setting.accepts_partial = true;
        let workers = setting.workers;
        setting.options.deadline = Some(MS * (5 + draws.below(30)) as u32);
        let is_tree = setting.leaves.iter().any(Option::is_some);
        if draws.below(2) == 0 && !is_tree {
            setting.own.threshold = Some(workers - 1);
        }
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let tasks = tasks(draws);
        for task in &tasks {
            for end in 0..workers {
                job.begin(end, *task);
                job.run_for(MS * (draws.below(4) * draws.below(12)) as u32);
            }
        }
        job.run_until_done(20_000 * MS);
        for id in 0..tasks.len() as u64 {
            let first = job.outcome(0, id);
            let sum = first.outcome.expect("a partial sum is accepted");
            partial += u32::from(sum.contributors < workers);
            for end in 1..workers {
                let ended = job.outcome(end, id);
                assert_eq!(ended.outcome, Ok(sum), "seed {seed}, {id}, {end}");
                assert!(ended.lanes == first.lanes, "seed {seed}, {id}, {end}");
            }
        }
        job.accounts();
    }
    assert!(partial > 30, "{partial} sums were partial: the test tests nothing");
}

/// The same where the workers end generations themselves.
#[test]
fn however_often_a_generation_ends_each_operation_ends_alike_at_all_workers() {
    let (mut sums, mut failures) = (0, 0);
    let seeds = olaf_samples::cases(40);
    for seed in 0..seeds.into() {
        let draws = &mut Draws(3000 + seed);
        let setting = setting(seed, draws);
        let workers = setting.workers;
        let all: Vec<u32> = (0..workers).collect();
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let sizes = [1, 300, 4000];
        let tasks: Vec<Task> =
            (0..60).map(|number| Task::sum(sizes[draws.below(3) as usize], number)).collect();
        let mut begun = vec![0; workers as usize];
        while begun.iter().any(|begun| *begun < tasks.len()) {
            let end = draws.below(u64::from(workers)) as u32;
            let next = &mut begun[end as usize];
            for _ in 0..1 + draws.below(4) {
                let Some(task) = tasks.get(*next) else { break };
                job.begin(end, *task);
                *next += 1;
            }
            if draws.below(10) == 0 {
                job.with(end, |worker, now| worker.halt(now));
            }
            job.run_for(MS * (draws.below(3) * draws.below(12)) as u32);
        }
        job.run_until_done(20_000 * MS);
        for (id, task) in (0..).zip(&tasks) {
            let first = job.outcome(0, id).outcome;
            (sums, failures) =
                (sums + u32::from(first.is_ok()), failures + u32::from(first.is_err()));
            for end in &all {
                let ended = job.outcome(*end, id);
                let is_alike = ended.outcome.is_ok() == first.is_ok();
                assert!(is_alike, "seed {seed}, {id}, {end}: {:?}, {first:?}", ended.outcome);
                let is_right = ended.outcome.is_err() || ended.lanes == task.expected(&all);
                assert!(is_right, "seed {seed}, {id}, {end}");
            }
        }
        job.accounts();
    }
    let is_mixed = sums > 5 * seeds && failures > 5 * seeds;
    assert!(is_mixed, "{sums} sums and {failures} failures of {seeds} jobs: this tests nothing");
}
