//! The papers' protocols: iSwitch, ATP, Trio-ML, MINA's sharing.

use crate::protocol::{Field, Message, Protocol, bits, byte, bytes, double, u16, u32, u64, uint};
use olaf_wire::atp::offsets as atp;
use olaf_wire::iswitch::{Action, CONTROL_CLASS, DATA_CLASS, Outcome, offsets as iswitch};
use olaf_wire::mina::{self, Here, offsets as sharing};
use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::trio::{Kind as TrioKind, Straggling, offsets as trio};

pub(crate) fn all() -> Vec<Protocol> {
    vec![iswitch_protocol(), trio_protocol(), atp_protocol(), sharing_protocol(), rehearsal()]
}

fn reason(field: Field) -> Field {
    field.with_names(&Reason::EACH, |reason| (*reason as u64, reason.name()))
}

fn code(field: Field) -> Field {
    field.with_names(&WelcomeCode::EACH, |code| (*code as u64, code.name()))
}

/// Stands for a data packet among the actions.
const DATA: u64 = 0;

fn iswitch_protocol() -> Protocol {
    use iswitch::{SEG, ack, control, halt, join, leave, packets, set_h};
    let action =
        |field: Field| field.with_names(&Action::EACH, |action| (*action as u64, action.name()));
    // A Seg's parts: its bits are drawn in the offsets' table.
    let data = Message::new(
        "data",
        DATA,
        SEG,
        vec![
            byte("generation", 0),
            bits("last", 0, 8, 1 << 55),
            bits("missing", 0, 8, 0x7ff << 44),
            bits("index", 0, 8, (1 << 44) - 1),
        ],
    )
    .long(String::new())
    .followed_by("floats", &SEG.to_string(), 0);
    let of = |kind: Action| {
        let (len, fields) = match kind {
            Action::Join => (
                with_nonce(join::LEN, join::LEN_WITH_NONCE),
                vec![
                    byte("wire_version", control::CODE),
                    byte("sender", control::WHAT),
                    u32("job", join::JOB),
                    u32("session", join::SESSION),
                    u32("rank", join::RANK),
                    u32("workers", join::WORKERS),
                    u32("contributors", join::CONTRIBUTORS),
                    u32("packet_floats", join::PACKET_FLOATS),
                    u32("operations", join::OPERATIONS),
                    u32("program", join::PROGRAM),
                    u32("nonce", join::NONCE),
                ],
            ),
            Action::Leave => (
                leave::LEN.to_string(),
                vec![u32("job", leave::JOB), u32("session", leave::SESSION)],
            ),
            Action::Reset => (control::LEN.to_string(), vec![]),
            Action::SetH => (set_h::LEN.to_string(), vec![u32("h", set_h::H)]),
            Action::FBcast | Action::Help => (
                packets::LEN.to_string(),
                vec![
                    u32("sent_at_us", packets::SENT_AT_US),
                    u64("index", packets::INDEX),
                    u64("mask", packets::MASK),
                ],
            ),
            Action::Halt => (
                halt::LEN.to_string(),
                vec![
                    reason(byte("reason", control::CODE)),
                    u32("culprit", halt::CULPRIT),
                    byte("calls", halt::CALLS),
                    bits("index", halt::INDEX, 8, halt::INDEX_MASK),
                ],
            ),
            Action::Ack => (
                format!(
                    "(u({}, 1) == {} and {} or {})",
                    control::WHAT,
                    Action::Join as u8,
                    with_nonce(ack::LEN_OF_JOIN, ack::LEN_WITH_NONCE),
                    ack::LEN
                ),
                vec![
                    byte("outcome", control::CODE)
                        .with_names(&Outcome::EACH, |one| (*one as u64, one.name())),
                    action(byte("of", control::WHAT)),
                    u32("sent_at_us", ack::SENT_AT_US),
                    u64("index", ack::INDEX),
                    u32("member", ack::MEMBER),
                    u32("rank", ack::RANK),
                    u32("workers", ack::WORKERS),
                    u32("here", ack::HERE),
                    u32("slots", ack::SLOTS),
                    u32("packet_floats", ack::PACKET_FLOATS),
                    u32("operations", ack::OPERATIONS),
                    u32("session", ack::SESSION),
                    u32("nonce", ack::NONCE),
                ],
            ),
        };
        let common =
            [action(byte("action", control::ACTION)), byte("generation", control::GENERATION)];
        Message::new(kind.name(), kind as u64, 0, [common.to_vec(), fields].concat()).long(len)
    };
    Protocol {
        name: "olaf_iswitch",
        title: "iSwitch",
        magic: None,
        classes: vec![CONTROL_CLASS, DATA_CLASS],
        port: None,
        common: vec![],
        code: format!("(dscp == {DATA_CLASS} and {DATA} or u({}, 1))", control::ACTION),
        messages: [vec![data], Action::EACH.map(of).into()].concat(),
    }
}

