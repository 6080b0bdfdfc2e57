//! What is lost, and how it is asked for.

use super::*;
use crate::collective::Failure;

#[test]
fn a_result_is_asked_for_when_three_later_ones_are_here() {
    let mut trace = Trace::joined(config());
    trace.begin(sum(&[1.0; 12]));
    trace.sent();
    trace.result(result(1, 0, 0, 12), &[2.0, 2.0]);
    trace.result(result(2, 0, 0, 12), &[2.0, 2.0]);
    trace.sends(&[]);
    trace.result(result(4, 0, 0, 12), &[2.0, 2.0]);
    trace.sends(&[Sent::Ask(vec![0])]);
    trace.result(result(5, 0, 0, 12), &[2.0, 2.0]);
    trace.sends(&[]);
}

#[test]
fn a_piece_that_the_switch_lacks_is_sent_again() {
    let mut trace = Trace::joined(config());
    trace.begin(sum(&[1.0, 1.0, 2.0, 2.0]));
    trace.sent();
    trace.wants(0, 0b10);
    trace.sends(&[Sent::Piece { block: 1, lanes: vec![2.0, 2.0], resent: true }]);
    trace.result(result(1, 0, 0, 4), &[4.0, 4.0]);
    trace.wants(0, 0b10);
    trace.sends(&[]);
}

#[test]
fn an_overdue_result_is_asked_for_ever_more_rarely() {
    let mut trace = Trace::joined(config());
    trace.begin(sum(&[1.0]));
    trace.sent();
    trace.after_ms(25).sends(&[Sent::Ask(vec![0])]);
    trace.after_ms(25).sends(&[]);
    trace.after_ms(25).sends(&[Sent::Ask(vec![0])]);
}

#[test]
fn a_silent_switch_fails_the_operations() {
    let mut trace = Trace::joined(config());
    trace.begin(sum(&[1.0]));
    for _ in 0..510 {
        trace.after_ms(10).sent();
    }
    assert_eq!(trace.ends().outcome, Err(Failure::SwitchSilent));
    assert!(trace.events().contains(&WorkerEvent::SwitchSilent));
    assert!(matches!(trace.end.standing(), Standing::Joining { .. }));
}

#[test]
fn an_end_without_work_says_that_it_is_there() {
    let mut trace = Trace::joined(config());
    trace.after_ms(499).sends(&[]);
    trace.after_ms(1).sends(&[Sent::Ack(0)]);
    trace.after_ms(500).sends(&[Sent::Ack(0)]);
}
