//! The party that answers handshakes: a switch, for those below it; a server.
//!
//! It remembers nothing of a stranger. The first answer is a cookie, a tag of the stranger's
//! address and of the time; only who receives at that address can send it back, and only who has
//! the key can sign it. So a spoofed address costs this party one short datagram, and its owner
//! gets no more bytes than were sent.
//!
//! Where a key is replaced, a party may have an association with each of the two. What goes to it is sealed
//! with the newer one that something came under.

use super::reason::{Counters, Reason};
use super::secrets::{Direction, KeyInfo, Secrets, Session};
use super::window::Window;
use crate::engine::Place;
use crate::ids::PeerId;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::sealed::{Handshake, KeyName, Kind, MAX_COUNTER, Sealed, Tag};

/// A cookie is good for this time.
const COOKIE_AGE: Duration = Duration::from_secs(10);
/// An association that was not heard for this time gives way where all are taken. It ends where the engine
/// does not know its party any more.
const IDLE: Duration = Duration::from_secs(30);
/// When a party has moved to the present key, datagrams under the old one may still be on their way.
const ON_THEIR_WAY: Duration = Duration::from_secs(5);
/// A time that never comes.
const NEVER: Instant = Instant(u64::MAX);

/// The sender of a datagram, and its address where that is known.
type Whence = (PeerId, Option<Place>);

/// Names all peers that the engine knows.
pub(super) type Known<'a> = &'a dyn Fn(&mut dyn FnMut(PeerId));

/// One handshake's outcome, at the party that answered.
struct Association {
    peer: PeerId,
    place: Option<Place>,
    key: usize,
    /// When its key ends, or when nothing can be on its way under it any more.
    until: Instant,
    /// Its party has moved to the present key.
    has_moved: bool,
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
    /// When idle associations end next.
    sweep_at: Option<Instant>,
}

impl Answering {
    /// Room for `most` associations, at most 65,535.
    pub(super) const fn new(most: usize) -> Self {
        Self { most, by_number: BTreeMap::new(), by_peer: BTreeMap::new(), next: 1, sweep_at: None }
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        for (peer, _) in self.by_peer.keys() {
            keep(*peer);
        }
    }

    /// Parties that use an old key, and have not moved to the present one.
    pub(super) fn with_old_key(&self, secrets: &dyn Secrets, now: Instant) -> usize {
        let keys = secrets.keys();
        let is_old = |key: usize| keys[key].until.is_some() && !keys[key].is_over(now);
        let has_moved = |peer: PeerId, old: usize| {
            let pairs = self.by_peer.range((peer, 0)..=(peer, usize::MAX));
            pairs.into_iter().any(|((_, key), pair)| {
                let is_present = keys[*key].until.is_none() && keys[*key].job == keys[old].job;
                is_present && pair.used.is_some()
            })
        };
        let old = self.by_peer.keys().filter(|(_, key)| is_old(*key));
        old.filter(|(peer, key)| !has_moved(*peer, *key)).count()
    }

    /// The keys have other places now, and perhaps other ends. Associations of keys that are gone end.
    pub(super) fn rekey(
        &mut self,
        counters: &mut Counters,
        place_of: &[Option<usize>],
        keys: &[KeyInfo],
    ) {
        let gone = self.by_number.iter().filter(|(_, found)| place_of[found.key].is_none());
        let gone: Vec<u16> = gone.map(|(number, _)| *number).collect();
        gone.into_iter().for_each(|number| self.end(counters, number));
        let moved =
            |key: usize| place_of[key].expect("associations of keys that are gone have ended");
        for association in self.by_number.values_mut() {
            association.key = moved(association.key);
            if !association.has_moved {
                association.until = keys[association.key].until.unwrap_or(NEVER);
            }
        }
        let before = core::mem::take(&mut self.by_peer);
        self.by_peer =
            before.into_iter().map(|((peer, key), pair)| ((peer, moved(key)), pair)).collect();
    }

