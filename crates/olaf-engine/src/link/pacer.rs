//! When a link may send: at its rate, or while a server has not fallen behind.

use crate::ids::{Flow, JobId};
use crate::time::{BitsPerSecond, Instant};
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;
use olaf_wire::serial;

/// When the next datagram may leave.
#[derive(Debug)]
pub enum Pacer {
    /// As soon as the driver asks.
    Unlimited,
    /// At a link's rate: each datagram takes its bytes' time, and keeps its slot meanwhile.
    Rate(RatePacer),
    /// So many updates outstanding towards servers until they acknowledge.
    Credit(CreditPacer),
}

impl Pacer {
    /// A pacer at that rate; without one, none.
    #[must_use]
    pub fn at(rate: Option<BitsPerSecond>) -> Self {
        rate.map_or(Self::Unlimited, |rate| Self::Rate(RatePacer::new(rate)))
    }

    /// Returns true if a datagram takes the link some time, so that the next one waits for its last
    /// bit.
    pub(super) const fn takes_time(&self) -> bool {
        matches!(self, Self::Rate(_))
    }

    /// Starts to send `bytes` at `now`, or when the link is free: see [`RatePacer::begin`].
    pub fn begin(&mut self, now: Instant, bytes: u32) -> (Instant, Instant) {
        match self {
            Self::Rate(pacer) => pacer.begin(now, bytes),
            Self::Unlimited | Self::Credit(_) => (now, now),
        }
    }

    /// Starts to send `bytes` the very instant that the link is free, which it is from the
    /// nanosecond `free` on: see [`RatePacer::follow`].
    pub fn follow(&mut self, free: Instant, bytes: u32) -> (Instant, Instant) {
        match self {
            Self::Rate(pacer) => pacer.follow(bytes),
            Self::Unlimited | Self::Credit(_) => (free, free),
        }
    }
}

/// A link's rate, kept exactly: rounding of one departure does not shift those behind it.
#[derive(Debug)]
pub struct RatePacer {
    rate: BitsPerSecond,
    /// The link is free from here on: whole nanoseconds, and a rest in 1/rate nanoseconds.
    free_at: (u64, u64),
}

impl RatePacer {
    /// A free link.
    #[must_use]
    pub const fn new(rate: BitsPerSecond) -> Self {
        Self { rate, free_at: (0, 0) }
    }

    /// The link's rate.
    #[must_use]
    pub const fn rate(&self) -> BitsPerSecond {
        self.rate
    }

    /// Starts to send `bytes` at `now`, or when the link is free; says when the first bit
    /// starts and when the last has left, rounded up to nanoseconds.
    pub fn begin(&mut self, now: Instant, bytes: u32) -> (Instant, Instant) {
        // Free within the nanosecond before `now` is free before it: what comes at `now` starts
        // then and not earlier.
        if self.free_at.0 < now.0 {
            self.free_at = (now.0, 0);
        }
        self.follow(bytes)
    }

    /// Starts to send `bytes` the very instant that the link is free.
    pub fn follow(&mut self, bytes: u32) -> (Instant, Instant) {
        let start = self.free();
        let (whole, rest) = self.free_at;
        let work = u128::from(bytes) * 8 * 1_000_000_000 + u128::from(rest);
        let rate = u128::from(self.rate.get());
        let took = u64::try_from(work / rate).unwrap_or(u64::MAX);
        let rest = u64::try_from(work % rate).expect("a remainder is below the rate");
        self.free_at = (whole.saturating_add(took), rest);
        (start, self.free())
    }

    fn free(&self) -> Instant {
        Instant(self.free_at.0.saturating_add(u64::from(self.free_at.1 > 0)))
    }
}

/// Updates outstanding towards servers.
#[derive(Debug)]
pub struct CreditPacer {
    credits: usize,
    timeout: Duration,
    outstanding: VecDeque<Outstanding>,
    /// How many of `outstanding` each job has; at least 1.
    by_job: BTreeMap<JobId, usize>,
    expired: u64,
}

#[derive(Debug)]
struct Outstanding {
    flow: Flow,
    hop_sequence: u32,
    expires: Instant,
}

impl CreditPacer {
    /// At most `credits` outstanding; a credit without an acknowledgement comes back after
    /// `timeout`.
    #[must_use]
    pub const fn new(credits: usize, timeout: Duration) -> Self {
        Self { credits, timeout, outstanding: VecDeque::new(), by_job: BTreeMap::new(), expired: 0 }
    }

    /// How many may be outstanding.
    #[must_use]
    pub const fn credits(&self) -> usize {
        self.credits
    }

    /// How many are.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// How many of a job are.
    #[must_use]
    pub fn outstanding_of(&self, job: JobId) -> usize {
        self.by_job.get(&job).copied().unwrap_or(0)
    }

    /// The number of credits that came back without an acknowledgement in time.
    #[must_use]
    pub const fn expired(&self) -> u64 {
        self.expired
    }

    pub(crate) fn spend(&mut self, now: Instant, flow: Flow, hop_sequence: u32) {
        *self.by_job.entry(flow.job).or_insert(0) += 1;
        self.outstanding.push_back(Outstanding { flow, hop_sequence, expires: now + self.timeout });
    }

