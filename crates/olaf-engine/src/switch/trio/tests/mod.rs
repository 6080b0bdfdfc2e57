//! Traces of datagrams: what comes in, and what goes out.

mod claims;

use super::*;
use crate::blocks::records::Reason as Unfit;
use crate::engine::TrafficClass;
use crate::ids::Session;
use crate::sums::CONTESTED;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::Sides;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::trio::{Ask, Closed, Gone, Hello, Leave, Straggler, Straggling, Want, Welcome};

const JOB: u8 = 5;
const MS: Duration = Duration::from_millis(1);

/// A message that left.
#[derive(Clone, Debug, PartialEq)]
enum Out {
    Result(Block, Vec<i32>),
    Welcome(Welcome),
    Want(Want),
    Gone(Gone),
    Closed(Closed),
    Straggler(Straggler),
}

/// A switch whose worker `r` is at peer `r` and has session `r + 1`.
struct Trace {
    switch: Switch,
    now: Instant,
    /// Of the newest welcome.
    term: u32,
    first: u16,
}

impl Trace {
    fn new() -> Self {
        let config = Config { threads: 1, silence: CONTESTED, ..Config::default() };
        let switch = Switch::new(config, 7).expect("a good configuration");
        Self { switch, now: Instant(1_000_000_000), term: 0, first: 0 }
    }

    /// A switch with a term of that many workers. `timeout_ms` is 0 where blocks wait for all workers.
    fn with(workers: u8, timeout_ms: u16) -> Self {
        let mut trace = Self::new();
        for source in 0..workers {
            trace.hello(source, workers, timeout_ms);
        }
        trace.sent();
        trace
    }

    fn recv(&mut self, peer: u8, write: impl FnOnce(&mut [u8]) -> usize) -> Verdict {
        let mut buf = [0; 256];
        let len = write(&mut buf);
        let peer = PeerId(peer.into());
        let class = TrafficClass::default();
        let source = Source { port: PortId::DOWNLINK, peer, class };
        self.switch.handle_packet(self.now, source, &buf[..len])
    }

    fn hello(&mut self, source: u8, workers: u8, timeout_ms: u16) -> Verdict {
        let hello = Hello {
            job: JOB,
            term: self.term,
            source,
            sources: 1,
            newest: 0,
            session: Session(u32::from(source) + 1),
            workers,
            gradients: 4,
            timeout_ms,
            window: 8,
            sent_at_us: 3,
            nonce: 0,
            program: 0,
        };
        self.recv(source, |buf| hello.emit(buf))
    }

    fn block(&self, source: u8, block: u32) -> Block {
        Block {
            job: JOB,
            block,
            aged: false,
            is_final: block == 7,
            degraded: false,
            source,
            sources: 1,
            generation: self.first,
            call: 0,
        }
    }

    fn sends(&mut self, source: u8, block: u32, gradient: i32) -> Verdict {
        let header = self.block(source, block);
        self.recv(source, |buf| header.emit(&[gradient, 1], buf))
    }

    /// The result of a block, which that many workers are in.
    fn result(&self, block: u32, sources: u8, gradient: i32) -> Out {
        let header = Block { source: ANY, sources, ..self.block(ANY, block) };
        Out::Result(header, vec![gradient, sources.into()])
    }

    fn asks(&mut self, source: u8, block: u32, mask: u64, held_block: u32) -> Verdict {
        let ask = Ask {
            job: JOB,
            term: self.term,
            source,
            session: Session(u32::from(source) + 1),
            generation: self.first,
            block,
            mask,
            held_generation: self.first,
            held_block,
            sent_at_us: 9,
        };
        self.recv(source, |buf| ask.emit(buf))
    }

    fn want(&self, source: u8, block: u32, mask: u64) -> Out {
        Out::Want(Want {
            job: JOB,
            term: self.term,
            source,
            session: Session(u32::from(source) + 1),
            generation: self.first,
            block,
            mask,
            sent_at_us: 9,
        })
    }

    fn closed(&self, reason: Reason, culprit: u8) -> Out {
        let (term, generation) = (self.term, self.first);
        Out::Closed(Closed {
            job: JOB,
            term,
            culprit,
            generation,
            mask: 0,
            reason,
            sides: Sides::default(),
        })
    }

    fn straggler(&self, source: u8, straggling: Straggling, events: u32) -> Out {
        Out::Straggler(Straggler { job: JOB, term: self.term, source, straggling, events })
    }

