//! What keys, and readers of its metrics, cost a switch on real sockets: the same job with and
//! without, in turn.
//!
//! `cargo bench -p olaf-net --bench keys`. Four workers push a model of 14 segments of 8,960 bytes
//! over loopback as fast as they can; the server is a real one. Rates are datagrams that the switch
//! takes in per second of its own processor time, so that what workers and server take of the machine
//! does not count. With keys it verifies each datagram, and signs each that it sends on. The reader asks
//! for `/metrics` fifty times a second, which is 750 times as often as Prometheus does.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]

use olaf_net::keys::Key;
use olaf_net::{Client, ClientConfig, Server, ServerConfig, Switch, SwitchConfig};
use olaf_samples::{are_benches_quick, rounds};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LANES: usize = 2230;
const SEGMENTS: usize = 14;
const WORKERS: u32 = 4;
const MEASURE: Duration = Duration::from_millis(1500);
const QUICK: Duration = Duration::from_millis(100);
const READ_EVERY: Duration = Duration::from_millis(20);

/// A job's key and its switch's, in files of this process.
struct Files {
    folder: PathBuf,
    job: String,
    switch: String,
}

impl Files {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("olaf-keys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let key = Key::generate(None);
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let (job, switch) = (path("job.key"), path("switch.key"));
        key.write(job.as_ref()).expect("a new file");
        key.for_switch().write(switch.as_ref()).expect("a new file");
        Self { folder, job, switch }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn main() {
    let rounds = rounds(7);
    let files = Files::new();
    let (mut clear, mut keyed, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        clear.push(measure(None, false));
        keyed.push(measure(Some(&files), false));
        read.push(measure(None, true));
    }
    println!(
        "switch on loopback, {WORKERS} workers, segments of {} bytes, {rounds} rounds",
        LANES * 4
    );
    let median = |rates: &mut Vec<f64>, name: &str| {
        rates.sort_by(f64::total_cmp);
        let (low, high) = (rates[0], rates[rates.len() - 1]);
        let median = rates[rates.len() / 2];
        println!(
            "  {name:14} {median:9.0} datagrams in per switch-core second ({low:.0} to {high:.0})"
        );
        median
    };
    let without = median(&mut clear, "without keys");
    let with = median(&mut keyed, "with keys");
    println!("  ratio {:.2} (goal: at least 0.75)", with / without);
    let read = median(&mut read, "metrics read");
    println!("  ratio {:.2}", read / without);
}

/// Datagrams that the switch takes in per second of its processor time.
fn measure(files: Option<&Files>, read: bool) -> f64 {
    let key_files = |of: fn(&Files) -> &String| files.map(of).into_iter().collect::<Vec<_>>();
    let server = json!({"listen": "127.0.0.1:0", "key_files": key_files(|files| &files.job)});
    let server = ServerConfig::from_json(&server.to_string()).expect("a configuration");
    let server = Server::bind(&server).expect("a free port");
    server.start().expect("a thread");
    let switch = json!({
        "listen": "127.0.0.1:0", "upstream": server.address(), "slots": 64, "core": 0,
        "key_files": key_files(|files| &files.switch),
        "metrics": read.then_some("127.0.0.1:0"),
    });
    let switch = SwitchConfig::from_json(&switch.to_string()).expect("a configuration");
    let switch = Switch::bind(&switch).expect("a free port");
    switch.start().expect("a thread");
    let client = json!({"segment_lanes": LANES, "key_file": files.map(|files| &files.job)});
    let client = ClientConfig::from_json(&client.to_string()).expect("a configuration");
    let weights = vec![0.0; LANES * SEGMENTS];
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (client, weights, address) = (&client, &weights, switch.address());
            scope.spawn(move || {
                let client = Client::open(address, 1, 1, Some(worker), client).expect("a socket");
                client.join(&[weights], Duration::from_secs(20)).expect("the job lets it in");
                let update = vec![1e-6; LANES * SEGMENTS];
                while !stop.load(Ordering::Relaxed) {
                    client.push(&[&update], 0.0, 1.0).expect("finite values");
                }
            });
        }
        if let Some(address) = switch.metrics_address() {
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let page = page(address);
                    assert!(page.contains("\nolaf_"), "no metrics: {page}");
                    thread::sleep(READ_EVERY);
                }
            });
        }
        let flowing = Instant::now();
        while taken_in(&switch).0 < 20_000.0 {
            assert!(flowing.elapsed() < Duration::from_secs(30), "nothing arrives at the switch");
            thread::sleep(Duration::from_millis(5));
        }
        let before = taken_in(&switch);
        thread::sleep(if are_benches_quick() { QUICK } else { MEASURE });
        let after = taken_in(&switch);
        stop.store(true, Ordering::Relaxed);
        (after.0 - before.0) / (after.1 - before.1)
    })
}

/// The metrics, as a reader gets them.
fn page(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("the role listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the role reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("the role answers");
    page
}

/// Datagrams so far, and seconds of processor time.
fn taken_in(switch: &Switch) -> (f64, f64) {
    let text = switch.statistics().expect("the switch runs");
    let told: Value = serde_json::from_str(&text).expect("statistics are JSON");
    let of = |key: &str| told["io"][key].as_f64().expect("a number");
    assert_eq!(of("not_opened"), 0.0, "every seal is valid");
    (of("received_datagrams"), of("cpu_s"))
}
