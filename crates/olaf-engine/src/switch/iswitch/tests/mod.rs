//! Traces of datagrams: what comes in, and what goes out.

mod claims;
mod non_finite;

use super::*;
use crate::blocks::by_index::Reason as Unfit;
use crate::engine::{Ecn, TrafficClass};
use crate::sums::CONTESTED;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::iswitch::{Halt, Join, Leave, Packets};
use olaf_wire::offsets::MAX_DATAGRAM;

const JOB: JobId = JobId(1);

/// A message that left, with its receivers.
#[derive(Clone, Debug, PartialEq)]
enum Out {
    Data(Seg, Vec<f32>),
    Control(Control),
}

struct Trace {
    switch: Switch,
    now: Instant,
    generation: u8,
}

impl Trace {
    fn new() -> Self {
        Self::set_up(Config::default())
    }

    fn set_up(config: Config) -> Self {
        let config = Config { slots: 4, silence: CONTESTED, ..config };
        let switch = Switch::new(config, 77).expect("a good configuration");
        Self { switch, now: Instant(1_000_000_000), generation: 77 }
    }

    /// A switch with a generation of that many workers: worker `r` is at peer `r` and has session `r + 1`.
    fn with(workers: u32) -> Self {
        Self::of(workers, Config::default())
    }

    fn of(workers: u32, config: Config) -> Self {
        let mut trace = Self::set_up(config);
        for rank in 0..workers {
            trace.joins(JOB, rank, workers);
        }
        trace.sent();
        trace
    }

    fn recv(&mut self, port: PortId, peer: u32, class: u8, bytes: &[u8]) -> Verdict {
        let class = TrafficClass::new(class, Ecn::Capable0);
        let source = Source { port, peer: PeerId(peer), class };
        self.switch.handle_packet(self.now, source, bytes)
    }

    fn says(&mut self, peer: u32, message: Control) -> Verdict {
        let mut buf = [0; 64];
        let len = message.emit(&mut buf);
        self.recv(PortId::DOWNLINK, peer, CONTROL_CLASS, &buf[..len])
    }

    fn joins(&mut self, job: JobId, rank: u32, workers: u32) -> Verdict {
        self.says(rank, Control::Join(Self::join(job, rank, workers)))
    }

    fn join(job: JobId, rank: u32, workers: u32) -> Join {
        Join {
            generation: 0,
            sender: Sender::Worker,
            job,
            session: Session(rank + 1),
            rank,
            workers,
            contributors: 1,
            packet_floats: 366,
            operations: ANY,
            program: 0,
            nonce: 0,
        }
    }

    fn packet(&mut self, port: PortId, peer: u32, seg: Seg, floats: &[f32]) -> Verdict {
        let mut buf = [0; 64];
        let start = emit_seg(seg, &mut buf);
        let bytes: Vec<u8> = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
        buf[start..start + bytes.len()].copy_from_slice(&bytes);
        self.recv(port, peer, DATA_CLASS, &buf[..start + bytes.len()])
    }

    fn seg(&self, index: u64) -> Seg {
        Seg { generation: self.generation, last: false, missing: 0, index }
    }

    fn sends(&mut self, rank: u32, index: u64, float: f32) -> Verdict {
        self.packet(PortId::DOWNLINK, rank, self.seg(index), &[float, 1.0])
    }

    fn packets(&self, index: u64, mask: u64) -> Packets {
        Packets { generation: self.generation, sent_at_us: 9, index, mask }
    }

    fn ack(&self, action: Action, outcome: Outcome, sent_at_us: u32) -> Out {
        let (generation, index) = (self.generation, 0);
        let ack = Ack { generation, action, outcome, sent_at_us, index, admission: None };
        Out::Control(Control::Ack(ack))
    }

    fn halt(&self, reason: Reason, culprit: u32, index: u64) -> Out {
        let generation = self.generation;
        Out::Control(Control::Halt(Halt { generation, reason, culprit, index, calls: 0 }))
    }