    /// What leaves, with its receivers.
    fn sent(&mut self) -> Vec<(Vec<u32>, Out)> {
        let mut buf = vec![0; MAX_DATAGRAM];
        let mut sent = Vec::new();
        while let Some(transmit) = self.switch.poll_transmit(self.now, PortId::DOWNLINK, &mut buf) {
            let packet = TrioPacket::new_checked(&buf[..transmit.len]).expect("a whole message");
            let out = match packet.kind() {
                Kind::Block | Kind::Aged => {
                    let gradients = packet.gradients().as_chunks().0.iter();
                    let gradients = gradients.map(|one| i32::from_be_bytes(*one)).collect();
                    Out::Result(Block::parse(&packet).expect("a block"), gradients)
                }
                Kind::Welcome => Out::Welcome(Welcome::parse(&packet).expect("a welcome")),
                Kind::Want => Out::Want(Want::parse(&packet).expect("a want")),
                Kind::Gone => Out::Gone(Gone::parse(&packet).expect("a gone")),
                Kind::Closed => Out::Closed(Closed::parse(&packet).expect("a closed")),
                Kind::Straggler => Out::Straggler(Straggler::parse(&packet).expect("a notice")),
                other => panic!("a switch does not send {other:?} down"),
            };
            if let Out::Welcome(Welcome { code: WelcomeCode::Welcome, term, first, .. }) = out {
                (self.term, self.first) = (term, first);
            }
            sent.push((transmit.to.as_slice().iter().map(|peer| peer.0).collect(), out));
        }
        sent
    }

    /// Time passes; every timer starts in time.
    fn after(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some((at, _)) = self.switch.poll_timeout().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            self.switch.handle_timeout(self.now);
        }
        self.now = until;
    }
}

fn welcomes(sent: &[(Vec<u32>, Out)]) -> Vec<(u32, WelcomeCode, u8)> {
    let each = sent.iter().filter_map(|(to, out)| match out {
        Out::Welcome(welcome) => Some((to[0], welcome.code, welcome.here)),
        _ => None,
    });
    each.collect()
}

#[test]
fn a_term_begins_when_all_workers_are_here() {
    let mut trace = Trace::new();
    trace.hello(0, 2, 0);
    assert_eq!(welcomes(&trace.sent()), [(0, WelcomeCode::Waiting, 1)]);
    trace.hello(1, 2, 0);
    let sent = trace.sent();
    assert_eq!(welcomes(&sent), [(0, WelcomeCode::Welcome, 2), (1, WelcomeCode::Welcome, 2)]);
    trace.hello(2, 2, 0);
    assert_eq!(welcomes(&trace.sent()), [(2, WelcomeCode::Waiting, 2)], "the job has its workers");
    trace.hello(3, 9, 0);
    assert_eq!(welcomes(&trace.sent())[0].1, WelcomeCode::Refused, "another number of workers");
}

#[test]
fn a_sum_goes_to_all_workers_once_each_has_sent_its_piece() {
    let mut trace = Trace::with(2, 0);
    assert_eq!(trace.sends(0, 0, 10), Verdict::Absorb);
    // A piece that comes again is in the sum once.
    assert_eq!(trace.sends(0, 0, 10), Verdict::Absorb);
    assert_eq!(trace.sent(), []);
    assert_eq!(trace.sends(1, 0, -3), Verdict::Absorb);
    let result = trace.result(0, 2, 7);
    assert_eq!(trace.sent(), [(vec![0, 1], result.clone())]);
    // Whoever sends again after that lacks the result.
    assert_eq!(trace.sends(1, 0, -3), Verdict::Absorb);
    assert_eq!(trace.sent(), [(vec![1], result)]);
}

#[test]
fn a_block_that_ages_out_goes_without_the_straggler() {
    let mut trace = Trace::with(2, 20);
    trace.sends(0, 0, 10);
    trace.after(19 * MS);
    assert_eq!(trace.sent(), [], "20 ms have not passed");
    trace.after(12 * MS);
    let Out::Result(header, gradients) = trace.result(0, 1, 10) else { panic!("a result") };
    let result = Out::Result(Block { aged: true, degraded: true, ..header }, gradients);
    assert_eq!(trace.sent(), [(vec![0, 1], result.clone())]);
    assert_eq!(trace.sends(1, 0, 5), Verdict::Absorb);
    assert_eq!(trace.sent(), [(vec![1], result)], "the late piece changes nothing");
}

