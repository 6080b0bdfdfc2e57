//! What a server counts of a merge: the age of its newest contribution, the staleness midway between
//! its versions, and a delivery for each contributor.

use olaf_engine::{Engine, Instant, PeerId, PortId, Source, Verdict};
use olaf_host::push_pull::server::{Aggregate, RuleConfig, ServerGate, Step};
use olaf_host::{Server, ServerConfig};
use olaf_wire::{Answer, JobId, Leave, Packet, Update};
use std::time::Duration;

const NOW: Instant = Instant(1_000_000_000);

/// A server with a model of version 1 and three workers at peer 5, which may be a switch.
fn server(aggregate: Aggregate) -> Server {
    with(ServerConfig::default().aggregating(aggregate))
}

fn with(config: ServerConfig) -> Server {
    let mut server = Server::new(config, 9).unwrap();
    let mut buf = [0; 512];
    for worker in 0..3 {
        let len = olaf_samples::join(olaf_samples::address(1, 0, worker), 1, 1).emit(&mut buf);
        send(&mut server, NOW, &buf[..len]);
    }
    let len = olaf_samples::offer(olaf_samples::address(1, 0, 0), 1).emit(&[0.0], &mut buf);
    send(&mut server, NOW, &buf[..len]);
    server
}

fn send(server: &mut Server, now: Instant, bytes: &[u8]) {
    assert_eq!(server.handle_packet(now, Source::end(PeerId(5)), bytes), Verdict::Absorb);
}

/// Applies updates of one contribution until the model has that version.
fn reaches(server: &mut Server, version: u32) {
    let mut number = 1_000;
    while server.model(JobId(1)).unwrap().0 < version {
        number += 1;
        merged(server, number, |update| update.contributors = 1);
    }
}

fn merged(server: &mut Server, number: u32, change: impl FnOnce(&mut Update)) {
    let mut update = olaf_samples::update(olaf_samples::address(1, 0, 0), number);
    update.hop_sequence = number;
    change(&mut update);
    let mut buf = [0; 512];
    let len = update.emit(&[1.0], &mut buf);
    send(server, NOW, &buf[..len]);
}

#[test]
fn the_age_of_a_merge_is_that_of_its_newest_contribution() {
    let mut server = server(Aggregate::Each);
    merged(&mut server, 1, |update| {
        update.contributors = 3;
        (update.generated_oldest_ns, update.generated_newest_ns) = (NOW.0 - 900, NOW.0 - 200);
    });
    let later = NOW + Duration::from_nanos(50);
    assert_eq!(server.statistics(later).jobs[0].clusters[0].aom_now_ns, Some(250));
}

#[test]
fn the_recent_age_that_an_answer_tells_is_that_of_the_newest_contribution() {
    let mut server = server(Aggregate::Each);
    merged(&mut server, 1, |update| {
        update.contributors = 3;
        let us = |us: u64| NOW.0 - us * 1_000;
        (update.generated_oldest_ns, update.generated_newest_ns) = (us(900), us(200));
    });
    let mut buf = [0; 512];
    let mut ages = None;
    while let Some(sent) = server.poll_transmit(NOW, PortId(0), &mut buf) {
        let packet = Packet::new_checked(&buf[..sent.len]).unwrap();
        let answer = Answer::parse(&packet).ok().filter(|answer| answer.acknowledges == 1);
        ages = answer.map(|answer| (answer.ages.own_us, answer.ages.mean_us)).or(ages);
    }
    assert_eq!(ages, Some((200, 200)));
}

#[test]
fn the_staleness_of_a_merge_is_midway_between_its_versions_and_its_largest_is_the_oldest_s() {
    let mut server = server(Aggregate::Each);
    reaches(&mut server, 9);
    let before = server.statistics(NOW).jobs[0].clone();
    merged(&mut server, 1, |update| {
        update.contributors = 2;
        (update.version_oldest, update.version_newest) = (1, 5);
    });
    let job = &server.statistics(NOW).jobs[0];
    let sum_before = before.staleness_mean.unwrap() * before.received as f64;
    let sum = job.staleness_mean.unwrap() * job.received as f64;
    assert!((sum - sum_before - 12.0).abs() < 1e-9, "two contributions, 6 versions behind each");
    assert_eq!(job.staleness_max, 8);
}

