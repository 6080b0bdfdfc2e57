//! The party that answers handshakes: a switch, for those below it; a server.
//!
//! It remembers nothing of a stranger. The first answer is a cookie, a tag of the stranger's
//! address and of the time; only who receives at that address can send it back, and only who has
//! the key can sign it. So a spoofed address costs this party one short datagram, and its owner
//! gets no more bytes than were sent.

use super::reason::{Counters, Reason};
use super::secrets::{Direction, Secrets, Session};
use super::window::Window;
use crate::engine::Place;
use crate::ids::PeerId;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::sealed::{Handshake, KeyName, Kind, MAX_COUNTER, Sealed, Tag};

/// A cookie is good for this time.
const COOKIE_AGE: Duration = Duration::from_secs(10);
/// An association that was not heard for this time gives way where all are taken.
const IDLE: Duration = Duration::from_secs(30);

/// The sender of a datagram, and its address where that is known.
type Whence = (PeerId, Option<Place>);

/// One handshake's outcome, at the party that answered.
struct Association {
    peer: PeerId,
    key: usize,
    /// The random bytes of its handshake. The same handshake again gets the same association.
    initiator: Tag,
    responder: Tag,
    session: Box<dyn Session>,
    window: Window,
    /// Datagrams sent.
    sent: u64,
    heard_at: Instant,
}

/// The associations of one party with one key: the one in use, and one whose handshake is done but
/// that nothing has come under. A recorded handshake that somebody repeats can only make the latter.
#[derive(Clone, Copy, Default)]
struct Pair {
    used: Option<u16>,
    begun: Option<u16>,
}

/// All associations that this party answered.
pub(super) struct Answering {
    most: usize,
    by_number: BTreeMap<u16, Association>,
    by_peer: BTreeMap<(PeerId, usize), Pair>,
    next: u16,
}

impl Answering {
    /// Room for `most` associations, at most 65,535.
    pub(super) const fn new(most: usize) -> Self {
        Self { most, by_number: BTreeMap::new(), by_peer: BTreeMap::new(), next: 1 }
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        for (peer, _) in self.by_peer.keys() {
            keep(*peer);
        }
    }

    /// Answers `hello`, and remembers nothing.
    pub(super) fn hello(
        &self,
        secrets: &dyn Secrets,
        now: Instant,
        whence: Whence,
        hello: &Handshake,
    ) -> Handshake {
        let known = secrets.keys().iter().any(|key| key.name == hello.key_name);
        let answer = Handshake {
            key_name: hello.key_name,
            initiator: hello.initiator,
            ..Handshake::new(if known { Kind::Cookie } else { Kind::NoKey })
        };
        if !known {
            return answer;
        }
        let cookie = cookie_of(secrets, whence, hello, now.nanos());
        Handshake { cookie_ns: now.nanos(), cookie, ..answer }
    }

    /// Takes an `open` whose datagram has `signed` bytes and a tag. Returns the key and the answer,
    /// which has to be signed with it.
    pub(super) fn open(
        &mut self,
        secrets: &mut dyn Secrets,
        counters: &mut Counters,
        now: Instant,
        whence: Whence,
        open: &Handshake,
        sealed: &Sealed<'_>,
    ) -> Result<(usize, Handshake), Reason> {
        let made = Instant(open.cookie_ns);
        if made > now || now.since(made) > COOKIE_AGE {
            return Err(Reason::OldCookie);
        }
        if !same(&cookie_of(secrets, whence, open, open.cookie_ns), &open.cookie) {
            return Err(Reason::BadCookie);
        }
        let key = key_named(secrets, &open.key_name).ok_or(Reason::NoSuchKey)?;
        if !secrets.verify(key, sealed.signed, &sealed.tag) {
            return Err(Reason::BadTag);
        }
        let number = match self.of_handshake(whence.0, key, &open.initiator) {
            Some(number) => number,
            None => self.begin(secrets, counters, now, (whence.0, key), open.initiator)?,
        };
        let responder = self.by_number[&number].responder;
        let answer = Handshake {
            association: number,
            key_name: open.key_name,
            initiator: open.initiator,
            responder,
            ..Handshake::new(Kind::Opened)
        };
        Ok((key, answer))
    }

    /// Verifies a datagram of an association. Returns the key that it came under.
    pub(super) fn receive(
        &mut self,
        counters: &mut Counters,
        now: Instant,
        from: PeerId,
        sealed: &Sealed<'_>,
    ) -> Result<usize, Reason> {
        let found = self.by_number.get_mut(&sealed.association);
        let association =
            found.filter(|found| found.peer == from).ok_or(Reason::UnknownAssociation)?;
        if !association.window.is_new(sealed.counter) {
            return Err(Reason::Replayed);
        }
        let Sealed { counter, signed, tag, .. } = sealed;
        if !association.session.verify(Direction::Up, *counter, signed, tag) {
            return Err(Reason::BadTag);
        }
        association.window.take(sealed.counter);
        association.heard_at = now;
        let key = association.key;
        let pair = self.by_peer.entry((from, key)).or_default();
        if pair.begun == Some(sealed.association) {
            pair.begun = None;
            let old = pair.used.replace(sealed.association);
            counters.associations_ended += u64::from(old.is_some());
            old.and_then(|old| self.by_number.remove(&old));
        }
        Ok(key)
    }