#[test]
fn a_question_is_answered_with_the_result_or_with_what_is_missing() {
    let mut trace = Trace::with(2, 0);
    trace.sends(0, 0, 1);
    trace.sends(1, 0, 2);
    trace.sends(1, 1, 4);
    trace.sent();
    trace.asks(0, 0, 0b11, 0);
    let result = trace.result(0, 2, 3);
    let sent = trace.sent();
    assert_eq!(sent[0], (vec![0], result));
    assert!(matches!(&sent[1].1, Out::Want(Want { block: 0, mask: 0b10, .. })), "{sent:?}");
    // The sender of a piece that is here waits for others.
    trace.asks(1, 1, 1, 1);
    assert_eq!(trace.sent(), [(vec![1], trace.want(1, 1, 0))]);
    // Once all hold a result, it is gone.
    trace.asks(0, 1, 0, 1);
    trace.sent();
    trace.asks(0, 0, 1, 1);
    let sent = trace.sent();
    assert!(matches!(&sent[0].1, Out::Gone(Gone { block: 0, source: 0, .. })), "{sent:?}");
}

#[test]
fn a_worker_that_is_silent_while_others_wait_ends_the_term() {
    let mut trace = Trace::with(3, 0);
    trace.sends(0, 0, 1);
    for _ in 0..3 {
        trace.after(900 * MS);
        trace.asks(0, 0, 1, 0);
        trace.asks(1, 0, 1, 0);
    }
    let sent = trace.sent();
    let closed = trace.closed(Reason::Dead, 2);
    assert!(sent.iter().any(|(_, out)| *out == closed), "{sent:?}");
    assert_eq!(
        trace.sends(0, 0, 1),
        Verdict::Drop(DropReason::UnknownGeneration),
        "the term is over"
    );
}

#[test]
fn a_leave_and_operations_that_differ_end_the_term_with_a_name() {
    let mut trace = Trace::with(2, 0);
    let (term, session) = (trace.term, Session(2));
    let leave = Leave { job: JOB, term, source: 1, session, reason: Reason::Left };
    trace.recv(1, |buf| leave.emit(buf));
    let sent = trace.sent();
    let closed = trace.closed(Reason::Left, 1);
    assert!(sent.iter().any(|(to, out)| to.contains(&0) && *out == closed), "{sent:?}");

    let mut trace = Trace::with(2, 0);
    trace.sends(0, 0, 1);
    let header = trace.block(1, 0);
    let verdict = trace.recv(1, |buf| header.emit(&[1, 2, 3], buf));
    assert_eq!(verdict, Verdict::Drop(DropReason::Record(Unfit::WrongSize)));
    let sent = trace.sent();
    let closed = trace.closed(Reason::Mismatch, 1);
    assert!(sent.iter().any(|(_, out)| *out == closed), "{sent:?}");
}

/// A question says what its worker holds, and so lets the switch forget results.
#[test]
fn a_question_counts_with_its_member_s_session_and_from_its_address_alone() {
    let mut trace = Trace::with(2, 0);
    trace.sends(0, 0, 3);
    trace.sends(1, 0, 4);
    trace.sent();
    let ask = |session: u32| Ask {
        job: JOB,
        term: trace.term,
        source: 0,
        session: Session(session),
        generation: trace.first,
        block: 0,
        mask: 1,
        held_generation: trace.first,
        held_block: 5,
        sent_at_us: 9,
    };
    let (other, own) = (ask(99), ask(1));
    for (peer, said, why) in [
        (0, other, DropReason::NotAMember),
        (1, own, DropReason::WrongSender),
        (66, own, DropReason::WrongSender),
    ] {
        assert_eq!(trace.recv(peer, |buf| said.emit(buf)), Verdict::Drop(why));
    }
    assert_eq!(trace.sent(), []);
    trace.asks(0, 0, 1, 0);
    assert_eq!(trace.sent()[0], (vec![0], trace.result(0, 2, 7)), "the result is still here");
}

#[test]
fn a_leave_from_another_address_changes_nothing() {
    let leave = |term, source: u8| Leave {
        job: JOB,
        term,
        source,
        session: Session(u32::from(source) + 1),
        reason: Reason::Left,
    };
    let wrong = Verdict::Drop(DropReason::WrongSender);
    // From a stranger, and from another member.
    let mut trace = Trace::with(2, 0);
    let term = trace.term;
    for peer in [66, 0] {
        assert_eq!(trace.recv(peer, |buf| leave(term, 1).emit(buf)), wrong);
    }
    let other = Leave { session: Session(99), ..leave(term, 1) };
    let verdict = trace.recv(1, |buf| other.emit(buf));
    assert_eq!(verdict, Verdict::Drop(DropReason::NotAMember));
    assert_eq!(trace.sent(), []);
    trace.sends(0, 0, 3);
    trace.sends(1, 0, 4);
    assert_eq!(trace.sent(), [(vec![0, 1], trace.result(0, 2, 7))]);
    // A worker that still waits stays in the lobby, too.
    let mut trace = Trace::new();
    trace.hello(0, 2, 0);
    assert_eq!(trace.recv(66, |buf| leave(0, 0).emit(buf)), wrong);
    trace.hello(1, 2, 0);
    let here = welcomes(&trace.sent());
    assert_eq!(here.iter().filter(|(_, code, _)| *code == WelcomeCode::Welcome).count(), 2);
}

