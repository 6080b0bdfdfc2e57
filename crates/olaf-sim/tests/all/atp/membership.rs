//! Workers, switches and servers that die, come back, leave and move.

use super::job::*;
use crate::common::sums::Draws;
use core::time::Duration;
use olaf_engine::sums::SILENCE;
use olaf_host::collective::atp::{Options, Worker};
use olaf_host::collective::{Collective, Failure, OperationId, Options as CommonOptions, Standing};
use olaf_sim::Wire;
use olaf_wire::reduce::Reason;

const LARGE: usize = 62 * 4000;

/// A small window: a large operation takes a tenth of a second.
fn slow() -> Options {
    Options { first_packets: 20, most_packets: 20, ..Options::default() }
}

fn outcome(jobs: &Jobs, rank: u32, id: u64) -> Result<(), Failure> {
    jobs.ended[&worker(0, rank)][&OperationId(id)].outcome.map(|_| ())
}

#[test]
fn a_death_ends_the_operation_at_all_others_alike_and_frees_the_aggregators() {
    for servers in [1, 2] {
        let own = Options { servers, ..slow() };
        let mut jobs = Jobs::new(Setting { racks: vec![2, 2, 0], own, ..Setting::default() });
        let small = Task::sum(100, 0);
        jobs.begin_all(0, small);
        jobs.run_until_done(1000 * MS);
        jobs.begin_all(0, Task::sum(LARGE, 1));
        jobs.begin_all(0, Task::sum(100, 2));
        jobs.run_for(2 * MS);
        jobs.net.kill_at(jobs.net.now(), worker(0, 3));
        jobs.run_until_done(6000 * MS);
        let dead = Failure::Closed { reason: Reason::Dead, culprit: Some(3) };
        for rank in 0..3 {
            assert_eq!(outcome(&jobs, rank, 0), Ok(()));
            assert_eq!(outcome(&jobs, rank, 1), Err(dead), "{servers} servers, rank {rank}");
            assert_eq!(outcome(&jobs, rank, 2), Err(dead), "{servers} servers, rank {rank}");
        }
        for at in jobs.switches() {
            assert_eq!(jobs.switch(at).statistics().used_aggregators, 0, "{at:?}");
        }
        // It comes back, and the job goes on.
        jobs.net.start_at(jobs.net.now(), worker(0, 3));
        jobs.run_for(2000 * MS);
        let last = Task::sum(5000, 3);
        jobs.begin_all(0, last);
        jobs.run_until_done(2000 * MS);
        for rank in 0..4 {
            let ended = jobs.ended[&worker(0, rank)].values().last().unwrap();
            assert!(ended.outcome.is_ok() && ended.lanes == last.expected(4), "rank {rank}");
        }
        jobs.accounts();
    }
}

#[test]
fn a_switch_that_restarts_costs_time_and_no_sum() {
    // With an even seed the switch asks for proofs of addresses, and drops gradients of strangers.
    let all = [(vec![3], TOP), (vec![2, 2, 1], TOP), (vec![2, 2, 1], rack(0))];
    for (seed, (racks, which)) in
        [1, 2].into_iter().flat_map(|seed| all.clone().map(|one| (seed, one)))
    {
        let mut jobs = Jobs::new(Setting { seed, racks, own: slow(), ..Setting::default() });
        jobs.run_for(100 * MS);
        let tasks = [Task::sum(LARGE, 0), Task::sum(300, 1)];
        tasks.iter().for_each(|task| jobs.begin_all(0, *task));
        jobs.run_for(3 * MS);
        jobs.net.kill_at(jobs.net.now(), which);
        jobs.net.start_at(jobs.net.now() + 200 * MS, which);
        jobs.run_until_done(20_000 * MS);
        jobs.all_are_right(0, &tasks);
        jobs.accounts();
    }
}

#[test]
fn a_server_that_stays_silent_fails_all_operations_by_name() {
    for which in [server(0), TOP] {
        let mut jobs = Jobs::new(Setting { own: slow(), ..Setting::default() });
        jobs.run_for(100 * MS);
        jobs.begin_all(0, Task::sum(LARGE, 0));
        jobs.run_for(3 * MS);
        jobs.net.kill_at(jobs.net.now(), which);
        jobs.run_until_done(6000 * MS);
        (0..3).for_each(|rank| assert_eq!(outcome(&jobs, rank, 0), Err(Failure::SwitchSilent)));
        assert!(matches!(jobs.worker(0, 0).standing(), Standing::Joining { .. }));
        jobs.accounts();
    }
}