    /// When [`Answering::sweep`] has something to do.
    pub(super) const fn sweep_at(&self) -> Option<Instant> {
        self.sweep_at
    }

    /// Ends associations whose key is over, and idle ones of parties that the engine does not know: those
    /// that have left, and those that never joined.
    pub(super) fn sweep(&mut self, counters: &mut Counters, now: Instant, known: Known<'_>) {
        let mut members = BTreeSet::new();
        known(&mut |peer| {
            members.insert(peer);
        });
        let ends = |found: &Association| {
            let is_idle = now.since(found.heard_at) >= IDLE && !members.contains(&found.peer);
            found.until <= now || is_idle
        };
        let ended = self.by_number.iter().filter(|(_, found)| ends(found));
        let ended: Vec<u16> = ended.map(|(number, _)| *number).collect();
        ended.into_iter().for_each(|number| self.end(counters, number));
        self.sweep_at = (!self.by_number.is_empty()).then(|| now + IDLE);
    }

    /// Answers `hello`, and remembers nothing.
    pub(super) fn hello(
        &self,
        secrets: &dyn Secrets,
        now: Instant,
        whence: Whence,
        hello: &Handshake,
    ) -> Handshake {
        let known = secrets.keys().iter().find(|key| key.name == hello.key_name);
        let answer = |kind| Handshake {
            key_name: hello.key_name,
            initiator: hello.initiator,
            ..Handshake::new(kind)
        };
        let over = match known {
            None => Some(Instant(0)),
            Some(key) => key.until.filter(|_| key.is_over(now)),
        };
        if let Some(Instant(cookie_ns)) = over {
            return Handshake { cookie_ns, ..answer(Kind::NoKey) };
        }
        let cookie = cookie_of(secrets, whence, hello, now.nanos());
        Handshake { cookie_ns: now.nanos(), cookie, ..answer(Kind::Cookie) }
    }

