//! Age-of-Model of late: what a server tells senders of themselves and of the others.

use core::time::Duration;
use olaf_engine::Instant;

/// Over how long [`RecentAge`] forgets.
const RECENT: Duration = Duration::from_secs(1);
/// A cluster without an update for this time is left out of the mean.
const GONE: Duration = Duration::from_secs(10);

/// The Age-of-Model of one cluster averaged over about the last second: what was long ago counts
/// ever less.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentAge {
    state: Option<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    newest_ns: u64,
    /// When something newer came last, and the average until then.
    since: Instant,
    mean_ns: f64,
}

impl RecentAge {
    /// A delivery at `now`, whose newest contribution was generated at `generated_ns`.
    pub fn deliver(&mut self, now: Instant, generated_ns: u64) {
        let before = self.state.map_or(0, |state| state.newest_ns);
        let newest_ns = before.max(generated_ns);
        let mean_ns = self.mean_ns(now).unwrap_or_else(|| now.0.saturating_sub(newest_ns) as f64);
        self.state = Some(State { newest_ns, since: now, mean_ns });
    }

    /// The average at `now`, nanoseconds; nothing before the first delivery.
    #[must_use]
    pub fn mean_ns(&self, now: Instant) -> Option<f64> {
        let State { newest_ns, since, mean_ns } = self.state?;
        let length = now.since(since);
        // Mean age since the last delivery, against what was known then.
        let passed = since.0.saturating_sub(newest_ns) as f64 + length.as_nanos() as f64 / 2.0;
        let kept = libm::exp(-length.as_secs_f64() / RECENT.as_secs_f64());
        Some(passed + (mean_ns - passed) * kept)
    }

    fn is_gone(&self, now: Instant) -> bool {
        self.state.is_none_or(|state| now.since(state.since) > GONE)
    }
}

/// Mean over the clusters with a recent update, in nanoseconds; 0 if there is none.
#[must_use]
pub fn mean_of<'a>(clusters: impl IntoIterator<Item = &'a RecentAge>, now: Instant) -> f64 {
    let here = clusters.into_iter().filter(|age| !age.is_gone(now));
    let ages = here.filter_map(|age| age.mean_ns(now));
    let (sum, count) = ages.fold((0.0, 0u32), |(sum, count), age| (sum + age, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_steady_sawtooth_settles_at_its_mean() {
        let mut age = RecentAge::default();
        assert_eq!(age.mean_ns(Instant(5)), None);
        // Every 100 ms what was generated 20 ms before: ages from 20 to 120 ms.
        for k in 1..=100 {
            age.deliver(Instant(k * 100 * MS), k * 100 * MS - 20 * MS);
        }
        let mean = age.mean_ns(Instant(10_000 * MS)).expect("delivered");
        assert!((mean - 70.0 * MS as f64).abs() < 0.1 * MS as f64, "{mean}");
    }

    #[test]
    fn who_falls_silent_ages_and_at_last_counts_no_more() {
        let (mut silent, mut steady) = (RecentAge::default(), RecentAge::default());
        silent.deliver(Instant(0), 0);
        for k in 0..=20 {
            steady.deliver(Instant(k * 1_000 * MS), k * 1_000 * MS);
        }
        let mean = |s: u64| mean_of([&silent, &steady], Instant(s * 1_000 * MS)) / MS as f64;
        assert!(mean(9) > 2_000.0, "{}", mean(9));
        assert_eq!(mean_of([&silent], Instant(11_000 * MS)), 0.0);
    }
}
