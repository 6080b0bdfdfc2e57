//! A list of jobs limits the operations of a job, where the engine's messages say how long one is.

use olaf_engine::party::{Tenant, Tenants};
use olaf_engine::switch::{reduce, trio};
use olaf_engine::{DropReason, Engine, Instant, JobId, PeerId, PortId, Session, Source, Verdict};
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
