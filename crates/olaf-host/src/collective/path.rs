//! How long the path to the switch and back takes.

use crate::push_pull::round_trip::RoundTrip;
use core::time::Duration;
use olaf_engine::Instant;

/// A question that is repeated sooner than this costs more than it wins: the switch needs time to
/// wake.
const LEAST: Duration = Duration::from_millis(1);
/// As long as nothing is known.
const UNKNOWN: Duration = Duration::from_millis(20);

/// What is known of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// From a piece to its result. Other workers' pieces are awaited in this time.
    round_trip: RoundTrip,
    /// The quickest answer to a join or a question.
    of_question: Option<Duration>,
}

impl Path {
    pub(super) fn sample(&mut self, sample: Duration) {
        self.round_trip.sample(sample);
    }

    pub(super) fn sample_question(&mut self, sample: Duration) {
        self.of_question = Some(self.of_question.map_or(sample, |least| least.min(sample)));
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.round_trip.smoothed().or(self.of_question)
    }

    /// The quickest answer to a question. A question that is repeated sooner is in vain.
    pub(super) const fn quickest(&self) -> Option<Duration> {
        self.of_question
    }

    /// A piece without a result for this time is likely lost. Slow workers make the time longer, up to
    /// a limit: after the last block of an operation only this time reveals a loss.
    pub(super) fn patience(&self) -> Duration {
        let most = self.of_question.map_or(Duration::MAX, |least| least * 4 + UNKNOWN);
        let of_question = || self.of_question.map(|least| least * 3);
        let patience = self.round_trip.patience().or_else(of_question).unwrap_or(UNKNOWN);
        patience.clamp(LEAST, most.max(LEAST))
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
