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
/// The window grows while the round trip is at most one and a half times the shortest one and this, and shrinks
/// where the round trip stays longer. A queue lets a machine with few processors work on many datagrams at a
/// time. A longer queue wins nothing: each operation begins with all of it, and its first results wait behind it.
const QUEUE: Duration = Duration::from_millis(4);
/// The same after a loss: a longer queue makes the answer to a loss late.
const QUEUE_WITH_LOSSES: Duration = Duration::from_micros(500);

/// A piece that leaves at least this share of the window under way has filled it.
const FULL: f64 = 7.0 / 8.0;
/// The window is too large when results of that many windows were late without a pause. One window is late where
/// another worker rests for a moment.
const LATE: f64 = 1.25;
/// A window that shrinks to less than this share of itself must shorten the round trip, if a queue of this end
/// made it long.
const MUCH: f64 = 0.75;
/// The round trip is still the same when it is longer than this share of the one before.
const SAME: f64 = 0.9;
/// No result is late.
const ON_TIME: (u32, Duration) = (0, Duration::MAX);

/// A window that grows until the path is full, and halves at most once a round trip when the path is
/// congested: additive increase, multiplicative decrease, with a slow start. A slow start ends with up to twice
/// the window that fills the path, because each round trip tells of the window before. Nothing is lost then
/// where the buffers are large, so the length of the queue shrinks the window, too.
///
/// Only pieces that filled the window say whether it is too large. An operation begins on an empty path: its first
/// results are on time, however large the window is.
#[derive(Clone, Debug)]
pub struct Aimd {
    window: f64,
    /// Below this the window doubles every round trip.
    threshold: f64,
    first: f64,
    most: f64,
    in_flight: u32,
    /// Results to come of pieces that did not fill the window.
    untold: u32,
    /// How many results in a row were late, and the shortest of their round trips.
    late: (u32, Duration),
    /// The shortest round trip before the window was made much smaller, until results are on time again.
    shortened_at: Option<Duration>,
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
            untold: 0,
            late: ON_TIME,
            shortened_at: None,
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
        if self.untold > 0 {
            self.untold -= 1;
            return;
        }
        // The result of a piece that was lost says nothing of a queue.
        let Some(round_trip) = round_trip else { return };
        if self.has_queue(QUEUE) {
            return self.note_late(round_trip);
        }
        (self.late, self.shortened_at) = (ON_TIME, None);
        let (near, slower) = NEAR;
        let step = match self.window {
            window if window < self.threshold => 1.0,
            window if window < self.congested_at * near => 1.0 / window,
            window => 1.0 / (window * slower),
        };
        self.window = (self.window + step).min(self.most);
    }

    /// A result is late. After several: the path is full, the slow start is over, and the window shrinks to what
    /// fills the path.
    fn note_late(&mut self, round_trip: Duration) {
        let (count, least) = &mut self.late;
        (*count, *least) = (count.saturating_add(1), round_trip.min(*least));
        if f64::from(*count) <= self.window * LATE {
            return;
        }
        let least = *least;
        self.late = ON_TIME;
        if let Some(longest) = self.longest(QUEUE) {
            self.shorten(least, longest);
        }
        self.threshold = self.threshold.min(self.window);
    }

    /// Shrinks the window to what has a round trip of `longest`; it has at least `least`.
    fn shorten(&mut self, least: Duration, longest: Duration) {
        let before = self.shortened_at.take();
        if before.is_some_and(|before| least > before.mul_f64(SAME)) {
            // A smaller window did not help: the path itself has become longer.
            self.shortest = Some(least);
            return;
        }
        let share = (longest.as_secs_f64() / least.as_secs_f64()).clamp(0.5, 1.0);
        self.window = (self.window * share).max(self.first.min(self.window));
        self.shortened_at = (share < MUCH).then_some(least);
        // What is under way tells of the window before.
        self.untold = self.in_flight;
    }

    /// The round trip of a path with such a queue.
    fn longest(&self, queue: Duration) -> Option<Duration> {
        self.shortest.map(|shortest| shortest * 3 / 2 + queue)
    }

    /// Returns true if the newest round trip is longer than that of a path with such a queue.
    fn has_queue(&self, queue: Duration) -> bool {
        let both = self.newest.zip(self.longest(queue));
        both.is_none_or(|(newest, longest)| newest > longest)
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
        if self.in_flight == 0 {
            // A path that was empty has no queue. Results of small operations are late where another worker
            // always begins later.
            self.late = ON_TIME;
        }
        self.in_flight += 1;
        self.untold += u32::from(f64::from(self.in_flight) < self.window * FULL);
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
        (self.in_flight, self.untold) = (0, 0);
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
        let mut window = Aimd::new(16, 1000);
        stream(&mut window, 16, RTT);
        // The first pieces of all found a window that was not full.
        assert!((17..=19).contains(&window.state().0), "{:?}", window.state());
        for _ in 0..3 {
            let before = window.state().0;
            stream(&mut window, before, RTT);
            assert!(window.state().0 >= 2 * before - 3, "{before} and then {:?}", window.state());
        }
        let before = window.state().0;
        assert!(before > 100);
        // Operations of one window, whose results are all late: another worker begins them later.
        window.forget();
        (20..30).for_each(|ms| round(&mut window, at(ms), RTT * 10, false));
        assert_eq!(window.state(), (before, 0));
        stream(&mut window, 3 * before, RTT * 10);
        let after = window.state().0;
        assert!(after < before);
        // From here on it grows by one block a round trip at most.
        window.forget();
        stream(&mut window, after, RTT);
        assert!(window.state().0 <= after + 1);
    }

    /// Takes that many results, and sends as much as the window has room for after each.
    fn stream(window: &mut Aimd, results: u32, round_trip: Duration) {
        for _ in 0..results {
            (0..window.room()).for_each(|_| window.on_sent());
            window.on_result(at(100), Some(round_trip), false);
        }
    }

    #[test]
    fn a_queue_that_stays_shrinks_the_window_to_what_fills_the_path() {
        let mut window = Aimd::new(4, 1000);
        window.measure(RTT);
        window.window = 120.0;
        // A block takes 0.1 ms: 120 of them are a round trip of 12 ms.
        let per_block = RTT / 10;
        let round_trip = |window: &Aimd| per_block * window.state().0.max(10);
        for _ in 0..10_000 {
            let now = round_trip(&window);
            stream(&mut window, 1, now);
        }
        let longest = window.longest(QUEUE).expect("it has measured");
        let filled = (longest.as_secs_f64() / per_block.as_secs_f64()) as u32;
        let (blocks, _) = window.state();
        assert!(blocks.abs_diff(filled) <= 2, "{blocks} blocks; {filled} take {longest:?}");
    }

    /// An operation of that many blocks over a path with a round trip of [`RTT`], on which a block takes `each`. Returns
    /// the longest round trip.
    fn operation(window: &mut Aimd, now: &mut Instant, blocks: u32, each: Duration) -> Duration {
        let (mut left, mut free, mut longest) = (blocks, *now, Duration::ZERO);
        let mut under_way = alloc::collections::VecDeque::new();
        loop {
            for _ in 0..window.room().min(left) {
                free = free.max(*now) + each;
                under_way.push_back((*now, free + RTT));
                window.on_sent();
                left -= 1;
            }
            let Some((sent, back)) = under_way.pop_front() else { return longest };
            *now = (*now).max(back);
            let round_trip = back.since(sent);
            longest = longest.max(round_trip);
            window.on_result(*now, Some(round_trip), false);
        }
    }

    #[test]
    fn operations_that_begin_on_an_empty_path_build_no_long_queue() {
        let (mut window, mut now) = (Aimd::new(7, 1000), at(1));
        let mut longest = Duration::ZERO;
        for _ in 0..30 {
            longest = operation(&mut window, &mut now, 371, RTT / 10);
        }
        let allowed = window.longest(QUEUE).expect("it has measured");
        assert!(longest < allowed * 3 / 2, "{longest:?}, and {allowed:?} are allowed");
        assert!(longest > allowed / 2, "{longest:?}: the window fills the path");
    }

    #[test]
    fn a_path_that_has_become_longer_is_no_queue() {
        let mut window = Aimd::new(4, 1000);
        window.measure(RTT);
        window.window = 100.0;
        stream(&mut window, 10_000, RTT * 100);
        let (blocks, _) = window.state();
        assert!(blocks >= 50, "{blocks} blocks are left of 100");
        let before = blocks;
        stream(&mut window, 10_000, RTT * 100);
        assert!(window.state().0 > before, "{:?}", window.state());
    }

    #[test]
    fn a_window_is_not_shrunk_by_a_worker_that_begins_later() {
        let mut window = Aimd::new(4, 1000);
        window.measure(RTT);
        window.window = 40.0;
        for _ in 0..100 {
            // All that was sent before the other worker began, or while it rests, is late, and the rest is not.
            for _ in 0..2 {
                stream(&mut window, 40, RTT * 100);
                stream(&mut window, 20, RTT);
            }
            window.forget();
        }
        assert!(window.state().0 >= 40, "{:?}", window.state());
    }

    #[test]
    fn a_queue_leaves_the_first_window() {
        let mut window = Aimd::new(16, 1000);
        window.measure(RTT);
        window.window = 100.0;
        for times in [1000, 600, 360] {
            let before = window.state().0;
            while window.state().0 == before {
                stream(&mut window, 1, RTT * times);
            }
        }
        assert_eq!(window.state().0, 16);
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
