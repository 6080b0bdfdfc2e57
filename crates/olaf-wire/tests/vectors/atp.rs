//! ATP: `vectors/wire/atp/messages.json`.

use super::{bytes_of, hex, messages, u64_of, unhex};
use olaf_wire::atp::{AtpPacket, Closed, Header, Join, Key, Kind, Leave, Left, Upper, Welcome};
use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::{Session, Sides};
use serde_json::Value;
use std::collections::BTreeSet;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/wire/atp/messages.json");

fn u8_of(message: &Value, field: &str) -> u8 {
    u8::try_from(u64_of(message, field)).unwrap()
}

fn u16_of(message: &Value, field: &str) -> u16 {
    u16::try_from(u64_of(message, field)).unwrap()
}

fn u32_of(message: &Value, field: &str) -> u32 {
    u32::try_from(u64_of(message, field)).unwrap()
}

fn flag_of(message: &Value, field: &str) -> bool {
    message[field].as_bool().unwrap_or_else(|| panic!("{field} of {message}"))
}

fn header(message: &Value) -> Header {
    Header {
        bitmap0: u32_of(message, "bitmap0"),
        bitmap1: u32_of(message, "bitmap1"),
        fan_in0: u8_of(message, "fan_in0"),
        fan_in1: u8_of(message, "fan_in1"),
        overflow: flag_of(message, "overflow"),
        server: u8_of(message, "server"),
        ecn: flag_of(message, "ecn"),
        resend: flag_of(message, "resend"),
        collision: flag_of(message, "collision"),
        ack: message["kind"] == "parameters",
        edge: flag_of(message, "edge"),
        same_switch: flag_of(message, "same_switch"),
        job: u16_of(message, "job"),
        sequence: u16_of(message, "sequence"),
        index: u16_of(message, "index"),
        key: Key {
            generation: u16_of(message, "generation"),
            call: u8::try_from(u32_of(message, "call")).expect("4 bits"),
            tensor: u32_of(message, "tensor"),
            wraps: u32_of(message, "wraps"),
        },
        tensor_length: u32_of(message, "tensor_length"),
        upper: upper(message),
    }
}

/// The part of a job with more than two levels.
fn upper(message: &Value) -> Option<Upper> {
    let two = |field: &str| [0, 1].map(|at| message["upper"][field][at].clone());
    let number = |value: Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    message.get("upper").map(|of| Upper {
        bitmaps: two("bitmaps").map(number),
        fan_ins: two("fan_ins").map(|value| u8::try_from(number(value)).unwrap()),
        passed: u8_of(of, "passed"),
        same_switch: two("same_switch").map(|value| value.as_bool().unwrap()),
    })
}

fn reason_of(message: &Value) -> Reason {
    let name = message["reason"].as_str().unwrap();
    Reason::EACH.into_iter().find(|reason| reason.name() == name).unwrap()
}

/// The message of those fields, written; and read back from `bytes`, whether it is the same.
fn written(message: &Value, bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut buf = vec![0xff; 1024];
    let packet = AtpPacket::new_checked(bytes);
    let (job, server) = (u16_of(message, "job"), u8_of(message, "server"));
    let (len, same) = match message["kind"].as_str().unwrap() {
        "gradient" | "parameters" => {
            let values = unhex(message["values"].as_str().unwrap());
            let header = header(message);
            let read = packet.and_then(|packet| Header::parse(&packet));
            let same = read == Ok(header) && packet.is_ok_and(|packet| packet.values() == values);
            (header.emit(&values, &mut buf), same)
        }
        "join" => {
            let join = Join {
                job,
                server,
                session: Session(u32_of(message, "session")),
                rank: u32_of(message, "rank"),
                workers: u32_of(message, "workers"),
                generation: u16_of(message, "generation"),
                closed: u16_of(message, "closed"),
                values: u16_of(message, "values_of_packet"),
                aggregators: u32_of(message, "aggregators"),
                switches: ["first_switch", "second_switch", "third_switch", "fourth_switch"]
                    .map(|name| message.get(name).map_or(0, |_| u32_of(message, name))),
                sent_at_us: u32_of(message, "sent_at_us"),
                scale: message["scale"].as_f64().unwrap(),
                servers: u8_of(message, "servers"),
                window: u16_of(message, "window"),
                nonce: u32_of(message, "nonce"),
                operations: u32_of(message, "operations"),
                program: u64_of(message, "program"),
            };
            (join.emit(&mut buf), packet.and_then(|packet| Join::parse(&packet)) == Ok(join))
        }
        "welcome" => {
            let name = message["code"].as_str().unwrap();
            let welcome = Welcome {
                job,
                server,
                session: Session(u32_of(message, "session")),
                rank: u32_of(message, "rank"),
                workers: u32_of(message, "workers"),
                here: u32_of(message, "here"),
                code: WelcomeCode::EACH.into_iter().find(|code| code.name() == name).unwrap(),
                edge: flag_of(message, "edge"),
                same_switch: flag_of(message, "same_switch"),
                generation: u16_of(message, "generation"),
                life: u16_of(message, "life"),
                values: u16_of(message, "values_of_packet"),
                window: u16_of(message, "window"),
                bitmap0: u32_of(message, "bitmap0"),
                bitmap1: u32_of(message, "bitmap1"),
                fan_in0: u8_of(message, "fan_in0"),
                fan_in1: u8_of(message, "fan_in1"),
                aggregators: u32_of(message, "aggregators"),
                sent_at_us: u32_of(message, "sent_at_us"),
                sequence: u64_of(message, "sequence"),
                upper: upper(message),
                nonce: u32_of(message, "nonce"),
                operations: u32_of(message, "operations"),
            };
            let read = packet.and_then(|packet| Welcome::parse(&packet));
            (welcome.emit(&mut buf), read == Ok(welcome))
        }
        "leave" => {
            let session = Session(u32_of(message, "session"));
            let leave = Leave {
                job,
                server,
                session,
                life: u16_of(message, "life"),
                reason: reason_of(message),
            };
            (leave.emit(&mut buf), packet.and_then(|packet| Leave::parse(&packet)) == Ok(leave))
        }
        "left" => {
            let left = Left { job, server, session: Session(u32_of(message, "session")) };
            (left.emit(&mut buf), packet.and_then(|packet| Left::parse(&packet)) == Ok(left))
        }
        "closed" => {
            let closed = Closed {
                job,
                server,
                life: u16_of(message, "life"),
                reason: reason_of(message),
                tensor: u32_of(message, "tensor"),
                culprit: u32_of(message, "culprit"),
                sides: Sides::from_byte(message["calls"].as_u64().unwrap_or(0) as u8),
            };
            (closed.emit(&mut buf), packet.and_then(|packet| Closed::parse(&packet)) == Ok(closed))
        }
        kind => panic!("no kind {kind}"),
    };
    buf.truncate(len);
    (buf, same)
}

