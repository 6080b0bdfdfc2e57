//! Jobs start, and start again, however long the path is: from a millisecond to a second there and
//! back, with jitter and loss, behind one switch and two.

use crate::common::*;
use core::time::Duration;
use olaf_engine::switch::native::Pacing;
use olaf_engine::{Event, PeerId, WorkerEvent};
use olaf_host::Worker;
use olaf_host::push_pull::worker::{Standing, WorkerStatistics};
use olaf_sim::Wire;

const A: PeerId = PeerId(0);

/// A job whose workers are so far from the server, there and back; half of it before the switches.
fn far_away(seed: u64, round_trip: Duration, switches: usize, change: impl Fn(&mut Wire)) -> Job {
    let delay = round_trip / 2 / u32::try_from(switches + 1).unwrap();
    let mut link = Wire { delay, ..Wire::default() };
    change(&mut link);
    let setting = Setting {
        seed,
        workers: 2,
        clusters: 2,
        segments: 200,
        segment_lanes: 40,
        slots: 500,
        pacing: Pacing::Unlimited,
        edge: link,
        core: link,
        // A server keeps four versions, and over a lossy path the second half of one comes late.
        every: Duration::from_secs(1).max(round_trip * 3),
        silent_after: Duration::from_secs(2),
        keepalive: ms(500),
        // Longer than the path varies, or each update would make several versions.
        round: ms(200),
        ..Setting::default()
    };
    let tree = Tree::chain(&setting, switches);
    Job::in_tree(setting, tree)
}

fn statistics(job: &Job, id: PeerId) -> WorkerStatistics {
    job.net.node::<Worker>(id).unwrap().statistics(job.net.now())
}

fn all_joined(job: &Job) -> bool {
    let standing = |id| job.net.node::<Worker>(id).unwrap().standing();
    job.workers().into_iter().all(|id| standing(id) == Standing::Joined)
}

/// Runs until everyone has joined; how long that took.
#[track_caller]
fn time_to_join(job: &mut Job, at_most: Duration) -> Duration {
    let began = job.net.now();
    while !all_joined(job) {
        job.net.run_for(ms(1));
        let took = job.net.now().since(began);
        assert!(took < at_most, "nobody in after {took:?}: {:?}", statistics(job, A));
    }
    job.net.now().since(began)
}

fn nobody_cried_wolf(job: &Job) {
    let false_alarm = |n: &Event| {
        matches!(
            n,
            Event::Worker(_, _, WorkerEvent::SwitchSilent)
                | Event::Worker(_, _, WorkerEvent::ServerSilent)
        ) || matches!(n, Event::WorkerSilent(_))
    };
    let alarms: Vec<_> = job.net.events().iter().filter(|(_, _, n)| false_alarm(n)).collect();
    assert!(alarms.is_empty(), "{alarms:?}");
}

#[test]
fn a_join_takes_a_handful_of_round_trips_and_no_flood_of_joins_whatever_the_path() {
    for switches in [1, 2] {
        for round_trip_ms in [1, 10, 60, 120, 300, 1000] {
            let round_trip = ms(round_trip_ms);
            let mut job = far_away(1, round_trip, switches, |_| {});
            let took = time_to_join(&mut job, round_trip * 12 + ms(40));
            // Ask, two windows of the offer (64 segments and 136), and the model itself; a worker
            // that only waits may learn of it one repetition later.
            let trips = took.as_secs_f64() / round_trip.as_secs_f64();
            assert!(took <= round_trip * 6 + ms(25), "{trips} round trips of {round_trip_ms} ms");
            let all: Vec<_> = job.workers().iter().map(|id| statistics(&job, *id)).collect();
            let offers: u64 = all.iter().map(|s| s.offers).sum();
            assert_eq!(offers, 200, "each segment is offered once, by one of the two");
            for worker in all {
                let joins = worker.joins;
                // Until the first answer 20, 40, 80, .. ms apart, then once a round trip; and never
                // less often than the keepalive, by which others know that the worker lives.
                let unknown = f64::from(u32::try_from(round_trip_ms / 20 + 1).unwrap()).log2();
                let alive = took.as_secs_f64() / 0.5;
                assert!(joins as f64 <= unknown + trips + alive + 4.0, "{joins} joins");
                assert!(worker.fetches <= 8, "{} fetches of 64 segments each", worker.fetches);
                let measured = worker.path_round_trip_ns.unwrap() as f64 / 1e9;
                assert!((measured / round_trip.as_secs_f64() - 1.0).abs() < 0.01, "{measured}");
            }
            job.train_for(Duration::from_secs(3) + round_trip * 6);
            everyone_learns(&job, 2);
            nobody_cried_wolf(&job);
        }
    }
}

