//! The party that begins handshakes: a worker, or a switch with those above it.

use super::reason::{Counters, Reason};
use super::secrets::{Direction, Secrets, Session};
use super::window::Window;
use crate::engine::TrafficClass;
use crate::ids::PortId;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::sealed::{Handshake, Kind, MAX_COUNTER, Sealed, Tag};

/// An unanswered message of a handshake goes out again after this time, then after twice that, up to
/// [`LAST_REPEAT`]. A party that starts later waits no longer than that.
const FIRST_REPEAT: Duration = Duration::from_millis(100);
const LAST_REPEAT: Duration = Duration::from_millis(500);
/// A party that has no such key is asked again after this time: it may get the key's file later.
const REPEAT_REFUSED: Duration = Duration::from_secs(2);
/// A cookie is sent again until the interval is longer than this. Then the party asks for a new one.
const LAST_OF_COOKIE: Duration = Duration::from_millis(400);
/// Where nothing comes back for this time, the other party may have begun a new life.
const SILENCE: Duration = Duration::from_secs(1);
/// Messages that wait for a handshake.
const HELD: usize = 16;

/// A message that waits for the handshake.
pub(super) struct Held {
    pub(super) port: PortId,
    pub(super) class: TrafficClass,
    pub(super) bytes: Vec<u8>,
}

/// A handshake under way.
struct Attempt {
    random: Tag,
    /// What goes out again, with its key's name.
    says: Handshake,
    next_at: Instant,
    repeat: Duration,
}

/// Keys in use.
struct Live {
    number: u16,
    session: Box<dyn Session>,
    window: Window,
    sent: u64,
    /// The first datagram sent since one came.
    unanswered_since: Option<Instant>,
}

/// What this party has with another one, under one key.
pub(super) struct Beginning {
    key: usize,
    /// When the key ends.
    until: Option<Instant>,
    port: PortId,
    attempt: Option<Attempt>,
    attempted_at: Option<Instant>,
    live: Option<Live>,
    /// The keys before: the other party uses them until something came under the new ones.
    before: Option<Live>,
    held: VecDeque<Held>,
    /// The other party has said that the key is not good there. Anybody could have said it.
    pub(super) refused: Option<KeyRefused>,
    /// The other party speaks this version of seals.
    pub(super) other_version: Option<u8>,
}

/// Why a key is not good at the other party, as somebody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyRefused {
    /// It has no such key.
    Unknown,
    /// The key was replaced, and the time of the old one was over then.
    Over(Instant),
}

impl Beginning {
    pub(super) const fn new(key: usize, until: Option<Instant>, port: PortId) -> Self {
        Self {
            key,
            until,
            port,
            attempt: None,
            attempted_at: None,
            live: None,
            before: None,
            held: VecDeque::new(),
            refused: None,
            other_version: None,
        }
    }

    pub(super) const fn port(&self) -> PortId {
        self.port
    }

    /// Returns true if messages can be sealed now.
    pub(super) const fn is_open(&self) -> bool {
        self.live.is_some()
    }

    /// Returns true if messages can be sealed now, and nothing says that the other party cannot open them.
    pub(super) const fn is_healthy(&self) -> bool {
        self.live.is_some() && self.refused.is_none()
    }

    /// The key is at this place now, and ends at that time.
    pub(super) const fn rekey(&mut self, key: usize, until: Option<Instant>) {
        (self.key, self.until) = (key, until);
    }

    /// Gives up a handshake: another key of the job is in use.
    pub(super) fn give_up(&mut self) {
        self.attempt = None;
    }

    /// All messages that wait for the handshake.
    pub(super) fn take_all_held(&mut self) -> VecDeque<Held> {
        core::mem::take(&mut self.held)
    }

    /// Begins a handshake if there are no keys, or if nothing came back under them.
    pub(super) fn begin_if_needed(&mut self, secrets: &mut dyn Secrets, now: Instant) {
        let silent = match &self.live {
            None => true,
            Some(live) => {
                live.unanswered_since.is_some_and(|since| now.since(since) >= SILENCE)
                    || live.sent > MAX_COUNTER
            }
        };
        if silent {
            self.begin(secrets, now);
        }
    }

    /// Begins a handshake, unless one is under way or has just been.
    pub(super) fn begin(&mut self, secrets: &mut dyn Secrets, now: Instant) {
        let recent = self.attempted_at.is_some_and(|at| now.since(at) < SILENCE);
        if self.attempt.is_some() || recent {
            return;
        }
        let random = secrets.random();
        let says = Handshake {
            key_name: secrets.keys()[self.key].name,
            initiator: random,
            ..Handshake::new(Kind::Hello)
        };
        self.attempted_at = Some(now);
        self.attempt = Some(Attempt { random, says, next_at: now, repeat: FIRST_REPEAT });
    }

