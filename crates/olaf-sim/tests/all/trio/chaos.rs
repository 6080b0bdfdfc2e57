//! Deaths, restarts and losses at random times: every operation ends, and it ends alike at all
//! workers that live through it.

use super::job::*;
use crate::common::sums::{Draws, some_wire};
use crate::common::uneven;
use olaf_host::collective::OperationId;

fn setting(seed: u64, draws: &mut Draws) -> Setting {
    let wire = some_wire(draws);
    Setting { seed, workers: 2 + draws.below(4) as u32, wire, ..Setting::default() }
}

fn some_tasks(draws: &mut Draws) -> Vec<Task> {
    let sizes = [1, 300, 4000, 50_000];
    (0..8).map(|number| Task::sum(sizes[draws.below(4) as usize], number)).collect()
}

#[test]
fn a_death_hurts_all_survivors_alike() {
    for seed in 0..30 {
        let draws = &mut Draws(seed);
        let setting = setting(seed, draws);
        let workers = setting.workers;
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let tasks = some_tasks(draws);
        // Workers begin at their own times.
        for end in 0..workers {
            tasks.iter().for_each(|task| job.starts(end, *task));
            job.run_for(MS * draws.below(4) as u32);
        }
        let victim = draws.below(u64::from(workers)) as u32;
        job.run_for(MS * draws.below(60) as u32);
        job.net.kill_at(job.net.now(), peer(victim));
        let survivors: Vec<u32> = (0..workers).filter(|end| *end != victim).collect();
        job.run_for(6000 * MS);
        for end in &survivors {
            (0..tasks.len() as u64).for_each(|id| job.give_up(*end, OperationId(id)));
        }
        job.run_until_done(1000 * MS);
        let all: Vec<u32> = (0..workers).collect();
        for id in 0..tasks.len() as u64 {
            let of = |end: &u32| &job.ended[&peer(*end)][&OperationId(id)];
            let first = of(&survivors[0]);
            for end in &survivors {
                let is_ok = first.outcome.is_ok();
                assert_eq!(of(end).outcome.is_ok(), is_ok, "seed {seed}, {id}, {end}");
                let expected = tasks[id as usize].expected(&all);
                assert!(!is_ok || of(end).lanes == expected, "seed {seed}, {id}");
            }
        }
        job.accounts();
    }
}

#[test]
fn a_worker_that_is_restarted_meets_the_others_again() {
    for seed in 0..20 {
        let draws = &mut Draws(500 + seed);
        let setting = setting(seed, draws);
        let workers = setting.workers;
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let tasks = some_tasks(draws);
        tasks.iter().for_each(|task| job.begin_all(*task));
        let victim = draws.below(u64::from(workers)) as u32;
        job.run_for(MS * draws.below(40) as u32);
        job.net.kill_at(job.net.now(), peer(victim));
        job.net.start_at(job.net.now() + MS * draws.below(300) as u32, peer(victim));
        job.run_until_done(20_000 * MS);
        job.run_for(3000 * MS);
        let last = Task::sum(1000, 99);
        let all: Vec<u32> = (0..workers).collect();
        job.begin_all(last);
        job.run_until_done(10_000 * MS);
        for end in &all {
            let ended = job.ended[&peer(*end)].values().last().expect("it has ended");
            // Operations of the new life have the numbers of the old one.
            assert!(*end == victim || ended.outcome.is_ok(), "seed {seed}: {:?}", ended.outcome);
            assert!(*end == victim || ended.lanes == last.expected(&all), "seed {seed}");
        }
        job.accounts();
    }
}

#[test]
fn operations_end_whenever_the_switch_restarts() {
    for seed in 0..20 {
        let draws = &mut Draws(1000 + seed);
        let setting = setting(seed, draws);
        let workers = setting.workers;
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let tasks = some_tasks(draws);
        // One worker may have begun fewer: the others' next operations are not its next ones.
        let late = draws.below(2) * draws.below(6);
        for end in 0..workers {
            let skipped = if end == 0 { late as usize } else { 0 };
            tasks[..tasks.len() - skipped].iter().for_each(|task| job.starts(end, *task));
        }
        job.run_for(MS * draws.below(40) as u32);
        job.net.kill_at(job.net.now(), SWITCH);
        job.net.start_at(job.net.now() + MS * draws.below(200) as u32, SWITCH);
        job.run_for(8000 * MS);
        for task in &tasks[tasks.len() - late as usize..] {
            job.begin(0, *task);
        }
        job.run_until_done(10_000 * MS);
        job.run_for(3000 * MS);
        let last = Task::sum(1000, 99);
        job.begin_all(last);
        job.run_until_done(10_000 * MS);
        let all: Vec<u32> = (0..workers).collect();
        for end in &all {
            let ended = &job.ended[&peer(*end)];
            assert_eq!(ended.len(), tasks.len() + 1);
            for (task, (id, ended)) in tasks.iter().chain([&last]).zip(ended) {
                let is_wrong = ended.outcome.is_ok() && ended.lanes != task.expected(&all);
                assert!(!is_wrong, "seed {seed}, end {end}, {id:?}");
            }
            let ended = ended.values().last().expect("it has ended");
            assert!(ended.outcome.is_ok(), "seed {seed}: {:?}", ended.outcome);
        }
        job.accounts();
    }
}

#[test]
fn however_often_a_term_ends_no_operation_meets_a_later_one() {
    uneven::run(|seed, draws| {
        let mut setting = setting(seed, draws);
        if draws.below(2) == 0 {
            setting.lower = vec![1, setting.workers - 1];
        }
        (setting.workers, Job::new(setting))
    });
}
