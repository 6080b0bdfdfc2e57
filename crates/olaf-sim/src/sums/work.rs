//! How long a worker computes. Draws depend on the seed, the job's place, the worker and the iteration alone: jobs of
//! other engines draw the same.

use super::spec::{JobSpec, StragglerSpec};
use crate::chance::Chance;
use core::f64::consts::TAU;
use core::time::Duration;

/// Draws of the times to compute.
const COMPUTE: u64 = 1 << 56;
/// Draws of the delays.
const DELAY: u64 = 2 << 56;

/// Time in which a worker computes its gradient, delays included.
pub(super) fn time_to_compute(
    seed: u64,
    job: usize,
    spec: &JobSpec,
    worker: usize,
    iteration: u32,
) -> Duration {
    let base = match &spec.compute_list_ns {
        Some(list) => list[(worker + iteration as usize) % list.len()],
        None => spec.compute_ns.expect("the scenario was checked"),
    };
    let purpose = COMPUTE | (job as u64) << 48 | (worker as u64) << 32 | u64::from(iteration);
    let spread = factor(&mut Chance::new(seed, purpose), spec.compute_spread);
    let delay = spec.straggler.map_or(0.0, |of| delay_ns(seed, job, spec, of, worker, iteration));
    Duration::from_nanos((base as f64 * spread + delay).round() as u64)
}

/// A log-normal factor of mean 1.
fn factor(chance: &mut Chance, spread: f64) -> f64 {
    if spread == 0.0 {
        return 1.0;
    }
    let variance = (1.0 + spread * spread).ln();
    let (radius, angle) = (1.0 - chance.fraction(), chance.fraction());
    let normal = (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos();
    (normal * variance.sqrt() - variance / 2.0).exp()
}

/// Delays of a worker in an iteration. At each point one worker, which any may be, decides.
fn delay_ns(
    seed: u64,
    job: usize,
    spec: &JobSpec,
    of: StragglerSpec,
    worker: usize,
    iteration: u32,
) -> f64 {
    let mut chance = Chance::new(seed, DELAY | (job as u64) << 48 | u64::from(iteration));
    let mut delay = 0.0;
    for _ in 0..of.points {
        let chosen = chance.up_to(u64::from(spec.workers) - 1);
        let is_slow = chance.happens(of.probability);
        let times = of.least + chance.fraction() * (of.most - of.least);
        if is_slow && chosen == worker as u64 {
            delay += times * of.typical_ns as f64;
        }
    }
    delay
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn job(more: Value) -> JobSpec {
        let mut job = json!({
            "name": "a", "engine": "ring", "workers": 4, "model_bytes": 4, "iterations": 1,
        });
        let fields = job.as_object_mut().expect("a table");
        more.as_object().expect("a table").iter().for_each(|(key, value)| {
            fields.insert(key.clone(), value.clone());
        });
        serde_json::from_value(job).expect("it is well-formed")
    }

    #[test]
    fn a_spread_keeps_the_mean() {
        let job = job(json!({ "compute_ns": 1_000_000, "compute_spread": 0.2 }));
        let all: Vec<f64> = (0..20_000)
            .map(|at| time_to_compute(1, 0, &job, at % 4, at as u32).as_nanos() as f64 / 1e6)
            .collect();
        let mean = all.iter().sum::<f64>() / 2e4;
        let variance = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 2e4;
        assert!((0.99..1.01).contains(&mean), "{mean}");
        assert!((0.19..0.21).contains(&variance.sqrt()), "{}", variance.sqrt());
    }

    #[test]
    fn one_worker_is_delayed_at_each_point() {
        let straggler = json!({ "probability": 0.16, "typical_ns": 1_000_000 });
        let job = job(json!({ "compute_ns": 0, "straggler": straggler }));
        let delays = |iteration| -> Vec<f64> {
            let of = |worker| time_to_compute(1, 0, &job, worker, iteration).as_nanos() as f64;
            (0..4).map(|worker| of(worker) / 1e6).collect()
        };
        let all: Vec<Vec<f64>> = (0..10_000).map(delays).collect();
        // Three points, 16 %, 1.25 iterations.
        let mean = all.iter().flatten().sum::<f64>() / 1e4;
        assert!((0.57..0.63).contains(&mean), "{mean}");
        assert!(all.iter().flatten().all(|delay| *delay == 0.0 || *delay >= 0.5));
        assert!(all.iter().all(|of| of.iter().filter(|delay| **delay > 0.0).count() <= 3));
    }

    #[test]
    fn a_recorded_list_goes_round() {
        let job = job(json!({ "compute_list_ns": [1, 2, 3] }));
        let of = |worker, iteration| time_to_compute(1, 0, &job, worker, iteration).as_nanos();
        assert_eq!([of(0, 0), of(0, 1), of(0, 3), of(1, 0), of(2, 1)], [1, 2, 1, 2, 1]);
    }
}
