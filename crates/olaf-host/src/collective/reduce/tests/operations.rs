//! What becomes of operations while nothing goes wrong.

use super::*;
use crate::collective::Sum;
use olaf_wire::{Call, CallKind};

#[test]
fn an_operation_is_cut_into_blocks_and_ends_with_the_sum_in_place() {
    let mut trace = Trace::joined(config());
    let id = trace.begin(sum(&[1.0, 2.0, 3.0]));
    trace.sends(&[piece(0, &[1.0, 2.0]), piece(1, &[3.0])]);
    trace.result(result(1, 0, 0, 3), &[30.0]);
    assert!(trace.end.poll_done().is_none());
    trace.result(result(0, 0, 0, 3), &[10.0, 20.0]);
    let done = trace.ends();
    assert_eq!(done.id, id);
    assert_eq!(done.outcome, Ok(Sum { contributors: 2, expected: 2, not_finite: false }));
    assert_eq!(floats(done.buffer.bytes()), [10.0, 20.0, 30.0]);
    trace.accounts();
}

#[test]
fn operations_follow_each_other_without_a_round_trip() {
    let mut trace = Trace::joined(config());
    trace.begin(sum(&[1.0]));
    trace.begin(sum(&[2.0]));
    trace.sends(&[piece(0, &[1.0]), piece(1, &[2.0])]);
    // They end in their order: while the first may fail, nobody has finished the second.
    trace.result(result(1, 1, 1, 1), &[20.0]);
    assert!(trace.end.poll_done().is_none());
    trace.result(result(0, 0, 0, 1), &[10.0]);
    assert_eq!(floats(trace.ends().buffer.bytes()), [10.0]);
    assert_eq!(floats(trace.ends().buffer.bytes()), [20.0]);
}

#[test]
fn a_piece_is_sent_only_when_the_result_one_window_of_slots_before_is_here() {
    let mut trace = Trace::joined(config());
    trace.begin(sum(&[1.0; 20]));
    assert_eq!(trace.sent().len(), SLOTS as usize);
    trace.result(result(1, 0, 0, 20), &[2.0, 2.0]);
    trace.sends(&[]);
    trace.result(result(0, 0, 0, 20), &[2.0, 2.0]);
    trace.sends(&[piece(8, &[1.0; 2]), piece(9, &[1.0; 2])]);
}

#[test]
fn a_mean_is_divided_by_the_contributors() {
    let mut trace = Trace::joined(config());
    trace.begin(reduce(Reduction::Mean, &[1.0, 2.0]));
    trace.sent();
    let mut header = result(0, 0, 0, 2);
    trace.refuses("mismatch", |buf| header.emit(&[], &bytes(&[3.0, 5.0]), buf));
    // The question says what this end calls.
    trace.sends(&[Sent::Ask(vec![0])]);
    header.block.call = Call::new(CallKind::Mean, 0);
    trace.result(header, &[3.0, 5.0]);
    assert_eq!(floats(trace.ends().buffer.bytes()), [1.5, 2.5]);
}

#[test]
fn a_result_of_a_block_that_was_not_sent_is_taken_and_nothing_is_sent_for_it() {
    let mut config = config();
    config.options.window_blocks = Some(1);
    let mut trace = Trace::joined(config);
    trace.begin(sum(&[1.0, 1.0, 2.0, 2.0, 3.0]));
    trace.sends(&[piece(0, &[1.0, 1.0])]);
    trace.result(result(1, 0, 0, 5), &[4.0, 4.0]);
    trace.result(result(0, 0, 0, 5), &[2.0, 2.0]);
    trace.sends(&[piece(2, &[3.0])]);
    trace.result(result(2, 0, 0, 5), &[6.0]);
    assert_eq!(floats(trace.ends().buffer.bytes()), [2.0, 2.0, 4.0, 4.0, 6.0]);
    assert_eq!(trace.end.statistics(trace.now).pieces.unneeded, 1);
}

