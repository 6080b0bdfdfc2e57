//! Keys around an engine: it gets only messages of parties that have shown a key of its job.
//!
//! [`Sealed`] is an engine around an engine. A datagram is verified before the inner engine sees a
//! byte of it, and each message that the inner engine sends is signed for its receiver. The wire
//! format is `olaf_wire::sealed`; the cryptography comes from a driver as [`Secrets`]. Without keys
//! a datagram is its message, and nothing is added.
//!
//! A party begins handshakes with the peers of [`Sealed::set_above`], and answers those of all
//! others.

mod answering;
mod beginning;
mod guard;
mod reason;
mod secrets;
#[cfg(test)]
mod tests;
mod window;

pub use reason::{Counters, Reason};
pub use secrets::{Direction, KeyInfo, Secrets, Session, Signer};

use crate::drop::DropReason;
use crate::engine::{Engine, Place, Source, TrafficClass, Transmit, Verdict, Why};
use crate::event::Event;
use crate::ids::{PeerId, PortId};
use crate::report::{Group, Report, walk};
use crate::time::Instant;
use alloc::boxed::Box;
use beginning::{Beginning, KeyRefused};
use core::ops::{Deref, DerefMut};
use guard::Guard;
use olaf_wire::sealed::{KeyName, OVERHEAD};

/// Associations that a party answers at most, those of all keys together.
pub const ASSOCIATIONS: usize = 4096;

/// How a party stands with those that it begins handshakes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has no keys.
    Clear,
    /// No handshake has ended yet.
    Unanswered,
    /// A party above says that it has no such key. Anybody could have said it.
    KeyRefused,
    /// A party above says that this key was replaced, and that the time of the old one is over. Anybody
    /// could have said it.
    KeyOver(KeyName),
    /// A party above speaks this version of seals, and this party another one. Anybody could have said it.
    OtherVersion(u8),
    /// A handshake has ended.
    Open,
}

/// An engine behind keys, or without any.
pub struct Sealed<E> {
    inner: E,
    guard: Option<Box<Guard>>,
}

impl<E> Sealed<E> {
    /// The engine as it is: its datagrams are its messages.
    pub const fn clear(inner: E) -> Self {
        Self { inner, guard: None }
    }

    /// The engine behind these keys.
    pub fn with_keys(inner: E, secrets: Box<dyn Secrets>) -> Self {
        Self { inner, guard: Some(Box::new(Guard::new(secrets))) }
    }

    /// Names a peer with which this party begins the handshakes. Without keys it does nothing.
    pub fn set_above(&mut self, peer: PeerId) {
        if let Some(guard) = &mut self.guard {
            guard.above.insert(peer);
        }
    }

    /// Begins the handshakes with all peers above at once, with the first key, at this port. Parties that
    /// hear each other only after a handshake do so before anything is to be sent.
    pub fn open_all(&mut self, now: Instant, port: PortId) {
        let Some(guard) = &mut self.guard else { return };
        for peer in &guard.above {
            let until = guard.secrets.keys()[0].until;
            let place = guard.beginning.entry((*peer, 0));
            let own = place.or_insert_with(|| Beginning::new(0, until, port));
            own.begin_if_needed(&mut *guard.secrets, now);
        }
    }

    /// Bytes that the seal adds to each message: the path takes messages shorter by them.
    pub const fn overhead(&self) -> usize {
        if self.guard.is_some() { OVERHEAD } else { 0 }
    }

    /// How this party stands with those above.
    pub fn standing(&self) -> Standing {
        let Some(guard) = &self.guard else { return Standing::Clear };
        let all = guard.beginning.values();
        if all.clone().any(Beginning::is_healthy) {
            return Standing::Open;
        }
        if let Some(have) = all.clone().find_map(|found| found.other_version) {
            return Standing::OtherVersion(have);
        }
        let refused =
            guard.beginning.iter().filter_map(|((_, key), own)| Some((*key, own.refused?)));
        match refused.max_by_key(|(_, refused)| matches!(refused, KeyRefused::Over(_))) {
            Some((key, KeyRefused::Over(_))) => Standing::KeyOver(guard.secrets.keys()[key].name),
            Some((_, KeyRefused::Unknown)) => Standing::KeyRefused,
            None if all.clone().any(Beginning::is_open) => Standing::Open,
            None => Standing::Unanswered,
        }
    }

    /// Takes other keys, such as a present one and the one before. Associations of a key that stays go on,
    /// and those of a key that is gone end. With parties above, the handshakes with the present key begin
    /// at once. A party without keys stays without.
    pub fn rekey(&mut self, now: Instant, secrets: Box<dyn Secrets>)
    where
        E: Engine,
    {
        let Some(guard) = &mut self.guard else { return };
        self.inner.take_signer(now, secrets.signer());
        guard.rekey(now, secrets);
    }