    /// When a message of the handshake goes out next.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.attempt.as_ref().map(|attempt| attempt.next_at)
    }

    /// The message of the handshake that is due, and the key to sign it with.
    pub(super) fn due(&mut self, now: Instant) -> Option<(usize, Handshake)> {
        let attempt = self.attempt.as_mut().filter(|attempt| attempt.next_at <= now)?;
        if attempt.says.kind == Kind::Open && attempt.repeat > LAST_OF_COOKIE {
            // Perhaps the cookie is of an earlier life of the other party.
            attempt.says.kind = Kind::Hello;
        }
        let repeat = if self.refused.is_some() { REPEAT_REFUSED } else { attempt.repeat };
        attempt.next_at = now + repeat;
        attempt.repeat = (2 * attempt.repeat).min(LAST_REPEAT);
        Some((self.key, attempt.says))
    }

    /// Takes an answer to this party's handshake.
    pub(super) fn answered(
        &mut self,
        secrets: &dyn Secrets,
        counters: &mut Counters,
        now: Instant,
        answer: &Handshake,
        sealed: &Sealed<'_>,
    ) -> Result<(), Reason> {
        let Some(attempt) = &mut self.attempt else { return Err(Reason::NotAsked) };
        if attempt.random != answer.initiator || attempt.says.key_name != answer.key_name {
            return Err(Reason::NotAsked);
        }
        match answer.kind {
            Kind::Cookie if attempt.says.kind == Kind::Hello => {
                attempt.says = Handshake {
                    cookie_ns: answer.cookie_ns,
                    cookie: answer.cookie,
                    ..Handshake { kind: Kind::Open, ..attempt.says }
                };
                (attempt.next_at, attempt.repeat) = (now, FIRST_REPEAT);
            }
            Kind::Cookie => {}
            Kind::Opened if answer.association != 0 => {
                if !secrets.verify(self.key, sealed.signed, &sealed.tag) {
                    return Err(Reason::BadTag);
                }
                let live = Live {
                    number: answer.association,
                    session: secrets.session(self.key, &attempt.random, &answer.responder),
                    window: Window::default(),
                    sent: 0,
                    unanswered_since: None,
                };
                self.before = self.live.replace(live);
                self.attempt = None;
                (self.refused, self.other_version) = (None, None);
                counters.associations_begun += 1;
            }
            // It says nothing that could be believed, but tells a person why nothing comes.
            Kind::NoKey => {
                self.refused = Some(match answer.cookie_ns {
                    0 => KeyRefused::Unknown,
                    over => KeyRefused::Over(Instant(over)),
                });
            }
            _ => return Err(Reason::BadHandshake),
        }
        Ok(())
    }

    /// The other party says that it does not know this association.
    pub(super) fn is_unknown(
        &mut self,
        secrets: &mut dyn Secrets,
        now: Instant,
        number: u16,
    ) -> bool {
        let is_ours = self.live.as_ref().is_some_and(|live| live.number == number);
        if is_ours {
            // Anybody could have said it: the keys stay until there are others.
            self.begin(secrets, now);
        }
        is_ours
    }

    /// Verifies a datagram. None if it belongs to no association of this party.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        sealed: &Sealed<'_>,
    ) -> Option<Result<usize, Reason>> {
        let both = [&mut self.live, &mut self.before];
        let mut known = both.into_iter().flatten();
        let live = known.find(|live| live.number == sealed.association)?;
        if self.until.is_some_and(|until| until <= now) {
            return Some(Err(Reason::KeyOver));
        }
        let Sealed { counter, signed, tag, .. } = sealed;
        if !live.window.is_new(*counter) {
            return Some(Err(Reason::Replayed));
        }
        if !live.session.verify(Direction::Down, *counter, signed, tag) {
            return Some(Err(Reason::BadTag));
        }
        live.window.take(*counter);
        live.unanswered_since = None;
        self.refused = None;
        Some(Ok(self.key))
    }

    /// The tag for a datagram; none before the handshake. `put_counter` writes the counter, and
    /// returns the bytes to sign.
    pub(super) fn seal<'a>(
        &mut self,
        now: Instant,
        put_counter: impl FnOnce(u16, u64) -> &'a [u8],
    ) -> Option<Tag> {
        let live = self.live.as_mut().filter(|live| live.sent <= MAX_COUNTER)?;
        let counter = live.sent;
        live.sent += 1;
        live.unanswered_since.get_or_insert(now);
        let signed = put_counter(live.number, counter);
        Some(live.session.sign(Direction::Up, counter, signed))
    }

    /// Keeps a message until the handshake is done.
    pub(super) fn hold(&mut self, counters: &mut Counters, message: Held) {
        if self.held.len() == HELD {
            self.held.pop_front();
            counters.held_too_long += 1;
        }
        self.held.push_back(message);
    }

    /// The next message that waited, once there are keys.
    pub(super) fn take_held(&mut self, port: PortId) -> Option<Held> {
        let is_next = self.is_open() && self.held.front().is_some_and(|held| held.port == port);
        if is_next { self.held.pop_front() } else { None }
    }

    pub(super) fn waiting(&self) -> usize {
        self.held.len()
    }
}
