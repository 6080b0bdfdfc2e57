//! Jobs start behind uplinks on which one long datagram takes a good part of a second: the questions about
//! the path's size must not fill them.

use crate::common::*;
use core::time::Duration;
use olaf_engine::switch::native::Pacing;
use olaf_engine::{BitsPerSecond, PeerId};
use olaf_host::Worker;
use olaf_host::push_pull::worker::{PathConfig, Standing, WorkerStatistics};
use olaf_sim::{Lot, Record, Wire};
use olaf_wire::offsets::SEGMENT_HEADER;

const HEADERS: u32 = 28;
const LANES: u32 = 2205;
/// The IP packet of a segment.
const WHOLE: u32 = HEADERS + SEGMENT_HEADER as u32 + 4 * LANES;

/// Workers with a model of one long segment behind two switches whose uplinks have that rate.
fn job(seed: u64, workers: u32, bits_per_second: u64, edge: impl Fn(&mut Wire)) -> Job {
    let mut link = Wire { delay: Duration::from_micros(100), ..Wire::default() };
    let core = link;
    edge(&mut link);
    let setting = Setting {
        seed,
        workers,
        clusters: workers,
        segments: 1,
        segment_lanes: LANES,
        slots: 8,
        pacing: Pacing::Rate(BitsPerSecond::new(bits_per_second).unwrap()),
        edge: link,
        core,
        every: Duration::from_secs(1),
        silent_after: Duration::from_secs(2),
        keepalive: ms(500),
        searches: Some(PathConfig { search: true, largest: 65_000, headers: HEADERS }),
        ..Setting::default()
    };
    Job::in_tree(setting, Tree::chain(&setting, 2))
}

fn statistics(job: &Job, id: PeerId) -> WorkerStatistics {
    job.net.node::<Worker>(id).unwrap().statistics(job.net.now())
}

fn joined(job: &Job, id: PeerId) -> bool {
    job.net.node::<Worker>(id).unwrap().standing() == Standing::Joined
}

/// Runs until all are in. Returns when the last came in.
#[track_caller]
fn time_to_join(job: &mut Job, at_most: Duration) -> Duration {
    let began = job.net.now();
    while !job.workers().into_iter().all(|id| joined(job, id)) {
        job.net.run_for(ms(1));
        let took = job.net.now().since(began);
        assert!(took < at_most, "not all in after {took:?}: {:?}", statistics(job, PeerId(0)));
    }
    job.net.now().since(began)
}

/// The time of a datagram with the whole model on an uplink.
fn long(bits_per_second: u64) -> Duration {
    let bits = 8 * (SEGMENT_HEADER as u64 + 4 * u64::from(LANES));
    Duration::from_secs_f64(bits as f64 / bits_per_second as f64)
}

#[track_caller]
fn nothing_is_asked_over_and_over(job: &Job, at_most: u64) {
    for id in job.workers() {
        let path = statistics(job, id).path;
        assert_eq!((path.segment_lanes, path.mtu_bytes), (LANES, Some(WHOLE)), "{id:?}");
        assert!(path.probes <= at_most, "{id:?}: {path:?}");
    }
    let whole = |r: &&Record| r.lot == Lot::Sent && r.from == switch(1) && r.bytes.len() > 1500;
    let long = job.net.trace().iter().filter(whole).filter(|r| r.to == SERVER).count();
    assert!(long as u32 <= job.setting.workers + 2, "{long} long datagrams");
}

#[test]
fn a_worker_gets_in_in_little_more_than_its_question_and_its_model_take() {
    for bits_per_second in [300_000, 200_000, 100_000, 64_000] {
        for delay in [0, 100] {
            let mut job = job(1, 1, bits_per_second, |edge| edge.delay += ms(delay));
            let took = time_to_join(&mut job, Duration::from_secs(30));
            // Twice through two uplinks; ask, join, offer, fetch.
            let bound = long(bits_per_second) * 4 + ms(2 * delay) * 5 + ms(200);
            assert!(took <= bound, "{bits_per_second} bit/s, {delay} ms: {took:?}, not {bound:?}");
            nothing_is_asked_over_and_over(&job, 14);
        }
    }
}

#[test]
fn eight_workers_ask_for_the_longest_datagram_once_each() {
    for bits_per_second in [200_000, 64_000] {
        let mut job = job(1, 8, bits_per_second, |_| {});
        let took = time_to_join(&mut job, Duration::from_secs(60));
        let bound = long(bits_per_second) * 13;
        assert!(took <= bound, "{bits_per_second} bit/s: {took:?}, not {bound:?}");
        nothing_is_asked_over_and_over(&job, 40);
    }
}

#[test]
fn on_a_slow_and_lossy_path_the_size_is_the_same() {
    for (workers, bits_per_second) in [(1, 200_000), (1, 100_000), (1, 64_000), (8, 200_000)] {
        for seed in 0..8 {
            let mut job = job(seed, workers, bits_per_second, |edge| {
                edge.delay = ms(100);
                edge.loss = 0.05;
            });
            time_to_join(&mut job, Duration::from_secs(30));
            for id in job.workers() {
                assert_eq!(statistics(&job, id).path.segment_lanes, LANES, "{id:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_narrow_place_behind_a_slow_uplink_is_found() {
    for (workers, bits_per_second) in [(1, 200_000), (1, 64_000), (2, 200_000)] {
        let mut job = job(1, workers, bits_per_second, |_| {});
        let narrow = Wire { longest: 1500 - HEADERS as usize, ..job.setting.core };
        job.net.join_one_way(switch(1), SERVER, narrow);
        let took = time_to_join(&mut job, Duration::from_secs(60));
        let bound = long(bits_per_second) * 30;
        assert!(took <= bound, "{bits_per_second} bit/s: {took:?}, not {bound:?}");
        for id in job.workers() {
            let path = statistics(&job, id).path;
            assert_eq!(path.mtu_bytes, Some(1500), "{path:?}");
        }
    }
}
