//! MINA's sharing protocol: `vectors/wire/mina/messages.json`.

use super::{bytes_of, hex, messages, u64_of};
use olaf_wire::mina::{Ballot, Body, Grant, Here, JobId, Packet, Party, Progress};
use serde_json::Value;
use std::collections::BTreeSet;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/wire/mina/messages.json");

fn flag_of(message: &Value, field: &str) -> bool {
    message[field].as_bool().unwrap_or_else(|| panic!("{field} of {message}"))
}

fn rank(number: u64) -> u16 {
    u16::try_from(number).unwrap()
}

/// `"controller"`, or a host's rank.
fn party(message: &Value, field: &str) -> Party {
    match message[field].as_u64() {
        Some(host) => Party::Host(rank(host)),
        None => {
            assert_eq!(message[field], "controller", "{message}");
            Party::Controller
        }
    }
}

fn body(message: &Value) -> Body {
    let of = |field: &str| u64_of(message, field);
    match message["kind"].as_str().unwrap() {
        "prepare" => Body::Prepare,
        "ready" => Body::Ready { next: of("next"), held: flag_of(message, "held") },
        "commit" => Body::Commit(Grant { from: of("grant_from"), to: of("grant_to") }),
        "abort" => Body::Abort,
        "settled" => Body::Settled {
            next: of("next"),
            held: flag_of(message, "held"),
            epoch: of("heard_epoch"),
        },
        "ask" => Body::Ask,
        "in_doubt" => Body::InDoubt,
        "bye" => Body::Bye,
        "progress" => Body::Progress(Progress {
            next: of("next"),
            in_network: flag_of(message, "in_network"),
            step_age_ns: of("step_age_ns"),
        }),
        kind => panic!("no kind {kind}"),
    }
}

fn packet(message: &Value) -> Packet {
    Packet {
        job: JobId(u64_of(message, "job")),
        ballot: Ballot { epoch: u64_of(message, "epoch"), round: u64_of(message, "round") },
        from: party(message, "from"),
        to: party(message, "to"),
        body: body(message),
    }
}

fn here(message: &Value) -> Here {
    Here {
        job: JobId(u64_of(message, "job")),
        rank: rank(u64_of(message, "rank")),
        index: u64_of(message, "index"),
        in_network: flag_of(message, "in_network"),
        answer: flag_of(message, "answer"),
    }
}

fn written(message: &Value) -> Vec<u8> {
    match message["kind"].as_str() {
        Some("here") => here(message).emit().to_vec(),
        _ => packet(message).emit().to_vec(),
    }
}

#[test]
fn each_message_has_these_bytes_and_these_bytes_are_that_message() {
    let messages = messages(FILE, written);
    for message in &messages {
        let bytes = bytes_of(message);
        assert_eq!(hex(&written(message)), hex(&bytes), "{message}");
        match message["kind"].as_str() {
            Some("here") => assert_eq!(Here::parse(&bytes), Ok(here(message)), "{message}"),
            _ => assert_eq!(Packet::parse(&bytes), Ok(packet(message)), "{message}"),
        }
    }
    let packets = messages.iter().filter(|message| message["kind"] != "here");
    let kinds: BTreeSet<u8> = packets.map(|message| bytes_of(message)[5]).collect();
    assert_eq!(kinds, (1..=9).collect(), "a vector of each kind");
}
