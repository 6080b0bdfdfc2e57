//! Our own protocols: the native one, `reduce`, and the handshakes of keys.

use crate::protocol::{Field, Message, Protocol, bits, byte, bytes, double, u16, u32, u64};
use olaf_wire::offsets::{
    self as native, LANE, answer, ask_signature, common, fetch, join, layout, notice, signature,
    update, welcome,
};
use olaf_wire::reduce::{
    Kind as ReduceKind, LaneType, Operator, Reason, WelcomeCode, offsets as reduce,
};
use olaf_wire::sealed::{self, offsets::handshake};
use olaf_wire::signature::{HASH_BYTES, SIGNATURE_TAG_BYTES};
use olaf_wire::{Kind, WelcomeCode as Code};

pub(crate) fn all() -> Vec<Protocol> {
    vec![native_protocol(), reduce_protocol(), handshakes()]
}

const KINDS: [(Kind, &str); 11] = [
    (Kind::Update, "update"),
    (Kind::Acknowledgement, "acknowledgement"),
    (Kind::Model, "model"),
    (Kind::Join, "join"),
    (Kind::Welcome, "welcome"),
    (Kind::Leave, "leave"),
    (Kind::Fetch, "fetch"),
    (Kind::Notice, "notice"),
    (Kind::Layout, "layout"),
    (Kind::Signature, "signature"),
    (Kind::AskSignature, "ask_signature"),
];
const CODES: [Code; 13] = [
    Code::Welcome,
    Code::WorkerIdInUse,
    Code::WrongModelSize,
    Code::WrongSegmentLanes,
    Code::UnknownJob,
    Code::ModelTooLarge,
    Code::Full,
    Code::ServerSilent,
    Code::JoinAgain,
    Code::Loop,
    Code::NotAdmitted,
    Code::AdmissionPending,
    Code::Path,
];

fn native_protocol() -> Protocol {
    let kinds: Vec<_> = KINDS.map(|(kind, name)| (kind as u64, name)).into();
    Protocol {
        name: "olaf",
        title: "Olaf",
        magic: Some(native::MAGIC),
        classes: vec![],
        port: None,
        common: vec![
            byte("version", common::VERSION),
            byte("kind", common::KIND).with_names(&kinds, |kind| *kind),
            u16("flags", common::FLAGS),
            bits("wants_notices", common::FLAGS, 2, native::WANTS_NOTICES.into()),
            bits("asks_path", common::FLAGS, 2, native::ASKS_PATH.into()),
            u32("job", common::JOB),
            u32("cluster", common::CLUSTER),
            u32("worker", common::WORKER),
            u32("session", common::SESSION),
        ],
        code: format!("u({}, 1)", common::KIND),
        messages: KINDS.map(|(kind, name)| native_message(kind, name)).into(),
    }
}

fn native_message(kind: Kind, name: &'static str) -> Message {
    let header = kind.header_len();
    let message = Message::new(name, kind as u64, header, native_fields(kind));
    let lanes = |at: usize| format!("{header} + {LANE} * u({at}, 4)");
    let filled = |at: usize| format!("math.max({header}, u({at}, 4))");
    let rest = header.to_string();
    match kind {
        Kind::Update => message.long(lanes(update::LANES)).followed_by("lanes", &rest, 0),
        Kind::Acknowledgement | Kind::Model => {
            message.long(lanes(answer::LANES)).followed_by("lanes", &rest, 0)
        }
        Kind::Join => message.long(filled(join::PADDED_TO)).followed_by("padding", &rest, 0),
        Kind::Welcome => message.long(filled(welcome::PADDED_TO)).followed_by("padding", &rest, 0),
        Kind::Layout => message
            .long(format!("{header} + u({}, 4)", layout::LEN_OF_TEXT))
            .followed_by("text", &rest, 0),
        Kind::Leave | Kind::Fetch | Kind::Notice | Kind::Signature | Kind::AskSignature => message,
    }
}