#[test]
fn a_worker_comes_back_behind_another_switch_and_its_operation_goes_on() {
    let mut jobs = Jobs::new(Setting { racks: vec![2, 2, 1], own: slow(), ..Setting::default() });
    jobs.run_for(100 * MS);
    let tasks = [Task::sum(LARGE, 0), Task::sum(3000, 1)];
    tasks.iter().for_each(|task| jobs.begin_all(0, *task));
    jobs.run_for(5 * MS);
    let before = jobs.server(0).statistics();
    assert!(before.jobs[0].open_sequence > 0, "some fragments are done");
    let wire = Wire { delay: Duration::from_micros(100), ..Wire::default() };
    jobs.net.join(worker(0, 3), rack(0), wire);
    jobs.net.with(worker(0, 3), |worker: &mut Worker, now| worker.set_switch(now, rack(0)));
    jobs.run_until_done(10_000 * MS);
    jobs.all_are_right(0, &tasks);
    jobs.accounts();
    let after = jobs.server(0).statistics();
    assert_eq!((after.seated_anew, after.generations), (1, 1));
    let members = &after.jobs[0].members;
    assert_eq!(members[3].group, members[0].group, "it is in the group of the other switch");
    // Three workers are added up there from now on: the server gets one packet a fragment.
    let more = Task::sum(62 * 500, 2);
    jobs.begin_all(0, more);
    jobs.run_until_done(2000 * MS);
    let last = jobs.server(0).statistics().gradients;
    assert!(last.received - after.gradients.received < 600, "{last:?}");
}

#[test]
fn a_worker_that_was_cut_off_gets_the_results_that_it_lacks() {
    // It waits for longer than its switch does.
    let options = CommonOptions { silence: SILENCE * 2, ..CommonOptions::default() };
    let mut jobs = Jobs::new(Setting { options, ..Setting::default() });
    jobs.run_for(50 * MS);
    let (wire, victim) = (jobs.setting.wire, worker(0, 2));
    let cut = Wire { loss: 1.0, ..wire };
    jobs.net.join_one_way(TOP, victim, cut);
    let task = Task::sum(62 * 4, 0);
    jobs.begin_all(0, task);
    jobs.run_for(100 * MS);
    assert_eq!(outcome(&jobs, 0, 0), Ok(()), "its fragments came");
    // Long enough that the switch forgets it, and that the server ends the generation.
    jobs.net.join(victim, TOP, cut);
    jobs.run_for(SILENCE + 1500 * MS);
    assert_eq!(jobs.switch(TOP).statistics().jobs[0].workers, 2);
    jobs.net.join(victim, TOP, wire);
    jobs.run_until_done(1000 * MS);
    jobs.all_are_right(0, &[task]);
    jobs.accounts();
}

/// Several servers die and come back, each at its own time, while workers are at different operations. Operations of
/// one fragment have a part at the first server alone.
#[test]
fn whichever_server_restarts_no_operation_meets_a_later_one() {
    const OPERATIONS: u32 = 60;
    let (mut sums, mut failures) = (0, 0);
    for seed in 0..u64::from(olaf_samples::cases(25)) {
        let draws = &mut Draws(7000 + seed);
        let own = Options { servers: 2 + draws.below(2) as u8, ..Options::default() };
        let servers = u32::from(own.servers);
        let wire = Wire { loss: 0.02, delay: MS / 10, ..Wire::default() };
        let mut jobs = Jobs::new(Setting { seed, own, wire, trunk: wire, ..Setting::default() });
        jobs.run_for(1000 * MS);
        let task = |number: u32| Task::sum([1, 100, 2000][number as usize * 7 % 3], number);
        let mut begun = [0; 3];
        while begun.iter().any(|begun| *begun < OPERATIONS) {
            let rank = draws.below(3) as usize;
            for _ in 0..1 + draws.below(5) {
                if begun[rank] < OPERATIONS {
                    jobs.begin(0, rank as u32, task(begun[rank]));
                    begun[rank] += 1;
                }
            }
            if draws.below(12) == 0 {
                let at = server(draws.below(servers.into()) as u32);
                let now = jobs.net.now();
                jobs.net.kill_at(now, at);
                jobs.net.start_at(now + MS * draws.below(40) as u32, at);
            }
            jobs.run_for(MS * draws.below(30) as u32);
        }
        jobs.run_until_done(Duration::from_secs(60));
        jobs.accounts();
        for (rank, number) in (0..3).flat_map(|rank| (0..OPERATIONS).map(move |at| (rank, at))) {
            let ended = &jobs.ended[&worker(0, rank)][&OperationId(number.into())];
            *(if ended.outcome.is_ok() { &mut sums } else { &mut failures }) += 1;
            let is_right = ended.outcome.is_err() || ended.lanes == task(number).expected(3);
            assert!(is_right, "seed {seed}, {rank}, {number}: a wrong sum");
        }
    }
    assert!(sums > 500 && failures > 500, "{sums} sums, {failures} failures: this tests nothing");
}
