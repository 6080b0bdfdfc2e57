//! Trio-ML: `vectors/wire/trio/messages.json`.

use super::{bytes_of, hex, messages, u64_of};
use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::trio::{
    Ask, Block, Closed, Gone, Hello, Kind, Leave, Straggler, Straggling, TrioPacket, Want, Welcome,
};
use olaf_wire::{Session, Sides};
use serde_json::Value;
use std::collections::BTreeSet;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/wire/trio/messages.json");

/// A number of any width.
fn of<T: TryFrom<u64>>(message: &Value, field: &str) -> T {
    T::try_from(u64_of(message, field)).ok().unwrap_or_else(|| panic!("{field} of {message}"))
}

fn flag_of(message: &Value, field: &str) -> bool {
    message[field].as_bool().unwrap_or_else(|| panic!("{field} of {message}"))
}

fn named<T: Copy>(message: &Value, field: &str, each: &[T], name: fn(T) -> &'static str) -> T {
    let wanted = message[field].as_str().unwrap_or_else(|| panic!("{field} of {message}"));
    each.iter().copied().find(|value| name(*value) == wanted).unwrap()
}

fn gradients(message: &Value) -> Vec<i32> {
    let gradients = message["gradients"].as_array().unwrap().iter();
    gradients.map(|gradient| i32::try_from(gradient.as_i64().unwrap()).unwrap()).collect()
}

/// The message of those fields, written; and read back from `bytes`, whether it is the same.
fn written(message: &Value, bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut buf = vec![0xff; 1024];
    let packet = TrioPacket::new_checked(bytes);
    let (job, term) = (of(message, "job"), |m| of(m, "term"));
    let session = |m| Session(of(m, "session"));
    let source = |m| of(m, "src_id");
    macro_rules! both {
        ($message:expr, $kind:ident) => {{
            let message = $message;
            let read = packet.and_then(|packet| $kind::parse(&packet));
            (message.emit(&mut buf), read == Ok(message))
        }};
    }
    let m = message;
    let (len, same) = match m["kind"].as_str().unwrap() {
        "block" => {
            let block = Block {
                job,
                block: of(m, "block_id"),
                aged: flag_of(m, "aged"),
                is_final: flag_of(m, "final"),
                degraded: flag_of(m, "degraded"),
                source: source(m),
                sources: of(m, "src_cnt"),
                generation: of(m, "gen_id"),
                call: of(m, "call"),
            };
            let gradients = gradients(m);
            let same = packet.is_ok_and(|packet| {
                let read = packet.gradients().as_chunks().0.iter();
                let read: Vec<i32> = read.map(|gradient| i32::from_be_bytes(*gradient)).collect();
                Block::parse(&packet) == Ok(block) && read == gradients
            });
            (block.emit(&gradients, &mut buf), same)
        }
        "hello" => both!(
            Hello {
                job,
                term: term(m),
                source: source(m),
                sources: of(m, "src_cnt"),
                newest: of(m, "gen_id"),
                session: session(m),
                workers: of(m, "workers"),
                gradients: of(m, "gradients"),
                timeout_ms: of(m, "timeout_ms"),
                window: of(m, "window"),
                sent_at_us: of(m, "sent_at_us"),
                nonce: m.get("nonce").map_or(0, |_| of(m, "nonce")),
                program: m.get("program").map_or(0, |_| of(m, "program")),
            },
            Hello
        ),
        "welcome" => both!(
            Welcome {
                job,
                term: term(m),
                source: source(m),
                workers: of(m, "src_cnt"),
                first: of(m, "gen_id"),
                session: session(m),
                code: named(m, "code", &WelcomeCode::EACH, WelcomeCode::name),
                gradients: of(m, "gradients"),
                here: of(m, "here"),
                window: of(m, "window"),
                newest: of(m, "newest"),
                sent_at_us: of(m, "sent_at_us"),
                nonce: m.get("nonce").map_or(0, |_| of(m, "nonce")),
            },
            Welcome
        ),
        "ask" => both!(
            Ask {
                job,
                term: term(m),
                source: source(m),
                session: session(m),
                generation: of(m, "gen_id"),
                block: of(m, "block_id"),
                mask: of(m, "mask"),
                held_generation: of(m, "held_generation"),
                held_block: of(m, "held_block"),
                sent_at_us: of(m, "sent_at_us"),
            },
            Ask
        ),
        "want" => both!(
            Want {
                job,
                term: term(m),
                source: source(m),
                session: session(m),
                generation: of(m, "gen_id"),
                block: of(m, "block_id"),
                mask: of(m, "mask"),
                sent_at_us: of(m, "sent_at_us"),
            },
            Want
        ),
        "closed" => both!(
            Closed {
                job,
                term: term(m),
                culprit: source(m),
                generation: of(m, "gen_id"),
                mask: of(m, "mask"),
                reason: named(m, "reason", &Reason::EACH, Reason::name),
                sides: Sides::from_byte(m["calls"].as_u64().unwrap_or(0) as u8),
            },
            Closed
        ),
        "leave" => {
            let reason = named(m, "reason", &Reason::EACH, Reason::name);
            let (term, source, session) = (term(m), source(m), session(m));
            both!(Leave { job, term, source, session, reason }, Leave)
        }
        "straggler" => both!(
            Straggler {
                job,
                term: term(m),
                source: source(m),
                straggling: named(m, "straggling", &Straggling::EACH, Straggling::name),
                events: of(m, "events"),
            },
            Straggler
        ),
        "gone" => both!(
            Gone {
                job,
                term: term(m),
                source: source(m),
                session: session(m),
                generation: of(m, "gen_id"),
                block: of(m, "block_id"),
            },
            Gone
        ),
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
        kinds.insert(TrioPacket::new_checked(&bytes).unwrap().kind());
    }
    assert_eq!(kinds, BTreeSet::from(Kind::EACH), "a vector of each kind");
}