fn trio_protocol() -> Protocol {
    use trio::{HEADER, WORD, header, words};
    let name = |kind: &TrioKind| match kind {
        TrioKind::Block => "block",
        TrioKind::Aged => "aged",
        TrioKind::Hello => "hello",
        TrioKind::Welcome => "welcome",
        TrioKind::Ask => "ask",
        TrioKind::Want => "want",
        TrioKind::Closed => "closed",
        TrioKind::Leave => "leave",
        TrioKind::Straggler => "straggler",
        TrioKind::Gone => "gone",
    };
    let word = |name, at: usize| u32(name, HEADER + at * WORD);
    let wide = |name, at: usize| u64(name, HEADER + at * WORD);
    let term = || u32("term", header::BLOCK_ID);
    let (block, generation) = (u32("block_id", header::BLOCK_ID), u16("gen_id", header::GEN_ID));
    let session = || word("session", 0);
    let of = |kind: TrioKind| {
        let (count, fields) = match kind {
            TrioKind::Block | TrioKind::Aged => (0, vec![block.clone(), generation.clone()]),
            TrioKind::Hello => (
                words::HELLO,
                vec![
                    term(),
                    generation.clone(),
                    session(),
                    word("workers", 1),
                    word("gradients", 2),
                    word("timeout_ms", 3),
                    word("window", 4),
                    word("sent_at_us", 5),
                    word("nonce", 6),
                    wide("program", 7),
                ],
            ),
            TrioKind::Welcome => (
                words::WELCOME,
                vec![
                    term(),
                    generation.clone(),
                    session(),
                    code(word("code", 1)),
                    word("gradients", 2),
                    word("here", 3),
                    word("window", 4),
                    word("newest", 5),
                    word("sent_at_us", 6),
                    word("nonce", 7),
                ],
            ),
            TrioKind::Ask => (
                words::ASK,
                vec![
                    block.clone(),
                    generation.clone(),
                    session(),
                    word("term", 1),
                    wide("mask", 2),
                    word("held_generation", 4),
                    word("held_block", 5),
                    word("sent_at_us", 6),
                ],
            ),
            TrioKind::Want => (
                words::WANT,
                vec![
                    block.clone(),
                    generation.clone(),
                    session(),
                    word("term", 1),
                    wide("mask", 2),
                    word("sent_at_us", 4),
                ],
            ),
            TrioKind::Closed => (
                words::CLOSED,
                vec![
                    term(),
                    byte("calls", header::SRC_CNT),
                    generation.clone(),
                    reason(word("reason", 0)),
                    wide("mask", 1),
                ],
            ),
            TrioKind::Leave => {
                (words::LEAVE, vec![term(), reason(byte("reason", header::SRC_CNT)), session()])
            }
            TrioKind::Straggler => (
                words::STRAGGLER,
                vec![
                    term(),
                    word("straggling", 0)
                        .with_names(&Straggling::EACH, |one| (*one as u64, one.name())),
                    word("events", 1),
                ],
            ),
            TrioKind::Gone => {
                (words::GONE, vec![block.clone(), generation.clone(), session(), word("term", 1)])
            }
        };
        let message = Message::new(name(&kind), kind as u64, HEADER + count * WORD, fields);
        let len = format!("{HEADER} + {WORD} * (u({}, 2) % 4096)", header::GRAD_CNT);
        if matches!(kind, TrioKind::Hello | TrioKind::Welcome) {
            return message.long(len);
        }
        if !kind.has_gradients() {
            return message;
        }
        message.long(len).followed_by("gradients", &HEADER.to_string(), 0)
    };
    Protocol {
        name: "olaf_trio",
        title: "Trio-ML",
        magic: None,
        classes: vec![],
        port: Some(trio::DEFAULT_PORT),
        common: vec![
            byte("job", header::JOB_ID),
            bits("age_op", header::AGE_OP, 1, 0xf << trio::AGE_OP_SHIFT)
                .with_names(&TrioKind::EACH, |kind| (*kind as u64, name(kind))),
            bits("final", header::AGE_OP, 1, trio::FINAL.into()),
            bits("degraded", header::AGE_OP, 1, trio::DEGRADED.into()),
            byte("src_id", header::SRC_ID),
            byte("src_cnt", header::SRC_CNT),
            bits("call", header::GRAD_CNT, 2, 0xf000),
            bits("grad_cnt", header::GRAD_CNT, 2, trio::MAX_GRADIENTS.into()),
        ],
        code: format!("math.floor(u({}, 1) / {})", header::AGE_OP, 1 << trio::AGE_OP_SHIFT),
        messages: TrioKind::EACH.map(of).into(),
    }
}

