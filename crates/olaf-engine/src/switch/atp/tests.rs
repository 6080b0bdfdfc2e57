//! The switch alone: traces of packets.

use super::*;
use crate::engine::{Ecn, TrafficClass};
use crate::event::SumEvent;
use crate::ids::{JobId, Session};
use crate::party::{Tenant, Tenants};
use crate::sums::CONTESTED;
use alloc::vec;
use core::time::Duration;
use olaf_wire::Refusal;
use olaf_wire::Sides;
use olaf_wire::atp::{ANY, Closed, Header, Join, Key, Leave, Left, Upper, VALUES, Welcome};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{Reason, WelcomeCode};

const SERVER: PeerId = PeerId(90);
const ID: u32 = 7;

struct Trace {
    switch: Switch,
    now: Instant,
}

fn worker(number: u32) -> PeerId {
    PeerId(number)
}

/// The packet of a worker of one group.
fn piece(sequence: u16, number: u32, workers: u8) -> Header {
    Header {
        bitmap0: 1 << number,
        bitmap1: 1,
        fan_in0: workers,
        fan_in1: 1,
        job: 1,
        sequence,
        index: sequence,
        key: Key::new(3, 0, 0),
        tensor_length: 1000,
        ..Header::default()
    }
}

fn join(session: u32, rank: u32) -> Join {
    Join {
        job: 1,
        server: 0,
        session: Session(session),
        rank,
        workers: 4,
        generation: 0,
        closed: 0,
        values: VALUES,
        aggregators: 0,
        switches: [0; 4],
        sent_at_us: 1,
        scale: 1e8,
        servers: 1,
        window: 200,
        nonce: 0,
        operations: ANY,
        program: 0,
    }
}

/// The server's welcome for a worker whose packets have that header.
fn welcome(session: u32, header: &Header) -> Welcome {
    Welcome {
        job: 1,
        server: 0,
        session: Session(session),
        rank: 0,
        workers: 4,
        here: 4,
        code: WelcomeCode::Welcome,
        edge: header.edge,
        same_switch: header.same_switch,
        generation: 3,
        life: 3,
        values: VALUES,
        window: 100,
        bitmap0: header.bitmap0,
        bitmap1: header.bitmap1,
        fan_in0: header.fan_in0,
        fan_in1: header.fan_in1,
        aggregators: 16,
        sent_at_us: 1,
        sequence: 0,
        upper: header.upper,
        nonce: 0,
        operations: 0,
    }
}

fn parameters(sequence: u16) -> Header {
    let Header { job, index, key, tensor_length, .. } = piece(sequence, 0, 1);
    Header { ack: true, job, sequence, index, key, tensor_length, ..Header::default() }
}

fn written(header: &Header, lane: i32) -> Vec<u8> {
    let mut bytes = vec![0; header.datagram_len(2)];
    header.emit(&[lane.to_be_bytes(), (-lane).to_be_bytes()].concat(), &mut bytes);
    bytes
}

impl Trace {
    fn new(aggregators: u32, workers: u32) -> Self {
        let config = Config { aggregators, silence: CONTESTED, ..Config::default() };
        let mut switch = Switch::new(config, ID).expect("the set-up can be");
        switch.set_servers(&[SERVER]);
        let mut trace = Self { switch, now: Instant(1_000_000_000) };
        for number in 0..workers {
            trace.join(number);
            let fan_in = u8::try_from(workers).expect("a few");
            trace.welcome(&welcome(100 + number, &piece(0, number, fan_in)));
        }
        trace.up();
        trace.leaves(PortId::DOWNLINK);
        trace
    }

    fn join(&mut self, number: u32) {
        assert_eq!(self.say(number, &join(100 + number, number)), Verdict::Absorb);
    }

    fn say(&mut self, number: u32, join: &Join) -> Verdict {
        let mut buf = [0; 128];
        let len = join.emit(&mut buf);
        self.recv_below(worker(number), &buf[..len])
    }

    fn welcome(&mut self, welcome: &Welcome) {
        let mut buf = [0; 128];
        let len = welcome.emit(&mut buf);
        assert_eq!(self.recv_above(&buf[..len]), Verdict::Absorb);
    }

