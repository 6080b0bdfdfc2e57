//! How generations end, and what becomes of operations.

use super::*;
use crate::collective::Failure;
use olaf_wire::reduce::offsets::common;

const JOIN: Sent = Sent::Join { generation: GENERATION };

#[test]
fn a_death_fails_the_operations_of_a_fixed_job_from_the_named_one_on() {
    let mut trace = Trace::joined(config());
    for _ in 0..3 {
        trace.begin(sum(&[1.0]));
    }
    trace.sent();
    trace.closes(1, Reason::Dead, 1);
    let failure = Failure::Closed { reason: Reason::Dead, culprit: Some(1) };
    assert_eq!(trace.ends().outcome, Err(failure));
    assert_eq!(trace.ends().outcome, Err(failure));
    // The first operation has its sum at the switch.
    trace.sends(&[]);
    trace.result(result(0, 0, 0, 1), &[2.0]);
    assert!(trace.ends().outcome.is_ok());
    trace.sends(&[JOIN]);
    trace.accounts();
}

#[test]
fn an_answer_of_another_version_does_not_end_what_is_left_of_a_generation() {
    let mut trace = Trace::joined(config());
    trace.begin(sum(&[1.0]));
    let given_up = trace.begin(sum(&[2.0]));
    trace.sent();
    trace.end.give_up(trace.now, given_up);
    assert_eq!(trace.ends().outcome, Err(Failure::TimedOut));
    assert!(matches!(trace.end.standing(), Standing::Joining { .. }));
    let mut buf = vec![0; MAX_DATAGRAM];
    let len = trace.welcome_message(GENERATION + 1, 0).emit(&mut buf);
    let welcome = &mut buf[..len];
    welcome[common::VERSION] ^= 0x40;
    trace.end.handle_packet(trace.now, Source::end(SWITCH), welcome);
    trace.end.join(trace.now);
    assert_eq!(trace.end.open_operations(), 1, "the first operation is still open");
    trace.result(result(0, 0, 0, 1), &[2.0]);
    assert!(trace.ends().outcome.is_ok());
    // Now the end asks, and such an answer is one to its question.
    trace.end.handle_packet(trace.now, Source::end(SWITCH), welcome);
    assert_eq!(trace.end.standing(), Standing::Refused(WelcomeCode::OtherVersion));
}

#[test]
fn an_elastic_job_begins_its_operations_again_when_a_worker_joins() {
    let mut trace = Trace::joined(elastic());
    trace.begin(sum(&[1.0]));
    trace.begin(sum(&[2.0]));
    trace.sent();
    trace.result(result(0, 0, 0, 1), &[2.0]);
    trace.ends();
    trace.closes(1, Reason::Joined, ALL);
    trace.sends(&[JOIN]);
    trace.welcome(GENERATION + 1, 1);
    trace.sends(&[piece(0, &[2.0])]);
    trace.accounts();
}

#[test]
fn after_a_death_an_elastic_job_repeats_later_operations_with_their_own_lanes() {
    let mut trace = Trace::joined(elastic());
    trace.begin(sum(&[1.0]));
    trace.begin(sum(&[2.0, 3.0, 4.0]));
    trace.begin(sum(&[5.0]));
    trace.sent();
    trace.result(result(1, 1, 1, 3), &[20.0, 30.0]);
    trace.result(result(3, 2, 3, 1), &[50.0]);
    // The third operation is complete. It has not ended: the first may still fail.
    assert!(trace.end.poll_done().is_none());
    trace.closes(0, Reason::Dead, 1);
    assert!(trace.ends().outcome.is_err());
    trace.sends(&[JOIN]);
    trace.welcome(GENERATION + 1, 1);
    trace.sends(&[piece(0, &[2.0, 3.0]), piece(1, &[4.0]), piece(2, &[5.0])]);
}

#[test]
fn an_operation_that_failed_elsewhere_fails_here_when_it_begins() {
    let mut trace = Trace::joined(config());
    trace.closes(0, Reason::Dead, 1);
    trace.sends(&[JOIN]);
    trace.begin(sum(&[1.0]));
    let failure = Failure::Closed { reason: Reason::Dead, culprit: Some(1) };
    assert_eq!(trace.ends().outcome, Err(failure));
    trace.begin(sum(&[1.0]));
    trace.welcome(GENERATION + 1, 0);
    trace.sends(&[piece(0, &[1.0])]);
}

#[test]
fn it_fails_here_also_where_the_next_generation_has_begun() {
    let mut trace = Trace::joined(config());
    trace.closes(0, Reason::Mismatch, 1);
    trace.sends(&[JOIN]);
    trace.welcome(GENERATION + 1, 0);
    trace.begin(sum(&[1.0]));
    let failure = Failure::Closed { reason: Reason::Mismatch, culprit: Some(1) };
    assert_eq!(trace.ends().outcome, Err(failure));
    trace.begin(sum(&[2.0]));
    trace.sends(&[piece(0, &[2.0])]);
}

#[test]
fn a_restarted_switch_fails_everything() {
    let mut trace = Trace::joined(elastic());
    trace.begin(sum(&[1.0]));
    trace.sent();
    trace.closes(3, Reason::Unknown, ALL);
    let failure = Failure::Closed { reason: Reason::Unknown, culprit: None };
    assert_eq!(trace.ends().outcome, Err(failure));
    trace.begin(sum(&[5.0]));
    trace.sends(&[JOIN]);
    trace.welcome(5, 1);
    trace.sends(&[piece(0, &[5.0])]);
}