    /// What leaves, with its receivers; what goes up has the receiver 99.
    fn sent(&mut self) -> Vec<(Vec<u32>, Out)> {
        let mut buf = vec![0; MAX_DATAGRAM];
        let mut sent = Vec::new();
        for port in [PortId::UPLINK, PortId::DOWNLINK] {
            while let Some(transmit) = self.switch.poll_transmit(self.now, port, &mut buf) {
                let bytes = &buf[..transmit.len];
                let out = match transmit.class.dscp() {
                    DATA_CLASS => {
                        let packet = DataPacket::new_checked(bytes).expect("a data packet");
                        let floats = packet.floats.as_chunks().0.iter();
                        Out::Data(
                            packet.seg,
                            floats.map(|float| f32::from_le_bytes(*float)).collect(),
                        )
                    }
                    CONTROL_CLASS => Out::Control(Control::parse(bytes).expect("a message")),
                    other => panic!("class {other}"),
                };
                sent.push((transmit.to.as_slice().iter().map(|peer| peer.0).collect(), out));
            }
        }
        sent
    }

    fn after(&mut self, time: Duration) {
        self.now = self.now + time;
        while self.switch.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
            self.switch.handle_timeout(self.now);
        }
    }
}

fn admission_of(out: &Out) -> Option<(Outcome, Admission)> {
    match out {
        Out::Control(Control::Ack(ack)) => Some((ack.outcome, ack.admission?)),
        _ => None,
    }
}

#[test]
fn a_join_is_answered_and_the_last_one_begins_the_job() {
    let mut trace = Trace::new();
    assert_eq!(trace.joins(JOB, 1, 2), Verdict::Absorb);
    let sent = trace.sent();
    let (outcome, admission) = admission_of(&sent[0].1).expect("an answer");
    assert_eq!((sent.len(), &*sent[0].0, outcome), (1, &[1][..], Outcome::Waiting));
    assert_eq!((admission.here, admission.workers, admission.rank), (1, 2, ANY));
    trace.joins(JOB, 0, 2);
    let sent = trace.sent();
    let welcome: Vec<(u32, u32, u32)> = sent
        .iter()
        .filter_map(|(to, out)| Some((to[0], admission_of(out)?)))
        .filter(|(_, (outcome, _))| *outcome == Outcome::Success)
        .map(|(to, (_, admission))| (to, admission.rank, admission.packet_floats))
        .collect();
    assert_eq!(welcome, [(0, 0, 366), (1, 1, 366)]);
    // The answer was lost: the same join gets it again.
    trace.joins(JOB, 0, 2);
    let sent = trace.sent();
    assert_eq!(admission_of(&sent[0].1).map(|(outcome, _)| outcome), Some(Outcome::Success));
}

#[test]
fn joins_that_cannot_be_are_refused_by_name() {
    let mut trace = Trace::with(2);
    let outcome = |trace: &mut Trace| {
        let sent = trace.sent();
        admission_of(&sent[0].1).map(|(outcome, _)| outcome)
    };
    assert!(matches!(trace.joins(JOB, 5, 3), Verdict::Drop(_)));
    assert_eq!(outcome(&mut trace), Some(Outcome::Refused), "another number of workers");
    for job in 2..=8 {
        trace.joins(JobId(job), 0, 2);
    }
    trace.sent();
    assert!(matches!(trace.joins(JobId(9), 0, 2), Verdict::Drop(_)));
    assert_eq!(outcome(&mut trace), Some(Outcome::Full), "eight jobs are the most");
    let mut buf = [0; 64];
    let len = Control::Join(Trace::join(JOB, 0, 2)).emit(&mut buf);
    buf[2] = 9;
    trace.recv(PortId::DOWNLINK, 0, CONTROL_CLASS, &buf[..len]);
    assert_eq!(outcome(&mut trace), Some(Outcome::OtherVersion));
}

