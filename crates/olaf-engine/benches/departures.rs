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

mod forwarding;

use forwarding::{BATCH, Forwarding};
use olaf_samples::rounds;
use olaf_wire::Update;
use olaf_wire::offsets::MAX_SEGMENT_LANES;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

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
            let times = time(Settings { lanes, merged, batches: rounds(2000) });
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
    let mut bench = Forwarding::new(lanes, merged);
    let mut batch = || {
        let mut took = 0;
        bench.batch(|departures| {
            let began = std::time::Instant::now();
            departures();
            took = began.elapsed().as_nanos();
        });
        took as f64 / (BATCH * merged) as f64
    };
    // The first two batches meet cold caches and memory that was never touched.
    batch();
    batch();
    let times = (0..batches).map(|_| batch()).collect();
    bench.check(batches + 2);
    Ok(times)
}
