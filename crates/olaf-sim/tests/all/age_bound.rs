//! How near the age-optimal queue comes to the least average age that any queue can reach.

use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::QueueKind;
use olaf_sim::study::replay::{Head, Parameters, replay};
use std::fmt::Write;

const CLUSTERS: u32 = 27;
/// What the link takes for a datagram.
const SERVICE_NS: f64 = 1000.0;

/// Poisson arrivals, a given number in one service over all clusters.
fn trace(load: f64) -> String {
    let mut chance = fastrand::Rng::with_seed(7);
    let mut csv = String::from("t_ns,cluster,worker,seq,reward,bytes\n");
    let mut at = 0.0;
    for seq in 0..20_000 {
        at -= (1.0 - chance.f64()).ln() / load * SERVICE_NS;
        let cluster = chance.u32(..CLUSTERS);
        let worker = cluster * 4 + chance.u32(..4);
        writeln!(csv, "{},{cluster},{worker},{seq},0,125", at as u64).unwrap();
    }
    csv
}

/// Average age of all clusters, in services.
fn age(engine: QueueKind, trace: &str) -> f64 {
    let rate = BitsPerSecond::new(1_000_000_000).unwrap();
    let parameters =
        Parameters { engine, slots: 8, rate, gate: None, head: Head::Locked, full: false };
    let done = replay(trace.as_bytes(), &parameters).unwrap();
    let ages = done.summary().clusters.iter().map(|cluster| cluster.aom_mean_ns.unwrap());
    ages.sum::<f64>() / f64::from(CLUSTERS) / SERVICE_NS
}

/// `docs/design/006-age-optimal-queue.md` has the reason.
fn bound(load: f64) -> f64 {
    let n = f64::from(CLUSTERS);
    if load <= 1.0 { 1.0 + n / load } else { 1.0 + n / 2.0 + n / (2.0 * load * load) }
}

#[test]
fn with_27_clusters_the_age_is_within_a_tenth_of_the_bound_at_every_load() {
    for load in [0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0] {
        let trace = trace(load);
        let freshest = age(QueueKind::Freshest, &trace) / bound(load);
        // The bound is of an average over chance: a trace may be a little below it.
        assert!((0.98..1.10).contains(&freshest), "load {load}: {freshest}");
        let olaf = age(QueueKind::Merging, &trace) / bound(load);
        assert!(olaf > freshest, "load {load}: {olaf} against {freshest}");
        assert!(load < 2.0 || olaf > 1.4, "load {load}: {olaf}");
    }
}
