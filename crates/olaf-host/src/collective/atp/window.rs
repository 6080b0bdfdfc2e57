//! The congestion window of a worker (ATP §3.7).

use super::options::Congestion;
use core::time::Duration;
use olaf_engine::Instant;

/// The bytes of an MTU.
const MTU: u32 = 1500;
/// Headers of UDP, IP and Ethernet.
const HEADERS: u32 = 42;

/// Losses of a round trip that are congestion whatever the round trip says: three, or this share of a
/// larger window.
const CONGESTION: (f64, f64) = (3.0, 1.0 / 4.0);
/// There is a queue where the round trip is longer than one and a half times the shortest one and this.
const QUEUE: Duration = Duration::from_micros(100);

/// Additive increase, multiplicative decrease, as the paper has it: an MTU for each parameter packet
/// below the threshold, an MTU a window above it; half the window after an ECN mark.
///
/// differs: the window halves at most once a round trip, because one congestion marks a whole window.
/// The paper names no first threshold and no largest window; both are options here.
///
/// differs: in the paper every loss halves the window. Then one lost packet of a thousand leaves a
/// sixteenth of a line of 1 Gbit/s with a round trip of 1 ms, because all workers feel the losses of
/// each. Here a loss takes away the queue that the round trip shows, at most half the window. Where
/// there is no queue, a loss is noise of the path, unless a quarter of the window is lost.
/// [`Congestion::Halve`] is the paper's rule.
#[derive(Clone, Debug)]
pub struct AtpWindow {
    window: f64,
    threshold: f64,
    most: f64,
    congestion: Congestion,
    /// Packets of an MTU.
    step: f64,
    in_flight: u32,
    smoothed: Option<Duration>,
    shortest: Option<Duration>,
    /// The shortest round trips of this round and of the one before: a round trip has the wait for
    /// other workers in it, and the shortest one has the least of it.
    recent: [Option<Duration>; 2],
    /// Fragments lost in this round.
    lost: u32,
    round_ends: Instant,
    reacted_until: Instant,
}

impl AtpWindow {
    /// A window that begins with `first` packets, grows fast up to `threshold`, and has at most `most`.
    #[must_use]
    pub fn new(first: u32, threshold: u32, most: u32, datagram_bytes: u32) -> Self {
        let most = f64::from(most.max(1));
        Self {
            window: f64::from(first.max(1)).min(most),
            threshold: f64::from(threshold),
            most,
            congestion: Congestion::Queue,
            step: f64::from((MTU / (datagram_bytes + HEADERS)).max(1)),
            in_flight: 0,
            smoothed: None,
            shortest: None,
            recent: [None; 2],
            lost: 0,
            round_ends: Instant(0),
            reacted_until: Instant(0),
        }
    }

    /// The same, which follows another rule.
    #[must_use]
    pub fn following(mut self, congestion: Congestion) -> Self {
        self.congestion = congestion;
        if congestion == Congestion::Off {
            self.window = self.most;
        }
        self
    }

    fn shrink(&mut self, now: Instant, by: f64) {
        if now < self.reacted_until {
            return;
        }
        self.window = (self.window * by).max(1.0);
        self.threshold = self.window;
        self.reacted_until = now + self.smoothed.unwrap_or_default();
    }

    fn measure(&mut self, now: Instant, sample: Duration) {
        let least = |old: Option<Duration>| Some(old.map_or(sample, |old| old.min(sample)));
        self.smoothed = Some(self.smoothed.map_or(sample, |old| (old * 7 + sample) / 8));
        self.shortest = least(self.shortest);
        self.begin_round(now);
        self.recent[0] = least(self.recent[0]);
    }

    fn begin_round(&mut self, now: Instant) {
        if now >= self.round_ends {
            self.recent = [None, self.recent[0]];
            self.lost = 0;
            self.round_ends = now + self.smoothed.unwrap_or_default();
        }
    }

    /// The share of the window that would do without a queue, at least a half; 1 where there is none.
    fn without_queue(&self) -> f64 {
        let recent = self.recent.into_iter().flatten().min();
        let Some((shortest, recent)) = self.shortest.zip(recent) else { return 0.5 };
        if recent <= shortest * 3 / 2 + QUEUE {
            return 1.0;
        }
        (shortest.as_secs_f64() / recent.as_secs_f64()).max(0.5)
    }
}

impl AtpWindow {
    /// How many more packets may be sent now.
    #[must_use]
    pub fn room(&self) -> u32 {
        (self.window as u32).saturating_sub(self.in_flight)
    }

