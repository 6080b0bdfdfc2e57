//! What the network does to datagrams: every operation still ends in the exact sum at all workers.

use super::job::*;
use core::time::Duration;
use olaf_engine::switch::trio::Switch;
use olaf_host::collective::trio::Options as Own;
use olaf_host::collective::{Failure, Options, Recovery, Reduction};
use olaf_sim::Wire;

pub(super) fn tasks() -> Vec<Task> {
    let lanes = [1, 5000, 300, 64_000, 2000, 20_000, 7, 1234];
    let both = [Reduction::Sum, Reduction::Mean].into_iter().cycle();
    let all = both.zip(lanes.into_iter().cycle()).take(16).zip(0..);
    all.map(|((reduction, lanes), number)| Task { reduction, lanes, number }).collect()
}

pub(super) fn runs(setting: Setting) -> Job {
    let workers = setting.workers;
    let mut job = Job::new(setting);
    let tasks = tasks();
    // Several at once, then one after the other.
    let (at_once, later) = tasks.split_at(tasks.len() / 2);
    at_once.iter().for_each(|task| job.begin_all(*task));
    job.run_until_done(Duration::from_secs(120));
    for task in later {
        job.begin_all(*task);
        job.run_until_done(Duration::from_secs(60));
    }
    let ends: Vec<u32> = (0..workers).collect();
    job.all_are_right(&tasks, &ends);
    job.accounts();
    job
}

#[test]
fn sums_are_exact_with_few_records_and_with_a_timer() {
    let wire = Wire { loss: 0.05, delay: Duration::from_micros(200), ..Wire::default() };
    for (seed, window) in [(1, 1), (2, 3), (3, 16)] {
        for recovery in [Recovery::Ask, Recovery::Timer] {
            let options =
                Options { recovery, timer: Duration::from_millis(3), ..Options::default() };
            let own = Own { window, ..Own::default() };
            runs(Setting { seed, wire, options, own, ..Setting::default() });
        }
    }
}

#[test]
fn without_recovery_a_loss_ends_with_the_callers_patience() {
    let wire = Wire { loss: 0.1, delay: Duration::from_micros(200), ..Wire::default() };
    let options = Options { recovery: Recovery::Off, ..Options::default() };
    let mut job = Job::new(Setting { wire, options, ..Setting::default() });
    job.run_for(1000 * MS);
    let task = Task::sum(20_000, 1);
    let id = (0..3).map(|end| job.begin(end, task)).last().expect("there are three");
    job.run_for(1000 * MS);
    job.give_up(0, id);
    job.run_until_done(1000 * MS);
    let outcome = |end| job.ended[&peer(end)][&id].outcome;
    assert_eq!(outcome(0), Err(Failure::TimedOut));
    assert!(matches!(outcome(1), Err(Failure::Closed { culprit: Some(0), .. })));
    // The next operation meets the same one of the others.
    job.run_for(1000 * MS);
    job.accounts();
}

#[test]
fn lanes_that_are_too_large_stop_at_the_end_and_are_noticed_by_all() {
    let options = Options { scale: Some(1e9), ..Options::default() };
    let mut job = Job::new(Setting { options, ..Setting::default() });
    job.begin_all(Task::sum(1000, 1));
    job.run_until_done(1000 * MS);
    for ended in job.ended.values().flat_map(|ended| ended.values()) {
        assert!(ended.outcome.is_ok_and(|sum| sum.not_finite));
        assert!(ended.lanes.iter().all(|lane| lane.abs() <= 2.147_484));
    }
}

#[test]
fn operations_that_differ_end_the_term_by_name() {
    let mut job = Job::new(Setting::default());
    job.run_for(100 * MS);
    job.begin(0, Task::sum(1000, 1));
    job.begin(1, Task::sum(1000, 1));
    job.begin(2, Task::sum(999, 1));
    job.run_until_done(1000 * MS);
    for ended in job.ended.values().flat_map(|ended| ended.values()) {
        let reason = olaf_wire::reduce::Reason::Mismatch;
        assert!(matches!(ended.outcome, Err(Failure::Closed { reason: r, .. }) if r == reason));
    }
    job.begin_all(Task::sum(1000, 2));
    job.run_until_done(1000 * MS);
    let all = job.ended.values().map(|ended| ended.values().last().expect("it has ended"));
    assert!(all.into_iter().all(|ended| ended.lanes == Task::sum(1000, 2).expected(&[0, 1, 2])));
    job.accounts();
}

/// A million lanes over a round trip of 100 ms that loses one datagram in twenty: whoever asks for what is lost is
/// never refused, so that recovery takes as long as without limits.
#[test]
fn an_honest_worker_is_never_refused_for_asking_too_often() {
    let delay = Duration::from_millis(25);
    let wire = Wire { delay, loss: 0.05, ..Wire::default() };
    let setting = Setting { wire, ..Setting::default() };
    let mut job = Job::new(setting);
    job.begin_all(Task::sum(1_000_000, 1));
    job.run_until_done(Duration::from_secs(120));
    job.accounts();
    let switch = job.net.node::<Switch>(SWITCH).expect("it lives");
    let of = switch.statistics(job.net.now());
    let again = serde_json::to_value(&of).expect("plain data")["results_again"].as_u64();
    assert!(again > Some(50), "{of:?}");
    assert_eq!(of.refused.get("too_often"), None, "{of:?}");
}
