//! Weights are stored at the workers (iSwitch §4.1): they are equal bit for bit at each iteration, although the
//! switch adds floats in the order in which they come.

use super::job::*;
use core::time::Duration;
use olaf_host::collective::{Collective, Label, Operation, Reduction};
use olaf_sim::Wire;
use olaf_wire::reduce::LaneType;

const LANES: usize = 2000;
const ITERATIONS: u32 = 40;

/// A gradient whose sum depends on the order of its terms.
fn gradient(end: u32, iteration: u32, weights: &[f32]) -> Vec<u8> {
    let scale = [1.0e-3, 1.0, 0.37, 1.0e4, 7.7e-6][end as usize % 5];
    let noise = |at: usize| (at as f32 * 0.7 + (end * 31 + iteration) as f32).sin() * scale;
    let lanes = weights.iter().enumerate().map(|(at, weight)| weight * 0.1 + noise(at));
    lanes.flat_map(f32::to_le_bytes).collect()
}

fn trains(setting: Setting) {
    let workers = setting.workers;
    let mut job = Job::new(setting);
    job.run_for(Duration::from_millis(100));
    let mut weights = vec![vec![0.5f32; LANES]; workers as usize];
    let mut orders_differ = false;
    for iteration in 0..ITERATIONS {
        for end in 0..workers {
            let lanes = gradient(end, iteration, &weights[end as usize]);
            let operation = Operation {
                lane_type: LaneType::F32,
                reduction: Reduction::Mean,
                buffer: Box::new(lanes),
                accepts_partial: false,
                label: Label::default(),
            };
            let begun = job.with(end, |worker, now| worker.begin(now, operation));
            assert!(begun.is_ok(), "end {end}");
            // Workers are never ready at the same time, and not in the same order.
            job.run_for(Duration::from_micros(u64::from((end * 7 + iteration * 13) % 90)));
        }
        job.run_until_done(Duration::from_secs(5));
        for end in 0..workers {
            let mean = &job.outcome(end, iteration.into()).lanes;
            assert_eq!(mean.len(), LANES);
            for (weight, mean) in weights[end as usize].iter_mut().zip(mean) {
                *weight -= 0.01 * mean;
            }
        }
        let bits = |end: usize| -> Vec<u32> {
            weights[end].iter().map(|weight| weight.to_bits()).collect()
        };
        for end in 1..workers as usize {
            assert!(bits(end) == bits(0), "iteration {iteration}, end {end}");
        }
        // The sum in another order has other bits somewhere: equal weights are no accident.
        let sums = |order: &mut dyn Iterator<Item = u32>| -> Vec<f32> {
            let mut sum = vec![0.0f32; LANES];
            for end in order {
                let lanes = gradient(end, iteration, &weights[0]);
                let lanes = lanes.as_chunks().0.iter().map(|lane| f32::from_le_bytes(*lane));
                sum.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum += lane);
            }
            sum
        };
        orders_differ |= sums(&mut (0..workers)) != sums(&mut (0..workers).rev());
    }
    assert!(orders_differ, "the gradients do not test anything");
    job.accounts();
}

#[test]
fn weights_are_equal_bit_for_bit_at_each_iteration() {
    let wire = Wire {
        loss: 0.02,
        duplication: 0.02,
        reordering: 0.02,
        late: Duration::from_millis(1),
        jitter: Duration::from_micros(100),
        ..Setting::default().wire
    };
    trains(Setting { workers: 5, wire, seed: 3, ..Setting::default() });
    let leaves = (0..5).map(|end| Some(end % 2)).collect();
    trains(Setting { workers: 5, wire, leaves, seed: 4, ..Setting::default() });
}
