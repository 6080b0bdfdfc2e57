//! Deaths, restarts and losses at random times: every operation ends, it ends alike at all workers that live
//! through it, and the job goes on.

use super::Protocol;
use super::job::{Job, MS, Setting, Task, peer};
use super::protocol::TOP;
use crate::common::sums::{Draws, some_wire};

super::for_all_protocols!(
    a_death_hurts_all_survivors_alike,
    a_worker_that_is_restarted_meets_the_others_again,
    operations_end_whenever_the_authority_restarts,
    operations_end_whenever_the_switch_restarts,
);

/// A job of two to five workers; half of the jobs are trees, or elastic ones where the protocol has them.
pub(super) fn some_setting<P: Protocol>(seed: u64, draws: &mut Draws) -> Setting<P> {
    let wire = some_wire(draws);
    let workers = 2 + draws.below(4) as u32;
    let is_special = draws.below(2) == 0;
    let is_elastic = is_special && P::HAS_ELASTIC_JOBS;
    let lower = if is_special && !is_elastic { vec![1, workers - 1] } else { Vec::new() };
    Setting { seed, workers, wire, is_elastic, lower, ..Setting::default() }
}

fn some_tasks(draws: &mut Draws) -> Vec<Task> {
    let sizes = [1, 300, 4000, 50_000];
    (0..8).map(|number| Task::sum(sizes[draws.below(4) as usize], number)).collect()
}

fn a_death_hurts_all_survivors_alike<P: Protocol>() {
    for seed in 0..30 {
        let draws = &mut Draws(seed);
        let setting = some_setting::<P>(seed, draws);
        let (workers, is_elastic) = (setting.workers, setting.is_elastic);
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
        job.kill(peer(victim));
        let survivors: Vec<u32> = (0..workers).filter(|end| *end != victim).collect();
        job.run_for(6000 * MS);
        if is_elastic {
            job.run_until_done(20_000 * MS);
        }
        // Where a fixed job lacks a worker, nobody is let in any more: what waits is given up.
        for end in &survivors {
            (0..tasks.len() as u64).for_each(|id| job.give_up(*end, id));
        }
        job.run_until_done(1000 * MS);
        for (id, task) in (0..).zip(&tasks) {
            let first = job.outcome(survivors[0], id);
            let ends: Vec<u32> = match first.outcome {
                Ok(sum) if sum.contributors < workers => survivors.clone(),
                _ => (0..workers).collect(),
            };
            for end in &survivors {
                let ended = job.outcome(*end, id);
                let is_alike = ended.outcome.is_ok() == first.outcome.is_ok();
                assert!(
                    is_alike || !P::FAILS_ALIKE,
                    "seed {seed}, {id}, {end}: {:?}",
                    ended.outcome
                );
                let is_right = ended.outcome.is_err() || ended.lanes == task.expected::<P>(&ends);
                assert!(is_right, "seed {seed}, {id}, {end}: a wrong sum");
            }
        }
        job.accounts();
    }
}

fn a_worker_that_is_restarted_meets_the_others_again<P: Protocol>() {
    for seed in 0..20 {
        let draws = &mut Draws(500 + seed);
        let setting = Setting { is_elastic: false, ..some_setting::<P>(seed, draws) };
        let workers = setting.workers;
        let mut job = Job::new(setting);
        job.run_for(2000 * MS);
        let tasks = some_tasks(draws);
        tasks.iter().for_each(|task| job.begin_all(*task));
        let victim = draws.below(u64::from(workers)) as u32;
        job.run_for(MS * draws.below(40) as u32);
        job.kill(peer(victim));
        job.run_for(MS);
        // Workers that have nothing open would be told by their next operation alone.
        (0..workers)
            .filter(|end| *end != victim)
            .for_each(|end| job.starts(end, Task::sum(500, 8)));
        job.net.start_at(job.net.now() + MS * draws.below(300) as u32, peer(victim));
        job.run_until_done(20_000 * MS);
        job.run_for(3000 * MS);
        // Operations of the new life have the numbers of the old one.
        job.ended.remove(&peer(victim));
        job.sums(Task::sum(1000, 99), 10_000 * MS);
        job.accounts();
    }
}

fn operations_end_whenever_the_authority_restarts<P: Protocol>() {
    (0..20).for_each(|seed| restarts::<P>(1000 + seed, P::AUTHORITY));
}

fn operations_end_whenever_the_switch_restarts<P: Protocol>() {
    (0..20).for_each(|seed| restarts::<P>(2000 + seed, TOP));
}

/// A party is restarted while some workers are ahead of others.
fn restarts<P: Protocol>(seed: u64, victim: olaf_engine::PeerId) {
    let draws = &mut Draws(seed);
    let setting = some_setting::<P>(seed, draws);
    let workers = setting.workers;
    let mut job = Job::new(setting);
    job.run_for(2000 * MS);
    let tasks = some_tasks(draws);
    let ahead: Vec<usize> = (0..workers).map(|_| 4 + draws.below(5) as usize).collect();
    for (end, ahead) in (0..).zip(&ahead) {
        tasks[..*ahead].iter().for_each(|task| job.starts(end, *task));
    }
    job.run_for(MS * draws.below(40) as u32);
    job.kill(victim);
    job.net.start_at(job.net.now() + MS * draws.below(200) as u32, victim);
    job.run_for(8000 * MS);
    // Workers that were behind do not sum with later operations of the others.
    for (end, ahead) in (0..).zip(&ahead) {
        tasks[*ahead..].iter().for_each(|task| job.starts(end, *task));
    }
    job.run_until_done(20_000 * MS);
    job.run_for(3000 * MS);
    job.sums(Task::sum(1000, 99), 10_000 * MS);
    let all: Vec<u32> = (0..workers).collect();
    for end in &all {
        assert_eq!(job.ended[&peer(*end)].len(), tasks.len() + 1, "seed {seed}, {end}");
        for (id, task) in (0..).zip(&tasks) {
            let ended = job.outcome(*end, id);
            let is_right = ended.outcome.is_err() || ended.lanes == task.expected::<P>(&all);
            assert!(is_right, "seed {seed}, {id}, {end}: a wrong sum");
        }
    }
    job.accounts();
}
