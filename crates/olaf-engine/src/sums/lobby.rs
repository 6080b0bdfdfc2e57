//! Who waits for the next generation of a job.

use super::{Held, Patience, Presence};
use crate::ids::{PeerId, Session};
use crate::time::Instant;
use alloc::collections::BTreeMap;

/// A worker, or a lower switch, that waits. `Wish` is what a join of its protocol says beside.
#[derive(Clone, Debug)]
pub struct Candidate<Wish> {
    /// Where its joins come from.
    pub peer: PeerId,
    /// The rank that it asks for.
    pub wanted: Option<u32>,
    /// Workers that it stands for.
    pub contributors: u32,
    /// When it last joined.
    pub heard: Instant,
    /// The rest.
    pub wish: Wish,
}

/// The candidates of a job, by their sessions.
#[derive(Clone, Debug)]
pub struct Lobby<Wish> {
    candidates: BTreeMap<Session, Candidate<Wish>>,
}

impl<Wish> Default for Lobby<Wish> {
    fn default() -> Self {
        Self { candidates: BTreeMap::new() }
    }
}

impl<Wish> Lobby<Wish> {
    /// Returns true if nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// Candidates that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// The candidate of that session.
    #[must_use]
    pub fn get(&self, session: Session) -> Option<&Candidate<Wish>> {
        self.candidates.get(&session)
    }

    /// All candidates with their sessions.
    pub fn iter(&self) -> impl Iterator<Item = (Session, &Candidate<Wish>)> + Clone {
        self.candidates.iter().map(|(session, candidate)| (*session, candidate))
    }

    /// All candidates.
    pub fn values(&self) -> impl Iterator<Item = &Candidate<Wish>> + Clone {
        self.candidates.values()
    }

    /// All candidates but that of one session.
    pub fn others(&self, session: Session) -> impl Iterator<Item = &Candidate<Wish>> + Clone {
        self.iter().filter(move |(known, _)| *known != session).map(|(_, candidate)| candidate)
    }

    /// When another candidate that asks for that rank was last heard; none: nobody else asks for it.
    #[must_use]
    pub fn rival(&self, session: Session, wanted: Option<u32>) -> Option<Instant> {
        let wanted = wanted?;
        self.others(session).find(|other| other.wanted == Some(wanted)).map(|other| other.heard)
    }

    /// When any of these members, or a candidate, was last heard; members that have left do not count.
    pub fn last_heard(&self, members: impl Iterator<Item = Presence>) -> Instant {
        let members = members.filter(|one| !one.has_left).map(|one| one.heard);
        members.chain(self.values().map(|one| one.heard)).max().unwrap_or_default()
    }

    /// When that other candidate was last heard whose last join is the oldest.
    #[must_use]
    pub fn oldest_heard(&self, session: Session) -> Instant {
        self.others(session).map(|other| other.heard).min().unwrap_or_default()
    }

    /// Workers that the candidates stand for.
    #[must_use]
    pub fn contributors(&self) -> u32 {
        contributors(self.values())
    }

    /// A candidate waits from now on. What its session wished before is forgotten.
    pub fn insert(&mut self, session: Session, candidate: Candidate<Wish>) {
        self.candidates.insert(session, candidate);
    }

    /// The candidate of that session waits no more, where its leave came from its own address: a session is no secret.
    /// Returns true if it waited there.
    pub fn leaves(&mut self, session: Session, peer: PeerId) -> bool {
        let waited = self.get(session).is_some_and(|candidate| candidate.peer == peer);
        if waited {
            self.candidates.remove(&session);
        }
        waited
    }

    /// Candidates that are silent wait no more.
    pub fn prune(&mut self, now: Instant, patience: Patience) {
        self.candidates.retain(|_, candidate| !patience.is_silent(now, candidate.heard));
    }

