//! A server behind several switches, and a worker whose wishes nobody hears.

use core::time::Duration;
use olaf_engine::{Engine, Instant, PeerId, PortId, Source, Verdict};
use olaf_host::{Server, ServerConfig, Worker, WorkerConfig};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::{Address, Answer, Join, Kind, Packet, Update, Welcome};

const SWITCHES: [PeerId; 2] = [PeerId(71), PeerId(72)];
const START: Instant = Instant(1_000_000_000);

fn address(worker: u32) -> Address {
    olaf_samples::address(1, 0, worker)
}

fn join(worker: u32) -> Join {
    Join { clock_error_us: u32::MAX, hops: 1, ..olaf_samples::join(address(worker), 4, 2) }
}

fn segment(worker: u32, segment: u32) -> Update {
    Update { segment, segments: 2, hops: 1, ..olaf_samples::update(address(worker), 0) }
}

fn hears(
    host: &mut impl Engine,
    now: Instant,
    from: PeerId,
    emit: impl FnOnce(&mut [u8]) -> usize,
) {
    let mut buf = vec![0; MAX_DATAGRAM];
    let len = emit(&mut buf);
    assert_eq!(host.handle_packet(now, Source::end(from), &buf[..len]), Verdict::Absorb);
}

/// The receivers of segments of a model, with the version.
fn models(server: &mut Server, now: Instant) -> Vec<(PeerId, u32)> {
    let mut buf = vec![0; MAX_DATAGRAM];
    let mut models = Vec::new();
    while let Some(sent) = server.poll_transmit(now, PortId(0), &mut buf) {
        let packet = Packet::new_checked(&buf[..sent.len]).unwrap();
        if packet.kind() == Kind::Model {
            models.push((
                sent.to.one().expect("one receiver"),
                Answer::parse(&packet).unwrap().model_version,
            ));
        }
    }
    models.dedup();
    models
}

/// A server with a model of two segments and a worker behind each of two switches.
fn server() -> Server {
    let mut server = Server::new(ServerConfig::default(), 9).unwrap();
    for (worker, peer) in (0..).zip(SWITCHES) {
        hears(&mut server, START, peer, |buf| join(worker).emit(buf));
    }
    for segment in 0..2 {
        let offer = Answer { segment, segments: 2, ..olaf_samples::offer(address(0), 4) };
        hears(&mut server, START, SWITCHES[0], |buf| offer.emit(&[0.0, 0.0], buf));
    }
    assert!(models(&mut server, START).is_empty());
    server
}

#[test]
fn a_round_that_several_switches_made_complete_is_answered_to_each_of_them() {
    let mut server = server();
    for (worker, peer) in (0..).zip(SWITCHES) {
        hears(&mut server, START, peer, |buf| segment(worker, worker).emit(&[1.0, 1.0], buf));
    }
    assert_eq!(models(&mut server, START), SWITCHES.map(|peer| (peer, 2)));
}

#[test]
fn a_round_that_time_ends_is_answered_to_every_switch_that_delivered_in_it() {
    let mut server = server();
    for (worker, peer) in (0..).zip(SWITCHES) {
        hears(&mut server, START, peer, |buf| segment(worker, 0).emit(&[1.0, 1.0], buf));
    }
    assert!(models(&mut server, START).is_empty());
    let over = START + ServerConfig::default().round;
    server.handle_timeout(over);
    assert_eq!(models(&mut server, over), SWITCHES.map(|peer| (peer, 2)));
}

#[test]
fn wishes_that_nobody_answers_become_rarer_before_any_round_trip_is_known() {
    let switch = SWITCHES[0];
    let config = WorkerConfig { segment_lanes: 2, ..WorkerConfig::new(address(0), switch) };
    let keepalive = config.keepalive;
    let mut worker = Worker::new(config);
    worker.join(START, &[&[0.0; 4]]).unwrap();
    let mut buf = vec![0; MAX_DATAGRAM];
    while worker.poll_transmit(START, PortId(0), &mut buf).is_some() {}
    let ready = Welcome {
        version: 7,
        echoed_sent_at_ns: START.0,
        received_at_ns: START.0,
        sent_at_ns: START.0,
        switch_epoch: 3,
        ..olaf_samples::welcome(&join(0))
    };
    hears(&mut worker, START, switch, |buf| ready.emit(buf));
    let mut asked = Vec::new();
    let end = START + Duration::from_secs(10);
    while let Some((at, _)) = worker.poll_timeout().filter(|(at, _)| *at <= end) {
        worker.handle_timeout(at);
        while let Some(sent) = worker.poll_transmit(at, PortId(0), &mut buf) {
            if Packet::new_checked(&buf[..sent.len]).unwrap().kind() == Kind::Fetch {
                asked.push(at);
            }
        }
    }
    let gaps: Vec<Duration> = asked.windows(2).map(|two| two[1].since(two[0])).collect();
    assert!(gaps.windows(2).all(|two| two[0] <= two[1]), "{gaps:?}");
    assert!((15..30).contains(&gaps.len()), "{} wishes in ten seconds", gaps.len());
    assert_eq!(gaps.last(), Some(&keepalive), "and never stop");
}
