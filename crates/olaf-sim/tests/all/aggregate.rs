//! A server that collects before it applies (OLAF §2.1): periodically, while workers go on, and in
//! rounds, for which they wait. Nothing counts twice, everything received has a fate or waits, and
//! a worker that dies or loses a datagram holds up the others for one deadline at most.

use crate::common::*;
use core::time::Duration;
use olaf_engine::switch::native::Pacing;
use olaf_engine::{Event, PeerId};
use olaf_host::Server;
use olaf_host::push_pull::server::Aggregate;
use olaf_sim::Wire;
use olaf_wire::WorkerId;
use proptest::prelude::*;

const DEADLINE: Duration = Duration::from_millis(60);
const ROUND: Aggregate = Aggregate::Round { deadline: DEADLINE };

fn periodic(contributions: Option<u32>, after: Duration) -> Aggregate {
    Aggregate::Periodic { contributions, after }
}

/// Room for every worker's update in the switch: nothing is lost there.
fn setting(aggregate: Aggregate) -> Setting {
    Setting {
        aggregate,
        slots: 64,
        pacing: Pacing::Unlimited,
        segment_lanes: 2000,
        ..Setting::default()
    }
}

/// What the server counted: received, in the model, waiting, collections, rounds that were short.
struct Counted {
    received: u64,
    applied: u64,
    waiting: u64,
    collections: u64,
    short: u64,
    staleness_max: u32,
}

/// The server's counts agree with themselves, and with the model lane by lane.
#[track_caller]
fn counted(job: &Job) -> Counted {
    let (mut all, mut lives) = (Vec::new(), 0);
    for server in job.net.lives::<Server>(SERVER) {
        lives += 1;
        for served in server.statistics(job.net.now()).jobs {
            let fates = &served.fates;
            let applied = fates.delivered_alone + fates.delivered_merged;
            let rejected: u64 = fates.rejected.values().sum();
            assert_eq!(served.received, applied + fates.gated + rejected + fates.waiting);
            all.push(Counted {
                received: served.received,
                applied,
                waiting: fates.waiting,
                collections: served.collections,
                short: served.rounds_short,
                staleness_max: served.staleness_max,
            });
        }
    }
    let counted = all.pop().unwrap();
    let mut in_model = 0;
    for (at, lane) in job.model().into_iter().enumerate() {
        let times = lane.round();
        assert!((lane - times).abs() < 1e-3 && (0.0..=1.0).contains(&times), "lane {at} is {lane}");
        in_model += times as u64;
    }
    if lives == 1 {
        assert_eq!(in_model, counted.applied);
        assert_eq!(counted.received, job.distinct_at_the_server());
    }
    counted
}

#[test]
fn periodic_aggregation_makes_a_version_of_so_many_contributions_while_workers_go_on() {
    let mut job = Job::new(setting(periodic(Some(10), ms(500))));
    job.train_for(ms(400));
    let seen = counted(&job);
    assert!(job.pushed > 200, "{}", job.pushed);
    assert!(seen.waiting < 10, "{} wait", seen.waiting);
    // A merge may bring more than the last one that was wanted.
    assert!(seen.applied >= 10 * seen.collections && seen.applied < 16 * seen.collections);
    assert_eq!(u64::from(job.server_version()), seen.collections + 1);
    assert!(seen.staleness_max > 0, "workers went on with the model they had");
    job.settle();
    // What was left over did not wait for more than its time.
    let seen = counted(&job);
    assert_eq!((seen.waiting, seen.applied), (0, u64::from(job.pushed)));
    assert!(job.no_model_is_torn() > 0);
}

#[test]
fn periodic_aggregation_by_time_alone_makes_a_version_a_period() {
    let mut job = Job::new(setting(periodic(None, ms(25))));
    job.train_for(ms(100));
    let before = job.server_version();
    job.train_for(ms(1000));
    let versions = job.server_version() - before;
    // A period begins with its first contribution, which comes at once here.
    assert!((35..=40).contains(&versions), "{versions} versions in 40 periods");
    counted(&job);
}

#[test]
fn a_round_is_one_contribution_of_every_worker_on_the_same_model() {
    for segments in [1, 3] {
        let mut job = Job::new(Setting { segments, ..setting(ROUND) });
        job.train_for(ms(600));
        let server = &job.net.node::<Server>(SERVER).unwrap();
        let served = server.statistics(job.net.now()).jobs.remove(0);
        assert!(served.collections > 30, "{} rounds", served.collections);
        let of_rounds = served.collections * 6 * u64::from(segments);
        assert_eq!(served.received, of_rounds + served.fates.waiting);
        assert_eq!(u64::from(served.version), served.collections + 1);
        assert_eq!((served.rounds_short, served.staleness_max), (0, 0));
        assert!(served.fates.waiting < 6 * u64::from(segments));
        job.no_model_is_torn();
    }
}

