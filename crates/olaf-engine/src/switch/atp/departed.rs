//! Workers that have left, or are no more, until the server has heard of it.

use crate::ids::{PeerId, Session};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::reduce::Reason;

/// Most workers that are remembered. The leave of one more goes up once.
const MOST: usize = 4096;

/// Words of this switch about workers of one address. A sender that joins with ever new sessions draws no more.
const MOST_AT_AN_ADDRESS: usize = 2;

/// A job, and one of its servers.
type Of = (u16, u8);

/// A worker that is not here any more.
#[derive(Clone, Copy, Debug)]
struct Departed {
    peer: PeerId,
    /// Why, where this switch says it, and not the worker.
    own_word: Option<Reason>,
    since: Instant,
}

/// The workers whose departure the server has not confirmed.
#[derive(Debug, Default)]
pub(super) struct Departures(BTreeMap<(Of, Session), Departed>);

impl Departures {
    /// A worker at that peer has gone. `own_word`: why, where this switch says it.
    pub(super) fn add(
        &mut self,
        now: Instant,
        of: Of,
        session: Session,
        peer: PeerId,
        own_word: Option<Reason>,
    ) {
        if own_word.is_some() {
            let at = self
                .0
                .iter()
                .filter(|((at, _), one)| *at == of && one.peer == peer && one.own_word.is_some());
            let oldest = at.clone().min_by_key(|(_, one)| one.since).map(|(key, _)| *key);
            if let Some(oldest) = oldest.filter(|_| at.count() >= MOST_AT_AN_ADDRESS) {
                self.0.remove(&oldest);
            }
        }
        if self.0.len() < MOST {
            self.0.insert((of, session), Departed { peer, own_word, since: now });
        }
    }

    /// Returns true if that worker has said so at that peer before: its word goes up again.
    pub(super) fn has(&self, of: Of, session: Session, peer: PeerId) -> bool {
        let known = self.0.get(&(of, session));
        known.is_some_and(|departed| departed.peer == peer && departed.own_word.is_none())
    }

    /// The server has heard of it. Returns where the worker waits for that word; the outer one is none where the worker
    /// is not known.
    pub(super) fn confirm(&mut self, of: Of, session: Session) -> Option<Option<PeerId>> {
        let departed = self.0.remove(&(of, session))?;
        Some(departed.own_word.is_none().then_some(departed.peer))
    }

    /// The worker joins again.
    pub(super) fn returns(&mut self, of: Of, session: Session) {
        self.0.remove(&(of, session));
    }

    /// What this switch has to say, again, of workers that were at that peer.
    pub(super) fn at(&self, of: Of, peer: PeerId) -> Vec<(Session, Reason)> {
        let here = self.0.iter().filter(|((at, _), one)| *at == of && one.peer == peer);
        here.filter_map(|((_, session), one)| Some((*session, one.own_word?))).collect()
    }

    /// Forgets those of long ago.
    pub(super) fn expire(&mut self, now: Instant, silence: Duration) {
        self.0.retain(|_, departed| now.since(departed.since) < silence);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.0.values().map(|departed| departed.peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1 << 40);
    const OF: Of = (1, 0);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_departure_is_remembered_until_it_is_confirmed_or_old() {
        let (mut departures, peer) = (Departures::default(), PeerId(3));
        departures.add(NOW, OF, Session(1), peer, None);
        departures.add(NOW, OF, Session(2), peer, Some(Reason::Dead));
        assert!(departures.has(OF, Session(1), peer));
        assert!(!departures.has(OF, Session(1), PeerId(4)), "another one says so");
        assert!(!departures.has(OF, Session(2), peer), "the worker itself has not said it");
        assert_eq!(departures.at(OF, peer), [(Session(2), Reason::Dead)]);
        assert_eq!(departures.at((2, 0), peer), []);
        assert_eq!(departures.confirm(OF, Session(1)), Some(Some(peer)));
        assert_eq!(departures.confirm(OF, Session(1)), None, "it was confirmed");
        departures.expire(NOW + Duration::from_millis(999), SECOND);
        assert!(!departures.is_empty());
        departures.expire(NOW + SECOND, SECOND);
        assert!(departures.is_empty());
    }

    #[test]
    fn the_newest_words_about_an_address_are_remembered() {
        let (mut departures, peer) = (Departures::default(), PeerId(3));
        for one in 0..9 {
            let now = NOW + Duration::from_millis(one.into());
            departures.add(now, OF, Session(20 - one), peer, Some(Reason::Dead));
        }
        departures.add(NOW, OF, Session(99), PeerId(4), Some(Reason::Dead));
        let newest = [12, 13].map(|session| (Session(session), Reason::Dead));
        assert_eq!(departures.at(OF, peer), newest);
        assert_eq!(departures.peers().count(), 3);
    }

    #[test]
    fn so_many_departures_are_remembered_at_most() {
        let mut departures = Departures::default();
        (0..5000).for_each(|one| departures.add(NOW, OF, Session(one), PeerId(3), None));
        assert_eq!(departures.peers().count(), MOST);
    }
}