    /// What met the seal; none without keys.
    pub fn counters(&self) -> Option<&Counters> {
        self.guard.as_deref().map(|guard| &guard.counters)
    }

    /// As [`Engine::poll_transmit`], where `poll` says what the engine sends next.
    pub fn poll_transmit_by(
        &mut self,
        now: Instant,
        port: PortId,
        buf: &mut [u8],
        mut poll: impl FnMut(&mut E, &mut [u8]) -> Option<Transmit>,
    ) -> Option<Transmit>
    where
        E: Engine,
    {
        let Some(guard) = &mut self.guard else {
            return poll(&mut self.inner, buf);
        };
        if let Some(transmit) = guard.poll(now, port, buf) {
            return Some(transmit);
        }
        while let Some(transmit) = poll(&mut self.inner, buf) {
            // All receivers of a message are of one job.
            let job = transmit.to.as_slice().first().and_then(|peer| {
                let at = Source { port, peer: *peer, class: transmit.class };
                self.inner.job_of(at, &buf[..transmit.len])
            });
            if let Some(sealed) = guard.take(now, port, buf, transmit, job) {
                return Some(sealed);
            }
        }
        // What the engine sent may have begun a handshake.
        guard.poll(now, port, buf)
    }

    /// The engine, without its seal.
    pub fn into_inner(self) -> E {
        self.inner
    }
}

impl<E> Deref for Sealed<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.inner
    }
}

impl<E> DerefMut for Sealed<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.inner
    }
}

impl<E: Engine> Engine for Sealed<E> {
    fn comes_from(&mut self, address: Place) {
        match &mut self.guard {
            Some(guard) => guard.place = Some(address),
            None => self.inner.comes_from(address),
        }
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let Some(guard) = &mut self.guard else {
            return self.inner.handle_packet(now, from, bytes);
        };
        guard.counters.received += 1;
        let known = |keep: &mut dyn FnMut(PeerId)| self.inner.peers(keep);
        let opened = guard.receive(now, from, bytes, &known).and_then(|found| {
            let Some((key, class, message)) = found else { return Ok(None) };
            // Anybody on the way can rewrite the class of service in the IP header, and some networks clear it.
            let sealed_as = Source { class: TrafficClass::new(class, from.class.ecn()), ..from };
            guard.counters.reclassified += u64::from(from.class.dscp() != class);
            let is_allowed = guard.allows(key, self.inner.job_of(sealed_as, message));
            if is_allowed { Ok(Some((sealed_as, message))) } else { Err(Reason::OtherJob) }
        });
        match opened {
            Ok(Some((sealed_as, message))) => {
                guard.counters.opened += 1;
                self.inner.handle_packet(now, sealed_as, message)
            }
            Ok(None) => {
                guard.counters.handshakes += 1;
                Verdict::Absorb
            }
            Err(reason) => {
                guard.counters.refuse(reason);
                Verdict::Drop(DropReason::Seal(reason))
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.poll_transmit_by(now, port, buf, |inner, buf| inner.poll_transmit(now, port, buf))
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let own = self.guard.as_deref().and_then(Guard::next_at);
        let own = own.map(|at| (at, Why::Retransmission));
        [own, self.inner.poll_timeout()].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        // What the seal has to repeat leaves by `poll_transmit`.
        if let Some(guard) = &mut self.guard
            && guard.answering.sweep_at().is_some_and(|at| at <= now)
        {
            let known = |keep: &mut dyn FnMut(PeerId)| self.inner.peers(keep);
            guard.answering.sweep(&mut guard.counters, now, &known);
        }
        if self.inner.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.inner.handle_timeout(now);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let own = self.guard.as_mut().and_then(|guard| guard.events.pop_front());
        own.or_else(|| self.inner.poll_event())
    }

    fn ports(&self) -> u16 {
        self.inner.ports()
    }

    fn must_drain(&self) -> bool {
        self.inner.must_drain()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.inner.peers(keep);
        if let Some(guard) = &self.guard {
            guard.above.iter().for_each(|peer| keep(*peer));
            guard.answering.peers(keep);
        }
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.inner.report(now, to);
        if let Some(guard) = &self.guard {
            to.open("keys", Group::Map);
            walk(&guard.statistics(now), to);
            to.close();
        }
    }

    fn handle_too_long(&mut self, now: Instant, bytes: usize, largest: Option<u32>) {
        let added = self.overhead();
        let largest = largest.map(|largest| largest.saturating_sub(added as u32));
        self.inner.handle_too_long(now, bytes.saturating_sub(added), largest);
    }

    fn job_of(&self, at: Source, message: &[u8]) -> Option<u32> {
        self.inner.job_of(at, message)
    }
}