    /// That peer is a switch. The workers whose bits such a packet has are behind it.
    fn is_a_switch(&mut self, number: u32, header: &Header) {
        let bits =
            |level: usize| (0..32).filter(move |bit| header.bitmap(level).max(1) >> bit & 1 == 1);
        for (first, second) in bits(0).flat_map(|first| bits(1).map(move |second| (first, second)))
        {
            let group = header.upper.map_or(0, |upper| {
                upper.bitmaps.iter().fold(0, |group, bits| group * 32 + bits.trailing_zeros())
            });
            let session = 1000 + first + 100 * second + 10_000 * group;
            let switches = [ID + 1, 0, 0, 0];
            let join = Join { switches, ..join(session, 0) };
            assert_eq!(self.say(number, &join), Verdict::Absorb);
            let seat = Header { bitmap0: 1 << first, bitmap1: 1 << second, ..*header };
            self.welcome(&welcome(session, &seat));
        }
        self.leaves(PortId::UPLINK);
        self.leaves(PortId::DOWNLINK);
    }

    fn recv_below(&mut self, peer: PeerId, bytes: &[u8]) -> Verdict {
        self.switch.handle_packet(self.now, Source::new(PortId::DOWNLINK, peer), bytes)
    }

    fn recv_above(&mut self, bytes: &[u8]) -> Verdict {
        self.switch.handle_packet(self.now, Source::new(PortId::UPLINK, SERVER), bytes)
    }

    fn send(&mut self, header: Header, lane: i32) {
        let number = header.bitmap0.trailing_zeros();
        assert_eq!(self.recv_below(worker(number), &written(&header, lane)), Verdict::Absorb);
    }

    fn leaves(&mut self, port: PortId) -> Vec<(Vec<PeerId>, Vec<u8>)> {
        let mut buf = vec![0; MAX_DATAGRAM];
        core::iter::from_fn(|| {
            let sent = self.switch.poll_transmit(self.now, port, &mut buf)?;
            Some((sent.to.as_slice().to_vec(), buf[..sent.len].to_vec()))
        })
        .collect()
    }

    /// What went to the server: the headers with the first value.
    fn up(&mut self) -> Vec<(Header, i32)> {
        let all = self.leaves(PortId::UPLINK).into_iter().filter_map(|(to, bytes)| {
            assert_eq!(to, [SERVER]);
            let packet = AtpPacket::new_checked(&bytes).expect("the switch writes messages");
            let lane = packet.values().first_chunk().map(|lane| i32::from_be_bytes(*lane));
            Header::parse(&packet).ok().zip(lane)
        });
        all.collect()
    }
}

#[test]
fn the_sum_leaves_with_the_last_packet_and_its_parameters_are_copied_to_all() {
    let mut trace = Trace::new(16, 3);
    trace.send(piece(5, 0, 3), 1);
    trace.send(piece(5, 1, 3), 2);
    assert!(trace.up().is_empty());
    trace.send(piece(5, 2, 3), 4);
    let whole = Header { bitmap0: 7, edge: true, ..piece(5, 2, 3) };
    assert_eq!(trace.up(), [(whole, 7)]);
    let answer = written(&parameters(5), 9);
    assert_eq!(trace.recv_above(&answer), Verdict::Absorb);
    let all = [0, 1, 2].map(worker).to_vec();
    assert_eq!(trace.leaves(PortId::DOWNLINK), [(all, answer)]);
    assert_eq!(trace.switch.statistics().used_aggregators, 0);
}

#[test]
fn a_collision_is_marked_and_goes_on_alone() {
    let mut trace = Trace::new(16, 2);
    trace.send(piece(5, 0, 2), 1);
    let other = Header { index: 5, ..piece(6, 1, 2) };
    trace.send(other, 2);
    let marked = Header { resend: true, collision: true, edge: true, ..other };
    assert_eq!(trace.up(), [(marked, 2)]);
}

#[test]
fn a_resent_packet_takes_the_partial_sum_along() {
    let mut trace = Trace::new(16, 3);
    trace.send(piece(5, 0, 3), 1);
    let resent = Header { resend: true, ..piece(5, 1, 3) };
    trace.send(resent, 2);
    assert_eq!(trace.up(), [(Header { bitmap0: 3, edge: true, ..resent }, 3)]);
    let late = Header { resend: true, ..piece(5, 2, 3) };
    trace.send(late, 4);
    assert_eq!(trace.up(), [(Header { edge: true, ..late }, 4)]);
}

