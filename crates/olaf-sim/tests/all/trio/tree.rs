//! Two levels of switches: each lower one is a source of the upper one.

use super::faults::{runs, tasks};
use super::job::*;
use core::time::Duration;
use olaf_engine::switch::trio::Switch;
use olaf_host::collective::{OperationId, Options};
use olaf_sim::Wire;

#[test]
fn sums_are_exact_over_two_levels() {
    for lower in [vec![2, 2], vec![1, 3], vec![4], vec![2, 1]] {
        let setting = Setting { workers: 4, lower: lower.clone(), ..Setting::default() };
        let job = runs(setting);
        // Trio-ML §4: the upper switch sees each lower one as one source.
        let switch = job.net.node::<Switch>(SWITCH).expect("it is alive");
        let of = switch.statistics(job.net.now());
        let direct = 4 - lower.iter().sum::<u32>() as usize;
        assert_eq!(of.jobs[0].workers.len(), lower.len() + direct);
        assert_eq!(of.jobs[0].fixed_workers, 4);
    }
}

#[test]
fn sums_are_exact_over_two_levels_whatever_is_lost() {
    for (seed, share) in [(1, 0.01), (2, 0.05), (3, 0.1)] {
        let wire = Wire {
            loss: share,
            duplication: share,
            reordering: share,
            late: Duration::from_millis(1),
            delay: Duration::from_micros(200),
            jitter: Duration::from_micros(50),
            ..Wire::default()
        };
        runs(Setting { seed, workers: 5, lower: vec![2, 2], wire, ..Setting::default() });
    }
}

#[test]
fn a_straggler_behind_a_lower_switch_costs_only_its_own_share() {
    let options = Options { deadline: Some(10 * MS), ..Options::default() };
    let setting = Setting { workers: 5, lower: vec![2, 3], options, ..Setting::default() };
    let mut job = Job::new(Setting { accepts_partial: true, ..setting });
    job.run_for(1000 * MS);
    let task = Task::sum(5000, 1);
    (0..4).for_each(|end| job.starts(end, task));
    job.run_for(100 * MS);
    job.begin(4, task);
    job.run_until_done(100 * MS);
    for end in 0..5 {
        let ended = &job.ended[&peer(end)][&OperationId(0)];
        let sum = ended.outcome.expect("a partial sum is accepted");
        assert_eq!((sum.contributors, sum.expected), (4, 5), "src_cnt adds up");
        assert!(ended.lanes == task.expected(&[0, 1, 2, 3]), "{end}");
        assert!(ended.took <= 2 * 10 * MS + 2 * MS, "{:?}", ended.took);
    }
    job.accounts();
}

#[test]
fn a_job_goes_on_after_a_switch_of_either_level_was_restarted() {
    for (seed, victim) in [(1, SWITCH), (2, lower(0)), (3, SWITCH), (4, lower(1))] {
        let setting = Setting { seed, workers: 4, lower: vec![2, 2], ..Setting::default() };
        let mut job = Job::new(setting);
        job.run_for(1000 * MS);
        for task in tasks() {
            job.begin_all(task);
        }
        job.run_for(MS * (3 * seed as u32));
        job.net.kill_at(job.net.now(), victim);
        job.net.start_at(job.net.now() + 50 * MS, victim);
        job.run_until_done(20_000 * MS);
        job.run_for(3000 * MS);
        assert!((0..4).all(|end| job.is_in(end)), "{seed}\n{}", job.state());
        let last = Task::sum(1000, 99);
        job.begin_all(last);
        job.run_until_done(10_000 * MS);
        for end in 0..4 {
            let ended = job.ended[&peer(end)].values().last().expect("it has ended");
            assert!(ended.outcome.is_ok(), "{seed}: {:?}", ended.outcome);
            assert!(ended.lanes == last.expected(&[0, 1, 2, 3]));
        }
        job.accounts();
    }
}