fn native_fields(kind: Kind) -> Vec<Field> {
    match kind {
        Kind::Update => vec![
            u32("sequence", update::SEQUENCE),
            u32("hop_sequence", update::HOP_SEQUENCE),
            u32("segment", update::SEGMENT),
            u32("segments", update::SEGMENTS),
            u64("generated_oldest_ns", update::GENERATED_OLDEST),
            u64("generated_newest_ns", update::GENERATED_NEWEST),
            u32("version_oldest", update::VERSION_OLDEST),
            u32("version_newest", update::VERSION_NEWEST),
            u32("contributors", update::CONTRIBUTORS),
            double("weight", update::WEIGHT),
            double("reward", update::REWARD),
            byte("hops", update::HOPS),
            u32("flow_sequence", update::FLOW_SEQUENCE),
        ],
        Kind::Acknowledgement | Kind::Model => vec![
            u32("acknowledges", answer::ACKNOWLEDGES),
            u32("segment", answer::SEGMENT),
            u32("segments", answer::SEGMENTS),
            u32("model_version", answer::MODEL_VERSION),
            u32("parameters", answer::PARAMETERS),
            u32("epoch", answer::EPOCH),
            u32("delivered_version", answer::DELIVERED_VERSION),
            u64("delivered_newest_ns", answer::DELIVERED_NEWEST),
            u64("server_time_ns", answer::SERVER_TIME),
            u16("active_clusters", answer::ACTIVE_CLUSTERS),
            u16("slots", answer::SLOTS),
            u16("used", answer::USED),
            byte("switches", answer::SWITCHES),
            u32("round_us", answer::ROUND_US),
            u32("own_us", answer::OWN_AGE_US),
            u32("mean_us", answer::MEAN_AGE_US),
            u32("flow_newest", answer::FLOW_NEWEST),
            u64("delivered", answer::DELIVERED),
            u64("ended", answer::ENDED),
        ],
        Kind::Join => vec![
            u32("have_version", join::HAVE_VERSION),
            u32("parameters", join::PARAMETERS),
            u32("segment_lanes", join::SEGMENT_LANES),
            u32("clock_error_us", join::CLOCK_ERROR_US),
            u64("sent_at_ns", join::SENT_AT),
            u64("clock_offset_ns", join::CLOCK_OFFSET).signed(),
            byte("hops", join::HOPS),
            u32("round_trip_us", join::ROUND_TRIP_US),
            u32("padded_to", join::PADDED_TO),
            u32("nonce", join::NONCE),
        ],
        Kind::Welcome => vec![
            byte("code", welcome::CODE).with_names(&CODES, |code| (*code as u64, code.name())),
            byte("ready", welcome::READY),
            byte("rule", welcome::RULE),
            byte("aggregate", welcome::AGGREGATE),
            u32("version", welcome::VERSION),
            u32("parameters", welcome::PARAMETERS),
            u32("segment_lanes", welcome::SEGMENT_LANES),
            u32("epoch", welcome::EPOCH),
            u32("first_missing", welcome::FIRST_MISSING),
            u64("echoed_sent_at_ns", welcome::ECHOED_SENT_AT),
            u64("received_at_ns", welcome::RECEIVED_AT),
            u64("sent_at_ns", welcome::SENT_AT),
            u32("switch_epoch", welcome::SWITCH_EPOCH),
            u32("silent_ms", welcome::SILENT_MS),
            byte("step", welcome::STEP),
            byte("gate", welcome::GATE),
            u32("layout_missing", welcome::LAYOUT_MISSING),
            double("factor", welcome::FACTOR),
            double("staleness_power", welcome::STALENESS_POWER),
            u64("missing", welcome::MISSING),
            u32("padded_to", welcome::PADDED_TO),
            u32("nonce", welcome::NONCE),
        ],
        Kind::Leave => vec![],
        Kind::Fetch => vec![
            u32("version", fetch::VERSION),
            u32("first", fetch::FIRST),
            u64("mask", fetch::MASK),
            u32("have_version", fetch::HAVE_VERSION),
        ],
        Kind::Notice => vec![u64("taken_newest_ns", notice::TAKEN_NEWEST)],
        Kind::Layout => vec![u32("part", layout::PART), u32("total", layout::TOTAL)],
        Kind::Signature => vec![
            u32("version", signature::VERSION),
            u32("parameters", signature::PARAMETERS),
            u32("segment_lanes", signature::SEGMENT_LANES),
            u32("epoch", signature::EPOCH),
            u32("oldest", signature::OLDEST),
            u64("question", signature::QUESTION),
            bytes("hash", signature::HASH, HASH_BYTES),
            bytes("tag", signature::TAG, SIGNATURE_TAG_BYTES),
        ],
        Kind::AskSignature => {
            vec![u32("version", ask_signature::VERSION), u64("question", ask_signature::QUESTION)]
        }
    }
}