#[test]
fn each_message_has_these_bytes_and_these_bytes_are_that_message() {
    let mut kinds = BTreeSet::new();
    for message in &messages(FILE, |message| written(message, &[]).0) {
        let bytes = bytes_of(message);
        let (written, same) = written(message, &bytes);
        assert_eq!(hex(&written), hex(&bytes), "{message}");
        assert!(same, "{message} is read otherwise");
        kinds.insert(AtpPacket::new_checked(&bytes).unwrap().kind());
    }
    assert_eq!(kinds, BTreeSet::from(Kind::EACH), "a vector of each kind");
}

/// Made by hand from Figure 5 and the widths of the authors' public code.
#[test]
fn a_gradient_fragment_packet_of_figure_5() {
    let fields = [
        "00000004",         // bitmap0: the third worker of its switch
        "00000002",         // bitmap1: the second switch
        "08",               // fanInDegree0
        "03",               // fanInDegree1
        "2a",               // server 1, ECN, collision
        "01",               // edgeSwitchIdentifier
        "0102",             // job
        "fffe",             // sequence
        "0309",             // aggregator index
        "05f5e100",         // 1.0 times 10^8
        "ffffffff",         // the smallest negative number
        "000700000b000003", // generation 7, tensor 11, wrapped 3 times
        "0000007c",         // 124 values in the tensor
    ];
    let bytes = unhex(&fields.concat());
    let packet = AtpPacket::new_checked(&bytes).unwrap();
    let header = Header::parse(&packet).unwrap();
    let expected = Header {
        bitmap0: 4,
        bitmap1: 2,
        fan_in0: 8,
        fan_in1: 3,
        server: 1,
        ecn: true,
        collision: true,
        edge: true,
        job: 0x102,
        sequence: 0xfffe,
        index: 0x309,
        key: Key { generation: 7, call: 0, tensor: 11, wraps: 3 },
        tensor_length: 124,
        ..Header::default()
    };
    assert_eq!(header, expected);
    assert_eq!(packet.values(), unhex("05f5e100ffffffff"));
    assert_eq!(header.key.sequence(header.sequence, 3 << 16), 0x3_fffe);
}

/// Made by hand: the part for the third and the fourth level lies between header and values.
#[test]
fn a_gradient_fragment_packet_of_a_job_with_four_levels() {
    let fields = [
        "00000000",         // bitmap0: all workers of the groups below
        "00000000",         // bitmap1: all of those
        "08",               // fanInDegree0
        "03",               // fanInDegree1
        "00",               // no flags
        "05",               // edgeSwitchIdentifier, and the part for more levels
        "0102",             // job
        "fffe",             // sequence
        "0309",             // aggregator index
        "00000006",         // bitmap2: the second and the third group
        "00000010",         // bitmap3: the fifth one
        "03",               // fanInDegree2
        "20",               // fanInDegree3
        "0a",               // it has passed three levels; the last two are in one switch
        "00",               // unused
        "05f5e100",         // 1.0 times 10^8
        "000700000b000003", // generation 7, tensor 11, wrapped 3 times
        "0000007c",         // 124 values in the tensor
    ];
    let bytes = unhex(&fields.concat());
    let packet = AtpPacket::new_checked(&bytes).unwrap();
    let header = Header::parse(&packet).unwrap();
    assert_eq!((header.levels(), header.level()), (4, 3));
    assert_eq!([0, 1, 2, 3].map(|level| header.bitmap(level)), [0, 0, 6, 16]);
    assert_eq!([0, 1, 2, 3].map(|level| header.fan_in(level)), [8, 3, 3, 32]);
    assert_eq!(
        [0, 1, 2, 3].map(|level| header.same_switch_after(level)),
        [false, false, true, false]
    );
    assert_eq!(packet.values(), unhex("05f5e100"));
    let mut again = vec![0xff; header.datagram_len(1)];
    header.emit(packet.values(), &mut again);
    assert_eq!(again, bytes);
}
