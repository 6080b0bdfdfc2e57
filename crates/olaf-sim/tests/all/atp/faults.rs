//! What the network does to datagrams: every operation still ends in the exact sum at all workers.

use super::job::*;
use core::time::Duration;
use olaf_engine::switch::atp::Config as SwitchConfig;
use olaf_host::collective::atp::Options;
use olaf_sim::Wire;

fn runs(setting: Setting) {
    let mut jobs = Jobs::new(setting);
    let tasks: Vec<Task> = [1, 5000, 300, 20_000, 62, 9000, 7, 1234]
        .into_iter()
        .zip(0..)
        .map(|(lanes, number)| Task::sum(lanes, number))
        .collect();
    // Several at once, then one after the other.
    let (at_once, later) = tasks.split_at(4);
    at_once.iter().for_each(|task| jobs.begin_all(0, *task));
    jobs.run_until_done(Duration::from_secs(120));
    for task in later {
        jobs.begin_all(0, *task);
        jobs.run_until_done(Duration::from_secs(60));
    }
    jobs.all_are_right(0, &tasks);
    jobs.accounts();
}

fn at(share: f64) -> Wire {
    Wire { loss: share, delay: Duration::from_micros(100), ..Wire::default() }
}

#[test]
fn sums_are_exact_whatever_is_lost() {
    for (seed, share) in [(1, 0.001), (2, 0.01), (3, 0.05), (4, 0.1)] {
        for racks in [vec![2], vec![4], vec![2, 2, 1]] {
            let (wire, trunk) = (at(share), at(share));
            runs(Setting { seed, racks, wire, trunk, ..Setting::default() });
        }
    }
}

#[test]
fn sums_are_exact_whatever_is_repeated_and_overtaken() {
    for (seed, share) in [(5, 0.02), (6, 0.1)] {
        let wire = Wire {
            loss: share,
            duplication: share,
            reordering: share,
            late: MS,
            jitter: Duration::from_micros(50),
            ..at(share)
        };
        for racks in [vec![2], vec![5], vec![3, 2, 0], vec![2, 1, 2]] {
            runs(Setting { seed, racks, wire, trunk: wire, ..Setting::default() });
        }
    }
}

#[test]
fn sums_are_exact_with_losses_several_servers_and_a_shortage_of_aggregators() {
    for (seed, servers, aggregators) in [(7, 2, 3), (8, 4, 40), (9, 1, 1)] {
        let wire = Wire { duplication: 0.05, reordering: 0.05, late: MS, ..at(0.05) };
        let own = Options { servers, ..Options::default() };
        let switch = SwitchConfig { aggregators, max_age: 20 * MS, ..SwitchConfig::default() };
        let racks = vec![2, 2, 1];
        runs(Setting { seed, racks, wire, trunk: wire, own, switch, ..Setting::default() });
    }
}

#[test]
fn sums_that_run_over_are_exact_with_losses() {
    let setting =
        Setting { racks: vec![3, 2], wire: at(0.05), trunk: at(0.05), ..Setting::default() };
    let mut jobs = Jobs::new(setting);
    let tasks =
        [Task { times: 20.0, ..Task::sum(9000, 0) }, Task { times: 1e4, ..Task::sum(500, 1) }];
    tasks.iter().for_each(|task| jobs.begin_all(0, *task));
    jobs.run_until_done(Duration::from_secs(60));
    jobs.all_are_right(0, &tasks);
    jobs.accounts();
}

#[test]
fn sums_are_exact_on_a_slow_path() {
    for delay in [10, 100].map(Duration::from_millis) {
        let wire = Wire { delay, jitter: delay / 10, ..at(0.02) };
        runs(Setting { seed: 9, wire, ..Setting::default() });
    }
}

/// A million lanes over a round trip of 100 ms that loses one datagram in twenty: whoever asks for what is lost is
/// never refused, so that recovery takes as long as without limits.
#[test]
fn an_honest_worker_is_never_refused_for_asking_too_often() {
    let wire = Wire { delay: Duration::from_millis(25), loss: 0.05, ..Wire::default() };
    let mut jobs = Jobs::new(Setting { wire, trunk: wire, ..Setting::default() });
    jobs.begin_all(0, Task::sum(1_000_000, 1));
    jobs.run_until_done(Duration::from_secs(600));
    jobs.accounts();
    let of = jobs.server(0).statistics();
    assert!(of.parameters.again > 50, "{of:?}");
    assert_eq!(of.refused.get("too_often"), None, "{of:?}");
}