#[test]
fn a_sum_goes_to_all_as_soon_as_it_is_complete() {
    let mut trace = Trace::with(3);
    trace.sends(0, 0, 1.0);
    trace.sends(1, 0, 2.0);
    trace.sends(0, 1, 8.0);
    assert_eq!(trace.sent(), []);
    trace.sends(2, 0, 4.0);
    assert_eq!(trace.sent(), [(vec![0, 1, 2], Out::Data(trace.seg(0), vec![7.0, 3.0]))]);
}

#[test]
fn a_repeated_packet_of_a_sum_that_left_gets_the_result() {
    let mut trace = Trace::with(2);
    trace.sends(0, 0, 1.0);
    assert_eq!(trace.sends(0, 0, 1.0), Verdict::Absorb);
    trace.sends(1, 0, 2.0);
    trace.sent();
    trace.sends(1, 0, 2.0);
    assert_eq!(trace.sent(), [(vec![1], Out::Data(trace.seg(0), vec![3.0, 2.0]))]);
}

#[test]
fn help_is_answered_with_the_result_the_lost_packet_or_an_ack() {
    let mut trace = Trace::with(2);
    trace.sends(0, 0, 1.0);
    trace.sends(1, 0, 2.0);
    trace.sends(0, 1, 1.0);
    trace.sent();
    // Worker 1 lacks the result of packet 0; its own packet 1 was lost.
    trace.says(1, Control::Help(trace.packets(0, 0b11)));
    let result = (vec![1], Out::Data(trace.seg(0), vec![3.0, 2.0]));
    let help = Out::Control(Control::Help(trace.packets(0, 0b10)));
    assert_eq!(trace.sent(), [result, (vec![1], help)]);
    // Worker 0 waits for worker 1.
    trace.says(0, Control::Help(trace.packets(1, 1)));
    let waiting = trace.ack(Action::Help, Outcome::Waiting, 9);
    assert_eq!(trace.sent(), [(vec![0], waiting)]);
}

#[test]
fn two_vectors_of_a_worker_complete_a_sum_of_two() {
    let mut trace = Trace::with(2);
    assert_eq!(trace.sends(0, 0, 1.0), Verdict::Absorb);
    let second = Seg { missing: 1, ..trace.seg(0) };
    // A packet that comes again counts once.
    assert_eq!(trace.sends(0, 0, 1.0), Verdict::Absorb);
    assert_eq!(trace.sent(), []);
    assert_eq!(trace.packet(PortId::DOWNLINK, 0, second, &[4.0, 1.0]), Verdict::Absorb);
    let seg = Seg { missing: 2, ..trace.seg(0) };
    assert_eq!(
        seg.vectors_of(2),
        (2, true),
        "no vector is missing, and not each has its own worker"
    );
    let result = Out::Data(seg, vec![5.0, 2.0]);
    assert_eq!(trace.sent(), [(vec![0, 1], result.clone())]);
    // The slow worker's vector is late, and it is told the result.
    assert_eq!(trace.sends(1, 0, 9.0), Verdict::Absorb);
    assert_eq!(trace.sent(), [(vec![1], result)]);
    assert_eq!(trace.switch.statistics(trace.now).pieces.late, 1);
}

#[test]
fn fbcast_sends_what_is_there_and_says_how_many_are_missing() {
    let mut trace = Trace::with(3);
    trace.says(0, Control::FBcast(trace.packets(0, 1)));
    let refused = trace.ack(Action::FBcast, Outcome::Refused, 9);
    assert_eq!(trace.sent(), [(vec![0], refused)], "nothing is there");
    trace.sends(1, 0, 2.0);
    trace.says(0, Control::FBcast(trace.packets(0, 1)));
    let seg = Seg { missing: 2, ..trace.seg(0) };
    let done = trace.ack(Action::FBcast, Outcome::Success, 9);
    let sum = Out::Data(seg, vec![2.0, 1.0]);
    assert_eq!(trace.sent(), [(vec![0, 1, 2], sum.clone()), (vec![0], done)]);
    // The late packet gets the result.
    trace.sends(2, 0, 4.0);
    assert_eq!(trace.sent(), [(vec![2], sum)]);
}

