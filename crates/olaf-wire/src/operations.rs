//! Counts of operations: how far a worker's program is in its job.
//!
//! Each program counts the operations that it has begun in the job, over all generations. Counts are modulo 2^31, so
//! that none is [`iswitch::ANY`](crate::iswitch::ANY), and a count is behind those that are less than 2^30 more.

const MODULUS: u32 = 1 << 31;

/// The count after `more` further operations.
#[must_use]
pub const fn operations_after(count: u32, more: u32) -> u32 {
    count.wrapping_add(more) % MODULUS
}

/// The operations that `count` is ahead of `other`; negative: behind.
#[must_use]
pub const fn operations_ahead(count: u32, other: u32) -> i32 {
    // The uppermost of the 31 bits is the sign.
    (count.wrapping_sub(other) << 1) as i32 >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_behind_the_largest_one() {
        let largest = MODULUS - 1;
        assert_eq!(operations_after(5, 3), 8);
        assert_eq!(operations_after(largest, 3), 2);
        assert_eq!(operations_ahead(2, largest), 3);
        assert_eq!(operations_ahead(largest, 2), -3);
        assert_eq!(operations_ahead(7, 7), 0);
        assert_eq!(operations_ahead((1 << 30) - 1, 0), (1 << 30) - 1);
        assert_eq!(operations_ahead(1 << 30, 0), -(1 << 30));
    }
}
