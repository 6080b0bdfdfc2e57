//! A wire of the simulated network: one direction between two places. It carries bytes, with delay,
//! loss and repetition. What waits before a wire, and when it leaves, is `olaf_engine::link::Link`.

use crate::chance::Chance;
use core::time::Duration;
use olaf_engine::link::pacer::Pacer;
use olaf_engine::{BitsPerSecond, Instant};

/// What a wire does to datagrams. The default is instant, unlimited and faultless.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wire {
    /// Rate of the wire; none: any number of bytes takes no time.
    pub rate: Option<BitsPerSecond>,
    /// Time from the last bit in to the last bit out.
    pub delay: Duration,
    /// Largest additional delay, drawn at random for each datagram.
    pub jitter: Duration,
    /// Probability that a datagram is lost.
    pub loss: f64,
    /// Probability that a datagram comes twice.
    pub duplication: f64,
    /// Probability that a datagram takes `late` longer, so that those behind it overtake it.
    pub reordering: f64,
    /// Additional delay of such a datagram.
    pub late: Duration,
    /// Length of the longest datagram that passes; 0: any length.
    pub longest: usize,
    /// Whether the sender of a longer datagram is told. Otherwise the datagram vanishes, as at many
    /// routers.
    pub says_too_long: bool,
}

/// Datagrams of a wire. `sent = lost + delivered + to_the_dead + on the way`,
/// repetitions counted as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Datagrams put on the wire, and repetitions that the wire made.
    pub sent: u64,
    /// Datagrams that the wire lost.
    pub lost: u64,
    /// Repetitions that the wire made.
    pub repeated: u64,
    /// Datagrams that arrived.
    pub delivered: u64,
    /// Datagrams that arrived at a place without a living node.
    pub to_the_dead: u64,
}

/// A wire at work, with its pacer and its random draws.
pub(crate) struct Carrier {
    pub(crate) wire: Wire,
    pub(crate) counts: WireCounts,
    pacer: Pacer,
    chance: Chance,
}

impl Carrier {
    pub(crate) fn new(wire: Wire, chance: Chance) -> Self {
        let pacer = Pacer::at(wire.rate);
        Self { wire, counts: WireCounts::default(), pacer, chance }
    }

    /// Changes what the wire does from now on.
    pub(crate) fn set(&mut self, wire: Wire) {
        if wire.rate != self.wire.rate {
            self.pacer = Pacer::at(wire.rate);
        }
        self.wire = wire;
    }

    /// Returns true if a datagram is longer than the wire takes.
    pub(crate) const fn is_too_long(&self, bytes: usize) -> bool {
        self.wire.longest > 0 && bytes > self.wire.longest
    }

    /// Puts a datagram of `bytes` bytes on the wire. Returns the arrival of each copy; no copy: the
    /// datagram is lost.
    pub(crate) fn carry(&mut self, now: Instant, bytes: usize) -> Vec<Instant> {
        self.counts.sent += 1;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let sent = self.pacer.begin(now, bytes).1;
        let copies = 1 + usize::from(self.chance.happens(self.wire.duplication));
        // What is lost has taken its time on the wire all the same.
        if self.chance.happens(self.wire.loss) || self.is_too_long(bytes as usize) {
            self.counts.lost += 1;
            return Vec::new();
        }
        self.counts.repeated += copies as u64 - 1;
        self.counts.sent += copies as u64 - 1;
        (0..copies).map(|_| self.arrival(sent)).collect()
    }

    fn arrival(&mut self, sent: Instant) -> Instant {
        let most = u64::try_from(self.wire.jitter.as_nanos()).unwrap_or(u64::MAX);
        let jitter = Duration::from_nanos(self.chance.up_to(most));
        let late =
            if self.chance.happens(self.wire.reordering) { self.wire.late } else { Duration::ZERO };
        sent + self.wire.delay + jitter + late
    }
}
