//! The messages of Trio-ML: what is written is read back the same, fields that cannot be are refused
//! by name, and no bytes make a reader panic.
#![allow(clippy::unwrap_used, missing_docs)]

use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::trio::offsets::{HEADER, header};
use olaf_wire::trio::{
    ANY, Ask, Block, Closed, Gone, Hello, Kind, Leave, MAX_GRADIENTS, Straggler, Straggling,
    TrioPacket, Want, Welcome, datagram_len,
};
use olaf_wire::{Refusal, Session, Sides};
use proptest::prelude::*;
use proptest::sample::select;

/// Any message.
#[derive(Clone, Debug, PartialEq)]
enum Message {
    Block(Block, Vec<i32>),
    Hello(Hello),
    Welcome(Welcome),
    Ask(Ask),
    Want(Want),
    Closed(Closed),
    Leave(Leave),
    Straggler(Straggler),
    Gone(Gone),
}

impl Message {
    fn written(&self) -> Vec<u8> {
        // Whatever the buffer held before must not show.
        let mut buf = vec![0xa5; 20_000];
        let len = match self {
            Self::Block(block, gradients) => block.emit(gradients, &mut buf),
            Self::Hello(message) => message.emit(&mut buf),
            Self::Welcome(message) => message.emit(&mut buf),
            Self::Ask(message) => message.emit(&mut buf),
            Self::Want(message) => message.emit(&mut buf),
            Self::Closed(message) => message.emit(&mut buf),
            Self::Leave(message) => message.emit(&mut buf),
            Self::Straggler(message) => message.emit(&mut buf),
            Self::Gone(message) => message.emit(&mut buf),
        };
        buf.truncate(len);
        buf
    }

    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let packet = TrioPacket::new_checked(bytes)?;
        let gradients = || {
            let gradients = packet.gradients().as_chunks().0.iter();
            gradients.map(|gradient| i32::from_be_bytes(*gradient)).collect()
        };
        Ok(match packet.kind() {
            Kind::Block | Kind::Aged => Self::Block(Block::parse(&packet)?, gradients()),
            Kind::Hello => Self::Hello(Hello::parse(&packet)?),
            Kind::Welcome => Self::Welcome(Welcome::parse(&packet)?),
            Kind::Ask => Self::Ask(Ask::parse(&packet)?),
            Kind::Want => Self::Want(Want::parse(&packet)?),
            Kind::Closed => Self::Closed(Closed::parse(&packet)?),
            Kind::Leave => Self::Leave(Leave::parse(&packet)?),
            Kind::Straggler => Self::Straggler(Straggler::parse(&packet)?),
            Kind::Gone => Self::Gone(Gone::parse(&packet)?),
        })
    }
}

fn hello() -> Hello {
    Hello {
        job: 1,
        term: 0,
        source: ANY,
        sources: 1,
        newest: 0,
        session: Session(5),
        workers: 4,
        gradients: 1024,
        timeout_ms: 10,
        window: 4096,
        sent_at_us: 1,
        nonce: 0,
        program: 0,
    }
}

fn welcome() -> Welcome {
    Welcome {
        job: 1,
        term: 3,
        source: 0,
        workers: 4,
        first: 0,
        session: Session(5),
        code: WelcomeCode::Welcome,
        gradients: 1024,
        here: 4,
        window: 4096,
        newest: 0,
        sent_at_us: 1,
        nonce: 0,
    }
}

fn block() -> Block {
    Block {
        job: 1,
        block: 2,
        aged: false,
        is_final: false,
        degraded: false,
        source: 3,
        sources: 1,
        generation: 4,
        call: 0,
    }
}

fn blocks() -> impl Strategy<Value = Message> {
    let header = (any::<(u8, u32, u8, u16)>(), (1u8.., 0u8..16), any::<[bool; 3]>());
    let gradients = prop::collection::vec(any::<i32>(), 1..60);
    (header, gradients).prop_map(
        |(((job, block, source, generation), (sources, call), flags), gradients)| {
            let [aged, is_final, degraded] = flags;
            let degraded = degraded || aged;
            let block =
                Block { job, block, aged, is_final, degraded, source, sources, generation, call };
            Message::Block(block, gradients)
        },
    )
}

