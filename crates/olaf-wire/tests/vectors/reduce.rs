//! The all-reduce through the switch: `vectors/wire/reduce/messages.json`.

use super::{bytes_of, hex, messages, u64_of, unhex};
use olaf_wire::reduce::{
    Address, Ask, Block, BlockResult, Blocks, Called, Clash, Closed, Join, Kind, LaneType, Leave,
    Marks, Operator, Piece, RankSet, Reason, ReducePacket, Want, Welcome, WelcomeCode,
};
use olaf_wire::{Call, JobId, Refusal, Session};
use serde_json::Value;
use std::collections::BTreeSet;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/wire/reduce/messages.json");

fn u32_of(message: &Value, field: &str) -> u32 {
    u32::try_from(u64_of(message, field)).unwrap()
}

fn flag_of(message: &Value, field: &str) -> bool {
    message[field].as_bool().unwrap_or_else(|| panic!("{field} of {message}"))
}

/// The value whose name the field has.
fn named<T: Copy>(message: &Value, field: &str, each: &[T], name: fn(T) -> &'static str) -> T {
    let wanted = message[field].as_str().unwrap_or_else(|| panic!("{field} of {message}"));
    each.iter().copied().find(|value| name(*value) == wanted).unwrap()
}

fn address(message: &Value) -> Address {
    Address {
        job: JobId(u32_of(message, "job")),
        generation: u32_of(message, "generation"),
        rank: u32_of(message, "rank"),
        session: Session(u32_of(message, "session")),
    }
}

fn block(message: &Value) -> Block {
    Block {
        number: u32_of(message, "block"),
        operation: u32_of(message, "operation"),
        first: u32_of(message, "first_block"),
        lanes_of_operation: u64_of(message, "lanes_of_operation"),
        lane_type: named(message, "lane_type", &LaneType::EACH, LaneType::name),
        operator: named(message, "operator", &Operator::EACH, Operator::name),
        call: Call::from_bits(u16::try_from(u32_of(message, "call")).expect("16 bits")),
    }
}

/// A signature; none where the message does not have it.
fn called(message: &Value, name: &str) -> Option<Called> {
    let of = message.get(name)?;
    Some(Called {
        call: Call::from_bits(u16::try_from(u32_of(of, "call")).expect("16 bits")),
        lane_type: named(of, "lane_type", &LaneType::EACH, LaneType::name),
        operator: named(of, "operator", &Operator::EACH, Operator::name),
        lanes: u64_of(of, "lanes"),
    })
}

fn marks(message: &Value) -> Marks {
    Marks {
        resent: flag_of(message, "resent"),
        not_finite: flag_of(message, "not_finite"),
        congested: flag_of(message, "congested"),
    }
}

/// The ranks that a partial sum names; empty in all else.
fn ranks(message: &Value) -> RankSet {
    let ranks = message["ranks"].as_array().into_iter().flatten();
    ranks.map(|rank| u32::try_from(rank.as_u64().unwrap()).unwrap()).collect()
}

/// The bytes of the lanes.
fn lanes(message: &Value) -> Vec<u8> {
    unhex(message["lanes"].as_str().unwrap_or_default())
}

fn blocks(message: &Value) -> Blocks {
    Blocks { first: u32_of(message, "block"), mask: u64_of(message, "mask") }
}