#[test]
fn set_h_is_confirmed_or_refused() {
    let mut trace = Trace::with(3);
    let generation = trace.generation;
    for (h, outcome) in [(2, Outcome::Success), (4, Outcome::Refused)] {
        trace.says(0, Control::SetH { generation, h });
        let ack = trace.ack(Action::SetH, outcome, 0);
        assert_eq!(trace.sent(), [(vec![0], ack)]);
    }
    trace.sends(0, 0, 1.0);
    trace.sends(2, 0, 1.0);
    let seg = Seg { missing: 1, ..trace.seg(0) };
    assert_eq!(trace.sent(), [(vec![0, 1, 2], Out::Data(seg, vec![2.0, 2.0]))]);
}

#[test]
fn reset_halt_and_leave_are_confirmed_and_end_the_generation() {
    let halt = |reason, culprit| Halt { generation: 77, reason, culprit, index: 0, calls: 0 };
    let leave = Leave { generation: 77, job: JOB, session: Session(2) };
    for (message, reason) in [
        (Control::Reset { generation: 77 }, Reason::Renewed),
        (Control::Halt(halt(Reason::Dead, 0)), Reason::Left),
        (Control::Leave(leave), Reason::Left),
    ] {
        let mut trace = Trace::with(2);
        trace.sends(0, 0, 1.0);
        trace.sends(1, 0, 1.0);
        trace.sends(0, 1, 1.0);
        trace.sent();
        trace.says(1, message);
        let ack = trace.ack(message.action(), Outcome::Success, 0);
        let halt = trace.halt(reason, 1, 1);
        assert_eq!(trace.sent(), [(vec![1], ack), (vec![0, 1], halt)]);
        // The result before the end stays; later packets are refused, and their sender is told again.
        trace.says(0, Control::Help(trace.packets(0, 1)));
        let sent = trace.sent();
        assert!(sent.contains(&(vec![0], Out::Data(trace.seg(0), vec![2.0, 2.0]))), "{sent:?}");
        let verdict = trace.sends(0, 1, 1.0);
        assert_eq!(verdict, Verdict::Drop(DropReason::Piece(Unfit::Closed)));
        assert_eq!(trace.sent(), [(vec![0], trace.halt(reason, 1, 1))]);
    }
}

#[test]
fn a_stranger_hears_that_its_generation_is_unknown() {
    let mut trace = Trace::with(2);
    assert_eq!(trace.sends(7, 0, 1.0), Verdict::Drop(DropReason::UnknownGeneration));
    assert_eq!(trace.sent(), [(vec![7], trace.halt(Reason::Unknown, ANY, 0))]);
    // A member with another generation is a stranger, too.
    let seg = Seg { generation: 5, ..trace.seg(0) };
    let verdict = trace.packet(PortId::DOWNLINK, 0, seg, &[1.0]);
    assert_eq!(verdict, Verdict::Drop(DropReason::UnknownGeneration));
}

#[test]
fn a_silent_worker_is_dead_where_others_wait() {
    let mut trace = Trace::with(2);
    let alive = Ack {
        generation: 77,
        action: Action::Ack,
        outcome: Outcome::Success,
        sent_at_us: 3,
        index: 0,
        admission: None,
    };
    trace.sends(0, 0, 1.0);
    for _ in 0..6 {
        trace.after(Duration::from_millis(500));
        trace.says(0, Control::Ack(alive));
    }
    let sent = trace.sent();
    let halt = (vec![0, 1], trace.halt(Reason::Dead, 1, 0));
    assert!(sent.contains(&halt), "{sent:?}");
    let ack = trace.ack(Action::Ack, Outcome::Success, 3);
    assert!(sent.contains(&(vec![0], ack)), "a heartbeat is confirmed");
}

