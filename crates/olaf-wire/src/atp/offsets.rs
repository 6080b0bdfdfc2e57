//! Where each field stands in a datagram of ATP.
//!
//! ATP §3.3 names the fields of Figure 5 and prints no widths. The widths of the one-level header are
//! those of the authors' public code; its 24 bytes, with Ethernet and IP, are the 58 bytes of §3.6.
//! All fields and values are in network byte order.
//!
//! differs: `bitmap1` (32 bits), `fanInDegree1` (8 bits) and a second byte of flags are ours, so that
//! two levels fit. The values lie between header and trailer, as in the public code. Their number
//! follows from the length of the datagram.
//!
//! differs: a job with more than two levels (ATP §A.2) has 12 more bytes before its values, which a flag
//! announces: a bitmap and a fan-in degree for the third and the fourth level.

/// Bytes before the values.
pub const HEADER: usize = 18;
/// Bytes behind the values: tensor key and tensor length.
pub const TRAILER: usize = 12;
/// Bytes of a value: an i32, or an f32.
pub const VALUE: usize = 4;
/// Values of the paper's frame of 306 bytes (ATP §3.6).
pub const VALUES: u16 = 62;
/// Workers of a bitmap (ATP §3.4).
pub const BITS: u32 = 32;
/// Levels of switches with a bitmap each (ATP §A.2).
pub const LEVELS: usize = 4;
/// Levels of the frame without [`upper`].
pub const SHORT_LEVELS: usize = 2;
/// Most workers of a job.
///
/// differs: ATP §3.4 has two bitmaps, and so 1,024 workers. Three full bitmaps reach 32,768; the fourth
/// is left for switches with fewer members.
pub const MAX_WORKERS: u32 = BITS * BITS * BITS;
/// Aggregators that an index of 16 bits reaches.
pub const MAX_AGGREGATORS: u32 = 1 << 16;
/// Servers that an index of two bits reaches.
pub const MAX_SERVERS: u8 = 4;
/// Bits of a sequence number with its wraps.
pub const SEQUENCE_BITS: u32 = 40;
/// Bits of a tensor's number.
pub const TENSOR_BITS: u32 = 20;
/// The version of the control messages.
pub const VERSION: u8 = 4;
/// Stands for "any rank", or "no rank".
pub const ANY: u32 = u32::MAX;

/// Offsets of the fields before the values.
pub mod header {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const BITMAP0: usize = 0;
    pub const BITMAP1: usize = 4;
    pub const FAN_IN0: usize = 8;
    pub const FAN_IN1: usize = 9;
    pub const FLAGS: usize = 10;
    pub const MORE: usize = 11;
    pub const JOB: usize = 12;
    pub const SEQUENCE: usize = 14;
    pub const INDEX: usize = 16;
}

/// Offsets of the part for the third and the fourth level, from its start.
pub mod upper {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const BITMAP2: usize = 0;
    pub const BITMAP3: usize = 4;
    pub const FAN_IN2: usize = 8;
    pub const FAN_IN3: usize = 9;
    pub const PLACE: usize = 10;
    pub const UNUSED: usize = 11;
    pub const LEN: usize = 12;

    /// Bits of `PLACE`: levels that the packet has passed beside the first one.
    pub const PASSED: u8 = 0x03;
    /// The second and the third level are in the same switch.
    pub const SAME_SWITCH1: u8 = 0x04;
    /// The third and the fourth level are in the same switch.
    pub const SAME_SWITCH2: u8 = 0x08;
}

/// Bits of the byte of flags of the authors' code, the first one the highest bit.
pub mod flags {
    /// The values are f32; in a parameter packet: the server asks for f32 (ATP §3.8).
    pub const OVERFLOW: u8 = 0x80;
    /// Two bits: the server that has this part of the tensor.
    pub const SERVER: u8 = 0x60;
    /// The lowest bit of [`SERVER`].
    pub const SERVER_SHIFT: u32 = 5;
    /// The second pass of a switch that needs two (ATP appendix C). Ours needs one and refuses it.
    pub const SECOND_HALF: u8 = 0x10;
    /// A link on the way was congested.
    pub const ECN: u8 = 0x08;
    /// No switch may keep it: it is sent again, or an aggregator was in use.
    pub const RESEND: u8 = 0x04;
    /// An aggregator was in use by another fragment.
    pub const COLLISION: u8 = 0x02;
    /// It is a parameter packet.
    pub const ACK: u8 = 0x01;
}

