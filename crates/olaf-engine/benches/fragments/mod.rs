//! Fragments of ATP: a packet of each worker up, and one packet down.

use olaf_engine::switch::atp::{Config, Switch};
use olaf_engine::{Engine, Instant, PeerId, PortId, Session, Source, Verdict};
use olaf_wire::atp::{ANY, Header, Join, Key, VALUES, Welcome};
use olaf_wire::reduce::WelcomeCode;
use std::hint::black_box;

/// Workers of the job.
pub(crate) const WORKERS: u8 = 4;
const SERVER: PeerId = PeerId(99);
/// The number of the workers' arrangement.
const GENERATION: u16 = 1;
const NOW: Instant = Instant(1);

/// The switch of ATP with its workers and its server.
pub(crate) struct Run {
    switch: Switch,
    sequence: u64,
    resend: bool,
    datagram: Vec<u8>,
    out: Vec<u8>,
}

impl Run {
    /// The workers are in. `resend`: their packets go on alone.
    pub(crate) fn new(resend: bool) -> Self {
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
                operations: ANY,
                program: 0,
            };
            let len = join.emit(&mut run.datagram);
            run.given(Source::new(PortId::DOWNLINK, PeerId(rank)), len);
            let welcome = Welcome {
                rank,
                values: VALUES,
                window: join.window,
                workers: WORKERS.into(),
                here: WORKERS.into(),
                generation: GENERATION,
                life: GENERATION,
                bitmap0: 1 << rank,
                bitmap1: 1,
                fan_in0: WORKERS,
                fan_in1: 1,
                ..Welcome::without_place(&join, WelcomeCode::Welcome)
            };
            let len = welcome.emit(&mut run.datagram);
            run.given(Source::new(PortId::UPLINK, SERVER), len);
        }
        run.sent(PortId::UPLINK, WORKERS.into());
        run.sent(PortId::DOWNLINK, WORKERS.into());
        run
    }

    fn given(&mut self, from: Source, len: usize) {
        let bytes = &self.datagram[..len];
        assert_eq!(self.switch.handle_packet(NOW, from, bytes), Verdict::Absorb);
    }

    fn sent(&mut self, port: PortId, packets: usize) {
        for _ in 0..packets {
            let out = black_box(self.out.as_mut_slice());
            assert!(self.switch.poll_transmit(NOW, port, out).is_some());
        }
    }

    /// A packet of each worker, and the parameter packet back.
    pub(crate) fn fragment(&mut self) {
        let header = Header {
            job: 1,
            sequence: self.sequence as u16,
            index: (self.sequence % 4096) as u16,
            key: Key::new(GENERATION, 0, self.sequence),
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
