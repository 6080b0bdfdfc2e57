//! Any datagrams in any order at a switch that sums, uppermost or lower, well-formed, odd and raw:
//! nothing panics, every piece has one fate, and everything that leaves can be read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::engine::Source;
use olaf_engine::sums::SETTLE;
use olaf_engine::switch::reduce::{Config, Switch};
use olaf_engine::{Engine, Instant, JobId, PeerId, PortId, Session};
use olaf_wire::Call;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{
    ALL, Address, Ask, Block, BlockResult, Blocks, Called, Clash, Closed, Join, LaneType, Leave,
    Marks, Operator, Piece, Reason, ReducePacket, Want, Welcome, WelcomeCode,
};
use std::time::Duration;

#[derive(Arbitrary, Debug)]
struct Setting {
    jobs: u8,
    slots: u8,
    memory: u16,
    deadline_ms: u8,
    renew_at: u8,
    is_lower: bool,
    elastic: bool,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Join {
        who: Who,
        block_bytes: u8,
        contributors: u8,
        datagram_bytes: u16,
    },
    Piece {
        who: Who,
        block: Number,
        holds: u8,
        lanes: u8,
        contributors: u8,
        value: f32,
    },
    Ask {
        who: Who,
        first: u8,
        mask: u64,
        holds: u8,
    },
    Leave {
        who: Who,
        operation: u8,
    },
    Closed {
        who: Who,
        up: bool,
        operation: u8,
        reason: u8,
    },
    Welcome {
        who: Who,
        code: u8,
        workers: u8,
        slots: u8,
        lines: u8,
    },
    Result {
        who: Who,
        block: Number,
        lanes: u8,
        contributors: u8,
        expected: u8,
    },
    Want {
        who: Who,
        first: u8,
        mask: u64,
    },
    Wait(u16),
    Drain,
    Raw(bool, Vec<u8>),
    /// A byte of the next datagram is another.
    Damage(u8, u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Who {
    worker: u8,
    odd: u8,
    generation: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Number {
    number: u8,
    operation: u8,
    first: u8,
    lanes: u8,
    arithmetic: u8,
}

const EPOCH: u32 = 1;

impl Who {
    fn rank(self) -> u32 {
        u32::from(self.worker % 3)
    }
    fn peer(self) -> PeerId {
        PeerId(self.rank() + 10 * u32::from(self.odd == 1))
    }
    fn address(self) -> Address {
        Address {
            job: JobId(1 + u32::from(self.worker / 3 % 3)),
            generation: EPOCH + u32::from(self.generation % 4),
            rank: self.rank() + u32::from(self.odd == 3),
            session: Session(1 + self.rank() + u32::from(self.odd == 2)),
        }
    }
}

impl Number {
    fn block(self) -> Block {
        let first = u32::from(self.first % 8);
        Block {
            number: first + u32::from(self.number % 4),
            operation: u32::from(self.operation % 6),
            first,
            lanes_of_operation: u64::from(self.lanes),
            lane_type: LaneType::EACH[usize::from(self.arithmetic / 16 % 5)],
            operator: Operator::EACH[usize::from(self.arithmetic % 4)],
            call: Call::from_bits(u16::from(self.arithmetic / 4 % 4) << 13),
        }
    }
}

/// What an end says that it awaits: an operation, and what it calls it.
fn awaited(mask: u64) -> (u32, Called) {
    let [operation, lane_type, operator, lanes] =
        [8, 16, 24, 32].map(|shift| (mask >> shift) as u8);
    let called = Called {
        call: Call::from_bits(u16::from(operator / 4) << 10),
        lane_type: LaneType::EACH[usize::from(lane_type % 5)],
        operator: Operator::EACH[usize::from(operator % 4)],
        lanes: lanes.into(),
    };
    (u32::from(operation % 6), called)
}

fn clash_of(reason: u8) -> Clash {
    let [culprit, others] = [reason, !reason].map(|byte| awaited(u64::from(byte) << 16).1);
    Clash { culprit, others }
}

struct Run {
    switch: Switch,
    now: Instant,
    damage: Option<(u8, u8)>,
}

impl Run {
    fn recv(&mut self, above: bool, peer: PeerId, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        if let Some((at, by)) = self.damage.take()
            && !bytes.is_empty()
        {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= by;
        }
        let (port, peer) = match above {
            true => (PortId::UPLINK, PeerId(99)),
            false => (PortId::DOWNLINK, peer),
        };
        self.switch.handle_packet(self.now, Source::new(port, peer), &bytes);
    }

    fn drain(&mut self) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for port in [PortId::UPLINK, PortId::DOWNLINK] {
            while let Some(sent) = self.switch.poll_transmit(self.now, port, &mut buf) {
                assert!(!sent.to.as_slice().is_empty(), "a datagram has a receiver");
                ReducePacket::new_checked(&buf[..sent.len]).expect("the switch writes messages");
            }
        }
        while self.switch.poll_event().is_some() {}
    }

    fn check(&self) {
        let pieces = self.switch.statistics(self.now).pieces;
        let refused: u64 = pieces.refused.values().sum();
        let again = pieces.late + pieces.repeated + pieces.held + pieces.occupied;
        let fates = pieces.summed + pieces.waiting + again + pieces.given_up + refused;
        assert_eq!(pieces.received, fates, "{pieces:?}");
    }

    fn step(&mut self, step: &Step, elastic: bool) {
        let mut buf = vec![0; 4096];
        match step {
            Step::Join { who, block_bytes, contributors, datagram_bytes } => {
                let mut address = who.address();
                if who.odd == 4 {
                    address.rank = ALL;
                }
                let len = Join {
                    address,
                    workers: if elastic { 0 } else { 1 + u32::from(who.worker / 9 % 3) },
                    contributors: 1 + u32::from(contributors % 3),
                    deadline_us: 0,
                    block_bytes: u32::from(*block_bytes),
                    datagram_bytes: u32::from(*datagram_bytes),
                    sent_at_us: 1,
                    nonce: 0,
                    operation: u32::from(who.odd) * u32::from(*datagram_bytes),
                    program: u64::from(who.worker / 100),
                }
                .emit(&mut buf);
                self.recv(false, who.peer(), &buf[..len]);
            }
            Step::Piece { who, block, holds, lanes, contributors, value } => {
                let block = block.block();
                let piece = Piece {
                    address: who.address(),
                    block,
                    contributors: 1 + u32::from(contributors % 3),
                    holds: u32::from(*holds),
                    sent_at_us: 2,
                    marks: Marks::default(),
                };
                let lanes = lanes_of(block.lane_type, *lanes, *value);
                let len = piece.emit(&[], &lanes, &mut buf);
                self.recv(false, who.peer(), &buf[..len]);
            }
            Step::Ask { who, first, mask, holds } => {
                let len = Ask {
                    address: who.address(),
                    operation: 0,
                    blocks: Blocks { first: u32::from(*first), mask: *mask },
                    holds: u32::from(*holds),
                    sent_at_us: 3,
                    awaits: (mask & 1 == 1).then(|| awaited(*mask)),
                }
                .emit(&mut buf);
                self.recv(false, who.peer(), &buf[..len]);
            }
            Step::Leave { who, operation } => {
                let leave = Leave { address: who.address(), operation: u32::from(*operation) };
                let len = leave.emit(&mut buf);
                self.recv(false, who.peer(), &buf[..len]);
            }
            Step::Closed { who, up, operation, reason } => {
                let len = Closed {
                    address: who.address(),
                    operation: u32::from(*operation),
                    culprit: who.rank(),
                    reason: Reason::EACH[usize::from(*reason) % Reason::EACH.len()],
                    clash: up.then(|| clash_of(*reason)),
                }
                .emit(&mut buf);
                self.recv(!up, who.peer(), &buf[..len]);
            }
            Step::Welcome { who, code, workers, slots, lines } => {
                let mut address = who.address();
                // The first life that a lower switch draws.
                address.session = Session(EPOCH + u32::from(who.odd % 3));
                let code = WelcomeCode::EACH[usize::from(*code) % WelcomeCode::EACH.len()];
                let len = Welcome {
                    address,
                    code,
                    operation: 0,
                    workers: 3 + u32::from(*workers),
                    here: 3,
                    slots: 1 + u32::from(slots % 8),
                    block_bytes: 64 * (1 + u32::from(lines % 3)),
                    cores: 1 + u32::from(lines / 128),
                    sent_at_us: 0,
                    nonce: 0,
                }
                .emit(&mut buf);
                self.recv(true, who.peer(), &buf[..len]);
            }
            Step::Result { who, block, lanes, contributors, expected } => {
                let block = block.block();
                let contributors = 1 + u32::from(contributors % 4);
                let expected = contributors + u32::from(expected % 2);
                let result = BlockResult {
                    address: Address { rank: ALL, session: Session(0), ..who.address() },
                    block,
                    contributors,
                    expected,
                    sent_at_us: 4,
                    marks: Marks::default(),
                };
                let words: &[u64] = if contributors < expected { &[1] } else { &[] };
                let lanes = lanes_of(block.lane_type, *lanes, 1.0);
                let len = result.emit(words, &lanes, &mut buf);
                self.recv(true, who.peer(), &buf[..len]);
            }
            Step::Want { who, first, mask } => {
                let len = Want {
                    address: who.address(),
                    operation: 0,
                    blocks: Blocks { first: u32::from(*first), mask: *mask },
                    holds: 0,
                    sent_at_us: 5,
                }
                .emit(&mut buf);
                self.recv(true, who.peer(), &buf[..len]);
            }
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(u64::from(*ms));
                if self.switch.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                    self.switch.handle_timeout(self.now);
                }
                self.drain();
            }
            Step::Drain => self.drain(),
            Step::Raw(above, bytes) => self.recv(*above, PeerId(0), bytes),
            Step::Damage(at, by) => self.damage = Some((*at, *by)),
        }
    }
}

fn lanes_of(lane_type: LaneType, lanes: u8, value: f32) -> Vec<u8> {
    let bytes = usize::from(lanes % 40) * lane_type.bytes();
    value.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

fuzz_target!(|input: (Setting, Vec<Step>)| {
    let (setting, steps) = input;
    let config = Config {
        jobs: 1 + u32::from(setting.jobs % 2),
        slots: 1 + u32::from(setting.slots % 4),
        memory_bytes: 1 + u64::from(setting.memory),
        deadline: (setting.deadline_ms > 0)
            .then(|| Duration::from_millis(setting.deadline_ms.into())),
        renew_at: 1 + u32::from(setting.renew_at),
        ..Config::default()
    };
    let mut switch = Switch::new(config, EPOCH).expect("a configuration in range");
    switch.expect_strangers(SETTLE);
    if setting.is_lower {
        switch.set_upstream(PeerId(99), 9000);
    }
    let mut run = Run { switch, now: Instant(1 << 40), damage: None };
    for step in &steps {
        run.step(step, setting.elastic);
        run.check();
    }
    run.drain();
    run.check();
});
