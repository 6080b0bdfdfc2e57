//! The workers behind this switch, for each job and server: where parameter packets are copied to.
//!
//! differs: the paper builds its multicast tree with IGMP (ATP §3.2). Here the switch remembers where
//! joins came from. A worker repeats its join as a sign of life, so that a switch that restarts knows
//! its workers again soon.

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
    group: Option<Arc<[PeerId]>>,
    /// The newest generation that a welcome named.
    pub(super) generation: u16,
    /// Places of [`Id`](crate::blocks::hashed::Id) that fragments of the job had here, a bit each.
    pub(super) places: u64,
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
            self.group = None;
        }
        true
    }

    pub(super) fn forget(&mut self, session: Session) {
        self.members.remove(&session);
        self.group = None;
    }

    /// Forgets workers that are silent; whether none is left.
    pub(super) fn expire(&mut self, now: Instant, silence: Duration) -> bool {
        let before = self.members.len();
        self.members.retain(|_, member| now.since(member.heard) < silence);
        if self.members.len() != before {
            self.group = None;
        }
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
        self.members.values().any(|member| member.peer == peer)
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.members.values().map(|member| member.peer)
    }

    /// Everyone whom a parameter packet is copied to, each once.
    pub(super) fn group(&mut self) -> Receivers {
        let members = &self.members;
        let group = self.group.get_or_insert_with(|| {
            let mut peers: Vec<PeerId> = members.values().map(|member| member.peer).collect();
            peers.sort_unstable();
            peers.dedup();
            peers.into()
        });
        Receivers::Many(group.clone())
    }
}
