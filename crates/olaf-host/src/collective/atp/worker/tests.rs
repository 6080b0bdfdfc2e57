//! Traces of a worker: what it sends after which message.

use super::*;
use crate::collective::atp::Factor;
use crate::collective::{Buffer, Label};
use alloc::boxed::Box;
use core::time::Duration;
use olaf_engine::{JobId, Refused};
use olaf_wire::Refusal;
use olaf_wire::Sides;
use olaf_wire::atp::{
    AtpPacket, Closed, Header, Join, Key, Kind, Left, Welcome, answer_to_another_version,
};
use olaf_wire::ids::Session;

const START: Instant = Instant(1_000_000_000);
const SWITCH: PeerId = PeerId(9);
const GENERATION: u16 = 5;

const fn at(us: u64) -> Instant {
    Instant(START.0 + 1000 * us)
}

/// A worker of two that is in, with one value a packet and these windows.
fn worker(first_packets: u32, window: u16, own: Options) -> Worker {
    let own = Options { values: 1, first_packets, most_packets: window.into(), ..own };
    let config = Config { workers: 2, ..Config::new(JobId(1), Session(7), SWITCH) };
    let mut worker = Worker::new(config, own).expect("it can be");
    worker.join(START);
    let mut buf = [0; 2048];
    let join = worker.poll_transmit(START, PortId(0), &mut buf).expect("a join");
    assert_eq!(AtpPacket::new_checked(&buf[..join.len]).expect("well-formed").kind(), Kind::Join);
    let welcome = Welcome {
        job: 1,
        server: 0,
        session: Session(7),
        rank: 0,
        workers: 2,
        here: 2,
        code: WelcomeCode::Welcome,
        edge: false,
        same_switch: true,
        generation: GENERATION,
        life: GENERATION,
        values: 1,
        window,
        bitmap0: 1,
        bitmap1: 1,
        fan_in0: 2,
        fan_in1: 1,
        aggregators: 64,
        sent_at_us: 0,
        sequence: 0,
        upper: None,
        nonce: 0,
        operations: 0,
    };
    let len = welcome.emit(&mut buf);
    assert_eq!(worker.handle_packet(START, Source::end(SWITCH), &buf[..len]), Verdict::Absorb);
    assert!(matches!(worker.standing(), Standing::In { rank: 0, .. }));
    worker
}

/// Begins a sum of these lanes.
fn begin(worker: &mut Worker, lanes: &[f32]) {
    let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
    let buffer: Box<dyn Buffer> = Box::new(bytes);
    let operation = Operation {
        lane_type: LaneType::F32,
        reduction: Reduction::Sum,
        buffer,
        accepts_partial: false,
        label: Label::default(),
    };
    assert!(worker.begin(START, operation).is_ok());
}

/// The packets that the worker sends now, with their value.
fn sends(worker: &mut Worker, now: Instant) -> Vec<(Header, [u8; 4])> {
    let mut buf = [0; 2048];
    let mut sent = Vec::new();
    while let Some(transmit) = worker.poll_transmit(now, PortId(0), &mut buf) {
        let packet = AtpPacket::new_checked(&buf[..transmit.len]).expect("well-formed");
        let value = packet.values().try_into().expect("one value");
        sent.push((Header::parse(&packet).expect("a fragment"), value));
    }
    sent
}

/// The sequence numbers of the packets that leave now, and whether they have the flag `resend`.
fn sequences(worker: &mut Worker, now: Instant) -> Vec<(u16, bool)> {
    sends(worker, now).iter().map(|(header, _)| (header.sequence, header.resend)).collect()
}

/// A parameter packet of the first operation, which has that many lanes.
fn answer(sequence: u16, lanes: u32) -> Header {
    Header {
        ack: true,
        job: 1,
        sequence,
        key: Key::new(GENERATION, 0, sequence.into()),
        tensor_length: lanes,
        ..Header::default()
    }
}

fn receives(worker: &mut Worker, now: Instant, header: Header) {
    let mut buf = [0; 256];
    let values: &[u8] = if header.overflow { &[] } else { &1f32.to_be_bytes() };
    let len = header.emit(values, &mut buf);
    assert_eq!(worker.handle_packet(now, Source::end(SWITCH), &buf[..len]), Verdict::Absorb);
}