/// Bits of the second byte of flags, which is ours.
pub mod more {
    /// The packet is on its way to the second edge switch (ATP §3.3, `edgeSwitchIdentifier`).
    pub const EDGE: u8 = 0x01;
    /// differs: the first edge switch is the second one, too. A job with more than 32 workers at a
    /// switch has several groups there, which meet at the second level.
    pub const SAME_SWITCH: u8 = 0x02;
    /// differs: the part [`upper`](super::upper) is there (ATP §A.2).
    pub const UPPER: u8 = 0x04;
    /// differs: the paper sets jobs up beside its protocol; here a control message does.
    pub const CONTROL: u8 = 0x80;
}

/// Offsets of the trailer, from its start.
pub mod trailer {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const KEY: usize = 0;
    pub const LENGTH: usize = 8;
}

/// Offsets that all control messages share. The job has its usual place.
pub mod control {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const KIND: usize = 8;
    pub const VERSION: usize = 9;
    pub const FLAGS: usize = 10;
    pub const MORE: usize = 11;
    pub const JOB: usize = 12;
}

/// Offsets of a join.
pub mod join {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const NONCE: usize = 14;
    pub const SESSION: usize = 18;
    pub const RANK: usize = 22;
    pub const WORKERS: usize = 26;
    pub const GENERATION: usize = 30;
    pub const CLOSED: usize = 32;
    pub const VALUES: usize = 34;
    pub const AGGREGATORS: usize = 36;
    pub const FIRST_SWITCH: usize = 40;
    pub const SECOND_SWITCH: usize = 44;
    pub const SENT_AT_US: usize = 48;
    pub const SCALE: usize = 52;
    pub const SERVERS: usize = 60;
    pub const WINDOW: usize = 61;
    pub const OPERATIONS: usize = 63;
    pub const PROGRAM: usize = 67;
    pub const LEN: usize = 75;
    /// Only of a worker that is behind more than two switches.
    pub const THIRD_SWITCH: usize = 75;
    pub const FOURTH_SWITCH: usize = 79;
    pub const LONG: usize = 83;
}

/// Offsets of a welcome.
pub mod welcome {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const NONCE: usize = 14;
    pub const SESSION: usize = 18;
    pub const RANK: usize = 22;
    pub const WORKERS: usize = 26;
    pub const HERE: usize = 30;
    pub const CODE: usize = 34;
    pub const LEVELS: usize = 35;
    pub const GENERATION: usize = 36;
    pub const LIFE: usize = 38;
    pub const VALUES: usize = 40;
    pub const WINDOW: usize = 42;
    pub const BITMAP0: usize = 44;
    pub const BITMAP1: usize = 48;
    pub const FAN_IN0: usize = 52;
    pub const FAN_IN1: usize = 53;
    pub const AGGREGATORS: usize = 54;
    pub const SENT_AT_US: usize = 58;
    pub const SEQUENCE: usize = 62;
    pub const OPERATIONS: usize = 70;
    pub const LEN: usize = 74;
    /// Only of a job with more than two levels: the part [`upper`](super::upper).
    pub const UPPER: usize = 74;
    pub const LONG: usize = 86;
}

/// Offsets of a leave.
pub mod leave {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const SESSION: usize = 18;
    pub const LIFE: usize = 22;
    pub const REASON: usize = 24;
    pub const LEN: usize = 25;
}

/// Offsets of the answer to a leave.
pub mod left {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const SESSION: usize = 18;
    pub const LEN: usize = 22;
}

/// Offsets of the end of a generation.
pub mod closed {
    #![allow(missing_docs, reason = "each is the field of that name")]
    pub const LIFE: usize = 18;
    pub const REASON: usize = 20;
    pub const SIDES: usize = 21;
    pub const TENSOR: usize = 22;
    pub const CULPRIT: usize = 26;
    pub const LEN: usize = 30;
}
