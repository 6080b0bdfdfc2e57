//! What each queue costs, lanes apart: arrivals of 27 clusters at three times the link's rate.
//!
//! `cargo bench -p olaf-engine --bench disciplines`. Measured in turns; the ratios to OLAF's queue
//! are what counts.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]

use olaf_engine::switch::native::QueueKind;
use olaf_engine::{Arrival, ClusterId, Contribution, Discipline, Flow, JobId, WorkerId};
use olaf_samples::rounds;
use std::hint::black_box;

const ARRIVALS: u32 = 30_000;
const ROUNDS: usize = 100;
const CLUSTERS: u32 = 27;

fn main() {
    for slots in [8, 28, 256] {
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); QueueKind::ALL.len()];
        for round in 0..rounds(ROUNDS) + 10 {
            for (times, (_, kind)) in times.iter_mut().zip(QueueKind::ALL) {
                let ns = time(&mut *kind.queue(slots, None));
                if round >= 10 {
                    times.push(ns);
                }
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        println!("{CLUSTERS} clusters, {slots} slots: an arrival and its share of a departure");
        for ((name, _), ns) in QueueKind::ALL.iter().zip(&medians) {
            println!("  {name:8} {ns:6.1} ns   ratio {:.2}", ns / medians[0]);
        }
    }
}

fn time(queue: &mut dyn Discipline) -> f64 {
    let began = std::time::Instant::now();
    let mut chance = 1u32;
    for at in 0..ARRIVALS {
        chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let cluster = (chance >> 8) % CLUSTERS;
        let flow = Flow { job: JobId(1), cluster: ClusterId(cluster), segment: 0 };
        let worker = WorkerId(cluster * 3 + (chance >> 20) % 3);
        let one = Contribution::of_one(flow, worker, u64::from(at) * 1000, 1000);
        let contribution = Contribution { sequence: at, reward: 0.5, ..one };
        black_box(queue.arrive(&Arrival { contribution, lanes: &[] }));
        if at % 3 == 0 {
            black_box(queue.end_departure());
            black_box(queue.begin_departure());
        }
    }
    began.elapsed().as_nanos() as f64 / f64::from(ARRIVALS)
}

fn median(mut ns: Vec<f64>) -> f64 {
    ns.sort_by(f64::total_cmp);
    ns[ns.len() / 2]
}
