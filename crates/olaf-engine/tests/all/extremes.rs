//! The engines that sum, and members and strangers whose datagrams are good but for some fields: these have the
//! least and the largest values that fit. Nothing panics, and afterwards two honest workers get their sum.

use crate::addresses::{
    ATTACKER, VICTIM, Wire, a_reduce, a_trio, an_iswitch, both_join_iswitch, both_join_reduce,
    both_say_hello, of_iswitch, of_reduce, of_trio, send_floats,
};
use core::time::Duration;
use olaf_engine::{Ecn, Engine, PeerId, PortId, Source, TrafficClass};
use olaf_wire::iswitch as is;
use olaf_wire::reduce as re;
use olaf_wire::trio as tr;
use olaf_wire::{JobId, Session};
use proptest::prelude::*;

/// What is said: which of the good messages, by whom, and which of its bytes are others.
#[derive(Clone, Debug)]
struct Said {
    which: usize,
    by: u32,
    from_above: bool,
    changes: Vec<(usize, usize, u64)>,
    waits_ms: u64,
}

fn said() -> impl Strategy<Value = Said> {
    let value = prop_oneof![
        Just(0u64),
        Just(1),
        Just(u64::MAX),
        Just(u64::MAX - 1),
        Just(1 << 63),
        Just(0x7fff_ffff_ffff_ffff),
        any::<u64>(),
    ];
    let change = (0usize..72, prop::sample::select(vec![1usize, 2, 4, 8]), value);
    let waits = prop_oneof![6 => Just(0u64), 1 => 1u64..3_000];
    (
        any::<prop::sample::Index>(),
        1u32..4,
        prop::bool::weighted(0.1),
        prop::collection::vec(change, 0..3),
        waits,
    )
        .prop_map(|(which, by, from_above, changes, waits_ms)| Said {
            which: which.index(usize::MAX),
            by,
            from_above,
            changes,
            waits_ms,
        })
}

/// A message is written at the front of the buffer; its length is returned.
fn written(emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut buf = vec![0; 2048];
    let len = emit(&mut buf);
    buf.truncate(len);
    buf
}

fn hears<E: Engine>(wire: &mut Wire<E>, class: u8, good: &[Vec<u8>], said: &Said) {
    let mut bytes = good[said.which % good.len()].clone();
    for (at, width, value) in &said.changes {
        // Fields are where their width says.
        let at = at / width * width;
        if let Some(field) = bytes.get_mut(at..at + width) {
            field.copy_from_slice(&value.to_be_bytes()[8 - width..]);
        }
    }
    let port = if said.from_above { PortId::UPLINK } else { PortId::DOWNLINK };
    let class = TrafficClass::new(class, Ecn::NotCapable);
    wire.engine.handle_packet(wire.now, Source { port, peer: PeerId(said.by), class }, &bytes);
    passes(wire, said.waits_ms);
}

fn passes<E: Engine>(wire: &mut Wire<E>, milliseconds: u64) {
    wire.now = wire.now + Duration::from_millis(milliseconds);
    while wire.engine.poll_timeout().is_some_and(|(at, _)| at <= wire.now) {
        wire.engine.handle_timeout(wire.now);
    }
    let mut buf = vec![0; 65_536];
    for port in [PortId::UPLINK, PortId::DOWNLINK] {
        while wire.engine.poll_transmit(wire.now, port, &mut buf).is_some() {}
    }
    while wire.engine.poll_event().is_some() {}
}

