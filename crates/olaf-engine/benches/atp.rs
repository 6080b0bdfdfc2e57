//! What a fragment of ATP costs the switch, against adding and copying the same numbers and nothing else.
//!
//! `cargo bench -p olaf-engine --bench atp`. Four workers send a packet of 62 values each; the sum goes up,
//! and the parameter packet down to all. Alone: the four packets go up as they came. One run measures all,
//! in turns; the ratios are what counts.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark has a clock"
)]

use olaf_engine::switch::atp::{Config, Switch};
use olaf_engine::{Engine, Instant, PeerId, PortId, Session, Source, Verdict};
use olaf_wire::atp::{Header, Join, Key, VALUES};
use std::hint::black_box;
use std::time::Duration;

const WORKERS: u8 = 4;
const SERVER: PeerId = PeerId(99);
const FRAGMENTS: u32 = 2000;
const ROUNDS: usize = 50;
const NOW: Instant = Instant(1);
const BYTES: usize = VALUES as usize * 4;

fn main() {
    let (mut sums, mut alone) = (Run::new(false), Run::new(true));
    let (mut sum, values, mut copy) = ([0i32; BYTES / 4], [7u8; BYTES], [0u8; BYTES]);
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        times[0].push(took(|| {
            for _ in 0..WORKERS {
                let lanes = black_box(&values).as_chunks::<4>().0;
                let added = black_box(&mut sum).iter_mut().zip(lanes);
                added.for_each(|(sum, lane)| *sum = sum.wrapping_add(i32::from_be_bytes(*lane)));
            }
            black_box(&mut copy).copy_from_slice(black_box(&values));
        }));
        times[1].push(took(|| sums.fragment()));
        times[2].push(took(|| alone.fragment()));
    }
    let [base, sums, alone] = times.map(|mut each| {
        each.sort_unstable();
        each[ROUNDS / 2].as_secs_f64() * 1e9 / f64::from(FRAGMENTS)
    });
    println!("{WORKERS} packets of {VALUES} values, {ROUNDS} rounds of {FRAGMENTS} fragments");
    println!("  plain adds and a copy (baseline)       {base:6.0} ns a fragment");
    println!("  a sum up and its parameter packet down {sums:6.0} ns, ratio {:.1}", sums / base);
    println!("  four packets that go on alone          {alone:6.0} ns, ratio {:.1}", alone / base);
}

fn took(mut fragment: impl FnMut()) -> Duration {
    let begun = std::time::Instant::now();
    (0..FRAGMENTS).for_each(|_| fragment());
    begun.elapsed()
}

struct Run {
    switch: Switch,
    sequence: u64,
    resend: bool,
    datagram: Vec<u8>,
    out: Vec<u8>,
}

impl Run {
    fn new(resend: bool) -> Self {
        let mut switch = Switch::new(Config::default(), 1).expect("the set-up can be");
        switch.set_servers(&[SERVER]);
        let mut run =
            Self { switch, sequence: 0, resend, datagram: vec![0; 2048], out: vec![0; 65_536] };
        for rank in 0..u32::from(WORKERS) {
            let join = Join {
                job: 1,
                server: 0,
                session: Session(1 + rank),
                rank,
                workers: WORKERS.into(),
                generation: 0,
                closed: 0,
                values: VALUES,
                aggregators: 0,
                switches: [0; 4],
                sent_at_us: 1,
                scale: 1e8,
                servers: 1,
                window: 200,
                nonce: 0,
            };
            let len = join.emit(&mut run.datagram);
            let from = Source::new(PortId::DOWNLINK, PeerId(rank));
            assert_eq!(run.switch.handle_packet(NOW, from, &run.datagram[..len]), Verdict::Absorb);
        }
        run.sent(PortId::UPLINK, WORKERS.into());
        run
    }

    fn sent(&mut self, port: PortId, packets: usize) {
        for _ in 0..packets {
            let out = black_box(self.out.as_mut_slice());
            assert!(self.switch.poll_transmit(NOW, port, out).is_some());
        }
    }

    fn fragment(&mut self) {
        let header = Header {
            job: 1,
            sequence: self.sequence as u16,
            index: (self.sequence % 4096) as u16,
            key: Key::new(1, 0, self.sequence),
            tensor_length: 1 << 20,
            ..Header::default()
        };
        for rank in 0..WORKERS {
            let piece = Header {
                bitmap0: 1 << rank,
                bitmap1: 1,
                fan_in0: WORKERS,
                fan_in1: 1,
                resend: self.resend,
                ..header
            };
            let from = Source::new(PortId::DOWNLINK, PeerId(rank.into()));
            self.recv(from, &piece);
        }
        self.sent(PortId::UPLINK, if self.resend { WORKERS.into() } else { 1 });
        self.recv(Source::new(PortId::UPLINK, SERVER), &Header { ack: true, ..header });
        self.sent(PortId::DOWNLINK, 1);
        self.sequence += 1;
    }

    fn recv(&mut self, from: Source, header: &Header) {
        // The values stay: they are in the same cache as the baseline's.
        let end = header.emit_around(VALUES.into(), &mut self.datagram).end;
        let bytes = black_box(&self.datagram[..end + 12]);
        assert_eq!(self.switch.handle_packet(NOW, from, bytes), Verdict::Absorb);
    }
}