#[test]
fn over_bad_links_rounds_close_without_what_was_lost_and_nothing_counts_twice() {
    let (mut short, mut whole) = (0, 0);
    for seed in 0..6 {
        let bad = Setting { seed, edge: bad_link(), core: bad_link(), ..setting(ROUND) };
        let mut job = Job::new(bad);
        job.train_for(ms(3000));
        let seen = counted(&job);
        assert!(seen.collections > 30, "seed {seed}: {} rounds", seen.collections);
        (short, whole) = (short + seen.short, whole + seen.collections - seen.short);
        job.settle();
        assert_eq!(counted(&job).waiting, 0);
    }
    assert!(short > 10 && whole > 10, "{short} short, {whole} whole");
}

#[test]
fn a_dead_worker_holds_up_three_rounds_for_a_deadline_each() {
    let mut job = Job::new(setting(ROUND));
    job.train_for(ms(300));
    let (died, dead) = (job.net.now(), PeerId(2));
    job.net.kill_at(died, dead);
    let before = job.server_version();
    // Rounds whose contribution of the dead worker was on its way are not held up.
    job.train_for(ms(150));
    let held_up = job.server_version() - before;
    assert!(held_up <= 4, "{held_up} rounds, a deadline each");
    job.train_for(SILENT_AFTER);
    let named: Vec<WorkerId> = job
        .net
        .events()
        .iter()
        .filter_map(|(at, _, notice)| match notice {
            Event::RoundWithout(seen) if *at >= died => Some(seen.worker),
            _ => None,
        })
        .collect();
    assert_eq!(named, [WorkerId(2); 3]);
    let before = (job.server_version(), counted(&job).short);
    job.train_for(ms(500));
    let freely = job.server_version() - before.0;
    assert!(freely > 40, "{freely} rounds of the living, {held_up} before");
    assert_eq!(counted(&job).short, before.1, "no worker that is gone counts as missing");
    // It comes back, is waited for again, and comes.
    job.net.start_at(job.net.now(), dead);
    job.train_for(ms(500));
    let before = (job.server_version(), counted(&job).received);
    job.train_for(ms(500));
    let (rounds, received) = (job.server_version() - before.0, counted(&job).received - before.1);
    assert!(received + 6 >= u64::from(rounds) * 6, "{received} in {rounds} rounds of six");
}

#[test]
fn a_worker_that_leaves_ends_the_round_that_waited_for_it_alone() {
    let mut job = Job::new(setting(Aggregate::Round { deadline: Duration::from_secs(60) }));
    job.train_for(ms(200));
    let before = job.server_version();
    job.net.with(PeerId(4), |worker: &mut olaf_host::Worker, _| worker.leave());
    job.train_for(ms(300));
    assert!(job.server_version() > before + 10, "no round waited for a worker that had left");
    assert_eq!(counted(&job).short, 0);
}

#[test]
fn a_server_that_comes_back_begins_its_rounds_again() {
    let mut job = Job::new(setting(ROUND));
    job.train_for(ms(300));
    let at = job.net.now();
    job.net.kill_at(at, SERVER);
    job.net.start_at(at + ms(100), SERVER);
    job.train_for(ms(1500));
    let before = job.server_version();
    job.train_for(ms(500));
    assert!(job.server_version() > before + 10);
    counted(&job);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(12), ..ProptestConfig::default() })]

    #[test]
    fn whatever_dies_and_however_bad_the_links_collections_go_on(
        seed in 0u64..1_000_000,
        round in any::<bool>(),
        dies in 0u32..6,
        at in 50u64..600,
        back in prop::option::of(10u64..900),
        segments in 1u32..3,
        loss in 0.0..0.15f64,
    ) {
        let aggregate = if round { ROUND } else { periodic(Some(8), DEADLINE) };
        let link = Wire { loss, ..bad_link() };
        let mut job = Job::new(Setting {
            seed, segments, edge: link, core: link, segment_lanes: 4000, ..setting(aggregate)
        });
        job.net.kill_at(job.net.now() + ms(at), PeerId(dies));
        if let Some(back) = back {
            job.net.start_at(job.net.now() + ms(at + back), PeerId(dies));
        }
        job.train_for(ms(1200));
        let before = job.server_version();
        job.train_for(ms(1500));
        prop_assert!(job.server_version() > before + 5, "{} then {}", before, job.server_version());
        job.settle();
        prop_assert_eq!(counted(&job).waiting, 0);
    }
}
