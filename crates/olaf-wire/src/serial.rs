//! Numbers that count without end in 32 bits (as RFC 1982 orders them): after the largest comes 1,
//! and of two the later one is that which the other reaches by the shorter way.
//!
//! 0 stands for "none" where a number is acknowledged, so that a count never takes it. A sender may
//! have 2^31 unanswered; beyond that an old number would look new, and long before that a sender
//! that waits has given up.

/// The number after this one.
#[must_use]
pub const fn next(number: u32) -> u32 {
    match number.wrapping_add(1) {
        0 => 1,
        next => next,
    }
}

/// Returns true if `number` comes after `other`.
#[must_use]
pub const fn is_after(number: u32, other: u32) -> bool {
    let ahead = number.wrapping_sub(other);
    ahead != 0 && ahead < 1 << 31
}

/// The later of two numbers. 0 means none.
#[must_use]
pub const fn later(one: u32, other: u32) -> u32 {
    if other == 0 || (one != 0 && is_after(one, other)) { one } else { other }
}

/// Where a sender's count begins in one of its lives: far from where another life's does, so that
/// what is still said of an old life is not taken for the new one's.
#[must_use]
pub const fn of_life(life: u32) -> u32 {
    let mixed = (life ^ life >> 16).wrapping_mul(0x7feb_352d);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b);
    mixed ^ mixed >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_largest_comes_one() {
        assert_eq!((next(0), next(7), next(u32::MAX)), (1, 8, 1));
        assert!(is_after(1, u32::MAX) && is_after(5, u32::MAX - 5));
        assert!(!is_after(u32::MAX, 1) && !is_after(7, 7));
    }

    #[test]
    fn the_later_of_two_is_not_always_the_larger() {
        assert_eq!((later(3, 9), later(9, 3)), (9, 9));
        assert_eq!((later(u32::MAX, 2), later(2, u32::MAX)), (2, 2));
        assert_eq!((later(0, u32::MAX), later(u32::MAX, 0), later(0, 0)), (u32::MAX, u32::MAX, 0));
    }
}