#[test]
fn two_jobs_of_one_address_do_not_meet() {
    let mut trace = Trace::with(1);
    trace.joins(JobId(2), 0, 1);
    trace.sent();
    trace.sends(0, 0, 1.0);
    let other = Seg { generation: 78, ..trace.seg(0) };
    trace.packet(PortId::DOWNLINK, 0, other, &[5.0]);
    let results = [(trace.seg(0), vec![1.0, 1.0]), (other, vec![5.0])];
    let results = results.map(|(seg, floats)| (vec![0], Out::Data(seg, floats)));
    assert_eq!(trace.sent(), results);
}

#[test]
fn a_packet_without_a_job_is_of_the_job_that_its_address_is_in() {
    // Job 1 is at address 0 in generation 77, job 2 at address 5 in generation 78.
    let mut trace = Trace::with(1);
    trace.joins(JobId(2), 5, 1);
    trace.sent();
    let job_of = |peer: u32, class: u8, bytes: &[u8]| {
        let class = TrafficClass::new(class, Ecn::Capable0);
        trace.switch.job_of(Source { port: PortId::DOWNLINK, peer: PeerId(peer), class }, bytes)
    };
    let data = |generation: u8| {
        let mut buf = [0; SEG + 4];
        emit_seg(Seg { generation, ..trace.seg(0) }, &mut buf);
        buf
    };
    let said = |message: Control| {
        let mut buf = [0; 64];
        let len = message.emit(&mut buf);
        buf[..len].to_vec()
    };
    assert_eq!(job_of(0, DATA_CLASS, &data(77)), Some(1));
    assert_eq!(job_of(5, DATA_CLASS, &data(78)), Some(2));
    assert_eq!(job_of(0, DATA_CLASS, &data(78)), None, "the address is not in it");
    assert_eq!(job_of(5, CONTROL_CLASS, &said(Control::Reset { generation: 78 })), Some(2));
    // What names a job is of that job, wherever it comes from.
    let join = Control::Join(Trace::join(JobId(1), 0, 1));
    assert_eq!(job_of(5, CONTROL_CLASS, &said(join)), Some(1));
    let leave = Leave { generation: 78, job: JobId(2), session: Session(6) };
    assert_eq!(job_of(0, CONTROL_CLASS, &said(Control::Leave(leave))), Some(2));
    for odd in [&[][..], &[9][..], &[1, 2, 3][..]] {
        assert_eq!((job_of(0, DATA_CLASS, odd), job_of(0, CONTROL_CLASS, odd)), (None, None));
    }
}

#[test]
fn regular_traffic_is_dropped_where_no_list_names_its_sender() {
    let mut trace = Trace::with(1);
    trace.switch.set_upstream(PeerId(9), 1472);
    let foreign = Verdict::Drop(DropReason::Foreign);
    for port in [PortId::DOWNLINK, PortId::UPLINK] {
        assert_eq!(trace.recv(port, 0, 0, &[1; 40]), foreign);
        assert_eq!(trace.recv(port, 0, 46, &[1; 40]), foreign);
    }
    assert!(trace.sent().is_empty());
    let mut buf = [0; 64];
    assert!(trace.switch.poll_transmit(trace.now, PortId::UPLINK, &mut buf).is_none());
    let counts = trace.switch.statistics(trace.now);
    assert_eq!((counts.passed_on, counts.refused["foreign"]), (0, 4));
    // With a list each datagram goes up once, in its class.
    trace.switch.pass_on(PeerId(0), PeerId(9));
    assert_eq!(trace.recv(PortId::DOWNLINK, 0, 46, &[1; 40]), Verdict::Absorb);
    assert_eq!(trace.recv(PortId::DOWNLINK, 1, 46, &[1; 40]), foreign, "it is not named");
    let sent = trace.switch.poll_transmit(trace.now, PortId::UPLINK, &mut buf);
    let sent = sent.expect("it goes up");
    assert_eq!((sent.to.one(), sent.len, sent.class.dscp()), (Some(PeerId(9)), 40, 46));
    assert_eq!(buf[..40], [1; 40]);
}

