//! What an end refuses, and what it says to a switch that is not there. The rest is tested in the simulated
//! network (`olaf-sim/tests/all/iswitch`).

use super::*;
use crate::collective::{Label, Reduction, Sum};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::{Ecn, Refused, TrafficClass, WorkerEvent};
use olaf_wire::iswitch::{
    ANY, Ack, Action, Admission, CONTROL_CLASS, Control, DATA_CLASS, DataPacket, Halt, Outcome,
    Seg, emit_seg,
};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{LaneType, Reason};
use olaf_wire::{JobId, Refusal, Session};

const SWITCH: PeerId = PeerId(9);
const START: Instant = Instant(1 << 40);

fn config() -> Config {
    let mut config = Config::new(JobId(1), Session(7), SWITCH);
    (config.workers, config.datagram_bytes) = (2, 1472);
    config
}

fn worker() -> Worker {
    let mut worker = Worker::new(config(), Options::default()).expect("a good set-up");
    worker.join(START);
    worker
}

fn operation(lane_type: LaneType, reduction: Reduction, bytes: usize) -> Operation {
    Operation {
        lane_type,
        reduction,
        buffer: Box::new(vec![0u8; bytes]),
        accepts_partial: false,
        label: Label::default(),
    }
}

fn recv(worker: &mut Worker, peer: PeerId, class: u8, bytes: &[u8]) -> Verdict {
    let class = TrafficClass::new(class, Ecn::NotCapable);
    worker.handle_packet(START, Source { class, ..Source::end(peer) }, bytes)
}

fn says(worker: &mut Worker, message: Control) -> Verdict {
    let mut buf = [0; 64];
    let len = message.emit(&mut buf);
    recv(worker, SWITCH, CONTROL_CLASS, &buf[..len])
}

fn admission(session: u32) -> Admission {
    Admission {
        member: 1,
        rank: 0,
        workers: 2,
        here: 2,
        slots: 8,
        packet_floats: 2,
        operations: 0,
        session: Session(session),
        nonce: 0,
    }
}

fn welcome_with(admission: Admission) -> Control {
    Control::Ack(Ack {
        generation: 3,
        action: Action::Join,
        outcome: Outcome::Success,
        sent_at_us: 0,
        index: 0,
        admission: Some(admission),
    })
}

fn welcome(session: u32) -> Control {
    welcome_with(admission(session))
}

/// What leaves now.
fn sent(worker: &mut Worker, now: Instant) -> Vec<(u8, Vec<u8>)> {
    let mut buf = vec![0; MAX_DATAGRAM];
    let next = || {
        let sent = worker.poll_transmit(now, PortId(0), &mut buf)?;
        Some((sent.class.dscp(), buf[..sent.len].to_vec()))
    };
    core::iter::from_fn(next).collect()
}

#[test]
fn a_set_up_that_cannot_be_names_its_key() {
    let key = |change: &dyn Fn(&mut Config, &mut Options)| {
        let (mut config, mut own) = (config(), Options::default());
        change(&mut config, &mut own);
        Worker::new(config, own).err().map(|error| error.key)
    };
    assert_eq!(key(&|_, _| ()), None);
    assert_eq!(key(&|config, _| config.workers = 0), Some("workers"));
    assert_eq!(key(&|config, _| config.workers = 2048), Some("workers"));
    assert_eq!(key(&|config, _| config.datagram_bytes = 11), Some("datagram_bytes"));
    assert_eq!(key(&|_, own| own.packet_floats = Some(0)), Some("packet_floats"));
    assert_eq!(key(&|_, own| own.threshold = Some(3)), Some("threshold"));
    assert_eq!(key(&|_, own| own.threshold = Some(0)), Some("threshold"));
}

