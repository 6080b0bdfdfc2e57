//! Traces of datagrams: what the end says, and what a message from the switch changes. The rest is tested in
//! the simulated network (`olaf-sim/tests/all/trio`).

use super::*;
use crate::collective::Label;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::{Ecn, Refused, TrafficClass, WorkerEvent};
use olaf_wire::Sides;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::trio::{
    ANY, Block, Gone, Hello, Kind, Straggler, Straggling, TrioPacket, Want, Welcome,
};
use olaf_wire::{JobId, Session};

const SWITCH: PeerId = PeerId(9);
const START: Instant = Instant(1 << 40);
const JOB: u8 = 5;
const TERM: u32 = 3;
const FIRST: u16 = 128;
/// A gradient of 1.0.
const ONE: i32 = 100_000_000;

fn config() -> Config {
    let mut config = Config::new(JobId(JOB.into()), Session(7), SWITCH);
    (config.workers, config.datagram_bytes) = (2, 1472);
    config
}

/// An end that has said hello.
fn worker() -> Worker {
    let mut worker = Worker::new(config(), Options::default()).expect("a good set-up");
    worker.join(START);
    worker
}

/// An end in a term: two gradients in a block.
fn member() -> Worker {
    let mut worker = worker();
    sent(&mut worker, START);
    assert_eq!(recv(&mut worker, |buf| welcome(WelcomeCode::Welcome).emit(buf)), Verdict::Absorb);
    worker
}

fn welcome(code: WelcomeCode) -> Welcome {
    Welcome {
        job: JOB,
        term: TERM,
        source: 1,
        workers: 2,
        first: FIRST,
        session: Session(7),
        code,
        gradients: 2,
        here: 2,
        window: 8,
        newest: 0,
        sent_at_us: 1,
        nonce: 0,
    }
}

fn recv(worker: &mut Worker, write: impl FnOnce(&mut [u8]) -> usize) -> Verdict {
    let mut buf = [0; 256];
    let len = write(&mut buf);
    let class = TrafficClass::new(0, Ecn::NotCapable);
    worker.handle_packet(START, Source { class, ..Source::end(SWITCH) }, &buf[..len])
}

fn begin(worker: &mut Worker, reduction: Reduction, lanes: &[f32]) {
    let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
    let operation = Operation {
        lane_type: LaneType::F32,
        reduction,
        buffer: Box::new(bytes),
        accepts_partial: true,
        label: Label::default(),
    };
    assert!(worker.begin(START, operation).is_ok());
}

fn result(block: u32, is_final: bool, sources: u8) -> Block {
    Block {
        job: JOB,
        block,
        aged: false,
        is_final,
        degraded: sources < 2,
        source: ANY,
        sources,
        generation: FIRST,
        call: 0,
    }
}

/// What leaves now.
fn sent(worker: &mut Worker, now: Instant) -> Vec<Vec<u8>> {
    let mut buf = vec![0; MAX_DATAGRAM];
    let next =
        || worker.poll_transmit(now, PortId(0), &mut buf).map(|sent| buf[..sent.len].to_vec());
    core::iter::from_fn(next).collect()
}

/// Headers and gradients of the pieces that leave now.
fn pieces(worker: &mut Worker, now: Instant) -> Vec<(Block, Vec<i32>)> {
    let all = sent(worker, now);
    let packets = all.iter().map(|bytes| TrioPacket::new_checked(bytes).expect("a whole message"));
    let blocks = packets.filter(|packet| packet.kind() == Kind::Block);
    let read = |packet: TrioPacket<'_>| {
        let gradients = packet.gradients().as_chunks().0.iter();
        let gradients = gradients.map(|one| i32::from_be_bytes(*one)).collect();
        (Block::parse(&packet).expect("a block"), gradients)
    };
    blocks.map(read).collect()
}

fn done(worker: &mut Worker) -> Option<(Result<super::super::Sum, Failure>, Vec<f32>)> {
    let done = worker.poll_done()?;
    let lanes = done.buffer.bytes().as_chunks().0.iter();
    Some((done.outcome, lanes.map(|lane| f32::from_le_bytes(*lane)).collect()))
}

/// Received results, and their fates.
fn results(worker: &Worker) -> [u64; 6] {
    let of = worker.statistics(START).results;
    assert_eq!(of.received, of.taken + of.early + of.refused);
    assert_eq!(of.early, of.early_used + of.early_discarded + of.early_waiting);
    [of.received, of.taken, of.early, of.early_used, of.early_waiting, of.refused]
}

#[test]
fn a_hello_says_what_the_job_is() {
    let mut worker = worker();
    let sent = sent(&mut worker, START);
    let [bytes] = &sent[..] else { panic!("{sent:?}") };
    let packet = TrioPacket::new_checked(bytes).expect("a whole message");
    let hello = Hello::parse(&packet).expect("a hello");
    assert_eq!((hello.job, hello.term, hello.source, hello.sources), (JOB, 0, ANY, 1));
    assert_eq!((hello.workers, hello.session, hello.timeout_ms), (2, Session(7), 0));
    assert_eq!(hello.gradients, 365, "1,472 bytes less a header of 12 bytes");
    // It is repeated until it is answered.
    assert_eq!(self::sent(&mut worker, START + Duration::from_millis(20)).len(), 1);
}