/// The message of those fields, written; and read back from `bytes`, whether it is the same.
fn written(message: &Value, bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut buf = vec![0xff; 1024];
    let (address, ranks, lanes) = (address(message), ranks(message), lanes(message));
    let u32_of = |field| u32_of(message, field);
    let packet = ReducePacket::new_checked(bytes);
    let (len, same) = match message["kind"].as_str().unwrap() {
        "piece" => {
            let piece = Piece {
                address,
                block: block(message),
                contributors: u32_of("contributors"),
                holds: u32_of("holds"),
                sent_at_us: u32_of("sent_at_us"),
                marks: marks(message),
            };
            let read = packet.and_then(|packet| Piece::parse(&packet));
            (piece.emit(ranks.words(), &lanes, &mut buf), read == Ok(piece))
        }
        "result" => {
            let result = BlockResult {
                address,
                block: block(message),
                contributors: u32_of("contributors"),
                expected: u32_of("expected"),
                sent_at_us: u32_of("sent_at_us"),
                marks: marks(message),
            };
            let read = packet.and_then(|packet| BlockResult::parse(&packet));
            (result.emit(ranks.words(), &lanes, &mut buf), read == Ok(result))
        }
        "ask" => {
            let ask = Ask {
                address,
                operation: u32_of("operation"),
                blocks: blocks(message),
                holds: u32_of("holds"),
                sent_at_us: u32_of("sent_at_us"),
                awaits: u32_of("awaited").checked_sub(1).zip(called(message, "called")),
            };
            (ask.emit(&mut buf), packet.and_then(|packet| Ask::parse(&packet)) == Ok(ask))
        }
        "want" => {
            let want = Want {
                address,
                operation: u32_of("operation"),
                blocks: blocks(message),
                holds: u32_of("holds"),
                sent_at_us: u32_of("sent_at_us"),
            };
            (want.emit(&mut buf), packet.and_then(|packet| Want::parse(&packet)) == Ok(want))
        }
        _ => membership(message, address, packet, &mut buf),
    };
    buf.truncate(len);
    let same = same
        && packet.is_ok_and(|packet| {
            packet.lanes() == lanes && RankSet::from_words(packet.contributor_words()) == Ok(ranks)
        });
    (buf, same)
}

fn membership(
    message: &Value,
    address: Address,
    packet: Result<ReducePacket<'_>, Refusal>,
    buf: &mut [u8],
) -> (usize, bool) {
    let u32_of = |field| u32_of(message, field);
    match message["kind"].as_str().unwrap() {
        "join" => {
            let join = Join {
                address,
                workers: u32_of("workers"),
                contributors: u32_of("contributors"),
                deadline_us: u32_of("deadline_us"),
                block_bytes: u32_of("block_bytes"),
                datagram_bytes: u32_of("datagram_bytes"),
                sent_at_us: u32_of("sent_at_us"),
                nonce: u32_of("nonce"),
                operation: u32_of("operation"),
                program: u64_of(message, "program"),
            };
            (join.emit(buf), packet.and_then(|packet| Join::parse(&packet)) == Ok(join))
        }
        "welcome" => {
            let welcome = Welcome {
                address,
                code: named(message, "code", &WelcomeCode::EACH, WelcomeCode::name),
                operation: u32_of("operation"),
                workers: u32_of("workers"),
                here: u32_of("here"),
                slots: u32_of("slots"),
                block_bytes: u32_of("block_bytes"),
                cores: u32_of("cores"),
                sent_at_us: u32_of("sent_at_us"),
                nonce: u32_of("nonce"),
            };
            (welcome.emit(buf), packet.and_then(|packet| Welcome::parse(&packet)) == Ok(welcome))
        }
        "leave" => {
            let leave = Leave { address, operation: u32_of("operation") };
            (leave.emit(buf), packet.and_then(|packet| Leave::parse(&packet)) == Ok(leave))
        }
        "closed" => {
            let closed = Closed {
                address,
                operation: u32_of("operation"),
                culprit: u32_of("culprit"),
                reason: named(message, "reason", &Reason::EACH, Reason::name),
                clash: called(message, "culprit_calls")
                    .zip(called(message, "others_call"))
                    .map(|(culprit, others)| Clash { culprit, others }),
            };
            (closed.emit(buf), packet.and_then(|packet| Closed::parse(&packet)) == Ok(closed))
        }
        kind => panic!("no kind {kind}"),
    }
}

#[test]
fn each_message_has_these_bytes_and_these_bytes_are_that_message() {
    let mut kinds = BTreeSet::new();
    for message in &messages(FILE, |message| written(message, &[]).0) {
        let bytes = bytes_of(message);
        let (written, same) = written(message, &bytes);
        assert_eq!(hex(&written), hex(&bytes), "{message}");
        assert!(same, "{message} is read otherwise");
        kinds.insert(ReducePacket::new_checked(&bytes).unwrap().kind());
    }
    assert_eq!(kinds, BTreeSet::from(Kind::EACH), "a vector of each kind");
}