#[test]
fn only_sums_means_and_broadcasts_of_f32_can_be() {
    let mut worker = worker();
    for (lane_type, reduction, bytes) in [
        (LaneType::F16, Reduction::Sum, 4),
        (LaneType::I32, Reduction::Sum, 4),
        (LaneType::F32, Reduction::Max, 4),
        (LaneType::F32, Reduction::ExactSum, 4),
        (LaneType::F32, Reduction::Sum, 0),
        (LaneType::F32, Reduction::Sum, 6),
    ] {
        // It is an operation, too: the others have to hear of it.
        assert!(worker.begin(START, operation(lane_type, reduction, bytes)).is_ok());
    }
    assert!(worker.begin(START, operation(LaneType::F32, Reduction::Mean, 4)).is_ok());
    worker.leave(START);
    let ended: Vec<_> = core::iter::from_fn(|| worker.poll_done()).collect();
    let refused = |done: &Done| matches!(done.outcome, Err(Failure::BadOperation(_)));
    assert_eq!(ended.iter().filter(|done| refused(done)).count(), 6);
    assert_eq!(ended.last().map(|done| done.outcome), Some(Err(Failure::NotJoined)));
    let bytes: Vec<usize> = ended.iter().map(|done| done.buffer.bytes().len()).collect();
    assert_eq!(bytes, [4, 4, 4, 4, 0, 6, 4], "each caller has its own lanes again");
    let refused = worker.begin(START, operation(LaneType::F32, Reduction::Sum, 4));
    assert!(matches!(refused, Err((Failure::NotJoined, _))));
}

#[test]
fn a_join_has_the_meta_data_of_the_job() {
    let mut worker = worker();
    let sent = sent(&mut worker, START);
    let [(class, bytes)] = &sent[..] else { panic!("{sent:?}") };
    let Ok(Control::Join(join)) = Control::parse(bytes) else { panic!("{bytes:?}") };
    assert_eq!((*class, join.workers, join.packet_floats), (CONTROL_CLASS, 2, 366));
    assert_eq!((join.rank, join.operations), (ANY, ANY));
}

#[test]
fn a_vector_leaves_in_packets_and_the_last_one_says_so() {
    let mut worker = worker();
    says(&mut worker, welcome(7));
    sent(&mut worker, START);
    let operation = operation(LaneType::F32, Reduction::Sum, 20);
    assert!(worker.begin(START, operation).is_ok());
    let packets: Vec<(Seg, usize)> = sent(&mut worker, START)
        .iter()
        .filter(|(class, _)| *class == DATA_CLASS)
        .map(|(_, bytes)| DataPacket::new_checked(bytes).expect("a data packet"))
        .map(|packet| (packet.seg, packet.floats.len() / 4))
        .collect();
    let seg = |index, last| Seg { generation: 3, last, missing: 0, index };
    assert_eq!(packets, [(seg(0, false), 2), (seg(1, false), 2), (seg(2, true), 1)]);
}

/// Vector numbers and indices of the data packets that leave.
fn vectors(worker: &mut Worker, now: Instant) -> Vec<(u16, u64)> {
    let sent = sent(worker, now);
    let data = sent.iter().filter(|(class, _)| *class == DATA_CLASS);
    let seg = |bytes: &[u8]| DataPacket::new_checked(bytes).expect("a data packet").seg;
    data.map(|(_, bytes)| (seg(bytes).missing, seg(bytes).index)).collect()
}

