//! Two engines that share keys, a toy cryptography, and everybody between them.
#![allow(clippy::unwrap_used)]

mod attacks;
mod classes;
mod handshakes;
mod rotation;
mod weather;

use super::answering::Answering;
use super::*;
use crate::engine::Receivers;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::sealed::offsets::{handshake, trailer};
use olaf_wire::sealed::{self, Handshake, Kind, Tag};

const WORKER: PeerId = PeerId(1);
const SWITCH: PeerId = PeerId(2);
const PORT: PortId = PortId(0);

/// Tags that depend on every byte and on the key. They keep nobody out who knows the code.
struct Toy {
    keys: Vec<KeyInfo>,
    secrets: Vec<u64>,
    own: u64,
    drawn: u64,
}

struct ToySession(u64);

fn toy_tag(secret: u64, parts: &[&[u8]]) -> Tag {
    let mut sums = [secret ^ 0xcbf2_9ce4_8422_2325, secret.rotate_left(32) ^ 0x9e37_79b9];
    for byte in parts.iter().flat_map(|part| part.iter()) {
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = (*sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3 + 2 * at as u64);
        }
    }
    let mut tag = [0; 16];
    tag[..8].copy_from_slice(&sums[0].to_be_bytes());
    tag[8..].copy_from_slice(&sums[1].to_be_bytes());
    tag
}

impl Toy {
    /// Keys with these secrets, each for one job or for any. `life` makes what a process draws.
    fn new(life: u64, keys: &[(u64, Option<u32>)]) -> Box<Self> {
        let keys: Vec<_> = keys.iter().map(|(key, job)| (*key, *job, None)).collect();
        Self::with_old(life, &keys)
    }

    /// The same, where each key may say when it ends.
    fn with_old(life: u64, keys: &[(u64, Option<u32>, Option<Instant>)]) -> Box<Self> {
        let info = |(key, job, until): &(u64, _, _)| KeyInfo {
            name: key.to_be_bytes(),
            job: *job,
            until: *until,
        };
        Box::new(Self {
            keys: keys.iter().map(info).collect(),
            secrets: keys.iter().map(|(key, ..)| *key).collect(),
            own: life,
            drawn: life << 32,
        })
    }
}

impl Secrets for Toy {
    fn keys(&self) -> &[KeyInfo] {
        &self.keys
    }

    fn random(&mut self) -> Tag {
        self.drawn += 1;
        toy_tag(self.drawn, &[b"random"])
    }

    fn sign(&self, key: usize, bytes: &[u8]) -> Tag {
        toy_tag(self.secrets[key], &[b"job", bytes])
    }

    fn verify(&self, key: usize, bytes: &[u8], tag: &Tag) -> bool {
        self.sign(key, bytes) == *tag
    }

    fn cookie(&self, bytes: &[u8]) -> Tag {
        toy_tag(self.own, &[b"cookie", bytes])
    }

    fn signer(&self) -> Box<dyn Signer> {
        struct None;
        impl Signer for None {
            fn signs(&self, _: u32) -> bool {
                false
            }
            fn draw(&mut self) -> u64 {
                1
            }
            fn hash_lanes(&self, _: &[f32]) -> olaf_wire::Hash {
                unreachable!("these engines have no models")
            }
            fn hash_hashes(&self, _: &[olaf_wire::Hash]) -> olaf_wire::Hash {
                unreachable!("these engines have no models")
            }
            fn tag(&self, _: u32, _: &[u8]) -> olaf_wire::signature::SignatureTag {
                unreachable!("these engines have no models")
            }
            fn verify(&self, _: u32, _: &[u8], _: &olaf_wire::signature::SignatureTag) -> bool {
                false
            }
        }
        Box::new(None)
    }

    fn session(&self, key: usize, initiator: &Tag, responder: &Tag) -> Box<dyn Session> {
        let both = toy_tag(self.secrets[key], &[b"session", initiator, responder]);
        Box::new(ToySession(u64::from_be_bytes(both[..8].try_into().unwrap())))
    }
}

impl Session for ToySession {
    fn sign(&self, direction: Direction, counter: u64, signed: &[u8]) -> Tag {
        let way = [direction as u8];
        toy_tag(self.0, &[&way, &counter.to_be_bytes(), signed])
    }

    fn verify(&self, direction: Direction, counter: u64, signed: &[u8], tag: &Tag) -> bool {
        self.sign(direction, counter, signed) == *tag
    }
}

/// An engine that keeps what comes, and sends what it is told. The first byte is the job. Who has sent it
/// something is a member, until it leaves with "bye".
#[derive(Default)]
struct Post {
    came: Vec<(PeerId, Vec<u8>)>,
    /// The traffic classes that they came with.
    classes: Vec<TrafficClass>,
    /// The traffic class of what it sends.
    class: TrafficClass,
    to_send: VecDeque<(Vec<PeerId>, Vec<u8>)>,
}

