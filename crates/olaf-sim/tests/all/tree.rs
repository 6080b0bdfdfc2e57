//! Switches in a tree, as in OLAF Figure 9: two of them send to a third, and that to the server.

use crate::common::*;
use core::time::Duration;
use olaf_engine::switch::native::Pacing;
use olaf_engine::{BitsPerSecond, Event, JobId, PeerId, Switch, WorkerEvent};
use olaf_sim::Wire;
use proptest::prelude::*;
use std::collections::BTreeSet;

const ROOT: usize = 2;
fn rate(bits_per_second: u64) -> Pacing {
    Pacing::Rate(BitsPerSecond::new(bits_per_second).unwrap())
}

fn good_link() -> Wire {
    Wire { delay: Duration::from_micros(100), ..Wire::default() }
}

/// SW1 and SW2 with four workers each, SW3 with a slower uplink than both together.
fn figure_9(setting: Setting) -> Job {
    let setting = Setting { workers: 8, slots: setting.slots.max(8), ..setting };
    let mut tree = Tree::figure_9(&setting);
    // 1,700 bytes a datagram at 400 lanes: some 600 a second from each leaf, 450 from the root.
    let scale = u64::from(setting.segment_lanes).div_ceil(400);
    tree.hops.iter_mut().for_each(|hop| hop.pacing = rate(8_000_000 * scale));
    tree.hops[ROOT].pacing = rate(6_000_000 * scale);
    Job::in_tree(setting, tree)
}

#[test]
fn what_two_switches_merged_is_merged_again_by_the_third_and_nothing_is_lost_on_the_way() {
    // Clusters of one switch each, and clusters with workers at both.
    for clusters in [2, 4, 3] {
        let mut job = figure_9(Setting { clusters, ..Setting::default() });
        job.train_for(ms(300));
        job.settle();
        everything_is_accounted_for(&job);
        everyone_learns(&job, 10);
        job.no_model_is_torn();
        let handed: u64 =
            (0..ROOT).map(|at| job.fates_at(at)).map(|f| f.sent_alone + f.merged).sum();
        let root = job.fates_at(ROOT);
        assert_eq!(root.received, handed);
        assert_eq!(root.rejected_sum() + root.dropped, 0, "{root:?}");
        assert_eq!(job.applied(), root.sent_alone + root.merged);
        let lost: u64 = (0..=ROOT).map(|at| job.fates_at(at)).map(|f| f.replaced + f.dropped).sum();
        assert_eq!(job.applied() + lost, job.sent(), "{clusters} clusters");
        assert!(root.merged > 20, "{root:?}");
    }
}

#[test]
fn over_links_that_lose_repeat_and_reorder_nothing_counts_twice() {
    for seed in 0..6 {
        let mut job =
            figure_9(Setting { seed, edge: bad_link(), core: bad_link(), ..Setting::default() });
        job.train_for(ms(500));
        assert!(job.pushed > 150, "seed {seed}: {} pushes", job.pushed);
        job.settle();
        everything_is_accounted_for(&job);
        everyone_learns(&job, 10);
        job.no_model_is_torn();
        let duplicates = job.fates_at(ROOT).rejected[olaf_engine::Rejection::Duplicate.index()];
        assert!(duplicates > 0, "seed {seed}: the links did repeat");
    }
}

#[test]
fn models_of_many_segments_come_down_whole_through_the_tree() {
    let mut job = figure_9(Setting {
        segments: 6,
        segment_lanes: 200,
        clusters: 2,
        edge: bad_link(),
        core: bad_link(),
        every: ms(20),
        slots: 30,
        ..Setting::default()
    });
    job.train_for(ms(700));
    job.settle();
    everything_is_accounted_for(&job);
    everyone_learns(&job, 5);
    assert!(job.no_model_is_torn() > 30);
}

