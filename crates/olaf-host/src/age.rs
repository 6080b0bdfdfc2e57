//! Age-of-Model: how old what a server knows of a cluster is (OLAF §2.2, §6).

use core::time::Duration;
use olaf_engine::Instant;

/// The sawtooth of one cluster at its server: now minus the generation time of the newest
/// contribution received so far.
///
/// All clusters of a job are observed from one time on, the job's first delivery, or from when
/// they were known, if that is later. Until its own first delivery a cluster's age is the time
/// since then. A cluster that starves therefore ages, instead of having no age.
#[derive(Clone, Debug, Default)]
pub struct AgeOfModel {
    state: Option<State>,
    /// Sum of the ages just before each drop, nanoseconds, and how many drops.
    peaks: (u128, u64),
}

#[derive(Clone, Debug)]
struct State {
    observed_from: Instant,
    /// Generation time of the newest update that was delivered; none while the cluster starves.
    newest_generation_ns: Option<u64>,
    last_change: Instant,
    /// Integral of the age up to `last_change`, in nanoseconds squared.
    integral: f64,
}

impl AgeOfModel {
    /// A cluster that is not observed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts the age from `start` on, as the time since then until something is delivered.
    /// Changes nothing where the cluster is observed already.
    pub fn observe_from(&mut self, start: Instant) {
        self.state.get_or_insert(State {
            observed_from: start,
            newest_generation_ns: None,
            last_change: start,
            integral: 0.0,
        });
    }

    /// A delivery at `now`, whose newest contribution was generated at `generated_ns`. A cluster
    /// that is not observed yet is from now on.
    ///
    /// Older news than what is known already changes nothing: the age does not drop.
    pub fn deliver(&mut self, now: Instant, generated_ns: u64) {
        self.observe_from(now);
        let Some(state) = &mut self.state else { return };
        if let Some(known_ns) = state.newest_generation_ns {
            if generated_ns <= known_ns {
                return;
            }
            self.peaks.0 += u128::from(age_ns(now, known_ns));
            self.peaks.1 += 1;
        }
        state.integral = state.integral_until(now);
        state.last_change = state.last_change.max(now);
        state.newest_generation_ns = Some(generated_ns);
    }

    /// The age at `now`; nothing while the cluster is not observed.
    #[must_use]
    pub fn now(&self, now: Instant) -> Option<Duration> {
        self.state.as_ref().map(|state| Duration::from_nanos(state.age_ns(now)))
    }

    /// Time average of the age from when it is observed to `end`, nanoseconds; nothing where that
    /// is no time at all.
    #[must_use]
    pub fn mean_ns(&self, end: Instant) -> Option<f64> {
        let state = self.state.as_ref()?;
        let observed = end.since(state.observed_from).as_nanos();
        (observed > 0).then(|| state.integral_until(end) / observed as f64)
    }

    /// Mean of the ages just before each delivery but the first (Peak Age-of-Model, OLAF §6),
    /// nanoseconds; nothing where the age never dropped like that.
    #[must_use]
    pub fn peak_mean_ns(&self) -> Option<f64> {
        (self.peaks.1 > 0).then(|| self.peaks.0 as f64 / self.peaks.1 as f64)
    }

    /// Generation time of the newest contribution received so far, nanoseconds.
    #[must_use]
    pub fn newest_generation_ns(&self) -> Option<u64> {
        self.state.as_ref().and_then(|state| state.newest_generation_ns)
    }
}

impl State {
    fn integral_until(&self, end: Instant) -> f64 {
        let length = end.since(self.last_change).as_nanos() as f64;
        self.integral + length * (self.age_ns(self.last_change) as f64 + length / 2.0)
    }

    fn age_ns(&self, now: Instant) -> u64 {
        age_ns(now, self.newest_generation_ns.unwrap_or(self.observed_from.0))
    }
}

fn age_ns(now: Instant, generated_ns: u64) -> u64 {
    // A worker's clock may be ahead of the server's: younger than new is new.
    now.0.saturating_sub(generated_ns)
}

/// Jain's fairness index of non-negative values: 1 when all are equal, 1/n when one has all.
/// Nothing for no values; 1 when all are zero.
#[must_use]
pub fn jain(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        n += 1.0;
        sum += value;
        squares += value * value;
    }
    if n == 0.0 {
        None
    } else if squares == 0.0 {
        Some(1.0)
    } else {
        Some(sum * sum / (n * squares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_the_area_of_the_sawtooth_over_its_length() {
        let mut age = AgeOfModel::new();
        age.deliver(Instant(10), 4); // age 6
        age.deliver(Instant(20), 15); // age 16 before, 5 after
        // 10..20: 6 to 16, area 110; 20..30: 5 to 15, area 100.
        assert_eq!(age.mean_ns(Instant(30)), Some(210.0 / 20.0));
        assert_eq!(age.peak_mean_ns(), Some(16.0));
        assert_eq!(age.now(Instant(30)), Some(Duration::from_nanos(15)));
    }

    #[test]
    fn older_news_does_not_make_the_model_younger_or_older() {
        let mut age = AgeOfModel::new();
        age.deliver(Instant(10), 9);
        age.deliver(Instant(20), 5);
        assert_eq!(age.now(Instant(20)), Some(Duration::from_nanos(11)));
        assert_eq!(age.peak_mean_ns(), None);
    }

    #[test]
    fn before_it_is_observed_there_is_no_age() {
        let age = AgeOfModel::new();
        assert_eq!((age.now(Instant(5)), age.mean_ns(Instant(5))), (None, None));
    }

    #[test]
    fn until_the_first_delivery_the_age_is_the_time_since_it_is_observed() {
        let mut age = AgeOfModel::new();
        age.observe_from(Instant(10));
        assert_eq!(age.now(Instant(30)), Some(Duration::from_nanos(20)));
        assert_eq!(age.mean_ns(Instant(30)), Some(10.0));
        assert_eq!(age.newest_generation_ns(), None);
        // 10..30: 0 to 20, area 200; 30..40: 5 to 15, area 100.
        age.deliver(Instant(30), 25);
        assert_eq!(age.mean_ns(Instant(40)), Some(300.0 / 30.0));
        assert_eq!(age.peak_mean_ns(), None);
        age.observe_from(Instant(35));
        assert_eq!(age.mean_ns(Instant(40)), Some(300.0 / 30.0));
    }

    #[test]
    fn a_starved_cluster_makes_a_job_unfair() {
        let (mut fed, mut starved) = (AgeOfModel::new(), AgeOfModel::new());
        fed.deliver(Instant(0), 0);
        starved.observe_from(Instant(0));
        (1..=100).for_each(|at| fed.deliver(Instant(at), at));
        let means = [&fed, &starved].map(|age| age.mean_ns(Instant(100)).unwrap_or_default());
        assert_eq!(means, [0.5, 50.0]);
        let index = jain(means).unwrap_or_default();
        assert!((index - 50.5 * 50.5 / (2.0 * 2_500.25)).abs() < 1e-12, "{index}");
    }

    #[test]
    fn fairness_is_one_for_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(jain([3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain([4.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain([]), None);
    }
}