fn messages() -> impl Strategy<Value = Message> {
    let hellos =
        (any::<(u8, u32, u8, u16, u32, u16, u32, u32, u64)>(), 1u8.., 1..=MAX_GRADIENTS, 1u16..)
            .prop_map(|(of_hello, workers, g, w)| {
                let (job, term, source, newest, session, timeout_ms, sent_at_us, nonce, program) =
                    of_hello;
                Message::Hello(Hello {
                    job,
                    term,
                    source,
                    sources: 1,
                    newest,
                    session: Session(session),
                    workers,
                    gradients: g,
                    timeout_ms,
                    window: w,
                    sent_at_us,
                    nonce,
                    program,
                })
            });
    let welcomes = (
        any::<(u8, u16, u32, u8, u32, u32)>(),
        1u32..,
        0..ANY,
        1u8..,
        select(&WelcomeCode::EACH[..]),
    )
        .prop_map(|(of_welcome, term, source, workers, code)| {
            let (job, first, session, here, sent_at_us, nonce) = of_welcome;
            Message::Welcome(Welcome {
                job,
                term,
                source,
                workers,
                first,
                session: Session(session),
                code,
                here,
                newest: first,
                sent_at_us,
                nonce,
                ..welcome()
            })
        });
    let asks = (any::<(u8, u32, u8, u32, u16, u64)>(), any::<(u16, u32, u32)>(), 0u32..1 << 31)
        .prop_map(|((job, term, source, session, generation, mask), held, block)| {
            Message::Ask(Ask {
                job,
                term,
                source,
                session: Session(session),
                generation,
                block,
                mask,
                held_generation: held.0,
                held_block: held.1,
                sent_at_us: held.2,
            })
        });
    let others = (any::<(u8, u32, u8, u32, u16, u64)>(), 0u32..1 << 31, 0usize..5).prop_map(
        |((job, term, source, session, generation, mask), block, kind)| {
            let session = Session(session);
            let (reason, what) = (Reason::EACH[source as usize % 8], Straggling::EACH[kind % 3]);
            match kind {
                0 => Message::Want(Want {
                    job,
                    term,
                    source,
                    session,
                    generation,
                    block,
                    mask,
                    sent_at_us: block,
                }),
                1 => {
                    let sides = Sides::from_byte(block as u8);
                    let culprit = source;
                    Message::Closed(Closed { job, term, culprit, generation, mask, reason, sides })
                }
                2 => Message::Leave(Leave { job, term, source, session, reason }),
                3 => Message::Straggler(Straggler {
                    job,
                    term,
                    source,
                    straggling: what,
                    events: block,
                }),
                _ => Message::Gone(Gone { job, term, source, session, generation, block }),
            }
        },
    );
    prop_oneof![blocks(), hellos, welcomes, asks, others]
}

/// Reads the bytes. What is read means the same when it is written again: no field is lost.
fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Message::read(bytes) {
        Ok(message) => prop_assert_eq!(message.written(), bytes),
        Err(refusal) => prop_assert!(!refusal.to_string().is_empty()),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(message in messages()) {
        prop_assert_eq!(Message::read(&message.written()), Ok(message));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        mut bytes in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..100), age_op in 0u8..12,
    ) {
        survives(&bytes)?;
        // The same with a header that may be one.
        let words = bytes.len().saturating_sub(HEADER) / 4;
        if words > 0 {
            bytes.truncate(HEADER + 4 * words);
            bytes[header::AGE_OP] = age_op << 4;
            bytes[header::GRAD_CNT..HEADER].copy_from_slice(&(words as u16).to_be_bytes());
            survives(&bytes)?;
        }
    }

    #[test]
    fn a_datagram_cut_anywhere_is_refused(message in messages()) {
        let bytes = message.written();
        for cut in 0..bytes.len() {
            let refusal = TrioPacket::new_checked(&bytes[..cut]).err();
            let need = if cut < HEADER { HEADER } else { bytes.len() };
            prop_assert_eq!(refusal, Some(Refusal::Truncated { have: cut, need }));
        }
    }

    #[test]
    fn a_datagram_that_is_too_long_is_refused(message in messages(), more in 1usize..100) {
        let mut bytes = message.written();
        let need = bytes.len();
        bytes.resize(need + more, 0);
        let refusal = TrioPacket::new_checked(&bytes).err();
        prop_assert_eq!(refusal, Some(Refusal::Oversized { have: need + more, need }));
    }

    #[test]
    fn a_damaged_byte_is_read_or_refused_at_every_place(message in messages(), with in 1u8..) {
        let good = message.written();
        let mut bytes = good.clone();
        for at in 0..bytes.len() {
            bytes[at] ^= with;
            survives(&bytes)?;
            bytes[at] = good[at];
        }
    }
}

/// The message as read once these bytes stand at that place.
fn with(message: &Message, at: usize, field: &[u8]) -> Result<Message, Refusal> {
    let mut bytes = message.written();
    bytes[at..at + field.len()].copy_from_slice(field);
    Message::read(&bytes)
}

#[test]
fn a_header_that_cannot_be_is_refused_by_the_name_of_its_field() {
    let good = Message::Block(block(), vec![7]);
    assert_eq!(with(&good, 0, &[1]), Ok(good.clone()));
    for (at, value, refusal) in [
        (header::AGE_OP, 0x01, Refusal::BadField("unused")),
        (header::AGE_OP, 0x02, Refusal::BadField("unused")),
        (header::AGE_OP, 0x10, Refusal::BadField("degraded")),
        (header::AGE_OP, 0xa0, Refusal::UnknownKind(10)),
        (header::SRC_CNT, 0, Refusal::BadField("src_cnt")),
        (header::GRAD_CNT + 1, 0, Refusal::BadField("grad_cnt")),
        (header::GRAD_CNT + 1, 2, Refusal::Truncated { have: 16, need: 20 }),
    ] {
        assert_eq!(with(&good, at, &[value]), Err(refusal), "{value:#x} at {at}");
    }
    let mean = Block { call: 1, ..block() };
    assert_eq!(with(&good, header::GRAD_CNT, &[0x10]), Ok(Message::Block(mean, vec![7])));
    let good = Message::Hello(hello());
    assert_eq!(with(&good, header::GRAD_CNT, &[0x10]), Err(Refusal::BadField("unused")));
    assert_eq!(with(&good, header::AGE_OP, &[0x28]), Err(Refusal::UnknownFlags(8)));
    assert_eq!(with(&good, header::GRAD_CNT + 1, &[5]), Err(Refusal::BadField("grad_cnt")));
}

