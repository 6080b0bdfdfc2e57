//! Trees of switches (iSwitch §3.4).

use super::faults::runs;
use super::job::*;
use core::time::Duration;
use olaf_engine::PeerId;
use olaf_engine::switch::iswitch::Switch;
use olaf_host::collective::{Failure, Options};
use olaf_sim::Wire;
use olaf_wire::reduce::Reason;

const MS: Duration = Duration::from_millis(1);

/// Two leaves with three workers each, or so.
fn leaves(workers: u32) -> Vec<Option<u32>> {
    (0..workers).map(|end| Some(end % 2)).collect()
}

fn setting(workers: u32) -> Setting {
    Setting { workers, leaves: leaves(workers), ..Setting::default() }
}

#[test]
fn sums_are_exact_in_a_tree() {
    for workers in [2, 5, 6] {
        runs(setting(workers));
    }
    // Workers at the uppermost switch, and a leaf with all workers.
    runs(Setting { leaves: vec![Some(0), None, Some(0), None], ..setting(4) });
    runs(Setting { leaves: vec![Some(0); 3], ..setting(3) });
}

#[test]
fn h_is_the_workers_at_a_leaf_and_the_leaves_above() {
    let mut job = Job::new(setting(5));
    job.run_for(100 * MS);
    let threshold = |job: &Job, switch: PeerId| {
        let switch = job.net.node::<Switch>(switch).unwrap();
        let statistics = switch.statistics(job.net.now());
        let kinds: Vec<_> = statistics.jobs[0].members.iter().map(|entry| entry.kind).collect();
        (statistics.jobs[0].threshold, kinds)
    };
    assert_eq!(threshold(&job, leaf(0)), (3, vec!["worker"; 3]));
    assert_eq!(threshold(&job, leaf(1)), (2, vec!["worker"; 2]));
    assert_eq!(threshold(&job, SWITCH), (2, vec!["switch"; 2]));
}

#[test]
fn a_leaf_sends_one_sum_for_all_its_workers() {
    let mut job = Job::new(setting(6));
    job.run_for(100 * MS);
    job.begin_all(Task::sum(366 * 100, 0));
    job.run_until_done(1000 * MS);
    let pieces = |switch| job.net.node::<Switch>(switch).unwrap();
    let received = |switch| pieces(switch).statistics(job.net.now()).pieces.received;
    assert_eq!((received(leaf(0)), received(leaf(1)), received(SWITCH)), (300, 300, 200));
}

#[test]
fn survivors_behind_every_switch_name_the_dead_worker_whatever_is_lost() {
    let mut failed = [0; 5];
    for seed in 0..15 {
        // Behind the first leaf, behind the second one, and behind none.
        let leaves = vec![Some(0), Some(1), Some(0), Some(1), None];
        let wire = Wire { loss: 0.05, delay: Duration::from_micros(300), ..Wire::default() };
        let mut job = Job::new(Setting { seed, workers: 5, leaves, wire, ..Setting::default() });
        job.run_for(1000 * MS);
        let tasks: Vec<Task> = (0..6).map(|number| Task::sum(40_000, number)).collect();
        tasks.iter().for_each(|task| job.begin_all(*task));
        job.run_for(MS * (1 + seed as u32 * 3));
        let victim = (seed % 5) as u32;
        job.net.kill_at(job.net.now(), peer(victim));
        job.run_until_done(20_000 * MS);
        let survivors: Vec<u32> = (0..5).filter(|end| *end != victim).collect();
        let dead = Failure::Closed { reason: Reason::Dead, culprit: Some(victim) };
        for (id, task) in (0..).zip(&tasks) {
            let first = job.outcome(survivors[0], id).outcome;
            assert!(first.is_ok() || first == Err(dead), "seed {seed}, {id}: {first:?}");
            failed[victim as usize] += u32::from(first.is_err());
            for end in &survivors {
                let ended = job.outcome(*end, id);
                assert_eq!(ended.outcome, first, "seed {seed}, operation {id}, end {end}");
                let is_right = first.is_err() || ended.lanes == task.expected(&[0, 1, 2, 3, 4]);
                assert!(is_right, "seed {seed}, operation {id}, end {end}");
            }
        }
        job.accounts();
    }
    assert!(failed.iter().all(|failed| *failed > 0), "{failed:?}: the deaths come too late");
}

#[test]
fn a_straggler_behind_another_leaf_is_left_out() {
    let options = Options { deadline: Some(20 * MS), ..Options::default() };
    let mut job = Job::new(Setting { options, accepts_partial: true, ..setting(5) });
    job.run_for(100 * MS);
    let task = Task::sum(2000, 0);
    for end in 0..4 {
        job.begin(end, task);
    }
    job.run_until_done(500 * MS);
    job.begin(4, task);
    job.run_until_done(500 * MS);
    let first = job.outcome(0, 0);
    let sum = first.outcome.unwrap();
    assert!(sum.contributors < 5, "{sum:?}");
    for end in 1..5 {
        assert!(job.outcome(end, 0).lanes == first.lanes, "end {end}");
        assert_eq!(job.outcome(end, 0).outcome, Ok(sum), "end {end}");
    }
    job.accounts();
}

#[test]
fn the_death_of_the_uppermost_switch_is_named() {
    let mut job = Job::new(setting(4));
    job.run_for(100 * MS);
    job.net.kill_at(job.net.now(), SWITCH);
    job.run_for(MS);
    job.begin_all(Task::sum(5000, 0));
    job.run_until_done(6000 * MS);
    let failure = Failure::Closed { reason: Reason::SwitchSilent, culprit: None };
    for end in 0..4 {
        assert_eq!(job.outcome(end, 0).outcome, Err(failure), "end {end}");
    }
    job.net.start_at(job.net.now(), SWITCH);
    job.run_for(3000 * MS);
    let task = Task::sum(5000, 1);
    job.begin_all(task);
    job.run_until_done(1000 * MS);
    for end in 0..4 {
        assert!(job.outcome(end, 1).lanes == task.expected(&[0, 1, 2, 3]), "end {end}");
    }
}

#[test]
fn the_death_of_a_leaf_ends_the_operations_of_all() {
    let mut job = Job::new(setting(4));
    job.run_for(100 * MS);
    job.begin_all(Task::sum(500_000, 0));
    job.run_for(MS);
    job.net.kill_at(job.net.now(), leaf(1));
    job.net.start_at(job.net.now() + 100 * MS, leaf(1));
    job.run_until_done(6000 * MS);
    for end in 0..4 {
        assert!(job.outcome(end, 0).outcome.is_err(), "end {end}");
    }
    job.run_for(5000 * MS);
    let task = Task::sum(5000, 1);
    job.begin_all(task);
    job.run_until_done(1000 * MS);
    for end in 0..4 {
        assert!(job.outcome(end, 1).lanes == task.expected(&[0, 1, 2, 3]), "end {end}");
    }
}

#[test]
fn the_switch_with_the_smallest_address_is_the_parent() {
    let switch = || Switch::new(Setting::default().switch, 1).unwrap();
    let above = |list: &[(u128, PeerId)]| {
        let mut switch = switch();
        switch.set_upstream_of(list, 1472);
        switch.statistics(olaf_engine::Instant(0)).above
    };
    assert_eq!(above(&[(0x0a00_0003, PeerId(1)), (0x0a00_0002, PeerId(7))]), Some(PeerId(7)));
    assert_eq!(above(&[]), None);
}