#[test]
fn the_switch_in_the_middle_dies_and_each_of_its_neighbours_says_so_by_name() {
    let mut job = figure_9(Setting { segment_lanes: 3000, ..Setting::default() });
    job.train_for(ms(300));
    let died = job.net.now();
    job.net.kill_at(died, switch(ROOT));
    let before = job.pushed;
    job.train_for(NOTICED_WITHIN);
    assert!(job.pushed - before > 300, "nobody stops pushing because nobody answers");
    let silent = Event::SwitchSilent(JobId(1), switch(ROOT));
    let said = who_said(&job, died.., |n| *n == (silent));
    assert_eq!(said, BTreeSet::from([switch(0), switch(1)]));
    // A worker's own switch lives, and says that there is nobody behind it.
    let server = |n: &Event| matches!(n, Event::Worker(_, _, WorkerEvent::ServerSilent));
    assert_eq!(who_said(&job, died.., server), all_workers(&job));
    let own = |n: &Event| matches!(n, Event::Worker(_, _, WorkerEvent::SwitchSilent));
    assert!(who_said(&job, died.., own).is_empty());

    let back = job.net.now();
    job.net.start_at(back, switch(ROOT));
    assert!(versions(&mut job, ms(200)) > 20);
    let again = |n: &Event| {
        let upper = switch(ROOT);
        matches!(n, Event::SwitchRestarted(_, who) | Event::SwitchBack(_, who) if *who == upper)
    };
    assert_eq!(who_said(&job, back.., again), BTreeSet::from([switch(0), switch(1)]));
    everyone_is_current(&job, 30);
    job.settle();
    everything_is_accounted_for(&job);
    job.no_model_is_torn();
}

#[test]
fn a_middle_that_is_replaced_at_once_has_everyone_back_within_a_few_round_trips() {
    let mut job = figure_9(Setting { segment_lanes: 3000, ..Setting::default() });
    // In the middle between two keepalives, which come every 100 ms.
    job.train_for(ms(330));
    let died = job.net.now();
    job.net.kill_at(died, switch(ROOT));
    job.net.start_at(died, switch(ROOT));
    job.train_for(ms(30));
    let root = &job.net.node::<Switch>(switch(ROOT)).unwrap();
    let statistics = root.statistics(job.net.now());
    let admitted = statistics.workers.iter().filter(|worker| worker.admitted).count();
    assert_eq!(admitted, 8, "{statistics:?}");
    assert_eq!(statistics.switches.len(), 2);
    // The loss of contributions in the first merges, whose senders were not known yet, has a
    // reason.
    let refused = statistics.fates.rejected.get("unknown_worker").copied().unwrap_or(0);
    assert!((1..20).contains(&refused), "{refused}");
    job.settle();
    everything_is_accounted_for(&job);
    everyone_is_current(&job, 5);
}

#[test]
fn a_leaf_dies_and_the_switch_above_names_it_while_the_other_trains_on() {
    let mut job = figure_9(Setting { segment_lanes: 3000, ..Setting::default() });
    job.train_for(ms(300));
    let died = job.net.now();
    job.net.kill_at(died, switch(0));
    assert!(versions(&mut job, NOTICED_WITHIN) > 50);
    let silent = Event::SwitchSilent(JobId(1), switch(0));
    assert_eq!(who_said(&job, died.., |n| *n == (silent)), BTreeSet::from([switch(ROOT)]));
    let lost = |n: &Event| matches!(n, Event::Worker(_, _, WorkerEvent::SwitchSilent));
    let at_it = all_workers(&job).into_iter().filter(|id| job.tree.home_of(*id) == switch(0));
    assert_eq!(who_said(&job, died.., lost), at_it.collect());
    let back = job.net.now();
    job.net.start_at(back, switch(0));
    job.train_for(ms(300));
    let told = Event::SwitchRestarted(JobId(1), switch(0));
    assert_eq!(who_said(&job, back.., |n| *n == (told)), BTreeSet::from([switch(ROOT)]));
    everyone_is_current(&job, 30);
    job.settle();
    everything_is_accounted_for(&job);
}

#[test]
fn the_server_dies_and_through_the_tree_its_next_life_has_everyone_back() {
    let mut job = figure_9(Setting { segment_lanes: 3000, ..Setting::default() });
    job.train_for(ms(330));
    let before = job.server_version();
    let now = job.net.now();
    job.net.kill_at(now, SERVER);
    job.net.start_at(now, SERVER);
    job.train_for(ms(300));
    assert!(job.server_version() > before + 10, "{} after {before}", job.server_version());
    everyone_is_current(&job, 30);
    job.no_model_is_torn();
}

