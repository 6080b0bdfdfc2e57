//! Any datagrams in any order at a worker and at a parameter server of ATP: nothing panics, every
//! operation ends once at most, every packet has one fate, and everything that leaves can be read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::{Engine, Instant, JobId, PeerId, PortId, Session, Source};
use olaf_host::collective::atp::{AtpServer, Options, ServerConfig, Worker};
use olaf_host::collective::{Collective, Config, Label, Operation, OperationId, Reduction};
use olaf_wire::atp::AtpPacket;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::LaneType;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Arbitrary, Debug)]
enum Step {
    Begin {
        lanes: u8,
        value: f32,
    },
    GiveUp(u8),
    Leave,
    Join,
    /// The next datagram of one of them arrives, once or twice, perhaps with another byte.
    Deliver {
        up: bool,
        twice: bool,
        damage: Option<(u8, u8)>,
    },
    Lose {
        up: bool,
    },
    Wait(u16),
    Raw(bool, Vec<u8>),
}

const SERVER: PeerId = PeerId(0);
const WORKER: PeerId = PeerId(1);

struct Run {
    worker: Worker,
    server: AtpServer,
    up: VecDeque<Vec<u8>>,
    down: VecDeque<Vec<u8>>,
    now: Instant,
    begun: u64,
    ended: u64,
}

impl Run {
    fn recv(&mut self, up: bool, bytes: &[u8]) {
        if up {
            self.server.handle_packet(self.now, Source::end(WORKER), bytes);
        } else {
            self.worker.handle_packet(self.now, Source::end(SERVER), bytes);
        }
    }

    fn drain(&mut self) {
        let mut buf = vec![0; MAX_DATAGRAM];
        let mut left = 10_000;
        while let Some(sent) = self.worker.poll_transmit(self.now, PortId(0), &mut buf) {
            AtpPacket::new_checked(&buf[..sent.len]).expect("the worker writes messages");
            self.up.push_back(buf[..sent.len].to_vec());
            left -= 1;
            assert!(left > 0, "a worker stops sending while nothing comes");
        }
        while let Some(sent) = self.server.poll_transmit(self.now, PortId(0), &mut buf) {
            AtpPacket::new_checked(&buf[..sent.len]).expect("the server writes messages");
            self.down.push_back(buf[..sent.len].to_vec());
        }
        while self.worker.poll_done().is_some() {
            self.ended += 1;
        }
        assert_eq!(self.begun - self.ended, self.worker.open_operations() as u64);
        let of = self.worker.statistics();
        let sent = of.fragments;
        assert_eq!(sent.sent, sent.answered + sent.in_flight + sent.abandoned);
        let of = self.server.statistics().gradients;
        let fates = of.singles + of.sums + of.repeated + of.overlapping + of.late;
        assert_eq!(of.received, fates + of.ran_over + of.not_float + of.mismatched + of.refused);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Begin { lanes, value } => {
                let lanes = value.to_le_bytes().into_iter().cycle().take(4 * usize::from(*lanes));
                let operation = Operation {
                    lane_type: LaneType::F32,
                    reduction: Reduction::Sum,
                    buffer: Box::new(lanes.collect::<Vec<u8>>()),
                    accepts_partial: false,
                    label: Label::default(),
                };
                self.begun += u64::from(self.worker.begin(self.now, operation).is_ok());
            }
            Step::GiveUp(id) => self.worker.give_up(self.now, OperationId(u64::from(*id))),
            Step::Leave => self.worker.leave(self.now),
            Step::Join => self.worker.join(self.now),
            Step::Deliver { up, twice, damage } => {
                let queue = if *up { &mut self.up } else { &mut self.down };
                let Some(mut bytes) = queue.pop_front() else { return };
                if let Some((at, by)) = damage {
                    let at = usize::from(*at) % bytes.len();
                    bytes[at] ^= by;
                }
                (0..1 + usize::from(*twice)).for_each(|_| self.recv(*up, &bytes));
            }
            Step::Lose { up } => {
                (if *up { &mut self.up } else { &mut self.down }).pop_front();
            }
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(u64::from(*ms));
                self.worker.handle_timeout(self.now);
                self.server.handle_timeout(self.now);
            }
            Step::Raw(up, bytes) => self.recv(*up, bytes),
        }
        self.drain();
    }
}

fuzz_target!(|input: (u8, Vec<Step>)| {
    let (workers, steps) = input;
    let config =
        Config { workers: 1 + u32::from(workers % 2), ..Config::new(JobId(1), Session(5), SERVER) };
    let own = Options { values: 3, first_packets: 4, most_packets: 8, ..Options::default() };
    let mut worker = Worker::new(config, own).expect("a configuration in range");
    let now = Instant(1 << 40);
    worker.join(now);
    let server = AtpServer::new(ServerConfig::default(), 7).expect("a configuration in range");
    let (up, down) = (VecDeque::new(), VecDeque::new());
    let mut run = Run { worker, server, up, down, now, begun: 0, ended: 0 };
    steps.iter().for_each(|step| run.step(step));
    run.worker.leave(run.now);
    run.drain();
    assert_eq!(run.begun, run.ended, "a worker that leaves ends its operations");
});