fn reduce_protocol() -> Protocol {
    let name = |kind: &ReduceKind| match kind {
        ReduceKind::Piece => "piece",
        ReduceKind::Result => "result",
        ReduceKind::Ask => "ask",
        ReduceKind::Want => "want",
        ReduceKind::Join => "join",
        ReduceKind::Welcome => "welcome",
        ReduceKind::Leave => "leave",
        ReduceKind::Closed => "closed",
    };
    let messages = ReduceKind::EACH.map(|kind| {
        let message = Message::new(name(&kind), kind as u64, reduce::HEADER, reduce_fields(kind));
        if !matches!(kind, ReduceKind::Piece | ReduceKind::Result) {
            return message;
        }
        let words =
            format!("{} + {} * u({}, 2)", reduce::HEADER, reduce::WORD, reduce::block::WORDS);
        let width = |lane: &LaneType| format!("[{}]={}", *lane as u8, lane.bytes());
        let widths: Vec<_> = LaneType::EACH.iter().map(width).collect();
        let lanes = format!(
            "u({}, 2) * (({{{}}})[u({}, 1)] or 0)",
            reduce::block::LANES,
            widths.join(", "),
            reduce::block::LANE_TYPE
        );
        message.long(format!("{words} + {lanes}")).followed_by("lanes", &words, 0)
    });
    Protocol {
        name: "olaf_reduce",
        title: "Olaf all-reduce",
        magic: Some(reduce::MAGIC),
        classes: vec![],
        port: None,
        common: vec![
            byte("version", reduce::common::VERSION),
            byte("kind", reduce::common::KIND)
                .with_names(&ReduceKind::EACH, |kind| (*kind as u64, name(kind))),
            u16("flags", reduce::common::FLAGS),
            bits("partial", reduce::common::FLAGS, 2, reduce::PARTIAL.into()),
            bits("resent", reduce::common::FLAGS, 2, reduce::RESENT.into()),
            bits("not_finite", reduce::common::FLAGS, 2, reduce::NOT_FINITE.into()),
            bits("congested", reduce::common::FLAGS, 2, reduce::CONGESTED.into()),
            u32("job", reduce::common::JOB),
            u32("generation", reduce::common::GENERATION),
            u32("rank", reduce::common::RANK),
            u32("session", reduce::common::SESSION),
            u32("operation", reduce::common::OPERATION),
            u32("block", reduce::common::BLOCK),
            u32("sent_at_us", reduce::common::SENT_AT_US),
        ],
        code: format!("u({}, 1)", reduce::common::KIND),
        messages: messages.into(),
    }
}