    /// The tag for a datagram to `peer` about `job`, and where it belongs; none without an
    /// association. `put_counter` writes the counter, and returns the bytes to sign.
    pub(super) fn seal<'a>(
        &mut self,
        secrets: &dyn Secrets,
        peer: PeerId,
        job: Option<u32>,
        put_counter: impl FnOnce(u16, u64) -> &'a [u8],
    ) -> Option<Tag> {
        let pairs = self.by_peer.range((peer, 0)..=(peer, usize::MAX));
        let mut pairs = pairs.filter(|((_, key), _)| secrets.keys()[*key].allows(job));
        let number = pairs.find_map(|(_, pair)| pair.used.or(pair.begun))?;
        // No counter comes twice. The party begins another handshake when nothing comes back.
        let association = self.by_number.get_mut(&number).filter(|one| one.sent <= MAX_COUNTER)?;
        let counter = association.sent;
        association.sent += 1;
        let signed = put_counter(number, counter);
        Some(association.session.sign(Direction::Down, counter, signed))
    }

    fn of_handshake(&self, peer: PeerId, key: usize, initiator: &Tag) -> Option<u16> {
        let pair = self.by_peer.get(&(peer, key))?;
        let mut numbers = [pair.begun, pair.used].into_iter().flatten();
        numbers.find(|number| self.by_number[number].initiator == *initiator)
    }

    fn begin(
        &mut self,
        secrets: &mut dyn Secrets,
        counters: &mut Counters,
        now: Instant,
        (peer, key): (PeerId, usize),
        initiator: Tag,
    ) -> Result<u16, Reason> {
        // The one that nothing came under gives way first: it is of the same party.
        let begun = self.by_peer.get(&(peer, key)).and_then(|pair| pair.begun);
        if let Some(old) = begun {
            self.end(counters, old);
        } else if self.with_key(key) >= self.share(secrets) {
            let idle = self.idle(now, key).ok_or(Reason::Full)?;
            self.end(counters, idle);
        }
        let number = self.free_number();
        let responder = secrets.random();
        let association = Association {
            peer,
            key,
            initiator,
            responder,
            session: secrets.session(key, &initiator, &responder),
            window: Window::default(),
            sent: 0,
            heard_at: now,
        };
        self.by_number.insert(number, association);
        self.by_peer.entry((peer, key)).or_default().begun = Some(number);
        counters.associations_begun += 1;
        Ok(number)
    }

    /// The associations that one key may have: a key's owners cannot take those of others.
    fn share(&self, secrets: &dyn Secrets) -> usize {
        (self.most / secrets.keys().len().max(1)).max(1)
    }

    fn with_key(&self, key: usize) -> usize {
        self.by_number.values().filter(|association| association.key == key).count()
    }

    /// The association of a key that was not heard for longest, if that is long enough.
    fn idle(&self, now: Instant, key: usize) -> Option<u16> {
        let of_key = self.by_number.iter().filter(|(_, found)| found.key == key);
        let (number, oldest) = of_key.min_by_key(|(_, found)| found.heard_at)?;
        (now.since(oldest.heard_at) >= IDLE).then_some(*number)
    }

    fn end(&mut self, counters: &mut Counters, number: u16) {
        let Some(ended) = self.by_number.remove(&number) else { return };
        counters.associations_ended += 1;
        let place = (ended.peer, ended.key);
        let Some(pair) = self.by_peer.get_mut(&place) else { return };
        for kept in [&mut pair.used, &mut pair.begun] {
            if *kept == Some(number) {
                *kept = None;
            }
        }
        if pair.used.is_none() && pair.begun.is_none() {
            self.by_peer.remove(&place);
        }
    }

    /// A number that no association has: there are more numbers than associations.
    fn free_number(&mut self) -> u16 {
        loop {
            let number = self.next;
            self.next = self.next.checked_add(1).unwrap_or(1);
            if !self.by_number.contains_key(&number) {
                return number;
            }
        }
    }
}

fn key_named(secrets: &dyn Secrets, name: &KeyName) -> Option<usize> {
    secrets.keys().iter().position(|key| key.name == *name)
}

/// The cookie for a party that begins a handshake with these random bytes at this time.
///
/// The address is in it, where the driver says it: while a flood of strangers comes, a stranger's number
/// may be forgotten before its answer is here, and then be another.
fn cookie_of(secrets: &dyn Secrets, (peer, place): Whence, begun: &Handshake, ns: u64) -> Tag {
    let mut bytes = Vec::with_capacity(64);
    match place {
        Some(place) => bytes.extend_from_slice(&place),
        None => bytes.extend_from_slice(&peer.0.to_be_bytes()),
    }
    bytes.extend_from_slice(&begun.key_name);
    bytes.extend_from_slice(&begun.initiator);
    bytes.extend_from_slice(&ns.to_be_bytes());
    secrets.cookie(&bytes)
}

/// Compares without saying by its time where the two differ.
fn same(one: &Tag, other: &Tag) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
