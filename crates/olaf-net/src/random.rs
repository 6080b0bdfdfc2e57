//! Chance: epochs, sessions and ids drawn anew at each start.

use std::hash::{BuildHasher, RandomState};

/// A number that differs from start to start; never 0, nor the id that stands for all workers.
pub(crate) fn draw() -> u32 {
    // The standard library seeds a `RandomState` from the system; its hash of nothing is 64 bits
    // of that.
    fold(RandomState::new().hash_one(crate::clock::now().0))
}

/// A number that follows from a seed, with the same values left out.
pub(crate) fn from_seed(seed: u64) -> u32 {
    fold(nth(seed, 0))
}

/// The n-th number from 0 up to 1 that follows from a seed.
pub(crate) fn uniform(seed: u64, n: u64) -> f64 {
    // As many bits as a double holds.
    (nth(seed, n) >> 11) as f64 / (1u64 << 53) as f64
}

/// SplitMix64: neighbouring seeds and neighbouring places give unlike numbers.
fn nth(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fold(bits: u64) -> u32 {
    let folded = (bits ^ (bits >> 32)) as u32;
    folded.clamp(1, u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_unless_their_seed_is_the_same() {
        assert_ne!(draw(), draw());
        assert_eq!(from_seed(7), from_seed(7));
        assert_ne!(from_seed(7), from_seed(8));
        assert_eq!((fold(0), fold(u64::from(u32::MAX))), (1, u32::MAX - 1));
    }
}
