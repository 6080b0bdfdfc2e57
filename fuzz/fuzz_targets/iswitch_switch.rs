//! Any datagrams in any order at a switch of iSwitch, uppermost or lower, well-formed, odd and raw: nothing
//! panics, every piece has one fate, and everything that leaves can be read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::sums::SETTLE;
use olaf_engine::switch::iswitch::{Config, Switch};
use olaf_engine::{
    DropReason, Ecn, Engine, Instant, JobId, PeerId, PortId, Session, Source, TrafficClass, Verdict,
};
use olaf_wire::iswitch::{
    ANY, Ack, Action, Admission, CONTROL_CLASS, Control, DATA_CLASS, DataPacket, Halt, Join, Leave,
    Outcome, Packets, Seg, Sender, emit_seg,
};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::Reason;
use std::time::Duration;

#[derive(Arbitrary, Debug)]
struct Setting {
    jobs: u8,
    slots: u8,
    memory: u16,
    is_lower: bool,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Join {
        who: Who,
        workers: u8,
        contributors: u8,
        floats: u8,
        operations: u8,
    },
    Data {
        who: Who,
        up: bool,
        index: u8,
        missing: u8,
        last: bool,
        floats: u8,
        value: f32,
    },
    Packets {
        who: Who,
        up: bool,
        fbcast: bool,
        index: u8,
        mask: u64,
    },
    Leave(Who),
    Reset(Who),
    SetH {
        who: Who,
        h: u8,
    },
    Halt {
        who: Who,
        up: bool,
        reason: u8,
        index: u8,
    },
    Ack {
        who: Who,
        up: bool,
        index: u8,
        action: u8,
        outcome: u8,
    },
    Welcome {
        who: Who,
        slots: u8,
        floats: u8,
        outcome: u8,
    },
    Wait(u16),
    Drain,
    Raw {
        above: bool,
        class: u8,
        bytes: Vec<u8>,
    },
    /// A byte of the next datagram is another.
    Damage(u8, u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Who {
    worker: u8,
    odd: u8,
    generation: u8,
}

const EPOCH: u32 = 254;

impl Who {
    fn rank(self) -> u32 {
        u32::from(self.worker % 3)
    }
    fn peer(self) -> PeerId {
        PeerId(self.rank() + 10 * u32::from(self.odd == 1))
    }
    fn job(self) -> JobId {
        JobId(1 + u32::from(self.worker / 3 % 3))
    }
    fn session(self) -> Session {
        Session(1 + self.rank() + 10 * u32::from(self.odd == 2))
    }
    fn generation(self) -> u8 {
        (EPOCH as u8).wrapping_add(self.generation % 4)
    }
    fn sender(self) -> Sender {
        if self.odd == 3 { Sender::Switch } else { Sender::Worker }
    }
}

struct Run {
    switch: Switch,
    now: Instant,
    damage: Option<(u8, u8)>,
}

impl Run {
    fn recv(&mut self, above: bool, peer: PeerId, class: u8, bytes: &[u8]) {
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
        let class = TrafficClass::new(class, Ecn::Capable0);
        let source = Source { class, ..Source::new(port, peer) };
        let verdict = self.switch.handle_packet(self.now, source, &bytes);
        let is_ours = matches!(class.dscp(), DATA_CLASS | CONTROL_CLASS);
        // No list names a sender of regular traffic.
        assert_eq!(verdict == Verdict::Drop(DropReason::Foreign), !is_ours);
    }

    fn control(&mut self, above: bool, who: Who, message: Control) {
        let mut buf = [0; 256];
        let len = message.emit(&mut buf);
        self.recv(above, who.peer(), CONTROL_CLASS, &buf[..len]);
    }

    fn drain(&mut self) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for port in [PortId::UPLINK, PortId::DOWNLINK] {
            while let Some(sent) = self.switch.poll_transmit(self.now, port, &mut buf) {
                assert!(!sent.to.as_slice().is_empty(), "a datagram has a receiver");
                let bytes = &buf[..sent.len];
                match sent.class.dscp() {
                    DATA_CLASS => drop(DataPacket::new_checked(bytes).expect("a data packet")),
                    CONTROL_CLASS => drop(Control::parse(bytes).expect("a control message")),
                    other => panic!("class {other}"),
                }
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

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Join { who, workers, contributors, floats, operations } => {
                let workers = 1 + u32::from(workers % 3);
                let join = Join {
                    generation: who.generation(),
                    sender: who.sender(),
                    job: who.job(),
                    session: who.session(),
                    rank: if who.odd == 4 { ANY } else { who.rank() },
                    workers,
                    contributors: 1 + u32::from(contributors) % workers,
                    packet_floats: 1 + u32::from(floats % 8),
                    operations: if operations > 9 { ANY } else { u32::from(operations) },
                    program: u32::from(floats / 200),
                    nonce: 0,
                };
                self.control(false, who, Control::Join(join));
            }
            Step::Data { who, up, index, missing, last, floats, value } => {
                let mut buf = [0; 256];
                let seg = Seg {
                    generation: who.generation(),
                    last,
                    missing: u16::from(missing % 4),
                    index: u64::from(index % 12),
                };
                let start = emit_seg(seg, &mut buf);
                let end = start + 4 * usize::from(floats % 9);
                for float in buf[start..end].as_chunks_mut().0 {
                    *float = value.to_le_bytes();
                }
                self.recv(!up, who.peer(), DATA_CLASS, &buf[..end]);
            }
            Step::Packets { who, up, fbcast, index, mask } => {
                let packets = Packets {
                    generation: who.generation(),
                    sent_at_us: 2,
                    index: u64::from(index),
                    mask,
                };
                let message =
                    if fbcast { Control::FBcast(packets) } else { Control::Help(packets) };
                self.control(!up, who, message);
            }
            Step::Leave(who) => {
                let (generation, job, session) = (who.generation(), who.job(), who.session());
                self.control(false, who, Control::Leave(Leave { generation, job, session }));
            }
            Step::Reset(who) => {
                self.control(false, who, Control::Reset { generation: who.generation() });
            }
            Step::SetH { who, h } => {
                let h = 1 + u32::from(h % 4);
                self.control(false, who, Control::SetH { generation: who.generation(), h });
            }
            Step::Halt { who, up, reason, index } => {
                let halt = Halt {
                    generation: who.generation(),
                    reason: Reason::EACH[usize::from(reason) % Reason::EACH.len()],
                    culprit: who.rank(),
                    index: u64::from(index),
                    calls: reason,
                };
                self.control(!up, who, Control::Halt(halt));
            }
            Step::Ack { who, up, index, action, outcome } => {
                let ack = Ack {
                    generation: who.generation(),
                    action: Action::EACH[1 + usize::from(action) % 7],
                    outcome: Outcome::EACH[usize::from(outcome) % 5],
                    sent_at_us: 3,
                    index: u64::from(index),
                    admission: None,
                };
                self.control(!up, who, Control::Ack(ack));
            }
            Step::Welcome { who, slots, floats, outcome } => {
                let admission = Admission {
                    member: 1,
                    rank: ANY,
                    workers: 3,
                    here: 3,
                    slots: u32::from(slots % 5),
                    packet_floats: u32::from(floats % 5),
                    operations: u32::from(who.odd),
                    // The first lives that a lower switch draws.
                    session: Session(EPOCH + u32::from(who.odd % 3)),
                    nonce: 0,
                };
                let ack = Ack {
                    generation: who.generation(),
                    action: Action::Join,
                    outcome: Outcome::EACH[usize::from(outcome) % 5],
                    sent_at_us: 0,
                    index: 0,
                    admission: Some(admission),
                };
                self.control(true, who, Control::Ack(ack));
            }
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(u64::from(ms));
                if self.switch.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                    self.switch.handle_timeout(self.now);
                }
                self.drain();
            }
            Step::Drain => self.drain(),
            Step::Raw { above, class, ref bytes } => {
                let class = [0, DATA_CLASS, CONTROL_CLASS][usize::from(class % 3)];
                self.recv(above, PeerId(0), class, bytes);
            }
            Step::Damage(at, by) => self.damage = Some((at, by)),
        }
    }
}

fuzz_target!(|input: (Setting, Vec<Step>)| {
    let (setting, steps) = input;
    let config = Config {
        jobs: 1 + u32::from(setting.jobs % 2),
        slots: 1 + u32::from(setting.slots % 4),
        memory_bytes: 1 + u64::from(setting.memory),
        ..Config::default()
    };
    let mut switch = Switch::new(config, EPOCH).expect("a configuration in range");
    switch.expect_strangers(SETTLE);
    if setting.is_lower {
        switch.set_upstream(PeerId(99), 9000);
    }
    let mut run = Run { switch, now: Instant(1 << 40), damage: None };
    for step in &steps {
        run.step(step);
        run.check();
    }
    run.drain();
    run.check();
});
