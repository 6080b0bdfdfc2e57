//! Two levels of switches: each lower one is a source of the upper one.

use super::faults::runs;
use super::job::*;
use olaf_engine::switch::trio::Switch;
use olaf_host::collective::{OperationId, Options};

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