    /// The other candidates wait on only where `stays` says so.
    pub fn retain_others(&mut self, session: Session, stays: impl Fn(&Candidate<Wish>) -> bool) {
        self.candidates.retain(|known, candidate| *known == session || stays(candidate));
    }

    /// Takes all candidates out, by their sessions.
    pub fn take(&mut self) -> BTreeMap<Session, Candidate<Wish>> {
        core::mem::take(&mut self.candidates)
    }

    /// Returns true if nobody waits, and nobody of these members takes part.
    pub fn is_deserted(
        &self,
        now: Instant,
        patience: Patience,
        members: impl Iterator<Item = Presence>,
    ) -> bool {
        let waiting = self.values().map(|one| Presence { heard: one.heard, has_left: false });
        patience.is_deserted(now, members.chain(waiting))
    }

    /// The job of this lobby as the door looks at it. Its generation has these members; none: it never had one.
    pub fn held<Id>(
        &self,
        id: Id,
        now: Instant,
        patience: Patience,
        members: Option<impl Iterator<Item = Presence>>,
    ) -> Held<Id> {
        let waiting = || self.values().map(|candidate| candidate.peer).collect();
        let unbegun = members.is_none().then(waiting);
        let is_deserted = self.is_deserted(now, patience, members.into_iter().flatten());
        Held { id, is_deserted, unbegun }
    }
}

/// Workers that these candidates stand for.
pub fn contributors<'a, Wish: 'a>(all: impl Iterator<Item = &'a Candidate<Wish>>) -> u32 {
    all.map(|candidate| candidate.contributors).fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::{CONTESTED, SILENCE};
    use alloc::vec;
    use core::time::Duration;

    const PATIENCE: Patience = Patience::new(SILENCE);
    const NOW: Instant = Instant(1 << 40);

    fn lobby(peers: &[(u32, Instant)]) -> Lobby<()> {
        let mut lobby = Lobby::default();
        for (session, (peer, heard)) in (1..).zip(peers) {
            let (peer, heard) = (PeerId(*peer), *heard);
            let candidate =
                Candidate { peer, wanted: None, contributors: session, heard, wish: () };
            lobby.insert(Session(session), candidate);
        }
        lobby
    }

    #[test]
    fn a_leave_counts_from_the_candidates_own_address() {
        let mut lobby = lobby(&[(7, NOW), (8, NOW)]);
        assert_eq!(lobby.contributors(), 3);
        assert!(!lobby.leaves(Session(1), PeerId(8)) && !lobby.leaves(Session(3), PeerId(7)));
        assert!(lobby.leaves(Session(1), PeerId(7)));
        assert_eq!((lobby.len(), lobby.contributors()), (1, 2));
        assert_eq!(lobby.others(Session(2)).count(), 0);
    }

    #[test]
    fn silent_candidates_are_gone_and_a_job_without_others_is_deserted() {
        let mut lobby = lobby(&[(7, NOW), (8, NOW + Duration::from_millis(1))]);
        let then = NOW + CONTESTED;
        let nobody = || None::<core::iter::Empty<Presence>>;
        assert_eq!(
            lobby.held(1, then, PATIENCE, nobody()).unbegun,
            Some(vec![PeerId(7), PeerId(8)])
        );
        assert!(!lobby.held(1, then, PATIENCE, nobody()).is_deserted, "one of them was heard");
        lobby.prune(then, PATIENCE);
        assert_eq!(lobby.len(), 1);
        lobby.prune(then + CONTESTED, PATIENCE);
        assert!(lobby.is_empty() && lobby.held(1, then, PATIENCE, nobody()).is_deserted);
    }

    #[test]
    fn members_that_live_keep_a_job() {
        let members = |has_left| [Presence { heard: NOW, has_left }].into_iter();
        let held = |has_left| lobby(&[]).held(1, NOW, PATIENCE, Some(members(has_left)));
        assert!(!held(false).is_deserted && held(true).is_deserted);
        assert_eq!(held(false).unbegun, None);
    }
}
