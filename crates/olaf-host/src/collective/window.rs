//! How many blocks may be on their way at once.

use core::time::Duration;
use olaf_engine::Instant;

/// A sender's window, in blocks.
pub trait Window: Send {
    /// How many more blocks may be sent now.
    fn room(&self) -> u32;
    /// The window, and how much of it is used.
    fn state(&self) -> (u32, u32);
    /// A piece was sent for the first time.
    fn on_sent(&mut self);
    /// The result of such a piece came. `ecn`: the path is congested. `round_trip` is known where
    /// the result answers this sender's message.
    fn on_result(&mut self, now: Instant, round_trip: Option<Duration>, ecn: bool);
    /// The piece, or its result, was lost on this end's own path.
    fn on_loss(&mut self, now: Instant);
    /// All that was on its way was lost.
    fn on_timeout(&mut self, now: Instant);
    /// The pieces that are on their way are given up.
    fn forget(&mut self);
}

/// A window of a fixed number of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    blocks: u32,
    in_flight: u32,
}

impl Fixed {
    /// A window of that many blocks, at least one.
    #[must_use]
    pub fn new(blocks: u32) -> Self {
        Self { blocks: blocks.max(1), in_flight: 0 }
    }
}

impl Window for Fixed {
    fn room(&self) -> u32 {
        self.blocks.saturating_sub(self.in_flight)
    }

    fn state(&self) -> (u32, u32) {
        (self.blocks, self.in_flight)
    }

    fn on_sent(&mut self) {
        self.in_flight += 1;
    }

    fn on_result(&mut self, _now: Instant, _round_trip: Option<Duration>, _ecn: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn on_loss(&mut self, _now: Instant) {}

    fn on_timeout(&mut self, _now: Instant) {}

    fn forget(&mut self) {
        self.in_flight = 0;
    }
}

/// Losses in one round trip that are congestion: three, or this share of a large window. A queue that
/// is full drops several datagrams in a row. A single loss is noise of the path, and does not slow
/// the sender down.
const CONGESTION: (f64, f64) = (3.0, 1.0 / 8.0);
/// Near the window at which the path was congested last, the window grows this much more slowly.
const NEAR: (f64, f64) = (0.75, 8.0);
/// The window grows while the round trip is at most one and a half times the shortest one and this:
/// a longer queue wins nothing, and makes the answer to a loss late.
const QUEUE: Duration = Duration::from_micros(500);

/// A window that grows until the path is full, and halves at most once a round trip when the path is
/// congested: additive increase, multiplicative decrease, with a slow start.
#[derive(Clone, Debug)]
pub struct Aimd {
    window: f64,
    /// Below this the window doubles every round trip.
    threshold: f64,
    first: f64,
    most: f64,
    in_flight: u32,
    /// How many results in a row were late.
    late: u32,
    smoothed: Option<Duration>,
    shortest: Option<Duration>,
    /// The window at which the path was congested last.
    congested_at: f64,
    /// Losses of the round trip that ends then.
    losses: (u32, Instant),
    /// Until then the reaction to a congestion is under way.
    reacted_until: Instant,
}

impl Aimd {
    /// A window that begins with `first` blocks and has at most `most`.
    #[must_use]
    pub fn new(first: u32, most: u32) -> Self {
        let most = f64::from(most.max(1));
        let first = f64::from(first.max(1)).min(most);
        Self {
            window: first,
            threshold: most,
            first,
            most,
            in_flight: 0,
            late: 0,
            smoothed: None,
            shortest: None,
            congested_at: f64::INFINITY,
            losses: (0, Instant(0)),
            reacted_until: Instant(0),
        }
    }

    fn measure(&mut self, sample: Duration) {
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
        self.smoothed = Some(self.smoothed.map_or(sample, |smoothed| (smoothed * 7 + sample) / 8));
    }

    fn grow(&mut self, round_trip: Option<Duration>) {
        let queues = match (round_trip, self.shortest) {
            (Some(sample), Some(shortest)) => sample > shortest * 3 / 2 + QUEUE,
            _ => true,
        };
        self.late = if queues { self.late.saturating_add(1) } else { 0 };
        if queues {
            // Late for two windows: the path is full, and the slow start is over. Results are late
            // for one window where another worker begins the operation later.
            if f64::from(self.late) > self.window * 2.0 {
                self.threshold = self.threshold.min(self.window);
            }
            return;
        }
        // A window that the program does not fill says nothing of the path.
        if f64::from(self.in_flight) * 2.0 >= self.window {
            let (near, slower) = NEAR;
            let step = match self.window {
                window if window < self.threshold => 1.0,
                window if window < self.congested_at * near => 1.0 / window,
                window => 1.0 / (window * slower),
            };
            self.window = (self.window + step).min(self.most);
        }
    }

    fn shrink(&mut self, now: Instant, to: f64) {
        if now < self.reacted_until {
            return;
        }
        self.congested_at = self.window;
        self.window = to.max(1.0);
        self.threshold = self.window;
        self.reacted_until = now + self.smoothed.unwrap_or(QUEUE);
    }
}

impl Window for Aimd {
    fn room(&self) -> u32 {
        (self.window as u32).saturating_sub(self.in_flight)
    }

    fn state(&self) -> (u32, u32) {
        (self.window as u32, self.in_flight)
    }

    fn on_sent(&mut self) {
        self.in_flight += 1;
    }

    fn on_result(&mut self, now: Instant, round_trip: Option<Duration>, ecn: bool) {
        if let Some(sample) = round_trip {
            self.measure(sample);
        }
        if ecn {
            self.shrink(now, self.window / 2.0);
        } else {
            self.grow(round_trip);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn on_loss(&mut self, now: Instant) {
        let (count, until) = &mut self.losses;
        if now >= *until {
            (*count, *until) = (0, now + self.smoothed.unwrap_or(QUEUE));
        }
        *count += 1;
        let (least, share) = CONGESTION;
        if f64::from(*count) >= (self.window * share).max(least) {
            self.shrink(now, self.window / 2.0);
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        self.shrink(now, self.first.min(self.window / 2.0));
    }

    fn forget(&mut self) {
        self.in_flight = 0;
    }
}
