//! Any datagrams in any order at a worker of Trio-ML, well-formed, odd and raw: nothing panics, no operation
//! is forgotten, every result has one fate, and everything that leaves can be read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::{Engine, Instant, JobId, PeerId, PortId, Session, Source};
use olaf_host::collective::trio::Options as Own;
use olaf_host::collective::{
    Collective, Config, Label, Operation, OperationId, Options, Reduction, TrioWorker,
};
use olaf_wire::Sides;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{LaneType, Reason, WelcomeCode};
use olaf_wire::trio::{ANY, Block, Closed, Gone, TrioPacket, Want, Welcome};
use std::time::Duration;

const SWITCH: PeerId = PeerId(9);
const SESSION: Session = Session(7);

#[derive(Arbitrary, Debug)]
enum Step {
    Begin {
        lanes: u8,
        accepts_partial: bool,
    },
    GiveUp(u8),
    Welcome {
        term: u8,
        code: u8,
        rank: u8,
        gradients: u8,
        window: u8,
        first: u8,
    },
    Result {
        block: u8,
        sources: u8,
        generation: u8,
        marks: u8,
        gradients: u8,
        value: i32,
    },
    Want {
        term: u8,
        generation: u8,
        block: u8,
        mask: u64,
    },
    Gone {
        term: u8,
        generation: u8,
        block: u8,
    },
    Closed {
        term: u8,
        generation: u8,
        mask: u64,
        reason: u8,
        culprit: u8,
    },
    Join,
    Leave,
    Wait(u16),
    Raw(Vec<u8>),
    /// A byte of the next datagram is another.
    Damage(u8, u8),
}

struct Run {
    worker: TrioWorker,
    now: Instant,
    damage: Option<(u8, u8)>,
    begun: u64,
    ended: u64,
}

impl Run {
    fn recv(&mut self, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        if let Some((at, by)) = self.damage.take()
            && !bytes.is_empty()
        {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= by;
        }
        self.worker.handle_packet(self.now, Source::end(SWITCH), &bytes);
    }

    fn check(&mut self) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for sent in 0.. {
            assert!(sent < 10_000, "the worker sends for ever");
            let Some(sent) = self.worker.poll_transmit(self.now, PortId(0), &mut buf) else {
                break;
            };
            TrioPacket::new_checked(&buf[..sent.len]).expect("the worker writes messages");
        }
        while self.worker.poll_event().is_some() {}
        while self.worker.poll_done().is_some() {
            self.ended += 1;
        }
        let of = self.worker.statistics(self.now);
        let operations = of.operations;
        assert_eq!(operations.begun, self.begun);
        assert_eq!(operations.done + operations.failed, self.ended);
        assert_eq!(operations.begun, self.ended + operations.open);
        let results = of.results;
        assert_eq!(results.received, results.taken + results.early + results.refused);
    }

    fn step(&mut self, step: &Step) {
        let mut buf = vec![0; 2048];
        let len = match *step {
            Step::Begin { lanes, accepts_partial } => {
                let operation = Operation {
                    lane_type: LaneType::F32,
                    reduction: if lanes % 2 == 0 { Reduction::Sum } else { Reduction::Mean },
                    buffer: Box::new(vec![1u8; 4 * usize::from(lanes)]),
                    accepts_partial,
                    label: Label::default(),
                };
                self.begun += u64::from(self.worker.begin(self.now, operation).is_ok());
                0
            }
            Step::GiveUp(id) => {
                self.worker.give_up(self.now, OperationId(id.into()));
                0
            }
            Step::Welcome { term, code, rank, gradients, window, first } => Welcome {
                job: 1,
                term: u32::from(term % 4),
                source: if rank > 200 { ANY } else { rank % 4 },
                workers: 3,
                first: u16::from(first % 8),
                session: if rank == 0 { Session(8) } else { SESSION },
                code: WelcomeCode::EACH[usize::from(code) % WelcomeCode::EACH.len()],
                gradients: u16::from(gradients % 9),
                here: 3,
                window: u16::from(window % 9),
                newest: u16::from(first / 8 % 8),
                sent_at_us: 1,
                nonce: 0,
            }
            .emit(&mut buf),
            Step::Result { block, sources, generation, marks, gradients, value } => Block {
                job: 1,
                block: u32::from(block % 32),
                aged: marks & 1 == 1,
                is_final: marks & 2 == 2,
                degraded: marks & 4 == 4,
                source: ANY,
                sources: sources % 5,
                generation: u16::from(generation % 8),
                call: marks / 8 % 2,
            }
            .emit(&vec![value; usize::from(gradients % 10)], &mut buf),
            Step::Want { term, generation, block, mask } => Want {
                job: 1,
                term: u32::from(term % 4),
                source: 0,
                session: SESSION,
                generation: u16::from(generation % 8),
                block: u32::from(block % 32),
                mask,
                sent_at_us: 0,
            }
            .emit(&mut buf),
            Step::Gone { term, generation, block } => Gone {
                job: 1,
                term: u32::from(term % 4),
                source: 0,
                session: SESSION,
                generation: u16::from(generation % 8),
                block: u32::from(block % 32),
            }
            .emit(&mut buf),
            Step::Closed { term, generation, mask, reason, culprit } => Closed {
                job: 1,
                term: u32::from(term % 4),
                culprit: if culprit > 4 { ANY } else { culprit },
                generation: u16::from(generation % 8),
                mask,
                reason: Reason::EACH[usize::from(reason) % Reason::EACH.len()],
                sides: Sides::from_byte(reason),
            }
            .emit(&mut buf),
            Step::Join => {
                self.worker.join(self.now);
                0
            }
            Step::Leave => {
                self.worker.leave(self.now);
                0
            }
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(ms.into());
                self.worker.handle_timeout(self.now);
                0
            }
            Step::Raw(ref bytes) => {
                self.recv(bytes);
                0
            }
            Step::Damage(at, by) => {
                self.damage = Some((at, by));
                0
            }
        };
        if len > 0 {
            self.recv(&buf[..len]);
        }
        self.check();
    }
}

fuzz_target!(|input: (u8, Vec<Step>)| {
    let (deadline_ms, steps) = input;
    let config = Config {
        rank: Some(0),
        workers: 3,
        datagram_bytes: 1472,
        options: Options {
            deadline: (deadline_ms > 0).then(|| Duration::from_millis(deadline_ms.into())),
            ..Options::default()
        },
        ..Config::new(JobId(1), SESSION, SWITCH)
    };
    let mut worker = TrioWorker::new(config, Own { gradients: 8, window: 4, ..Own::default() })
        .expect("a configuration in range");
    let now = Instant(1 << 40);
    worker.join(now);
    let mut run = Run { worker, now, damage: None, begun: 0, ended: 0 };
    steps.iter().for_each(|step| run.step(step));
});