/// The attackers go. Nobody is heard for longer than the dead are remembered.
fn goes_quiet<E: Engine>(wire: &mut Wire<E>) {
    (0..400).for_each(|_| passes(wire, 500));
    wire.heard = [Vec::new(), Vec::new()];
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(olaf_samples::cases(400)))]

    #[test]
    fn reduce_outlives_fields_of_any_value(all in prop::collection::vec(said(), 1..60)) {
        let mut wire = a_reduce(false);
        let generation = both_join_reduce(&mut wire, true).expect("both are in");
        let lanes = [0; 4 * of_reduce::LANES];
        let address = of_reduce::address(ATTACKER, generation);
        let blocks = re::Blocks { first: 0, mask: 3 };
        let good = [
            written(|buf| of_reduce::join(ATTACKER, 0).emit(buf)),
            written(|buf| of_reduce::join(VICTIM, 0).emit(buf)),
            written(|buf| of_reduce::piece(ATTACKER, generation, 0).emit(&[], &lanes, buf)),
            written(|buf| of_reduce::piece(VICTIM, generation, 0).emit(&[], &lanes, buf)),
            written(|buf| re::Ask { address, operation: 0, blocks, holds: 0, sent_at_us: 1, awaits: None }.emit(buf)),
            written(|buf| re::Leave { address, operation: 0 }.emit(buf)),
            written(|buf| {
                let (operation, culprit, reason) = (0, 0, re::Reason::Left);
                re::Closed { address, operation, culprit, reason, clash: None }.emit(buf)
            }),
        ];
        all.iter().for_each(|said| hears(&mut wire, 0, &good, said));
        goes_quiet(&mut wire);
        let generation = both_join_reduce(&mut wire, true).expect("honest workers are let in");
        for peer in [ATTACKER, VICTIM] {
            let piece = of_reduce::piece(peer, generation, 0);
            wire.says(peer, |buf| piece.emit(&[], &lanes, buf));
        }
        let result = |bytes: &[u8]| {
            let packet = re::ReducePacket::new_checked(bytes).ok()?;
            re::BlockResult::parse(&packet).ok()
        };
        prop_assert_eq!(wire.newest(VICTIM, result).map(|result| result.contributors), Some(2));
    }

    #[test]
    fn iswitch_outlives_fields_of_any_value(all in prop::collection::vec(said(), 1..60)) {
        let mut wire = an_iswitch(false);
        let generation = both_join_iswitch(&mut wire, true).expect("both are in");
        let packets = is::Packets { generation, sent_at_us: 1, index: 0, mask: 3 };
        let (job, session) = (JobId(1), Session(1));
        let ack = is::Ack {
            generation,
            action: is::Action::Ack,
            outcome: is::Outcome::Success,
            sent_at_us: 1,
            index: 0,
            admission: None,
        };
        let halt = is::Halt { generation, reason: re::Reason::Left, culprit: 0, index: 0, calls: 0 };
        let controls = [
            of_iswitch::join(ATTACKER, 0),
            of_iswitch::join(VICTIM, 0),
            is::Control::Leave(is::Leave { generation, job, session }),
            is::Control::Reset { generation },
            is::Control::Halt(halt),
            is::Control::SetH { generation, h: 1 },
            is::Control::FBcast(packets),
            is::Control::Help(packets),
            is::Control::Ack(ack),
        ];
        let controls = controls.map(|control| written(|buf| control.emit(buf)));
        let data = [0, 1].map(|index| written(|buf| {
            let seg = is::Seg { generation, last: false, missing: 0, index };
            is::emit_seg(seg, buf) + 4 * 300
        }));
        for said in &all {
            if said.which % 3 == 0 {
                hears(&mut wire, is::DATA_CLASS, &data, said);
            } else {
                hears(&mut wire, is::CONTROL_CLASS, &controls, said);
            }
        }
        goes_quiet(&mut wire);
        let generation = both_join_iswitch(&mut wire, true).expect("honest workers are let in");
        for peer in [ATTACKER, VICTIM] {
            send_floats(&mut wire, peer, generation, 0);
        }
        let sum = |bytes: &[u8]| is::DataPacket::new_checked(bytes).ok().map(|data| data.seg.missing);
        prop_assert_eq!(wire.newest(VICTIM, sum), Some(0));
    }

    #[test]
    fn trio_outlives_fields_of_any_value(all in prop::collection::vec(said(), 1..60)) {
        let mut wire = a_trio(false);
        let began = both_say_hello(&mut wire, true).expect("both are in");
        let (term, generation, session) = (began.term, began.first, Session(ATTACKER.0));
        let ask = tr::Ask {
            job: 1,
            term,
            source: 0,
            session,
            generation,
            block: 0,
            mask: 3,
            held_generation: generation,
            held_block: 0,
            sent_at_us: 1,
        };
        let leave = tr::Leave { job: 1, term, source: 0, session, reason: re::Reason::Left };
        let good = [
            written(|buf| of_trio::hello(ATTACKER, 0).emit(buf)),
            written(|buf| of_trio::hello(VICTIM, 0).emit(buf)),
            written(|buf| of_trio::block(ATTACKER, generation, 0).emit(&[1; 300], buf)),
            written(|buf| of_trio::block(VICTIM, generation, 0).emit(&[1; 300], buf)),
            written(|buf| ask.emit(buf)),
            written(|buf| leave.emit(buf)),
        ];
        all.iter().for_each(|said| hears(&mut wire, 0, &good, said));
        goes_quiet(&mut wire);
        let began = both_say_hello(&mut wire, true).expect("honest workers are let in");
        for peer in [ATTACKER, VICTIM] {
            let block = of_trio::block(peer, began.first, 0);
            wire.says(peer, |buf| block.emit(&[1; 300], buf));
        }
        let result = |bytes: &[u8]| tr::Block::parse(&tr::TrioPacket::new_checked(bytes).ok()?).ok();
        prop_assert_eq!(wire.newest(VICTIM, result).map(|block| block.sources), Some(2));
    }
}
