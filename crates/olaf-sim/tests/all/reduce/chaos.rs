//! Deaths, restarts and losses at random times: every operation ends, and it ends alike at all
//! workers that live through it.

use super::job::*;
use crate::common::sums::{Draws, some_wire};
use crate::common::uneven;
use core::time::Duration;
use olaf_host::collective::{Collective, OperationId, Reducer};

const MS: Duration = Duration::from_millis(1);

fn setting(seed: u64, draws: &mut Draws, is_elastic: bool) -> Setting {
    let wire = some_wire(draws);
    let workers = 2 + draws.below(4) as u32;
    Setting { seed, workers, is_elastic, wire, ..Setting::default() }
}

fn tasks(draws: &mut Draws) -> Vec<Task> {
    let sizes = [1, 300, 4000, 50_000];
    (0..8).map(|number| Task::sum(sizes[draws.below(4) as usize], number)).collect()
}

#[test]
fn a_death_hurts_all_survivors_alike() {
    for seed in 0..30 {
        let draws = &mut Draws(seed);
        let is_elastic = draws.below(2) == 0;
        let setting = setting(seed, draws, is_elastic);
        let workers = setting.workers;
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let tasks = tasks(draws);
        // Workers begin at their own times.
        for end in 0..workers {
            tasks.iter().for_each(|task| {
                job.begin(end, *task);
            });
            job.run_for(MS * draws.below(4) as u32);
        }
        let victim = draws.below(u64::from(workers)) as u32;
        job.run_for(MS * draws.below(60) as u32);
        job.net.kill_at(job.net.now(), peer(victim));
        let survivors: Vec<u32> = (0..workers).filter(|end| *end != victim).collect();
        // Where a fixed job lacks a worker, nobody is let in any more: what waits is given up.
        job.run_for(6000 * MS);
        if is_elastic {
            job.run_until_done(20_000 * MS);
        }
        for end in &survivors {
            for id in 0..tasks.len() as u64 {
                job.net.with(peer(*end), |reducer: &mut Reducer, now| {
                    reducer.give_up(now, OperationId(id));
                });
            }
        }
        job.run_until_done(1000 * MS);
        for id in 0..tasks.len() as u64 {
            let of = |end: &u32| &job.ended[&peer(*end)][&OperationId(id)];
            let first = of(&survivors[0]);
            for end in &survivors {
                assert_eq!(
                    of(end).outcome.is_ok(),
                    first.outcome.is_ok(),
                    "seed {seed}, {id}, {end}"
                );
                assert!(
                    first.outcome.is_err() || of(end).lanes == first.lanes,
                    "seed {seed}, {id}"
                );
            }
            if let Ok(sum) = first.outcome {
                let ends: Vec<u32> = if sum.contributors == workers {
                    (0..workers).collect()
                } else {
                    survivors.clone()
                };
                assert_eq!(sum.contributors as usize, ends.len(), "seed {seed}");
                assert!(first.lanes == tasks[id as usize].expected(&ends), "seed {seed}, {id}");
            }
        }
        job.accounts();
    }
}

#[test]
fn operations_end_whenever_the_switch_restarts() {
    for seed in 0..20 {
        let draws = &mut Draws(1000 + seed);
        let is_elastic = draws.below(2) == 0;
        let setting = setting(seed, draws, is_elastic);
        let workers = setting.workers;
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let tasks = tasks(draws);
        tasks.iter().for_each(|task| job.begin_all(*task));
        job.run_for(MS * draws.below(40) as u32);
        job.net.kill_at(job.net.now(), SWITCH);
        job.net.start_at(job.net.now() + MS * draws.below(200) as u32, SWITCH);
        job.run_until_done(10_000 * MS);
        // The job goes on.
        job.run_for(3000 * MS);
        let last = Task::sum(1000, 99);
        job.begin_all(last);
        job.run_until_done(10_000 * MS);
        let all: Vec<u32> = (0..workers).collect();
        for end in &all {
            let ended = job.ended[&peer(*end)].values().last().expect("an operation has ended");
            assert!(ended.outcome.is_ok(), "seed {seed}: {:?}", ended.outcome);
            assert!(ended.lanes == last.expected(&all), "seed {seed}");
        }
        job.accounts();
    }
}

#[test]
fn however_often_a_generation_ends_no_operation_meets_a_later_one() {
    uneven::run(|seed, draws| {
        let is_elastic = draws.below(2) == 0;
        let setting = setting(seed, draws, is_elastic);
        (setting.workers, Job::new(setting))
    });
}
