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

/// Updates that a worker may send at once after a quiet time, at least.
const BURST: u32 = 64;
/// A worker may send at once what its limit lets through in this time, where that is more than [`BURST`]. On
/// a busy host the system runs one worker after the other, and the packets of each come in bursts. At a
/// limit of 20 times the median rate, the median worker sends this number of updates in 3 s.
const BURST_TIME: Duration = Duration::from_millis(150);
/// A rate is measured over stretches of at least this time, and a worker's limit is worked out anew as often.
/// Packets that a driver reads together have one time, and the distances between them say nothing. A limit
/// that is kept for longer lets a flood go on at the pace that the others had before it slowed them down.
const STRETCH: Duration = Duration::from_millis(10);
/// The share of the newest interval in the mean interval of an address.
const NEWEST: f64 = 1.0 / 8.0;
/// An interval counts as this multiple of the mean at most: a pause is not a pace.
const LONGEST: f64 = 8.0;
/// Addresses that are remembered before the first look for quiet ones.
const ADDRESSES: usize = 1024;

/// The recent rates of a job's workers, in updates a second.
#[derive(Debug, Default)]
pub struct Paces {
    rates: Recent,
    /// What each address sent lately, whatever workers it names.
    addresses: Table<Voter, Address>,
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct Address {
    limited: Limited,
    rate: Rate,
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
    newest: Option<u32>,
    limited: Limited,
}

/// How often updates come. A stretch of time is measured after the other. It ends with the updates that come
/// together after [`STRETCH`]: those of a burst belong to the pause before it.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// When the stretch began, and when the newest update came; none before the first.
    stretch: Option<(Instant, Instant)>,
    /// Updates in the stretch, without the one that it began with.
    updates: u32,
    /// When the stretch was long enough.
    enough: Option<Instant>,
    /// Mean time between two updates before this stretch; none in the first.
    interval_s: Option<f64>,
}

impl Pace {
    /// Returns true if the update is a new one by its worker's count. Several segments of one update
    /// count once.
    fn is_new(&mut self, sequence: u32) -> bool {
        let is_new = self.newest.is_none_or(|newest| serial::is_after(sequence, newest));
        if is_new {
            self.newest = Some(sequence);
        }
        is_new
    }
}

impl Rate {
    /// Notes an update. Now and then the result is the rate, in updates a second.
    fn note(&mut self, now: Instant) -> Option<f64> {
        let Some((mut since, newest)) = self.stretch else {
            self.stretch = Some((now, now));
            return None;
        };
        if self.enough.is_some_and(|at| at + STRETCH <= now) {
            self.interval_s = Some(self.mean_s(newest.since(since)));
            since = newest;
            (self.updates, self.enough) = (0, None);
        }
        self.updates += 1;
        self.stretch = Some((since, now));
        if now < since + STRETCH {
            return None;
        }
        self.enough.get_or_insert(now);
        // Of many updates each 16th says enough.
        (self.updates <= 16 || self.updates.is_multiple_of(16))
            .then(|| 1.0 / self.mean_s(now.since(since)))
    }

    /// The mean time between two updates, this stretch included.
    fn mean_s(&self, took: Duration) -> f64 {
        let interval = took.as_secs_f64() / f64::from(self.updates);
        let weight = 1.0 - libm::pow(1.0 - NEWEST, f64::from(self.updates));
        match self.interval_s {
            // A first rate is of few updates: it counts as too high rather than too low, because it
            // becomes the limit of the others. The next ones correct it.
            None => interval * weight,
            Some(mean) => mean + (interval.min(mean * LONGEST) - mean) * weight,
        }
    }
}

impl Paces {
    /// Returns true if a datagram of a worker may be taken. A datagram is one of `segments` of an
    /// update.
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
        if self.addresses.len() >= self.sweep_at.max(ADDRESSES) {
            // Of an address with a full bucket and without a vote nothing is forgotten.
            let rates = &self.rates;
            self.addresses
                .retain(|by, address| !address.limited.bucket.is_full(now) || rates.knows(*by));
            self.sweep_at = 2 * self.addresses.len();
        }
        let address = self.addresses.at_or_insert(voter, &mut hints.address, Address::default);
        // The vote is the rate of all workers of the address, because the limit is, too.
        if pace.is_new(sequence)
            && let Some(rate) = address.rate.note(now)
        {
            let own = self.rates.own(voter, &mut hints.rate);
            self.rates.note(now, voter, own, rate);
        }
        let mut allowed = || {
            let rate = match limit {
                Clip::Off => None,
                Clip::At(rate) => Some(rate),
                Clip::Median(multiple) => {
                    let own = self.rates.own(voter, &mut hints.rate);
                    self.rates.median(own).map(|rate| rate * multiple)
                }
            };
            rate.map(|rate| allowance(rate, segments))
        };
        pace.limited.takes(now, &mut allowed) && address.limited.takes(now, &mut allowed)
    }
}

