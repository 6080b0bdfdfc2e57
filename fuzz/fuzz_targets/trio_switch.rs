//! Any datagrams in any order at a switch of Trio-ML, uppermost or lower, well-formed, odd and raw: nothing
//! panics, every piece has one fate, and everything that leaves can be read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::sums::SETTLE;
use olaf_engine::switch::trio::{Config, Switch};
use olaf_engine::{Engine, Instant, PeerId, PortId, Session, Source};
use olaf_wire::Sides;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{Reason, WelcomeCode};
use olaf_wire::trio::{ANY, Ask, Block, Closed, Hello, Leave, TrioPacket, Want, Welcome};
use std::time::Duration;

#[derive(Arbitrary, Debug)]
struct Setting {
    is_lower: bool,
    deadline_ms: u8,
    memory: u8,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Hello {
        who: u8,
        workers: u8,
        gradients: u8,
        timeout_ms: u8,
        newest: u8,
    },
    Block {
        up: bool,
        who: u8,
        block: u8,
        sources: u8,
        generation: u8,
        marks: u8,
        gradients: u8,
    },
    Ask {
        who: u8,
        generation: u8,
        block: u8,
        mask: u64,
        held: u8,
    },
    Leave {
        who: u8,
        reason: u8,
    },
    Welcome {
        who: u8,
        code: u8,
        workers: u8,
        window: u8,
    },
    Want {
        who: u8,
        generation: u8,
        block: u8,
        mask: u64,
    },
    Closed {
        who: u8,
        generation: u8,
        mask: u64,
        reason: u8,
    },
    Wait(u16),
    Raw(bool, Vec<u8>),
    /// A byte of the next datagram is another.
    Damage(u8, u8),
}

struct Run {
    switch: Switch,
    now: Instant,
    damage: Option<(u8, u8)>,
}

/// Four workers in each of three jobs; the term is one of the first few.
fn who(who: u8) -> (u8, u8, u32, Session) {
    (who % 4, who / 4 % 3, 1 + u32::from(who / 16 % 4), Session(1 + u32::from(who % 4)))
}

impl Run {
    fn recv(&mut self, from_above: bool, peer: u8, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        if let Some((at, by)) = self.damage.take()
            && !bytes.is_empty()
        {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= by;
        }
        let (port, peer) = if from_above { (PortId::UPLINK, 99) } else { (PortId::DOWNLINK, peer) };
        let from = Source::new(port, PeerId(peer.into()));
        self.switch.handle_packet(self.now, from, &bytes);
    }

