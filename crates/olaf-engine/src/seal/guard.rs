//! Between the datagrams and an engine: what comes is verified, what leaves is signed, and handshakes are begun
//! and answered.

use super::ASSOCIATIONS;
use super::answering::{Answering, Known};
use super::beginning::{Beginning, Held, KeyRefused};
use super::reason::{Counters, Reason};
use super::secrets::{KeyInfo, Secrets};
use crate::engine::Place;
use crate::engine::{Receivers, Source, TrafficClass, Transmit};
use crate::event::{Event, Said, Told};
use crate::ids::{PeerId, PortId};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::packet::Refusal;
use olaf_wire::sealed::offsets::{handshake, trailer};
use olaf_wire::sealed::{self, Handshake, KeyName, Kind, Tag};

/// Answers to handshakes that wait for their port.
const ANSWERS: usize = 1024;

/// The state of a seal as plain data, in the names of `docs/reference/statistics.md`.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Statistics {
    #[serde(flatten)]
    counters: Counters,
    associations: usize,
    /// Parties that use an old key.
    with_old_key: usize,
    waiting: usize,
}

/// Between the datagrams and an engine.
pub(super) struct Guard {
    pub(super) secrets: Box<dyn Secrets>,
    /// Where the datagram at hand comes from; none from drivers without addresses.
    pub(super) place: Option<Place>,
    pub(super) above: BTreeSet<PeerId>,
    pub(super) beginning: BTreeMap<(PeerId, usize), Beginning>,
    pub(super) answering: Answering,
    answers: VecDeque<(PortId, PeerId, Vec<u8>)>,
    fans: BTreeMap<PortId, Fan>,
    pub(super) counters: Counters,
    pub(super) events: VecDeque<Event>,
    /// Old keys whose end has been told as an event.
    told_over: BTreeSet<KeyName>,
}

/// A message for several receivers. Each receiver gets a datagram of its own.
struct Fan {
    bytes: Vec<u8>,
    class: TrafficClass,
    job: Option<u32>,
    to: Arc<[PeerId]>,
    next: usize,
}

/// A message, the key that it came under, and the class of service that it was sealed with.
type Opened<'a> = (usize, u8, &'a [u8]);

impl Guard {
    pub(super) fn new(secrets: Box<dyn Secrets>) -> Self {
        Self {
            secrets,
            place: None,
            above: BTreeSet::new(),
            beginning: BTreeMap::new(),
            answering: Answering::new(ASSOCIATIONS),
            answers: VecDeque::new(),
            fans: BTreeMap::new(),
            counters: Counters::default(),
            events: VecDeque::new(),
            told_over: BTreeSet::new(),
        }
    }

    /// Takes other keys. Associations of a key that stays go on.
    pub(super) fn rekey(&mut self, now: Instant, secrets: Box<dyn Secrets>) {
        let keys = secrets.keys();
        let place_of = |before: &KeyInfo| keys.iter().position(|key| key.name == before.name);
        let place_of: Vec<Option<usize>> = self.secrets.keys().iter().map(place_of).collect();
        self.answering.rekey(&mut self.counters, &place_of, keys);
        let mut homeless = Vec::new();
        for ((peer, key), mut own) in core::mem::take(&mut self.beginning) {
            match place_of[key] {
                Some(key) => {
                    own.rekey(key, keys[key].until);
                    self.beginning.insert((peer, key), own);
                }
                None => homeless.push((peer, own)),
            }
        }
        self.secrets = secrets;
        for (peer, mut own) in homeless {
            let held = own.take_all_held();
            if let Some(key) = self.keys_for(now, None).next() {
                let until = self.secrets.keys()[key].until;
                let place = self.beginning.entry((peer, key));
                let to = place.or_insert_with(|| Beginning::new(key, until, own.port()));
                held.into_iter().for_each(|held| to.hold(&mut self.counters, held));
            }
        }
        self.move_up(now);
    }

    /// Begins a handshake with the present key of each job with those above, where an old one is in use.
    fn move_up(&mut self, now: Instant) {
        let keys = self.secrets.keys();
        let present = |old: usize| {
            let own = |key: &KeyInfo| key.until.is_none() && key.job == keys[old].job;
            keys.iter().position(own)
        };
        let begun = self
            .beginning
            .iter()
            .filter_map(|((peer, key), own)| Some((*peer, present(*key)?, own.port())));
        let begun: Vec<_> = begun.collect();
        for (peer, key, port) in begun {
            let place = self.beginning.entry((peer, key));
            let own = place.or_insert_with(|| Beginning::new(key, None, port));
            if !own.is_open() {
                own.begin(&mut *self.secrets, now);
            }
        }
    }