impl Limited {
    /// Takes a token. `allowed` works the limit out from what the others sent lately: none where nobody else
    /// sends, because then nothing says what is usual.
    #[inline]
    fn takes(&mut self, now: Instant, allowed: impl FnOnce() -> Option<Allowance>) -> bool {
        if self.renewed.is_none_or(|at| at + STRETCH <= now) {
            self.renew(now, allowed);
        }
        self.allowed.is_none_or(|allowed| self.bucket.take(now, allowed))
    }

    #[inline(never)]
    fn renew(&mut self, now: Instant, allowed: impl FnOnce() -> Option<Allowance>) {
        let allowed = allowed();
        self.renewed = Some(now);
        if let (Some(before), Some(allowed)) = (self.allowed, allowed) {
            self.bucket.change(now, before, allowed);
        }
        self.allowed = allowed;
    }
}

/// What a limit in updates a second allows in datagrams.
fn allowance(rate: f64, segments: u32) -> Allowance {
    let segments = segments.max(1);
    let every = 1e9 / (rate * f64::from(segments));
    let burst = f64::from(BURST).max(rate * BURST_TIME.as_secs_f64()) * f64::from(segments);
    Allowance { burst: burst as u32, every: Duration::from_nanos((every as u64).max(1)) }
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

    /// A host of two cores runs workers that always have an update to send, a switch, and processes that do
    /// other work: these are `idle_of_ten` of ten processes. Each gets a core now and then, for some milliseconds. What the switch reads
    /// together has one time, and while it has no core the oldest packets that fit wait for it. Returns the
    /// updates that were taken and refused, by address.
    fn busy_host(
        seed: u64,
        addresses: usize,
        workers: usize,
        idle_of_ten: usize,
    ) -> Vec<(u32, u32)> {
        const CORES: usize = 2;
        const EVERY_US: u64 = 50;
        const SOCKET: usize = 400;
        let mut chance = seed;
        let mut draw = |below: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (chance >> 33) % below
        };
        let mut paces = Paces::default();
        let mut states = vec![(Pace::default(), 0u32); addresses * workers];
        let mut fates = vec![(0, 0); addresses];
        let mut socket: Vec<(usize, u32)> = Vec::new();
        // Who has each core, and until when. The last one is the switch; those above do not send.
        let mut cores = [(usize::MAX, 0u64); CORES];
        let mut ran = vec![0u64; (addresses + 1) * 10 / (10 - idle_of_ten)];
        let mut next = vec![0usize; addresses];
        for at in (0..3_000_000u64).step_by(EVERY_US as usize) {
            for core in 0..CORES {
                if cores[core].1 <= at {
                    let other = cores[1 - core].0;
                    // As a fair scheduler does, but not as exactly: the one of three that ran least.
                    let three = (0..3).map(|_| draw(ran.len() as u64) as usize);
                    let who = three.filter(|who| *who != other).min_by_key(|who| ran[*who]);
                    let (who, slice) = (who.unwrap_or(usize::MAX), 1_000 + draw(11_000));
                    cores[core] = (who, at + slice);
                    if let Some(ran) = ran.get_mut(who) {
                        *ran += slice;
                    }
                }
                let who = cores[core].0;
                if who < addresses {
                    let worker = who * workers + next[who];
                    next[who] = (next[who] + 1) % workers;
                    states[worker].1 += 1;
                    if socket.len() < SOCKET {
                        socket.push((worker, states[worker].1));
                    }
                } else if who == addresses {
                    for (worker, sequence) in socket.drain(..) {
                        let address = worker / workers;
                        let pace = &mut states[worker].0;
                        let takes =
                            paces.takes(us(at), LIMIT, by(address as u32), pace, sequence, 1);
                        let fates = &mut fates[address];
                        *(if takes { &mut fates.0 } else { &mut fates.1 }) += 1;
                    }
                }
            }
        }
        fates
    }

    /// Rounds in which three workers push once each, every `round_us`; then as many in which another one sends
    /// `flood` updates before them. Returns the updates of the flood that were taken.
    fn flood_beside(quiet_us: u64, round_us: u64, rounds: u64, flood: u32) -> u32 {
        let mut paces = Paces::default();
        let mut states = [(Pace::default(), 0u32); 4];
        let mut taken = 0;
        let mut at = 0;
        for round in 0..2 * rounds {
            let floods = round >= rounds;
            let took = if floods { round_us } else { quiet_us };
            for number in 0..if floods { flood } else { 0 } {
                let now = us(at + took * u64::from(number) / u64::from(flood + 3));
                states[3].1 += 1;
                let (pace, sequence) = &mut states[3];
                taken += u32::from(paces.takes(now, LIMIT, by(3), pace, *sequence, 1));
            }
            at += took;
            for (worker, (pace, sequence)) in (0..3).zip(&mut states) {
                *sequence += 1;
                assert!(paces.takes(us(at), LIMIT, by(worker), pace, *sequence, 1));
            }
        }
        taken
    }

    #[test]
    fn a_flood_that_makes_rounds_longer_is_cut_within_these_rounds() {
        for (round_us, most) in [(2_300, 3_000), (4_000, 2_500), (8_000, 2_000)] {
            let taken = flood_beside(720, round_us, 25, 200);
            assert!((500..most).contains(&taken), "rounds of {round_us} us: {taken} of 5000");
        }
    }

    #[test]
    fn equal_workers_on_a_busy_host_are_all_taken() {
        for seed in 0..16 {
            for (addresses, workers, idle) in
                [(2, 1, 0), (4, 1, 5), (4, 4, 0), (4, 4, 8), (16, 1, 0)]
            {
                let fates = busy_host(seed, addresses, workers, idle);
                assert!(fates.iter().all(|(taken, _)| *taken > 100), "all of them work: {fates:?}");
                assert!(
                    fates.iter().all(|(_, refused)| *refused == 0),
                    "seed {seed}, {addresses} addresses of {workers}: {fates:?}"
                );
            }
        }
    }

    #[test]
    fn a_flood_between_the_rounds_of_others_is_cut_although_it_makes_rounds_longer() {
        for (round_us, flood_us) in
            [(2_000, 5_000), (2_000, 30_000), (6_000, 16_000), (9_000, 13_000)]
        {
            let mut paces = Paces::default();
            let (mut honest, mut flood) = ([Pace::default(); 3], Pace::default());
            let (mut at, mut sent, mut refused) = (0, 0, 0);
            for round in 0..50 {
                if round >= 25 {
                    for _ in 0..200 {
                        at += flood_us / 200;
                        sent += 1;
                        refused +=
                            u32::from(!paces.takes(us(at), LIMIT, by(9), &mut flood, sent, 1));
                    }
                }
                for (worker, pace) in (0..).zip(&mut honest) {
                    at += round_us / 3;
                    assert!(paces.takes(us(at), LIMIT, by(worker), pace, round, 1));
                }
            }
            assert!(refused > sent / 4, "{refused} of {sent}, {round_us} and {flood_us} us");
        }
    }

    #[test]
    fn packets_that_are_read_together_do_not_raise_the_limit_of_others() {
        let mut paces = Paces::default();
        let (mut honest, mut flood) = ([Pace::default(); 3], Pace::default());
        let (mut sequence, mut taken) = (0, 0);
        for at in (0..10_000_000u64).step_by(1_000) {
            // Ten updates of each wait together, 100 a second.
            if at % 100_000 == 0 {
                for n in 0..10 {
                    for (worker, pace) in (0..).zip(&mut honest) {
                        assert!(paces.takes(us(at), LIMIT, by(worker), pace, sequence + n, 1));
                    }
                }
                sequence += 10;
            }
            for n in 0..10 {
                let number = (at / 100) as u32 + n;
                taken += u32::from(paces.takes(us(at), LIMIT, by(9), &mut flood, number, 1));
            }
        }
        // 20 times 100 a second for 10 s, a burst, and what came before the others had a rate.
        assert!((20_000..24_000).contains(&taken), "{taken}");
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
        // The other one sends 100 a second.
        assert!(many.count() <= 100 * allowance(20.0 * 100.0, 1).burst as usize);
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
