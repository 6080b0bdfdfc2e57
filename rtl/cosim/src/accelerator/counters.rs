//! The counters of `iswitch_accelerator`.

/// Their number.
pub const COUNTERS: usize = 34;

/// By counter.
pub type Counters = [u64; COUNTERS];

/// By counter. The first one counts the datagrams, the next 21 their fates.
pub const NAMES: [&str; COUNTERS] = [
    "datagrams",
    "taken",
    "late",
    "repeated",
    "held",
    "occupied",
    "closed",
    "too_early",
    "impossible",
    "wrong_size",
    "mismatch",
    "malformed",
    "unknown_generation",
    "not_a_member",
    "join",
    "leave",
    "reset",
    "set_h",
    "fbcast",
    "help",
    "halt",
    "ack",
    "summed",
    "given_up",
    "results",
    "results again",
    "forced",
    "began",
    "ended",
    "joins refused",
    "leaves refused",
    "set_h refused",
    "messages of an unknown generation",
    "messages of no member",
];

/// Type of the block: "iSWa".
pub(super) const TYPE: u32 = 0x6953_5761;