impl Engine for Post {
    fn handle_packet(&mut self, _: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.came.push((from.peer, bytes.to_vec()));
        self.classes.push(from.class);
        Verdict::Absorb
    }

    fn poll_transmit(&mut self, _: Instant, _: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let (to, bytes) = self.to_send.pop_front()?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        let to = match to[..] {
            [one] => Receivers::One(one),
            _ => Receivers::Many(to.into()),
        };
        Some(Transmit { to, len: bytes.len(), class: self.class })
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        let left =
            |peer| self.came.iter().any(|(from, said)| *from == peer && said.ends_with(b"bye"));
        self.came.iter().map(|(peer, _)| *peer).filter(|peer| !left(*peer)).for_each(keep);
    }

    fn report(&self, _: Instant, _: &mut dyn Report) {}

    fn job_of(&self, _: Source, message: &[u8]) -> Option<u32> {
        message.first().map(|job| u32::from(*job))
    }
}

/// A datagram on its way.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    from: PeerId,
    to: PeerId,
    bytes: Vec<u8>,
}

/// A worker below a switch. What they send can be seen, kept and sent again.
struct Pair {
    now: Instant,
    worker: Sealed<Post>,
    switch: Sealed<Post>,
    /// Everything that was ever sent.
    seen: Vec<Sent>,
    lives: u64,
}

const KEY: u64 = 0x1111;

impl Pair {
    fn new() -> Self {
        Self::with(&[(KEY, None)], &[(KEY, None)])
    }

    fn with(worker: &[(u64, Option<u32>)], switch: &[(u64, Option<u32>)]) -> Self {
        let mut own = Sealed::with_keys(Post::default(), Toy::new(1, worker));
        own.set_above(SWITCH);
        Self {
            now: Instant(1_000_000_000_000),
            worker: own,
            switch: Sealed::with_keys(Post::default(), Toy::new(2, switch)),
            seen: Vec::new(),
            lives: 2,
        }
    }

    fn life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    fn restart_switch(&mut self) {
        let secrets = Toy::new(self.life(), &[(KEY, None)]);
        self.switch = Sealed::with_keys(Post::default(), secrets);
    }

    fn restart_worker(&mut self) {
        let secrets = Toy::new(self.life(), &[(KEY, None)]);
        self.worker = Sealed::with_keys(Post::default(), secrets);
        self.worker.set_above(SWITCH);
    }

    fn say_up(&mut self, bytes: &[u8]) {
        self.worker.to_send.push_back((vec![SWITCH], bytes.to_vec()));
    }

    fn say_down(&mut self, bytes: &[u8]) {
        self.switch.to_send.push_back((vec![WORKER], bytes.to_vec()));
    }

    fn deliver(&mut self, sent: &Sent) -> Verdict {
        let source = Source::new(PORT, sent.from);
        match sent.to {
            SWITCH => self.switch.handle_packet(self.now, source, &sent.bytes),
            _ => self.worker.handle_packet(self.now, source, &sent.bytes),
        }
    }

    /// What both send by now.
    fn drain(&mut self) -> Vec<Sent> {
        let mut buf = vec![0; MAX_DATAGRAM];
        let mut sent = Vec::new();
        for (from, engine) in [(WORKER, &mut self.worker), (SWITCH, &mut self.switch)] {
            if engine.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                engine.handle_timeout(self.now);
            }
            while let Some(transmit) = engine.poll_transmit(self.now, PORT, &mut buf) {
                for to in transmit.to.as_slice() {
                    sent.push(Sent { from, to: *to, bytes: buf[..transmit.len].to_vec() });
                }
            }
        }
        self.seen.extend(sent.iter().cloned());
        sent
    }

    /// Delivers everything until nothing more is sent.
    fn settle(&mut self) {
        for _ in 0..20 {
            let sent = self.drain();
            if sent.is_empty() {
                return;
            }
            for one in sent {
                self.deliver(&one);
            }
        }
        panic!("they never stop");
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn at_switch(&self) -> Vec<Vec<u8>> {
        self.switch.came.iter().map(|(_, bytes)| bytes.clone()).collect()
    }

    fn at_worker(&self) -> Vec<Vec<u8>> {
        self.worker.came.iter().map(|(_, bytes)| bytes.clone()).collect()
    }

    fn refused(&self, reason: Reason) -> u64 {
        self.switch.counters().unwrap().refused.get(reason.name()).copied().unwrap_or(0)
    }
}

/// In: each datagram has one fate.
fn adds_up(counters: &Counters) -> bool {
    let refused: u64 = counters.refused.values().sum();
    counters.received == counters.opened + counters.handshakes + refused
}
