//! The rate pacer on a real socket, by the switch's own counters.

use olaf_net::{Switch, SwitchConfig};
use olaf_samples::{address, join, update, welcome};
use olaf_wire::offsets::update as at;
use olaf_wire::{Join, Kind, Packet, Update};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LANES: u32 = 2208;
/// A machine that is busy with other tests may not feed a link of one gigabit. Then a slower link shows whether the
/// pacer keeps its rate.
const RATES: [f64; 2] = [1e9, 1e8];
const DEADLINE: Duration = Duration::from_secs(20);
const FILLED_WITHIN: Duration = Duration::from_secs(5);
const TRIES: usize = 5;

fn statistics(switch: &Switch) -> Value {
    serde_json::from_str(&switch.statistics().expect("it runs")).expect("JSON")
}

#[test]
fn a_busy_link_keeps_its_rate_within_a_hundredth() {
    let kept = RATES.into_iter().find_map(|rate| Some((rate, measured_at(rate)?)));
    let (rate, kept) = kept.expect("the queue ran dry in every try, at each rate");
    assert!((kept / rate - 1.0).abs() < 0.01, "{kept} bit/s in place of {rate}");
}

/// The rate of a link that should have this one; nothing where the queue ran dry in every try.
fn measured_at(rate: f64) -> Option<f64> {
    let sink = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sink.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    let config = json!({
        "listen": "127.0.0.1:0",
        "upstream": sink.local_addr().expect("an address").to_string(),
        // Deep enough that the link stays busy while the machine looks elsewhere.
        "queue": "fifo", "slots": 8192, "uplink_bps": rate as u64,
    });
    let config = SwitchConfig::from_json(&config.to_string()).expect("a configuration");
    let switch = Switch::bind(&config).expect("a port");
    switch.start().expect("a thread");
    let worker = UdpSocket::bind("127.0.0.1:0").expect("a port");
    worker.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    worker.connect(switch.address()).expect("loopback");
    let stop = AtomicBool::new(false);

    thread::scope(|scope| {
        // The threads end however this one ends: otherwise a failed assertion would wait for them.
        let _stop = Stop(&stop);
        scope.spawn(|| serve(&sink, &stop));
        enter(&worker);
        scope.spawn(|| push(&worker, &switch, &stop));
        // A machine that is busy with something else may let the queue run dry, or keep the switch from
        // sending: that says nothing about the pacer, and the measurement begins again. A link that is
        // too fast, or too slow in each try, is the pacer's fault.
        let mut slow = None;
        for _ in 0..TRIES {
            match measured(&switch) {
                Some(kept) if kept < rate * 0.99 => slow = Some(kept),
                Some(kept) => return Some(kept),
                None => {}
            }
        }
        slow
    })
}

/// The rate of 10,000 departures, bits per second; nothing where the queue ran dry meanwhile.
fn measured(switch: &Switch) -> Option<f64> {
    let waiting = |all: &Value| all["fates"]["waiting"].as_u64().unwrap_or(0);
    let began = Instant::now();
    while waiting(&statistics(switch)) < 4000 {
        if began.elapsed() > FILLED_WITHIN {
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
    let before = statistics(switch);
    let mut after = statistics(switch);
    while after["departures"].as_u64() < before["departures"].as_u64().map(|n| n + 10_000) {
        assert!(began.elapsed() < DEADLINE, "the link is too slow: {after}");
        thread::sleep(Duration::from_millis(1));
        after = statistics(switch);
        if waiting(&after) <= 100 {
            return None;
        }
    }
    let change = |key: &str| {
        after[key].as_f64().expect("a number") - before[key].as_f64().expect("a number")
    };
    let bits = change("departures") * Update::datagram_len(LANES as usize) as f64 * 8.0;
    Some(bits / change("uptime_s"))
}

/// Tells the threads to end when it goes.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lets workers in, and swallows the rest.
fn serve(sink: &UdpSocket, stop: &AtomicBool) {
    let (mut buf, mut out) = (vec![0; 1 << 16], [0; 256]);
    while !stop.load(Ordering::Relaxed) {
        let Ok((len, from)) = sink.recv_from(&mut buf) else { continue };
        let packet = Packet::new_checked(&buf[..len]).ok().filter(|p| p.kind() == Kind::Join);
        if let Some(join) = packet.and_then(|packet| Join::parse(&packet).ok()) {
            let len = welcome(&join).emit(&mut out);
            sink.send_to(&out[..len], from).expect("loopback");
        }
    }
}

fn enter(worker: &UdpSocket) {
    let mut buf = [0; 256];
    let came_in = (0..100).any(|_| {
        let len = join(address(1, 1, 1), LANES, LANES).emit(&mut buf);
        worker.send(&buf[..len]).expect("loopback");
        worker.recv(&mut buf).is_ok()
    });
    assert!(came_in, "the switch lets the worker in");
}

/// Keeps the queue filled without flooding the socket.
fn push(worker: &UdpSocket, switch: &Switch, stop: &AtomicBool) {
    let mut datagram = vec![0; Update::datagram_len(LANES as usize)];
    update(address(1, 1, 1), 0).emit(&vec![1.0; LANES as usize], &mut datagram);
    let mut sequence = 0u32;
    while !stop.load(Ordering::Relaxed) {
        if statistics(switch)["fates"]["waiting"].as_u64() > Some(7000) {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        for _ in 0..500 {
            sequence += 1;
            for number in [at::SEQUENCE, at::HOP_SEQUENCE] {
                datagram[number..number + 4].copy_from_slice(&sequence.to_be_bytes());
            }
            worker.send(&datagram).expect("loopback");
        }
    }
}
