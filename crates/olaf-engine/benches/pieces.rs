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

use olaf_engine::blocks::Pool;
use olaf_engine::blocks::pool::{self, Met};
use olaf_engine::switch::reduce::{Config, Switch};
use olaf_engine::{Engine, Instant, JobId, PeerId, PortId, Session, Source, Verdict};
use olaf_wire::reduce::offsets::HEADER;
use olaf_wire::reduce::{
    Address, Block, Join, LaneType, Marks, Operator, Piece, ReducePacket, Welcome, WelcomeCode,
    datagram_len,
};
use std::hint::black_box;

/// Lanes of a block, in bytes.
const BYTES: usize = 8960;
const WORKERS: u32 = 4;
/// Blocks under way at once.
const SLOTS: u32 = 64;
/// Blocks timed together.
const BLOCKS: u32 = 500;
const ROUNDS: usize = 100;
const NOW: Instant = Instant(1);
const JOB: JobId = JobId(1);

fn main() {
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
        "{WORKERS} pieces of {BYTES} bytes and their result, {ROUNDS} rounds of {BLOCKS} blocks"
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
    for round in 0..ROUNDS + 10 {
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

/// Bytes that begin at a page, as a driver has its buffers.
struct Page {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Page {
    fn new(len: usize) -> Self {
        let bytes = vec![0; len + 4096];
        let start = bytes.as_ptr().align_offset(4096);
        Self { bytes, start, len }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
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

/// The whole switch, from the bytes of a datagram to those of the result.
struct Whole {
    switch: Switch,
    datagram: Page,
    out: Page,
    generation: u32,
    block: u32,
}

impl Whole {
    fn new(slots: u32) -> Self {
        let config = Config { slots, memory_bytes: 1 << 40, ..Config::default() };
        let switch = Switch::new(config, 1).expect("a configuration");
        let len = datagram_len(0, LaneType::F32, BYTES / 4);
        let (datagram, out) = (Page::new(len), Page::new(len + 64));
        let mut whole = Self { switch, datagram, out, generation: 0, block: 0 };
        for rank in 0..WORKERS {
            whole.join(rank);
        }
        while let Some(sent) =
            whole.switch.poll_transmit(NOW, PortId::DOWNLINK, whole.out.bytes_mut())
        {
            let packet = ReducePacket::new_checked(&whole.out.bytes()[..sent.len]);
            let welcome = Welcome::parse(&packet.expect("a welcome")).expect("a welcome");
            if welcome.code == WelcomeCode::Welcome {
                assert_eq!((welcome.block_bytes as usize, welcome.slots), (BYTES, slots));
                whole.generation = welcome.address.generation;
            }
        }
        whole
    }

    fn address(&self, rank: u32) -> Address {
        Address { job: JOB, generation: self.generation, rank, session: Session(rank + 1) }
    }

    fn join(&mut self, rank: u32) {
        let join = Join {
            address: self.address(rank),
            workers: WORKERS,
            contributors: 1,
            deadline_us: 0,
            block_bytes: BYTES as u32,
            datagram_bytes: 9216,
            sent_at_us: 0,
            nonce: 0,
            operation: 0,
        };
        let mut buf = [0; HEADER];
        let len = join.emit(&mut buf);
        assert_eq!(self.handle(rank, &buf[..len]), Verdict::Absorb);
    }

    fn handle(&mut self, rank: u32, bytes: &[u8]) -> Verdict {
        self.switch.handle_packet(NOW, Source::new(PortId::DOWNLINK, PeerId(rank)), bytes)
    }

    fn block(&mut self) {
        let number = self.block;
        for rank in 0..WORKERS {
            let piece = Piece {
                address: self.address(rank),
                block: Block {
                    number,
                    operation: 0,
                    first: 0,
                    lanes_of_operation: 1 << 40,
                    lane_type: LaneType::F32,
                    operator: Operator::Sum,
                },
                contributors: 1,
                holds: number.saturating_sub(SLOTS / 2),
                sent_at_us: 1,
                marks: Marks::default(),
            };
            // One datagram's lanes serve for all workers, so that they are in the same cache as the
            // baseline's.
            piece.emit_header(&[], BYTES / 4, self.datagram.bytes_mut());
            let bytes = black_box(self.datagram.bytes());
            let from = Source::new(PortId::DOWNLINK, PeerId(rank));
            assert_eq!(self.switch.handle_packet(NOW, from, bytes), Verdict::Absorb);
        }
        let out = black_box(self.out.bytes_mut());
        let sent = self.switch.poll_transmit(NOW, PortId::DOWNLINK, out).expect("the result");
        assert_eq!((sent.len, sent.to.as_slice().len()), (HEADER + BYTES, WORKERS as usize));
        self.block += 1;
    }
}