#[test]
fn vectors_of_one_sum_are_numbered_and_later_ones_come_again() {
    let mut worker = worker();
    says(&mut worker, welcome(7));
    let sum = operation(LaneType::F32, Reduction::Pipelined { iteration: 6 }, 16);
    assert!(worker.begin(START, sum).is_ok());
    assert_eq!(vectors(&mut worker, START), [], "its own lanes are not sent");
    let commit = |worker: &mut Worker, began| {
        worker.contribute(START, began, 3, Box::new(vec![0u8; 16])).expect("it fits")
    };
    assert_eq!(commit(&mut worker, 2), Commit::Stale { staleness: 4 });
    assert_eq!(commit(&mut worker, 3), Commit::Send { staleness: 3 });
    assert_eq!(vectors(&mut worker, START), [(0, 0), (0, 1)]);
    assert_eq!(commit(&mut worker, 6), Commit::Send { staleness: 0 });
    assert_eq!(vectors(&mut worker, START), [(1, 0), (1, 1)]);
    assert_eq!(commit(&mut worker, 6), Commit::Surplus, "H = 2");
    // Nothing says that a packet of the second vector is lost.
    let at = worker.poll_timeout().expect("it repeats them").0;
    assert!(at <= START + Duration::from_millis(20));
    let later = START + Duration::from_millis(20);
    assert_eq!(vectors(&mut worker, later), [(1, 0), (1, 1)]);
    let mut buf = [0; 64];
    for index in 0..2 {
        let seg = Seg { generation: 3, last: index == 1, missing: 0, index };
        let start = emit_seg(seg, &mut buf);
        let verdict = recv(&mut worker, SWITCH, DATA_CLASS, &buf[..start + 8]);
        assert_eq!(verdict, Verdict::Absorb);
    }
    assert!(worker.poll_done().is_some_and(|done| done.outcome.is_ok()));
    assert_eq!(commit(&mut worker, 6), Commit::NoSum);
    assert_eq!(vectors(&mut worker, later + Duration::from_secs(1)), []);
    let of = worker.statistics(START).vectors;
    assert_eq!((of.committed, of.sent, of.stale, of.surplus, of.without_sum), (5, 2, 1, 1, 1));
    let short = worker.contribute(START, 0, 3, Box::new(vec![0u8; 8]));
    assert_eq!(short, Ok(Commit::NoSum));
}

#[test]
fn a_pipelined_sum_never_waits_for_the_next_generation() {
    let mut worker = worker();
    says(&mut worker, welcome(7));
    let sum = || operation(LaneType::F32, Reduction::Pipelined { iteration: 0 }, 8);
    let halt = |index| Halt { generation: 3, reason: Reason::Dead, culprit: 1, index, calls: 0 };
    assert!(worker.begin(START, sum()).is_ok());
    // Another worker had the results of two more sums.
    assert_eq!(says(&mut worker, Control::Halt(halt(3))), Verdict::Absorb);
    assert!(worker.begin(START, sum()).is_ok() && worker.begin(START, sum()).is_ok());
    assert!(worker.poll_done().is_none());
    let mut buf = [0; 64];
    for index in 0..3 {
        let start = emit_seg(Seg { generation: 3, last: true, missing: 0, index }, &mut buf);
        assert_eq!(recv(&mut worker, SWITCH, DATA_CLASS, &buf[..start + 8]), Verdict::Absorb);
        assert!(worker.poll_done().is_some_and(|done| done.outcome.is_ok()));
    }
    let dead = Err(Failure::Closed { reason: Reason::Dead, culprit: Some(1) });
    assert!(worker.begin(START, sum()).is_ok());
    assert_eq!(worker.poll_done().map(|done| done.outcome), Some(dead));
    // Other operations wait for the next generation.
    assert!(worker.begin(START, operation(LaneType::F32, Reduction::Sum, 8)).is_ok());
    assert!(worker.poll_done().is_none());
}

#[test]
fn a_training_that_ended_before_its_first_sum_here_does_not_begin_in_the_next_generation() {
    let mut worker = worker();
    says(&mut worker, welcome(7));
    // The workers agree on their weights, and another one begins a sum and gives the training up.
    assert!(worker.begin(START, operation(LaneType::F32, Reduction::Sum, 8)).is_ok());
    let mut buf = [0; 64];
    let start = emit_seg(Seg { generation: 3, last: true, missing: 0, index: 0 }, &mut buf);
    assert_eq!(recv(&mut worker, SWITCH, DATA_CLASS, &buf[..start + 8]), Verdict::Absorb);
    assert!(worker.poll_done().is_some_and(|done| done.outcome.is_ok()));
    let halt = Halt { generation: 3, reason: Reason::Left, culprit: 1, index: 2, calls: 0 };
    assert_eq!(says(&mut worker, Control::Halt(halt)), Verdict::Absorb);
    let Control::Ack(next) = welcome(7) else { unreachable!() };
    says(&mut worker, Control::Ack(Ack { generation: 4, ..next }));
    assert!(matches!(worker.standing(), Standing::In { generation: 4, .. }));
    let sum = || operation(LaneType::F32, Reduction::Pipelined { iteration: 0 }, 8);
    assert!(worker.begin(START, sum()).is_ok());
    let left = Err(Failure::Closed { reason: Reason::Left, culprit: Some(1) });
    assert_eq!(worker.poll_done().map(|done| done.outcome), Some(left));
    // The next training agrees first.
    assert!(worker.begin(START, operation(LaneType::F32, Reduction::Sum, 8)).is_ok());
    assert!(worker.begin(START, sum()).is_ok());
    assert!(worker.poll_done().is_none());
}

