//! A list of jobs limits the operations of a job. The messages of `reduce` and Trio-ML say how long one is; the
//! switch of iSwitch counts the packets of a vector.

use olaf_engine::party::{Tenant, Tenants};
use olaf_engine::switch::{iswitch, reduce, trio};
use olaf_engine::{
    DropReason, Ecn, Engine, Instant, JobId, PeerId, PortId, Session, Source, TrafficClass, Verdict,
};
use olaf_wire::iswitch as is;
use olaf_wire::reduce as re;
use olaf_wire::trio as tr;

const WORKER: Source = Source::new(PortId::DOWNLINK, PeerId(1));
const NOW: Instant = Instant(1 << 40);
const MOST: u32 = 600;

fn limited() -> Tenants {
    let tenant = Tenant { max_parameters: Some(MOST), ..Tenant::default() };
    Tenants::only([(JobId(1), tenant)])
}

fn hears(engine: &mut impl Engine, write: impl FnOnce(&mut [u8]) -> usize) -> Verdict {
    let mut buf = [0; 2048];
    let len = write(&mut buf);
    engine.handle_packet(NOW, WORKER, &buf[..len])
}

/// What the worker gets.
fn gets<T>(engine: &mut impl Engine, read: impl Fn(&[u8]) -> Option<T>) -> Vec<T> {
    let mut buf = [0; 2048];
    let mut all = Vec::new();
    while let Some(sent) = engine.poll_transmit(NOW, PortId::DOWNLINK, &mut buf) {
        all.extend(read(&buf[..sent.len]));
    }
    all
}

/// What becomes of a piece of an operation with that many lanes, and the end of the generation.
fn reduces(lanes_of_operation: u64) -> (Verdict, Vec<re::Closed>) {
    let config = reduce::Config { tenants: limited(), ..reduce::Config::default() };
    let mut switch = reduce::Switch::new(config, 100).unwrap();
    let address = re::Address { job: JobId(1), generation: 100, rank: 0, session: Session(1) };
    let join = re::Join {
        address,
        workers: 1,
        contributors: 1,
        deadline_us: 0,
        block_bytes: 1024,
        datagram_bytes: 1472,
        sent_at_us: 1,
        nonce: 0,
        operation: 0,
        program: 0,
    };
    hears(&mut switch, |buf| join.emit(buf));
    let piece = re::Piece {
        address,
        block: re::Block {
            number: 0,
            operation: 0,
            first: 0,
            lanes_of_operation,
            lane_type: re::LaneType::F32,
            operator: re::Operator::Sum,
            call: olaf_wire::Call::default(),
        },
        contributors: 1,
        holds: 0,
        sent_at_us: 1,
        marks: re::Marks::default(),
    };
    let verdict = hears(&mut switch, |buf| piece.emit(&[], &[0; 1024], buf));
    let refused = switch.statistics(NOW).refused;
    let counted = refused.get("too_many_parameters").copied().unwrap_or(0);
    assert_eq!(counted, u64::from(verdict != Verdict::Absorb));
    let closed = |bytes: &[u8]| re::Closed::parse(&re::ReducePacket::new_checked(bytes).ok()?).ok();
    (verdict, gets(&mut switch, closed))
}

#[test]
fn reduce_takes_operations_up_to_the_limit_and_names_who_sent_a_longer_one() {
    assert_eq!(reduces(MOST.into()), (Verdict::Absorb, vec![]));
    let (verdict, closed) = reduces(u64::from(MOST) + 1);
    assert_eq!(verdict, Verdict::Drop(DropReason::TooManyParameters));
    let [end] = closed[..] else { panic!("{closed:?}") };
    assert_eq!((end.reason, end.culprit, end.operation), (re::Reason::Refused, 0, 0));
}

#[test]
fn trio_takes_generations_up_to_the_limit_and_names_who_sent_a_longer_one() {
    let config = trio::Config { tenants: limited(), ..trio::Config::default() };
    let mut switch = trio::Switch::new(config, 7).unwrap();
    let hello = tr::Hello {
        job: 1,
        term: 0,
        source: 0,
        sources: 1,
        newest: 0,
        session: Session(1),
        workers: 1,
        gradients: 200,
        timeout_ms: 0,
        window: 8,
        sent_at_us: 1,
        nonce: 0,
        program: 0,
    };
    hears(&mut switch, |buf| hello.emit(buf));
    let welcome = |bytes: &[u8]| tr::Welcome::parse(&tr::TrioPacket::new_checked(bytes).ok()?).ok();
    let generation = gets(&mut switch, welcome)[0].first;
    let mut sends = |block, gradients: usize| {
        let [aged, is_final, degraded] = [false; 3];
        let header = tr::Block {
            job: 1,
            block,
            aged,
            is_final,
            degraded,
            source: 0,
            sources: 1,
            generation,
            call: 0,
        };
        let verdict = hears(&mut switch, |buf| header.emit(&vec![0; gradients], buf));
        let closed =
            |bytes: &[u8]| tr::Closed::parse(&tr::TrioPacket::new_checked(bytes).ok()?).ok();
        (verdict, gets(&mut switch, closed))
    };
    // Blocks of 200: three of them, and no more.
    assert_eq!(sends(2, 200), (Verdict::Absorb, vec![]));
    let (verdict, closed) = sends(3, 1);
    assert_eq!(verdict, Verdict::Drop(DropReason::TooManyParameters));
    let [end] = closed[..] else { panic!("{closed:?}") };
    assert_eq!((end.reason, end.culprit), (re::Reason::Refused, 0));
}

