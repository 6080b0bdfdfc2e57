//! What one member may draw from a switch that sums, beside what goes to all members: results that it
//! asks for again, and answers to its joins.
//!
//! A question of 64 bytes names up to 64 blocks, so its answers may be a thousand times as long. An
//! honest member asks for what it lost: for a part of the results, seldom more than once for each. So a
//! result that goes to all members pays for two that go to one of them alone. Beyond that a member has
//! four windows of results at once, and two windows a second: a member whose way back was cut for some
//! seconds has asked for the same window several times.

use super::{Allowance, Bucket};
use crate::ids::PeerId;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;

/// Results to one member that a result to all members pays for.
const PAID_BY_A_RESULT: u64 = 2;
/// A lower switch asks for the workers behind it: it may draw as much as this many members.
const MOST_BEHIND: u32 = 16;
/// A worker may join again after this time, beyond a burst.
const JOIN_EVERY: Duration = Duration::from_millis(50);
/// Senders of joins that are remembered.
const MOST_SENDERS: usize = 4096;

/// How much a job moves, for one member.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Results that went to all members so far.
    pub results: u64,
    /// Results that may be on their way at once.
    pub window: u32,
    /// Workers that the member stands for.
    pub behind: u32,
}

impl Moved {
    fn behind(&self) -> u32 {
        self.behind.clamp(1, MOST_BEHIND)
    }

    /// What a member may draw from now on.
    #[must_use]
    pub fn allowance(&self) -> Allowance {
        let window = self.window.min(u32::try_from(self.results).unwrap_or(u32::MAX)).min(1 << 24);
        let a_second = (64 + 2 * window) * self.behind();
        let every = Duration::from_nanos((1_000_000_000 / u64::from(a_second)).max(1));
        Allowance { burst: (256 + 4 * window) * self.behind(), every }
    }
}

/// The results that one member drew.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draws {
    bucket: Bucket,
    /// Results to all members that have paid.
    paid: u64,
}

impl Draws {
    /// One result more; whether the member may have it.
    pub fn take(&mut self, now: Instant, moved: Moved) -> bool {
        let allowance = moved.allowance();
        let news = moved.results.saturating_sub(self.paid);
        self.paid = self.paid.max(moved.results);
        let back = news * PAID_BY_A_RESULT * u64::from(moved.behind());
        self.bucket.give(u32::try_from(back).unwrap_or(u32::MAX), allowance);
        self.bucket.take(now, allowance)
    }
}

/// How often each sender may join each job. `K` names the job.
#[derive(Clone, Debug)]
pub struct Joins<K> {
    of: BTreeMap<(K, PeerId), Bucket>,
}

impl<K> Default for Joins<K> {
    fn default() -> Self {
        Self { of: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Joins<K> {
    /// Returns true if a join of that sender is taken. A worker repeats its join four times a second, and
    /// at first after 20 ms; a lower switch joins for the workers behind it.
    pub fn takes(&mut self, now: Instant, job: K, peer: PeerId, behind: u32) -> bool {
        let behind = behind.clamp(1, 256);
        let allowance = Allowance { burst: 64 + 16 * behind, every: JOIN_EVERY / behind };
        if self.of.len() >= MOST_SENDERS && !self.of.contains_key(&(job, peer)) {
            self.of.retain(|_, bucket| !bucket.is_full(now));
            if self.of.len() > MOST_SENDERS / 2 {
                // Few are left out, so that looking at all of them stays seldom.
                self.of.clear();
            }
        }
        self.of.entry((job, peer)).or_default().take(now, allowance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(us: u64) -> Instant {
        Instant((1 << 40) + us * 1_000)
    }

    #[test]
    fn a_member_that_asks_a_thousand_times_a_second_draws_a_bounded_multiple() {
        // 3,000 results in ten seconds; 64 pieces are asked for, 1,000 times a second.
        let (mut draws, mut drawn) = (Draws::default(), 0u32);
        for ms in 0..10_000 {
            let moved = Moved { results: ms * 3 / 10, window: 512, behind: 1 };
            let asked = (0..64).filter(|_| draws.take(us(ms * 1_000), moved));
            drawn += asked.count() as u32;
        }
        // Four windows, two more a second, and two for each result: of the 640,000 that were asked for.
        let most = 256 + 4 * 512 + 10 * (64 + 2 * 512) + 2 * 3_000;
        assert!((6_000..=most).contains(&drawn), "{drawn} of at most {most}");
    }

    #[test]
    fn a_window_that_is_lost_four_times_is_answered_at_once_and_a_fifth_time_in_a_second() {
        let moved = Moved { results: 3_000, window: 3_000, behind: 1 };
        let mut draws = Draws::default();
        let mut asks = |ms: u64| (0..3_000).filter(|_| draws.take(us(ms * 1_000), moved)).count();
        assert_eq!([0, 100, 200, 300].map(&mut asks), [3_000; 4]);
        assert!(asks(1_800) == 3_000);
    }

    #[test]
    fn a_sender_joins_at_its_pace_and_not_in_a_flood() {
        let mut joins = Joins::default();
        for at in 0..1_000 {
            // Once a quarter of a second; a switch with 64 workers, 20 times a second each.
            assert!(joins.takes(us(at * 250_000), 1, PeerId(1), 1));
        }
        assert!((0..100_000).all(|at| joins.takes(us(at * 1_000), 1, PeerId(2), 64)));
        let flood = (0..10_000).filter(|at| joins.takes(us(at * 1_000), 1, PeerId(3), 1));
        let taken = flood.count();
        assert!((200..=80 + 201).contains(&taken), "{taken}");
    }

    #[test]
    fn senders_that_come_and_go_take_no_memory() {
        let mut joins = Joins::default();
        for peer in 0..20_000 {
            assert!(joins.takes(us(u64::from(peer)), 1, PeerId(peer), 1));
            assert!(joins.of.len() <= MOST_SENDERS);
        }
    }

    proptest! {
        /// Losses of up to a quarter, each result asked for until it comes: nobody is refused.
        #[test]
        fn honest_recovery_is_never_refused(
            window in 1u32..4_000, loss in 0.0f64..0.25, seed in any::<u64>(), behind in 1u32..20,
        ) {
            let mut random = seed | 1;
            let mut is_lost = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((random >> 33) as f64 / f64::from(1u32 << 31)) < loss
            };
            let (mut draws, mut results) = (Draws::default(), 0);
            for round in 0..20u64 {
                results += u64::from(window);
                let moved = Moved { results, window, behind };
                for _ in 0..window {
                    while is_lost() {
                        prop_assert!(draws.take(us(round * 100_000), moved));
                    }
                }
            }
        }
    }
}
