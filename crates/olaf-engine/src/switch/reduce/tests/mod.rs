//! Traces of datagrams: what comes in, and what goes out.

mod calls;
mod claims;
mod cores;
mod crowd;
mod strangers;
mod tree;

use super::*;
use crate::sums::CONTESTED;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{
    Ask, Block, Blocks, Closed, Join, LaneType, Leave, Operator, Piece, Reason, Want, Welcome,
    WelcomeCode,
};

const JOB: JobId = JobId(1);
const BLOCK: u32 = 64;
const LANES: usize = 16;

/// A message that left, with its receivers.
#[derive(Clone, Debug, PartialEq)]
enum Out {
    Result { block: u32, lanes: Vec<f32>, contributors: u32, words: Vec<u64>, resent: bool },
    Want { blocks: Vec<u32> },
    Welcome(Welcome),
    Closed { operation: u32, culprit: u32, reason: Reason },
}

fn join_of(job: u32, rank: u32, workers: u32, session: u32) -> Join {
    Join {
        address: Address { job: JobId(job), generation: 0, rank, session: Session(session) },
        workers,
        contributors: 1,
        deadline_us: 0,
        block_bytes: BLOCK,
        datagram_bytes: 1472,
        sent_at_us: 7,
        nonce: 0,
        operation: 0,
        program: 0,
    }
}

struct Trace {
    switch: Switch,
    now: Instant,
    generation: u32,
}

impl Trace {
    fn new(config: Config) -> Self {
        let config = Config { silence: CONTESTED, ..config };
        let switch = Switch::new(config, 100).expect("a good configuration");
        Self { switch, now: Instant(1_000_000_000), generation: 0 }
    }

    /// A switch with a generation of that many workers: worker `r` is at peer `r` and has session
    /// `r + 1`.
    fn with(workers: u32, config: Config) -> Self {
        let mut trace = Self::new(config);
        for rank in 0..workers {
            trace.joins(rank, workers);
        }
        let sent = trace.sent();
        for rank in 0..workers {
            let welcome = sent.iter().rev().find_map(|(to, out)| match out {
                Out::Welcome(welcome) if *to == [rank] => Some(welcome),
                _ => None,
            });
            let welcome = welcome.expect("each worker is welcome");
            assert_eq!((welcome.code, welcome.address.rank), (WelcomeCode::Welcome, rank));
            trace.generation = welcome.address.generation;
        }
        trace
    }

    fn source(peer: u32) -> Source {
        Source::new(PortId::DOWNLINK, PeerId(peer))
    }

    fn address(&self, rank: u32) -> Address {
        Address { job: JOB, generation: self.generation, rank, session: Session(rank + 1) }
    }

    fn recv(&mut self, peer: u32, bytes: &[u8]) -> Verdict {
        self.switch.handle_packet(self.now, Self::source(peer), bytes)
    }

    fn joins_as(&mut self, peer: u32, join: Join) -> Verdict {
        let mut buf = [0; 64];
        let len = join.emit(&mut buf);
        self.recv(peer, &buf[..len])
    }

    fn joins(&mut self, rank: u32, workers: u32) -> Verdict {
        self.joins_as(rank, join_of(JOB.0, rank, workers, rank + 1))
    }

    /// A worker sends its piece of a block of operation 0, which has that many blocks.
    fn piece(&mut self, rank: u32, number: u32, of: u32, lane: f32) -> Verdict {
        self.piece_of(rank, (0, 0, of), number, lane)
    }

    fn piece_of(
        &mut self,
        rank: u32,
        (operation, first, blocks): (u32, u32, u32),
        number: u32,
        lane: f32,
    ) -> Verdict {
        let piece = Piece {
            address: self.address(rank),
            block: Block {
                number,
                operation,
                first,
                lanes_of_operation: u64::from(blocks) * LANES as u64,
                lane_type: LaneType::F32,
                operator: Operator::Sum,
                call: olaf_wire::Call::default(),
            },
            contributors: 1,
            holds: 0,
            sent_at_us: 9,
            marks: Marks::default(),
        };
        let lanes: Vec<u8> = [lane; LANES].iter().flat_map(|lane| lane.to_le_bytes()).collect();
        let mut buf = [0; 256];
        let len = piece.emit(&[], &lanes, &mut buf);
        self.recv(rank, &buf[..len])
    }

