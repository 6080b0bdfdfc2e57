//! One direction of a link: how long a datagram takes, and what may become of it on the way.

use crate::chance::Chance;
use core::time::Duration;
use olaf_engine::link::pacer::Pacer;
use olaf_engine::{BitsPerSecond, Instant};

/// What a link does to datagrams. The default is instant, unlimited and faultless.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Its rate; none: no time at all for any number of bytes.
    pub rate: Option<BitsPerSecond>,
    /// Time from the last bit in to the last bit out.
    pub delay: Duration,
    /// Longest addition to the delay, drawn for each datagram.
    pub jitter: Duration,
    /// How often a datagram is lost, 0 to 1.
    pub loss: f64,
    /// How often a datagram comes twice, 0 to 1.
    pub duplication: f64,
    /// How often a datagram takes `late` longer, so that those behind it overtake, 0 to 1.
    pub reordering: f64,
    /// How much longer.
    pub late: Duration,
    /// The longest datagram that passes; 0: any.
    pub longest: usize,
    /// Whether the sender of a longer one gets an error; otherwise the datagram vanishes, as at
    /// many routers.
    pub says_too_long: bool,
}

/// Datagrams of one direction of a link. `sent = lost + delivered + to_the_dead + on the way`,
/// repetitions counted as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Put on the link, or made by it as repetitions.
    pub sent: u64,
    /// Lost by it.
    pub lost: u64,
    /// Made by it.
    pub repeated: u64,
    /// Arrived.
    pub delivered: u64,
    /// Arrived at a place without a party.
    pub to_the_dead: u64,
}

/// A link at work.
pub(crate) struct Wire {
    pub(crate) link: Link,
    pub(crate) counts: LinkCounts,
    pacer: Pacer,
    chance: Chance,
}

impl Wire {
    pub(crate) fn new(link: Link, chance: Chance) -> Self {
        let pacer = Pacer::at(link.rate);
        Self { link, counts: LinkCounts::default(), pacer, chance }
    }

    /// Changes what the link does from now on.
    pub(crate) fn set(&mut self, link: Link) {
        if link.rate != self.link.rate {
            self.pacer = Pacer::at(link.rate);
        }
        self.link = link;
    }

    /// Whether a datagram is longer than the link takes.
    pub(crate) const fn is_too_long(&self, bytes: usize) -> bool {
        self.link.longest > 0 && bytes > self.link.longest
    }

    /// Puts a datagram of `bytes` bytes on the link. Returns when its copies arrive; none if it is
    /// lost.
    pub(crate) fn carry(&mut self, now: Instant, bytes: usize) -> Vec<Instant> {
        self.counts.sent += 1;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let sent = self.pacer.begin(now, bytes).1;
        let copies = 1 + usize::from(self.chance.happens(self.link.duplication));
        // What is lost has taken its time on the link all the same.
        if self.chance.happens(self.link.loss) || self.is_too_long(bytes as usize) {
            self.counts.lost += 1;
            return Vec::new();
        }
        self.counts.repeated += copies as u64 - 1;
        self.counts.sent += copies as u64 - 1;
        (0..copies).map(|_| self.arrival(sent)).collect()
    }

    fn arrival(&mut self, sent: Instant) -> Instant {
        let most = u64::try_from(self.link.jitter.as_nanos()).unwrap_or(u64::MAX);
        let jitter = Duration::from_nanos(self.chance.up_to(most));
        let late =
            if self.chance.happens(self.link.reordering) { self.link.late } else { Duration::ZERO };
        sent + self.link.delay + jitter + late
    }
}
