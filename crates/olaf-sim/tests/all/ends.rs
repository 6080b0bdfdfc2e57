//! A worker learns that an update arrived if and only if it did: over links that lose, repeat and
//! reorder, through merges and trees, with several segments, gates and full queues.

use crate::common::*;
use olaf_engine::switch::native::Pacing;
use olaf_engine::{BitsPerSecond, PeerId, WorkerId};
use olaf_host::push_pull::worker::WorkerStatistics;
use olaf_host::{Server, Worker};
use olaf_sim::{Lot, Wire};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn rate(bits_per_second: u64) -> Pacing {
    Pacing::Rate(BitsPerSecond::new(bits_per_second).unwrap())
}

fn statistics(job: &Job, id: PeerId) -> WorkerStatistics {
    job.net.node::<Worker>(id).unwrap().statistics(job.net.now())
}

/// Compares what each worker learns with the model. Contribution `k` is lane `k` of each segment,
/// so that the model itself says which of a worker's updates arrived. Over bad links a job may have no model
/// yet; then nothing arrived.
#[track_caller]
fn nobody_is_told_of_what_did_not_arrive(job: &Job) -> (u64, u64, u64) {
    let mut sums = (0, 0, 0);
    let mut arrived: BTreeMap<WorkerId, u64> = BTreeMap::new();
    let server = job.net.node::<Server>(SERVER).unwrap();
    let model = server.model(JOB).map(|_| job.model());
    for (worker, number) in &job.pushes {
        let lanes = job.setting.segment_lanes as usize;
        let segments = 0..job.setting.segments as usize;
        let here = segments
            .filter(|s| {
                model.as_ref().is_some_and(|model| model[s * lanes + *number as usize] > 0.5)
            })
            .count();
        *arrived.entry(*worker).or_default() += here as u64;
    }
    for id in job.workers() {
        let told = statistics(job, id);
        let known = told.acknowledged + told.not_delivered + told.unconfirmed + told.awaited;
        assert_eq!(told.sent, known, "{told:?}");
        let arrived = arrived.get(&WorkerId(id.0)).copied().unwrap_or_default();
        assert!(told.acknowledged <= arrived, "{id:?}: {} of {arrived} arrived", told.acknowledged);
        assert!(
            told.not_delivered <= told.sent - arrived,
            "{id:?}: {} ended, but {arrived} of {} arrived",
            told.not_delivered,
            told.sent
        );
        sums.0 += told.acknowledged;
        sums.1 += told.not_delivered;
        sums.2 += told.awaited + told.unconfirmed;
    }
    sums
}

#[test]
fn without_loss_the_end_of_every_update_is_known_and_the_counts_of_all_agree() {
    for segments in [1, 5] {
        for (switches, slots) in [(1, 3), (1, 40), (2, 3), (3, 40)] {
            let setting =
                Setting { segments, slots, pacing: rate(3_000_000), ..Setting::default() };
            let mut job = Job::in_tree(setting, Tree::chain(&setting, switches));
            job.train_for(ms(400));
            job.settle();
            everything_is_accounted_for(&job);
            let (arrived, ended, unknown) = nobody_is_told_of_what_did_not_arrive(&job);
            assert_eq!(unknown, 0, "{segments} segments, {switches} switches, {slots} slots");
            assert_eq!(arrived, job.applied(), "worker and server agree");
            let gone: u64 = (0..switches)
                .map(|at| job.fates_at(at))
                .map(|f| f.replaced + f.filtered + f.dropped + f.rejected_sum())
                .sum();
            assert_eq!(ended, gone, "worker and switches agree");
            assert!(ended > 0 && arrived > 20, "{arrived} arrived, {ended} ended");
        }
    }
}