#[test]
fn three_later_answers_mean_a_loss_and_the_loss_of_the_resent_packet_too() {
    let mut worker = worker(4, 64, Options::default());
    begin(&mut worker, &[1.0; 60]);
    let sent = sequences(&mut worker, at(0));
    assert_eq!(sent, [(0, false), (1, false), (2, false), (3, false)]);
    let mut before = Vec::new();
    for sequence in [1, 2] {
        receives(&mut worker, at(1000), answer(sequence, 60));
        before.extend(sequences(&mut worker, at(1000)));
    }
    assert!(before.iter().all(|(_, resend)| !resend), "not yet: {before:?}");
    receives(&mut worker, at(1000), answer(3, 60));
    let sent = sequences(&mut worker, at(1000));
    // The resent packet is lost, and the three behind it are answered.
    let [(0, true), (a, false), (b, false), (c, false), ..] = sent[..] else { panic!("{sent:?}") };
    for sequence in before.into_iter().map(|(sequence, _)| sequence).chain([a, b]) {
        receives(&mut worker, at(2000), answer(sequence, 60));
        assert!(!sequences(&mut worker, at(2000)).contains(&(0, true)));
    }
    receives(&mut worker, at(2000), answer(c, 60));
    assert!(sequences(&mut worker, at(2000)).contains(&(0, true)));
    assert_eq!(worker.statistics().time_outs, 0);
}

#[test]
fn an_overdue_packet_is_sent_again_and_then_after_twice_the_time() {
    let mut worker = worker(8, 64, Options::default());
    begin(&mut worker, &[1.0; 3]);
    assert_eq!(sequences(&mut worker, at(0)).len(), 3);
    let (due, why) = worker.poll_timeout().expect("a time-out");
    assert_eq!((due, why), (at(5000), Why::Retransmission));
    worker.handle_timeout(due);
    assert_eq!(sequences(&mut worker, due), [(0, true), (1, true), (2, true)]);
    assert_eq!(worker.poll_timeout().map(|(due, _)| due), Some(at(15_000)));
    assert_eq!(worker.statistics().time_outs, 1);
}

#[test]
fn after_a_time_out_the_expected_fragment_needs_no_room_in_the_window() {
    let mut worker = worker(8, 64, Options::default());
    begin(&mut worker, &[1.0; 8]);
    assert_eq!(sequences(&mut worker, at(0)).len(), 8);
    for (sequence, us) in [(1, 1000), (2, 3000), (3, 6000)] {
        receives(&mut worker, at(us), Header { ecn: true, ..answer(sequence, 8) });
    }
    let of = &worker.statistics().flows[0];
    assert_eq!((of.window_packets, of.in_flight), (1, 5));
    assert_eq!(sequences(&mut worker, at(6000)), [], "fragment 0 is lost, and waits for room");
    let due = worker.flows[0].timer().expect("a time-out");
    worker.handle_timeout(due);
    assert_eq!(sequences(&mut worker, due)[0], (0, true));
}

#[test]
fn a_marked_answer_halves_the_window_once_in_a_round_trip() {
    let mut worker = worker(16, 64, Options::default());
    begin(&mut worker, &[1.0; 64]);
    assert_eq!(sequences(&mut worker, at(0)).len(), 16);
    for sequence in 0..3 {
        receives(&mut worker, at(1000), Header { ecn: true, ..answer(sequence, 64) });
        assert_eq!(worker.statistics().flows[0].window_packets, 8);
    }
    receives(&mut worker, at(3000), Header { ecn: true, ..answer(3, 64) });
    assert_eq!(worker.statistics().flows[0].window_packets, 4);
}

#[test]
fn a_server_that_asks_for_f32_gets_f32() {
    let mut worker = worker(8, 64, Options::default());
    begin(&mut worker, &[30.0, 0.5]);
    let integers: Vec<_> = sends(&mut worker, at(0)).iter().map(|(_, value)| *value).collect();
    assert_eq!(integers, [i32::MAX, 50_000_000].map(i32::to_be_bytes));
    receives(&mut worker, at(1000), Header { overflow: true, ..answer(0, 2) });
    let floats = sends(&mut worker, at(1000));
    let [(header, value)] = floats.as_slice() else { panic!("{floats:?}") };
    assert_eq!((header.sequence, header.overflow, header.resend), (0, true, true));
    assert_eq!(*value, 30f32.to_be_bytes());
    assert_eq!(worker.open_operations(), 1, "a request is no answer");
}

#[test]
fn a_new_index_and_a_new_factor_hold_a_window_later() {
    let own = Options { factor: Factor::Dynamic, ..Options::default() };
    let mut worker = worker(4, 4, own);
    begin(&mut worker, &[1.0; 9]);
    let first = sends(&mut worker, at(0));
    assert_eq!(first.len(), 4);
    let before = first[0].0.index;
    let new = (before + 1) % 64;
    let changes = Header { collision: true, bitmap0: new.into(), fan_in0: 138, ..answer(0, 9) };
    receives(&mut worker, at(1000), changes);
    let [(header, value)] = sends(&mut worker, at(1000))[..] else { panic!("the window has 4") };
    assert_eq!((header.sequence, header.index), (4, new));
    assert_eq!(value, 1024i32.to_be_bytes(), "2 to the power of 10");
    receives(&mut worker, at(1000), answer(1, 9));
    let [(header, value)] = sends(&mut worker, at(1000))[..] else { panic!("the window has 4") };
    assert_eq!((header.index, value), (first[1].0.index, 100_000_000i32.to_be_bytes()));
}

