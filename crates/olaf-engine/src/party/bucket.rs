//! How often one party may cause something: a token bucket that is one instant.

use crate::time::Instant;
use core::time::Duration;

/// How many tokens a bucket holds, and how soon a token comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Tokens of a full bucket, at least 1.
    pub burst: u32,
    /// Time in which one token comes back.
    pub every: Duration,
}

/// Nanoseconds; of more than 584 years as many as fit. The arithmetic of [`Duration`] divides by a second.
#[inline]
fn nanos(time: Duration) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(time.subsec_nanos()))
}

/// A bucket, full at first. It keeps the instant at which it is full again; each token that is taken
/// moves this instant by [`Allowance::every`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    full_at: Instant,
}

impl Bucket {
    /// Takes a token; false where there is none.
    #[inline]
    pub fn take(&mut self, now: Instant, allowance: Allowance) -> bool {
        self.take_many(now, 1, allowance)
    }

    /// Takes all of these tokens, or none.
    #[inline]
    pub fn take_many(&mut self, now: Instant, tokens: u32, allowance: Allowance) -> bool {
        let every = nanos(allowance.every);
        let price = every.saturating_mul(u64::from(tokens));
        let full_at = self.full_at.max(now).0.saturating_add(price);
        let fits = full_at - now.0 <= every.saturating_mul(u64::from(allowance.burst));
        if fits {
            self.full_at = Instant(full_at);
        }
        fits
    }

    /// Gives tokens back; a full bucket stays full.
    pub fn give(&mut self, tokens: u32, allowance: Allowance) {
        let sooner = u64::try_from(allowance.every.saturating_mul(tokens).as_nanos());
        self.full_at = Instant(self.full_at.0.saturating_sub(sooner.unwrap_or(u64::MAX)));
    }

    /// Goes on with another allowance. As many tokens are missing as before.
    pub fn change(&mut self, now: Instant, before: Allowance, after: Allowance) {
        let missing = self.full_at.since(now).as_nanos() * after.every.as_nanos();
        let missing = u64::try_from(missing / before.every.as_nanos().max(1)).unwrap_or(u64::MAX);
        self.full_at = self.full_at.min(now) + Duration::from_nanos(missing);
    }

    /// Returns true if all tokens are here.
    #[must_use]
    pub fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO: Allowance = Allowance { burst: 2, every: Duration::from_millis(10) };

    const fn ms(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    #[test]
    fn a_bucket_gives_a_burst_and_then_a_token_now_and_then() {
        let mut bucket = Bucket::default();
        let taken =
            [100, 100, 100, 109, 110, 110, 500, 500, 500].map(|at| bucket.take(ms(at), TWO));
        assert_eq!(taken, [true, true, false, false, true, false, true, true, false]);
    }

    #[test]
    fn tokens_that_are_given_back_can_be_taken_again() {
        let mut bucket = Bucket::default();
        assert!(bucket.take_many(ms(100), 2, TWO) && !bucket.is_full(ms(119)));
        bucket.give(1, TWO);
        assert!(bucket.is_full(ms(110)) && bucket.take(ms(100), TWO) && !bucket.take(ms(100), TWO));
        bucket.give(9, TWO);
        assert_eq!([true, true, false], [(); 3].map(|()| bucket.take(ms(100), TWO)));
    }

    #[test]
    fn another_allowance_leaves_as_many_tokens_missing() {
        let soon = Allowance { burst: 4, every: Duration::from_millis(1) };
        let mut bucket = Bucket::default();
        assert!(bucket.take_many(ms(100), 2, TWO));
        bucket.change(ms(100), TWO, soon);
        assert!(bucket.take_many(ms(100), 2, soon) && !bucket.take(ms(100), soon));
        bucket.change(ms(101), soon, TWO);
        assert!(!bucket.is_full(ms(130)) && bucket.is_full(ms(131)));
        bucket.change(ms(200), TWO, soon);
        assert!(bucket.take_many(ms(200), 4, soon), "a full bucket stays full");
    }

    #[test]
    fn tokens_are_taken_together_or_not_at_all() {
        let mut bucket = Bucket::default();
        assert!(!bucket.take_many(ms(100), 3, TWO));
        assert!(bucket.take_many(ms(100), 2, TWO) && !bucket.take(ms(100), TWO));
    }

    proptest! {
        /// The reference model counts tokens in nanoseconds.
        #[test]
        fn a_bucket_gives_what_a_count_of_tokens_gives(
            steps in prop::collection::vec((0u64..25, 1u32..4), 1..200),
            burst in 1u32..5,
        ) {
            let every = Duration::from_millis(10);
            let full = 10_000_000 * u64::from(burst);
            let (mut bucket, mut tokens, mut now) = (Bucket::default(), full, 1_000u64);
            for (passed, wanted) in steps {
                now += passed;
                tokens = full.min(tokens + passed * 1_000_000);
                let price = 10_000_000 * u64::from(wanted);
                let taken = bucket.take_many(ms(now), wanted, Allowance { burst, every });
                prop_assert_eq!(taken, price <= tokens);
                if taken { tokens -= price; }
            }
        }
    }
}