#[test]
fn with_jitter_and_loss_it_takes_a_few_more_and_nothing_is_sent_over_and_over() {
    for seed in 0..4 {
        for round_trip_ms in [5, 100, 1000] {
            let round_trip = ms(round_trip_ms);
            let mut job = far_away(seed, round_trip, 1, |link| {
                link.jitter = link.delay / 4;
                link.loss = 0.01;
            });
            let took = time_to_join(&mut job, round_trip * 40 + ms(500));
            let trips = took.as_secs_f64() / round_trip.as_secs_f64();
            let all: Vec<_> = job.workers().iter().map(|id| statistics(&job, *id)).collect();
            let offers: u64 = all.iter().map(|s| s.offers).sum();
            let joins = all.iter().map(|s| s.joins).max().unwrap();
            assert!(took <= round_trip * 20 + ms(300), "{trips} round trips");
            // What jitter made late is taken for lost once.
            assert!(offers <= 200 * 2, "{offers} offers of 200 segments");
            let alive = took.as_secs_f64() / 0.5;
            assert!(joins as f64 <= trips + alive + 8.0, "{joins} joins in {trips} round trips");
            job.train_for(Duration::from_secs(4) + round_trip * 20);
            everyone_learns(&job, 2);
            job.no_model_is_torn();
        }
    }
}

#[test]
fn a_server_that_starts_again_gets_its_model_back_over_a_long_path() {
    for round_trip_ms in [1, 120, 1000] {
        let round_trip = ms(round_trip_ms);
        let mut job = far_away(3, round_trip, 1, |link| link.jitter = link.delay / 10);
        time_to_join(&mut job, round_trip * 20 + ms(100));
        job.train_for(Duration::from_secs(3) + round_trip * 4);
        let before = job.server_version();
        assert!(before > 1, "{round_trip_ms} ms: version {before}");
        let died = job.net.now();
        job.net.kill_at(died, SERVER);
        job.net.start_at(died + ms(200), SERVER);
        // Noticed by the next keepalive, then a round trip to offer, one for each window, and back.
        job.train_for(ms(500) + round_trip * 10);
        let after = job.server_version();
        assert!(after > before, "{round_trip_ms} ms: version {after} after {before}");
        job.train_for(Duration::from_secs(3) + round_trip * 4);
        assert!(job.server_version() > after, "it learns on");
        job.no_model_is_torn();
    }
}

#[test]
fn two_that_offer_at_once_over_a_long_path_do_not_take_the_job_from_each_other() {
    // Patience for an offer is 300 ms; between two windows of one lies a second.
    let mut job = far_away(5, Duration::from_secs(1), 2, |_| {});
    time_to_join(&mut job, Duration::from_secs(8));
    let offered = job.workers().iter().filter(|id| statistics(&job, **id).offers > 0).count();
    assert_eq!(offered, 1);
}

#[test]
fn an_offer_whose_worker_died_is_taken_from_another() {
    let mut job = far_away(7, ms(120), 1, |_| {});
    // It was answered, and its first window is on the way.
    let at = job.net.now() + ms(130);
    job.net.kill_at(at, A);
    job.net.run_for(ms(200));
    let other = PeerId(1);
    let began = job.net.now();
    while job.net.node::<Worker>(other).unwrap().standing() != Standing::Joined {
        job.net.run_for(ms(1));
        let waited = job.net.now().since(began);
        assert!(waited < Duration::from_secs(3), "{waited:?}: {:?}", statistics(&job, other));
    }
}

#[test]
fn a_worker_that_hears_nothing_holds_up_a_new_job_for_seconds_and_not_for_ever() {
    let mut job = far_away(1, ms(10), 1, |_| {});
    let b = PeerId(1);
    job.net.join_one_way(job.tree.home_of(A), A, Wire { loss: 1.0, ..Wire::default() });
    job.net.kill_at(job.net.now(), b);
    job.net.run_for(ms(1000));
    job.net.start_at(job.net.now(), b);
    job.net.run_for(ms(15_000));
    assert!(statistics(&job, A).joins > 20, "it calls all the time");
    let standing = job.net.node::<Worker>(b).unwrap().standing();
    assert_eq!(standing, Standing::Joined);
}