#[test]
fn the_second_level_adds_whole_groups_and_throws_away_when_one_is_resent() {
    let mut trace = Trace::new(16, 0);
    let group = |number: u32| Header {
        bitmap0: 3,
        bitmap1: 1 << number,
        fan_in0: 2,
        fan_in1: 2,
        edge: true,
        ..piece(5, number, 2)
    };
    [0, 1].iter().for_each(|number| trace.is_a_switch(0, &group(*number)));
    let send = |trace: &mut Trace, header: Header, lane: i32| {
        assert_eq!(trace.recv_below(worker(0), &written(&header, lane)), Verdict::Absorb);
    };
    send(&mut trace, group(0), 10);
    send(&mut trace, group(1), 20);
    let whole = Header { bitmap0: 0, bitmap1: 3, ..group(1) };
    assert_eq!(trace.up(), [(whole, 30)]);
    trace.recv_above(&written(&parameters(5), 1));
    // Of the next fragment a part comes, which may not be added.
    let next = |header: Header| Header { sequence: 6, index: 6, ..header };
    send(&mut trace, next(group(0)), 10);
    let part = Header { bitmap0: 1, ..next(group(1)) };
    send(&mut trace, part, 5);
    assert_eq!(trace.up(), [(Header { resend: true, ..part }, 5)]);
    let of = trace.switch.statistics().pieces;
    assert_eq!((of.discarded, of.waiting), (1, 0), "the other group is sent again, too");
}

#[test]
fn more_than_32_workers_are_groups_that_meet_at_the_same_switch() {
    let mut trace = Trace::new(256, 0);
    let of = |group: u32, number: u32, fan_in0: u8| Header {
        bitmap0: 1 << number,
        bitmap1: 1 << group,
        fan_in0,
        fan_in1: 2,
        same_switch: true,
        ..piece(5, number, fan_in0)
    };
    trace.is_a_switch(0, &Header { bitmap0: u32::MAX, ..of(0, 0, 32) });
    trace.is_a_switch(1, &Header { bitmap0: 0xff, ..of(1, 0, 8) });
    for number in 0..32 {
        let bytes = written(&of(0, number, 32), 1);
        trace.recv_below(worker(0), &bytes);
    }
    for number in 0..8 {
        assert!(trace.up().is_empty());
        let bytes = written(&of(1, number, 8), 1);
        trace.recv_below(worker(1), &bytes);
    }
    let whole = Header { bitmap0: 0, bitmap1: 3, edge: true, ..of(1, 7, 8) };
    assert_eq!(trace.up(), [(whole, 40)]);
    trace.recv_above(&written(&parameters(5), 1));
    assert_eq!(trace.switch.statistics().used_aggregators, 0, "three were in use");
}

/// A packet on its way to the third level, where three groups meet, in a job with four.
fn high(group: u32, bitmaps: [u32; 2], fan_ins: [u8; 2]) -> Header {
    let upper =
        Upper { bitmaps: [1 << group, 2], fan_ins: [3, 2], passed: 1, same_switch: [false; 2] };
    Header {
        bitmap0: bitmaps[0],
        bitmap1: bitmaps[1],
        fan_in0: fan_ins[0],
        fan_in1: fan_ins[1],
        edge: true,
        upper: Some(upper),
        ..piece(5, 0, 1)
    }
}

#[test]
fn the_third_level_adds_whole_groups_whatever_they_were_made_of() {
    let mut trace = Trace::new(16, 0);
    // All of a group's groups, a group of one group, and a worker.
    let three = [high(0, [0, 3], [4, 2]), high(1, [7, 1], [3, 1]), high(2, [1, 1], [1, 1])];
    three.iter().for_each(|header| trace.is_a_switch(0, header));
    for (header, lane) in three.into_iter().zip([10, 20, 30]) {
        assert!(trace.up().is_empty());
        trace.recv_below(worker(0), &written(&header, lane));
    }
    let upper = Upper { bitmaps: [7, 2], passed: 2, ..three[2].upper.expect("it has one") };
    let whole = Header { bitmap0: 0, bitmap1: 0, upper: Some(upper), ..three[2] };
    assert_eq!(trace.up(), [(whole, 60)]);
    trace.recv_above(&written(&parameters(5), 1));
    assert_eq!(trace.switch.statistics().used_aggregators, 0);
}

