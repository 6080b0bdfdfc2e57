//! What merging an update into its slot costs, against adding the same numbers and nothing else: by the
//! size of an update and the number of workers that send to the slot.
//!
//! `cargo bench -p olaf-engine --bench merge`. One run measures all, in turns, so that what the
//! machine does meanwhile touches all alike; the ratios are what counts. Time goes on as on a busy link
//! of 10 Gbit/s: limits of rates are renewed as time passes, and their cost is part of the measure.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]

mod merging;

use merging::{Datagram, Packets, address, update};
use olaf_engine::party::Limits;
use olaf_engine::{Arrival, Contribution, Discipline, Flow, JobId, Outcome, WorkerId};
use olaf_samples::rounds;
use olaf_wire::ClusterId;
use olaf_wire::offsets::update as at;
use std::hint::black_box;

/// Bytes of an update's lanes.
const SIZES: [usize; 3] = [64, 1472, 8960];
const WORKERS: [u32; 3] = [4, 16, 64];
/// Calls timed together: few enough that most of the times have no interruption in them.
const CALLS: u32 = 500;

fn main() {
    let rounds = rounds(400);
    println!(
        "an update that merges into its slot, in ns (ratio to the plain AVX add); the fastest tenth of {rounds} times {CALLS} calls"
    );
    println!(
        "  bytes  workers   plain add  Discipline::arrive  handle_packet, limits off     handle_packet"
    );
    for bytes in SIZES {
        for workers in WORKERS {
            row(bytes, workers, rounds);
        }
    }
    println!(
        "  goals at 8,960 bytes: 1.20 for Discipline::arrive, 1.40 for handle_packet, limits on or off"
    );
}

fn row(bytes: usize, workers: u32, rounds: usize) {
    let lanes = bytes / 4;
    let mut add = PlainAdd::new(lanes);
    let mut arrive = Arrive::new(lanes, workers);
    let mut unlimited = Packets::new(Limits::OFF, lanes, workers);
    let mut packets = Packets::new(Limits::default(), lanes, workers);
    let mut times: [Vec<f64>; 4] = Default::default();
    // The first rounds meet cold caches.
    let warm_up = rounds.div_ceil(10);
    for round in 0..rounds + warm_up {
        let measured = [
            time(|| add.call()),
            time(|| arrive.call()),
            time(|| unlimited.call()),
            time(|| packets.call()),
        ];
        if round >= warm_up {
            times.iter_mut().zip(measured).for_each(|(times, ns)| times.push(ns));
        }
    }
    unlimited.check();
    packets.check();
    let [base, arrive, unlimited, packets] = times.map(fastest);
    let of = |ns: f64| format!("{ns:.1} ({:.2})", ns / base);
    println!(
        "  {bytes:5}  {workers:7}  {base:10.1}  {:>18}  {:>25}  {:>16}",
        of(arrive),
        of(unlimited),
        of(packets)
    );
}

/// The slowest of the fastest tenth: what else the machine does can only add.
fn fastest(mut ns: Vec<f64>) -> f64 {
    ns.sort_by(f64::total_cmp);
    ns[ns.len() / 10]
}

fn time(mut call: impl FnMut()) -> f64 {
    let began = std::time::Instant::now();
    for _ in 0..CALLS {
        call();
    }
    began.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// The baseline: `sum += incoming`, both where they lie.
struct PlainAdd {
    pages: Vec<f32>,
    start: usize,
    lanes: usize,
    /// Where the incoming lanes begin. The distance to the sum is half a page beside whole ones: at
    /// whole pages the processor takes each load for one that waits for a store.
    incoming: usize,
}

/// Lanes of a page of memory.
const PAGE: usize = 1024;

impl PlainAdd {
    fn new(lanes: usize) -> Self {
        let incoming = lanes.next_multiple_of(PAGE) + PAGE / 2;
        let mut pages = vec![0.0; PAGE + incoming + lanes];
        let start = pages.as_ptr().align_offset(PAGE * size_of::<f32>());
        pages[start + incoming..][..lanes].fill(1e-3);
        Self { pages, start, lanes, incoming }
    }

    fn call(&mut self) {
        let (sum, incoming) = self.pages[self.start..].split_at_mut(self.incoming);
        plain_add(black_box(&mut sum[..self.lanes]), black_box(&incoming[..self.lanes]));
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calling code compiled for AVX2 is sound only where there is AVX2")]
fn plain_add(sum: &mut [f32], incoming: &[f32]) {
    #[target_feature(enable = "avx2")]
    fn wide(sum: &mut [f32], incoming: &[f32]) {
        sum.iter_mut().zip(incoming).for_each(|(sum, lane)| *sum += lane);
    }
    assert!(std::is_x86_feature_detected!("avx2"), "the baseline is an AVX add");
    // SAFETY: the processor was just seen to have AVX2.
    unsafe { wide(sum, incoming) }
}

#[cfg(not(target_arch = "x86_64"))]
fn plain_add(sum: &mut [f32], incoming: &[f32]) {
    sum.iter_mut().zip(incoming).for_each(|(sum, lane)| *sum += lane);
}

/// The queue alone.
struct Arrive {
    queue: olaf_engine::queue::merging::Merging,
    datagram: Datagram,
    workers: u32,
    worker: u32,
    sequence: u32,
}

impl Arrive {
    fn new(lanes: usize, workers: u32) -> Self {
        let queue = olaf_engine::queue::merging::Merging::new(8, None);
        let datagram = Datagram::new(&update(address(1)), lanes);
        let mut arrive = Self { queue, datagram, workers, worker: 0, sequence: 1 };
        assert!(!matches!(arrive.next(), Outcome::Merged(_)), "the first one waits alone");
        arrive
    }

    fn call(&mut self) {
        let outcome = self.next();
        assert!(matches!(outcome, Outcome::Merged(_)), "{outcome:?}");
    }

    fn next(&mut self) -> Outcome {
        let flow = Flow { job: JobId(1), cluster: ClusterId(1), segment: 0 };
        let (worker, sequence) = (WorkerId(self.worker), self.sequence);
        self.worker += 1;
        if self.worker == self.workers {
            (self.worker, self.sequence) = (0, self.sequence + 1);
        }
        let lanes = &self.datagram.bytes()[at::PAYLOAD..];
        let bytes = self.datagram.bytes().len() as u32;
        let one = Contribution::of_one(flow, worker, 1, bytes);
        // The whole arrival in the box: a slice alone would be written as two numbers and read as one, and the
        // processor would wait.
        let arrival =
            Arrival { contribution: Contribution { sequence, reward: 0.5, ..one }, lanes };
        self.queue.arrive(black_box(&arrival))
    }
}
