//! Any datagrams in any order at a worker's end of `reduce`: nothing panics, every operation that has
//! begun ends once at most, and everything that leaves can be read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::engine::Source;
use olaf_engine::{Engine, Instant, JobId, PeerId, PortId, Session};
use olaf_host::collective::{
    Collective, Config, Label, Operation, OperationId, Options, Recovery, Reducer, Reduction,
};
use olaf_wire::Call;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{
    ALL, Address, Block, BlockResult, Blocks, Closed, LaneType, Marks, Operator, Reason,
    ReducePacket, Want, Welcome, WelcomeCode,
};
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Arbitrary, Debug)]
struct Setting {
    workers: u8,
    rank: Option<u8>,
    window: Option<u8>,
    recovery: u8,
    is_scaled: bool,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Begin {
        lanes: u8,
        arithmetic: u8,
        partial: bool,
    },
    GiveUp(u8),
    Join,
    Leave,
    Welcome {
        to: To,
        code: u8,
        operation: u8,
        workers: u8,
        slots: u8,
        lines: u8,
    },
    Result {
        to: To,
        block: Number,
        lanes: u8,
        contributors: u8,
        missing: bool,
        value: u8,
    },
    Want {
        to: To,
        first: u8,
        mask: u64,
    },
    Closed {
        to: To,
        operation: u8,
        culprit: u8,
        reason: u8,
    },
    Wait(u16),
    Drain,
    Raw(Vec<u8>),
    /// A byte of the next datagram is another.
    Damage(u8, u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct To {
    generation: u8,
    odd: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Number {
    number: u8,
    operation: u8,
    first: u8,
    lanes: u8,
    arithmetic: u8,
}

const JOB: JobId = JobId(1);
const SESSION: Session = Session(5);

impl To {
    fn address(self) -> Address {
        let all = self.odd % 4 == 0;
        Address {
            job: JobId(1 + u32::from(self.odd == 1)),
            generation: u32::from(self.generation % 4),
            rank: if all { ALL } else { u32::from(self.odd == 2) },
            session: if all { Session(0) } else { Session(5 + u32::from(self.odd == 3)) },
        }
    }
}

struct Run {
    end: Reducer,
    now: Instant,
    damage: Option<(u8, u8)>,
    open: BTreeSet<OperationId>,
    begun: u64,
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
        self.end.handle_packet(self.now, Source::end(PeerId(0)), &bytes);
    }

    fn drain(&mut self) {
        let mut buf = vec![0; MAX_DATAGRAM];
        let mut left = 10_000;
        while let Some(sent) = self.end.poll_transmit(self.now, PortId(0), &mut buf) {
            ReducePacket::new_checked(&buf[..sent.len]).expect("the end writes messages");
            left -= 1;
            assert!(left > 0, "an end stops sending while nothing comes");
        }
        while self.end.poll_event().is_some() {}
        self.check();
    }

    fn check(&mut self) {
        while let Some(done) = self.end.poll_done() {
            assert!(self.open.remove(&done.id), "an operation ends once");
        }
        assert_eq!(self.end.open_operations(), self.open.len(), "what is open has not ended");
    }

    fn begin(&mut self, lanes: u8, arithmetic: u8, partial: bool) {
        let lane_type = LaneType::EACH[usize::from(arithmetic / 16 % 5)];
        let reduction = match arithmetic % 8 {
            0 | 1 => Reduction::Sum,
            2 => Reduction::Mean,
            3 => Reduction::Min,
            4 => Reduction::Max,
            5 => Reduction::ExactSum,
            6 => Reduction::ExactMean,
            _ => Reduction::Broadcast { root: u32::from(arithmetic / 64) },
        };
        let bytes = usize::from(lanes) * lane_type.bytes();
        let buffer = Box::new(vec![arithmetic; bytes]);
        let label = Label { is_empty: partial, ..Label::default() };
        let operation = Operation { lane_type, reduction, buffer, accepts_partial: partial, label };
        if let Ok(id) = self.end.begin(self.now, operation) {
            self.begun += 1;
            assert!(self.open.insert(id), "names are used once");
        }
    }

    fn step(&mut self, step: &Step) {
        let mut buf = vec![0; 8192];
        match step {
            Step::Begin { lanes, arithmetic, partial } => self.begin(*lanes, *arithmetic, *partial),
            Step::GiveUp(id) => self.end.give_up(self.now, OperationId(u64::from(*id))),
            Step::Join => self.end.join(self.now),
            Step::Leave => self.end.leave(self.now),
            Step::Welcome { to, code, operation, workers, slots, lines } => {
                let len = Welcome {
                    address: Address {
                        rank: u32::from(to.odd == 2),
                        session: SESSION,
                        ..to.address()
                    },
                    code: WelcomeCode::EACH[usize::from(*code) % WelcomeCode::EACH.len()],
                    operation: u32::from(*operation % 8),
                    workers: 2 + u32::from(*workers % 4),
                    here: 2,
                    slots: 1 + u32::from(*slots),
                    block_bytes: 64 * (1 + u32::from(lines % 3)),
                    cores: 1 + u32::from(lines / 128),
                    sent_at_us: 0,
                    nonce: 0,
                }
                .emit(&mut buf);
                self.recv(&buf[..len]);
            }
            Step::Result { to, block, lanes, contributors, missing, value } => {
                let lane_type = LaneType::EACH[usize::from(block.arithmetic / 16 % 5)];
                let contributors = 1 + u32::from(contributors % 4);
                let first = u32::from(block.first % 16);
                let result = BlockResult {
                    address: to.address(),
                    block: Block {
                        number: first + u32::from(block.number % 8),
                        operation: u32::from(block.operation % 8),
                        first,
                        lanes_of_operation: u64::from(block.lanes),
                        lane_type,
                        operator: Operator::EACH[usize::from(block.arithmetic % 4)],
                        call: Call::from_bits(u16::from(block.arithmetic / 4 % 4) << 13),
                    },
                    contributors,
                    expected: contributors + u32::from(*missing),
                    sent_at_us: u32::from(*value),
                    marks: Marks::default(),
                };
                let words: &[u64] = if *missing { &[1] } else { &[] };
                let lanes = vec![*value; usize::from(lanes % 64) * lane_type.bytes()];
                let len = result.emit(words, &lanes, &mut buf);
                self.recv(&buf[..len]);
            }
            Step::Want { to, first, mask } => {
                let len = Want {
                    address: to.address(),
                    operation: 0,
                    blocks: Blocks { first: u32::from(*first), mask: *mask },
                    holds: 0,
                    sent_at_us: 5,
                }
                .emit(&mut buf);
                self.recv(&buf[..len]);
            }
            Step::Closed { to, operation, culprit, reason } => {
                let len = Closed {
                    address: to.address(),
                    operation: u32::from(*operation % 8),
                    culprit: u32::from(*culprit),
                    reason: Reason::EACH[usize::from(*reason) % Reason::EACH.len()],
                    clash: None,
                }
                .emit(&mut buf);
                self.recv(&buf[..len]);
            }
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(u64::from(*ms));
                if self.end.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                    self.end.handle_timeout(self.now);
                }
                self.drain();
            }
            Step::Drain => self.drain(),
            Step::Raw(bytes) => self.recv(bytes),
            Step::Damage(at, by) => self.damage = Some((*at, *by)),
        }
    }
}

fuzz_target!(|input: (Setting, Vec<Step>)| {
    let (setting, steps) = input;
    let recovery = [Recovery::Ask, Recovery::Timer, Recovery::Off];
    let options = Options {
        window_blocks: setting.window.map(|window| 1 + u32::from(window)),
        recovery: recovery[usize::from(setting.recovery % 3)],
        scale: setting.is_scaled.then_some(1e6),
        ..Options::default()
    };
    let config = Config {
        workers: u32::from(setting.workers % 4),
        rank: setting.rank.map(u32::from),
        options,
        ..Config::new(JOB, SESSION, PeerId(0))
    };
    let mut end = Reducer::new(config);
    end.join(Instant(1 << 40));
    let mut run = Run { end, now: Instant(1 << 40), damage: None, open: BTreeSet::new(), begun: 0 };
    for step in &steps {
        run.step(step);
        run.check();
    }
    run.drain();
    run.end.leave(run.now);
    run.check();
    assert!(run.open.is_empty(), "a worker that leaves ends its operations");
});
