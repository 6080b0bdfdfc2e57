//! What a piece of `reduce` costs the switch, against adding and copying the same numbers and nothing
//! else.
//!
//! `cargo bench -p olaf-engine --bench pieces`. Four workers send a block of 8,960 bytes each; the sum
//! leaves once, for all of them. One run measures all, in turns, so that what the machine does
//! meanwhile touches all alike; the ratios are what counts.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]

mod blocks;

use blocks::{BYTES, NOW, Page, WORKERS, Whole};
use olaf_engine::blocks::Pool;
use olaf_engine::blocks::pool::{self, Met};
use olaf_samples::rounds;
use olaf_wire::reduce::offsets::HEADER;
use olaf_wire::reduce::{LaneType, Operator};
use std::hint::black_box;

/// Blocks under way at once.
const SLOTS: u32 = 64;
/// Blocks timed together.
const BLOCKS: u32 = 500;
const ROUNDS: usize = 100;

fn main() {
    let rounds = rounds(ROUNDS);
    let mut plain = Plain::new();
    let mut table = Table::new(LaneType::F32, Operator::Sum);
    let mut whole = Whole::new(SLOTS);
    let mut large = Whole::new(2048);
    let [base, table, whole, large] = in_turns([
        &mut || plain.block(),
        &mut || table.block(),
        &mut || whole.block(),
        &mut || large.block(),
    ]);
    println!(
        "{WORKERS} pieces of {BYTES} bytes and their result, {rounds} rounds of {BLOCKS} blocks"
    );
    println!("  plain AVX adds and copies (baseline)   {base}");
    println!("  Pool::meet and Cell::write_result      {table}   ratio {:.2}", table.ratio(&base));
    println!(
        "  Switch, {SLOTS} slots                       {whole}   ratio {:.2}",
        whole.ratio(&base)
    );
    println!("  Switch, 2048 slots                     {large}   ratio {:.2}", large.ratio(&base));
    println!("  goal: at least 30 Gbit/s, parsing and emitting included");
    println!("each lane type in the table, as a ratio to the same baseline");
    for lane_type in LaneType::EACH {
        for operator in [Operator::Sum, Operator::Max] {
            let (mut plain, mut table) = (Plain::new(), Table::new(lane_type, operator));
            let [base, table] = in_turns([&mut || plain.block(), &mut || table.block()]);
            let (name, operator, ratio) = (lane_type.name(), operator.name(), table.ratio(&base));
            println!("  {name:4} {operator:9} {table}   ratio {ratio:.2}");
        }
    }
}

/// Times all calls in turns.
fn in_turns<const N: usize>(mut calls: [&mut dyn FnMut(); N]) -> [Spread; N] {
    let mut times = [const { Vec::new() }; N];
    for round in 0..rounds(ROUNDS) + 10 {
        for (call, times) in calls.iter_mut().zip(&mut times) {
            let began = std::time::Instant::now();
            (0..BLOCKS).for_each(|_| call());
            let ns = began.elapsed().as_nanos() as f64 / f64::from(BLOCKS);
            if round >= 10 {
                times.push(ns);
            }
        }
    }
    times.map(Spread::of)
}

struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Spread {
    fn of(mut ns: Vec<f64>) -> Self {
        ns.sort_by(f64::total_cmp);
        let at = |share: f64| ns[((ns.len() - 1) as f64 * share) as usize];
        Self { low: at(0.1), median: at(0.5), high: at(0.9) }
    }

    fn ratio(&self, base: &Self) -> f64 {
        self.median / base.median
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { low, median, high } = self;
        let gigabits = (WORKERS as usize * BYTES * 8) as f64 / median;
        write!(f, "{median:7.1} ns a block (p10 {low:.1}, p90 {high:.1}), {gigabits:6.1} Gbit/s in")
    }
}

/// The baseline: as many cells as the table has, in turns; a copy in, three adds, a copy out.
struct Plain {
    cells: Vec<Page>,
    incoming: Vec<f32>,
    out: Page,
    next: usize,
}

impl Plain {
    fn new() -> Self {
        let cells = (0..2 * SLOTS).map(|_| Page::new(BYTES)).collect();
        Self { cells, incoming: vec![1e-30; BYTES / 4], out: Page::new(BYTES), next: 0 }
    }

    fn block(&mut self) {
        self.next = (self.next + 1) % self.cells.len();
        let sum = self.cells[self.next].bytes_mut();
        let incoming = black_box(&self.incoming);
        for (sum, lane) in sum.as_chunks_mut::<4>().0.iter_mut().zip(incoming) {
            *sum = lane.to_le_bytes();
        }
        for _ in 1..WORKERS {
            plain_add(black_box(&mut *sum), black_box(&self.incoming));
        }
        black_box(self.out.bytes_mut()).copy_from_slice(sum);
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calling code compiled for AVX2 is sound only where there is AVX2")]
fn plain_add(sum: &mut [u8], incoming: &[f32]) {
    #[target_feature(enable = "avx2")]
    fn wide(sum: &mut [u8], incoming: &[f32]) {
        add_each(sum, incoming);
    }
    assert!(std::is_x86_feature_detected!("avx2"), "the baseline is an AVX add");
    // SAFETY: the processor was just seen to have AVX2.
    unsafe { wide(sum, incoming) }
}

#[cfg(not(target_arch = "x86_64"))]
fn plain_add(sum: &mut [u8], incoming: &[f32]) {
    add_each(sum, incoming);
}

#[inline(always)]
fn add_each(sum: &mut [u8], incoming: &[f32]) {
    let sums = sum.as_chunks_mut::<4>().0.iter_mut();
    sums.zip(incoming)
        .for_each(|(sum, lane)| *sum = (f32::from_le_bytes(*sum) + lane).to_le_bytes());
}

/// The table alone.
struct Table {
    pool: Pool,
    datagram: Page,
    out: Page,
    lane_type: LaneType,
    operator: Operator,
    block: u32,
}

impl Table {
    fn new(lane_type: LaneType, operator: Operator) -> Self {
        let (pool, block) = (Pool::new(SLOTS, WORKERS), 0);
        let (datagram, out) = (Page::new(HEADER + BYTES), Page::new(HEADER + BYTES));
        Self { pool, datagram, out, lane_type, operator, block }
    }

    fn block(&mut self) {
        let block = self.block;
        for member in 0..WORKERS {
            let piece = pool::Piece {
                block,
                member,
                holds: block.saturating_sub(SLOTS / 2),
                contributors: 1,
                congested: false,
                not_finite: false,
                deadline: None,
                lane_type: self.lane_type,
                operator: self.operator,
                lanes: &black_box(self.datagram.bytes())[HEADER..],
            };
            let met = self.pool.meet(NOW, &piece);
            assert_eq!(met == Met::Complete, member + 1 == WORKERS, "{met:?}");
        }
        self.pool.finish(block);
        let cell = self.pool.cell(block).expect("it is complete");
        cell.write_result(&mut black_box(self.out.bytes_mut())[HEADER..]);
        self.block += 1;
    }
}
