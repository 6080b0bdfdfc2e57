//! What one decision costs, and what the policies gain, where a few jobs share one tree.
//!
//! `cargo bench -p olaf-sched --bench sharing`. Patterns are made up: a backward pass that gives a
//! gradient at equal intervals, and all-reduces that together take longer than it without the
//! switches and less with them, as in MINA §II-C. Sums over all multisets of them are printed beside
//! the bound.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]
#![allow(clippy::cast_precision_loss, reason = "means for people")]

use olaf_samples::are_benches_quick;
use olaf_sched::sharing::bound::score_bound;
use olaf_sched::sharing::group::{Until, score, simulate, simulate_with};
use olaf_sched::sharing::{Policy, Running, decide};
use olaf_sched::{AllReduceSpeed, Operation, Pattern, Steps};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn main() {
    let network = AllReduceSpeed { speedup_millis: 1500, ..AllReduceSpeed::PAPER };
    // Forward, interval between gradients, how many, bytes of each, bytes of the last.
    let made: [(u64, u64, u64, u64, u64); 6] = [
        (28, 2, 12, 28_000_000, 90_000_000),
        (50, 3, 13, 40_000_000, 150_000_000),
        (40, 2, 37, 38_000_000, 38_000_000),
        (25, 1, 14, 24_000_000, 24_000_000),
        (170, 3, 96, 55_000_000, 400_000_000),
        (48, 3, 37, 34_000_000, 120_000_000),
    ];
    let steps = made.map(|(forward, interval, number, bytes, last)| {
        let start = |i: u64| (forward + interval * i) * MS;
        let mut operations: Vec<_> =
            (1..=number).map(|i| Operation { start_ns: start(i), bytes }).collect();
        operations.push(Operation { start_ns: start(number), bytes: last });
        let pattern = Pattern { name: "made".into(), compute_ns: start(number) + MS, operations };
        Steps::new(&pattern.check().expect("a pattern"), &network, 2)
    });
    for jobs in 2..=if are_benches_quick() { 2 } else { 4 } {
        let groups = multisets(steps.len(), jobs);
        let group = |ids: &[usize]| ids.iter().map(|&id| (&steps[id], 2)).collect::<Vec<_>>();
        let bounds = groups.iter().map(|ids| score_bound(&group(ids), true)).sum::<f64>();
        let bound = bounds / groups.len() as f64;
        println!("{jobs} jobs, {} groups, bound {bound:.4}", groups.len());
        for policy in [Policy::Greedy, Policy::Mina, Policy::Plan] {
            let (mut sum, mut decisions, mut took) = (0.0, 0u32, Duration::ZERO);
            for ids in &groups {
                let jobs = group(ids);
                let until = Until::Ns(20_000 * MS);
                sum += score(&jobs, &simulate(policy, &jobs, until), true).unwrap_or(1.0);
                let timed = |now, me: &Running<'_>, rivals: &[Running<'_>]| {
                    let begin = Instant::now();
                    let decision = decide(policy, now, me, rivals);
                    took += begin.elapsed();
                    decisions += 1;
                    decision
                };
                simulate_with(timed, &jobs, until, |_| ());
            }
            let (mean, name) = (sum / groups.len() as f64, format!("{policy:?}"));
            println!("  {name:6} score {mean:.4}, a decision {:?}", took / decisions.max(1));
        }
    }
}

/// All ways to choose `jobs` of `kinds` with repetition.
fn multisets(kinds: usize, jobs: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..jobs {
        let longer = |ids: Vec<usize>| {
            let from = ids.last().copied().unwrap_or(0);
            (from..kinds).map(move |id| ids.iter().copied().chain([id]).collect())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}