#[test]
fn the_third_level_throws_away_when_a_part_comes() {
    // A part of the first group, and of the second one's: each says so in another bitmap.
    for part in [high(1, [3, 1], [4, 1]), high(1, [15, 1], [4, 2])] {
        let mut trace = Trace::new(16, 0);
        [high(0, [0, 3], [4, 2]), part].iter().for_each(|header| trace.is_a_switch(0, header));
        trace.recv_below(worker(0), &written(&high(0, [0, 3], [4, 2]), 10));
        trace.recv_below(worker(0), &written(&part, 5));
        let upper = Upper { passed: 2, ..part.upper.expect("it has one") };
        let passed = Header { resend: true, upper: Some(upper), ..part };
        assert_eq!(trace.up(), [(passed, 5)]);
        let of = trace.switch.statistics().pieces;
        assert_eq!((of.discarded, of.waiting), (1, 0));
    }
}

#[test]
fn a_packet_that_has_passed_all_levels_is_passed_on() {
    let mut trace = Trace::new(16, 0);
    let upper = Upper { bitmaps: [1, 3], fan_ins: [1, 3], passed: 3, same_switch: [false; 2] };
    let beyond = Header { bitmap0: 0, bitmap1: 0, upper: Some(upper), ..high(0, [1, 1], [1, 1]) };
    let beyond = Header { upper: Some(Upper { bitmaps: [0, 3], ..upper }), ..beyond };
    for bit in [1, 2] {
        let upper = Upper { bitmaps: [1, bit], ..upper };
        trace.is_a_switch(0, &Header { upper: Some(upper), ..beyond });
    }
    trace.recv_below(worker(0), &written(&beyond, 10));
    assert_eq!(trace.up(), [(beyond, 10)]);
    assert_eq!(trace.switch.statistics().pieces.received, 0);
}

#[test]
fn congestion_on_the_way_is_kept_in_the_sum_and_in_the_answer() {
    let mut trace = Trace::new(16, 2);
    let class = TrafficClass::new(0, Ecn::Marked);
    let below = Source { class, ..Source::new(PortId::DOWNLINK, worker(0)) };
    trace.switch.handle_packet(trace.now, below, &written(&piece(5, 0, 2), 1));
    trace.send(piece(5, 1, 2), 2);
    assert!(trace.up()[0].0.ecn);
    let above = Source { class, ..Source::new(PortId::UPLINK, SERVER) };
    trace.switch.handle_packet(trace.now, above, &written(&parameters(5), 1));
    let answer = written(&Header { ecn: true, ..parameters(5) }, 1);
    assert_eq!(trace.leaves(PortId::DOWNLINK)[0].1, answer);
}

#[test]
fn a_join_says_which_switches_it_passed_and_the_welcome_finds_its_way_back() {
    let mut trace = Trace::new(16, 0);
    trace.join(1);
    let sent = trace.leaves(PortId::UPLINK);
    let packet = AtpPacket::new_checked(&sent[0].1).expect("a join");
    let join = Join::parse(&packet).expect("a join");
    assert_eq!((join.switches, join.aggregators), ([ID, 0, 0, 0], 16));
    let welcome = Welcome {
        job: 1,
        server: 0,
        session: Session(101),
        rank: 0,
        workers: 1,
        here: 1,
        code: WelcomeCode::Welcome,
        edge: false,
        same_switch: false,
        generation: 4,
        life: 4,
        values: VALUES,
        window: 100,
        bitmap0: 1,
        bitmap1: 1,
        fan_in0: 1,
        fan_in1: 1,
        aggregators: 16,
        sent_at_us: 1,
        sequence: 0,
        upper: None,
        nonce: 0,
        operations: 0,
    };
    let mut buf = [0; 128];
    let len = welcome.emit(&mut buf);
    assert_eq!(trace.recv_above(&buf[..len]), Verdict::Absorb);
    assert_eq!(trace.leaves(PortId::DOWNLINK), [(vec![worker(1)], buf[..len].to_vec())]);
    let len = Welcome { session: Session(9), ..welcome }.emit(&mut buf);
    assert_eq!(trace.recv_above(&buf[..len]), Verdict::Drop(DropReason::UnknownReceiver));
}

#[test]
fn aggregators_of_a_closed_generation_or_a_silent_job_are_freed() {
    let mut trace = Trace::new(16, 2);
    trace.send(piece(5, 0, 2), 1);
    let closed = Closed {
        job: 1,
        server: 0,
        life: 3,
        reason: Reason::Dead,
        tensor: 0,
        culprit: 1,
        sides: Sides::default(),
    };
    let mut buf = [0; 64];
    let len = closed.emit(&mut buf);
    assert_eq!(trace.recv_above(&buf[..len]), Verdict::Absorb);
    assert_eq!(trace.leaves(PortId::DOWNLINK).len(), 1);
    assert_eq!(trace.switch.statistics().used_aggregators, 0);
    trace.send(piece(6, 0, 2), 1);
    trace.now = trace.now + Duration::from_secs(3);
    trace.switch.handle_timeout(trace.now);
    let of = trace.switch.statistics();
    assert_eq!((of.used_aggregators, of.jobs.len()), (0, 0));
}

