//! Any datagrams in any order at an engine behind keys, from strangers, from a party with the key, and from one above:
//! nothing panics, the engine sees only what was sealed for it, each datagram has one fate, and nobody
//! gets more bytes than it sent.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use olaf_engine::report::Report;
use olaf_engine::seal::{Direction, KeyInfo, Secrets, Session, Signer};
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Sealed, Source, Transmit, Verdict, Why};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::sealed::offsets::handshake;
use olaf_wire::sealed::{Handshake, KeyName, Kind, Tag, put_counter, put_tag};
use std::time::Duration;

const ABOVE: PeerId = PeerId(9);
const PORT: PortId = PortId(0);
const NAME: KeyName = *b"the name";

#[derive(Arbitrary, Debug)]
enum Step {
    /// Bytes as they are.
    Raw {
        from: u8,
        bytes: Vec<u8>,
    },
    /// A message of a handshake with these fields; its tag may be right.
    Handshake {
        from: u8,
        kind: u8,
        association: u16,
        initiator: u8,
        again: bool,
        right: bool,
    },
    /// A datagram of an association; its tag may be right.
    Datagram {
        from: u8,
        association: u16,
        counter: u64,
        right: bool,
        down: bool,
    },
    /// The engine sends.
    Send(u8),
    Wait(u16),
}

/// Every tag is the same, so that the fuzzer finds the right one.
struct Open;

const RIGHT: Tag = [7; 16];

impl Secrets for Open {
    fn keys(&self) -> &[KeyInfo] {
        &[KeyInfo { name: NAME, job: None, until: None }]
    }
    fn random(&mut self) -> Tag {
        [3; 16]
    }
    fn sign(&self, _: usize, _: &[u8]) -> Tag {
        RIGHT
    }
    fn verify(&self, _: usize, _: &[u8], tag: &Tag) -> bool {
        *tag == RIGHT
    }
    fn cookie(&self, _: &[u8]) -> Tag {
        RIGHT
    }
    fn signer(&self) -> Box<dyn Signer> {
        unreachable!("the engine has no models")
    }
    fn session(&self, _: usize, _: &Tag, _: &Tag) -> Box<dyn Session> {
        Box::new(Open)
    }
}

impl Session for Open {
    fn sign(&self, _: Direction, _: u64, _: &[u8]) -> Tag {
        RIGHT
    }
    fn verify(&self, _: Direction, _: u64, _: &[u8], tag: &Tag) -> bool {
        *tag == RIGHT
    }
}

#[derive(Default)]
struct Post {
    came: u64,
    to_send: Vec<PeerId>,
}

impl Engine for Post {
    fn handle_packet(&mut self, _: Instant, _: Source, bytes: &[u8]) -> Verdict {
        assert_eq!(bytes, b"message", "only what was sealed comes here");
        self.came += 1;
        Verdict::Absorb
    }
    fn poll_transmit(&mut self, _: Instant, _: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let to = self.to_send.pop()?;
        buf[..7].copy_from_slice(b"message");
        Some(Transmit::to(to, 7))
    }
    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        None
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn peers(&self, _: &mut dyn FnMut(PeerId)) {}
    fn report(&self, _: Instant, _: &mut dyn Report) {}
}

fuzz_target!(|steps: Vec<Step>| {
    let mut engine = Sealed::with_keys(Post::default(), Box::new(Open));
    engine.set_above(ABOVE);
    let (mut now, mut buf) = (Instant(1_000_000_000), vec![0; MAX_DATAGRAM]);
    for step in steps {
        let (mut from, mut sent) = (None, Vec::new());
        match step {
            Step::Raw { from: peer, bytes } => {
                // A raw datagram with the right tag is one that was sealed.
                if !bytes.ends_with(&RIGHT) {
                    (from, sent) = (Some(peer), bytes);
                }
            }
            Step::Handshake { from: peer, kind, association, initiator, again, right } => {
                let kind = Kind::EACH[usize::from(kind) % Kind::EACH.len()];
                let said = Handshake {
                    association,
                    key_name: NAME,
                    initiator: if again { [3; 16] } else { [initiator; 16] },
                    cookie_ns: now.0,
                    cookie: RIGHT,
                    ..Handshake::new(kind)
                };
                sent = vec![0; handshake::LEN];
                let signed = said.emit(&mut sent);
                put_tag(&mut sent, signed, &if right { RIGHT } else { [0; 16] });
                from = Some(peer);
            }
            Step::Datagram { from: peer, association, counter, right, down } => {
                sent = vec![0; 31];
                sent[..7].copy_from_slice(b"message");
                let signed = put_counter(&mut sent, 7, association, 0, counter % 4096);
                put_tag(&mut sent, signed, &if right { RIGHT } else { [0; 16] });
                from = Some(if down { 9 } else { peer });
            }
            Step::Send(to) => engine.to_send.push(PeerId(u32::from(to % 10))),
            Step::Wait(ms) => now = now + Duration::from_millis(ms.into()),
        }
        if let Some(from) = from {
            let peer = PeerId(u32::from(from % 10));
            engine.handle_packet(now, Source::new(PORT, peer), &sent);
            let mut answered = 0;
            while let Some(transmit) = engine.poll_transmit(now, PORT, &mut buf) {
                if transmit.to.one() == Some(peer) && peer != ABOVE {
                    answered += transmit.len;
                }
            }
            assert!(answered <= sent.len(), "{answered} bytes for {}", sent.len());
        } else {
            while engine.poll_transmit(now, PORT, &mut buf).is_some() {}
        }
        let counters = engine.counters().expect("it has keys");
        let refused: u64 = counters.refused.values().sum();
        assert_eq!(counters.received, counters.opened + counters.handshakes + refused);
        assert_eq!(counters.opened, engine.came);
    }
});