/// Codes of the control messages of ATP begin behind those of the packets with values.
const ATP_CONTROL: u64 = 2;

fn atp_protocol() -> Protocol {
    use atp::{
        HEADER, TRAILER, closed, control, flags, header, join, leave, left, more, trailer, upper,
        welcome,
    };
    let packet = |name, code| {
        let end = |at: usize| TRAILER - at;
        let extra = format!(
            "({HEADER} + (u({}, 1) % {} >= {} and {} or 0))",
            header::MORE,
            2 * more::UPPER,
            more::UPPER,
            upper::LEN
        );
        Message::new(
            name,
            code,
            0,
            vec![
                u32("bitmap0", header::BITMAP0),
                u32("bitmap1", header::BITMAP1),
                byte("fan_in0", header::FAN_IN0),
                byte("fan_in1", header::FAN_IN1),
                bits("overflow", header::FLAGS, 1, flags::OVERFLOW.into()),
                bits("ecn", header::FLAGS, 1, flags::ECN.into()),
                bits("resend", header::FLAGS, 1, flags::RESEND.into()),
                bits("collision", header::FLAGS, 1, flags::COLLISION.into()),
                bits("edge", header::MORE, 1, more::EDGE.into()),
                bits("same_switch", header::MORE, 1, more::SAME_SWITCH.into()),
                bits("upper", header::MORE, 1, more::UPPER.into()),
                u16("sequence", header::SEQUENCE),
                u16("index", header::INDEX),
                u16("generation", end(trailer::KEY)).counted_back(),
                bits("call", end(trailer::KEY + 2), 1, 0xf0).counted_back(),
                bits("tensor", end(trailer::KEY + 2), 3, 0xf_ffff).counted_back(),
                uint("wraps", end(trailer::KEY + 5), 3).counted_back(),
                u32("tensor_length", end(trailer::LENGTH)).counted_back(),
            ],
        )
        .long(String::new())
        .followed_by("values", &extra, TRAILER)
    };
    let mut messages = vec![packet("gradient", 0), packet("parameters", 1)];
    let control_message =
        |name, kind: u64, len, fields| Message::new(name, ATP_CONTROL + kind, len, fields);
    messages.push(
        control_message(
            "join",
            1,
            join::LEN,
            vec![
                u32("nonce", join::NONCE),
                u32("session", join::SESSION),
                u32("rank", join::RANK),
                u32("workers", join::WORKERS),
                u16("generation", join::GENERATION),
                u16("closed", join::CLOSED),
                u16("values_of_packet", join::VALUES),
                u32("aggregators", join::AGGREGATORS),
                u32("first_switch", join::FIRST_SWITCH),
                u32("second_switch", join::SECOND_SWITCH),
                u32("sent_at_us", join::SENT_AT_US),
                double("scale", join::SCALE),
                byte("servers", join::SERVERS),
                u16("window", join::WINDOW),
                u32("operations", join::OPERATIONS),
                u64("program", join::PROGRAM),
                u32("third_switch", join::THIRD_SWITCH),
                u32("fourth_switch", join::FOURTH_SWITCH),
            ],
        )
        .long(String::new()),
    );
    messages.push(
        control_message(
            "welcome",
            2,
            welcome::LEN,
            vec![
                u32("nonce", welcome::NONCE),
                u32("session", welcome::SESSION),
                u32("rank", welcome::RANK),
                u32("workers", welcome::WORKERS),
                u32("here", welcome::HERE),
                code(byte("code", welcome::CODE)),
                bits("edge", welcome::LEVELS, 1, more::EDGE.into()),
                bits("same_switch", welcome::LEVELS, 1, more::SAME_SWITCH.into()),
                u16("generation", welcome::GENERATION),
                u16("life", welcome::LIFE),
                u16("values_of_packet", welcome::VALUES),
                u16("window", welcome::WINDOW),
                u32("bitmap0", welcome::BITMAP0),
                u32("bitmap1", welcome::BITMAP1),
                byte("fan_in0", welcome::FAN_IN0),
                byte("fan_in1", welcome::FAN_IN1),
                u32("aggregators", welcome::AGGREGATORS),
                u32("sent_at_us", welcome::SENT_AT_US),
                u64("sequence", welcome::SEQUENCE),
                u32("operations", welcome::OPERATIONS),
                bytes("upper", welcome::UPPER, upper::LEN),
            ],
        )
        .long(String::new()),
    );
    messages.push(control_message(
        "leave",
        3,
        leave::LEN,
        vec![
            u32("session", leave::SESSION),
            u16("life", leave::LIFE),
            reason(byte("reason", leave::REASON)),
        ],
    ));
    messages.push(control_message(
        "closed",
        4,
        closed::LEN,
        vec![
            u16("life", closed::LIFE),
            reason(byte("reason", closed::REASON)),
            byte("calls", closed::SIDES),
            u32("tensor", closed::TENSOR),
            u32("culprit", closed::CULPRIT),
        ],
    ));
    messages.push(control_message("left", 5, left::LEN, vec![u32("session", left::SESSION)]));
    Protocol {
        name: "olaf_atp",
        title: "ATP",
        magic: None,
        classes: vec![],
        port: None,
        common: vec![
            u16("job", header::JOB),
            bits("server", header::FLAGS, 1, flags::SERVER.into()),
            bits("control", header::MORE, 1, more::CONTROL.into()),
        ],
        code: format!(
            "(u({}, 1) >= {} and {ATP_CONTROL} + u({}, 1) or u({}, 1) % 2)",
            control::MORE,
            more::CONTROL,
            control::KIND,
            header::FLAGS
        ),
        messages,
    }
}

