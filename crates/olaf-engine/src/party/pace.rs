//! Who sends far more updates than the other workers of its job.
//!
//! An update that moves the model a little counts in full where the server counts overlapping steps, and
//! it takes a place in a merge. So a worker that sends many of them slows all others. The limit is a
//! multiple of the recent median rate of the other workers, with one vote for each [voter](Voter): a worker
//! cannot move its own limit, however much it sends. All workers that send from one address have the limit
//! of one worker together, too: a worker with two hundred ids, or one that leaves and joins again, gains
//! nothing.

use crate::party::clip::{Clip, Recent, Seat, Voter};
use crate::party::{Allowance, Bucket};
use crate::table::{Hint, Table};
use crate::time::Instant;
use core::time::Duration;
use olaf_wire::serial;

/// Updates that a worker may send at once after a quiet time.
const BURST: u32 = 64;
/// How often a worker's limit is worked out anew.
const RENEWED_EVERY: Duration = Duration::from_millis(100);
/// The share of the newest interval in a worker's mean interval.
const NEWEST: f64 = 1.0 / 8.0;
/// An interval counts as this multiple of the mean at most: a pause is not a pace.
const LONGEST: f64 = 8.0;
const SHORTEST_S: f64 = 1e-6;
/// Addresses that are remembered before the first look for quiet ones.
const ADDRESSES: usize = 1024;

/// The recent rates of a job's workers, in updates a second.
#[derive(Debug, Default)]
pub struct Paces {
    rates: Recent,
    /// What each address sent lately, whatever workers it names.
    addresses: Table<Voter, Limited>,
    sweep_at: usize,
}

/// Where a flow's numbers were found last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    rate: Seat,
    address: Hint,
}

/// A limit that follows the others' rates.
#[derive(Clone, Copy, Debug, Default)]
struct Limited {
    bucket: Bucket,
    allowed: Option<Allowance>,
    renewed: Option<Instant>,
}

/// One worker's pace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    newest: Option<(u32, Instant)>,
    /// Mean time between two updates; none before the second.
    interval_s: Option<f64>,
    limited: Limited,
}

impl Pace {
    /// Notes an update by its worker's count. Several segments of one update count once.
    fn note(&mut self, now: Instant, sequence: u32) -> Option<f64> {
        let Some((newest, at)) = self.newest else {
            self.newest = Some((sequence, now));
            return None;
        };
        if !serial::is_after(sequence, newest) {
            return None;
        }
        self.newest = Some((sequence, now));
        let interval = now.since(at).as_secs_f64().max(SHORTEST_S);
        let mean = self
            .interval_s
            .map_or(interval, |mean| mean + (interval.min(mean * LONGEST) - mean) * NEWEST);
        self.interval_s = Some(mean);
        Some(1.0 / mean)
    }
}

impl Paces {
    /// Whether a datagram of a worker may be taken. A datagram is one of `segments` of an update.
    pub fn takes(
        &mut self,
        now: Instant,
        limit: Clip,
        voter: Voter,
        pace: &mut Pace,
        sequence: u32,
        segments: u32,
    ) -> bool {
        self.takes_at(now, limit, voter, pace, (sequence, segments), &mut Hints::default())
    }

    /// The same. The hints say where the voter was found last.
    pub fn takes_at(
        &mut self,
        now: Instant,
        limit: Clip,
        voter: Voter,
        pace: &mut Pace,
        (sequence, segments): (u32, u32),
        hints: &mut Hints,
    ) -> bool {
        if limit.is_off() {
            return true;
        }
        if let Some(rate) = pace.note(now, sequence) {
            let own = self.rates.own(voter, &mut hints.rate);
            self.rates.note(now, voter, own, rate);
        }
        let rates = &self.rates;
        let takes = pace.limited.takes(now, rates, limit, voter, segments, &mut hints.rate);
        if self.addresses.len() >= self.sweep_at.max(ADDRESSES) {
            // Of an address with a full bucket nothing is forgotten.
            self.addresses.retain(|_, limited| !limited.bucket.is_full(now));
            self.sweep_at = 2 * self.addresses.len();
        }
        let address = self.addresses.at_or_insert(voter, &mut hints.address, Limited::default);
        takes && address.takes(now, rates, limit, voter, segments, &mut hints.rate)
    }
}

