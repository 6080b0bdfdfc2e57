//! A toy cryptography for models, and a switch that lies about them.

use olaf_engine::report::Report;
use olaf_engine::seal::Signer;
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Switch, Transmit, Verdict, Why};
use olaf_wire::offsets::welcome;
use olaf_wire::signature::SignatureTag;
use olaf_wire::update::read_lanes;
use olaf_wire::{Answer, Hash, Kind, Packet, Signature};
use std::collections::BTreeMap;

/// Hashes and tags that depend on every byte, and tags on the secret. They keep nobody out who knows the
/// code.
pub(crate) struct Toy {
    secret: Option<u64>,
    drawn: u64,
}

impl Toy {
    /// One that has the job's secret. `life` makes what it draws.
    pub(crate) fn with_secret(secret: u64, life: u32) -> Box<Self> {
        Box::new(Self { secret: Some(secret), drawn: u64::from(life) << 32 })
    }

    /// One with a switch's key alone.
    pub(crate) fn of_a_switch() -> Box<Self> {
        Box::new(Self { secret: None, drawn: 0 })
    }
}

fn mixed<const N: usize>(secret: u64, bytes: impl Iterator<Item = u8>) -> [u8; N] {
    let mut sums = [secret ^ 0xcbf2_9ce4_8422_2325, secret.rotate_left(32) ^ 0x9e37_79b9];
    for byte in bytes {
        for (at, sum) in (0..).zip(&mut sums) {
            *sum = (*sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3 + 2 * at);
        }
    }
    std::array::from_fn(|at| (sums[at / 8 % 2] >> (at % 8 * 8)) as u8)
}

impl Signer for Toy {
    fn signs(&self, _: u32) -> bool {
        self.secret.is_some()
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        u64::from_be_bytes(mixed(self.drawn, std::iter::empty())).max(1)
    }

    fn hash_lanes(&self, lanes: &[f32]) -> Hash {
        mixed(0, lanes.iter().flat_map(|lane| lane.to_le_bytes()))
    }

    fn hash_hashes(&self, hashes: &[Hash]) -> Hash {
        mixed(1, hashes.iter().flatten().copied())
    }

    fn tag(&self, job: u32, bytes: &[u8]) -> SignatureTag {
        let secret = self.secret.unwrap() ^ u64::from(job) << 32;
        mixed(secret, bytes.iter().copied())
    }

    fn verify(&self, job: u32, bytes: &[u8], tag: &SignatureTag) -> bool {
        self.secret.is_some() && self.tag(job, bytes) == *tag
    }
}

/// What a switch does to that which comes down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lie {
    /// Nothing.
    None,
    /// One lane of each segment is another number.
    Lane,
    /// Models, and signatures with them, have another version.
    Version(u32),
    /// No signature passes.
    NoSignatures,
    /// All that is from the server has that epoch.
    Epoch(u32),
    /// Models and signatures are the first ones that passed, as they were then, and everything has
    /// their epoch and version: a recording in the place of the server.
    Recording,
    /// The same, but answers to questions pass: what was recorded is of the present life.
    RecordingBesideAnswers,
}

/// A switch with an owner who changes what it sends down.
pub(crate) struct Liar {
    inner: Switch,
    pub(crate) lie: Lie,
    /// The first model that passed, segment by segment, and its signature.
    recorded: BTreeMap<u32, (Answer, Vec<u8>)>,
    signature: Option<Signature>,
    /// The first answer to a question.
    answer: Option<Signature>,
    /// Datagrams that it changed or kept back.
    pub(crate) lies: u64,
}

impl Liar {
    pub(crate) fn new(inner: Switch) -> Self {
        Self {
            inner,
            lie: Lie::None,
            recorded: BTreeMap::new(),
            signature: None,
            answer: None,
            lies: 0,
        }
    }