    fn asks(&mut self, rank: u32, first: u32, mask: u64, holds: u32) -> Verdict {
        let ask = Ask {
            address: self.address(rank),
            operation: 0,
            blocks: Blocks { first, mask },
            holds,
            sent_at_us: 11,
            awaits: None,
        };
        let mut buf = [0; 256];
        let len = ask.emit(&mut buf);
        self.recv(rank, &buf[..len])
    }

    fn leaves(&mut self, rank: u32, operation: u32) -> Verdict {
        let leave = Leave { address: self.address(rank), operation };
        let mut buf = [0; 256];
        let len = leave.emit(&mut buf);
        self.recv(rank, &buf[..len])
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        while let Some((at, _)) = self.switch.poll_timeout().filter(|(at, _)| *at <= self.now) {
            self.switch.handle_timeout(at.max(self.now));
        }
    }

    /// Everything that leaves.
    fn sent(&mut self) -> Vec<(Vec<u32>, Out)> {
        let mut buf = alloc::vec![0; MAX_DATAGRAM];
        let mut all = Vec::new();
        while let Some(transmit) = self.switch.poll_transmit(self.now, PortId::DOWNLINK, &mut buf) {
            let to = transmit.to.as_slice().iter().map(|peer| peer.0).collect();
            all.push((to, read(&buf[..transmit.len])));
        }
        all
    }

    /// The results that leave: receivers, block, first lane, contributors.
    fn results(&mut self) -> Vec<(Vec<u32>, u32, f32, u32)> {
        let sent = self.sent().into_iter();
        let results = sent.filter_map(|(to, out)| match out {
            Out::Result { block, lanes, contributors, .. } => {
                Some((to, block, lanes[0], contributors))
            }
            _ => None,
        });
        results.collect()
    }

    /// The piece counts add up.
    fn adds_up(&self) {
        let pieces = self.switch.statistics(self.now).pieces;
        let refused: u64 = pieces.refused.values().sum();
        let fates = pieces.summed
            + pieces.waiting
            + pieces.late
            + pieces.repeated
            + pieces.held
            + pieces.occupied
            + pieces.given_up
            + refused;
        assert_eq!(pieces.received, fates, "{pieces:?}");
    }
}

fn read(bytes: &[u8]) -> Out {
    let packet = ReducePacket::new_checked(bytes).expect("the switch writes good messages");
    match packet.kind() {
        Kind::Result => {
            let result = BlockResult::parse(&packet).expect("a result");
            Out::Result {
                block: result.block.number,
                lanes: packet
                    .lanes()
                    .as_chunks()
                    .0
                    .iter()
                    .map(|l| f32::from_le_bytes(*l))
                    .collect(),
                contributors: result.contributors,
                words: packet.contributor_words().collect(),
                resent: result.marks.resent,
            }
        }
        Kind::Want => {
            Out::Want { blocks: Want::parse(&packet).expect("a want").blocks.iter().collect() }
        }
        Kind::Welcome => Out::Welcome(Welcome::parse(&packet).expect("a welcome")),
        Kind::Closed => {
            let Closed { operation, culprit, reason, .. } =
                Closed::parse(&packet).expect("a closed");
            Out::Closed { operation, culprit, reason }
        }
        other => panic!("{other:?} goes up"),
    }
}

