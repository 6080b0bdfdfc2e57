//! What merging costs a switch on real sockets, against forwarding the same datagrams with the
//! same loop.
//!
//! `cargo bench -p olaf-net --bench switch`. Four senders offer updates of 8,960 bytes of one
//! cluster over loopback, as fast as they can; the switch has a core of its own where there are
//! two. Rates are per second of the switch's processor time, so that what the senders take of the
//! machine does not count.
//!
//! - *forward only* (baseline): datagrams that are not Olaf's, of the same size, passed on;
//! - *fifo*: updates, each checked, queued and sent on by itself;
//! - *merge*: the same updates through the OLAF queue. Updates that wait together in the socket
//!   merge: the model's number of segments is such that about four updates of a batch make one. The
//!   table has the measured number.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]

use olaf_net::{Switch, SwitchConfig};
use olaf_samples::{are_benches_quick, join, rounds, welcome};
use olaf_wire::offsets::update as at;
use olaf_wire::{Address, Join, Kind, Packet, Update, Welcome, WelcomeCode};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use serde_json::{Value, json};
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

const LANES: usize = 2240;
const SENDERS: u32 = 4;
/// Workers behind each sender: their updates alternate, as behind a real switch port.
const WORKERS: u32 = 4;
/// Datagrams in one send.
const BURST: usize = 7;
/// Segments of the model: two sends each.
const SEGMENTS: usize = 2 * BURST;
const MEASURE: Duration = Duration::from_millis(1500);
const QUICK: Duration = Duration::from_millis(100);

fn main() {
    let rounds = rounds(5);
    let sink = Sink::start();
    let mut forward = Vec::new();
    let mut fifo = Vec::new();
    let mut merge = Vec::new();
    for _ in 0..rounds {
        forward.push(measure(&sink, "fifo", Traffic::Foreign));
        fifo.push(measure(&sink, "fifo", Traffic::Updates));
        merge.push(measure(&sink, "olaf", Traffic::Updates));
    }
    println!(
        "switch on loopback, {SENDERS} senders, updates of {} bytes, {rounds} rounds",
        LANES * 4
    );
    let base = print("forward only (baseline)", &forward, None);
    print("fifo", &fifo, Some(base));
    print("merge", &merge, Some(base));
    println!("  goals: merge at least 0.80 of forward only, and at least 25 Gbit/s in");
}

fn print(name: &str, runs: &[Measured], base: Option<f64>) -> f64 {
    let mut gbits: Vec<f64> = runs.iter().map(|run| run.per_cpu_second * 1e-9).collect();
    gbits.sort_by(f64::total_cmp);
    let median = gbits[gbits.len() / 2];
    let mean = |of: fn(&Measured) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    println!(
        "  {name:24} {median:6.1} Gbit/s in per switch-core second ({:.1} to {:.1}){}; core busy \
         {:.0} %, {:.2} in for each out, {:.1} % lost before the switch",
        gbits[0],
        gbits[gbits.len() - 1],
        base.map_or(String::new(), |base| format!(", ratio {:.2}", median / base)),
        mean(|run| run.busy) * 100.0,
        mean(|run| run.in_for_each_out),
        mean(|run| run.lost) * 100.0,
    );
    median
}

#[derive(Clone, Copy, PartialEq)]
enum Traffic {
    Foreign,
    Updates,
}

struct Measured {
    per_cpu_second: f64,
    busy: f64,
    in_for_each_out: f64,
    lost: f64,
}

/// A switch that passes on what is not Olaf's from these sockets.
fn switch(sink: &Sink, queue: &str, sockets: &[UdpSocket]) -> Switch {
    let from: Vec<_> =
        sockets.iter().map(|socket| socket.local_addr().expect("an address").to_string()).collect();
    let config = json!({
        "listen": "127.0.0.1:0", "upstream": sink.address, "queue": queue, "slots": 64, "core": 0,
        "pass_from": from,
    });
    let config = SwitchConfig::from_json(&config.to_string()).expect("a configuration");
    let switch = Switch::bind(&config).expect("a free port");
    switch.start().expect("a thread");
    switch
}

fn statistics(switch: &Switch) -> Value {
    let text = switch.statistics().expect("the switch runs");
    serde_json::from_str(&text).expect("statistics are JSON")
}

