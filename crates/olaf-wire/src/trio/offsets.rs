//! Every byte offset of the messages of Trio-ML, once.
//!
//! ```text
//! all        0 job_id   1 block_id   5 age_op (4 bits) final (1) degraded (1) unused (2)
//!            6 src_id   7 src_cnt    8 gen_id   10 call (4 bits) grad_cnt (12)   12 words ..
//!
//! age_op     0 block   1 block that has aged out   (Trio-ML §5)
//!            2 hello   3 welcome   4 ask   5 want   6 closed   7 leave   8 straggler   9 gone
//!
//! hello      1 term   8 newest generation   12 session   16 workers   20 gradients of a block
//!            24 time-out (ms)   28 window   32 sent at (us)   36 end, or nonce   40 end, or program   48 end
//! welcome    1 term   8 first generation    12 session   16 code   20 gradients of a block
//!            24 workers that are here   28 window   32 newest generation   36 sent at (us)
//!            40 end, or nonce
//! ask        1 first block   12 session   16 term   20 mask   28 generation held below
//!            32 block held below   36 sent at (us)
//! want       1 first block   12 session   16 term   20 mask   28 sent at (us)
//! closed     1 term   7 calls   8 first generation that is not finished   12 reason   16 mask
//! leave      1 term   7 reason   12 session
//! straggler  1 term   12 what it is   16 events
//! gone       1 block  12 session   16 term
//! ```
//!
//! Words are in network byte order, and so are gradients: 32-bit integers.
//!
//! differs: Figure 8 leaves the 4 bits before `grad_cnt` unused. Here a block says there what the workers call
//! ([`Call::narrow`](crate::Call::narrow)): 0 is a sum.
//!
//! differs: Figure 8 prints the fields' order and widths, which add up to 12 bytes. It prints neither
//! the order of bits nor that of bytes: here the first field of a byte has its most significant bits.

/// The UDP port of a switch (Trio-ML §4: "e.g., 12000").
pub const DEFAULT_PORT: u16 = 12_000;
/// Bytes of the header.
pub const HEADER: usize = 12;
/// Bytes of a gradient, and of a word of another message.
pub const WORD: usize = 4;
/// Gradients that the 12 bits of `grad_cnt` can count.
pub const MAX_GRADIENTS: u16 = 0xfff;
/// Workers that the 8 bits of `src_cnt` can count.
///
/// differs: 8 bits of `src_id` and four masks of 64 bits (Figure 17) name 256 sources. `src_cnt`
/// cannot count the last one; its name stands for "nobody".
pub const MAX_WORKERS: u8 = 255;
/// In place of a `src_id`: any, all or none.
pub const ANY: u8 = 255;

/// Fields of the header, as Figure 8 prints them.
pub mod header {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const JOB_ID: usize = 0;
    pub const BLOCK_ID: usize = 1;
    pub const AGE_OP: usize = 5;
    pub const SRC_ID: usize = 6;
    pub const SRC_CNT: usize = 7;
    pub const GEN_ID: usize = 8;
    pub const GRAD_CNT: usize = 10;
}

/// `age_op` in its byte.
pub const AGE_OP_SHIFT: u8 = 4;
/// Flag: the block is the last one of its generation.
pub const FINAL: u8 = 8;
/// Flag: workers are missing in the sum.
pub const DEGRADED: u8 = 4;
/// The call of a block, in the word of `grad_cnt`.
pub const CALL_SHIFT: u32 = 12;
/// Bits of the flags' byte that nothing uses.
pub const UNUSED: u8 = 3;

/// Words behind the header of each message without gradients.
pub mod words {
    #![allow(missing_docs, reason = "named and drawn in the module's table")]
    pub const HELLO: usize = 6;
    pub const WELCOME: usize = 7;
    pub const ASK: usize = 7;
    pub const WANT: usize = 5;
    pub const CLOSED: usize = 3;
    pub const LEAVE: usize = 1;
    pub const STRAGGLER: usize = 2;
    pub const GONE: usize = 2;
    /// Behind those of a hello and of a welcome.
    pub const NONCE: usize = 1;
    /// Behind those of a hello.
    pub const NONCE_AND_PROGRAM: usize = 3;
}