fn dropped(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Drop(reason) => reason.name(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn four_workers_get_the_sum_of_a_block_at_once() {
    let mut trace = Trace::with(4, Config::default());
    for rank in 0..3 {
        assert_eq!(trace.piece(rank, 0, 1, 1.0), Verdict::Absorb);
        assert_eq!(trace.sent(), []);
    }
    trace.piece(3, 0, 1, 10.0);
    let lanes = alloc::vec![13.0; LANES];
    let result = Out::Result { block: 0, lanes, contributors: 4, words: Vec::new(), resent: false };
    assert_eq!(trace.sent(), [(alloc::vec![0, 1, 2, 3], result)]);
    trace.adds_up();
}

#[test]
fn a_fixed_job_begins_when_all_workers_are_there() {
    let mut trace = Trace::new(Config::default());
    trace.joins(0, 2);
    let sent = trace.sent();
    let [(to, Out::Welcome(welcome))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(to, &[0]);
    assert_eq!((welcome.code, welcome.here), (WelcomeCode::Waiting, 1));
    trace.joins(1, 2);
    assert_eq!(trace.sent().len(), 2, "both are welcome");
    trace.joins(0, 2);
    let sent = trace.sent();
    let [(_, Out::Welcome(welcome))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((welcome.code, welcome.address.rank), (WelcomeCode::Welcome, 0), "again");
    assert_eq!(dropped(trace.joins(0, 3)), "refused", "it contradicts the others");
    assert_eq!(dropped(trace.joins(2, 2)), "refused", "there is no rank 2");
}

#[test]
fn lost_results_and_lost_pieces_are_sent_again_to_those_who_lack_them() {
    let mut trace = Trace::with(2, Config::default());
    trace.piece(0, 0, 3, 1.0);
    trace.piece(1, 0, 3, 2.0);
    trace.piece(0, 1, 3, 1.0);
    assert_eq!(trace.results().len(), 1);
    // Worker 1 lacks the result of block 0, and its piece of block 1 was lost.
    trace.asks(1, 0, 0b11, 0);
    let sent = trace.sent();
    assert!(matches!(&sent[0], (to, Out::Result { block: 0, resent: true, .. }) if *to == [1]));
    assert_eq!(sent[1], (alloc::vec![1], Out::Want { blocks: alloc::vec![1] }));
    // Worker 0 has sent its piece of block 1: it can only wait.
    trace.asks(0, 1, 1, 1);
    assert_eq!(trace.sent(), [(alloc::vec![0], Out::Want { blocks: Vec::new() })]);
    trace.piece(1, 0, 3, 2.0);
    assert_eq!(trace.results(), [(alloc::vec![1], 0, 3.0, 2)], "a repeated piece");
    trace.piece(1, 1, 3, 2.0);
    assert_eq!(trace.results(), [(alloc::vec![0, 1], 1, 3.0, 2)]);
    trace.adds_up();
}

#[test]
fn an_overdue_block_goes_out_with_the_names_of_its_workers() {
    let deadline = Some(Duration::from_millis(10));
    let mut trace = Trace::with(3, Config { deadline, ..Config::default() });
    trace.piece(0, 0, 1, 1.0);
    trace.piece(2, 0, 1, 2.0);
    trace.wait(Duration::from_millis(9));
    assert_eq!(trace.sent(), []);
    trace.wait(Duration::from_millis(1));
    let lanes = alloc::vec![3.0; LANES];
    let words = alloc::vec![0b101];
    let result = Out::Result { block: 0, lanes, contributors: 2, words, resent: false };
    assert_eq!(trace.sent(), [(alloc::vec![0, 1, 2], result)]);
    trace.piece(1, 0, 1, 5.0);
    assert_eq!(trace.results(), [(alloc::vec![1], 0, 3.0, 2)], "the straggler takes the result");
    trace.adds_up();
}

#[test]
fn a_silent_worker_that_others_wait_for_ends_the_generation() {
    let mut trace = Trace::with(3, Config::default());
    for rank in 0..3 {
        trace.piece(rank, 0, 1, 1.0);
    }
    let silence = CONTESTED;
    trace.wait(silence * 25);
    assert!(trace.sent().iter().all(|(_, out)| !matches!(out, Out::Closed { .. })), "nobody waits");
    for rank in 0..2 {
        trace.piece_of(rank, (1, 1, 1), 1, 1.0);
    }
    trace.wait(silence - Duration::from_millis(100));
    trace.asks(0, 1, 0, 1);
    trace.asks(1, 1, 0, 0);
    trace.wait(silence / crate::party::LOOKS + Duration::from_millis(100));
    let closed = Out::Closed { operation: 1, culprit: 2, reason: Reason::Dead };
    assert!(trace.sent().contains(&(alloc::vec![0, 1, 2], closed)));
    // The operation before it still has its result.
    trace.asks(1, 0, 1, 0);
    assert_eq!(trace.results(), [(alloc::vec![1], 0, 3.0, 3)]);
    assert_eq!(dropped(trace.piece_of(1, (1, 1, 1), 1, 1.0)), "closed");
    trace.adds_up();
}

#[test]
fn another_operation_under_the_same_number_ends_the_generation_and_is_named() {
    let mut trace = Trace::with(2, Config::default());
    trace.piece(0, 0, 2, 1.0);
    assert_eq!(dropped(trace.piece(1, 0, 3, 1.0)), "mismatch");
    let closed = Out::Closed { operation: 0, culprit: 1, reason: Reason::Mismatch };
    assert_eq!(trace.sent(), [(alloc::vec![0, 1], closed)]);
}

#[test]
fn a_worker_joins_an_elastic_job_between_two_operations() {
    let mut trace = Trace::new(Config::default());
    trace.joins(0, 0);
    let sent = trace.sent();
    let [(_, Out::Welcome(welcome))] = &sent[..] else { panic!("{sent:?}") };
    trace.generation = welcome.address.generation;
    trace.piece(0, 0, 1, 1.0);
    assert_eq!(trace.results(), [(alloc::vec![0], 0, 1.0, 1)]);
    trace.joins(1, 0);
    let sent = trace.sent();
    let joined = Out::Closed { operation: 1, culprit: ALL, reason: Reason::Joined };
    assert_eq!(sent[0], (alloc::vec![0], joined));
    assert!(
        matches!(&sent[1], (to, Out::Welcome(w)) if *to == [1] && w.code == WelcomeCode::Waiting)
    );
    let mut again = join_of(JOB.0, 0, 0, 1);
    (again.address.generation, again.operation) = (trace.generation, 1);
    trace.joins_as(0, again);
    let sent = trace.sent();
    assert_eq!(sent.len(), 2, "{sent:?}");
    for (to, out) in sent {
        let Out::Welcome(welcome) = out else { panic!("{out:?}") };
        assert_eq!((to[0], welcome.workers, welcome.operation), (welcome.address.rank, 2, 1));
        assert_eq!(welcome.address.generation, trace.generation + 1);
    }
    // The old generation still answers.
    trace.asks(0, 0, 1, 0);
    assert_eq!(trace.results(), [(alloc::vec![0], 0, 1.0, 1)]);
}

#[test]
fn a_worker_that_leaves_ends_the_generation_and_is_not_waited_for() {
    let mut trace = Trace::with(2, Config::default());
    trace.piece(0, 0, 1, 1.0);
    trace.piece(1, 0, 1, 1.0);
    trace.sent();
    trace.leaves(1, 1);
    let closed = || Out::Closed { operation: 1, culprit: 1, reason: Reason::Left };
    // The leaver is told too, so that it sends its leave no more.
    assert_eq!(trace.sent(), [(alloc::vec![0], closed()), (alloc::vec![1], closed())]);
    // Where that word is lost, the leave comes again, to a switch that does not know the worker any more.
    assert_eq!(dropped(trace.leaves(1, 1)), "not_a_member");
    assert_eq!(trace.sent(), [(alloc::vec![1], closed())]);
    assert_eq!(dropped(trace.piece_of(1, (1, 1, 1), 1, 1.0)), "not_a_member");
}

#[test]
fn an_operation_that_all_have_sent_keeps_its_result_when_a_worker_leaves_in_it() {
    let mut trace = Trace::with(2, Config::default());
    trace.piece(0, 0, 1, 1.0);
    trace.piece(1, 0, 1, 1.0);
    trace.sent();
    trace.leaves(1, 0);
    let closed = |operation| Out::Closed { operation, culprit: 1, reason: Reason::Left };
    assert_eq!(trace.sent(), [(alloc::vec![0], closed(1)), (alloc::vec![1], closed(0))]);
    trace.asks(0, 0, 1, 0);
    assert_eq!(trace.results(), [(alloc::vec![0], 0, 2.0, 2)]);
}

#[test]
fn a_worker_that_waits_for_the_next_generation_can_leave() {
    let mut trace = Trace::with(2, Config::default());
    trace.leaves(1, 0);
    trace.joins(0, 2);
    assert_eq!(trace.leaves(0, u32::MAX), Verdict::Absorb);
    trace.sent();
    trace.joins(1, 2);
    let sent = trace.sent();
    let [(_, Out::Welcome(welcome))] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((welcome.code, welcome.here), (WelcomeCode::Waiting, 1));
}

#[test]
fn a_restarted_switch_tells_that_it_does_not_know_the_generation() {
    let mut trace = Trace::with(2, Config::default());
    trace.switch = Switch::new(Config::default(), 77).expect("a good configuration");
    assert_eq!(dropped(trace.piece(0, 0, 1, 1.0)), "unknown_generation");
    let unknown = Out::Closed { operation: 0, culprit: ALL, reason: Reason::Unknown };
    assert_eq!(trace.sent(), [(alloc::vec![0], unknown)]);
}

#[test]
fn a_worker_that_comes_back_takes_its_rank_once_its_old_life_is_silent() {
    let mut trace = Trace::with(2, Config::default());
    let again = |trace: &mut Trace| {
        let join = Join {
            address: Address { job: JOB, generation: 0, rank: 1, session: Session(99) },
            workers: 2,
            contributors: 1,
            deadline_us: 0,
            block_bytes: BLOCK,
            datagram_bytes: 1472,
            sent_at_us: 7,
            nonce: 0,
            operation: 0,
            program: 0,
        };
        let mut buf = [0; 256];
        let len = join.emit(&mut buf);
        trace.recv(9, &buf[..len]);
        trace.sent()
    };
    let sent = again(&mut trace);
    assert!(matches!(&sent[..], [(_, Out::Welcome(w))] if w.code == WelcomeCode::Waiting));
    trace.wait(Duration::from_millis(1500));
    trace.asks(0, 0, 0, 0);
    trace.sent();
    trace.wait(Duration::from_millis(600));
    let sent = again(&mut trace);
    let closed = Out::Closed { operation: 0, culprit: 1, reason: Reason::Dead };
    assert_eq!(sent[0], (alloc::vec![0, 1], closed));
    trace.joins(0, 2);
    let sent = trace.sent();
    assert_eq!(sent.len(), 2, "a new generation: {sent:?}");
}

#[test]
fn a_lane_that_is_no_number_is_told_once_with_its_worker() {
    for (non_finite, verdict) in [(NonFinite::Pass, None), (NonFinite::Refuse, Some("non_finite"))]
    {
        let mut trace = Trace::with(2, Config { non_finite, ..Config::default() });
        trace.piece(0, 0, 2, 1.0);
        for block in 0..2 {
            let met = trace.piece(1, block, 2, f32::NAN);
            match verdict {
                None => assert_eq!(met, Verdict::Absorb),
                Some(reason) => assert_eq!(dropped(met), reason),
            }
        }
        let events = core::iter::from_fn(|| trace.switch.poll_event());
        let told =
            events.filter(|event| matches!(event, Event::Sum(_, SumEvent::NonFinite { .. })));
        let expected = Event::Sum(JOB, SumEvent::NonFinite { rank: 1, operation: 0 });
        assert_eq!(told.collect::<Vec<_>>(), [expected]);
        // A refused piece counts as missing.
        let contributors = if verdict.is_none() { 2 } else { 1 };
        let results = trace.results();
        let [(_, 0, _, found)] = results[..] else { panic!("{results:?}") };
        assert_eq!(found, contributors);
        trace.adds_up();
    }
}

#[test]
fn two_faulty_workers_that_take_turns_are_told_once_each_in_an_operation() {
    let mut trace = Trace::with(2, Config::default());
    for block in 0..50 {
        trace.piece(0, block, 50, f32::NAN);
        trace.piece(1, block, 50, f32::INFINITY);
    }
    let events = core::iter::from_fn(|| trace.switch.poll_event());
    let told = events.filter(|event| matches!(event, Event::Sum(_, SumEvent::NonFinite { .. })));
    assert_eq!(told.count(), 2);
}

#[test]
fn a_block_without_any_finite_piece_ends_the_generation() {
    let non_finite = NonFinite::Refuse;
    let mut trace = Trace::with(2, Config { non_finite, ..Config::default() });
    assert_eq!(dropped(trace.piece(0, 0, 1, f32::NAN)), "non_finite");
    assert_eq!(dropped(trace.piece(0, 0, 1, f32::NAN)), "non_finite");
    assert_eq!(trace.sent(), []);
    assert_eq!(dropped(trace.piece(1, 0, 1, f32::INFINITY)), "non_finite");
    let closed = Out::Closed { operation: 0, culprit: 1, reason: Reason::Refused };
    assert_eq!(trace.sent(), [(alloc::vec![0, 1], closed)]);
    trace.adds_up();
}

#[test]
fn a_block_goes_without_a_piece_that_was_refused_first() {
    let non_finite = NonFinite::Refuse;
    let mut trace = Trace::with(3, Config { non_finite, ..Config::default() });
    assert_eq!(dropped(trace.piece(2, 0, 1, f32::NAN)), "non_finite");
    trace.piece(0, 0, 1, 1.0);
    assert_eq!(trace.sent(), []);
    trace.piece(1, 0, 1, 2.0);
    let lanes = alloc::vec![3.0; LANES];
    let words = alloc::vec![0b011];
    let result = Out::Result { block: 0, lanes, contributors: 2, words, resent: false };
    assert_eq!(trace.sent(), [(alloc::vec![0, 1, 2], result)]);
    trace.adds_up();
}

#[test]
fn a_worker_that_goes_while_the_next_generation_begins_disturbs_nobody() {
    let mut trace = Trace::with(2, Config::default());
    let old = trace.generation;
    trace.leaves(0, 0);
    trace.joins(1, 2);
    // The place of worker 0 has a new worker, and the next generation begins.
    trace.joins(0, 2);
    trace.sent();
    // Worker 1 has not heard so.
    let address = Address { generation: old, ..trace.address(1) };
    let leave = Leave { address, operation: u32::MAX };
    let mut buf = [0; 64];
    let len = leave.emit(&mut buf);
    trace.recv(1, &buf[..len]);
    let renewed = Out::Closed { operation: 0, culprit: ALL, reason: Reason::Renewed };
    assert!(trace.sent().contains(&(alloc::vec![0], renewed)));
}

#[test]
fn numbers_that_run_out_renew_the_generation() {
    let mut trace = Trace::with(2, Config { renew_at: 1, ..Config::default() });
    for rank in 0..2 {
        trace.piece(rank, 0, 1, 1.0);
    }
    trace.sent();
    assert_eq!(dropped(trace.piece_of(0, (1, 1, 1), 1, 1.0)), "closed");
    let renewed = Out::Closed { operation: 1, culprit: ALL, reason: Reason::Renewed };
    assert_eq!(trace.sent(), [(alloc::vec![0, 1], renewed)]);
    trace.joins(0, 2);
    trace.joins(1, 2);
    assert_eq!(trace.switch.statistics(trace.now).generations, 2);
}

#[test]
fn strangers_and_old_messages_are_refused_by_name() {
    let mut trace = Trace::with(2, Config::default());
    let generation = trace.generation;
    assert_eq!(dropped(trace.piece(7, 0, 1, 1.0)), "not_a_member");
    trace.generation = generation + 1;
    assert_eq!(dropped(trace.piece(0, 0, 1, 1.0)), "unknown_generation");
    trace.generation = generation;
    let bytes = b"OLFR no message";
    assert_eq!(dropped(trace.recv(0, bytes)), "truncated");
    trace.sent();
    let verdict = {
        let leave = Leave { address: trace.address(0), operation: 0 };
        let mut buf = [0; 64];
        let len = leave.emit(&mut buf);
        trace.recv(1, &buf[..len])
    };
    assert_eq!(dropped(verdict), "wrong_sender");
    assert_eq!(trace.sent(), [], "whose leave does not count, is told nothing");
    let receivers = trace.switch.jobs[&JOB].current.as_ref().map(|one| one.group.len());
    assert_eq!(receivers, Some(2), "nobody else is hurt");
}

#[test]
fn jobs_have_a_limit_and_deserted_jobs_make_room() {
    let mut trace = Trace::new(Config { jobs: 1, ..Config::default() });
    trace.joins(0, 0);
    let join = Join {
        address: Address { job: JobId(2), generation: 0, rank: ALL, session: Session(50) },
        workers: 0,
        contributors: 1,
        deadline_us: 0,
        block_bytes: 0,
        datagram_bytes: 1472,
        sent_at_us: 0,
        nonce: 0,
        operation: 0,
        program: 0,
    };
    let mut buf = [0; 64];
    let len = join.emit(&mut buf);
    assert_eq!(dropped(trace.recv(5, &buf[..len])), "full");
    trace.wait(Duration::from_secs(3));
    assert_eq!(trace.recv(5, &buf[..len]), Verdict::Absorb);
}
