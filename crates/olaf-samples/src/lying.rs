//! A switch that lies about models, in a simulated network or on real sockets.

use olaf_engine::report::Report;
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Switch, Transmit, Verdict, Why};
use olaf_wire::offsets::welcome;
use olaf_wire::update::read_lanes;
use olaf_wire::{Answer, Kind, Packet, Signature};
use std::collections::BTreeMap;

/// What a switch does to that which comes down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lie {
    /// Nothing.
    None,
    /// One lane of each segment is another number.
    Lane,
    /// The same, and the hash in each signature is another one, too.
    Hash,
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
pub struct Liar {
    inner: Switch,
    /// What it does from now on.
    pub lie: Lie,
    /// The first model that passed, segment by segment, and its signature.
    recorded: BTreeMap<u32, (Answer, Vec<u8>)>,
    signature: Option<Signature>,
    /// The first answer to a question.
    answer: Option<Signature>,
    /// Datagrams that it changed or kept back.
    pub lies: u64,
}

impl Liar {
    /// An honest one, until it is told to lie.
    #[must_use]
    pub const fn new(inner: Switch) -> Self {
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
                let Ok(answer) = Answer::parse(&packet) else { return Some(len) };
                let lanes = packet.lanes().to_vec();
                Some(self.model(answer, lanes).map_or(len, |(answer, lanes)| {
                    self.lies += 1;
                    answer.emit_in_wire_order(&lanes, buf)
                }))
            }
            Kind::Acknowledgement => {
                let Ok(answer) = Answer::parse(&packet) else { return Some(len) };
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
                let Ok(signature) = Signature::parse(&packet) else { return Some(len) };
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
            Lie::Lane | Lie::Hash => {
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
            Lie::Hash => {
                let mut hash = came.hash;
                hash[0] ^= 1;
                Signature { hash, ..came }
            }
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
    fn job_of(&self, at: Source, message: &[u8]) -> Option<u32> {
        self.inner.job_of(at, message)
    }
}