#[test]
fn strangers_and_wrong_directions_leave_no_state() {
    let mut trace = Trace::new(16, 1);
    let bytes = written(&piece(5, 3, 4), 1);
    assert_eq!(trace.recv_below(worker(3), &bytes), Verdict::Absorb);
    let passed = Header { resend: true, edge: true, ..piece(5, 3, 4) };
    assert_eq!(trace.up(), [(passed, 1)], "the server decides");
    assert_eq!(trace.switch.statistics().used_aggregators, 0);
    assert_eq!(trace.recv_above(&bytes), Verdict::Drop(DropReason::WrongDirection));
    let answer = written(&parameters(5), 1);
    assert_eq!(trace.recv_below(worker(0), &answer), Verdict::Drop(DropReason::WrongDirection));
    let other = Source::new(PortId::UPLINK, PeerId(91));
    let verdict = trace.switch.handle_packet(trace.now, other, &answer);
    assert_eq!(verdict, Verdict::Drop(DropReason::NotTheServer));
}

#[test]
fn where_addresses_are_proved_the_server_hears_of_no_strangers_gradient() {
    let mut trace = Trace::new(16, 2);
    trace.switch.demand_proofs(alloc::boxed::Box::new(|| 40));
    let refused = Verdict::Drop(DropReason::NotAMember);
    assert_eq!(trace.recv_below(worker(66), &written(&piece(5, 1, 2), 9)), refused);
    assert!(trace.up().is_empty());
    trace.send(piece(5, 0, 2), 1);
    trace.send(piece(5, 1, 2), 2);
    let whole = Header { bitmap0: 3, edge: true, ..piece(5, 1, 2) };
    assert_eq!(trace.up(), [(whole, 3)]);
    assert_eq!(trace.switch.counters.strangers, 1);
}

#[test]
fn a_leave_counts_from_its_workers_address_alone() {
    let mut trace = Trace::new(16, 2);
    let leave = |session| {
        let mut bytes = vec![0; 64];
        let leave =
            Leave { job: 1, server: 0, session: Session(session), life: 3, reason: Reason::Left };
        let len = leave.emit(&mut bytes);
        bytes.truncate(len);
        bytes
    };
    let drops = |reason| Verdict::Drop(reason);
    for (peer, session, verdict) in [
        (66, 101, drops(DropReason::WrongSender)),
        (0, 101, drops(DropReason::WrongSender)),
        (1, 177, drops(DropReason::NotAMember)),
    ] {
        assert_eq!(trace.recv_below(worker(peer), &leave(session)), verdict, "{peer} {session}");
    }
    let members = |trace: &Trace| trace.switch.statistics().jobs[0].workers;
    assert_eq!((trace.leaves(PortId::UPLINK), members(&trace)), (vec![], 2));
    assert_eq!(trace.recv_below(worker(1), &leave(101)), Verdict::Absorb);
    assert_eq!(trace.leaves(PortId::UPLINK), [(vec![SERVER], leave(101))]);
    assert_eq!(members(&trace), 1);
}

#[test]
fn a_join_of_a_job_that_is_not_in_the_list_is_dropped_counted_and_named() {
    let mut trace = Trace::new(8, 0);
    let listed = Tenants::only([(JobId(2), Tenant::default())]);
    let config = Config { tenants: listed, ..Config::default() };
    trace.switch = Switch::new(config, ID).expect("the set-up can be");
    trace.switch.set_servers(&[SERVER]);
    let join = |job| Join { job, ..join(5, 0) };
    let mut buf = [0; 128];
    let len = join(1).emit(&mut buf);
    let refused = Verdict::Drop(DropReason::SumJoinRefused(WelcomeCode::Refused));
    for _ in 0..1000 {
        assert_eq!(trace.recv_below(worker(3), &buf[..len]), refused);
    }
    assert_eq!(trace.switch.statistics().refused["refused"], 1000);
    let told: Vec<_> = core::iter::from_fn(|| trace.switch.poll_event()).collect();
    let event = SumEvent::WorkerRefused { peer: worker(3), code: WelcomeCode::Refused };
    assert_eq!((told.len(), &told[0]), (4, &Event::Sum(JobId(1), event)));
    let len = join(2).emit(&mut buf);
    assert_eq!(trace.recv_below(worker(3), &buf[..len]), Verdict::Absorb);
}