#[test]
fn a_worker_that_ends_the_training_halts_it_for_all() {
    let mut worker = worker();
    says(&mut worker, welcome(7));
    let sum = operation(LaneType::F32, Reduction::Pipelined { iteration: 0 }, 8);
    assert!(worker.begin(START, sum).is_ok());
    sent(&mut worker, START);
    worker.end_pipeline(START);
    let halts = sent(&mut worker, START);
    let is_halt =
        |(_, bytes): &(u8, Vec<u8>)| matches!(Control::parse(bytes), Ok(Control::Halt(_)));
    assert!(halts.iter().any(is_halt), "{halts:?}");
    // Other workers have results of sums that this one will not begin.
    let halt = Halt { generation: 3, reason: Reason::Left, culprit: 0, index: 9, calls: 0 };
    let mut buf = [0; 64];
    let start = emit_seg(Seg { generation: 3, last: true, missing: 0, index: 0 }, &mut buf);
    assert_eq!(recv(&mut worker, SWITCH, DATA_CLASS, &buf[..start + 8]), Verdict::Absorb);
    assert_eq!(says(&mut worker, Control::Halt(halt)), Verdict::Absorb);
    assert!(worker.poll_done().is_some_and(|done| done.outcome.is_ok()));
    assert!(matches!(worker.standing(), Standing::Joining { .. }), "the next generation may come");
}

#[test]
fn a_leave_forgets_that_the_workers_had_agreed() {
    let mut worker = worker();
    says(&mut worker, welcome(7));
    assert!(worker.begin(START, operation(LaneType::F32, Reduction::Sum, 8)).is_ok());
    let mut buf = [0; 64];
    let start = emit_seg(Seg { generation: 3, last: true, missing: 0, index: 0 }, &mut buf);
    assert_eq!(recv(&mut worker, SWITCH, DATA_CLASS, &buf[..start + 8]), Verdict::Absorb);
    let halt = Halt { generation: 3, reason: Reason::Left, culprit: 1, index: 1, calls: 0 };
    assert_eq!(says(&mut worker, Control::Halt(halt)), Verdict::Absorb);
    assert!(worker.poll_done().is_some_and(|done| done.outcome.is_ok()));
    // It leaves and comes back, for a training that needs no agreement.
    worker.leave(START);
    worker.join(START);
    assert_eq!(says(&mut worker, welcome(7)), Verdict::Absorb);
    let sum = operation(LaneType::F32, Reduction::Pipelined { iteration: 0 }, 8);
    assert!(worker.begin(START, sum).is_ok());
    assert!(worker.poll_done().is_none(), "its sum has begun");
}

#[test]
fn a_generation_that_ended_does_not_begin_again() {
    let mut worker = worker();
    says(&mut worker, welcome(7));
    let halt = |culprit| Halt { generation: 3, reason: Reason::Dead, culprit, index: 0, calls: 0 };
    // A switch that names nobody of this generation as dead names nobody.
    assert_eq!(says(&mut worker, Control::Halt(halt(2))), Verdict::Absorb);
    let told = core::iter::from_fn(|| worker.poll_event()).find_map(|event| match event {
        Event::Worker(_, _, WorkerEvent::GenerationClosed { reason, culprit, .. }) => {
            Some((reason, culprit))
        }
        _ => None,
    });
    assert_eq!(told, Some((Reason::Dead, None)));
    // The answer to an earlier join was on its way for long.
    assert_eq!(says(&mut worker, welcome(7)), Verdict::refused(Refused::Duplicate));
    assert!(matches!(worker.standing(), Standing::Joining { .. }));
}