#[test]
fn what_the_gate_filters_or_puts_in_anothers_place_has_ended() {
    let setting =
        Setting { gate: Some(1.5), workers: 9, pacing: rate(2_000_000), ..Setting::default() };
    let mut job = Job::new(setting);
    job.train_for(ms(300));
    job.settle();
    let fates = job.fates_at(0);
    assert!(fates.filtered > 0 && fates.replaced > 0);
    let (arrived, _, unknown) = nobody_is_told_of_what_did_not_arrive(&job);
    assert_eq!((arrived, unknown), (job.applied(), 0));
}

#[test]
fn two_switches_that_share_a_third_tell_their_own_workers() {
    let setting = Setting {
        workers: 8,
        clusters: 2,
        slots: 8,
        pacing: rate(4_000_000),
        ..Setting::default()
    };
    let mut job = Job::in_tree(setting, Tree::figure_9(&setting));
    job.train_for(ms(400));
    job.settle();
    let (arrived, _, unknown) = nobody_is_told_of_what_did_not_arrive(&job);
    assert_eq!((arrived, unknown), (job.applied(), 0));
}

#[test]
fn over_bad_links_most_ends_are_known_and_none_is_wrong() {
    for seed in 0..6 {
        for segments in [1, 4] {
            let setting = Setting {
                seed,
                segments,
                edge: bad_link(),
                core: bad_link(),
                pacing: rate(8_000_000),
                ..Setting::default()
            };
            let mut job = Job::in_tree(setting, Tree::chain(&setting, 2));
            job.train_for(ms(600));
            job.settle();
            let (arrived, ended, unknown) = nobody_is_told_of_what_did_not_arrive(&job);
            let lost = job.contributions(Lot::Lost, |_, _| true);
            assert!(lost > 0 && arrived > 30);
            assert!(
                unknown < (arrived + ended) / 4,
                "{arrived} arrived, {ended} ended, {unknown} unknown"
            );
        }
    }
}

#[test]
fn what_a_server_or_a_switch_took_with_it_is_not_told_to_have_arrived() {
    for victim in [SERVER, SWITCH] {
        let mut job = Job::new(Setting { pacing: rate(3_000_000), ..Setting::default() });
        job.train_for(ms(200));
        let at = job.net.now();
        job.net.kill_at(at, victim);
        job.net.start_at(at + ms(50), victim);
        job.train_for(ms(300));
        job.settle();
        if victim == SWITCH {
            nobody_is_told_of_what_did_not_arrive(&job);
        }
        for id in job.workers() {
            let told = statistics(&job, id);
            assert!(told.unconfirmed > 0 || told.not_delivered > 0, "{victim:?}: {told:?}");
            assert_eq!(
                told.sent,
                told.acknowledged + told.not_delivered + told.unconfirmed + told.awaited
            );
        }
    }
}

fn links() -> impl Strategy<Value = Wire> {
    let chances = (0.0..0.2f64, 0.0..0.3f64, 0.0..0.3f64);
    let times = (0u64..3_000, 0u64..3_000, 0u64..20_000);
    (chances, times).prop_map(|((loss, duplication, reordering), (delay, jitter, late))| Wire {
        delay: core::time::Duration::from_micros(delay),
        jitter: core::time::Duration::from_micros(jitter),
        loss,
        duplication,
        reordering,
        late: core::time::Duration::from_micros(late),
        ..Wire::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: olaf_samples::cases(24), max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_links_any_size_nobody_is_told_of_what_did_not_arrive(
        seed: u64, edge in links(), core in links(), slots in 1usize..10, switches in 1usize..4,
        workers in 1u32..8, clusters in 1u32..4, segments in 1u32..4, uplink in 500_000u64..50_000_000,
    ) {
        let setting = Setting {
            seed, edge, core, slots, workers, clusters, segments, pacing: rate(uplink), ..Setting::default()
        };
        let mut job = Job::in_tree(setting, Tree::chain(&setting, switches));
        job.train_for(ms(500));
        job.settle();
        nobody_is_told_of_what_did_not_arrive(&job);
    }
}
