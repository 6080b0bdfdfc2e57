//! How long an answer takes, and when to stop waiting for one (RFC 6298).

use core::time::Duration;

/// Below this a repetition costs more than it wins: threads of the other side need time to wake.
const LEAST: Duration = Duration::from_millis(20);

/// The round trip, smoothed, and how much it varies. Every sample is of a message whose own time
/// came back with its answer, so that repetitions blur nothing (Karn's rule is not needed).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    measured: Option<Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    smoothed: Duration,
    variance: Duration,
}

impl RoundTrip {
    pub(crate) fn sample(&mut self, sample: Duration) {
        self.measured = Some(match self.measured {
            None => Measured { smoothed: sample, variance: sample / 2 },
            Some(Measured { smoothed, variance }) => Measured {
                variance: (variance * 3 + smoothed.abs_diff(sample)) / 4,
                smoothed: (smoothed * 7 + sample) / 8,
            },
        });
    }

    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.measured.map(|measured| measured.smoothed)
    }

    /// By how much one datagram may be later than another.
    pub(crate) fn varies(&self) -> Duration {
        self.measured.map_or(Duration::ZERO, |measured| measured.variance * 4)
    }

    /// An answer that is not here after this time is likely lost; `None` before the first sample.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.measured.map(|measured| measured.smoothed + measured.variance * 4)
    }

    /// When to repeat what got no answer.
    pub(crate) fn retry_after(&self) -> Duration {
        self.patience().unwrap_or_default().max(LEAST)
    }

    /// As a join tells it; 0: not known.
    pub(crate) fn as_micros(&self) -> u32 {
        let micros = |d: Duration| u32::try_from(d.as_micros()).unwrap_or(u32::MAX).max(1);
        self.measured.map_or(0, |measured| micros(measured.smoothed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_steady_path_is_waited_for_hardly_longer_than_it_takes() {
        let mut path = RoundTrip::default();
        assert_eq!((path.smoothed(), path.retry_after(), path.as_micros()), (None, LEAST, 0));
        path.sample(ms(100));
        assert_eq!((path.smoothed(), path.retry_after()), (Some(ms(100)), ms(300)));
        (0..40).for_each(|_| path.sample(ms(100)));
        assert!(path.retry_after() < ms(101), "{:?}", path.retry_after());
        assert_eq!(path.as_micros(), 100_000);
    }

    #[test]
    fn a_path_that_varies_is_waited_for_longer() {
        let mut path = RoundTrip::default();
        (0..40).for_each(|at| path.sample(ms(if at % 2 == 0 { 100 } else { 200 })));
        assert!(path.retry_after() > ms(300), "{:?}", path.retry_after());
    }
}