#[test]
fn a_newcomer_gets_the_place_of_a_worker_that_is_silent_and_of_no_other() {
    let mut trace = Trace::with(2, 20);
    let newcomer = Hello {
        job: JOB,
        term: 0,
        source: 1,
        sources: 1,
        newest: 0,
        session: Session(50),
        workers: 2,
        gradients: 4,
        timeout_ms: 20,
        window: 8,
        sent_at_us: 3,
        nonce: 0,
        program: 0,
    };
    trace.recv(66, |buf| newcomer.emit(buf));
    assert_eq!(welcomes(&trace.sent()), [(66, WelcomeCode::Waiting, 2)]);
    // Worker 0 goes on, and worker 1 is heard no more.
    trace.after(trace.switch.config.silence - MS);
    trace.asks(0, 0, 0, 0);
    trace.after(MS);
    trace.sent();
    trace.recv(66, |buf| newcomer.emit(buf));
    let closed = trace.closed(Reason::Dead, 1);
    assert!(trace.sent().contains(&(vec![0, 1], closed)));
}

#[test]
fn a_straggler_is_temporary_then_permanent_and_back_with_a_piece_in_time() {
    let mut trace = Trace::with(2, 20);
    let mut notices = Vec::new();
    for block in 0..6 {
        trace.sends(0, block, 1);
        trace.after(300 * MS);
        trace.asks(0, 0, 0, block + 1);
        trace.asks(1, 0, 0, block + 1);
        notices.extend(trace.sent().into_iter().map(|(_, out)| out));
    }
    let is_told = |straggling| {
        let of = |out: &Out| matches!(out, Out::Straggler(one) if one.straggling == straggling);
        notices.iter().position(of)
    };
    let (temporary, permanent) = (is_told(Straggling::Temporary), is_told(Straggling::Permanent));
    assert!(temporary.is_some() && temporary < permanent, "{notices:?}");
    // Blocks do not wait for it: no timer runs before the result leaves.
    trace.sends(0, 6, 1);
    assert_eq!(trace.sent().len(), 1);
    // Its piece of a block that has just begun: the block goes without it, but it is back.
    trace.sends(1, 6, 1);
    let back = trace.sent();
    let events = back.iter().find_map(|(_, out)| match out {
        Out::Straggler(one) => Some(one.events),
        _ => None,
    });
    let notice = trace.straggler(1, Straggling::Temporary, events.expect("a notice"));
    assert!(back.contains(&(vec![0, 1], notice)), "{back:?}");
    trace.sends(0, 7, 1);
    assert_eq!(trace.sent(), [], "the next block waits for both");
}

#[test]
fn what_is_of_no_member_is_refused_by_name() {
    let mut trace = Trace::with(2, 0);
    let of = |source| trace.block(source, 0);
    let (stranger, other) = (of(3), of(1));
    let elsewhere = Block { job: 9, ..of(0) };
    let crowd = Block { sources: 2, ..of(0) };
    let far = Block { block: 1_000_000, ..of(0) };
    for (peer, header, reason) in [
        (3, stranger, DropReason::NotAMember),
        (0, other, DropReason::WrongSender),
        (0, elsewhere, DropReason::UnknownJob),
        (0, crowd, DropReason::Mismatch),
        (0, far, DropReason::Record(Unfit::TooFarAhead)),
    ] {
        let verdict = trace.recv(peer, |buf| header.emit(&[1, 1], buf));
        assert_eq!(verdict, Verdict::Drop(reason));
    }
    let verdict = trace.recv(0, |buf| {
        let want = Want {
            job: JOB,
            term: 1,
            source: 0,
            session: Session(1),
            generation: 0,
            block: 0,
            mask: 1,
            sent_at_us: 0,
        };
        want.emit(buf)
    });
    assert_eq!(verdict, Verdict::Drop(DropReason::WrongDirection));
    assert!(matches!(trace.recv(0, |_| 5), Verdict::Drop(DropReason::Malformed(_))));
    assert!(trace.switch.records.counts().add_up());
}