    /// The keys that are good for that job, the present one first: the job's, or any job's, whichever comes
    /// first, and the older ones of the same file.
    fn keys_for(&self, now: Instant, job: Option<u32>) -> impl Iterator<Item = usize> + use<> {
        let keys = self.secrets.keys();
        let is_good = |key: &KeyInfo| key.allows(job) && !key.is_over(now);
        let first = keys.iter().position(is_good);
        let older = first.and_then(|first| {
            let rest = keys.iter().skip(first + 1);
            let is_older = |key: &KeyInfo| is_good(key) && key.job == keys[first].job;
            rest.clone().position(is_older).map(|at| first + 1 + at)
        });
        first.into_iter().chain(older)
    }

    /// Tells once that the time of a key of this party is over.
    fn tell_over(&mut self, name: KeyName, until: Instant) {
        if !self.told_over.insert(name) {
            return;
        }
        let name = name.iter().map(|byte| alloc::format!("{byte:02x}")).collect();
        let fields = alloc::vec![
            ("key".into(), Said::Text(name)),
            ("until_s".into(), Said::Number(until.0 / 1_000_000_000)),
        ];
        self.events.push_back(Event::Other(Box::new(Told { name: "key_over".into(), fields })));
    }

    pub(super) fn allows(&self, key: usize, job: Option<u32>) -> bool {
        self.secrets.keys()[key].allows(job)
    }

    pub(super) fn statistics(&self, now: Instant) -> Statistics {
        let keys = self.secrets.keys();
        let old_above = self.beginning.iter().filter(|((peer, old), own)| {
            let present = self.keys_for(now, keys[*old].job).next();
            let moved = present.and_then(|key| self.beginning.get(&(*peer, key)));
            own.is_open() && present != Some(*old) && !moved.is_some_and(Beginning::is_open)
        });
        Statistics {
            counters: self.counters.clone(),
            associations: self.answering.len()
                + self.beginning.values().filter(|found| found.is_open()).count(),
            with_old_key: self.answering.with_old_key(&*self.secrets, now) + old_above.count(),
            waiting: self.beginning.values().map(Beginning::waiting).sum(),
        }
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        let handshakes = self.beginning.values().filter_map(Beginning::next_at);
        handshakes.chain(self.answering.sweep_at()).min()
    }

