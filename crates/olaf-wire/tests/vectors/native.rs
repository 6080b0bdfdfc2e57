//! Olaf's own messages: `vectors/wire/native/messages.json`.

use super::{bytes_of, hex, messages, u64_of, unhex};
use olaf_wire::update::read_lanes;
use olaf_wire::{
    Address, Ages, AggregateKind, Answer, AskSignature, ClusterId, Ends, Fetch, JobId, JobRule,
    Join, JoinPath, Kind, LayoutPart, Leave, Notice, Packet, QueueStatus, RuleKind, ServerGate,
    Session, Signature, Step, Update, Welcome, WelcomeCode, WorkerId,
};
use serde_json::Value;
use std::collections::BTreeSet;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/wire/native/messages.json");

fn u32_of(message: &Value, field: &str) -> u32 {
    u32::try_from(u64_of(message, field)).unwrap()
}

fn f64_of(message: &Value, field: &str) -> f64 {
    message[field].as_f64().unwrap()
}

fn address(message: &Value) -> Address {
    Address {
        job: JobId(u32_of(message, "job")),
        cluster: ClusterId(u32_of(message, "cluster")),
        worker: WorkerId(u32_of(message, "worker")),
        session: Session(u32_of(message, "session")),
    }
}

fn lanes(message: &Value) -> Vec<f32> {
    let lanes = message["lanes"].as_array();
    lanes.into_iter().flatten().map(|lane| lane.as_f64().unwrap() as f32).collect()
}

/// Messages of before there were nonces have none.
fn nonce(message: &Value) -> u32 {
    let nonce = message.get("nonce").and_then(Value::as_u64).unwrap_or(0);
    u32::try_from(nonce).unwrap()
}

fn code(name: &str) -> WelcomeCode {
    use WelcomeCode as Code;
    let all = [Code::Welcome, Code::WorkerIdInUse, Code::WrongModelSize, Code::WrongSegmentLanes];
    let rest =
        [Code::UnknownJob, Code::ModelTooLarge, Code::Full, Code::ServerSilent, Code::JoinAgain];
    let last = [Code::Loop, Code::NotAdmitted, Code::AdmissionPending, Code::Path];
    let limits = [Code::JobFull, Code::TooManyClusters];
    *all.iter().chain(&rest).chain(&last).chain(&limits).find(|code| code.name() == name).unwrap()
}

fn rule(fields: &Value) -> JobRule {
    let name = |field: &str| fields[field].as_str().unwrap();
    JobRule {
        kind: match name("kind") {
            "delta" => RuleKind::Delta,
            "paper-literal" => RuleKind::PaperLiteral,
            other => panic!("no rule {other}"),
        },
        aggregate: match name("aggregate") {
            "each" => AggregateKind::Each,
            "periodic" => AggregateKind::Periodic,
            "round" => AggregateKind::Round,
            other => panic!("no aggregate {other}"),
        },
        step: match name("step") {
            "mean" => Step::Mean,
            "sum" => Step::Sum,
            "overlap" => Step::Overlap,
            other => panic!("no step {other}"),
        },
        gate: match name("gate") {
            "none" => ServerGate::None,
            "best" => ServerGate::Best,
            "recent" => ServerGate::Recent,
            other => panic!("no gate {other}"),
        },
        factor: f64_of(fields, "factor"),
        staleness_power: f64_of(fields, "staleness_power"),
    }
}

