//! The workers behind this switch, for each job and server: where parameter packets are copied to, and who
//! may send gradients.
//!
//! differs: the paper builds its multicast tree with IGMP (ATP §3.2). Here the switch remembers where
//! joins came from. A worker repeats its join as a heartbeat, so that a switch that restarts knows
//! its workers again soon. Whoever joins is a candidate at first: the server's welcome makes it a member.

use super::places::Places;
use super::seats::{Seats, Whose};
use crate::engine::Receivers;
use crate::ids::{PeerId, Session};
use crate::sums::Patience;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use olaf_wire::atp::{Header, Join, MAX_WORKERS, Welcome};
use olaf_wire::reduce::WelcomeCode;

/// Generations whose seats are known: a late welcome of the one before does not push the newest out.
const GENERATIONS: usize = 2;

/// Where a worker is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The worker, or the switch below that it is behind.
    peer: PeerId,
    is_behind_switch: bool,
    heard: Instant,
}

/// Somebody who has joined, and whom the server has not let in.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    place: Place,
    /// Its last join named a generation, whose end it may have to hear of.
    asks_for_the_end: bool,
}

/// The members at a peer.
#[derive(Clone, Copy, Debug, Default)]
struct AtPeer {
    members: u32,
    behind_switch: u32,
}

/// A job's workers of one server.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// Workers of the job, as the server says; 0: it has said nothing.
    workers: u32,
    members: BTreeMap<Session, Place>,
    peers: BTreeMap<PeerId, AtPeer>,
    group: Option<Arc<[PeerId]>>,
    candidates: BTreeMap<Session, Candidate>,
    /// How many candidates are at each peer.
    asking: BTreeMap<PeerId, u32>,
    /// The generation that comes first is the newest.
    seats: Vec<Seats>,
    /// The newest generation that a welcome named.
    pub(super) generation: u16,
    /// Where fragments of the job met here.
    pub(super) places: Places,
}

impl Job {
    /// A join came from there; whether there is room for it. A member stays where it is until the server
    /// has answered a join from elsewhere.
    pub(super) fn hear(&mut self, now: Instant, join: &Join, peer: PeerId) -> bool {
        let place = Place { peer, is_behind_switch: join.switches[0] != 0, heard: now };
        if let Some(member) = self.members.get_mut(&join.session)
            && member.peer == peer
        {
            member.heard = now;
            return true;
        }
        let before = self.candidates.get(&join.session);
        if before.is_none_or(|before| before.place.peer != peer) {
            // Twice: those before a restart are remembered for a while.
            let workers = if self.workers == 0 { join.workers } else { self.workers };
            let most = workers.saturating_mul(2).min(MAX_WORKERS);
            let is_full = before.is_none() && self.candidates.len() >= MAX_WORKERS as usize;
            if is_full || self.asking.get(&peer).is_some_and(|asking| *asking >= most) {
                return false;
            }
        }
        let candidate = Candidate { place, asks_for_the_end: join.generation != 0 };
        self.asks(join.session, candidate);
        true
    }

    fn asks(&mut self, session: Session, candidate: Candidate) {
        self.withdraw(session);
        *self.asking.entry(candidate.place.peer).or_default() += 1;
        self.candidates.insert(session, candidate);
    }

    /// It is no candidate any more.
    fn withdraw(&mut self, session: Session) -> Option<Candidate> {
        let candidate = self.candidates.remove(&session)?;
        if let Some(asking) = self.asking.get_mut(&candidate.place.peer) {
            *asking -= 1;
            if *asking == 0 {
                self.asking.remove(&candidate.place.peer);
            }
        }
        Some(candidate)
    }

    /// The server's word on a join. Returns where it goes to.
    pub(super) fn answered(&mut self, welcome: &Welcome) -> Option<PeerId> {
        let session = welcome.session;
        let to = self.peer_of(session)?;
        if welcome.workers > 0 {
            self.workers = welcome.workers;
        }
        match welcome.code {
            WelcomeCode::Welcome => self.let_in(welcome),
            // Another one has its place.
            WelcomeCode::Waiting if self.is_of_the_past(session) => {
                let place = self.dismiss(session);
                if let Some(place) = place.filter(|_| !self.candidates.contains_key(&session)) {
                    self.asks(session, Candidate { place, asks_for_the_end: false });
                }
            }
            WelcomeCode::Waiting => {}
            _ if self.withdraw(session).is_none() && self.is_of_the_past(session) => {
                self.dismiss(session);
            }
            _ => {}
        }
        Some(to)
    }

    fn let_in(&mut self, welcome: &Welcome) {
        let session = welcome.session;
        if let Some(candidate) = self.withdraw(session) {
            let place = candidate.place;
            self.leaves_its_peer(session);
            let at = self.peers.entry(place.peer).or_default();
            at.members += 1;
            at.behind_switch += u32::from(place.is_behind_switch);
            self.members.insert(session, place);
            self.seats.iter_mut().for_each(|seats| seats.moved(session, place.peer));
            self.group = None;
        }
        let Some(peer) = self.members.get(&session).map(|member| member.peer) else { return };
        let at = self.seats.iter().position(|seats| seats.generation == welcome.generation);
        let at = at.unwrap_or_else(|| {
            self.seats.insert(0, Seats::new(welcome.generation));
            self.seats.truncate(GENERATIONS);
            0
        });
        self.seats[at].seat(welcome, peer);
    }

    /// Returns true if a member has no seat in the newest generation.
    fn is_of_the_past(&self, session: Session) -> bool {
        let newest = self.seats.iter().find(|seats| seats.generation == self.generation);
        self.members.contains_key(&session) && !newest.is_some_and(|seats| seats.has(session))
    }

