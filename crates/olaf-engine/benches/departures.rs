//! How long the switch's engine takes for an update, from the datagram in to the datagram out.
//!
//! `cargo bench -p olaf-engine --bench departures`. It measures what a driver calls,
//! [`Engine::handle_packet`] and then [`Engine::poll_transmit`] until nothing more leaves, without
//! sockets. The figure `olaf/latency` runs it with `--json SETTINGS` and reads the times.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]

use olaf_engine::switch::native::Config;
use olaf_engine::{Engine, Instant, PeerId, PortId, Source, Switch, Verdict};
use olaf_samples::{answer, join, welcome};
use olaf_wire::offsets::{MAX_DATAGRAM, MAX_SEGMENT_LANES};
use olaf_wire::{Address, Update};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::process::ExitCode;

/// Departures between two looks at the clock, which itself takes some tens of nanoseconds.
const BATCH: usize = 64;
const SERVER: Source = Source::new(PortId::UPLINK, PeerId(0));

/// What to time. The same fields as in `python/olaf/experiments/olaf/latency.py`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Lanes of an update: one segment.
    lanes: usize,
    /// Updates that leave as one; 1 only forwards.
    merged: usize,
    /// How many batches of 64 departures are timed.
    batches: usize,
}

#[derive(Serialize)]
struct Times {
    /// Nanoseconds per update, one number a batch.
    ns_per_update: Vec<f64>,
}

fn main() -> ExitCode {
    // `cargo bench` passes `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let told: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match told[..] {
        [] => {
            print_table();
            Ok(())
        }
        ["--json", settings] => print_json(settings),
        _ => {
            Err("usage: departures [--json '{\"lanes\":344,\"merged\":2,\"batches\":100}']".into())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn print_json(settings: &str) -> Result<(), String> {
    let settings = serde_json::from_str(settings).map_err(|error| error.to_string())?;
    let times = Times { ns_per_update: time(settings)? };
    println!("{}", serde_json::to_string(&times).expect("numbers"));
    Ok(())
}

/// The sizes of the paper's packets, merged against forwarded.
fn print_table() {
    for lanes in [344, 2228] {
        let median = |merged| {
            let times = time(Settings { lanes, merged, batches: 2000 });
            let mut ns = times.expect("settings that can be");
            ns.sort_by(f64::total_cmp);
            ns[ns.len() / 2]
        };
        println!("an update of {} bytes, from datagram to datagram", Update::datagram_len(lanes));
        let base = median(1);
        println!("  forwarded (baseline)   {base:6.1} ns");
        for merged in [2, 4] {
            let ns = median(merged);
            println!("  {merged} merged into one      {ns:6.1} ns   ratio {:.2}", ns / base);
        }
    }
}

/// Nanoseconds per update, one number a batch; an error names the setting that cannot be.
fn time(settings: Settings) -> Result<Vec<f64>, String> {
    let Settings { lanes, merged, batches } = settings;
    if !(1..=MAX_SEGMENT_LANES).contains(&lanes) {
        return Err(format!("lanes: {lanes}; must be 1 to {MAX_SEGMENT_LANES}, to fit a datagram"));
    }
    if merged == 0 || batches == 0 {
        return Err("merged and batches: must be at least 1".into());
    }
    let mut bench = Bench::new(settings);
    // The first two batches meet cold caches and memory that was never touched.
    bench.batch();
    bench.batch();
    let times = (0..batches).map(|_| bench.batch()).collect();
    bench.check(batches + 2);
    Ok(times)
}

struct Bench {
    settings: Settings,
    switch: Switch,
    now: Instant,
    sequence: u32,
    /// The datagrams of a batch, made before the clock starts.
    datagrams: Vec<Vec<u8>>,
    lanes: Vec<f32>,
    buf: Vec<u8>,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let mut switch = Switch::new(Config::default(), 1).expect("the default configuration");
        switch.set_default_server(SERVER.peer);
        let size = Update::datagram_len(settings.lanes);
        let mut bench = Self {
            settings,
            switch,
            now: Instant(1),
            sequence: 0,
            datagrams: vec![vec![0; size]; BATCH * settings.merged],
            lanes: vec![1.0; settings.lanes],
            buf: vec![0; MAX_DATAGRAM],
        };
        for worker in 0..settings.merged {
            bench.enters(worker);
        }
        bench
    }

    /// Times one batch: nanoseconds per update.
    fn batch(&mut self) -> f64 {
        self.now = Instant(self.now.0 + 1_000_000);
        let merged = self.settings.merged;
        for (index, datagram) in self.datagrams.iter_mut().enumerate() {
            let (worker, departure) = (index % merged, index / merged);
            let update = Update {
                generated_oldest_ns: self.now.0,
                generated_newest_ns: self.now.0,
                ..olaf_samples::update(address(worker), self.sequence + departure as u32)
            };
            update.emit(&self.lanes, datagram);
        }
        let (port, began) = (PortId::UPLINK, std::time::Instant::now());
        let mut left = 0;
        for departure in self.datagrams.chunks_exact(merged) {
            for (worker, datagram) in departure.iter().enumerate() {
                let verdict = self.switch.handle_packet(self.now, source(worker), datagram);
                assert_eq!(verdict, Verdict::Absorb, "every update is a good one");
            }
            while black_box(self.switch.poll_transmit(self.now, port, &mut self.buf)).is_some() {
                left += 1;
            }
        }
        let took = began.elapsed();
        assert_eq!(left, BATCH, "what arrives together leaves as one");
        self.sequence += BATCH as u32;
        self.is_answered();
        took.as_nanos() as f64 / (BATCH * merged) as f64
    }

    /// Every update that was timed has left, alone or merged, and nothing waits.
    fn check(&mut self, batches: usize) {
        let fates = self.switch.statistics(self.now).fates;
        let updates = (batches * BATCH * self.settings.merged) as u64;
        let expected = if self.settings.merged == 1 { (updates, 0) } else { (0, updates) };
        assert_eq!((fates.sent_alone, fates.merged), expected, "{fates:?}");
        assert!(!self.leaves(PortId::UPLINK) && !self.leaves(PortId::DOWNLINK));
    }

    /// The server answers the whole batch, so that nothing piles up in the switch.
    fn is_answered(&mut self) {
        for departure in (0..BATCH as u32).rev() {
            let len = answer(address(0), self.sequence - departure).emit(&[], &mut self.buf);
            self.switch.handle_packet(self.now, SERVER, &self.buf[..len]);
            while self.leaves(PortId::DOWNLINK) {}
        }
        while self.switch.poll_event().is_some() {}
    }

    fn enters(&mut self, worker: usize) {
        let lanes = self.settings.lanes as u32;
        let join = join(address(worker), lanes, lanes);
        let len = join.emit(&mut self.buf);
        self.switch.handle_packet(self.now, source(worker), &self.buf[..len]);
        while self.leaves(PortId::UPLINK) {}
        let len = welcome(&join).emit(&mut self.buf);
        self.switch.handle_packet(self.now, SERVER, &self.buf[..len]);
        while self.leaves(PortId::DOWNLINK) {}
    }

    fn leaves(&mut self, port: PortId) -> bool {
        self.switch.poll_transmit(self.now, port, &mut self.buf).is_some()
    }
}

fn source(worker: usize) -> Source {
    Source::new(PortId::DOWNLINK, PeerId(1 + worker as u32))
}

fn address(worker: usize) -> Address {
    olaf_samples::address(1, 0, worker as u32)
}
