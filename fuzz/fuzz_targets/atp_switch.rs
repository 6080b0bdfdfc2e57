//! Any datagrams in any order at a switch of ATP, well-formed, odd and raw: nothing panics, every packet
//! has one fate, and everything that leaves can be read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::switch::atp::{Config, Switch};
use olaf_engine::{Engine, Instant, PeerId, PortId, Session, Source};
use olaf_wire::Sides;
use olaf_wire::atp::{ANY, AtpPacket, Closed, Header, Join, Key, Leave, Upper, Welcome};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::reduce::{Reason, WelcomeCode};
use std::time::Duration;

#[derive(Arbitrary, Debug)]
enum Step {
    Join {
        who: u8,
        servers: u8,
    },
    Leave(u8),
    Frame {
        up: bool,
        who: u8,
        bits: [u8; 2],
        fan_in: [u8; 2],
        flags: u8,
        more: u8,
        sequence: u8,
        index: u8,
        generation: u8,
        values: u8,
        upper: Option<([u8; 2], [u8; 2], u8)>,
    },
    Welcome {
        who: u8,
        generation: u8,
    },
    Closed(u8),
    Wait(u16),
    Raw(bool, Vec<u8>),
}

struct Run {
    switch: Switch,
    now: Instant,
}

impl Run {
    fn recv(&mut self, up: bool, peer: u32, bytes: &[u8]) {
        let (port, peer) = if up { (PortId::DOWNLINK, peer) } else { (PortId::UPLINK, 99) };
        self.switch.handle_packet(self.now, Source::new(port, PeerId(peer)), bytes);
    }

    fn check(&mut self) {
        let mut buf = vec![0; MAX_DATAGRAM];
        for port in [PortId::UPLINK, PortId::DOWNLINK] {
            while let Some(sent) = self.switch.poll_transmit(self.now, port, &mut buf) {
                AtpPacket::new_checked(&buf[..sent.len]).expect("the switch writes messages");
            }
        }
        let of = self.switch.statistics();
        assert_eq!(of.pieces.received, of.pieces.settled());
        assert!(of.sum_bytes <= 200 && of.jobs.len() <= 2);
    }

    fn step(&mut self, step: &Step) {
        let mut buf = vec![0; 2048];
        match step {
            Step::Join { who, servers } => {
                let len = Join {
                    job: u16::from(who / 4 % 3),
                    server: 0,
                    session: Session(u32::from(who % 4)),
                    rank: u32::from(who % 4),
                    workers: 4,
                    generation: 0,
                    closed: 0,
                    values: 3,
                    aggregators: u32::from(*servers),
                    switches: [u32::from(servers % 3), u32::from(servers / 32), 0, 0],
                    sent_at_us: 1,
                    scale: 1e8,
                    servers: 1 + servers % 4,
                    window: 8,
                    nonce: 0,
                    operations: ANY,
                    program: u64::from(servers / 200),
                }
                .emit(&mut buf);
                self.recv(true, u32::from(who % 4), &buf[..len]);
            }
            Step::Leave(who) => {
                let session = Session(u32::from(who % 4));
                let len = Leave {
                    job: u16::from(who / 4 % 3),
                    server: 0,
                    session,
                    life: 1,
                    reason: Reason::Left,
                }
                .emit(&mut buf);
                self.recv(true, u32::from(who % 4), &buf[..len]);
            }
            Step::Frame {
                up,
                who,
                bits,
                fan_in,
                flags,
                more,
                sequence,
                index,
                generation,
                values,
                upper,
            } => {
                let is = |bit: u8| flags >> bit & 1 == 1;
                let header = Header {
                    bitmap0: u32::from(bits[0]),
                    bitmap1: u32::from(bits[1]),
                    fan_in0: fan_in[0],
                    fan_in1: fan_in[1],
                    overflow: is(0) && is(1),
                    server: flags >> 6,
                    ecn: is(2),
                    resend: is(3),
                    collision: is(4),
                    ack: !up,
                    edge: more & 1 == 1,
                    same_switch: more & 2 == 2,
                    job: u16::from(who / 4 % 3),
                    sequence: u16::from(sequence % 8),
                    index: u16::from(*index),
                    key: Key::new(u16::from(generation % 3), 0, 0).calling(more / 16),
                    tensor_length: 100,
                    upper: upper.map(|(bitmaps, fan_ins, place)| Upper {
                        bitmaps: bitmaps.map(u32::from),
                        fan_ins,
                        passed: place & 3,
                        same_switch: [place & 4 != 0, place & 8 != 0],
                    }),
                };
                let values = vec![0x7f; 4 * usize::from(values % 8)];
                let len = header.emit(&values, &mut buf);
                assert_eq!(len, header.datagram_len(values.len() / 4));
                self.recv(*up, u32::from(who % 5), &buf[..len]);
            }
            Step::Welcome { who, generation } => {
                let len = Welcome {
                    job: u16::from(who / 4 % 3),
                    server: 0,
                    session: Session(u32::from(who % 4)),
                    rank: 0,
                    workers: 4,
                    here: 4,
                    code: WelcomeCode::EACH[usize::from(who / 16) % WelcomeCode::EACH.len()],
                    edge: false,
                    same_switch: false,
                    generation: 1 + u16::from(generation % 3),
                    life: 1,
                    values: 3,
                    window: 8,
                    bitmap0: 1,
                    bitmap1: 1,
                    fan_in0: 4,
                    fan_in1: 1,
                    aggregators: 4,
                    sent_at_us: 0,
                    sequence: 0,
                    upper: None,
                    nonce: 0,
                    operations: 0,
                }
                .emit(&mut buf);
                self.recv(false, 0, &buf[..len]);
            }
            Step::Closed(who) => {
                let len = Closed {
                    job: u16::from(who % 3),
                    server: 0,
                    life: 1,
                    reason: Reason::EACH[usize::from(who / 4) % Reason::EACH.len()],
                    tensor: 0,
                    culprit: 0,
                    sides: Sides::from_byte(*who),
                }
                .emit(&mut buf);
                self.recv(false, 0, &buf[..len]);
            }
            Step::Wait(ms) => {
                self.now = self.now + Duration::from_millis(u64::from(*ms));
                self.switch.handle_timeout(self.now);
            }
            Step::Raw(up, bytes) => self.recv(*up, 0, bytes),
        }
        self.check();
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let config = Config {
        aggregators: 4,
        memory_bytes: 200,
        max_age: Duration::from_millis(100),
        jobs: 2,
        ..Config::default()
    };
    let mut switch = Switch::new(config, 1).expect("a configuration in range");
    switch.set_servers(&[PeerId(99)]);
    let mut run = Run { switch, now: Instant(1 << 40) };
    steps.iter().for_each(|step| run.step(step));
});