    /// The datagram as its owner wants it, with its length; none: it is kept back.
    fn changed(&mut self, buf: &mut [u8], len: usize) -> Option<usize> {
        let Ok(packet) = Packet::new_checked(&buf[..len]) else { return Some(len) };
        match packet.kind() {
            Kind::Model => {
                let answer = Answer::parse(&packet).unwrap();
                let lanes = packet.lanes().to_vec();
                Some(self.model(answer, lanes).map_or(len, |(answer, lanes)| {
                    self.lies += 1;
                    answer.emit_in_wire_order(&lanes, buf)
                }))
            }
            Kind::Acknowledgement => {
                let answer = Answer::parse(&packet).unwrap();
                Some(self.epoch().filter(|_| answer.epoch != 0).map_or(len, |epoch| {
                    self.lies += 1;
                    Answer { epoch, ..answer }.emit_in_wire_order(&[], buf)
                }))
            }
            Kind::Welcome => {
                if let Some(epoch) = self.epoch() {
                    buf[welcome::EPOCH..][..4].copy_from_slice(&epoch.to_be_bytes());
                }
                if let Lie::Recording | Lie::RecordingBesideAnswers = self.lie
                    && let Some(Signature { version, .. }) = self.signature
                {
                    buf[welcome::VERSION..][..4].copy_from_slice(&version.to_be_bytes());
                }
                Some(len)
            }
            Kind::Signature => {
                let signature = Signature::parse(&packet).unwrap();
                self.signature(signature, buf, len)
            }
            _ => Some(len),
        }
    }

    fn epoch(&self) -> Option<u32> {
        match self.lie {
            Lie::Epoch(epoch) => Some(epoch),
            Lie::Recording | Lie::RecordingBesideAnswers => {
                self.signature.map(|signature| signature.epoch)
            }
            _ => None,
        }
    }

    fn model(&mut self, answer: Answer, mut lanes: Vec<u8>) -> Option<(Answer, Vec<u8>)> {
        let is_of_the_first = self.recorded.values().all(|(first, _)| {
            (first.epoch, first.model_version) == (answer.epoch, answer.model_version)
        });
        if is_of_the_first {
            self.recorded.entry(answer.segment).or_insert_with(|| (answer, lanes.clone()));
        }
        match self.lie {
            Lie::None | Lie::NoSignatures => None,
            Lie::Lane => {
                let mut read = vec![0.0; lanes.len() / 4];
                read_lanes(&lanes, &mut read);
                lanes[..4].copy_from_slice(&(read[0] + 0.5).to_le_bytes());
                Some((answer, lanes))
            }
            Lie::Version(version) => Some((Answer { model_version: version, ..answer }, lanes)),
            Lie::Epoch(epoch) => Some((Answer { epoch, ..answer }, lanes)),
            Lie::Recording | Lie::RecordingBesideAnswers => {
                let (then, lanes) = self.recorded.get(&answer.segment)?.clone();
                let (epoch, model_version) = (then.epoch, then.model_version);
                Some((Answer { epoch, model_version, ..answer }, lanes))
            }
        }
    }

    fn signature(&mut self, came: Signature, buf: &mut [u8], len: usize) -> Option<usize> {
        if came.question != 0 {
            self.answer.get_or_insert(came);
        }
        let first = self.recorded.values().next();
        if first.is_some_and(|(first, _)| first.model_version == came.version) {
            self.signature.get_or_insert(came);
        }
        let told = match self.lie {
            Lie::None | Lie::Lane => return Some(len),
            Lie::RecordingBesideAnswers if came.question != 0 => return Some(len),
            Lie::Version(version) => {
                Signature { version, oldest: came.oldest.min(version), ..came }
            }
            Lie::NoSignatures => {
                self.lies += 1;
                return None;
            }
            Lie::Epoch(epoch) => Signature { epoch, ..came },
            Lie::Recording if came.question != 0 => {
                Signature { address: came.address, ..self.answer? }
            }
            Lie::Recording | Lie::RecordingBesideAnswers => {
                Signature { address: came.address, ..self.signature? }
            }
        };
        self.lies += 1;
        Some(told.emit(buf))
    }
}

impl Engine for Liar {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.inner.handle_packet(now, from, bytes)
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        loop {
            let sent = self.inner.poll_transmit(now, port, buf)?;
            if port == PortId::UPLINK {
                return Some(sent);
            }
            if let Some(len) = self.changed(buf, sent.len) {
                return Some(Transmit { len, ..sent });
            }
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.inner.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }

    fn ports(&self) -> u16 {
        self.inner.ports()
    }

    fn must_drain(&self) -> bool {
        self.inner.must_drain()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.inner.peers(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.inner.report(now, to);
    }
}