    /// The window, in packets.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.window as u32
    }

    /// A packet was sent.
    pub fn on_sent(&mut self) {
        self.in_flight += 1;
    }

    /// A packet is not on its way any more: its answer came, or it is lost.
    pub fn on_gone(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A parameter packet came. `ecn`: a link on the way is congested. `round_trip` is known for
    /// fragments that were sent once.
    pub fn on_answer(&mut self, now: Instant, round_trip: Option<Duration>, ecn: bool) {
        if let Some(sample) = round_trip {
            self.measure(now, sample);
        }
        if self.congestion == Congestion::Off {
            return;
        }
        if ecn {
            self.shrink(now, 0.5);
        } else {
            let share = if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
            self.window = (self.window + self.step * share).min(self.most);
        }
    }

    /// Three parameter packets out of order. A time-out is none: it may be a slow worker's fault.
    pub fn on_loss(&mut self, now: Instant) {
        match self.congestion {
            Congestion::Queue => {}
            Congestion::Halve => return self.shrink(now, 0.5),
            Congestion::Off => return,
        }
        self.begin_round(now);
        self.lost += 1;
        let (least, share) = CONGESTION;
        if f64::from(self.lost) >= (self.window * share).max(least) {
            self.shrink(now, 0.5);
            return;
        }
        let share = self.without_queue();
        if share < 1.0 {
            self.shrink(now, share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn window() -> AtpWindow {
        // The paper's frames.
        AtpWindow::new(200, 1000, 8192, 306 - 42)
    }

    fn at(ms: u64) -> Instant {
        Instant(1_000_000 * ms)
    }

    #[test]
    fn it_begins_with_200_packets_and_grows_by_an_mtu_for_each_answer() {
        let mut window = window();
        assert_eq!((window.packets(), window.room()), (200, 200));
        (0..200).for_each(|_| window.on_sent());
        assert_eq!(window.room(), 0);
        for _ in 0..10 {
            window.on_answer(at(0), Some(MS), false);
            window.on_gone();
        }
        assert_eq!(
            (window.packets(), window.room()),
            (240, 50),
            "4 packets of 306 bytes are an MTU"
        );
    }

    #[test]
    fn a_mark_halves_it_once_in_a_round_trip_and_then_it_grows_slowly() {
        let mut window = window();
        window.on_answer(Instant(1), Some(MS), false);
        window.on_answer(Instant(2), None, true);
        window.on_answer(Instant(3), None, true);
        assert_eq!(window.packets(), 102);
        (0..102).for_each(|_| window.on_answer(Instant(9), None, false));
        assert!((105..=106).contains(&window.packets()), "an MTU a window");
        window.on_answer(at(20), None, true);
        assert!(window.packets() < 55);
    }

    #[test]
    fn a_loss_on_a_path_without_a_queue_is_noise() {
        let mut window = window();
        for ms in 1..100 {
            window.on_answer(at(ms), Some(MS), false);
            window.on_loss(at(ms));
        }
        assert!(window.packets() > 500);
    }

    #[test]
    fn a_loss_takes_the_queue_away_and_at_most_half_the_window() {
        for (trip, least, most) in [(1700, 124, 126), (4000, 105, 107)] {
            let mut window = window();
            let trip = Duration::from_micros(trip);
            window.on_answer(at(1), Some(MS), false);
            window.on_answer(at(10), Some(trip), false);
            window.on_loss(at(10));
            assert_eq!(window.packets(), 208, "the shortest trip of two rounds counts");
            window.on_answer(at(20), Some(trip), false);
            window.on_loss(at(20));
            window.on_loss(at(20));
            assert!((least..most).contains(&window.packets()), "{trip:?}: {}", window.packets());
        }
    }

    #[test]
    fn losses_of_a_quarter_of_the_window_are_congestion() {
        let mut window = window();
        window.on_answer(at(1), Some(MS), false);
        (0..51).for_each(|_| window.on_loss(at(5)));
        assert_eq!(window.packets(), 102);
    }

    #[test]
    fn as_the_paper_has_it_a_loss_halves_it_and_without_control_nothing_does() {
        let mut halves = window().following(Congestion::Halve);
        halves.on_answer(at(1), Some(MS), false);
        halves.on_loss(at(1));
        halves.on_loss(at(1));
        assert_eq!(halves.packets(), 102, "once in a round trip");
        let mut fixed = window().following(Congestion::Off);
        for ms in 1..100 {
            fixed.on_answer(at(ms), Some(MS), true);
            fixed.on_loss(at(ms));
        }
        assert_eq!(fixed.packets(), 8192);
    }

    #[test]
    fn it_never_closes_and_never_exceeds_its_limit() {
        let mut window = AtpWindow::new(10, 1000, 12, 264);
        (0..100).for_each(|_| window.on_answer(at(0), None, false));
        assert_eq!(window.packets(), 12);
        (0..100).for_each(|_| window.on_answer(at(0), None, true));
        assert_eq!(window.packets(), 1);
    }
}