    fn check(&mut self) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for port in [PortId::UPLINK, PortId::DOWNLINK] {
            for sent in 0.. {
                assert!(sent < 10_000, "the switch sends for ever");
                let Some(sent) = self.switch.poll_transmit(self.now, port, &mut buf) else { break };
                TrioPacket::new_checked(&buf[..sent.len]).expect("the switch writes messages");
            }
        }
        while self.switch.poll_event().is_some() {}
        let of = self.switch.statistics(self.now).pieces;
        let refused: u64 = of.refused.values().sum();
        let fates = of.summed + of.waiting + of.late + of.repeated + of.overtaken + of.given_up;
        assert_eq!(of.received, fates + refused);
    }

    fn step(&mut self, step: &Step) {
        let mut buf = vec![0; 2048];
        match *step {
            Step::Hello { who: id, workers, gradients, timeout_ms, newest } => {
                let (peer, job, term, session) = who(id);
                let len = Hello {
                    job,
                    term: if id > 128 { term } else { 0 },
                    source: if id % 8 > 5 { ANY } else { peer },
                    sources: 1 + workers / 64,
                    newest: newest.into(),
                    session,
                    workers: 1 + workers % 4,
                    gradients: 1 + u16::from(gradients % 8),
                    timeout_ms: timeout_ms.into(),
                    window: 1 + u16::from(workers / 4 % 4),
                    sent_at_us: 1,
                    nonce: 0,
                    program: u64::from(id / 200),
                }
                .emit(&mut buf);
                self.recv(false, peer, &buf[..len]);
            }
            Step::Block { up, who: id, block, sources, generation, marks, gradients } => {
                let (peer, job, _, _) = who(id);
                let block = Block {
                    job,
                    block: u32::from(block % 16),
                    aged: marks & 1 == 1,
                    is_final: marks & 2 == 2,
                    degraded: marks & 4 == 4,
                    source: if up { ANY } else { peer },
                    sources: 1 + sources % 4,
                    generation: u16::from(generation % 8),
                    call: marks / 8 % 2,
                };
                let values = vec![i32::from(marks) << 24; usize::from(gradients % 10)];
                let len = block.emit(&values, &mut buf);
                self.recv(up, peer, &buf[..len]);
            }
            Step::Ask { who: id, generation, block, mask, held } => {
                let (source, job, term, session) = who(id);
                let len = Ask {
                    job,
                    term,
                    source,
                    session,
                    generation: u16::from(generation % 8),
                    block: u32::from(block % 16),
                    mask,
                    held_generation: u16::from(held % 8),
                    held_block: u32::from(held / 8 % 16),
                    sent_at_us: 1,
                }
                .emit(&mut buf);
                self.recv(false, source, &buf[..len]);
            }
            Step::Leave { who: id, reason } => {
                let (source, job, term, session) = who(id);
                let reason = Reason::EACH[usize::from(reason) % Reason::EACH.len()];
                let len = Leave { job, term, source, session, reason }.emit(&mut buf);
                self.recv(false, source, &buf[..len]);
            }
            Step::Welcome { who: id, code, workers, window } => {
                let (source, job, term, _) = who(id);
                let len = Welcome {
                    job,
                    term,
                    source,
                    workers: 1 + workers % 4,
                    first: 0,
                    session: Session(1 + u32::from(code / 16)),
                    code: WelcomeCode::EACH[usize::from(code) % WelcomeCode::EACH.len()],
                    gradients: 1 + u16::from(workers / 4 % 8),
                    here: 1 + workers % 4,
                    window: 1 + u16::from(window % 8),
                    newest: 0,
                    sent_at_us: 0,
                    nonce: 0,
                }
                .emit(&mut buf);
                self.recv(true, 0, &buf[..len]);
            }
            Step::Want { who: id, generation, block, mask } => {
                let (source, job, term, session) = who(id);
                let len = Want {
                    job,
                    term,
                    source,
                    session,
                    generation: u16::from(generation % 8),
                    block: u32::from(block % 16),
                    mask,
                    sent_at_us: 0,
                }
                .emit(&mut buf);
                self.recv(true, 0, &buf[..len]);
            }
            Step::Closed { who: id, generation, mask, reason } => {
                let (_, job, term, _) = who(id);
                let len = Closed {
                    job,
                    term,
                    culprit: ANY,
                    generation: u16::from(generation % 8),
                    mask,
                    reason: Reason::EACH[usize::from(reason) % Reason::EACH.len()],
                    sides: Sides::from_byte(reason),
                }
                .emit(&mut buf);
                self.recv(true, 0, &buf[..len]);
            }
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(ms.into());
                self.switch.handle_timeout(self.now);
            }
            Step::Raw(up, ref bytes) => self.recv(up, 0, bytes),
            Step::Damage(at, by) => self.damage = Some((at, by)),
        }
        self.check();
    }
}

fuzz_target!(|input: (Setting, Vec<Step>)| {
    let (setting, steps) = input;
    let config = Config {
        memory_bytes: 256 + 64 * u64::from(setting.memory),
        jobs: 2,
        threads: 4,
        deadline: (setting.deadline_ms > 0)
            .then(|| Duration::from_millis(setting.deadline_ms.into())),
        ..Config::default()
    };
    let mut switch = Switch::new(config, 1).expect("a configuration in range");
    switch.expect_strangers(SETTLE);
    if setting.is_lower {
        switch.set_upstream(PeerId(99));
    }
    let mut run = Run { switch, now: Instant(1 << 40), damage: None };
    steps.iter().for_each(|step| run.step(step));
});