/// A switch of iSwitch with one worker, whose packets have 200 floats.
struct Vectors {
    switch: iswitch::Switch,
    generation: u8,
}

impl Vectors {
    fn new() -> Self {
        let config = iswitch::Config { tenants: limited(), ..iswitch::Config::default() };
        let switch = iswitch::Switch::new(config, 9).unwrap();
        let mut all = Self { switch, generation: 9 };
        let join = is::Join {
            generation: 0,
            sender: is::Sender::Worker,
            job: JobId(1),
            session: Session(1),
            rank: 0,
            workers: 1,
            contributors: 1,
            packet_floats: 200,
            operations: is::ANY,
            program: 0,
            nonce: 0,
        };
        all.hears(is::CONTROL_CLASS, |buf| is::Control::Join(join).emit(buf));
        all.gets();
        all
    }

    fn hears(&mut self, class: u8, write: impl FnOnce(&mut [u8]) -> usize) -> Verdict {
        let mut buf = [0; 2048];
        let len = write(&mut buf);
        let from = Source { class: TrafficClass::new(class, Ecn::NotCapable), ..WORKER };
        self.switch.handle_packet(NOW, from, &buf[..len])
    }

    fn sends(&mut self, index: u64, floats: usize, last: bool) -> Verdict {
        let seg = is::Seg { generation: self.generation, last, missing: 0, index };
        self.hears(is::DATA_CLASS, |buf| is::emit_seg(seg, buf) + 4 * floats)
    }

    /// The results that the worker gets, and the end of the generation.
    fn gets(&mut self) -> (Vec<u64>, Vec<is::Halt>) {
        let (mut buf, mut results, mut ends) = ([0; 2048], Vec::new(), Vec::new());
        while let Some(sent) = self.switch.poll_transmit(NOW, PortId::DOWNLINK, &mut buf) {
            let bytes = &buf[..sent.len];
            match is::Control::parse(bytes) {
                _ if sent.class.dscp() == is::DATA_CLASS => {
                    results.push(is::DataPacket::new_checked(bytes).unwrap().seg.index);
                }
                Ok(is::Control::Halt(halt)) => ends.push(halt),
                _ => {}
            }
        }
        (results, ends)
    }
}

#[test]
fn iswitch_takes_vectors_up_to_the_limit_and_names_who_sent_a_longer_one() {
    let mut all = Vectors::new();
    // Three vectors of 600 floats: what came before a last packet does not count for the next one.
    for index in 0..9 {
        assert_eq!(all.sends(index, 200, index % 3 == 2), Verdict::Absorb);
    }
    assert_eq!(all.gets(), ((0..9).collect(), vec![]));
    (9..12).for_each(|index| assert_eq!(all.sends(index, 200, false), Verdict::Absorb));
    let too_many = Verdict::Drop(DropReason::TooManyParameters);
    assert_eq!(all.sends(12, 1, true), too_many);
    let (results, ends) = all.gets();
    assert_eq!(results, [9, 10, 11], "the packet beyond the limit has no result");
    let [end] = ends[..] else { panic!("{ends:?}") };
    assert_eq!((end.reason, end.culprit, end.index), (re::Reason::Refused, 0, 12));
    assert_eq!(all.switch.statistics(NOW).refused["too_many_parameters"], 1);
}

#[test]
fn iswitch_counts_packets_that_overtake_each_other() {
    let mut all = Vectors::new();
    // Packet 3 is beyond the limit, unless packet 1 is the last of its vector: that is not known yet.
    for index in [3, 0, 2] {
        assert_eq!(all.sends(index, 200, index == 3), Verdict::Absorb);
    }
    assert_eq!(all.sends(1, 200, true), Verdict::Absorb);
    assert_eq!(all.gets().1, vec![]);
    for (index, verdict) in [
        (7, Verdict::Absorb),
        (4, Verdict::Absorb),
        (6, Verdict::Absorb),
        (5, Verdict::Drop(DropReason::TooManyParameters)),
    ] {
        assert_eq!(all.sends(index, 200, false), verdict, "packet {index}");
    }
    let (results, ends) = all.gets();
    assert_eq!((results, ends[0].index), (vec![4], 5), "what is behind the end has no result");
}
