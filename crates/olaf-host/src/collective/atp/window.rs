//! The congestion window of a worker (ATP §3.7).

use crate::collective::window::Window;
use core::time::Duration;
use olaf_engine::Instant;

/// The bytes of an MTU.
const MTU: u32 = 1500;
/// Headers of UDP, IP and Ethernet.
const HEADERS: u32 = 42;

/// Additive increase, multiplicative decrease, as the paper has it: an MTU for each parameter packet
/// below the threshold, an MTU a window above it; half the window after an ECN mark or three
/// parameter packets out of order.
///
/// differs: the window halves at most once a round trip, because one congestion marks a whole window.
/// The paper names no first threshold and no largest window; both are options here.
#[derive(Clone, Debug)]
pub struct AtpWindow {
    window: f64,
    threshold: f64,
    most: f64,
    /// Packets of an MTU.
    step: f64,
    in_flight: u32,
    smoothed: Option<Duration>,
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
            step: f64::from((MTU / (datagram_bytes + HEADERS)).max(1)),
            in_flight: 0,
            smoothed: None,
            reacted_until: Instant(0),
        }
    }

    fn halve(&mut self, now: Instant) {
        if now < self.reacted_until {
            return;
        }
        self.window = (self.window / 2.0).max(1.0);
        self.threshold = self.window;
        self.reacted_until = now + self.smoothed.unwrap_or_default();
    }
}

impl Window for AtpWindow {
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
            self.smoothed = Some(self.smoothed.map_or(sample, |old| (old * 7 + sample) / 8));
        }
        if ecn {
            self.halve(now);
        } else {
            let share = if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
            self.window = (self.window + self.step * share).min(self.most);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Three parameter packets out of order.
    fn on_loss(&mut self, now: Instant) {
        self.halve(now);
    }

    /// differs: a time-out may be a slow worker's fault, and is no sign of congestion.
    fn on_timeout(&mut self, _now: Instant) {}

    fn forget(&mut self) {
        self.in_flight = 0;
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

    #[test]
    fn it_begins_with_200_packets_and_grows_by_an_mtu_for_each_answer() {
        let mut window = window();
        assert_eq!(window.state(), (200, 0));
        (0..200).for_each(|_| window.on_sent());
        assert_eq!(window.room(), 0);
        (0..10).for_each(|_| window.on_result(Instant(0), Some(MS), false));
        assert_eq!(window.state(), (240, 190), "4 packets of 306 bytes are an MTU");
    }

    #[test]
    fn a_mark_halves_it_once_in_a_round_trip_and_then_it_grows_slowly() {
        let mut window = window();
        window.on_result(Instant(1), Some(MS), false);
        window.on_result(Instant(2), None, true);
        window.on_loss(Instant(3));
        assert_eq!(window.state().0, 102);
        let before = window.state().0;
        (0..before).for_each(|_| window.on_result(Instant(9), None, false));
        assert!((before + 3..=before + 4).contains(&window.state().0), "an MTU a window");
        window.on_loss(Instant(20_000_000));
        assert!(window.state().0 < 55);
    }

    #[test]
    fn it_never_closes_and_never_exceeds_its_limit() {
        let mut window = AtpWindow::new(10, 1000, 12, 264);
        (0..100).for_each(|_| window.on_result(Instant(0), None, false));
        assert_eq!(window.state().0, 12);
        (0..100).for_each(|_| window.on_loss(Instant(0)));
        assert_eq!(window.state().0, 1);
    }
}