#[test]
fn operations_that_failed_at_the_others_fail_here_however_many_generations_were_missed() {
    for config in [config(), elastic()] {
        let mut trace = Trace::joined(config);
        trace.begin(sum(&[1.0]));
        trace.closes(0, Reason::Dead, 1);
        assert!(trace.ends().outcome.is_err());
        trace.begin(sum(&[2.0]));
        // In a generation that this end never heard of the others' next two operations failed.
        trace.sends(&[JOIN]);
        trace.welcome(GENERATION + 2, 3);
        assert!(trace.ends().outcome.is_err());
        trace.begin(sum(&[3.0]));
        assert!(trace.ends().outcome.is_err());
        trace.begin(sum(&[4.0]));
        trace.sends(&[piece(0, &[4.0])]);
    }
}

#[test]
fn what_an_elastic_job_begins_again_fails_where_the_switch_does_not_believe_the_count() {
    let mut trace = Trace::joined(elastic());
    trace.begin(sum(&[1.0]));
    trace.begin(sum(&[2.0]));
    trace.closes(0, Reason::Dead, 1);
    assert!(trace.ends().outcome.is_err());
    trace.sends(&[JOIN]);
    trace.welcome(GENERATION + 1, 0);
    assert!(trace.ends().outcome.is_err());
    trace.begin(sum(&[3.0]));
    trace.sends(&[piece(0, &[3.0])]);
}

#[test]
fn an_end_that_joins_anew_after_a_refusal_is_a_newcomer() {
    let mut trace = Trace::joined(config());
    trace.closes(0, Reason::Dead, 1);
    trace.sends(&[JOIN]);
    let full = Welcome { code: WelcomeCode::Full, ..trace.welcome_message(GENERATION, 0) };
    trace.refuses("full", |buf| full.emit(buf));
    trace.end.join(trace.now);
    trace.sends(&[Sent::Join { generation: 0 }]);
    trace.welcome(GENERATION + 1, 7);
    trace.begin(sum(&[1.0]));
    trace.sends(&[piece(0, &[1.0])]);
}

#[test]
fn an_operation_that_is_given_up_takes_the_end_out_of_the_generation() {
    let mut trace = Trace::joined(config());
    let id = trace.begin(sum(&[1.0]));
    trace.sent();
    trace.end.give_up(trace.now, id);
    assert_eq!(trace.ends().outcome, Err(Failure::TimedOut));
    trace.sends(&[Sent::Leave(0), JOIN]);
    // The leave was lost: the switch takes the join for a repetition.
    trace.welcome(GENERATION, 0);
    trace.sends(&[Sent::Leave(0)]);
    trace.after_ms(20).sends(&[JOIN]);
}

#[test]
fn a_worker_that_leaves_says_so_until_the_switch_confirms_it() {
    let mut trace = Trace::joined(config());
    trace.end.leave(trace.now);
    trace.sends(&[Sent::Leave(0)]);
    assert_eq!(trace.end.standing(), Standing::Left);
    trace.end.join(trace.now);
    trace.after_ms(20).sends(&[Sent::Leave(0)]);
    trace.confirms(GENERATION, 0);
    // A join that is sent before could overtake the leave.
    trace.sends(&[Sent::Join { generation: 0 }]);
    trace.end.leave(trace.now);
    trace.sends(&[Sent::Leave(u32::MAX)]);
    trace.confirms(0, 0);
    trace.after_ms(1000).sends(&[]);
    assert_eq!(trace.end.poll_timeout(), None, "the process may end");
}

#[test]
fn a_worker_that_leaves_a_dead_switch_gives_up() {
    let mut trace = Trace::joined(config());
    trace.end.leave(trace.now);
    let mut sent = Vec::new();
    for _ in 0..20 {
        sent.extend(trace.sent());
        trace.after_ms(20);
    }
    assert_eq!(sent, vec![Sent::Leave(0); 10]);
    assert_eq!(trace.end.poll_timeout(), None, "the process may end");
}

#[test]
fn a_worker_that_leaves_while_it_waits_for_the_next_generation_says_so() {
    let mut trace = Trace::joined(config());
    trace.closes(0, Reason::Left, 1);
    trace.sends(&[JOIN]);
    trace.end.leave(trace.now);
    trace.sends(&[Sent::Leave(u32::MAX)]);
    trace.confirms(GENERATION, 0);
    trace.after_ms(1000).sends(&[]);
}

#[test]
fn a_result_that_came_early_counts_once_when_the_generation_closes_behind_its_operation() {
    let mut trace = Trace::joined(elastic());
    for block in [1, 2] {
        trace.result(result(block, 0, 0, 6), &[3.0, 5.0]);
    }
    trace.closes(1, Reason::Joined, ALL);
    trace.begin(sum(&[1.0; 6]));
    trace.sent();
    trace.refuses("duplicate", |buf| result(1, 0, 0, 6).emit(&[], &bytes(&[3.0, 5.0]), buf));
    assert!(trace.end.poll_done().is_none(), "block 0 is missing");
    trace.result(result(0, 0, 0, 6), &[7.0, 7.0]);
    let done = trace.ends();
    assert!(done.outcome.is_ok());
    assert_eq!(floats((*done.buffer).bytes()), [7.0, 7.0, 3.0, 5.0, 3.0, 5.0]);
    trace.accounts();
}

#[test]
fn an_order_free_sum_does_not_begin_across_the_end_of_its_generation() {
    for (reason, begins_again) in [(Reason::Joined, true), (Reason::Dead, false)] {
        let mut trace = Trace::joined(elastic());
        trace.closes(1, reason, 1);
        trace.sends(&[]);
        trace.begin(reduce(Reduction::ExactSum, &[1.0]));
        trace.sends(&[JOIN]);
        assert_eq!(trace.end.poll_done().is_none(), begins_again);
        trace.accounts();
    }
}
