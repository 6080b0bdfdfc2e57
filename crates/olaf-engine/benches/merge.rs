//! What merging an update into its slot costs, against adding the same numbers and nothing else.
//!
//! `cargo bench -p olaf-engine --bench merge`. One run measures all, in turns, so that what the
//! machine does meanwhile touches all alike; the ratios are what counts.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]

use olaf_engine::party::Limits;
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{
    Arrival, Contribution, Discipline, Engine, Flow, Instant, JobId, Outcome, PeerId, PortId,
    Source, Switch, Verdict, WorkerId,
};
use olaf_samples::{join, welcome};
use olaf_wire::offsets::update as at;
use olaf_wire::{Address, ClusterId, Update};
use std::hint::black_box;
use std::time::Duration;

/// An update of 8,960 bytes.
const LANES: usize = 2240;
/// Calls timed together.
const CALLS: u32 = 2000;
const ROUNDS: usize = 200;

fn main() {
    let mut add = PlainAdd::new();
    let mut arrive = Arrive::new();
    let mut unclipped = Packets::new(Limits::OFF);
    let mut packet = Packets::new(Limits::default());
    let mut times: [Vec<f64>; 4] = Default::default();
    for round in 0..ROUNDS + 20 {
        let measured = [
            time(|| add.call()),
            time(|| arrive.call()),
            time(|| unclipped.call()),
            time(|| packet.call()),
        ];
        if round >= 20 {
            times.iter_mut().zip(measured).for_each(|(times, ns)| times.push(ns));
        }
    }
    assert_eq!(packet.switch.queue_status(Instant(1)).used, 1, "all waits in one slot");
    let [base, arrive, unclipped, packet] = times.map(Spread::of);
    println!("merge of an update of {} bytes, {ROUNDS} rounds of {CALLS} calls each", LANES * 4);
    let rows = [
        ("Discipline::arrive", arrive),
        ("Switch::handle_packet, nothing clipped", unclipped),
        ("Switch::handle_packet", packet),
    ];
    println!("  {:40}{base}", "plain AVX add (baseline)");
    for (name, row) in rows {
        println!("  {name:40}{row}   ratio {:.2}", row.median / base.median);
    }
    println!("  goals: at most 1.20, 1.40 and 1.40");
}

fn time(mut call: impl FnMut()) -> f64 {
    let began = std::time::Instant::now();
    for _ in 0..CALLS {
        call();
    }
    began.elapsed().as_nanos() as f64 / f64::from(CALLS)
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
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:6.1} ns (p10 {:.1}, p90 {:.1})", self.median, self.low, self.high)
    }
}

/// The baseline: `sum += incoming`, both where they lie.
struct PlainAdd {
    pages: Vec<f32>,
    start: usize,
}

/// Lanes of a page of memory.
const PAGE: usize = 1024;
/// Where the incoming lanes begin. The distance to the sum is half a page beside whole ones: at whole
/// pages the processor takes each load for one that waits for a store.
const INCOMING: usize = LANES.next_multiple_of(PAGE) + PAGE / 2;

impl PlainAdd {
    fn new() -> Self {
        let mut pages = vec![0.0; PAGE + INCOMING + LANES];
        let start = pages.as_ptr().align_offset(PAGE * size_of::<f32>());
        pages[start + INCOMING..][..LANES].fill(1e-3);
        Self { pages, start }
    }

    fn call(&mut self) {
        let (sum, incoming) = self.pages[self.start..].split_at_mut(INCOMING);
        plain_add(black_box(&mut sum[..LANES]), black_box(&incoming[..LANES]));
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
    count: u32,
}

impl Arrive {
    fn new() -> Self {
        let queue = olaf_engine::queue::merging::Merging::new(8, None);
        Self { queue, datagram: Datagram::new(&update(address(1))), count: 0 }
    }

