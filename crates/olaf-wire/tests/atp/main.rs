//! The messages of ATP: no bytes make a reader panic, and what is read means the same written again.
#![allow(clippy::unwrap_used, missing_docs)]

use olaf_wire::atp::{
    ANY, AtpPacket, Closed, Header, Join, Key, Kind, Leave, Left, Upper, Welcome, aggregator_index,
    answer_to_another_version, datagram_len, other_version_of, rehash, widen,
};
use olaf_wire::reduce::WelcomeCode;
use olaf_wire::{Refusal, Session};
use proptest::prelude::*;

/// Reads the bytes. What is read means the same when it is written again: no field is lost.
fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut buf = vec![0x5a; bytes.len().max(128)];
    let packet = match AtpPacket::new_checked(bytes) {
        Ok(packet) => packet,
        Err(refusal) => {
            prop_assert!(!refusal.to_string().is_empty());
            return Ok(());
        }
    };
    let written = match packet.kind() {
        Kind::Gradient | Kind::Parameters => {
            Header::parse(&packet).map(|header| header.emit(packet.values(), &mut buf))
        }
        Kind::Join => Join::parse(&packet).map(|message| message.emit(&mut buf)),
        Kind::Welcome => Welcome::parse(&packet).map(|message| message.emit(&mut buf)),
        Kind::Leave => Leave::parse(&packet).map(|message| message.emit(&mut buf)),
        Kind::Closed => Closed::parse(&packet).map(|message| message.emit(&mut buf)),
        Kind::Left => Left::parse(&packet).map(|message| message.emit(&mut buf)),
    };
    if let Ok(len) = written {
        prop_assert_eq!(&buf[..len], bytes);
    }
    Ok(())
}

fn gradient() -> Vec<u8> {
    let header = Header {
        bitmap0: 1,
        bitmap1: 1,
        fan_in0: 4,
        fan_in1: 1,
        tensor_length: 100,
        ..Header::default()
    };
    let mut buf = vec![0; datagram_len(3)];
    header.emit(&[7; 12], &mut buf);
    buf
}

/// The same of a job with more levels.
fn high() -> Vec<u8> {
    let upper = Upper { fan_ins: [3, 2], same_switch: [true, false], ..Upper::default() };
    let header = Header {
        bitmap0: 1,
        bitmap1: 1,
        fan_in0: 4,
        fan_in1: 2,
        tensor_length: 100,
        upper: Some(upper),
        ..Header::default()
    };
    let mut buf = vec![0; header.datagram_len(3)];
    header.emit(&[7; 12], &mut buf);
    buf
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..300)) {
        survives(&bytes)?;
    }

    #[test]
    fn no_control_message_makes_a_reader_panic(
        kind in 0u8..7, len in prop::sample::select(vec![22usize, 25, 30, 67, 74, 75, 86]),
        mut bytes in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 86),
    ) {
        bytes.truncate(len);
        (bytes[8], bytes[9], bytes[10], bytes[11]) = (kind, 2, 0x20, 0x80);
        survives(&bytes)?;
    }

    #[test]
    fn a_damaged_byte_is_read_or_refused_at_every_place(with in 1u8..) {
        for good in [gradient(), high()] {
            for at in 0..good.len() {
                let mut bytes = good.clone();
                bytes[at] ^= with;
                survives(&bytes)?;
            }
        }
    }

    #[test]
    fn a_number_is_widened_to_the_nearest(near in 0u64..1 << 45, ahead in -(1i64 << 22)..1 << 22) {
        let number = near.saturating_add_signed(ahead);
        prop_assert_eq!(widen(number & 0xff_ffff, 24, near), number);
        let key = Key::new(3, number, number);
        prop_assert_eq!(key.sequence(number as u16, near), number);
        // 20 bits of the key are the tensor's.
        let tensor = near.saturating_add_signed(ahead >> 4);
        let key = Key::new(3, tensor, number).calling(9);
        prop_assert_eq!((key.tensor_near(near), key.call), (tensor, 9));
        prop_assert_eq!(key.sequence(number as u16, near), number);
    }

    #[test]
    fn an_index_is_one_of_the_aggregators(
        job: u16, server in 0u8..4, sequence: u16, aggregators in 1u32..=1 << 16,
    ) {
        let index = aggregator_index(job, server, sequence, aggregators);
        prop_assert!(u32::from(index) < aggregators && u32::from(rehash(index, job, aggregators)) < aggregators);
    }
}

#[test]
fn a_datagram_cut_anywhere_is_refused() {
    let bytes = gradient();
    for cut in 0..bytes.len() {
        let shorter = AtpPacket::new_checked(&bytes[..cut]);
        // A packet says its length nowhere: cut by whole values it is another packet, and its trailer
        // is values. Four bytes of values and the two numbers of the trailer are left then.
        let reads = shorter.is_ok() && cut % 4 == 2;
        assert!(reads || shorter.is_err(), "{cut}");
    }
}

