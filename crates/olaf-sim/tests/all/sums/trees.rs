//! Switches below other switches.

use super::Protocol;
use super::faults::{bad, runs};
use super::job::{Job, MS, SILENCE, Setting, Task, peer};
use super::protocol::{TOP, lower};
use core::time::Duration;
use olaf_host::collective::Failure;
use olaf_wire::reduce::Reason;

super::for_all_protocols!(
    sums_are_exact_in_a_tree,
    sums_are_exact_in_a_tree_whatever_happens_to_datagrams,
    a_death_behind_another_switch_is_told_to_all,
    a_job_goes_on_after_a_switch_of_either_level_was_restarted,
);

fn sums_are_exact_in_a_tree<P: Protocol>() {
    // Also with workers at the uppermost switch, and with all workers behind one lower switch.
    for lower in [vec![2, 2], vec![1, 3], vec![4], vec![2, 1]] {
        runs(Setting::<P> { workers: 4, lower, ..Setting::default() });
    }
}

fn sums_are_exact_in_a_tree_whatever_happens_to_datagrams<P: Protocol>() {
    for (seed, share) in [(1, 0.01), (2, 0.05), (3, 0.1)] {
        let lower = vec![2, 2];
        runs(Setting::<P> { seed, workers: 5, lower, wire: bad(share), ..Setting::default() });
    }
}

fn a_death_behind_another_switch_is_told_to_all<P: Protocol>() {
    for victim in [0, 3, 4] {
        let setting = Setting { workers: 5, lower: vec![2, 2], ..Setting::default() };
        let mut job = Job::<P>::met(setting);
        job.kill(peer(victim));
        job.run_for(MS);
        job.begin_all(Task::sum(5000, 0));
        job.run_until_done(SILENCE * 3 / 2);
        for end in (0..5).filter(|end| *end != victim) {
            let outcome = job.outcome(end, 0).outcome;
            let is_death = matches!(outcome, Err(Failure::Closed { reason: Reason::Dead, .. }));
            assert!(is_death, "{end}: {outcome:?}");
        }
        job.start(peer(victim));
        job.run_for(3000 * MS);
        job.sums(Task::sum(5000, 1), 1000 * MS);
        job.accounts();
    }
}

fn a_job_goes_on_after_a_switch_of_either_level_was_restarted<P: Protocol>() {
    for (seed, victim) in [(1, TOP), (2, lower(0)), (3, TOP), (4, lower(1))] {
        let setting = Setting { seed, workers: 4, lower: vec![2, 2], ..Setting::default() };
        let mut job = Job::<P>::met(setting);
        let tasks = [1, 5000, 300, 64_000, 20_000].into_iter().zip(0..);
        let tasks: Vec<Task> = tasks.map(|(lanes, number)| Task::sum(lanes, number)).collect();
        tasks.iter().for_each(|task| job.begin_all(*task));
        job.run_for(MS * (3 * seed as u32));
        job.kill(victim);
        job.net.start_at(job.net.now() + 50 * MS, victim);
        job.run_until_done(Duration::from_secs(20));
        if P::SWITCH_ONLY_RELAYS {
            job.all_are_right(&tasks);
        }
        job.run_for(3000 * MS);
        job.goes_on(Task::sum(1000, 99), Duration::from_secs(5));
        job.accounts();
    }
}
