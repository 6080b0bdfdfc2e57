//! The counters of `olaf_queue_counters`.

/// Their number.
pub const COUNTERS: usize = 23;

/// By counter.
pub type Counters = [u64; COUNTERS];

/// By counter.
pub const NAMES: [&str; COUNTERS] = [
    "framing",
    "too_long",
    "refused",
    "passed",
    "no_room",
    "stamped",
    "appended",
    "merged",
    "replaced",
    "filtered",
    "dropped",
    "rejected: not finite",
    "rejected: wrong size",
    "rejected: overflow",
    "departed",
    "contributors appended",
    "contributors merged",
    "contributors replacing",
    "contributors filtered",
    "contributors dropped",
    "contributors rejected",
    "contributors of replaced entries",
    "contributors departed",
];

/// Type of the block: "OLAQ".
pub(super) const TYPE: u32 = 0x4f4c_4151;
