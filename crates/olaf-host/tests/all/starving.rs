//! A cluster from which nothing arrives grows old, and the server calls its job unfair.

use olaf_engine::{Engine, Instant, PeerId, Source, Verdict};
use olaf_host::push_pull::server::ServerStatistics;
use olaf_host::{Server, ServerConfig};
use olaf_wire::{Address, Join, Update};

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Instant {
    Instant(ms * MS)
}

/// Worker n is the only one of cluster n, behind peer n.
fn address(worker: u32) -> Address {
    olaf_samples::address(1, worker, worker)
}

fn hears(server: &mut Server, now: Instant, from: u32, emit: impl FnOnce(&mut [u8]) -> usize) {
    let mut buf = [0; 512];
    let len = emit(&mut buf);
    let verdict = server.handle_packet(now, Source::end(PeerId(from)), &buf[..len]);
    assert_eq!(verdict, Verdict::Absorb);
}

fn joins(server: &mut Server, now: Instant, worker: u32) {
    let join = Join { sent_at_ns: now.0, ..olaf_samples::join(address(worker), 1, 1) };
    hears(server, now, worker, |buf| join.emit(buf));
}

/// Offers the model, as the server asks of the first worker.
fn offers(server: &mut Server, now: Instant, worker: u32) {
    let offer = olaf_samples::offer(address(worker), 1);
    hears(server, now, worker, |buf| offer.emit(&[0.0], buf));
}

/// An update generated and delivered at `now`.
fn pushes(server: &mut Server, now: Instant, worker: u32, sequence: u32) {
    let update = Update {
        generated_oldest_ns: now.0,
        generated_newest_ns: now.0,
        reward: 1.0,
        ..olaf_samples::update(address(worker), sequence)
    };
    hears(server, now, worker, |buf| update.emit(&[1.0], buf));
}

fn statistics(server: &Server, now: Instant) -> (Vec<Option<f64>>, Option<f64>) {
    let said: ServerStatistics = server.statistics(now);
    let job = &said.jobs[0];
    (job.clusters.iter().map(|cluster| cluster.aom_mean_ns).collect(), job.fairness)
}

#[test]
fn a_cluster_of_which_nothing_arrives_counts_from_the_job_s_first_delivery() {
    let mut server = Server::new(ServerConfig::default(), 9).unwrap();
    joins(&mut server, ms(1), 0);
    joins(&mut server, ms(2), 1);
    offers(&mut server, ms(3), 0);
    // Before anything is delivered nobody has an age.
    assert_eq!(statistics(&server, ms(50)), (vec![None, None], None));

    for (sequence, at) in (100..=200).step_by(10).enumerate() {
        pushes(&mut server, ms(at), 0, u32::try_from(sequence).unwrap());
    }
    let (ages, fairness) = statistics(&server, ms(200));
    assert_eq!(ages, [Some(5.0 * MS as f64), Some(50.0 * MS as f64)]);
    let fairness = fairness.unwrap();
    assert!((fairness - 55.0 * 55.0 / (2.0 * 2_525.0)).abs() < 1e-12, "{fairness}");
}

#[test]
fn a_cluster_that_joins_later_counts_from_its_join() {
    let mut server = Server::new(ServerConfig::default(), 9).unwrap();
    joins(&mut server, ms(1), 0);
    offers(&mut server, ms(3), 0);
    pushes(&mut server, ms(100), 0, 0);
    joins(&mut server, ms(180), 1);
    let (ages, fairness) = statistics(&server, ms(200));
    // From 180 to 200 it grew from 0 to 20; that of the other from 100 to 200 from 0 to 100.
    assert_eq!(ages, [Some(50.0 * MS as f64), Some(10.0 * MS as f64)]);
    assert!(fairness.unwrap() < 0.8);
}
