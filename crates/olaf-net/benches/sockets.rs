//! What the socket that carries the whole traffic class costs, against quinn-udp's.
//!
//! `cargo bench -p olaf-net --bench sockets`. One thread sends a batch over loopback and receives
//! it again, in turn through a pair of sockets of each kind. The figure is the processor time of
//! that thread, kernel included; waits do not count. A ratio above 1: the whole class costs more.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]

use olaf_engine::TrafficClass;
use olaf_net::{Batch, Inbox, Socket, StartError};
use olaf_samples::rounds;
use rustix::time::{ClockId, clock_gettime};
use std::net::SocketAddr;

/// Datagrams of one send, and their bytes.
struct Shape {
    name: &'static str,
    datagrams: usize,
    bytes: usize,
    /// Sends in a round.
    sends: usize,
}

const SHAPES: [Shape; 3] = [
    Shape { name: "7 updates of 8,960 bytes a send", datagrams: 7, bytes: 8960, sends: 2000 },
    Shape { name: "64 answers of 112 bytes a send", datagrams: 64, bytes: 112, sends: 4000 },
    Shape { name: "one answer of 112 bytes a send", datagrams: 1, bytes: 112, sends: 20_000 },
];

fn main() {
    let number = rounds(21);
    let ecn = Pair::new(Socket::bind);
    let whole = Pair::new(Socket::bind_whole_class);
    println!("whole traffic class against ECN alone, {number} rounds of each in turn");
    for shape in &SHAPES {
        let mut rounds = Vec::new();
        for _ in 0..number {
            rounds.push((ecn.round(shape), whole.round(shape)));
        }
        let mut ratios: Vec<f64> = rounds.iter().map(|(ecn, whole)| whole / ecn).collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "  {:32} {:7.2} us a send through ECN alone, ratio {:.3} ({:.3} to {:.3})",
            shape.name,
            median(rounds.iter().map(|(ecn, _)| ecn * 1e6).collect()),
            median(ratios.clone()),
            ratios[number / 4],
            ratios[number - 1 - number / 4],
        );
    }
    println!("  goal: each ratio at most 1.05; the range holds the middle half of the rounds");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Pair {
    from: Socket,
    to: Socket,
}

impl Pair {
    fn new(bind: fn(SocketAddr) -> Result<Socket, StartError>) -> Self {
        let bound = || bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        Self { from: bound(), to: bound() }
    }

    /// Seconds of processor time that a send and its receives took, on average.
    fn round(&self, shape: &Shape) -> f64 {
        let contents = vec![1; shape.datagrams * shape.bytes];
        let class = TrafficClass(2);
        let batch = Batch {
            to: self.to.local(),
            from: None,
            class,
            contents: &contents,
            segment: shape.bytes,
        };
        let mut inbox = Inbox::new();
        let began = processor_s();
        for _ in 0..shape.sends {
            self.from.send(&batch).expect("loopback takes it");
            let mut missing = shape.datagrams;
            while missing > 0 {
                self.to.receive(&mut inbox).expect("it has arrived");
                for burst in inbox.bursts() {
                    assert_eq!(burst.class, class);
                    missing -= burst.datagrams().count();
                }
            }
        }
        (processor_s() - began) / shape.sends as f64
    }
}

fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