#[test]
fn a_hello_or_a_welcome_that_cannot_be_is_refused_by_the_name_of_its_field() {
    let good = Message::Hello(hello());
    for (word, value, name) in [
        (1, 0u32, "workers"),
        (1, 256, "workers"),
        (2, 0, "gradients"),
        (2, 4096, "gradients"),
        (3, 65_536, "timeout_ms"),
        (4, 0, "window"),
        (4, 65_536, "window"),
    ] {
        let refused = with(&good, HEADER + 4 * word, &value.to_be_bytes());
        assert_eq!(refused, Err(Refusal::BadField(name)));
    }
    assert_eq!(with(&good, header::SRC_CNT, &[0]), Err(Refusal::BadField("src_cnt")));
    assert_eq!(with(&good, header::SRC_CNT, &[5]), Err(Refusal::BadField("workers")));
    let good = Message::Welcome(welcome());
    for (at, bytes, name) in [
        (header::BLOCK_ID, &[0, 0, 0, 0][..], "term"),
        (header::SRC_ID, &[ANY], "src_id"),
        (header::SRC_CNT, &[0], "src_cnt"),
        (HEADER + 4, &[0, 0, 0, 0], "code"),
        (HEADER + 4, &[1, 0, 0, 1], "code"),
        (HEADER + 8, &[0, 0, 0, 0], "gradients"),
        (HEADER + 12, &[0, 0, 1, 0], "here"),
        (HEADER + 16, &[0, 0, 0, 0], "window"),
    ] {
        assert_eq!(with(&good, at, bytes), Err(Refusal::BadField(name)));
    }
    // An answer that begins no term need not know them.
    let waiting = Welcome { code: WelcomeCode::Waiting, term: 0, source: ANY, ..welcome() };
    let waiting = Message::Welcome(Welcome { gradients: 0, window: 0, ..waiting });
    assert_eq!(Message::read(&waiting.written()), Ok(waiting));
}

#[test]
fn questions_name_blocks_that_a_number_can_name() {
    let ask = |block, mask| Ask {
        job: 1,
        term: 2,
        source: 3,
        session: Session(4),
        generation: 5,
        block,
        mask,
        held_generation: 5,
        held_block: 6,
        sent_at_us: 7,
    };
    let last = ask(u32::MAX - 1, 0b11);
    assert_eq!(last.blocks().collect::<Vec<_>>(), [u32::MAX - 1, u32::MAX]);
    assert!(Message::read(&Message::Ask(last).written()).is_ok());
    let beyond = Message::Ask(ask(u32::MAX - 1, 0b100));
    assert_eq!(Message::read(&beyond.written()), Err(Refusal::BadField("mask")));
    assert!(Message::read(&Message::Ask(ask(u32::MAX, 0)).written()).is_ok());
}

#[test]
fn a_term_that_has_ended_finishes_what_was_before_and_what_the_mask_names() {
    let (reason, sides) = (Reason::Left, Sides::default());
    let closed =
        Closed { job: 1, term: 1, culprit: ANY, generation: 2, mask: 0b100, reason, sides };
    assert!(closed.finishes(1) && closed.finishes(65_530) && closed.finishes(4));
    assert!(!closed.finishes(2) && !closed.finishes(3) && !closed.finishes(70));
}

#[test]
fn the_largest_block_is_read() {
    let gradients = vec![-3; MAX_GRADIENTS.into()];
    let message = Message::Block(block(), gradients);
    let bytes = message.written();
    assert_eq!(bytes.len(), datagram_len(MAX_GRADIENTS.into()));
    assert_eq!(Message::read(&bytes), Ok(message));
}

#[test]
fn a_program_is_behind_a_nonce_and_is_never_0() {
    let written = |hello: Hello| {
        let mut buf = [0xff; 64];
        let len = hello.emit(&mut buf);
        buf[..len].to_vec()
    };
    let read =
        |bytes: &[u8]| TrioPacket::new_checked(bytes).and_then(|packet| Hello::parse(&packet));
    for (nonce, program, len) in [(0, 0, 36), (7, 0, 40), (0, 5, 48), (7, 5, 48)] {
        let hello = Hello { nonce, program, ..hello() };
        let bytes = written(hello);
        assert_eq!((bytes.len(), read(&bytes)), (len, Ok(hello)));
    }
    let mut zero = written(Hello { nonce: 7, program: 5, ..hello() });
    zero[40..48].fill(0);
    assert_eq!(read(&zero), Err(Refusal::BadField("program")));
}
