//! Floats that are no finite numbers.

use super::*;
use crate::event::SumEvent;

fn refusing() -> Config {
    Config { non_finite: NonFinite::Refuse, ..Config::default() }
}

/// Whom the switch told of, and the first packet of the vector.
fn told(trace: &mut Trace) -> Vec<(u32, u32)> {
    let events = core::iter::from_fn(|| trace.switch.poll_event());
    let told = events.filter_map(|event| match event {
        Event::Sum(JOB, SumEvent::NonFinite { rank, operation }) => Some((rank, operation)),
        _ => None,
    });
    told.collect()
}

/// Packets with such floats in sums, and refused ones.
fn counted(trace: &Trace) -> (u64, u64) {
    let counts = trace.switch.statistics(trace.now);
    (counts.non_finite_packets, counts.pieces.refused.get("non_finite").copied().unwrap_or(0))
}

#[test]
fn a_worker_is_told_once_for_each_vector_and_its_packets_are_summed() {
    let mut trace = Trace::with(3);
    let last = |index| Seg { generation: 77, last: true, missing: 0, index };
    // Vectors of two packets each: 0 and 1, 2 and 3.
    for rank in [0, 2, 1] {
        trace.sends(rank, 0, if rank == 0 { 1.0 } else { f32::NAN });
        let float = if rank == 2 { f32::NEG_INFINITY } else { 1.0 };
        trace.packet(PortId::DOWNLINK, rank, last(1), &[float]);
    }
    assert_eq!(told(&mut trace), [(2, 0), (1, 0)]);
    assert_eq!(counted(&trace), (3, 0));
    let sent = trace.sent();
    let [(_, Out::Data(_, first)), (_, Out::Data(_, second))] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert!(first[0].is_nan() && first[1] == 3.0 && second[..] == [f32::NEG_INFINITY], "{sent:?}");
    // The same packet again is in no sum.
    trace.sends(1, 0, f32::NAN);
    assert_eq!((told(&mut trace), counted(&trace)), (vec![], (3, 0)));
    trace.sends(1, 2, f32::INFINITY);
    trace.packet(PortId::DOWNLINK, 1, last(3), &[f32::NAN]);
    assert_eq!(told(&mut trace), [(1, 2)], "the next vector");
    assert_eq!(counted(&trace), (5, 0));
}

#[test]
fn packets_out_of_order_are_of_their_vectors() {
    let mut trace = Trace::with(2);
    let seg = |last, index| Seg { generation: 77, last, missing: 0, index };
    // Worker 0 is two vectors ahead of worker 1: 0 and 1; 2 and 3.
    for index in [1, 3, 0, 2] {
        trace.packet(PortId::DOWNLINK, 0, seg(index % 2 == 1, index), &[1.0]);
    }
    for index in [3, 0, 2, 1] {
        trace.packet(PortId::DOWNLINK, 1, seg(index % 2 == 1, index), &[f32::NAN]);
    }
    assert_eq!(told(&mut trace), [(1, 2), (1, 0)]);
    assert_eq!(counted(&trace), (4, 0));
}

#[test]
fn a_worker_whose_packet_makes_the_sum_overflow_is_told() {
    let mut trace = Trace::with(3);
    for (rank, float) in [(0, f32::MAX), (2, f32::MAX), (1, 1.0)] {
        trace.sends(rank, 0, float);
    }
    assert_eq!((told(&mut trace), counted(&trace)), (vec![(2, 0)], (1, 0)));
}