#[test]
fn what_is_open_fails_by_name_where_the_generation_is_closed() {
    let mut worker = worker(8, 64, Options::default());
    begin(&mut worker, &[1.0; 3]);
    begin(&mut worker, &[1.0; 3]);
    assert_eq!(sequences(&mut worker, at(0)).len(), 6);
    (0..3).for_each(|sequence| receives(&mut worker, at(500), answer(sequence, 3)));
    let closed = Closed {
        job: 1,
        server: 0,
        life: GENERATION,
        reason: Reason::Dead,
        tensor: 1,
        culprit: 1,
        sides: Sides::default(),
    };
    let mut buf = [0; 64];
    let len = closed.emit(&mut buf);
    assert_eq!(worker.handle_packet(at(1000), Source::end(SWITCH), &buf[..len]), Verdict::Absorb);
    let outcomes: Vec<_> =
        core::iter::from_fn(|| worker.poll_done()).map(|done| done.outcome.map(|_| ())).collect();
    let dead = Failure::Closed { reason: Reason::Dead, culprit: Some(1) };
    assert_eq!(outcomes, [Ok(()), Err(dead)]);
    assert!(matches!(worker.standing(), Standing::Joining { .. }), "it joins again");
}

/// A worker that asks to be let in.
fn asking() -> Worker {
    let config = Config { workers: 2, ..Config::new(JobId(1), Session(7), SWITCH) };
    let mut worker = Worker::new(config, Options::default()).expect("it can be");
    worker.join(START);
    assert!(worker.poll_transmit(START, PortId(0), &mut [0; 2048]).is_some());
    worker
}

#[test]
fn a_switch_of_another_version_turns_the_worker_away_and_names_its_version() {
    let mut worker = asking();
    let mut join = [0; 128];
    let len = join_of(Session(7)).emit(&mut join);
    join[9] = 1;
    let answer = answer_to_another_version(&join[..len]).expect("it is a join");
    let mut buf = [0; 128];
    let len = answer.emit(&mut buf);
    buf[9] = 5;
    let refused = Refused::Malformed(Refusal::WrongVersion { have: 5, speaks: 4 });
    let told = worker.handle_packet(START, Source::end(SWITCH), &buf[..len]);
    assert_eq!(told, Verdict::refused(refused));
    assert_eq!(worker.standing(), Standing::Refused(WelcomeCode::OtherVersion));
    assert_eq!(worker.other_version(), Some(5));
    // One that is in believes no such word: its switch speaks its version.
    let mut inside = self::worker(4, 64, Options::default());
    assert_eq!(
        inside.handle_packet(START, Source::end(SWITCH), &buf[..len]),
        Verdict::refused(refused)
    );
    assert!(matches!(inside.standing(), Standing::In { .. }));
}

fn join_of(session: Session) -> Join {
    Join {
        job: 1,
        server: 0,
        session,
        rank: 0,
        workers: 2,
        generation: 0,
        closed: 0,
        values: 1,
        aggregators: 0,
        switches: [0; 4],
        sent_at_us: 0,
        scale: 1.0,
        servers: 1,
        window: 1,
        nonce: 0,
        operations: 0,
        program: 0,
    }
}

/// The leaves that are sent within a second, and what the worker waits for then.
fn sends_leaves(worker: &mut Worker, confirmed_after: usize) -> usize {
    let (mut now, mut said, mut buf) = (at(0), 0, [0; 2048]);
    worker.leave(now);
    while now < at(1_000_000) {
        while let Some(sent) = worker.poll_transmit(now, PortId(0), &mut buf) {
            let kind = AtpPacket::new_checked(&buf[..sent.len]).expect("well-formed").kind();
            assert_eq!(kind, Kind::Leave);
            said += 1;
            if said == confirmed_after {
                let len = Left { job: 1, server: 0, session: Session(7) }.emit(&mut buf);
                let heard = worker.handle_packet(now, Source::end(SWITCH), &buf[..len]);
                assert_eq!(heard, Verdict::Absorb);
            }
        }
        let Some((next, _)) = worker.poll_timeout() else { break };
        assert_eq!(next, now + Duration::from_millis(20));
        now = next;
    }
    assert_eq!(worker.poll_timeout(), None, "nothing is left to do");
    said
}

#[test]
fn a_leave_is_said_again_until_it_is_heard_and_ten_times_at_most() {
    for (confirmed_after, said) in [(1, 1), (4, 4), (100, 10)] {
        let mut worker = worker(4, 64, Options::default());
        assert_eq!(sends_leaves(&mut worker, confirmed_after), said);
        let mut buf = [0; 64];
        let len = Left { job: 1, server: 0, session: Session(7) }.emit(&mut buf);
        let late = worker.handle_packet(at(0), Source::end(SWITCH), &buf[..len]);
        assert_eq!(late, Verdict::refused(Refused::NotAsked));
    }
}