fn left(session: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let len = Left { job: 1, server: 0, session: Session(session) }.emit(&mut bytes);
    bytes.truncate(len);
    bytes
}

#[test]
fn a_leave_goes_up_again_until_the_server_has_heard_it() {
    let mut trace = Trace::new(16, 2);
    let reason = Reason::Left;
    let leave = Leave { job: 1, server: 0, session: Session(101), life: 3, reason };
    let mut buf = [0; 64];
    let len = leave.emit(&mut buf);
    for _ in 0..3 {
        assert_eq!(trace.recv_below(worker(1), &buf[..len]), Verdict::Absorb);
        assert_eq!(trace.leaves(PortId::UPLINK), [(vec![SERVER], buf[..len].to_vec())]);
    }
    let another = trace.recv_below(worker(0), &buf[..len]);
    assert_eq!(another, Verdict::Drop(DropReason::NotAMember), "it is not the worker");
    assert_eq!(trace.recv_above(&left(101)), Verdict::Absorb);
    assert_eq!(trace.leaves(PortId::DOWNLINK), [(vec![worker(1)], left(101))]);
    let unknown = Verdict::Drop(DropReason::UnknownReceiver);
    assert_eq!(trace.recv_above(&left(101)), unknown, "it was confirmed");
    let late = trace.recv_below(worker(1), &buf[..len]);
    assert_eq!(late, Verdict::Drop(DropReason::NotAMember));
    assert_eq!(trace.leaves(PortId::UPLINK), []);
}

#[test]
fn a_worker_at_whose_address_another_session_joins_is_dead() {
    let mut trace = Trace::new(16, 2);
    let kinds = |trace: &mut Trace| -> Vec<(Kind, u32, u8)> {
        let up = trace.leaves(PortId::UPLINK).into_iter();
        let named = up.map(|(_, bytes)| {
            let kind = AtpPacket::new_checked(&bytes).expect("well-formed").kind();
            let session = u32::from_be_bytes(bytes[18..22].try_into().expect("four bytes"));
            (kind, session, if kind == Kind::Leave { bytes[24] } else { 0 })
        });
        named.collect()
    };
    let dead = (Kind::Leave, 101, Reason::Dead as u8);
    for _ in 0..2 {
        assert_eq!(trace.say(1, &join(201, 1)), Verdict::Absorb);
        assert_eq!(kinds(&mut trace), [dead, (Kind::Join, 201, 0)], "until it is confirmed");
    }
    trace.leaves(PortId::DOWNLINK);
    assert_eq!(trace.recv_above(&left(101)), Verdict::Absorb);
    assert_eq!(trace.leaves(PortId::DOWNLINK), [], "nobody waits for it");
    assert_eq!(trace.say(1, &join(201, 1)), Verdict::Absorb);
    assert_eq!(kinds(&mut trace), [(Kind::Join, 201, 0)]);
    // Behind a lower switch there are many workers, and that one knows their addresses.
    for session in [301, 302] {
        let behind = Join { switches: [ID + 1, 0, 0, 0], ..join(session, 0) };
        assert_eq!(trace.say(7, &behind), Verdict::Absorb);
        assert_eq!(kinds(&mut trace), [(Kind::Join, session, 0)]);
    }
}

mod strangers;

#[test]
fn a_worker_of_another_version_is_told_so_and_one_above_is_not() {
    let mut trace = Trace::new(16, 0);
    let mut buf = [0; 128];
    let len = join(100, 0).emit(&mut buf);
    buf[9] = 1;
    let refused =
        Verdict::Drop(DropReason::Malformed(Refusal::WrongVersion { have: 1, speaks: 4 }));
    assert_eq!(trace.recv_above(&buf[..len]), refused);
    assert_eq!(trace.leaves(PortId::DOWNLINK), []);
    assert_eq!(trace.recv_below(worker(3), &buf[..len]), refused);
    let [(to, answer)] = &trace.leaves(PortId::DOWNLINK)[..] else { panic!("one answer") };
    assert_eq!(to, &[worker(3)]);
    let answer = Welcome::parse(&AtpPacket::new_checked(answer).expect("well-formed"));
    let answer = answer.expect("well-formed");
    assert_eq!((answer.code, answer.session), (WelcomeCode::OtherVersion, Session(100)));
    assert!(trace.switch.jobs.is_empty());
}
