//! How many blocks may be on their way at once.

use alloc::boxed::Box;
use core::time::Duration;
use olaf_engine::Instant;

/// The first windows of all workers together have this many bytes: a switch's socket takes as many
/// without a loss.
const FIRST_BYTES_OF_ALL: u32 = 256 << 10;
/// The first window of a worker has at most this many bytes.
const FIRST_BYTES: u32 = 64 << 10;

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

/// The window of a generation of `workers`, in blocks of `block_bytes`, `most` at most. It has `fixed` blocks where the
/// program asked for a size, and follows congestion otherwise.
pub(super) fn of_generation(
    fixed: Option<u32>,
    workers: u32,
    block_bytes: u32,
    most: u32,
) -> Box<dyn Window> {
    if let Some(blocks) = fixed {
        return Box::new(Fixed::new(blocks.min(most)));
    }
    let bytes = (FIRST_BYTES_OF_ALL / workers.max(1)).min(FIRST_BYTES);
    Box::new(Aimd::new((bytes / block_bytes.max(1)).max(2), most))
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
/// The window grows while the round trip is at most one and a half times the shortest one and this.
/// A queue lets a machine with few processors work on many datagrams at a time.
const QUEUE: Duration = Duration::from_millis(4);
/// The same after a loss: a longer queue makes the answer to a loss late.
const QUEUE_WITH_LOSSES: Duration = Duration::from_micros(500);

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
    newest: Option<Duration>,
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
            newest: None,
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
        self.newest = round_trip.or(self.newest);
        let queues = round_trip.is_none() || self.has_queue(QUEUE);
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

    /// Returns true if the newest round trip is longer than that of a path with such a queue.
    fn has_queue(&self, queue: Duration) -> bool {
        let both = self.newest.zip(self.shortest);
        both.is_none_or(|(newest, shortest)| newest > shortest * 3 / 2 + queue)
    }

    fn shrink(&mut self, now: Instant, to: f64) {
        if now < self.reacted_until {
            return;
        }
        self.congested_at = self.window;
        self.window = to.max(1.0);
        self.threshold = self.window;
        self.reacted_until = now + self.smoothed.unwrap_or(QUEUE_WITH_LOSSES);
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
            (*count, *until) = (0, now + self.smoothed.unwrap_or(QUEUE_WITH_LOSSES));
        }
        *count += 1;
        let (least, share) = CONGESTION;
        if f64::from(*count) >= (self.window * share).max(least) {
            self.shrink(now, self.window / 2.0);
        } else if self.has_queue(QUEUE_WITH_LOSSES) {
            self.window = (self.window * 7.0 / 8.0).max(1.0);
            self.threshold = self.threshold.min(self.window);
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        self.shrink(now, self.first.min(self.window / 2.0));
    }

    fn forget(&mut self) {
        self.in_flight = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant(1_000_000 * ms)
    }

    /// Sends what the window has room for, and takes as many results.
    fn round(window: &mut Aimd, now: Instant, round_trip: Duration, ecn: bool) {
        let sent = window.room();
        (0..sent).for_each(|_| window.on_sent());
        (0..sent).for_each(|_| window.on_result(now, Some(round_trip), ecn));
    }

    #[test]
    fn the_window_doubles_every_round_trip_until_results_come_late() {
        let mut window = Aimd::new(4, 1000);
        round(&mut window, at(1), RTT, false);
        // The second half of the round found a window that was half empty.
        assert!((6..=8).contains(&window.state().0), "{:?}", window.state());
        (2..20).for_each(|ms| round(&mut window, at(ms), RTT, false));
        let before = window.state().0;
        assert!(before > 100);
        (20..30).for_each(|ms| round(&mut window, at(ms), RTT * 10, false));
        assert_eq!(window.state(), (before, 0));
        // From here on it grows by one block a round trip at most.
        round(&mut window, at(30), RTT, false);
        assert!(window.state().0 <= before + 1);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut window = Aimd::new(8, 1000);
        for ms in 0..100 {
            window.on_sent();
            window.on_result(at(ms), Some(RTT), false);
        }
        assert_eq!(window.state(), (8, 0));
    }

    #[test]
    fn congestion_halves_the_window_once_in_a_round_trip() {
        let mut window = Aimd::new(64, 1000);
        window.measure(RTT);
        round(&mut window, at(10), RTT, true);
        assert_eq!(window.state().0, 32);
        round(&mut window, at(12), RTT, true);
        assert_eq!(window.state().0, 16);
        (0..100).for_each(|round_trips| round(&mut window, at(20 + 2 * round_trips), RTT, true));
        assert_eq!(window.state().0, 1);
    }

    #[test]
    fn single_losses_are_noise_and_many_are_congestion() {
        let mut window = Aimd::new(64, 1000);
        round(&mut window, at(1), RTT, false);
        let before = window.state().0;
        for ms in 10..100 {
            window.on_loss(at(ms));
        }
        assert_eq!(window.state().0, before);
        (0..before).for_each(|_| window.on_loss(at(200)));
        assert_eq!(window.state().0, before / 2);
    }

    #[test]
    fn a_loss_shortens_a_queue() {
        let mut window = Aimd::new(64, 1000);
        window.measure(RTT);
        round(&mut window, at(1), RTT * 4, false);
        let before = window.state().0;
        window.on_loss(at(2));
        assert_eq!(window.state().0, before * 7 / 8);
    }

    #[test]
    fn what_is_given_up_makes_room() {
        for mut window in [&mut Aimd::new(2, 8) as &mut dyn Window, &mut Fixed::new(2)] {
            let window = &mut window;
            (0..2).for_each(|_| window.on_sent());
            assert_eq!(window.room(), 0);
            window.forget();
            assert_eq!(window.room(), 2);
        }
    }
}