fn sharing_protocol() -> Protocol {
    const KINDS: [&str; 9] =
        ["prepare", "ready", "commit", "abort", "settled", "ask", "in_doubt", "bye", "progress"];
    let of = |(at, name): (usize, &'static str)| {
        let fields = match name {
            "ready" => vec![byte("held", sharing::HELD), u64("next", sharing::A)],
            "commit" => vec![u64("grant_from", sharing::A), u64("grant_to", sharing::B)],
            "settled" => vec![
                byte("held", sharing::HELD),
                u64("next", sharing::A),
                u64("heard_epoch", sharing::C),
            ],
            "progress" => vec![
                byte("in_network", sharing::HELD),
                u64("next", sharing::A),
                u64("step_age_ns", sharing::B),
            ],
            _ => vec![],
        };
        Message::new(name, at as u64 + 1, mina::LEN, fields)
    };
    let named: Vec<_> = KINDS.into_iter().enumerate().collect();
    let parties = [(0, "controller"), (1, "host")];
    Protocol {
        name: "olaf_mina",
        title: "MINA sharing",
        magic: Some(mina::MAGIC),
        classes: vec![],
        port: None,
        common: vec![
            byte("version", sharing::VERSION),
            byte("kind", sharing::KIND).with_names(&named, |(at, name)| (*at as u64 + 1, name)),
            byte("from_party", sharing::FROM).with_names(&parties, |party| *party),
            u64("job", sharing::JOB),
            u64("epoch", sharing::EPOCH),
            u64("round", sharing::ROUND),
            u16("from", sharing::FROM_RANK),
            u16("to", sharing::TO_RANK),
            byte("to_party", sharing::TO).with_names(&parties, |party| *party),
        ],
        code: format!("u({}, 1)", sharing::KIND),
        messages: named.into_iter().map(of).collect(),
    }
}

/// MINA's rehearsal of an all-reduce. Its offsets are those that `Here` draws.
fn rehearsal() -> Protocol {
    let message = Message::new("here", 0, Here::LEN, vec![]);
    Protocol {
        name: "olaf_here",
        title: "MINA rehearsal",
        magic: Some(Here::MAGIC),
        classes: vec![],
        port: None,
        common: vec![
            u64("job", 4),
            u64("index", 12),
            u16("rank", 20),
            byte("in_network", 22),
            byte("answer", 23),
        ],
        code: "0".into(),
        messages: vec![message],
    }
}

/// The length of a message that ends with a nonce where the datagram is that long: `n` bytes.
fn with_nonce(len: usize, with: usize) -> String {
    format!("(n == {with} and {with} or {len})")
}