/// The message of those fields, written; and read back from `bytes`, whether it is the same.
fn written(message: &Value, bytes: &[u8]) -> (Vec<u8>, bool) {
    let packet = Packet::new_checked(bytes);
    let mut buf = vec![0xff; 1024];
    let address = address(message);
    let u32_of = |field| u32_of(message, field);
    let u64_of = |field| u64_of(message, field);
    let (len, same) = match message["kind"].as_str().unwrap() {
        "update" => {
            let update = Update {
                address,
                sequence: u32_of("sequence"),
                hop_sequence: u32_of("hop_sequence"),
                segment: u32_of("segment"),
                segments: u32_of("segments"),
                generated_oldest_ns: u64_of("generated_oldest_ns"),
                generated_newest_ns: u64_of("generated_newest_ns"),
                version_oldest: u32_of("version_oldest"),
                version_newest: u32_of("version_newest"),
                contributors: u32_of("contributors"),
                weight: f64_of(message, "weight"),
                reward: f64_of(message, "reward"),
                hops: u8::try_from(u32_of("hops")).unwrap(),
                flow_sequence: u32_of("flow_sequence"),
            };
            let read = packet.and_then(|packet| Update::parse(&packet));
            (update.emit(&lanes(message), &mut buf), read == Ok(update))
        }
        "acknowledgement" | "model" => {
            let answer = Answer {
                address,
                acknowledges: u32_of("acknowledges"),
                segment: u32_of("segment"),
                segments: u32_of("segments"),
                model_version: u32_of("model_version"),
                parameters: u32_of("parameters"),
                epoch: u32_of("epoch"),
                delivered_version: u32_of("delivered_version"),
                delivered_newest_ns: u64_of("delivered_newest_ns"),
                server_time_ns: u64_of("server_time_ns"),
                queue: QueueStatus {
                    active_clusters: u16::try_from(u32_of("active_clusters")).unwrap(),
                    slots: u16::try_from(u32_of("slots")).unwrap(),
                    used: u16::try_from(u32_of("used")).unwrap(),
                    switches: u8::try_from(u32_of("switches")).unwrap(),
                    round_us: u32_of("round_us"),
                },
                ages: Ages { own_us: u32_of("own_us"), mean_us: u32_of("mean_us") },
                ends: Ends {
                    newest: u32_of("flow_newest"),
                    delivered: u64_of("delivered"),
                    ended: u64_of("ended"),
                },
            };
            let read = packet.and_then(|packet| Answer::parse(&packet));
            (answer.emit(&lanes(message), &mut buf), read == Ok(answer))
        }
        "join" => {
            let join = Join {
                address,
                have_version: u32_of("have_version"),
                parameters: u32_of("parameters"),
                segment_lanes: u32_of("segment_lanes"),
                clock_error_us: u32_of("clock_error_us"),
                sent_at_ns: u64_of("sent_at_ns"),
                clock_offset_ns: message["clock_offset_ns"].as_i64().unwrap(),
                hops: u8::try_from(u32_of("hops")).unwrap(),
                wants_notices: message["wants_notices"].as_bool().unwrap(),
                path: JoinPath {
                    asks: message["asks_path"].as_bool().unwrap(),
                    round_trip_us: u32_of("round_trip_us"),
                    padded_to: u32_of("padded_to"),
                },
                nonce: nonce(message),
            };
            let read = packet.and_then(|packet| Join::parse(&packet));
            (join.emit(&mut buf), read == Ok(join))
        }
        "welcome" => {
            let welcome = Welcome {
                address,
                code: code(message["code"].as_str().unwrap()),
                ready: message["ready"].as_bool().unwrap(),
                version: u32_of("version"),
                parameters: u32_of("parameters"),
                segment_lanes: u32_of("segment_lanes"),
                epoch: u32_of("epoch"),
                first_missing: u32_of("first_missing"),
                echoed_sent_at_ns: u64_of("echoed_sent_at_ns"),
                received_at_ns: u64_of("received_at_ns"),
                sent_at_ns: u64_of("sent_at_ns"),
                switch_epoch: u32_of("switch_epoch"),
                silent_ms: u32_of("silent_ms"),
                rule: Some(&message["rule"]).filter(|rule| !rule.is_null()).map(rule),
                layout_missing: u32_of("layout_missing"),
                missing: u64_of("missing"),
                padded_to: u32_of("padded_to"),
                nonce: nonce(message),
            };
            let read = packet.and_then(|packet| Welcome::parse(&packet));
            (welcome.emit(&mut buf), read == Ok(welcome))
        }
        "notice" => {
            let notice = Notice { address, taken_newest_ns: u64_of("taken_newest_ns") };
            let read = packet.and_then(|packet| Notice::parse(&packet));
            (notice.emit(&mut buf), read == Ok(notice))
        }
        "layout" => {
            let text = message["text"].as_str().unwrap().as_bytes();
            let layout = LayoutPart { address, part: u32_of("part"), total: u32_of("total"), text };
            let read = packet.and_then(|packet| LayoutPart::parse(&packet));
            let len = layout.emit(&mut buf);
            buf.truncate(len);
            return (buf, read == Ok(layout));
        }
        "leave" => {
            let leave = Leave { address };
            let read = packet.and_then(|packet| Leave::parse(&packet));
            (leave.emit(&mut buf), read == Ok(leave))
        }
        "fetch" => {
            let (version, first, mask) = (u32_of("version"), u32_of("first"), u64_of("mask"));
            let have_version = u32_of("have_version");
            let fetch = Fetch { address, version, first, mask, have_version };
            let read = packet.and_then(|packet| Fetch::parse(&packet));
            (fetch.emit(&mut buf), read == Ok(fetch))
        }
        "signature" => {
            let fixed = |field: &str| unhex(message[field].as_str().unwrap());
            let signature = Signature {
                address,
                version: u32_of("version"),
                parameters: u32_of("parameters"),
                segment_lanes: u32_of("segment_lanes"),
                epoch: u32_of("epoch"),
                oldest: u32_of("oldest"),
                question: u64_of("question"),
                hash: fixed("hash").try_into().unwrap(),
                tag: fixed("tag").try_into().unwrap(),
            };
            let read = packet.and_then(|packet| Signature::parse(&packet));
            (signature.emit(&mut buf), read == Ok(signature))
        }
        "ask_signature" => {
            let (version, question) = (u32_of("version"), u64_of("question"));
            let ask = AskSignature { address, version, question };
            let read = packet.and_then(|packet| AskSignature::parse(&packet));
            (ask.emit(&mut buf), read == Ok(ask))
        }
        kind => panic!("no kind {kind}"),
    };
    buf.truncate(len);
    let same = same
        && packet.is_ok_and(|packet| {
            let mut read = vec![0.0; packet.lanes().len() / 4];
            read_lanes(packet.lanes(), &mut read);
            read == lanes(message)
        });
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
        kinds.insert(Packet::new_checked(&bytes).unwrap().kind());
    }
    let all = [Kind::Update, Kind::Acknowledgement, Kind::Model, Kind::Join];
    let all = BTreeSet::from_iter(all.into_iter().chain([
        Kind::Welcome,
        Kind::Leave,
        Kind::Fetch,
        Kind::Notice,
        Kind::Layout,
        Kind::Signature,
        Kind::AskSignature,
    ]));
    assert_eq!(kinds, all, "a vector of each kind");
}