    fn call(&mut self) {
        self.count += 1;
        let flow = Flow { job: JobId(1), cluster: ClusterId(1), segment: 0 };
        let worker = WorkerId(self.count % 4);
        let outcome = self.queue.arrive(&Arrival {
            contribution: Contribution {
                sequence: self.count,
                reward: 0.5,
                ..Contribution::of_one(flow, worker, 1, 9056)
            },
            lanes: black_box(&self.datagram.bytes()[at::PAYLOAD..]),
        });
        assert!(self.count == 1 || matches!(outcome, Outcome::Merged(_)), "{outcome:?}");
    }
}

/// A datagram where a driver has it: at the start of a page.
struct Datagram {
    page: Vec<u8>,
    start: usize,
}

impl Datagram {
    fn new(update: &Update) -> Self {
        let page = vec![0; 4096 + Update::datagram_len(LANES)];
        let start = page.as_ptr().align_offset(4096);
        let mut datagram = Self { page, start };
        update.emit(&[1e-3; LANES], datagram.bytes_mut());
        datagram
    }

    fn bytes(&self) -> &[u8] {
        &self.page[self.start..self.start + Update::datagram_len(LANES)]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.page[self.start..self.start + Update::datagram_len(LANES)]
    }
}

/// The whole switch, from the bytes of a datagram on.
struct Packets {
    switch: Switch,
    /// An update, and its possible senders.
    datagram: Datagram,
    headers: Vec<[u8; 16]>,
    count: u32,
}

const SERVER: PeerId = PeerId(0);
const WORKERS: u32 = 4;

impl Packets {
    fn new(limits: Limits) -> Self {
        // One credit, spent at once and never given back: all that follows waits, and merges.
        let pacing = Pacing::Credits { credits: 1, timeout: Duration::from_secs(1 << 30) };
        let config = Config { limits, ..Config::default() }.paced(pacing);
        let mut switch = Switch::new(config, 1).expect("a configuration");
        switch.set_default_server(SERVER);
        let addresses: Vec<_> = (1..=WORKERS).map(address).collect();
        let mut buf = vec![0; 65_536];
        for (peer, address) in (1..).map(PeerId).zip(&addresses) {
            let join = join(*address, LANES as u32, LANES as u32);
            let len = join.emit(&mut buf);
            let from = Source::new(PortId::DOWNLINK, peer);
            assert_eq!(switch.handle_packet(Instant(1), from, &buf[..len]), Verdict::Absorb);
            let len = welcome(&join).emit(&mut buf);
            let above = Source::new(PortId::UPLINK, SERVER);
            assert_eq!(switch.handle_packet(Instant(1), above, &buf[..len]), Verdict::Absorb);
        }
        let headers = addresses.iter().map(|address| {
            let datagram = Datagram::new(&update(*address));
            datagram.bytes()[8..24].try_into().expect("16 bytes")
        });
        let headers = headers.collect();
        let datagram = Datagram::new(&update(addresses[0]));
        let mut packets = Self { switch, datagram, headers, count: 0 };
        packets.send();
        while packets.switch.poll_transmit(Instant(1), PortId::UPLINK, &mut buf).is_some() {}
        while packets.switch.poll_transmit(Instant(1), PortId::DOWNLINK, &mut buf).is_some() {}
        packets.send();
        packets
    }

    fn call(&mut self) {
        assert_eq!(self.send(), Verdict::Absorb);
    }

    fn send(&mut self) -> Verdict {
        self.count += 1;
        // One datagram's bytes serve for all workers, so that the lanes are in the same cache as
        // the baseline's.
        let (worker, number) = (self.count % WORKERS, self.count / WORKERS + 1);
        let datagram = self.datagram.bytes_mut();
        datagram[8..24].copy_from_slice(&self.headers[worker as usize]);
        for field in [at::SEQUENCE, at::HOP_SEQUENCE, at::FLOW_SEQUENCE] {
            datagram[field..field + 4].copy_from_slice(&number.to_be_bytes());
        }
        let from = Source::new(PortId::DOWNLINK, PeerId(worker + 1));
        self.switch.handle_packet(Instant(1), from, black_box(self.datagram.bytes()))
    }
}

fn address(worker: u32) -> Address {
    olaf_samples::address(1, 1, worker)
}

fn update(address: Address) -> Update {
    Update { reward: 0.5, ..olaf_samples::update(address, 0) }
}
