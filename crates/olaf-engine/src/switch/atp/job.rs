//! The workers behind this switch, for each job and server: where parameter packets are copied to.
//!
//! differs: the paper builds its multicast tree with IGMP (ATP §3.2). Here the switch remembers where
//! joins came from. A worker repeats its join as a sign of life, so that a switch that restarts knows
//! its workers again soon.

use super::places::Places;
use crate::engine::Receivers;
use crate::ids::{PeerId, Session};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::atp::MAX_WORKERS;

/// Where a worker is.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The worker, or the switch below that it is behind.
    peer: PeerId,
    heard: Instant,
}

/// A job's workers of one server.
#[derive(Debug, Default)]
pub(super) struct Job {
    members: BTreeMap<Session, Member>,
    /// How many members are at each peer.
    peers: BTreeMap<PeerId, u32>,
    group: Option<Arc<[PeerId]>>,
    /// The newest generation that a welcome named.
    pub(super) generation: u16,
    /// Where fragments of the job met here.
    pub(super) places: Places,
}

impl Job {
    /// A worker's join came from there; whether there is room for it.
    pub(super) fn hear(&mut self, now: Instant, session: Session, peer: PeerId) -> bool {
        let is_new = !self.members.contains_key(&session);
        if is_new && self.members.len() >= MAX_WORKERS as usize {
            return false;
        }
        let before = self.members.insert(session, Member { peer, heard: now });
        if before.is_none_or(|before| before.peer != peer) {
            *self.peers.entry(peer).or_default() += 1;
            before.into_iter().for_each(|before| self.leaves(before.peer));
            self.group = None;
        }
        true
    }

    /// One member less is there.
    fn leaves(&mut self, peer: PeerId) {
        if let Some(members) = self.peers.get_mut(&peer) {
            *members -= 1;
            if *members == 0 {
                self.peers.remove(&peer);
            }
        }
        self.group = None;
    }

    pub(super) fn forget(&mut self, session: Session) {
        let member = self.members.remove(&session);
        member.into_iter().for_each(|member| self.leaves(member.peer));
    }

    /// Forgets workers that are silent; whether none is left.
    pub(super) fn expire(&mut self, now: Instant, silence: Duration) -> bool {
        let silent = self.members.iter().filter(|(_, member)| now.since(member.heard) >= silence);
        let silent: Vec<Session> = silent.map(|(session, _)| *session).collect();
        silent.into_iter().for_each(|session| self.forget(session));
        self.members.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn peer_of(&self, session: Session) -> Option<PeerId> {
        self.members.get(&session).map(|member| member.peer)
    }

    pub(super) fn has_peer(&self, peer: PeerId) -> bool {
        self.peers.contains_key(&peer)
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// Everyone whom a parameter packet is copied to, each once.
    pub(super) fn group(&mut self) -> Receivers {
        let peers = &self.peers;
        let group = self.group.get_or_insert_with(|| peers.keys().copied().collect());
        Receivers::Many(group.clone())
    }
}