#[test]
fn gradients_leave_as_integers_and_the_last_block_says_so() {
    let mut worker = member();
    begin(&mut worker, Reduction::Sum, &[1.0, -0.5, 2.0]);
    let piece = |block, is_final| Block {
        source: 1,
        sources: 1,
        degraded: false,
        ..result(block, is_final, 1)
    };
    assert_eq!(
        pieces(&mut worker, START),
        [(piece(0, false), vec![ONE, -ONE / 2]), (piece(1, true), vec![2 * ONE])]
    );
}

#[test]
fn a_mean_is_divided_block_by_block() {
    let mut worker = member();
    let result = |block, is_final, sources| Block { call: 1, ..result(block, is_final, sources) };
    begin(&mut worker, Reduction::Mean, &[0.0; 3]);
    let sent = pieces(&mut worker, START);
    assert!(sent.iter().all(|(piece, _)| piece.call == 1), "the others must call a mean, too");
    assert_eq!(
        recv(&mut worker, |buf| result(0, false, 2).emit(&[ONE, 3 * ONE], buf)),
        Verdict::Absorb
    );
    assert!(done(&mut worker).is_none());
    // Trio-ML §5: a degraded result has fewer sources.
    assert_eq!(recv(&mut worker, |buf| result(1, true, 1).emit(&[5 * ONE], buf)), Verdict::Absorb);
    let (outcome, lanes) = done(&mut worker).expect("both results are here");
    let sum = outcome.expect("a partial sum is accepted");
    assert_eq!((sum.contributors, sum.expected), (1, 2));
    assert_eq!(lanes, [0.5, 1.5, 5.0]);
    assert_eq!(results(&worker), [2, 2, 0, 0, 0, 0]);
    let again = recv(&mut worker, |buf| result(1, true, 1).emit(&[5 * ONE], buf));
    assert_eq!(again, Verdict::refused(Refused::Duplicate));
    assert_eq!(results(&worker), [3, 2, 0, 0, 0, 1]);
}

#[test]
fn a_result_that_comes_early_is_taken_when_its_operation_begins() {
    let mut worker = member();
    assert_eq!(recv(&mut worker, |buf| result(0, true, 1).emit(&[ONE, ONE], buf)), Verdict::Absorb);
    assert_eq!(results(&worker), [1, 0, 1, 0, 1, 0]);
    begin(&mut worker, Reduction::Sum, &[7.0, 7.0]);
    let (outcome, lanes) = done(&mut worker).expect("its result was here");
    assert!(outcome.is_ok());
    assert_eq!(lanes, [1.0, 1.0]);
    assert_eq!(results(&worker), [1, 0, 1, 1, 0, 0], "it counts as early, and not as taken too");
    assert_eq!(pieces(&mut worker, START), [], "the others went on without this end");
}

#[test]
fn a_piece_that_the_switch_lacks_is_sent_again() {
    let mut worker = member();
    begin(&mut worker, Reduction::Sum, &[1.0, 2.0, 3.0]);
    pieces(&mut worker, START);
    let want = Want {
        job: JOB,
        term: TERM,
        source: 1,
        session: Session(7),
        generation: FIRST,
        block: 0,
        mask: 0b10,
        sent_at_us: 0,
    };
    assert_eq!(recv(&mut worker, |buf| want.emit(buf)), Verdict::Absorb);
    let again = pieces(&mut worker, START);
    assert_eq!(again.iter().map(|(block, _)| block.block).collect::<Vec<_>>(), [1]);
    let of = worker.statistics(START).pieces;
    assert_eq!((of.sent, of.resent, of.wanted), (2, 1, 1));
}

#[test]
fn the_end_of_a_term_fails_its_operations_with_a_name() {
    let mut worker = member();
    begin(&mut worker, Reduction::Sum, &[1.0]);
    let reason = Reason::Dead;
    let closed = Closed {
        job: JOB,
        term: TERM,
        culprit: 0,
        generation: FIRST,
        mask: 0,
        reason,
        sides: Sides::default(),
    };
    assert_eq!(recv(&mut worker, |buf| closed.emit(buf)), Verdict::Absorb);
    let outcome = done(&mut worker).map(|(outcome, _)| outcome);
    assert_eq!(outcome, Some(Err(Failure::Closed { reason, culprit: Some(0) })));
    assert!(matches!(worker.standing(), Standing::Joining { .. }), "it joins again");
}

