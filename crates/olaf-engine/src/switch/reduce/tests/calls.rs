//! Members that call different operations under one number.

use super::*;
use olaf_wire::reduce::{Called, Clash};
use olaf_wire::{Call, CallKind};

const SUM: Call = Call::from_bits(0);
const MEAN: Call = Call::new(CallKind::Mean, 0);

const fn broadcast(root: u32) -> Call {
    Call::new(CallKind::Broadcast { root }, 0)
}

const fn called(call: Call) -> Called {
    let operator = match call.kind() {
        CallKind::Broadcast { .. } => Operator::Broadcast,
        _ => Operator::Sum,
    };
    Called { call, lane_type: LaneType::F32, operator, lanes: LANES as u64 }
}

impl Trace {
    /// A member sends its only piece of operation 0, which it calls that.
    fn calls(&mut self, rank: u32, call: Call) -> Verdict {
        let Called { lane_type, operator, lanes, .. } = called(call);
        let block = Block {
            number: 0,
            operation: 0,
            first: 0,
            lanes_of_operation: lanes,
            lane_type,
            operator,
            call,
        };
        let (address, marks) = (self.address(rank), Marks::default());
        let piece = Piece { address, block, contributors: 1, holds: 0, sent_at_us: 9, marks };
        let mut buf = [0; 256];
        let len = piece.emit(&[], &[0; 4 * LANES], &mut buf);
        self.recv(rank, &buf[..len])
    }

    /// A member that sends no pieces asks for the result of operation 0, which it calls that.
    fn awaits(&mut self, rank: u32, call: Call) {
        let (address, blocks) = (self.address(rank), Blocks { first: 0, mask: 1 });
        let awaits = Some((0, called(call)));
        let ask = Ask { address, operation: 0, blocks, holds: 0, sent_at_us: 9, awaits };
        let mut buf = [0; 64];
        let len = ask.emit(&mut buf);
        let _ = self.recv(rank, &buf[..len]);
    }

    /// The end that the members heard of: operation, culprit and clash.
    fn clash(&mut self) -> Option<(u32, u32, Option<Clash>)> {
        let mut buf = [0; MAX_DATAGRAM];
        let mut end = None;
        while let Some(sent) = self.switch.poll_transmit(self.now, PortId::DOWNLINK, &mut buf) {
            let packet = ReducePacket::new_checked(&buf[..sent.len]).expect("it is ours");
            if let Ok(closed) = Closed::parse(&packet) {
                assert_eq!(closed.reason, Reason::Mismatch);
                end = Some((closed.operation, closed.culprit, closed.clash));
            }
        }
        end
    }
}

fn between(culprit: Call, others: Call) -> Option<Clash> {
    Some(Clash { culprit: called(culprit), others: called(others) })
}

#[test]
fn the_smaller_side_is_named_whoever_comes_first() {
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
        for odd in 0..3 {
            let mut trace = Trace::with(3, Config::default());
            for rank in order {
                assert_eq!(trace.clash(), None, "not all have said what they call");
                trace.calls(rank, if rank == odd { MEAN } else { SUM });
            }
            assert_eq!(trace.clash(), Some((0, odd, between(MEAN, SUM))), "{order:?}");
        }
    }
}

#[test]
fn of_two_workers_the_second_is_named() {
    let mut trace = Trace::with(2, Config::default());
    trace.calls(1, SUM);
    trace.calls(0, MEAN);
    assert_eq!(trace.clash(), Some((0, 1, between(SUM, MEAN))));
}

#[test]
fn who_sends_nothing_of_a_broadcast_is_heard_by_its_questions() {
    // Nobody takes itself for the root.
    let mut trace = Trace::with(2, Config::default());
    trace.awaits(0, broadcast(1));
    assert_eq!(trace.clash(), None);
    trace.awaits(1, broadcast(0));
    assert_eq!(trace.clash(), Some((0, 1, between(broadcast(0), broadcast(1)))));

    // One calls a sum, before and after the question.
    for sum_is_first in [false, true] {
        let mut trace = Trace::with(2, Config::default());
        if sum_is_first {
            trace.calls(0, SUM);
        }
        trace.awaits(1, broadcast(0));
        if !sum_is_first {
            assert_eq!(dropped(trace.calls(0, SUM)), "mismatch");
        }
        assert_eq!(trace.clash(), Some((0, 1, between(broadcast(0), SUM))));
    }

    // Those that agree with the root get its lanes.
    let mut trace = Trace::with(3, Config::default());
    trace.awaits(1, broadcast(0));
    trace.awaits(2, broadcast(0));
    trace.sent();
    assert_eq!(trace.calls(0, broadcast(0)), Verdict::Absorb);
    assert_eq!(trace.results().len(), 1);
}

#[test]
fn a_member_that_is_late_is_not_waited_for_long() {
    let mut trace = Trace::with(3, Config::default());
    trace.calls(0, SUM);
    trace.calls(1, MEAN);
    trace.awaits(0, SUM);
    assert_eq!(trace.clash(), None, "the third member may tell who differs");
    trace.wait(Duration::from_millis(60));
    trace.awaits(0, SUM);
    assert_eq!(trace.clash(), Some((0, 1, between(MEAN, SUM))));
}