impl Limited {
    fn takes(
        &mut self,
        now: Instant,
        rates: &Recent,
        limit: Clip,
        voter: Voter,
        segments: u32,
        seat: &mut Seat,
    ) -> bool {
        if self.renewed.is_none_or(|at| now.since(at) >= RENEWED_EVERY) {
            self.renewed = Some(now);
            let most = match limit {
                Clip::Off => None,
                Clip::At(rate) => Some(rate),
                Clip::Median(multiple) => {
                    let own = rates.own(voter, seat);
                    rates.median(own).map(|rate| rate * multiple)
                }
            };
            self.allowed = most.map(|rate| {
                let every = 1e9 / (rate * f64::from(segments.max(1)));
                let every = Duration::from_nanos((every as u64).max(1));
                Allowance { burst: BURST.saturating_mul(segments), every }
            });
        }
        // Where nobody else sends, nothing says what is usual.
        self.allowed.is_none_or(|allowed| self.bucket.take(now, allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PeerId;
    use proptest::prelude::*;

    const LIMIT: Clip = Clip::Median(20.0);

    const fn by(worker: u32) -> Voter {
        Voter::At(PeerId(worker))
    }

    fn us(us: u64) -> Instant {
        Instant(1_000_000_000 + us * 1000)
    }

    /// Each worker sends at its own distance, in microseconds, for ten seconds; the updates of each that were
    /// taken and refused.
    fn run(every_us: &[u64], limit: Clip) -> Vec<(u32, u32)> {
        let mut paces = Paces::default();
        let mut states = vec![(Pace::default(), 0, 0); every_us.len()];
        for at in (0..10_000_000u64).step_by(100) {
            for (worker, _) in every_us.iter().enumerate().filter(|(_, e)| at % **e == 0) {
                let (pace, taken, refused) = &mut states[worker];
                let sequence = *taken + *refused;
                let id = by(worker as u32);
                let takes = paces.takes(us(at), limit, id, pace, sequence, 1);
                *(if takes { taken } else { refused }) += 1;
            }
        }
        states.into_iter().map(|(_, taken, refused)| (taken, refused)).collect()
    }

    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn workers_of_very_different_speeds_are_all_taken() {
        for every in [[10_000, 10_000, 100_000], [10_000, 100_000, 100_000], [1_000, 3_000, 10_000]]
        {
            let found = run(&every, LIMIT);
            assert!(found.iter().all(|(_, refused)| *refused == 0), "{every:?}: {found:?}");
        }
        // Two workers alone: each is judged by the other.
        assert!(run(&[10_000, 100_000], LIMIT).iter().all(|(_, refused)| *refused == 0));
        assert_eq!(run(&[100], LIMIT), [(100_000, 0)], "nobody else says what is usual");
    }

    #[test]
    fn a_flood_is_cut_to_the_multiple_of_the_others_and_nobody_else_is() {
        let found = run(&[100_000, 100_000, 100_000, 100], LIMIT);
        assert!(found[..3].iter().all(|(_, refused)| *refused == 0), "{found:?}");
        // 20 times 10 a second for 10 s, a burst, and what came before the others had a pace.
        let (taken, refused) = found[3];
        assert!((1_900..4_200).contains(&taken) && taken + refused == 100_000, "{found:?}");
    }

    #[test]
    fn two_hundred_workers_of_one_address_have_the_limit_of_one() {
        let mut paces = Paces::default();
        let mut honest = [(Pace::default(), 0u32); 3];
        let (mut flood, mut taken, mut refused) = (vec![Pace::default(); 200], 0, 0);
        for at in (0..10_000_000u64).step_by(250) {
            let now = us(at);
            for (worker, (pace, sequence)) in (0..).zip(&mut honest) {
                if at % 100_000 == 0 {
                    *sequence += 1;
                    assert!(paces.takes(now, LIMIT, by(worker), pace, *sequence, 1));
                }
            }
            let number = (at / 250) as u32;
            // Each id is new after a while, as one that leaves and joins again is.
            let id = &mut flood[number as usize % 200];
            if number % 20_000 < 200 {
                *id = Pace::default();
            }
            let takes = paces.takes(now, LIMIT, by(9), id, number, 1);
            *(if takes { &mut taken } else { &mut refused }) += 1;
        }
        assert!((1_900..4_200).contains(&taken) && refused > 30_000, "{taken} and {refused}");
    }

    #[test]
    fn addresses_that_are_quiet_are_forgotten() {
        let mut paces = Paces::default();
        for peer in 0..20_000 {
            let now = us(u64::from(peer) * 100_000);
            paces.takes(now, LIMIT, by(peer), &mut Pace::default(), 1, 1);
        }
        assert!(paces.addresses.len() <= ADDRESSES, "{} addresses", paces.addresses.len());
    }

    #[test]
    fn a_flood_does_not_move_its_own_limit_nor_hurt_the_others() {
        let two_floods = run(&[100_000, 100_000, 100_000, 100, 100], LIMIT);
        assert!(two_floods[..3].iter().all(|(_, refused)| *refused == 0), "{two_floods:?}");
        assert!(two_floods[3..].iter().all(|(taken, _)| *taken < 4_200), "{two_floods:?}");
        assert_eq!(run(&[100_000, 100], Clip::Off)[1], (100_000, 0));
        let (taken, _) = run(&[100_000, 100], Clip::At(50.0))[1];
        assert!((500..=570).contains(&taken), "{taken}");
    }

    #[test]
    fn a_pause_of_the_others_does_not_stop_a_worker() {
        let mut paces = Paces::default();
        let (mut one, mut other) = (Pace::default(), Pace::default());
        let mut sequence = (0, 0);
        for at in (0..100_000_000u64).step_by(10_000) {
            // The other evaluates its model for a minute.
            if !(20_000_000..80_000_000).contains(&at) {
                sequence.1 += 1;
                assert!(paces.takes(us(at), LIMIT, by(2), &mut other, sequence.1, 1));
            }
            sequence.0 += 1;
            assert!(paces.takes(us(at), LIMIT, by(1), &mut one, sequence.0, 1), "{at} us");
        }
    }

    #[test]
    fn the_segments_of_an_update_are_one_update() {
        let mut paces = Paces::default();
        let mut states = [Pace::default(); 2];
        for round in 0..500u32 {
            for worker in 0..2 {
                for segment in 0..100 {
                    let now = us(u64::from(round) * 10_000 + segment);
                    let (id, pace) = (by(worker), &mut states[worker as usize]);
                    assert!(paces.takes(now, LIMIT, id, pace, round, 100));
                }
            }
        }
        // Sequences that were left out do not give more room.
        let pace = &mut states[0];
        let many = (0..100_000u32)
            .filter(|n| paces.takes(us(6_000_000), LIMIT, by(0), pace, 500 - n % 400, 100));
        assert!(many.count() <= 100 * BURST as usize);
    }

    proptest! {
        #[test]
        fn an_honest_worker_ten_times_as_fast_as_the_others_is_never_refused(
            gaps in prop::collection::vec(50u64..150, 400..800),
            factor in 1u64..=10,
        ) {
            let mut paces = Paces::default();
            let mut states = [Pace::default(); 4];
            let mut due = [0u64; 4];
            let mut sequences = [0u32; 4];
            for gap in gaps {
                let worker = (0..4).min_by_key(|worker| due[*worker]).expect("four");
                let takes = paces.takes(
                    us(due[worker] * 100), LIMIT, by(worker as u32),
                    &mut states[worker], sequences[worker], 1,
                );
                prop_assert!(takes, "worker {} at {}", worker, due[worker]);
                sequences[worker] += 1;
                due[worker] += if worker == 0 { gap / factor } else { gap };
            }
        }
    }
}