fn links() -> impl Strategy<Value = Wire> {
    let chances = (0.0..0.06f64, 0.0..0.15f64, 0.0..0.15f64);
    let times = (0u64..2_000, 0u64..2_000, 0u64..10_000);
    prop_oneof![
            1 => Just(good_link()),
            2 => (chances, times).prop_map(|((loss, duplication, reordering), (delay, jitter, late))| {
                Wire {
                    rate: None,
                    delay: Duration::from_micros(delay),
                    jitter: Duration::from_micros(jitter),
                    loss,
                    duplication,
                    reordering,
                    late: Duration::from_micros(late),
    ..Wire::default()
                }
            }),
        ]
}

fn pacings() -> impl Strategy<Value = Pacing> {
    prop_oneof![
        2 => (500_000u64..30_000_000).prop_map(rate),
        1 => (1usize..5).prop_map(|credits| Pacing::Credits { credits, timeout: ms(60) }),
        1 => Just(Pacing::Unlimited),
    ]
}

/// Each switch sends to one of those before it, the first to the server.
type HopParts = (prop::sample::Index, usize, Pacing, Wire, (u16, Option<u64>, usize));

fn trees() -> impl Strategy<Value = Tree> {
    let down = (1u16..4, prop::option::of(1_000_000u64..1 << 30), 64usize..65_536);
    let hop = (any::<prop::sample::Index>(), 1usize..8, pacings(), links(), down);
    let homes = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    (prop::collection::vec(hop, 1..6), homes).prop_map(|(hops, homes)| {
        let homes = homes.iter().map(|home| home.index(hops.len())).collect();
        let hop =
            |(at, (above, slots, pacing, link, (ports, rate, limit))): (usize, HopParts)| Hop {
                above: (at > 0).then(|| above.index(at)),
                slots,
                pacing,
                link,
                down: Down { ports, rate: rate.and_then(BitsPerSecond::new), limit },
            };
        Tree { hops: hops.into_iter().enumerate().map(hop).collect(), homes }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(24), max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn in_any_tree_over_any_links_every_contribution_has_one_fate_at_every_hop(
        seed: u64, tree in trees(), edge in links(), workers in 1u32..8, clusters in 1u32..4,
        segments in 1u32..4,
    ) {
        let setting = Setting {
            seed, edge, workers, clusters, segments, segment_lanes: 150, ..Setting::default()
        };
        let mut job = Job::in_tree(setting, tree);
        job.train_for(ms(1200));
        job.settle();
        everything_is_accounted_for(&job);
        job.no_model_is_torn();
        prop_assert!(job.server_version() > 1, "no progress");
        everyone_learns(&job, 2);
    }

    #[test]
    fn in_any_tree_without_loss_contributions_are_conserved_from_end_to_end(
        seed: u64, tree in trees(), workers in 1u32..8, clusters in 1u32..4,
    ) {
        let mut tree = tree;
        tree.hops.iter_mut().for_each(|hop| hop.link = good_link());
        let setting = Setting { seed, workers, clusters, segment_lanes: 150, ..Setting::default() };
        let mut job = Job::in_tree(setting, tree);
        job.train_for(ms(600));
        job.settle();
        everything_is_accounted_for(&job);
        let here = |at| job.fates_at(at);
        let ended: u64 =
            (0..job.tree.hops.len()).map(here).map(|f| f.replaced + f.dropped + f.rejected_sum()).sum();
        prop_assert_eq!(job.applied() + ended, job.sent());
        everyone_learns(&job, 2);
    }

    #[test]
    fn whoever_dies_in_a_tree_and_comes_back_training_goes_on(
        seed: u64,
        deaths in prop::collection::vec((0usize..12, 0u64..1000, 0u64..1000), 1..5),
        faulty: bool,
    ) {
        let link = if faulty { bad_link() } else { good_link() };
        let mut job = figure_9(Setting {
            seed, segment_lanes: 2500, every: ms(20), edge: link, core: link, ..Setting::default()
        });
        let start = job.net.now();
        for (who, at, away) in &deaths {
            let who = match who {
                0..8 => PeerId(u32::try_from(*who).unwrap()),
                8..11 => switch(who - 8),
                _ => SERVER,
            };
            job.net.kill_at(start + ms(*at), who);
            job.net.start_at(start + ms(at + away), who);
        }
        job.train_for(ms(2000));
        job.train_for(NOTICED_WITHIN + ms(600));
        let progress = versions(&mut job, ms(400));
        prop_assert!(progress > 5, "{progress} versions");
        everyone_is_current(&job, 60);
        job.no_model_is_torn();
        prop_assert!(job.model().iter().all(|lane| *lane < 1.5), "something counted twice");
    }
}
