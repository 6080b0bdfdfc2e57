//! A link: one direction of a cable, with the queue before it.

use crate::chance::Chance;
use core::time::Duration;
use olaf_engine::link::pacer::RatePacer;
use olaf_engine::{BitsPerSecond, Ecn, Instant, TrafficClass};

/// What a link does to frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkConfig {
    pub(super) rate: BitsPerSecond,
    /// From the last bit in to the last bit out.
    pub(super) delay: Duration,
    /// Bytes that may wait; none: any number. A frame that finds no room is dropped.
    pub(super) queue_bytes: Option<u64>,
    /// A frame is marked while that many bytes wait.
    pub(super) ecn_bytes: Option<u64>,
    /// Probability that a frame is lost.
    pub(super) loss: f64,
    /// Losses that come together.
    pub(super) burst: Option<Burst>,
    /// Bytes that a host puts into its own queue before it waits; none: the sender is a switch.
    pub(super) own_bytes: Option<u64>,
}

/// Losses that come together: Gilbert's model. In a burst every frame is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// Probability that a frame begins a burst.
    pub(super) begins: f64,
    /// Mean number of frames of a burst.
    pub(super) frames: f64,
}

/// Frames of a link: `offered` is the sum of `delivered`, `lost`, `dropped` and of those on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkCounts {
    pub(super) offered: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) dropped: u64,
    pub(super) marked: u64,
    /// Bytes that took the link's time.
    pub(super) bytes: u64,
    /// The longest wait of a frame for the link.
    pub(super) longest_wait: Duration,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) config: LinkConfig,
    pub(super) counts: LinkCounts,
    pacer: RatePacer,
    free_at: Instant,
    most_wait: Option<Duration>,
    mark_wait: Option<Duration>,
    own_wait: Option<Duration>,
    in_burst: bool,
    chance: Chance,
}

impl Link {
    pub(super) fn new(name: String, config: LinkConfig, chance: Chance) -> Self {
        let time_of = |bytes: u64| {
            let ns = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(config.rate.get());
            Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        Self {
            name,
            config,
            counts: LinkCounts::default(),
            pacer: RatePacer::new(config.rate),
            free_at: Instant::default(),
            most_wait: config.queue_bytes.map(time_of),
            mark_wait: config.ecn_bytes.map(time_of),
            own_wait: config.own_bytes.map(time_of),
            in_burst: false,
            chance,
        }
    }

    /// Puts a frame into the queue. Returns when it arrives, and with which class; none: it does not.
    pub(super) fn carry(
        &mut self,
        now: Instant,
        bytes: u32,
        class: TrafficClass,
    ) -> Option<(Instant, TrafficClass)> {
        self.counts.offered += 1;
        let wait = self.free_at.since(now);
        if self.most_wait.is_some_and(|most| wait > most) {
            self.counts.dropped += 1;
            return None;
        }
        self.counts.longest_wait = self.counts.longest_wait.max(wait);
        let is_marked = self.mark_wait.is_some_and(|least| wait >= least);
        let class = if is_marked { class.marked() } else { class };
        self.counts.marked += u64::from(is_marked && class.ecn() == Ecn::Marked);
        self.free_at = self.pacer.begin(now, bytes).1;
        self.counts.bytes += u64::from(bytes);
        // What is lost has taken its time on the link all the same.
        if self.is_lost() {
            self.counts.lost += 1;
            return None;
        }
        Some((self.free_at + self.config.delay, class))
    }

    /// When a host may go on to send, if its own queue is full.
    pub(super) fn has_room_at(&self, now: Instant) -> Option<Instant> {
        let most = self.own_wait?;
        let wait = self.free_at.since(now);
        (wait > most).then(|| now + (wait - most / 2))
    }

    fn is_lost(&mut self) -> bool {
        if let Some(burst) = self.config.burst {
            let goes_on = self.in_burst && !self.chance.happens(1.0 / burst.frames);
            self.in_burst = goes_on || self.chance.happens(burst.begins);
            if self.in_burst {
                return true;
            }
        }
        self.config.loss > 0.0 && self.chance.happens(self.config.loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECN: TrafficClass = TrafficClass::ECN_CAPABLE;

    /// 1 Gbit/s: a frame of 1,000 bytes takes 8 us.
    fn link(change: impl FnOnce(&mut LinkConfig)) -> Link {
        let mut config = LinkConfig {
            rate: BitsPerSecond::new(1_000_000_000).expect("a rate"),
            delay: Duration::from_micros(2),
            queue_bytes: None,
            ecn_bytes: None,
            loss: 0.0,
            burst: None,
            own_bytes: None,
        };
        change(&mut config);
        Link::new("a to b".into(), config, Chance::new(1, 1))
    }

    #[test]
    fn a_queue_marks_first_and_drops_then() {
        let mut link = link(|config| {
            (config.ecn_bytes, config.queue_bytes) = (Some(1500), Some(2500));
        });
        let sent: Vec<_> = (0..5).map(|_| link.carry(Instant(0), 1000, ECN)).collect();
        let marked = ECN.marked();
        let at = |us: u64| Instant(us * 1000);
        let all = [Some((at(10), ECN)), Some((at(18), ECN)), Some((at(26), marked)), None, None];
        assert_eq!(sent[..2], all[..2]);
        assert_eq!(sent[2], all[2], "2,000 bytes wait");
        assert_eq!(sent[3..], all[3..], "3,000 bytes wait");
        let counts = link.counts;
        assert_eq!((counts.offered, counts.dropped, counts.marked, counts.bytes), (5, 2, 1, 3000));
        assert!(link.carry(at(24), 1000, ECN) == Some((at(34), ECN)), "the queue is empty again");
    }

    #[test]
    fn a_host_waits_for_its_own_queue() {
        let mut link = link(|config| config.own_bytes = Some(2000));
        for _ in 0..2 {
            link.carry(Instant(0), 1000, ECN);
        }
        assert_eq!(link.has_room_at(Instant(0)), None);
        link.carry(Instant(0), 1000, ECN);
        assert_eq!(link.has_room_at(Instant(0)), Some(Instant(16_000)), "half of it is sent then");
        assert_eq!(link.has_room_at(Instant(16_000)), None);
    }

    #[test]
    fn losses_of_a_burst_come_together() {
        let mut link = link(|config| config.burst = Some(Burst { begins: 0.01, frames: 5.0 }));
        let arrives: Vec<bool> =
            (0..100_000).map(|_| link.carry(Instant(0), 1000, ECN).is_some()).collect();
        let bursts = arrives.windows(2).filter(|two| two[0] && !two[1]).count() as f64;
        let lost = arrives.iter().filter(|arrives| !**arrives).count() as f64;
        assert!((0.04..0.06).contains(&(lost / 1e5)), "{lost}");
        assert!((4.5..5.7).contains(&(lost / bursts)), "{lost} in {bursts} bursts");
    }
}