/// What a join says of the operations that the program has begun.
fn count_of_join(worker: &mut Worker, now: Instant) -> u32 {
    let sent = sent(worker, now);
    let mut messages = sent.iter().filter_map(|(_, bytes)| Control::parse(bytes).ok());
    messages
        .find_map(|message| match message {
            Control::Join(join) => Some(join.operations),
            _ => None,
        })
        .expect("it joins")
}

#[test]
fn operations_that_failed_at_the_others_fail_here_however_often_generations_end() {
    let mut worker = worker();
    let mut generation = 3;
    let mut now = START;
    let begins = |worker: &mut Worker, operations| {
        let Control::Ack(next) = welcome_with(Admission { operations, ..admission(7) }) else {
            unreachable!()
        };
        generation += 1;
        assert_eq!(says(worker, Control::Ack(Ack { generation, ..next })), Verdict::Absorb);
        generation
    };
    let mut begins = begins;
    let ends = |worker: &mut Worker, generation| {
        let halt = Halt { generation, reason: Reason::Left, culprit: 1, index: 0, calls: 0 };
        assert_eq!(says(worker, Control::Halt(halt)), Verdict::Absorb);
    };
    let begin = |worker: &mut Worker| {
        assert!(worker.begin(START, operation(LaneType::F32, Reduction::Sum, 8)).is_ok());
        worker.poll_done().map(|done| done.outcome.is_ok())
    };
    // A newcomer is where the others are: they have begun 40 operations.
    let first = begins(&mut worker, 40);
    assert_eq!(begin(&mut worker), None);
    ends(&mut worker, first);
    assert_eq!(worker.poll_done().map(|done| done.outcome.is_ok()), Some(false));
    now = now + Duration::from_secs(1);
    assert_eq!(count_of_join(&mut worker, now), 41);
    // Another program began two more. This one begins one of them before the generation ends.
    let second = begins(&mut worker, 43);
    assert_eq!(begin(&mut worker), Some(false));
    ends(&mut worker, second);
    now = now + Duration::from_secs(1);
    assert_eq!(count_of_join(&mut worker, now), 42);
    // The others have begun a third one. It never hears of a generation in which they began a fourth.
    begins(&mut worker, 45);
    for _ in 42..45 {
        assert_eq!(begin(&mut worker), Some(false));
    }
    assert_eq!(begin(&mut worker), None, "the first that has not failed at the others");
}

#[test]
fn a_generation_that_cannot_be_does_not_begin() {
    let good = admission(7);
    for bad in [
        Admission { rank: 2, ..good },
        Admission { workers: 3, ..good },
        Admission { slots: 0, ..good },
        Admission { packet_floats: 0, ..good },
        // 1,472 bytes have room for 366.
        Admission { packet_floats: 367, ..good },
    ] {
        let mut worker = worker();
        let verdict = says(&mut worker, welcome_with(bad));
        assert!(matches!(verdict, Verdict::Drop(_)), "{bad:?}");
        assert!(matches!(worker.standing(), Standing::Joining { .. }));
        let most = Admission { packet_floats: 366, ..good };
        assert_eq!(says(&mut worker, welcome_with(most)), Verdict::Absorb);
    }
}

