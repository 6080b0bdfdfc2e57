//! What only the inside can set up: counts that are about to begin anew.

use super::{Config, Switch};
use crate::engine::{Engine, Source};
use crate::ids::{PeerId, PortId};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use olaf_samples::{answer, join, update, welcome};
use olaf_wire::{Address, Answer, Kind, Leave, Packet, Update, Welcome, WelcomeCode};

const SERVER: PeerId = PeerId(9);
const WORKER: Source = Source::new(PortId::DOWNLINK, PeerId(1));
const ABOVE: Source = Source::new(PortId::UPLINK, SERVER);
const ADDRESS: Address = olaf_samples::address(1, 0, 4);

fn recv(switch: &mut Switch, from: Source, emit: impl FnOnce(&mut [u8]) -> usize) {
    let mut buf = vec![0; 512];
    let len = emit(&mut buf);
    switch.handle_packet(Instant(0), from, &buf[..len]);
}

fn drain(switch: &mut Switch, port: PortId) -> Vec<Vec<u8>> {
    let mut buf = vec![0; 512];
    core::iter::from_fn(|| {
        let sent = switch.poll_transmit(Instant(0), port, &mut buf)?;
        Some(buf[..sent.len].to_vec())
    })
    .collect()
}

#[test]
fn answers_find_their_sharers_across_the_largest_hop_sequence() {
    let mut switch = Switch::new(Config::default(), 5).expect("a configuration that can be");
    switch.set_default_server(SERVER);
    switch.forgotten_hop_sequence = u32::MAX - 2;
    let join = join(ADDRESS, 1, 1);
    recv(&mut switch, WORKER, |buf| join.emit(buf));
    recv(&mut switch, ABOVE, |buf| welcome(&join).emit(buf));
    drain(&mut switch, PortId::UPLINK);
    drain(&mut switch, PortId::DOWNLINK);

    // The worker's own count goes over the edge as well.
    for (own, expected) in [(u32::MAX, u32::MAX - 1), (1, u32::MAX), (2, 1), (3, 2)] {
        let update = Update { hop_sequence: own, ..update(ADDRESS, own) };
        recv(&mut switch, WORKER, |buf| update.emit(&[1.0], buf));
        let sent = drain(&mut switch, PortId::UPLINK);
        let packet = Packet::new_checked(&sent[0]).expect("an update");
        assert_eq!(Update::parse(&packet).expect("an update").hop_sequence, expected);
        let answer = answer(ADDRESS, expected);
        recv(&mut switch, ABOVE, |buf| answer.emit(&[], buf));
        let heard = drain(&mut switch, PortId::DOWNLINK);
        let packet = Packet::new_checked(&heard[0]).expect("an answer");
        assert_eq!(packet.kind(), Kind::Acknowledgement);
        assert_eq!(Answer::parse(&packet).expect("an answer").acknowledges, own);
    }
}

#[test]
fn the_workers_of_each_peer_are_counted_as_they_come_move_and_go() {
    let mut switch = Switch::new(Config::default(), 5).expect("a configuration that can be");
    switch.set_default_server(SERVER);
    let at = |peer| Source::new(PortId::DOWNLINK, PeerId(peer));
    let count = |switch: &Switch, peer| {
        let job = switch.jobs.values().next().expect("the job");
        assert!(job.members.are_counted());
        job.members.at(PeerId(peer))
    };
    let joins = [4, 5, 6].map(|worker| join(olaf_samples::address(1, 0, worker), 1, 1));
    for join in &joins {
        recv(&mut switch, WORKER, |buf| join.emit(buf));
        recv(&mut switch, WORKER, |buf| join.emit(buf));
    }
    assert_eq!(count(&switch, 1), 3);
    let refusal = Welcome { code: WelcomeCode::NotAdmitted, ..welcome(&joins[0]) };
    recv(&mut switch, ABOVE, |buf| refusal.emit(buf));
    assert_eq!(count(&switch, 1), 2);
    recv(&mut switch, WORKER, |buf| Leave { address: joins[1].address }.emit(buf));
    assert_eq!(count(&switch, 1), 1);
    // The last one moves when it has been silent, and is forgotten after that.
    let silent = Instant(0) + Config::default().silent_after;
    let mut buf = [0; 512];
    let len = joins[2].emit(&mut buf);
    switch.handle_packet(silent, at(2), &buf[..len]);
    assert_eq!((count(&switch, 1), count(&switch, 2)), (0, 1));
    switch.handle_timeout(silent + Config::default().silent_after);
    assert_eq!(count(&switch, 2), 0);
}

#[test]
fn departures_without_an_answer_are_remembered_up_to_a_limit() {
    let mut switch = Switch::new(Config::default(), 5).expect("a configuration that can be");
    switch.set_default_server(SERVER);
    let join = join(ADDRESS, 1, 1);
    recv(&mut switch, WORKER, |buf| join.emit(buf));
    recv(&mut switch, ABOVE, |buf| welcome(&join).emit(buf));
    drain(&mut switch, PortId::UPLINK);
    for own in 1..=5_000 {
        let update = Update { hop_sequence: own, ..update(ADDRESS, own) };
        recv(&mut switch, WORKER, |buf| update.emit(&[1.0], buf));
        assert_eq!(drain(&mut switch, PortId::UPLINK).len(), 1);
    }
    let job = switch.jobs.get(&ADDRESS.job).expect("its worker is in");
    let waiting = &job.clusters[&ADDRESS.cluster].unanswered;
    assert_eq!(waiting.len(), super::answers::UNANSWERED_LIMIT);
    assert_eq!(waiting.back().map(|last| last.hop_sequence), Some(job.hop_sequence));
}

/// A member keeps a cluster that gets no update; others join it, ask for notices, and leave.
#[test]
fn wishes_for_notices_go_with_their_workers() {
    let mut switch = Switch::new(Config::default(), 5).expect("a configuration that can be");
    switch.set_default_server(SERVER);
    let enters = |switch: &mut Switch, worker| {
        let address = Address { worker: olaf_wire::WorkerId(worker), ..ADDRESS };
        let join = olaf_wire::Join { wants_notices: true, ..join(address, 1, 1) };
        recv(switch, WORKER, |buf| join.emit(buf));
        recv(switch, ABOVE, |buf| welcome(&join).emit(buf));
        drain(switch, PortId::UPLINK);
        drain(switch, PortId::DOWNLINK);
        address
    };
    enters(&mut switch, 4);
    for worker in 100..1_100 {
        let address = enters(&mut switch, worker);
        recv(&mut switch, WORKER, |buf| Leave { address }.emit(buf));
        drain(&mut switch, PortId::UPLINK);
    }
    switch.check_silence(Instant(1));
    let job = &switch.jobs[&ADDRESS.job];
    assert_eq!((job.members.len(), job.clusters[&ADDRESS.cluster].wants_notices.len()), (1, 1));
}
