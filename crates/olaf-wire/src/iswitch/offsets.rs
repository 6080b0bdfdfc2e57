//! Every byte offset, code and limit of the messages of iSwitch, once.
//!
//! ```text
//! data     0 seg   8 floats ..
//! control  0 action   1 generation   2 code   3 what   4 value ..
//! join     2 version   3 sender   4 job   8 session   12 rank   16 workers   20 contributors
//!          24 packet floats   28 operations   32 program   36 end, or nonce   40 end
//! leave    4 job   8 session   12 end
//! reset    4 end
//! set h    4 h   8 end
//! fbcast   4 sent at (us)   8 index   16 mask   24 end
//! help     4 sent at (us)   8 index   16 mask   24 end
//! halt     2 reason   4 culprit   8 calls   9 index   16 end
//! ack      2 outcome   3 action   4 sent at (us)   8 index   16 end
//! ack of a join: 16 member   20 rank   24 workers   28 here   32 slots   36 packet floats
//!          40 operations   44 session   48 end, or nonce   52 end
//!
//! seg      63..56 generation   55 last   54..44 missing   43..0 index
//! ```
//!
//! The fields of the header and of the Value are in network byte order.
//!
//! differs: the paper prints no byte order for floats. Ours are little-endian, as they lie in the memory
//! of the workers ("raw float-point format", iSwitch §3.2).

/// Class of service (six DSCP bits) of a control message.
///
/// differs: the paper reserves ToS values and prints none. Ours are from the pool that RFC 2474 keeps
/// for local use (`xxxx11`), so that no router gives them a meaning of its own.
pub const CONTROL_CLASS: u8 = 0b10_1011;
/// Class of service (six DSCP bits) of a data packet.
pub const DATA_CLASS: u8 = 0b10_0011;

/// Bytes of a Seg (iSwitch §3.2).
pub const SEG: usize = 8;
/// Floats of a data packet by default: a frame of 1,522 bytes has 1,472 of UDP payload.
pub const PACKET_FLOATS: u32 = 366;
/// Largest index of a packet in its generation.
pub const MAX_INDEX: u64 = (1 << 44) - 1;
/// Most workers of a job: a Seg can count that many as missing.
pub const MAX_WORKERS: u32 = (1 << 11) - 1;
/// Most workers of a job whose sums may have several vectors of a worker: a result says that in the field of the
/// workers that are not in it.
pub const MAX_WORKERS_OF_NUMBERED: u32 = 1 << 10;
/// Any rank, no worker, or no number.
pub const ANY: u32 = u32::MAX;
/// The version of the Values.
pub const VERSION: u8 = 3;

pub(super) const GENERATION_SHIFT: u32 = 56;
pub(super) const LAST_SHIFT: u32 = 55;
pub(super) const MISSING_SHIFT: u32 = 44;

/// Offsets that all control messages have.
pub mod control {
    #![allow(missing_docs, reason = "named and drawn in the module\'s table")]
    pub const ACTION: usize = 0;
    pub const GENERATION: usize = 1;
    pub const CODE: usize = 2;
    pub const WHAT: usize = 3;
    pub const LEN: usize = 4;
}

/// Offsets of that message.
pub mod join {
    #![allow(missing_docs, reason = "named and drawn in the module\'s table")]
    pub const JOB: usize = 4;
    pub const SESSION: usize = 8;
    pub const RANK: usize = 12;
    pub const WORKERS: usize = 16;
    pub const CONTRIBUTORS: usize = 20;
    pub const PACKET_FLOATS: usize = 24;
    pub const OPERATIONS: usize = 28;
    pub const PROGRAM: usize = 32;
    pub const LEN: usize = 36;
    pub const NONCE: usize = 36;
    pub const LEN_WITH_NONCE: usize = 40;
}

/// Offsets of that message.
pub mod leave {
    #![allow(missing_docs, reason = "named and drawn in the module\'s table")]
    pub const JOB: usize = 4;
    pub const SESSION: usize = 8;
    pub const LEN: usize = 12;
}

/// Offsets of that message.
pub mod set_h {
    #![allow(missing_docs, reason = "named and drawn in the module\'s table")]
    pub const H: usize = 4;
    pub const LEN: usize = 8;
}

/// Offsets of an FBcast and of a Help.
pub mod packets {
    #![allow(missing_docs, reason = "named and drawn in the module\'s table")]
    pub const SENT_AT_US: usize = 4;
    pub const INDEX: usize = 8;
    pub const MASK: usize = 16;
    pub const LEN: usize = 24;
}

/// Offsets of that message.
pub mod halt {
    #![allow(missing_docs, reason = "named and drawn in the module\'s table")]
    pub const CULPRIT: usize = 4;
    /// In the first byte of the index, which needs 44 of its 64 bits.
    pub const CALLS: usize = 8;
    pub const INDEX: usize = 8;
    pub const INDEX_MASK: u64 = (1 << 56) - 1;
    pub const LEN: usize = 16;
}

/// Offsets of that message.
pub mod ack {
    #![allow(missing_docs, reason = "named and drawn in the module\'s table")]
    pub const SENT_AT_US: usize = 4;
    pub const INDEX: usize = 8;
    pub const LEN: usize = 16;
    pub const MEMBER: usize = 16;
    pub const RANK: usize = 20;
    pub const WORKERS: usize = 24;
    pub const HERE: usize = 28;
    pub const SLOTS: usize = 32;
    pub const PACKET_FLOATS: usize = 36;
    pub const OPERATIONS: usize = 40;
    pub const SESSION: usize = 44;
    pub const LEN_OF_JOIN: usize = 48;
    pub const NONCE: usize = 48;
    pub const LEN_WITH_NONCE: usize = 52;
}

/// Bytes of the longest control message.
pub const LONGEST_CONTROL: usize = ack::LEN_WITH_NONCE;
