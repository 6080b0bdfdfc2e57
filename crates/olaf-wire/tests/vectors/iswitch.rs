//! iSwitch: `vectors/wire/iswitch/messages.json`.

use super::{bytes_of, hex, messages, u64_of, unhex};
use olaf_wire::iswitch::{
    Ack, Action, Admission, Control, DataPacket, Halt, Join, Leave, Outcome, Packets, Seg, Sender,
    emit_seg,
};
use olaf_wire::reduce::Reason;
use olaf_wire::{JobId, Session};
use serde_json::Value;
use std::collections::BTreeSet;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/wire/iswitch/messages.json");

fn u32_of(message: &Value, field: &str) -> u32 {
    u32::try_from(u64_of(message, field)).unwrap()
}

fn named<T: Copy>(message: &Value, field: &str, each: &[T], name: fn(T) -> &'static str) -> T {
    let wanted = message[field].as_str().unwrap_or_else(|| panic!("{field} of {message}"));
    each.iter().copied().find(|value| name(*value) == wanted).unwrap()
}

/// The Seg and the floats of those fields.
fn data(message: &Value) -> (Seg, Vec<u8>) {
    let seg = Seg {
        generation: u64_of(message, "generation") as u8,
        last: message["last"].as_bool().unwrap(),
        missing: u64_of(message, "missing") as u16,
        index: u64_of(message, "index"),
    };
    (seg, unhex(message["floats"].as_str().unwrap()))
}

/// The control message of those fields.
fn control(message: &Value) -> Control {
    let u32_of = |field| u32_of(message, field);
    let generation = u64_of(message, "generation") as u8;
    let packets = || Packets {
        generation,
        sent_at_us: u32_of("sent_at_us"),
        index: u64_of(message, "index"),
        mask: u64_of(message, "mask"),
    };
    match message["kind"].as_str().unwrap() {
        "join" => Control::Join(Join {
            generation,
            sender: [Sender::Worker, Sender::Switch][u64_of(message, "sender") as usize],
            job: JobId(u32_of("job")),
            session: Session(u32_of("session")),
            rank: u32_of("rank"),
            workers: u32_of("workers"),
            contributors: u32_of("contributors"),
            packet_floats: u32_of("packet_floats"),
            operations: u32_of("operations"),
            program: u32_of("program"),
            nonce: message.get("nonce").map_or(0, |_| u32_of("nonce")),
        }),
        "leave" => Control::Leave(Leave {
            generation,
            job: JobId(u32_of("job")),
            session: Session(u32_of("session")),
        }),
        "reset" => Control::Reset { generation },
        "set_h" => Control::SetH { generation, h: u32_of("h") },
        "fbcast" => Control::FBcast(packets()),
        "help" => Control::Help(packets()),
        "halt" => Control::Halt(Halt {
            generation,
            reason: named(message, "reason", &Reason::EACH, Reason::name),
            culprit: u32_of("culprit"),
            index: u64_of(message, "index"),
            calls: message["calls"].as_u64().unwrap_or(0) as u8,
        }),
        "ack" => {
            let action = named(message, "action", &Action::EACH, Action::name);
            Control::Ack(Ack {
                generation,
                action,
                outcome: named(message, "outcome", &Outcome::EACH, Outcome::name),
                sent_at_us: u32_of("sent_at_us"),
                index: u64_of(message, "index"),
                admission: (action == Action::Join).then(|| Admission {
                    member: u32_of("member"),
                    rank: u32_of("rank"),
                    workers: u32_of("workers"),
                    here: u32_of("here"),
                    slots: u32_of("slots"),
                    packet_floats: u32_of("packet_floats"),
                    operations: u32_of("operations"),
                    session: Session(u32_of("session")),
                    nonce: message.get("nonce").map_or(0, |_| u32_of("nonce")),
                }),
            })
        }
        kind => panic!("no kind {kind}"),
    }
}

fn written(message: &Value) -> Vec<u8> {
    let mut buf = vec![0xff; 256];
    let len = if message["kind"] == "data" {
        let (seg, floats) = data(message);
        let start = emit_seg(seg, &mut buf);
        buf[start..start + floats.len()].copy_from_slice(&floats);
        start + floats.len()
    } else {
        control(message).emit(&mut buf)
    };
    buf.truncate(len);
    buf
}

#[test]
fn each_message_has_these_bytes_and_these_bytes_are_that_message() {
    let mut actions = BTreeSet::new();
    for message in &messages(FILE, written) {
        let bytes = bytes_of(message);
        assert_eq!(hex(&written(message)), hex(&bytes), "{message}");
        if message["kind"] == "data" {
            let (seg, floats) = data(message);
            assert_eq!(DataPacket::new_checked(&bytes), Ok(DataPacket { seg, floats: &floats }));
        } else {
            let read = Control::parse(&bytes);
            assert_eq!(read, Ok(control(message)), "{message}");
            actions.insert(read.unwrap().action());
        }
    }
    assert_eq!(actions, BTreeSet::from(Action::EACH), "a vector of each verb of Table 2");
}
