//! Every byte offset of the messages of `reduce`, once.
//!
//! ```text
//! all            0 magic "OLFR"   4 version   5 kind   6 flags   8 job   12 generation   16 rank
//!               20 session   24 operation   28 block   .. 52 sent at (us) ..   64 end of the header
//! piece, result 32 lanes of the operation   40 first block of the operation   44 contributors
//!               48 holds (piece), expected contributors (result)   56 lanes   58 words
//!               60 call   62 lane type   63 operator   64 words ..   64 + 8 words: lanes ..
//! ask, want     32 mask   48 holds
//! ask           40 awaited operation + 1   44 its call   46 lane type   47 operator   56 lanes
//! join          28 nonce   32 workers   36 contributors   40 deadline (us)   44 block bytes
//!               48 datagram bytes   56 program
//! welcome       28 nonce   32 workers   36 here   40 slots   44 block bytes   48 cores   62 code
//! leave         (no further fields)
//! closed        28 the culprit's call   30 lane type   31 operator   32 lanes   44 culprit
//!               48 the others' call   50 lane type   51 operator   52 lanes   62 reason
//!
//! flags         1 partial   2 resent   4 not finite   8 congested
//! ```
//!
//! Header fields are in network byte order. The words and the lanes behind the header are
//! little-endian: bit `r % 8` of byte `r / 8` of the words stands for rank `r`.
//!
//! A field that a message does not use, and a reserved byte, is zero. Two messages without lanes are therefore the same if
//! and only if their bytes are.

/// First bytes of every datagram of `reduce`.
pub const MAGIC: [u8; 4] = *b"OLFR";
/// Version of the format this crate reads and writes.
pub const VERSION: u8 = 4;
/// Bytes of every header: a cache line, so that the lanes of a complete sum start at one.
pub const HEADER: usize = 64;

/// Fields that have the same place in every message.
pub mod common {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const VERSION: usize = 4;
    pub const KIND: usize = 5;
    pub const FLAGS: usize = 6;
    pub const JOB: usize = 8;
    pub const GENERATION: usize = 12;
    pub const RANK: usize = 16;
    pub const SESSION: usize = 20;
    pub const OPERATION: usize = 24;
    pub const BLOCK: usize = 28;
    pub const SENT_AT_US: usize = 52;
}

/// A piece of a block, or its result.
pub mod block {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const LANES_OF_OPERATION: usize = 32;
    pub const FIRST_BLOCK: usize = 40;
    pub const CONTRIBUTORS: usize = 44;
    pub const HOLDS: usize = 48;
    pub const EXPECTED: usize = 48;
    pub const LANES: usize = 56;
    pub const WORDS: usize = 58;
    pub const CALL: usize = 60;
    pub const LANE_TYPE: usize = 62;
    pub const OPERATOR: usize = 63;
}

/// A question for results, or for pieces.
pub mod missing {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const MASK: usize = 32;
    pub const HOLDS: usize = 48;
    pub const AWAITED: usize = 40;
    /// The awaited operation's signature: two places.
    pub const CALLED: (usize, usize) = (44, 56);
}

/// A worker's wish to take part.
pub mod join {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const NONCE: usize = 28;
    pub const WORKERS: usize = 32;
    pub const CONTRIBUTORS: usize = 36;
    pub const DEADLINE_US: usize = 40;
    pub const BLOCK_BYTES: usize = 44;
    pub const DATAGRAM_BYTES: usize = 48;
    pub const PROGRAM: usize = 56;
}

/// The answer to a join.
pub mod welcome {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const NONCE: usize = 28;
    pub const WORKERS: usize = 32;
    pub const HERE: usize = 36;
    pub const SLOTS: usize = 40;
    pub const BLOCK_BYTES: usize = 44;
    pub const CORES: usize = 48;
    pub const CODE: usize = 62;
}

/// The end of a generation.
pub mod closed {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const CULPRIT: usize = 44;
    pub const REASON: usize = 62;
    /// The culprit's signature, and the others': two places each.
    pub const CULPRITS: (usize, usize) = (28, 32);
    pub const OTHERS: (usize, usize) = (48, 52);
}

/// Flag of a piece or a result: contributors are missing; the words name those that are in it.
pub const PARTIAL: u16 = 1;
/// Flag of a piece or a result: its sender has sent it before.
pub const RESENT: u16 = 2;
/// Flag of a piece or a result: a lane is no finite number.
pub const NOT_FINITE: u16 = 4;
/// Flag of a piece or a result: a piece of the block came with an ECN mark.
pub const CONGESTED: u16 = 8;

/// Stands for "every worker" as the receiver, for "whichever is free" in a join, and for "no worker"
/// as a culprit.
pub const ALL: u32 = u32::MAX;
/// Ranks are below this number.
pub const MAX_RANKS: u32 = 8192;
/// Most words of a bitmap of contributors.
pub const MAX_WORDS: usize = MAX_RANKS as usize / 64;
/// Most cores of a switch: a worker has a socket for each.
pub const MAX_CORES: u32 = 256;
/// Bytes of a word.
pub const WORD: usize = 8;

const _: () = assert!(block::OPERATOR + 1 == HEADER);