fn reduce_fields(kind: ReduceKind) -> Vec<Field> {
    use reduce::{block, closed, join, missing, welcome};
    let of_block = |count: &'static str, at: usize| {
        vec![
            u64("lanes_of_operation", block::LANES_OF_OPERATION),
            u32("first_block", block::FIRST_BLOCK),
            u32("contributors", block::CONTRIBUTORS),
            u32(count, at),
            u16("lanes_here", block::LANES),
            u16("words", block::WORDS),
            u16("call", block::CALL),
            byte("lane_type", block::LANE_TYPE)
                .with_names(&LaneType::EACH, |lane| (*lane as u64, lane.name())),
            byte("operator", block::OPERATOR)
                .with_names(&Operator::EACH, |op| (*op as u64, op.name())),
        ]
    };
    match kind {
        ReduceKind::Piece => of_block("holds", block::HOLDS),
        ReduceKind::Result => of_block("expected", block::EXPECTED),
        ReduceKind::Ask => [
            vec![
                u64("mask", missing::MASK),
                u32("holds", missing::HOLDS),
                u32("awaited", missing::AWAITED),
            ],
            signature(
                ["awaited_call", "awaited_lane_type", "awaited_operator", "awaited_lanes"],
                missing::CALLED,
            ),
        ]
        .concat(),
        ReduceKind::Want => vec![u64("mask", missing::MASK), u32("holds", missing::HOLDS)],
        ReduceKind::Join => vec![
            u32("workers", join::WORKERS),
            u32("contributors", join::CONTRIBUTORS),
            u32("deadline_us", join::DEADLINE_US),
            u32("block_bytes", join::BLOCK_BYTES),
            u32("datagram_bytes", join::DATAGRAM_BYTES),
            u32("nonce", join::NONCE),
            u64("program", join::PROGRAM),
        ],
        ReduceKind::Welcome => vec![
            u32("nonce", welcome::NONCE),
            u32("workers", welcome::WORKERS),
            u32("here", welcome::HERE),
            u32("slots", welcome::SLOTS),
            u32("block_bytes", welcome::BLOCK_BYTES),
            u32("cores", welcome::CORES),
            byte("code", welcome::CODE)
                .with_names(&WelcomeCode::EACH, |code| (*code as u64, code.name())),
        ],
        ReduceKind::Leave => vec![],
        ReduceKind::Closed => [
            vec![
                u32("culprit", closed::CULPRIT),
                byte("reason", closed::REASON)
                    .with_names(&Reason::EACH, |reason| (*reason as u64, reason.name())),
            ],
            signature(
                ["culprit_call", "culprit_lane_type", "culprit_operator", "culprit_lanes"],
                closed::CULPRITS,
            ),
            signature(
                ["others_call", "others_lane_type", "others_operator", "others_lanes"],
                closed::OTHERS,
            ),
        ]
        .concat(),
    }
}

/// The fields of a `Called`: the call, the lane type and the operator lie together, the lanes elsewhere.
fn signature(names: [&'static str; 4], (kind, lanes): (usize, usize)) -> Vec<Field> {
    let [call, lane_type, operator, lanes_of] = names;
    vec![
        u16(call, kind),
        byte(lane_type, kind + 2).with_names(&LaneType::EACH, |lane| (*lane as u64, lane.name())),
        byte(operator, kind + 3).with_names(&Operator::EACH, |op| (*op as u64, op.name())),
        u64(lanes_of, lanes),
    ]
}

fn handshakes() -> Protocol {
    let name = |kind: &sealed::Kind| match kind {
        sealed::Kind::Hello => "hello",
        sealed::Kind::Cookie => "cookie",
        sealed::Kind::Open => "open",
        sealed::Kind::Opened => "opened",
        sealed::Kind::Unknown => "unknown",
        sealed::Kind::NoKey => "no_key",
    };
    // What a party of another version is told; it has fewer fields.
    let notice = (0, "version_notice");
    let codes: Vec<_> = sealed::Kind::EACH.map(|kind| (kind as u64, name(&kind))).into();
    let message = |(code, name)| Message::new(name, code, handshake::BODY, vec![]);
    let mut messages: Vec<_> = codes.iter().copied().map(message).collect();
    messages.push(Message::new(notice.1, notice.0, handshake::NOTICE_BODY, vec![]));
    Protocol {
        name: "olaf_keys",
        title: "Olaf handshake of keys",
        magic: Some(sealed::MAGIC),
        classes: vec![],
        port: None,
        common: vec![
            byte("version", handshake::VERSION),
            byte("kind", handshake::KIND)
                .with_names(&[codes, vec![notice]].concat(), |named| *named),
            u16("association", handshake::ASSOCIATION),
            bytes("key_name", handshake::KEY_NAME, 8),
            bytes("initiator", handshake::INITIATOR, sealed::TAG_BYTES),
            bytes("responder", handshake::RESPONDER, sealed::TAG_BYTES),
            u64("cookie_ns", handshake::COOKIE_TIME),
            bytes("cookie", handshake::COOKIE, sealed::TAG_BYTES),
        ],
        code: format!("u({}, 1)", handshake::KIND),
        messages,
    }
}