fn measure(sink: &Sink, queue: &str, traffic: Traffic) -> Measured {
    let sockets: Vec<_> =
        (0..SENDERS).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    let switch = &switch(sink, queue, &sockets);
    let stop = Arc::new(AtomicBool::new(false));
    let all_in = Arc::new(Barrier::new(SENDERS as usize));
    let target: SocketAddr = switch.address().parse().expect("an address");
    let senders: Vec<_> = (0..)
        .zip(sockets)
        .map(|(sender, socket)| {
            let (stop, all_in, first) = (stop.clone(), all_in.clone(), sender * WORKERS);
            thread::spawn(move || send(&socket, target, first, traffic, &all_in, &stop))
        })
        .collect();
    // Past the joins, into the steady state.
    let flowing = Instant::now();
    while statistics(switch)["io"]["received_datagrams"].as_u64() < Some(20_000) {
        assert!(flowing.elapsed() < Duration::from_secs(20), "nothing arrives at the switch");
        thread::sleep(Duration::from_millis(5));
    }
    let (before, began) = (statistics(switch), Instant::now());
    thread::sleep(if are_benches_quick() { QUICK } else { MEASURE });
    let (after, took) = (statistics(switch), began.elapsed().as_secs_f64());
    stop.store(true, Ordering::Relaxed);
    senders.into_iter().for_each(|sender| sender.join().expect("a sender"));
    if traffic == Traffic::Updates {
        let fates = &after["fates"];
        let refused = fates["rejected"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(refused, 0, "every update is a good one: {fates}");
    }
    let change = |key: &str| {
        after["io"][key].as_f64().unwrap_or(0.0) - before["io"][key].as_f64().unwrap_or(0.0)
    };
    let (bits, cpu) = (change("received_bytes") * 8.0, change("cpu_s"));
    let sent = change("sent_datagrams");
    assert!(sent > 0.0, "the switch passes on what it gets: {after}");
    let (received, dropped) = (change("received_datagrams"), change("kernel_drops"));
    Measured {
        per_cpu_second: bits / cpu,
        busy: cpu / took,
        in_for_each_out: received / sent,
        lost: dropped / (dropped + received),
    }
}

/// One sender: joins its workers, then offers updates in bursts until told to stop.
fn send(
    socket: &UdpSocket,
    target: SocketAddr,
    first: u32,
    traffic: Traffic,
    all_in: &Barrier,
    stop: &AtomicBool,
) {
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    let addresses: Vec<_> = (first..first + WORKERS).map(address).collect();
    let mut buf = vec![0; 1 << 16];
    for address in &addresses {
        let welcomed = (0..100).any(|_| {
            let join = join(*address, (SEGMENTS * LANES) as u32, LANES as u32);
            let len = join.emit(&mut buf);
            socket.send_to(&buf[..len], target).expect("loopback");
            socket.recv(&mut buf).is_ok_and(|len| welcomes(&buf[..len], *address))
        });
        assert!(welcomed, "the switch lets workers in");
    }
    all_in.wait();
    let state = UdpSocketState::new(socket.into()).expect("a socket");
    let size = Update::datagram_len(LANES);
    let mut bursts = [vec![0; BURST * size], vec![0; BURST * size]];
    let lanes = vec![1e-3; LANES];
    for (segment, datagram) in (0..).zip(bursts.iter_mut().flat_map(|b| b.chunks_exact_mut(size))) {
        Update { segment, ..update(addresses[0]) }.emit(&lanes, datagram);
        if traffic == Traffic::Foreign {
            datagram[0] = b'X';
        }
    }
    let mut hop = 0u32;
    for sequence in 0u32.. {
        let Address { worker, session, .. } = addresses[(sequence % WORKERS) as usize];
        for burst in &mut bursts {
            for datagram in burst.chunks_exact_mut(size) {
                datagram[16..20].copy_from_slice(&worker.0.to_be_bytes());
                datagram[20..24].copy_from_slice(&session.0.to_be_bytes());
                // No two datagrams of a sender have one number: the second would be a duplicate.
                hop = hop.wrapping_add(1);
                for (field, number) in [(at::SEQUENCE, sequence), (at::HOP_SEQUENCE, hop)] {
                    datagram[field..field + 4].copy_from_slice(&number.to_be_bytes());
                }
            }
            let transmit = Transmit {
                destination: target,
                ecn: None,
                contents: burst,
                segment_size: Some(size),
                src_ip: None,
            };
            if state.try_send(socket.into(), &transmit).is_err() {
                thread::yield_now();
            }
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn welcomes(datagram: &[u8], address: Address) -> bool {
    let packet = Packet::new_checked(datagram).and_then(|packet| Welcome::parse(&packet));
    packet.is_ok_and(|w| w.address == address && w.code == WelcomeCode::Welcome)
}

/// The server's place: lets workers in, and swallows the rest.
struct Sink {
    address: String,
}

impl Sink {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address").to_string();
        thread::spawn(move || {
            let state = UdpSocketState::new((&socket).into()).expect("a socket");
            let _ = state.set_recv_buffer_size((&socket).into(), 4 << 20);
            socket.set_nonblocking(false).expect("blocking");
            let mut buf = vec![0; 1 << 16];
            let mut out = [0; 256];
            loop {
                let mut meta = [RecvMeta::default()];
                let mut buffers = [IoSliceMut::new(&mut buf)];
                if state.recv((&socket).into(), &mut buffers, &mut meta).is_err() {
                    continue;
                }
                for datagram in buf[..meta[0].len].chunks(meta[0].stride.max(1)) {
                    let packet = Packet::new_checked(datagram);
                    let join = packet.ok().filter(|packet| packet.kind() == Kind::Join);
                    if let Some(join) = join.and_then(|packet| Join::parse(&packet).ok()) {
                        let len = welcome(&join).emit(&mut out);
                        let _ = socket.send_to(&out[..len], meta[0].addr);
                    }
                }
            }
        });
        Self { address }
    }
}

fn address(worker: u32) -> Address {
    olaf_samples::address(1, 1, worker)
}

fn update(address: Address) -> Update {
    Update { segments: SEGMENTS as u32, reward: 0.5, ..olaf_samples::update(address, 0) }
}