    /// Verifies a datagram; none if it was a message of a handshake.
    pub(super) fn receive<'a>(
        &mut self,
        now: Instant,
        from: Source,
        datagram: &'a [u8],
        known: Known<'_>,
    ) -> Result<Option<Opened<'a>>, Reason> {
        let found = sealed::Sealed::parse(datagram).ok_or(Reason::NoSeal)?;
        if found.association == 0 {
            self.handshake(now, from, &found, known)?;
            return Ok(None);
        }
        let key = if self.above.contains(&from.peer) {
            let mut known = self.beginning.range_mut((from.peer, 0)..=(from.peer, usize::MAX));
            let received = known.find_map(|(_, by_key)| by_key.receive(now, &found));
            received.unwrap_or(Err(Reason::UnknownAssociation))?
        } else {
            let Self { answering, secrets, counters, .. } = self;
            let received = answering.receive(&**secrets, counters, now, from.peer, &found);
            let is_gone = matches!(received, Err(Reason::UnknownAssociation | Reason::KeyOver));
            if is_gone && datagram.len() >= handshake::LEN {
                let association = found.association;
                let hint = Handshake { association, ..Handshake::new(Kind::Unknown) };
                self.answer(from, &hint, None);
            }
            received?
        };
        Ok(Some((key, found.class, found.message)))
    }

    fn handshake(
        &mut self,
        now: Instant,
        from: Source,
        found: &sealed::Sealed<'_>,
        known: Known<'_>,
    ) -> Result<(), Reason> {
        let is_above = self.above.contains(&from.peer);
        let said = match Handshake::parse(found.message) {
            Ok(said) => said,
            Err(Refusal::WrongVersion { have, .. }) => {
                self.other_version(from, have, found.signed.len() + sealed::TAG_BYTES);
                return Err(Reason::OtherVersion { have });
            }
            // A message without a seal ends in any bytes.
            Err(Refusal::NotOurs) => return Err(Reason::NoSeal),
            Err(_) => return Err(Reason::BadHandshake),
        };
        match said.kind {
            Kind::Hello if !is_above => {
                let answer =
                    self.answering.hello(&*self.secrets, now, (from.peer, self.place), &said);
                self.answer(from, &answer, None);
                match (answer.kind, answer.cookie_ns) {
                    (Kind::NoKey, 0) => return Err(Reason::NoSuchKey),
                    (Kind::NoKey, _) => return Err(Reason::KeyOver),
                    _ => {}
                }
            }
            Kind::Open if !is_above => {
                let Self { answering, secrets, counters, .. } = self;
                let whence = ((from.peer, self.place), known);
                let opened = answering.open(&mut **secrets, counters, now, whence, &said, found)?;
                let (key, answer) = opened;
                self.answer(from, &answer, Some(key));
            }
            Kind::Unknown if is_above => {
                let Self { beginning, secrets, .. } = self;
                let mut known = beginning.range_mut((from.peer, 0)..=(from.peer, usize::MAX));
                let is_ours =
                    known.any(|(_, own)| own.is_unknown(&mut **secrets, now, said.association));
                return if is_ours { Ok(()) } else { Err(Reason::NotAsked) };
            }
            Kind::Cookie | Kind::Opened | Kind::NoKey if is_above => {
                let Self { beginning, secrets, counters, .. } = self;
                let own = beginning.range_mut((from.peer, 0)..=(from.peer, usize::MAX));
                for ((_, key), own) in own {
                    let result = own.answered(&**secrets, counters, now, &said, found);
                    if result == Err(Reason::NotAsked) {
                        continue;
                    }
                    if result.is_ok() {
                        let (key, refused, port) = (*key, own.refused, own.port());
                        self.was_answered(now, (from.peer, key, port), said.kind, refused);
                    }
                    return result;
                }
                return Err(Reason::NotAsked);
            }
            _ => return Err(Reason::BadHandshake),
        }
        Ok(())
    }

    /// A handshake of this party's has gone on: with a key that is good there the others of the job are
    /// given up, and where a key is not good the next one is tried.
    fn was_answered(
        &mut self,
        now: Instant,
        (peer, key, port): (PeerId, usize, PortId),
        kind: Kind,
        refused: Option<KeyRefused>,
    ) {
        let job = self.secrets.keys()[key].job;
        let name = self.secrets.keys()[key].name;
        if kind == Kind::Opened {
            let mut held = Vec::new();
            for other in self.keys_for(now, job).filter(|other| *other != key) {
                let Some(own) = self.beginning.get_mut(&(peer, other)) else { continue };
                held.extend(own.take_all_held());
                if other > key {
                    own.give_up();
                }
            }
            if let Some(own) = self.beginning.get_mut(&(peer, key)) {
                held.into_iter().for_each(|held| own.hold(&mut self.counters, held));
            }
        }
        match refused {
            Some(KeyRefused::Over(until)) => self.tell_over(name, until),
            Some(KeyRefused::Unknown) => {}
            None => return,
        }
        if kind == Kind::NoKey
            && let Some(next) = self.keys_for(now, job).find(|next| *next > key)
        {
            let until = self.secrets.keys()[next].until;
            let place = self.beginning.entry((peer, next));
            let own = place.or_insert_with(|| Beginning::new(next, until, port));
            own.begin_if_needed(&mut *self.secrets, now);
        }
    }

    /// Tells the sender of a handshake of another version which one is spoken here. Of a party above it is
    /// only noted: it may be a hint, and this party has asked first.
    fn other_version(&mut self, from: Source, have: u8, len: usize) {
        if self.above.contains(&from.peer) {
            let known = self.beginning.range_mut((from.peer, 0)..=(from.peer, usize::MAX));
            known.for_each(|(_, own)| own.other_version = Some(have));
        } else if len >= handshake::LEN {
            self.put_answer(from, Handshake::version_notice().to_vec());
        }
    }

    /// Answers a message of a handshake, under the key if there is one.
    fn answer(&mut self, to: Source, answer: &Handshake, key: Option<usize>) {
        let bytes = self.written(answer, key);
        self.put_answer(to, bytes);
    }

    fn put_answer(&mut self, to: Source, bytes: Vec<u8>) {
        if self.answers.len() >= ANSWERS {
            self.counters.unanswered += 1;
            return;
        }
        self.answers.push_back((to.port, to.peer, bytes));
    }

    fn written(&self, said: &Handshake, key: Option<usize>) -> Vec<u8> {
        let mut bytes = alloc::vec![0; handshake::LEN];
        let signed = said.emit(&mut bytes);
        if let Some(key) = key {
            let tag = self.secrets.sign(key, &bytes[..signed]);
            sealed::put_tag(&mut bytes, signed, &tag);
        }
        bytes
    }

    /// The next datagram that does not come from the engine: a handshake's, or of a message that
    /// the engine has given out already.
    pub(super) fn poll(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        if let Some(at) = self.answers.iter().position(|(on, ..)| *on == port) {
            let (_, peer, bytes) = self.answers.remove(at)?;
            buf[..bytes.len()].copy_from_slice(&bytes);
            return Some(Transmit::to(peer, bytes.len()));
        }
        if let Some(transmit) = self.poll_beginning(now, port, buf) {
            return Some(transmit);
        }
        while let Some(fan) = self.fans.get_mut(&port) {
            let (len, class, job) = (fan.bytes.len(), fan.class, fan.job);
            buf[..len].copy_from_slice(&fan.bytes);
            let to = fan.to[fan.next];
            fan.next += 1;
            if fan.next == fan.to.len() {
                self.fans.remove(&port);
            }
            let transmit = self.seal(now, port, buf, (to, len, class), job);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// A message of a handshake that is due, or one that waited for its end.
    fn poll_beginning(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        let mut due = None;
        for ((peer, _), own) in &mut self.beginning {
            if let Some(held) = own.take_held(port) {
                let len = held.bytes.len();
                buf[..len].copy_from_slice(&held.bytes);
                let of = held.class;
                let tag = own.seal(now, |number, counter| counted(buf, len, (number, of), counter));
                let len = tagged(buf, len, &tag.expect("it is open: it gave out what it held"));
                self.counters.sealed += 1;
                return Some(Transmit { class: held.class, ..Transmit::to(*peer, len) });
            }
            if own.port() == port
                && let Some((key, said)) = own.due(now)
            {
                due = Some((*peer, key, said));
                break;
            }
        }
        let (peer, key, said) = due?;
        let bytes = self.written(&said, (said.kind == Kind::Open).then_some(key));
        buf[..bytes.len()].copy_from_slice(&bytes);
        Some(Transmit::to(peer, bytes.len()))
    }

    /// Seals a message that the engine wrote; none if it goes later, or to nobody.
    pub(super) fn take(
        &mut self,
        now: Instant,
        port: PortId,
        buf: &mut [u8],
        transmit: Transmit,
        job: Option<u32>,
    ) -> Option<Transmit> {
        let Transmit { to, len, class } = transmit;
        match to {
            Receivers::One(peer) => self.seal(now, port, buf, (peer, len, class), job),
            Receivers::Many(to) if to.is_empty() => None,
            Receivers::Many(to) => {
                let bytes = buf[..len].to_vec();
                self.fans.insert(port, Fan { bytes, class, job, to, next: 0 });
                self.poll(now, port, buf)
            }
        }
    }

    fn seal(
        &mut self,
        now: Instant,
        port: PortId,
        buf: &mut [u8],
        (peer, len, class): (PeerId, usize, TrafficClass),
        job: Option<u32>,
    ) -> Option<Transmit> {
        if len + trailer::LEN > MAX_DATAGRAM.min(buf.len()) {
            self.counters.too_long += 1;
            return None;
        }
        let tag = if self.above.contains(&peer) {
            self.tag_up(now, port, buf, (peer, len, class), job)?
        } else {
            let found = self.answering.seal(&*self.secrets, (now, peer), job, |number, counter| {
                counted(buf, len, (number, class), counter)
            });
            self.counters.no_association += u64::from(found.is_none());
            found?
        };
        self.counters.sealed += 1;
        Some(Transmit { class, ..Transmit::to(peer, tagged(buf, len, &tag)) })
    }

    /// The tag for a message to a party above; before the handshake the message waits.
    fn tag_up(
        &mut self,
        now: Instant,
        port: PortId,
        buf: &mut [u8],
        (peer, len, class): (PeerId, usize, TrafficClass),
        job: Option<u32>,
    ) -> Option<Tag> {
        let mut keys = self.keys_for(now, job);
        let Some(first) = keys.next() else {
            self.counters.no_association += 1;
            return None;
        };
        let older = keys.next();
        let Self { secrets, beginning, counters, .. } = self;
        let until = secrets.keys()[first].until;
        let own =
            beginning.entry((peer, first)).or_insert_with(|| Beginning::new(first, until, port));
        own.begin_if_needed(&mut **secrets, now);
        if own.is_healthy()
            && let Some(tag) =
                own.seal(now, |number, counter| counted(buf, len, (number, class), counter))
        {
            return Some(tag);
        }
        // As long as the other party does not have the present key, the old one is in use.
        let older = older.and_then(|older| beginning.get_mut(&(peer, older)));
        let own = match older.filter(|older| older.is_open()) {
            Some(older) => {
                older.begin_if_needed(&mut **secrets, now);
                older
            }
            None => beginning.get_mut(&(peer, first))?,
        };
        let tag = own.seal(now, |number, counter| counted(buf, len, (number, class), counter));
        if tag.is_none() {
            own.hold(counters, Held { port, class, bytes: buf[..len].to_vec() });
        }
        tag
    }
}

/// Writes association, class and counter behind a message; the bytes that a tag is of.
fn counted(
    buf: &mut [u8],
    len: usize,
    (number, class): (u16, TrafficClass),
    counter: u64,
) -> &[u8] {
    let signed = sealed::put_counter(buf, len, number, class.dscp(), counter);
    &buf[..signed]
}

/// Writes the tag behind message and counter; the length of the datagram.
fn tagged(buf: &mut [u8], len: usize, tag: &Tag) -> usize {
    sealed::put_tag(buf, len + trailer::LEN - trailer::TAG, tag)
}
