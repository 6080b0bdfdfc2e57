//! A whole job over links that lose, repeat and reorder: it makes progress, nothing counts twice,
//! every contribution is accounted for from end to end, and no model is torn.

use crate::common::*;
use core::time::Duration;
use olaf_engine::switch::native::Pacing;
use olaf_engine::{BitsPerSecond, Switch};

use olaf_sim::{Lot, Wire};
use proptest::prelude::*;

#[test]
fn over_faultless_links_every_push_meets_a_fate_and_the_last_model_reaches_all_who_shared() {
    let mut job = Job::new(Setting::default());
    job.train_for(ms(400));
    assert!(job.pushed > 200, "{}", job.pushed);
    job.settle();
    everything_is_accounted_for(&job);
    everyone_learns(&job, 10);
    job.no_model_is_torn();
    assert!(job.server_version() > 50, "{}", job.server_version());
}

#[test]
fn over_links_that_lose_repeat_and_reorder_nothing_counts_twice() {
    for seed in 0..8 {
        let mut job =
            Job::new(Setting { seed, edge: bad_link(), core: bad_link(), ..Setting::default() });
        job.train_for(ms(600));
        assert!(job.pushed > 150, "seed {seed}: {} pushes", job.pushed);
        job.settle();
        everything_is_accounted_for(&job);
        everyone_learns(&job, 10);
        assert!(job.no_model_is_torn() > 0);
        let on = |from, to| from == SWITCH && to == SERVER;
        assert!(job.contributions(Lot::Repeated, on) > 0, "the links did repeat");
        assert!(job.contributions(Lot::Lost, on) > 0, "and lose");
    }
}

#[test]
fn updates_merge_when_the_uplink_is_slow_and_are_alone_when_it_is_fast() {
    let run = |rate| {
        let pacing = Pacing::Rate(BitsPerSecond::new(rate).unwrap());
        let mut job = Job::new(Setting { pacing, workers: 9, ..Setting::default() });
        job.train_for(ms(300));
        job.settle();
        everything_is_accounted_for(&job);
        job.net.node::<Switch>(SWITCH).unwrap().fates().0
    };
    let (slow, fast) = (run(2_000_000), run(1_000_000_000));
    assert!(slow.merged > 5 * slow.sent_alone, "{slow:?}");
    assert!(fast.sent_alone > 5 * fast.merged, "{fast:?}");
}

#[test]
fn credits_keep_the_queue_for_a_slow_server_and_survive_lost_acknowledgements() {
    let pacing = Pacing::Credits { credits: 2, timeout: ms(50) };
    let core = Wire { delay: ms(5), ..bad_link() };
    let mut job = Job::new(Setting { pacing, core, ..Setting::default() });
    job.train_for(ms(800));
    job.settle();
    everything_is_accounted_for(&job);
    everyone_learns(&job, 5);
    let fates = job.net.node::<Switch>(SWITCH).unwrap().fates().0;
    assert!(fates.merged > 0, "{fates:?}");
}

#[test]
fn models_of_many_segments_are_never_torn_and_no_segment_counts_twice() {
    for seed in 0..4 {
        let mut job = Job::new(Setting {
            seed,
            segments: 12,
            segment_lanes: 120,
            slots: 40,
            pacing: Pacing::Rate(BitsPerSecond::new(40_000_000).unwrap()),
            edge: bad_link(),
            core: bad_link(),
            every: ms(20),
            ..Setting::default()
        });
        job.train_for(ms(900));
        assert!(job.pushed >= 100, "seed {seed}: {} pushes", job.pushed);
        job.settle();
        everything_is_accounted_for(&job);
        everyone_learns(&job, 5);
        assert!(job.no_model_is_torn() > 30);
    }
}

#[test]
fn a_reward_gate_filters_and_the_sums_still_match() {
    let mut job = Job::new(Setting {
        gate: Some(1.5),
        pacing: Pacing::Rate(BitsPerSecond::new(2_000_000).unwrap()),
        workers: 9,
        ..Setting::default()
    });
    job.train_for(ms(400));
    job.settle();
    everything_is_accounted_for(&job);
    let fates = job.net.node::<Switch>(SWITCH).unwrap().fates().0;
    assert!(fates.filtered > 0 && fates.replaced > 0 && fates.merged > 0, "{fates:?}");
}

fn links() -> impl Strategy<Value = Wire> {
    let chances = (0.0..0.1f64, 0.0..0.2f64, 0.0..0.2f64);
    let times = (1_000_000u64..2_000_000_000, 0u64..3_000, 0u64..3_000, 0u64..20_000);
    (chances, times).prop_map(|((loss, duplication, reordering), (rate, delay, jitter, late))| {
        Wire {
            rate: BitsPerSecond::new(rate),
            delay: Duration::from_micros(delay),
            jitter: Duration::from_micros(jitter),
            loss,
            duplication,
            reordering,
            late: Duration::from_micros(late),
            ..Wire::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(24), max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_links_any_size_the_sums_match(
        seed: u64, edge in links(), core in links(), slots in 1usize..10,
        workers in 1u32..10, clusters in 1u32..4, segments in 1u32..4, uplink in 500_000u64..50_000_000,
    ) {
        let pacing = Pacing::Rate(BitsPerSecond::new(uplink).unwrap());
        let mut job = Job::new(Setting {
            seed, edge, core, slots, workers, clusters, segments, pacing, segment_lanes: 150, ..Setting::default()
        });
        job.train_for(ms(1500));
        job.settle();
        everything_is_accounted_for(&job);
        job.no_model_is_torn();
        prop_assert!(job.server_version() > 1, "no progress");
    }
}