    /// Takes an `open` whose datagram has `signed` bytes and a tag. Returns the key and the answer,
    /// which has to be signed with it.
    pub(super) fn open(
        &mut self,
        secrets: &mut dyn Secrets,
        counters: &mut Counters,
        now: Instant,
        (whence, known): (Whence, Known<'_>),
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
        if secrets.keys()[key].is_over(now) {
            return Err(Reason::KeyOver);
        }
        if !secrets.verify(key, sealed.signed, &sealed.tag) {
            return Err(Reason::BadTag);
        }
        let number = match self.of_handshake(whence.0, key, &open.initiator) {
            Some(number) => number,
            None => self.begin(secrets, counters, now, (whence, key, known), open.initiator)?,
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
        secrets: &dyn Secrets,
        counters: &mut Counters,
        now: Instant,
        from: PeerId,
        sealed: &Sealed<'_>,
    ) -> Result<usize, Reason> {
        let found = self.by_number.get_mut(&sealed.association);
        let association =
            found.filter(|found| found.peer == from).ok_or(Reason::UnknownAssociation)?;
        if association.until <= now {
            let is_over = secrets.keys()[association.key].is_over(now);
            self.end(counters, sealed.association);
            return Err(if is_over { Reason::KeyOver } else { Reason::UnknownAssociation });
        }
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
            self.has_moved(secrets, now, from, key);
        }
        Ok(key)
    }

    /// The party uses this key from here on: what it had under an older one of the job ends soon.
    fn has_moved(&mut self, secrets: &dyn Secrets, now: Instant, peer: PeerId, key: usize) {
        let keys = secrets.keys();
        if keys[key].until.is_some() {
            return;
        }
        let pairs = self.by_peer.range((peer, 0)..=(peer, usize::MAX));
        let older =
            pairs.filter(|((_, other), _)| *other != key && keys[*other].job == keys[key].job);
        for number in older.flat_map(|(_, pair)| [pair.used, pair.begun]).flatten() {
            let old = self.by_number.get_mut(&number).expect("a pair's associations are there");
            old.until = old.until.min(now + ON_THEIR_WAY);
            old.has_moved = true;
        }
    }

    /// The tag for a datagram to `peer` about `job`, and where it belongs; none without an
    /// association. `put_counter` writes the counter, and returns the bytes to sign.
    pub(super) fn seal<'a>(
        &mut self,
        secrets: &dyn Secrets,
        (now, peer): (Instant, PeerId),
        job: Option<u32>,
        put_counter: impl FnOnce(u16, u64) -> &'a [u8],
    ) -> Option<Tag> {
        let pairs = self.by_peer.range((peer, 0)..=(peer, usize::MAX));
        let good = |key: &KeyInfo| key.allows(job) && !key.is_over(now);
        let pairs = pairs.filter(|((_, key), _)| good(&secrets.keys()[*key]));
        // What nothing came under may not be known to the party yet.
        let used = pairs.clone().find_map(|(_, pair)| pair.used);
        let number = used.or_else(|| pairs.filter_map(|(_, pair)| pair.begun).next())?;
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
        ((peer, place), key, known): (Whence, usize, Known<'_>),
        initiator: Tag,
    ) -> Result<u16, Reason> {
        // The one that nothing came under gives way first: it is of the same party.
        let begun = self.by_peer.get(&(peer, key)).and_then(|pair| pair.begun);
        if let Some(old) = begun {
            self.end(counters, old);
        } else if self.of_job(secrets, key).count() >= self.share(secrets) {
            let weakest = self.weakest(secrets, now, key, known).ok_or(Reason::Full)?;
            self.end(counters, weakest);
        }
        let number = self.free_number();
        let responder = secrets.random();
        let association = Association {
            peer,
            place,
            key,
            until: secrets.keys()[key].until.unwrap_or(NEVER),
            has_moved: false,
            initiator,
            responder,
            session: secrets.session(key, &initiator, &responder),
            window: Window::default(),
            sent: 0,
            heard_at: now,
        };
        self.by_number.insert(number, association);
        self.by_peer.entry((peer, key)).or_default().begun = Some(number);
        self.sweep_at.get_or_insert(now + IDLE);
        counters.associations_begun += 1;
        Ok(number)
    }

    /// The associations that the keys of one job may have: their owners cannot take those of others.
    fn share(&self, secrets: &dyn Secrets) -> usize {
        let jobs = secrets.keys().iter().filter(|key| key.until.is_none()).count();
        (self.most / jobs.max(1)).max(1)
    }

    /// The associations with the keys of the same job as this one.
    fn of_job(
        &self,
        secrets: &dyn Secrets,
        key: usize,
    ) -> impl Iterator<Item = (&u16, &Association)> {
        let keys = secrets.keys();
        self.by_number.iter().filter(move |(_, found)| keys[found.key].job == keys[key].job)
    }

    /// The association that gives way to a newcomer with this key. Parties that the engine does not know
    /// come first: of the address that has most of them, the one that was not heard for longest. Then the
    /// one that was not heard for longest of all, if that is long enough.
    fn weakest(
        &self,
        secrets: &dyn Secrets,
        now: Instant,
        key: usize,
        known: Known<'_>,
    ) -> Option<u16> {
        let mut members = BTreeSet::new();
        known(&mut |peer| {
            members.insert(peer);
        });
        let mut strangers: BTreeMap<&[u8], (usize, Instant, u16)> = BTreeMap::new();
        let all = self.of_job(secrets, key);
        for (number, found) in all.filter(|(_, found)| !members.contains(&found.peer)) {
            // Without the port. A driver without addresses has one for all.
            let address = found.place.as_ref().map_or(&[][..], |place| &place[..16]);
            let own = strangers.entry(address).or_insert((0, NEVER, *number));
            own.0 += 1;
            if found.heard_at < own.1 {
                (own.1, own.2) = (found.heard_at, *number);
            }
        }
        if let Some((.., number)) = strangers.into_values().max_by_key(|(count, ..)| *count) {
            return Some(number);
        }
        let (number, oldest) = self.of_job(secrets, key).min_by_key(|(_, one)| one.heard_at)?;
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
