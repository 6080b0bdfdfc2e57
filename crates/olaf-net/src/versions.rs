//! The versions of the messages, for people whose two ends are of different age.

use olaf_wire::{atp, iswitch, mina, offsets, reduce, sealed};

/// Each protocol with a version in its messages, and the version that this side speaks. Trio-ML's
/// messages have none.
#[must_use]
pub const fn wire_versions() -> [(&'static str, u8); 6] {
    [
        ("olaf", offsets::VERSION),
        ("reduce", reduce::offsets::VERSION),
        ("iswitch", iswitch::offsets::VERSION),
        ("atp", atp::offsets::VERSION),
        ("sealed", sealed::VERSION),
        ("mina", mina::VERSION),
    ]
}
