//! What a member may claim beside its lanes.

use super::*;

#[test]
fn a_piece_of_the_last_operation_that_a_number_can_name_is_refused() {
    let mut trace = Trace::with(2, Config::default());
    assert_eq!(dropped(trace.piece_of(0, (u32::MAX, 0, 1), 0, 1.0)), "bad_field");
    // The switch has nothing of it, and the others go on.
    trace.asks(1, 0, 1, 0);
    trace.piece(0, 0, 1, 1.0);
    trace.piece(1, 0, 1, 2.0);
    assert_eq!(trace.results(), [(alloc::vec![0, 1], 0, 3.0, 2)]);
    // The one before it can be summed, and has none after it.
    let mut trace = Trace::with(2, Config::default());
    for rank in 0..2 {
        assert_eq!(trace.piece_of(rank, (u32::MAX - 1, 0, 1), 0, 1.0), Verdict::Absorb);
    }
    assert_eq!(trace.results().len(), 1);
    trace.asks(0, 0, 1, 1);
    trace.leaves(0, u32::MAX - 1);
}

#[test]
fn a_worker_is_one_contributor_and_holds_no_more_than_was_sent() {
    let mut trace = Trace::with(2, Config::default());
    let piece = Piece {
        address: trace.address(0),
        block: Block {
            number: 0,
            operation: 0,
            first: 0,
            lanes_of_operation: LANES as u64,
            lane_type: LaneType::F32,
            operator: Operator::Sum,
            call: olaf_wire::Call::default(),
        },
        contributors: 2,
        holds: 0,
        sent_at_us: 9,
        marks: Marks::default(),
    };
    let mut buf = [0; 256];
    let len = piece.emit(&[], &[0; 4 * LANES], &mut buf);
    assert_eq!(dropped(trace.recv(0, &buf[..len])), "bad_field");
    trace.piece(0, 0, 1, 1.0);
    assert_eq!(dropped(trace.asks(1, 0, 1, 2)), "bad_field");
    trace.piece(1, 0, 1, 2.0);
    assert_eq!(trace.results(), [(alloc::vec![0, 1], 0, 3.0, 2)]);
}

#[test]
fn a_leave_for_a_newer_generation_counts_from_its_workers_address_alone() {
    let mut trace = Trace::with(2, Config::default());
    // Worker 1 waited since the generation before.
    let earlier = Address { generation: trace.generation - 1, ..trace.address(1) };
    let leave = Leave { address: earlier, operation: u32::MAX };
    let mut buf = [0; 256];
    let len = leave.emit(&mut buf);
    trace.recv(7, &buf[..len]);
    trace.piece(0, 0, 1, 1.0);
    trace.piece(1, 0, 1, 2.0);
    assert_eq!(trace.results(), [(alloc::vec![0, 1], 0, 3.0, 2)], "a stranger ends nothing");
    trace.recv(1, &buf[..len]);
    let ended = trace
        .sent()
        .into_iter()
        .any(|(_, out)| matches!(out, Out::Closed { culprit: 1, reason: Reason::Left, .. }));
    assert!(ended, "the worker itself does");
}