#[test]
fn marks_of_congestion_are_handed_on() {
    let mut trace = Trace::with(1);
    let mut buf = [0; 12];
    emit_seg(trace.seg(0), &mut buf);
    let class = TrafficClass::new(DATA_CLASS, Ecn::Marked);
    let source = Source { port: PortId::DOWNLINK, peer: PeerId(0), class };
    trace.switch.handle_packet(trace.now, source, &buf);
    let sent = trace.switch.poll_transmit(trace.now, PortId::DOWNLINK, &mut vec![0; MAX_DATAGRAM]);
    assert_eq!(sent.map(|sent| sent.class.ecn()), Some(Ecn::Marked));
}

#[test]
fn a_lower_switch_sends_sums_up_and_results_down() {
    let mut trace = Trace::new();
    trace.switch.set_upstream(PeerId(99), 1472);
    trace.joins(JOB, 0, 3);
    trace.joins(JOB, 1, 3);
    let joins = trace.sent();
    let join = joins.iter().rev().find_map(|(to, out)| match out {
        Out::Control(Control::Join(join)) if *to == [99] => Some(*join),
        _ => None,
    });
    let join = join.expect("a join goes up");
    assert_eq!((join.contributors, join.workers, join.sender), (2, 3, Sender::Switch));
    let admission = Admission {
        member: 1,
        rank: ANY,
        workers: 3,
        here: 3,
        slots: 64,
        packet_floats: 100,
        operations: 0,
        session: join.session,
        nonce: 0,
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
    let sent = trace.sent();
    let floats = sent.iter().filter_map(|(_, out)| admission_of(out));
    assert!(floats.clone().all(|(_, of)| (of.packet_floats, of.slots) == (100, 4)));
    assert_eq!(floats.count(), 2);
    trace.sends(0, 0, 1.0);
    trace.sends(1, 0, 2.0);
    let up = Seg { generation: 9, ..trace.seg(0) };
    assert_eq!(trace.sent(), [(vec![99], Out::Data(up, vec![3.0, 2.0]))]);
    // The sum was lost: the switch above asks for it.
    let help = Control::Help(Packets { generation: 9, sent_at_us: 0, index: 0, mask: 1 });
    let len = help.emit(&mut buf);
    trace.recv(PortId::UPLINK, 99, CONTROL_CLASS, &buf[..len]);
    assert_eq!(trace.sent(), [(vec![99], Out::Data(up, vec![3.0, 2.0]))]);
    trace.packet(PortId::UPLINK, 99, up, &[8.0, 3.0]);
    assert_eq!(trace.sent(), [(vec![0, 1], Out::Data(trace.seg(0), vec![8.0, 3.0]))]);
    // Two vectors of one worker: both directions say that a worker may be missing.
    trace.sends(0, 1, 1.0);
    let second = Seg { missing: 1, ..trace.seg(1) };
    trace.packet(PortId::DOWNLINK, 0, second, &[1.0, 1.0]);
    let up = Seg { generation: 9, missing: 2, ..trace.seg(1) };
    assert_eq!(trace.sent(), [(vec![99], Out::Data(up, vec![2.0, 2.0]))]);
    let result = Seg { missing: 3, ..up };
    trace.packet(PortId::UPLINK, 99, result, &[8.0, 3.0]);
    let seg = Seg { missing: 3, ..trace.seg(1) };
    assert_eq!(trace.sent(), [(vec![0, 1], Out::Data(seg, vec![8.0, 3.0]))]);
    // The generation ends at packet 4. The results of packets 2 and 3 were lost on their way down.
    let halt = Halt { generation: 9, reason: Reason::Left, culprit: ANY, index: 4, calls: 0 };
    let len = Control::Halt(halt).emit(&mut buf);
    trace.recv(PortId::UPLINK, 99, CONTROL_CLASS, &buf[..len]);
    trace.sent();
    let asked_above = |trace: &mut Trace| {
        trace.says(0, Control::Help(trace.packets(2, 0b111)));
        let sent = trace.sent();
        let up = |(to, out): &(Vec<u32>, Out)| match out {
            Out::Control(Control::Help(asked)) if *to == [99] => Some((asked.index, asked.mask)),
            _ => None,
        };
        sent.iter().filter_map(up).collect::<Vec<_>>()
    };
    assert_eq!(asked_above(&mut trace), [(2, 0b11)]);
    for index in [2, 3] {
        let result = Seg { generation: 9, ..trace.seg(index) };
        trace.packet(PortId::UPLINK, 99, result, &[8.0, 3.0]);
    }
    assert_eq!(asked_above(&mut trace), [], "packet 4 has no result");
}

#[test]
fn a_sum_of_a_lower_switch_says_that_it_has_several_vectors_of_a_worker() {
    let mut trace = Trace::new();
    let join = Join { contributors: 2, sender: Sender::Switch, ..Trace::join(JOB, 0, 3) };
    trace.says(0, Control::Join(Join { rank: ANY, ..join }));
    trace.joins(JOB, 1, 3);
    trace.sent();
    trace.sends(1, 0, 1.0);
    let sum = Seg { missing: 2, ..trace.seg(0) };
    trace.packet(PortId::DOWNLINK, 0, sum, &[2.0, 2.0]);
    let seg = Seg { missing: 3, ..trace.seg(0) };
    assert_eq!(trace.sent(), [(vec![1, 0], Out::Data(seg, vec![3.0, 3.0]))]);
}

#[test]
fn a_leave_from_another_address_ends_nothing() {
    let leave = |generation| Control::Leave(Leave { generation, job: JOB, session: Session(1) });
    let not_a_member = Verdict::Drop(DropReason::NotAMember);
    let mut trace = Trace::with(2);
    assert_eq!(trace.says(5, leave(trace.generation)), not_a_member);
    assert!(trace.switch.jobs[&JOB].is_open());
    // Nor does it put out a worker that waits.
    let mut trace = Trace::new();
    trace.joins(JOB, 0, 2);
    assert_eq!(trace.says(5, leave(0)), not_a_member);
    trace.joins(JOB, 1, 2);
    assert!(trace.switch.jobs[&JOB].is_open(), "both are there");
}

#[test]
fn a_packet_longer_than_was_agreed_is_refused() {
    let mut trace = Trace::with(1);
    let mut bytes = vec![0; 2048];
    let seg = Seg { generation: trace.generation, last: false, missing: 0, index: 0 };
    let start = emit_seg(seg, &mut bytes);
    let long = trace.recv(PortId::DOWNLINK, 0, DATA_CLASS, &bytes[..start + 4 * 367]);
    let refusal = olaf_wire::Refusal::BadField("floats");
    assert_eq!(long, Verdict::Drop(DropReason::Malformed(refusal)));
    let fits = trace.recv(PortId::DOWNLINK, 0, DATA_CLASS, &bytes[..start + 4 * 366]);
    assert_eq!(fits, Verdict::Absorb);
}

#[test]
fn a_job_with_no_room_to_say_so_has_one_vector_of_each_worker() {
    let mut trace = Trace::new();
    let join = Join { contributors: 1024, ..Trace::join(JOB, 0, 1025) };
    trace.says(0, Control::Join(Join { sender: Sender::Switch, rank: ANY, ..join }));
    trace.joins(JOB, 1, 1025);
    trace.sent();
    let second = Seg { missing: 1, ..trace.seg(0) };
    let refused = Verdict::Drop(DropReason::Malformed(olaf_wire::Refusal::BadField("missing")));
    assert_eq!(trace.packet(PortId::DOWNLINK, 1, second, &[1.0, 1.0]), refused);
    assert_eq!(trace.sends(1, 0, 1.0), Verdict::Absorb);
}
