//! How long the path to the switch and back takes.

use crate::push_pull::round_trip::RoundTrip;
use core::time::Duration;
use olaf_engine::Instant;

/// A question that is repeated sooner than this costs more than it wins: the switch needs time to
/// wake.
const LEAST: Duration = Duration::from_millis(2);
/// As long as nothing is known.
const UNKNOWN: Duration = Duration::from_millis(20);

/// The round trip, from the times that answers give back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    round_trip: RoundTrip,
    /// The quickest answer to a join. Such an answer may have waited for other workers.
    of_join: Option<Duration>,
}

impl Path {
    pub(super) fn sample(&mut self, sample: Duration) {
        self.round_trip.sample(sample);
    }

    pub(super) fn sample_join(&mut self, sample: Duration) {
        self.of_join = Some(self.of_join.map_or(sample, |least| least.min(sample)));
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.round_trip.smoothed().or(self.of_join)
    }

    /// What has no answer after this time is likely lost.
    pub(super) fn patience(&self) -> Duration {
        let of_join = || self.of_join.map(|least| least * 3);
        self.round_trip.patience().or_else(of_join).unwrap_or(UNKNOWN).max(LEAST)
    }
}

/// `now` in microseconds, as messages carry it: never 0, which stands for "not said".
pub(super) fn micros(now: Instant) -> u32 {
    ((now.0 / 1000) as u32).max(1)
}

/// The time since `then_us`, microseconds that wrap.
pub(super) fn since(now: Instant, then_us: u32) -> Duration {
    Duration::from_micros(micros(now).wrapping_sub(then_us).into())
}