#[test]
fn a_merge_counts_as_midway_between_its_versions_where_it_changes_the_model() {
    // 8 and 4 versions behind: midway it is 6. A mean of a merge counts 1 / (1 + 6). Two steps that overlap
    // with six others count 2 / (2 + 6) of their mean.
    for (step, moves) in [(Step::Mean, 1.0 / 7.0), (Step::Overlap, 2.0 / 8.0)] {
        let rule = RuleConfig { step, staleness_power: 1.0, ..RuleConfig::default() };
        let mut server = with(ServerConfig { rule, ..ServerConfig::default() });
        reaches(&mut server, 9);
        let model = |server: &Server| server.model(JobId(1)).unwrap().1.next().unwrap()[0];
        let before = model(&server);
        merged(&mut server, 1, |update| {
            (update.contributors, update.weight) = (2, 1.0);
            (update.version_oldest, update.version_newest) = (1, 5);
        });
        let moved = model(&server) - before;
        assert!((moved - moves).abs() < 1e-5, "{step:?}: {moved}, not {moves}");
    }
}

#[test]
fn each_contributor_of_a_merge_is_a_delivery() {
    for aggregate in [
        Aggregate::Each,
        Aggregate::Periodic { contributions: Some(3), after: Duration::from_secs(1) },
    ] {
        let mut server = server(aggregate);
        merged(&mut server, 1, |update| update.contributors = 3);
        let job = &server.statistics(NOW).jobs[0];
        let fates = &job.fates;
        assert_eq!((job.received, fates.delivered_merged, fates.delivered_alone), (3, 3, 0));
        assert_eq!((job.deliveries, job.clusters[0].contributions), (1, 3));
    }
}

#[test]
fn each_contributor_of_a_merge_that_the_gate_keeps_out_is_counted() {
    for aggregate in [
        Aggregate::Each,
        Aggregate::Periodic { contributions: Some(3), after: Duration::from_secs(1) },
    ] {
        let rule = RuleConfig { gate: ServerGate::Best, ..RuleConfig::default() };
        let config = ServerConfig { rule, ..ServerConfig::default() };
        let mut server = with(config.aggregating(aggregate));
        for (number, reward) in [(1, 5.0), (2, 1.0)] {
            merged(&mut server, number, |update| {
                (update.contributors, update.reward) = (3, reward);
            });
        }
        let job = &server.statistics(NOW).jobs[0];
        let fates = &job.fates;
        assert_eq!((job.received, fates.delivered_merged, fates.gated), (6, 3, 3), "{aggregate:?}");
    }
}

#[test]
fn a_round_does_not_wait_for_a_worker_that_has_left_or_fell_silent() {
    for leaves in [true, false] {
        let mut server = server(Aggregate::Round { deadline: Duration::from_secs(60) });
        for worker in 0..2 {
            merged(&mut server, worker + 1, |update| {
                (update.address, update.contributors) = (olaf_samples::address(1, 0, worker), 1);
            });
        }
        let version = |server: &Server| server.model(JobId(1)).unwrap().0;
        assert_eq!(version(&server), 1, "worker 2 is missing");
        let mut buf = [0; 512];
        if leaves {
            let len = Leave { address: olaf_samples::address(1, 0, 2) }.emit(&mut buf);
            send(&mut server, NOW, &buf[..len]);
        } else {
            let later = |ms| NOW + Duration::from_millis(ms);
            for worker in 0..2 {
                let join = olaf_samples::join(olaf_samples::address(1, 0, worker), 1, 1);
                let len = join.emit(&mut buf);
                send(&mut server, later(1_900), &buf[..len]);
            }
            server.handle_timeout(later(1_950));
            assert_eq!(version(&server), 1);
            server.handle_timeout(later(2_100));
        }
        assert_eq!(version(&server), 2);
    }
}