    /// It is a member no more, and its peer has one less.
    fn leaves_its_peer(&mut self, session: Session) -> Option<Place> {
        let place = self.members.remove(&session)?;
        if let Some(at) = self.peers.get_mut(&place.peer) {
            at.members -= 1;
            at.behind_switch -= u32::from(place.is_behind_switch);
            if at.members == 0 {
                self.peers.remove(&place.peer);
            }
        }
        self.group = None;
        Some(place)
    }

    /// It is a member no more, and has no seat.
    fn dismiss(&mut self, session: Session) -> Option<Place> {
        self.seats.iter_mut().for_each(|seats| {
            seats.leave(session);
        });
        self.leaves_its_peer(session)
    }

    /// A worker at that peer leaves; whether there is such a worker.
    pub(super) fn forget(&mut self, session: Session, peer: PeerId) -> bool {
        let is_member = self.members.get(&session).is_some_and(|member| member.peer == peer);
        let is_candidate = self.candidates.get(&session).is_some_and(|of| of.place.peer == peer);
        if is_member {
            self.dismiss(session);
        }
        if is_candidate {
            self.withdraw(session);
        }
        // What a candidate says of a member that is elsewhere goes no further.
        is_member || (is_candidate && !self.members.contains_key(&session))
    }

    /// Forgets members that the server takes for dead, and candidates that are silent; whether nobody is left.
    pub(super) fn expire(&mut self, now: Instant, patience: Patience) -> bool {
        let is_dead = |place: &Place| patience.is_overdue(now, place.heard);
        let silent = self.members.iter().filter(|(_, member)| is_dead(member));
        let silent: Vec<Session> = silent.map(|(session, _)| *session).collect();
        silent.into_iter().for_each(|session| {
            self.dismiss(session);
        });
        let is_silent = |place: &Place| patience.is_silent(now, place.heard);
        let silent = self.candidates.iter().filter(|(_, one)| is_silent(&one.place));
        let silent: Vec<Session> = silent.map(|(session, _)| *session).collect();
        silent.into_iter().for_each(|session| {
            self.withdraw(session);
        });
        self.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.candidates.is_empty()
    }

    /// Returns true if the server has let somebody in.
    pub(super) fn is_confirmed(&self) -> bool {
        !self.members.is_empty()
    }

    /// Where the candidates are.
    pub(super) fn asking(&self) -> impl Iterator<Item = PeerId> {
        self.asking.keys().copied()
    }

    /// The members.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Where a session's newest join came from.
    pub(super) fn peer_of(&self, session: Session) -> Option<PeerId> {
        let candidate = self.candidates.get(&session).map(|candidate| &candidate.place);
        candidate.or_else(|| self.members.get(&session)).map(|place| place.peer)
    }

    pub(super) fn has_peer(&self, peer: PeerId) -> bool {
        self.peers.contains_key(&peer)
    }

    /// Members' and candidates' peers.
    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().chain(self.asking.keys()).copied()
    }

    /// Whose the bits of a packet from that peer are.
    pub(super) fn whose(&self, header: &Header, peer: PeerId) -> Whose {
        let generation = header.key.generation;
        let seats = self.seats.iter().find(|seats| seats.generation == generation);
        let is_switch = self.peers.get(&peer).is_some_and(|at| at.behind_switch > 0);
        seats.map_or(Whose::Unknown, |seats| seats.whose(header, peer, is_switch))
    }

    /// Workers of other sessions that are at that peer themselves. A process there has taken their address.
    pub(super) fn predecessors(&self, session: Session, peer: PeerId) -> Vec<Session> {
        let is_it = |of: Session, place: &Place| {
            of != session && place.peer == peer && !place.is_behind_switch
        };
        let members = self.members.iter().filter(|(of, place)| is_it(**of, place));
        let candidates = self.candidates.iter().filter(|(of, one)| is_it(**of, &one.place));
        members.map(|(of, _)| *of).chain(candidates.map(|(of, _)| *of)).collect()
    }

    /// Returns true if the session is at another address of this switch, and was heard there lately. A worker that is
    /// behind another switch may move (ATP §A.3).
    pub(super) fn is_elsewhere(
        &self,
        now: Instant,
        session: Session,
        peer: PeerId,
        patience: Patience,
    ) -> bool {
        let candidate = self.candidates.get(&session).map(|candidate| &candidate.place);
        let mut places = candidate.into_iter().chain(self.members.get(&session));
        places.any(|place| {
            let is_silent = patience.is_silent(now, place.heard);
            place.peer != peer && !place.is_behind_switch && !is_silent
        })
    }

    /// The candidates, and where they are.
    pub(super) fn candidates(&self) -> impl Iterator<Item = (Session, PeerId)> {
        self.candidates.iter().map(|(session, candidate)| (*session, candidate.place.peer))
    }

    /// Everyone whom a parameter packet is copied to, each once.
    pub(super) fn group(&mut self) -> Receivers {
        let peers = &self.peers;
        let group = self.group.get_or_insert_with(|| peers.keys().copied().collect());
        Receivers::Many(group.clone())
    }

    /// Everyone whom the end of a generation is copied to: also candidates that were in a generation,
    /// as behind a switch that has restarted. Each hears of it once for a join.
    pub(super) fn concerned(&mut self) -> Receivers {
        let mut to: Vec<PeerId> = self.peers.keys().copied().collect();
        for candidate in self.candidates.values_mut() {
            if core::mem::take(&mut candidate.asks_for_the_end) {
                to.push(candidate.place.peer);
            }
        }
        to.sort_unstable();
        to.dedup();
        Receivers::Many(to.into())
    }
}