    /// Acknowledgements are cumulative: one lost is made good by the next.
    pub(crate) fn acknowledge(&mut self, of: Acknowledged, up_to: u32) {
        let by_job = &mut self.by_job;
        self.outstanding.retain(|outstanding| {
            let concerned = match of {
                Acknowledged::Job(job) => outstanding.flow.job == job,
                Acknowledged::Flow(flow) => outstanding.flow == flow,
            };
            let stays = !concerned || serial::is_after(outstanding.hop_sequence, up_to);
            if !stays {
                count_off(by_job, outstanding.flow.job);
            }
            stays
        });
    }

    /// When the next credit comes back by itself.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.outstanding.front().map(|outstanding| outstanding.expires)
    }

    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some(first) = self.outstanding.front().filter(|first| first.expires <= now) {
            count_off(&mut self.by_job, first.flow.job);
            self.outstanding.pop_front();
            self.expired += 1;
        }
    }
}

/// One fewer of a job is outstanding.
fn count_off(by_job: &mut BTreeMap<JobId, usize>, job: JobId) {
    if let Entry::Occupied(mut count) = by_job.entry(job) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// What an acknowledgement up to a number is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// Everything of the job: a server answers in the order in which it was sent to.
    Job(JobId),
    /// One flow: another switch sends on in an order of its own, but each flow in order.
    Flow(Flow),
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn flow(job: u32, cluster: u32) -> Flow {
        Flow { job: JobId(job), cluster: crate::ids::ClusterId(cluster), segment: 0 }
    }

    #[test]
    fn a_busy_link_keeps_its_rate_although_each_departure_is_rounded() {
        // 2,048 bits at 40 Gbit/s take 51.2 ns: five of them 256, not 5 x 52.
        let mut pacer = RatePacer::new(BitsPerSecond::parse("40gbit").expect("a rate"));
        let ends: Vec<u64> = (0..5).map(|_| pacer.begin(Instant(0), 256).1.0).collect();
        assert_eq!(ends, [52, 103, 154, 205, 256]);
    }

    #[test]
    fn what_comes_to_a_free_link_starts_when_it_comes_and_no_fraction_earlier() {
        // Free at 51.2 ns; what comes at 52 leaves until 103.2, not 102.4.
        let mut pacer = RatePacer::new(BitsPerSecond::parse("40gbit").expect("a rate"));
        pacer.begin(Instant(0), 256);
        assert_eq!(pacer.begin(Instant(52), 256), (Instant(52), Instant(104)));
    }

    #[test]
    fn an_idle_link_starts_at_once() {
        let mut pacer = RatePacer::new(BitsPerSecond::new(8_000_000_000).expect("a rate"));
        assert_eq!(pacer.begin(Instant(100), 10), (Instant(100), Instant(110)));
        assert_eq!(pacer.begin(Instant(105), 10), (Instant(110), Instant(120)));
        assert_eq!(pacer.begin(Instant(500), 10), (Instant(500), Instant(510)));
    }

    #[test]
    fn an_acknowledgement_returns_the_credits_of_its_job_up_to_it() {
        let mut pacer = CreditPacer::new(2, Duration::from_nanos(10));
        pacer.spend(Instant(0), flow(1, 0), 1);
        pacer.spend(Instant(1), flow(2, 0), 1);
        pacer.spend(Instant(2), flow(1, 5), 2);
        pacer.acknowledge(Acknowledged::Job(JobId(1)), 2);
        let of = |pacer: &CreditPacer| [1, 2].map(|job| pacer.outstanding_of(JobId(job)));
        assert_eq!((pacer.outstanding(), of(&pacer)), (1, [0, 1]));
        pacer.expire(Instant(11));
        assert_eq!((pacer.outstanding(), of(&pacer), pacer.expired()), (0, [0, 0], 1));
        assert!(pacer.by_job.is_empty());
    }

    #[test]
    fn an_acknowledgement_of_a_flow_leaves_the_other_flows_credits_out() {
        let mut pacer = CreditPacer::new(3, Duration::from_nanos(10));
        pacer.spend(Instant(0), flow(1, 0), 1);
        pacer.spend(Instant(0), flow(1, 7), 2);
        pacer.spend(Instant(0), flow(1, 0), 3);
        // The switch above sent cluster 7's first: 1 and 3 still wait there.
        pacer.acknowledge(Acknowledged::Flow(flow(1, 7)), 2);
        assert_eq!((pacer.outstanding(), pacer.outstanding_of(JobId(1))), (2, 2));
        pacer.acknowledge(Acknowledged::Flow(flow(1, 0)), 3);
        assert_eq!(pacer.outstanding(), 0);
    }

    #[test]
    fn credits_come_back_across_the_largest_number() {
        let mut pacer = CreditPacer::new(4, Duration::from_nanos(10));
        for number in [u32::MAX - 1, u32::MAX, 1, 2] {
            pacer.spend(Instant(0), flow(1, 0), number);
        }
        pacer.acknowledge(Acknowledged::Job(JobId(1)), u32::MAX);
        assert_eq!(pacer.outstanding(), 2);
        pacer.acknowledge(Acknowledged::Job(JobId(1)), 1);
        assert_eq!(pacer.outstanding(), 1);
    }
}