#[test]
fn a_result_that_is_gone_fails_its_operation_at_this_worker_alone() {
    let mut worker = member();
    begin(&mut worker, Reduction::Sum, &[1.0]);
    begin(&mut worker, Reduction::Sum, &[2.0]);
    let (term, session) = (TERM, Session(7));
    let gone = Gone { job: JOB, term, source: 1, session, generation: FIRST, block: 0 };
    assert_eq!(recv(&mut worker, |buf| gone.emit(buf)), Verdict::Absorb);
    let outcome = done(&mut worker).map(|(outcome, _)| outcome);
    let dead = Failure::Closed { reason: Reason::Dead, culprit: Some(1) };
    assert_eq!(outcome, Some(Err(dead)));
    assert!(done(&mut worker).is_none(), "the next operation goes on");
    assert!(matches!(worker.standing(), Standing::In { .. }));
}

#[test]
fn a_notice_about_a_straggler_becomes_one_event() {
    let mut worker = member();
    while worker.poll_event().is_some() {}
    let straggling = Straggling::Permanent;
    let notice = Straggler { job: JOB, term: TERM, source: 0, straggling, events: 4 };
    for _ in 0..2 {
        assert_eq!(recv(&mut worker, |buf| notice.emit(buf)), Verdict::Absorb);
    }
    let what = WorkerEvent::Straggler { rank: 0, straggling, events: 4 };
    assert_eq!(worker.poll_event(), Some(Event::Worker(JobId(JOB.into()), SWITCH, what)));
    assert_eq!(worker.poll_event(), None);
}

#[test]
fn what_is_not_for_this_end_is_refused_by_name() {
    let mut worker = worker();
    let early = recv(&mut worker, |buf| result(0, true, 1).emit(&[1], buf));
    assert_eq!(early, Verdict::refused(Refused::UnknownWorker));
    let other = Welcome { session: Session(8), ..welcome(WelcomeCode::Welcome) };
    assert_eq!(recv(&mut worker, |buf| other.emit(buf)), Verdict::refused(Refused::NotForMe));
    let mut worker = member();
    let job = Block { job: JOB + 1, ..result(0, true, 1) };
    assert_eq!(recv(&mut worker, |buf| job.emit(&[1], buf)), Verdict::refused(Refused::UnknownJob));
    let crowd = result(0, true, 3);
    assert_eq!(recv(&mut worker, |buf| crowd.emit(&[1], buf)), Verdict::refused(Refused::Mismatch));
    let stranger =
        Source { class: TrafficClass::new(0, Ecn::NotCapable), ..Source::end(PeerId(1)) };
    let verdict = worker.handle_packet(START, stranger, &[0; 16]);
    assert_eq!(verdict, Verdict::refused(Refused::UnknownPeer));
    begin(&mut worker, Reduction::Sum, &[1.0, 2.0]);
    let short = recv(&mut worker, |buf| result(0, true, 2).emit(&[1], buf));
    assert_eq!(short, Verdict::refused(Refused::WrongSize));
    assert!(worker.statistics(START).refused.values().sum::<u64>() >= 4);
}

#[test]
fn a_switch_that_never_answers_ends_what_waits() {
    let mut worker = worker();
    begin(&mut worker, Reduction::Sum, &[1.0]);
    sent(&mut worker, START);
    let late = START + Duration::from_secs(6);
    worker.handle_timeout(late);
    let outcome = worker.poll_done().map(|done| done.outcome);
    assert_eq!(outcome, Some(Err(Failure::SwitchSilent)));
}

#[test]
fn a_leave_is_repeated_until_the_term_has_ended() {
    let mut worker = member();
    worker.leave(START);
    assert_eq!(sent(&mut worker, START).len(), 1);
    assert_eq!(sent(&mut worker, START + Duration::from_millis(20)).len(), 1);
    let (culprit, reason) = (1, Reason::Left);
    let closed = Closed {
        job: JOB,
        term: TERM,
        culprit,
        generation: FIRST,
        mask: 0,
        reason,
        sides: Sides::default(),
    };
    recv(&mut worker, |buf| closed.emit(buf));
    assert_eq!(worker.poll_timeout(), None, "the process may end");
}

#[test]
fn a_term_that_nobody_ends_after_an_operation_was_given_up_is_left_for_another_one() {
    let mut worker = member();
    begin(&mut worker, Reduction::Sum, &[1.0]);
    pieces(&mut worker, START);
    worker.give_up(START, OperationId(0));
    assert_eq!(done(&mut worker).map(|(outcome, _)| outcome), Some(Err(Failure::TimedOut)));
    for ms in (0..200).step_by(20) {
        let now = START + Duration::from_millis(ms);
        worker.handle_timeout(now);
        let all = sent(&mut worker, now);
        let kind = |bytes: &Vec<u8>| TrioPacket::new_checked(bytes).expect("a message").kind();
        let leaves = all.iter().filter(|bytes| kind(bytes) == Kind::Leave).count();
        assert_eq!(leaves, 1, "after {ms} ms");
        assert!(matches!(worker.standing(), Standing::In { .. }), "after {ms} ms");
    }
    worker.handle_timeout(START + Duration::from_millis(200));
    assert!(matches!(worker.standing(), Standing::Joining { .. }));
}