#[test]
fn what_is_not_for_this_end_is_refused_by_name() {
    let mut worker = worker();
    let refused = |why| Verdict::refused(why);
    assert_eq!(recv(&mut worker, PeerId(1), DATA_CLASS, &[0; 12]), refused(Refused::UnknownPeer));
    let regular = recv(&mut worker, SWITCH, 0, &[0; 12]);
    assert_eq!(regular, refused(Refused::Malformed(Refusal::NotOurs)));
    assert_eq!(says(&mut worker, welcome(8)), refused(Refused::NotForMe));
    let verdict = recv(&mut worker, SWITCH, DATA_CLASS, &[0; 12]);
    assert_eq!(verdict, refused(Refused::OtherGeneration));
    assert_eq!(says(&mut worker, welcome(7)), Verdict::Absorb);
    assert_eq!(says(&mut worker, welcome(7)), refused(Refused::Duplicate));
    let reset = Control::Reset { generation: 3 };
    assert_eq!(says(&mut worker, reset), refused(Refused::WrongDirection));
    assert!(worker.begin(START, operation(LaneType::F32, Reduction::Sum, 8)).is_ok());
    let mut buf = [0; 64];
    let result = |buf: &mut [u8], index, last, floats: usize| {
        let start = emit_seg(Seg { generation: 3, last, missing: 0, index }, buf);
        start + 4 * floats
    };
    for (index, last, floats, why) in [
        (0, true, 1, Refused::WrongSize),
        (0, false, 2, Refused::Mismatch),
        (1, true, 2, Refused::TooEarly),
    ] {
        let len = result(&mut buf, index, last, floats);
        assert_eq!(recv(&mut worker, SWITCH, DATA_CLASS, &buf[..len]), refused(why));
    }
    let len = result(&mut buf, 0, true, 2);
    assert_eq!(recv(&mut worker, SWITCH, DATA_CLASS, &buf[..len]), Verdict::Absorb);
    assert_eq!(recv(&mut worker, SWITCH, DATA_CLASS, &buf[..len]), refused(Refused::Duplicate));
    assert!(worker.poll_done().is_some_and(|done| done.outcome.is_ok()));
}

#[test]
fn a_switch_that_never_answers_ends_what_waits() {
    let mut worker = worker();
    assert!(worker.begin(START, operation(LaneType::F32, Reduction::Sum, 8)).is_ok());
    sent(&mut worker, START);
    let late = START + Duration::from_secs(5);
    assert!(worker.poll_done().is_none());
    worker.handle_timeout(late);
    assert_eq!(worker.poll_done().map(|done| done.outcome), Some(Err(Failure::SwitchSilent)));
    assert!(matches!(worker.standing(), Standing::Joining { .. }), "it goes on trying");
}

#[test]
fn a_leave_is_repeated_until_it_is_confirmed() {
    let mut worker = worker();
    sent(&mut worker, START);
    worker.leave(START);
    let mut said = 0;
    let mut now = START;
    while let Some((at, _)) = worker.poll_timeout().filter(|_| said < 100) {
        now = now.max(at);
        said += sent(&mut worker, now).len();
    }
    assert_eq!(said, 10);
}

/// The outcome of a sum of 2 workers whose result is of 2 vectors.
fn outcome_of(reduction: Reduction, is_numbered: bool) -> Result<Sum, Failure> {
    let mut worker = worker();
    says(&mut worker, welcome(7));
    assert!(worker.begin(START, operation(LaneType::F32, reduction, 8)).is_ok());
    let mut buf = [0; 64];
    let missing = Seg::missing_of(2, 2, is_numbered);
    let start = emit_seg(Seg { generation: 3, last: true, missing, index: 0 }, &mut buf);
    assert_eq!(recv(&mut worker, SWITCH, DATA_CLASS, &buf[..start + 8]), Verdict::Absorb);
    worker.poll_done().expect("the result is here").outcome
}

#[test]
fn a_sum_of_all_has_one_vector_of_each_worker() {
    let all = Ok(Sum { contributors: 2, expected: 2, not_finite: false });
    assert_eq!(outcome_of(Reduction::Sum, false), all);
    let partial = Err(Failure::Partial { contributors: 1, expected: 2 });
    assert_eq!(outcome_of(Reduction::Sum, true), partial);
    assert_eq!(outcome_of(Reduction::Mean, true), partial);
    assert_eq!(outcome_of(Reduction::Pipelined { iteration: 0 }, true), all);
}