#[test]
fn a_packet_that_is_refused_ends_the_generation_and_names_its_worker() {
    for bad in [f32::NAN, f32::INFINITY] {
        let mut trace = Trace::of(2, refusing());
        trace.sends(0, 0, 1.0);
        trace.sends(1, 0, 2.0);
        trace.sends(0, 1, 1.0);
        trace.sent();
        let refused = Verdict::Drop(DropReason::Piece(Unfit::NonFinite));
        assert_eq!(trace.sends(1, 1, bad), refused);
        assert_eq!(trace.sent(), [(vec![0, 1], trace.halt(Reason::Refused, 1, 1))]);
        assert_eq!((told(&mut trace), counted(&trace)), (vec![(1, 0)], (0, 1)));
        let counts = trace.switch.statistics(trace.now);
        assert_eq!(counts.closed_generations["refused"], 1);
        assert_eq!((counts.pieces.given_up, counts.pieces.summed), (1, 2), "it is in no sum");
    }
}

#[test]
fn a_first_packet_is_refused_as_a_later_one_and_an_overflow_is_too() {
    let refused = Verdict::Drop(DropReason::Piece(Unfit::NonFinite));
    let mut trace = Trace::of(2, refusing());
    assert_eq!(trace.sends(0, 0, f32::NAN), refused);
    assert_eq!(trace.sent(), [(vec![0, 1], trace.halt(Reason::Refused, 0, 0))]);
    let mut trace = Trace::of(2, refusing());
    assert_eq!(trace.sends(1, 0, -f32::MAX), Verdict::Absorb);
    assert_eq!(trace.sends(0, 0, -f32::MAX), refused);
    assert_eq!(trace.sent(), [(vec![0, 1], trace.halt(Reason::Refused, 0, 0))]);
    assert_eq!((told(&mut trace), counted(&trace)), (vec![(0, 0)], (0, 1)));
}

#[test]
fn a_switch_names_its_own_workers_and_counts_the_sums_of_a_lower_one() {
    for (non_finite, counts) in [(NonFinite::Pass, (1, 0)), (NonFinite::Refuse, (0, 1))] {
        let mut trace = Trace::set_up(Config { non_finite, ..Config::default() });
        trace.joins(JOB, 0, 3);
        let lower =
            Join { sender: Sender::Switch, contributors: 2, rank: ANY, ..Trace::join(JOB, 1, 3) };
        trace.says(1, Control::Join(lower));
        trace.sent();
        trace.sends(0, 0, 1.0);
        trace.sends(1, 0, f32::NAN);
        assert_eq!((told(&mut trace), counted(&trace)), (vec![], counts));
        let sent = trace.sent();
        let halt = (vec![0, 1], trace.halt(Reason::Refused, ANY, 0));
        assert_eq!(sent.contains(&halt), non_finite == NonFinite::Refuse, "{sent:?}");
    }
}

#[test]
fn a_vector_that_only_the_switch_above_ended_is_over_for_names_too() {
    let mut trace = Trace::new();
    trace.switch.set_upstream(PeerId(99), 1472);
    trace.joins(JOB, 0, 2);
    let joins = trace.sent();
    let session = joins.iter().find_map(|(_, out)| match out {
        Out::Control(Control::Join(join)) => Some(join.session),
        _ => None,
    });
    let admission = Admission {
        rank: ANY,
        workers: 2,
        slots: 4,
        packet_floats: 100,
        session: session.expect("a join goes up"),
        ..Admission::default()
    };
    let welcome = Control::Ack(Ack {
        generation: 9,
        action: Action::Join,
        outcome: Outcome::Success,
        sent_at_us: 0,
        index: 0,
        admission: Some(admission),
    });
    let mut buf = [0; 64];
    let len = welcome.emit(&mut buf);
    trace.recv(PortId::UPLINK, 99, CONTROL_CLASS, &buf[..len]);
    trace.sends(0, 0, f32::NAN);
    // The switch above goes without packet 1, the last one of the first vector, of this worker.
    let last = Seg { generation: 9, last: true, missing: 1, index: 1 };
    trace.packet(PortId::UPLINK, 99, last, &[1.0, 1.0]);
    trace.sends(0, 2, f32::NAN);
    assert_eq!(told(&mut trace), [(0, 0), (0, 2)]);
}