#[test]
fn fields_that_contradict_each_other_are_refused_by_name() {
    let with = |at: usize, byte: u8| {
        let mut bytes = gradient();
        bytes[at] = byte;
        AtpPacket::new_checked(&bytes).err()
    };
    assert_eq!(with(3, 0), Some(Refusal::BadField("bitmap0")));
    assert_eq!(with(3, 0x1f), Some(Refusal::BadField("bitmap0")), "five workers of four");
    assert_eq!(with(7, 0), Some(Refusal::BadField("bitmap1")));
    assert_eq!(with(7, 3), Some(Refusal::BadField("bitmap1")), "two groups of one");
    assert_eq!(with(8, 0), Some(Refusal::BadField("fan_in")));
    assert_eq!(with(9, 33), Some(Refusal::BadField("fan_in")));
    assert_eq!(with(10, 0x10), Some(Refusal::UnknownFlags(0x10)), "the second half");
    assert_eq!(with(11, 0x40), Some(Refusal::UnknownFlags(0x4000)));
    assert_eq!(with(41, 2), Some(Refusal::BadField("tensor_length")), "three values of two");
}

#[test]
fn levels_that_contradict_each_other_are_refused_by_name() {
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = high();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        AtpPacket::new_checked(&bytes).err()
    };
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[(21, 0)]), Some(Refusal::BadField("bitmap2")));
    assert_eq!(with(&[(25, 7)]), Some(Refusal::BadField("bitmap3")), "three groups of two");
    assert_eq!(with(&[(21, 3)]), Some(Refusal::BadField("bitmap2")), "it has not been there");
    assert_eq!(with(&[(26, 33)]), Some(Refusal::BadField("fan_in")));
    assert_eq!(with(&[(27, 0)]), Some(Refusal::BadField("fan_in")));
    assert_eq!(with(&[(28, 1)]), Some(Refusal::BadField("upper")), "passed, and not the first");
    assert_eq!(with(&[(28, 0x10)]), Some(Refusal::BadField("upper")));
    assert_eq!(with(&[(29, 1)]), Some(Refusal::BadField("upper")));
    // A whole sum of the third level: it names nobody at the lower ones.
    let whole = [(3, 0), (7, 0), (11, 5), (21, 5), (28, 5)];
    assert_eq!(with(&whole), None);
    assert_eq!(with(&[&whole[..], &[(7, 1)]].concat()), Some(Refusal::BadField("bitmap1")));
    assert_eq!(with(&[&whole[..], &[(3, 1)]].concat()), Some(Refusal::BadField("bitmap0")));
    // Without the flag the part is values.
    assert_eq!(with(&[(11, 0)]), None);
    assert_eq!(AtpPacket::new_checked(&high()[..40]).err().map(|_| ()), Some(()));
}

#[test]
fn neighbours_meet_in_different_aggregators() {
    let indices: std::collections::BTreeSet<u16> =
        (0..200).map(|sequence| aggregator_index(1, 0, sequence, 65_536)).collect();
    assert!(indices.len() > 195, "{}", indices.len());
    assert_eq!(aggregator_index(1, 0, 7, 0), 0, "there is no switch");
}

fn join() -> Join {
    Join {
        job: 0x102,
        server: 1,
        session: Session(0x0304_0506),
        rank: 2,
        workers: 4,
        generation: 7,
        closed: 6,
        values: 62,
        aggregators: 4096,
        switches: [17, 18, 0, 0],
        sent_at_us: 5,
        scale: 1e8,
        servers: 3,
        window: 200,
        nonce: 0,
        operations: 9,
        program: 0,
    }
}

fn written(emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut buf = vec![0; 128];
    let len = emit(&mut buf);
    buf.truncate(len);
    buf
}

#[test]
fn a_count_of_operations_has_31_bits_or_is_none() {
    let parsed = |operations| {
        let bytes = written(|buf| Join { operations, ..join() }.emit(buf));
        Join::parse(&AtpPacket::new_checked(&bytes).unwrap()).map(|join| join.operations)
    };
    assert_eq!(parsed((1 << 31) - 1), Ok((1 << 31) - 1));
    assert_eq!(parsed(ANY), Ok(ANY));
    assert_eq!(parsed(1 << 31), Err(Refusal::BadField("operations")));
    let welcome = Welcome::without_place(&join(), WelcomeCode::Waiting);
    let bytes = written(|buf| Welcome { operations: ANY, ..welcome }.emit(buf));
    let read = Welcome::parse(&AtpPacket::new_checked(&bytes).unwrap());
    assert_eq!(read, Err(Refusal::BadField("operations")), "every answer names a count");
}

#[test]
fn a_join_of_another_version_is_answered_in_this_one() {
    let session = join().session;
    let mut bytes = written(|buf| join().emit(buf));
    assert_eq!(answer_to_another_version(&bytes), None, "it is of this version");
    bytes[9] = 1;
    let answer = answer_to_another_version(&bytes).unwrap();
    assert_eq!((answer.job, answer.server, answer.session), (0x102, 1, session));
    assert_eq!(answer.code, WelcomeCode::OtherVersion);
    assert_eq!(answer_to_another_version(&bytes[..24]), None, "the answer is three times as long");
    assert!(answer_to_another_version(&bytes[..25]).is_some());
    bytes[8] = 3;
    assert_eq!(answer_to_another_version(&bytes), None, "nobody waits for an answer to a leave");
    // What a worker of another version makes of the answer.
    let mut told = written(|buf| answer.emit(buf));
    assert_eq!(other_version_of(&told, 0x102, session), None, "it is of this version");
    told[9] = 5;
    assert_eq!(other_version_of(&told, 0x102, session), Some(5));
    assert_eq!(other_version_of(&told, 0x101, session), None);
    assert_eq!(other_version_of(&told, 0x102, Session(1)), None, "it is another one's");
    for cut in 0..told.len() {
        let _ = other_version_of(&told[..cut], 0x102, session);
        let _ = answer_to_another_version(&told[..cut]);
    }
}