#[test]
fn a_result_that_comes_before_the_operation_is_kept_for_it() {
    let mut trace = Trace::joined(config());
    trace.result(result(0, 0, 0, 2), &[3.0, 5.0]);
    trace.begin(sum(&[1.0, 2.0]));
    trace.sends(&[]);
    assert_eq!(floats(trace.ends().buffer.bytes()), [3.0, 5.0]);
    trace.accounts();
}

#[test]
fn results_of_operations_to_come_are_kept_up_to_the_number_of_slots() {
    let mut trace = Trace::joined(config());
    for block in 0..SLOTS {
        trace.result(result(block, 0, 0, 20), &[3.0, 5.0]);
    }
    trace.refuses("no_room", |buf| result(8, 0, 0, 20).emit(&[], &bytes(&[1.0, 1.0]), buf));
    let early = result(SLOTS * 3, 0, 0, 90);
    trace.refuses("too_early", |buf| early.emit(&[], &bytes(&[1.0, 1.0]), buf));
    trace.accounts();
}

#[test]
fn only_the_root_of_a_broadcast_sends() {
    let broadcast = |root| reduce(Reduction::Broadcast { root }, &[1.0, 2.0, 3.0]);
    let mut trace = Trace::joined(config());
    trace.begin(broadcast(0));
    trace.sends(&[piece(0, &[1.0, 2.0]), piece(1, &[3.0])]);

    let mut trace = Trace::joined(config());
    trace.begin(broadcast(1));
    trace.sends(&[]);
    let of_root = |block| {
        let mut header = result(block, 0, 0, 3);
        header.block.operator = Operator::Broadcast;
        header.block.call = Call::new(CallKind::Broadcast { root: 1 }, 0);
        BlockResult { contributors: 1, expected: 1, ..header }
    };
    trace.result(of_root(0), &[7.0, 8.0]);
    trace.result(of_root(1), &[9.0]);
    let done = trace.ends();
    assert_eq!(floats(done.buffer.bytes()), [7.0, 8.0, 9.0]);
    assert_eq!(done.outcome.map(|sum| sum.contributors), Ok(1));
}

#[test]
fn a_receiver_of_a_broadcast_acknowledges_every_quarter_of_the_slots() {
    let mut trace = Trace::joined(config());
    trace.begin(reduce(Reduction::Broadcast { root: 1 }, &[0.0; 8]));
    for block in 0..3 {
        let mut header = result(block, 0, 0, 8);
        header.block.operator = Operator::Broadcast;
        header.block.call = Call::new(CallKind::Broadcast { root: 1 }, 0);
        trace.result(BlockResult { contributors: 1, expected: 1, ..header }, &[1.0, 1.0]);
        let expected: &[Sent] = if block == 1 { &[Sent::Ack(2)] } else { &[] };
        trace.sends(expected);
    }
}

#[test]
fn operations_that_cannot_be_fail_and_hand_their_lanes_back() {
    let mut trace = Trace::joined(config());
    let mut odd = sum(&[1.0]);
    odd.buffer = Box::new(vec![0; 6]);
    let mut integers = reduce(Reduction::Mean, &[1.0]);
    integers.lane_type = LaneType::I32;
    for operation in [odd, sum(&[]), integers] {
        let lanes = operation.buffer.bytes().len();
        trace.begin(operation);
        trace.end.leave(trace.now);
        let done = trace.end.poll_done().expect("it has ended");
        assert!(matches!(done.outcome, Err(crate::collective::Failure::BadOperation(_))));
        assert_eq!(done.buffer.bytes().len(), lanes);
        trace = Trace::joined(config());
    }
    let mut left = Reducer::new(config());
    assert!(left.begin(trace.now, sum(&[1.0])).is_err());
}

#[test]
fn a_sum_without_some_workers_is_an_error_unless_accepted() {
    for accepts_partial in [false, true] {
        let mut trace = Trace::joined(config());
        trace.begin(Operation { accepts_partial, ..sum(&[1.0]) });
        trace.sent();
        let partial = BlockResult { contributors: 1, ..result(0, 0, 0, 1) };
        trace.takes(|buf| partial.emit(&[1], &bytes(&[1.0]), buf));
        assert_eq!(trace.ends().outcome.is_ok(), accepts_partial);
    }
}
