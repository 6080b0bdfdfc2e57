//! A job at a server: its generation, and the workers that wait for the next one.

use super::fragments::{Fragments, Says};
use crate::collective::atp::factors::{Factors, Range};
use crate::collective::atp::indices::Indices;
use crate::collective::atp::seats::{Path, Seating};
use crate::collective::atp::topology::Topology;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use olaf_engine::party::{Draws, Moved};
use olaf_engine::sums::{Dead, Dispute, Held, Owner, Patience, Presence, operations};
use olaf_engine::{Instant, PeerId, Session};
use olaf_wire::atp::{ANY, Join};
use olaf_wire::reduce::Reason;
use olaf_wire::{Sides, operations_after};

/// A worker, as its newest join says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) session: Session,
    /// Where the join came from: the worker itself, or the switch before the server.
    pub(super) peer: PeerId,
    /// The wanted rank.
    pub(super) wanted: u32,
    pub(super) path: Path,
    pub(super) aggregators: u32,
    pub(super) values: u16,
    pub(super) window: u16,
    pub(super) heard: Instant,
    pub(super) sent_at_us: u32,
    /// The count of its program's operations, as it says; none: it was in no generation.
    pub(super) operations: Option<u32>,
    /// It said that it leaves, or the switch in front of it said that it is no more.
    pub(super) has_left: bool,
    /// The life that its worker has finished with; 0: none.
    pub(super) ended: u16,
}

impl Member {
    pub(super) const fn new(now: Instant, peer: PeerId, join: &Join) -> Self {
        Self {
            session: join.session,
            peer,
            wanted: join.rank,
            path: Path(join.switches),
            aggregators: join.aggregators,
            values: join.values,
            window: join.window,
            heard: now,
            sent_at_us: join.sent_at_us,
            operations: if join.operations == ANY { None } else { Some(join.operations) },
            has_left: false,
            ended: join.closed,
        }
    }

    pub(super) const fn presence(&self) -> Presence {
        Presence { heard: self.heard, has_left: self.has_left }
    }

    /// Returns true if no switch is between the worker and this server.
    pub(super) const fn is_direct(&self) -> bool {
        self.path.0[0] == 0
    }
}

/// How a generation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The first tensor without a result.
    pub(super) tensor: u64,
    pub(super) reason: Reason,
    /// A rank, or [`ANY`].
    pub(super) culprit: u32,
    pub(super) sides: Sides,
}

/// A time with one set of workers. Its number changes with their places, its life does not.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) number: u16,
    pub(super) life: u16,
    /// The count of operations that its life began with.
    pub(super) began_with: u32,
    /// By rank.
    pub(super) members: Vec<Member>,
    /// Their peers, each once, in order.
    group: Arc<[PeerId]>,
    ranks: BTreeMap<Session, usize>,
    /// Ranks of workers that are elsewhere than the topology says.
    pub(super) misplaced: BTreeSet<u32>,
    pub(super) seating: Seating,
    pub(super) values: u16,
    pub(super) window: u16,
    pub(super) aggregators: u32,
    pub(super) fragments: Fragments,
    pub(super) indices: Indices,
    pub(super) factors: Factors,
    pub(super) range: Range,
    /// A tensor on which the workers' calls differ.
    pub(super) dispute: Option<(u64, Dispute<Says>)>,
    pub(super) end: Option<End>,
    /// Members of a generation that has ended, which have joined again.
    pub(super) gone: Vec<bool>,
    /// When to seat the workers anew.
    pub(super) settles: Option<Instant>,
    /// When the end was told last.
    pub(super) told: Option<Instant>,
    /// The results that went again because of each peer.
    draws: BTreeMap<PeerId, Draws>,
}

impl Generation {
    /// A generation of these workers, which have no seats yet.
    pub(super) fn new(number: u16, members: Vec<Member>, values: u16, window: u16) -> Self {
        let sessions = members.iter().map(|member| member.session);
        Self {
            number,
            life: number,
            began_with: 0,
            gone: alloc::vec![false; members.len()],
            ranks: sessions.zip(0..).collect(),
            group: group_of(&members),
            members,
            misplaced: BTreeSet::new(),
            seating: Seating::default(),
            values,
            window,
            aggregators: 0,
            fragments: Fragments::new(window),
            indices: Indices::default(),
            factors: Factors::default(),
            range: Range::default(),
            dispute: None,
            end: None,
            settles: None,
            told: None,
            draws: BTreeMap::new(),
        }
    }

    pub(super) fn rank_of(&self, session: Session) -> Option<usize> {
        self.ranks.get(&session).copied()
    }

    /// Seats the workers where they are now, at `most` levels. Returns the ranks of workers that are
    /// elsewhere than the topology says, and were not before.
    pub(super) fn seat(
        &mut self,
        (job, server): (u16, u8),
        most: usize,
        rack_scale: bool,
        topology: &Topology,
    ) -> Vec<u32> {
        let paths: Vec<Path> = self.members.iter().map(|member| member.path).collect();
        let seating = Seating::new(&paths, most);
        self.seating = if rack_scale { seating.in_racks_alone() } else { seating };
        let is_elsewhere = |rank: u32, path: &Path| {
            topology.path(job, rank).is_some_and(|planned| planned != *path)
        };
        let ranks = (0..).zip(&paths).filter(|(rank, path)| is_elsewhere(*rank, path));
        let misplaced: BTreeSet<u32> = ranks.map(|(rank, _)| rank).collect();
        let before = core::mem::replace(&mut self.misplaced, misplaced);
        let on_the_way = self.members.iter().map(|member| member.aggregators);
        self.aggregators = on_the_way.filter(|aggregators| *aggregators > 0).min().unwrap_or(0);
        self.indices = Indices::new(job, server, self.window, self.aggregators);
        self.settles = None;
        self.misplaced.difference(&before).copied().collect()
    }

    /// Returns true if a result may go again because a member at that peer lacks it.
    pub(super) fn may_draw(&mut self, now: Instant, peer: PeerId) -> bool {
        if !self.has_peer(peer) {
            return false;
        }
        let behind = u32::try_from(self.members.len() / self.group.len()).unwrap_or(u32::MAX);
        let moved = Moved { results: self.fragments.open(), window: self.window.into(), behind };
        self.draws.entry(peer).or_default().take(now, moved)
    }

    pub(super) fn has_peer(&self, peer: PeerId) -> bool {
        self.group.binary_search(&peer).is_ok()
    }

    /// Returns true if these ranks, 64 a word, are of workers at that peer or behind it.
    pub(super) fn are_at(&self, ranks: &[u64], peer: PeerId) -> bool {
        let words = ranks.iter().zip(self.members.chunks(64)).filter(|(word, _)| **word != 0);
        let mut named = words.flat_map(|(word, members)| {
            let at = (0..).zip(members).filter(move |(bit, _)| word >> bit & 1 == 1);
            at.map(|(_, member)| member.peer)
        });
        named.all(|at| at == peer)
    }

    /// Everyone whom a parameter packet goes to: the switches before the server, or workers without
    /// one. Each gets it once, and copies it (ATP §3.2).
    pub(super) fn group(&self) -> Arc<[PeerId]> {
        self.group.clone()
    }

    /// A member has said where it is now.
    pub(super) fn hear(&mut self, rank: usize, member: Member) {
        let before = &self.members[rank];
        let has_moved = before.peer != member.peer;
        // A heartbeat that a leave has overtaken does not bring the worker back.
        self.members[rank] = Member { has_left: before.has_left, ..member };
        if has_moved {
            self.group = group_of(&self.members);
            let group = &self.group;
            self.draws.retain(|peer, _| group.binary_search(peer).is_ok());
        }
    }

    /// A member that others wait for in vain. `is_asked_for`: somebody waits for the place of any silent one.
    pub(super) fn dead(
        &self,
        now: Instant,
        patience: Patience,
        is_asked_for: bool,
    ) -> Option<Dead<usize>> {
        let members = self.members.iter().map(Member::presence).enumerate();
        patience.dead(now, members, is_asked_for, |rank| self.fragments.lacks(rank))
    }
}

fn group_of(members: &[Member]) -> Arc<[PeerId]> {
    let mut peers: Vec<PeerId> = members.iter().map(|member| member.peer).collect();
    peers.sort_unstable();
    peers.dedup();
    peers.into()
}

/// A job at one of its servers.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) workers: u32,
    pub(super) servers: u8,
    /// As in a join: a negative one is dynamic.
    pub(super) scale: f64,
    pub(super) owner: Owner,
    pub(super) lobby: BTreeMap<Session, Member>,
    pub(super) current: Option<Generation>,
}

impl Job {
    pub(super) const fn new(join: &Join, owner: Owner) -> Self {
        Self {
            owner,
            workers: join.workers,
            servers: join.servers,
            scale: join.scale,
            lobby: BTreeMap::new(),
            current: None,
        }
    }

    /// Returns true if a join says the same of the job.
    pub(super) fn agrees(&self, join: &Join) -> bool {
        let bits = |scale: f64| scale.to_bits();
        (self.workers, self.servers, bits(self.scale))
            == (join.workers, join.servers, bits(join.scale))
    }

    /// The members of the newest generation.
    pub(super) fn members(&self) -> impl Iterator<Item = Presence> + Clone {
        self.current.iter().flat_map(|current| &current.members).map(Member::presence)
    }

    /// Returns true if nobody takes part or waits.
    pub(super) fn is_deserted(&self, now: Instant, patience: Patience) -> bool {
        let waiting = self.lobby.values().map(Member::presence);
        patience.is_deserted(now, self.members().chain(waiting))
    }

    /// The job as the door looks at it.
    pub(super) fn held(&self, of: (u16, u8), now: Instant, patience: Patience) -> Held<(u16, u8)> {
        let waiting = || self.lobby.values().map(|member| member.peer).collect();
        let unbegun = self.current.is_none().then(waiting);
        Held { id: of, is_deserted: self.is_deserted(now, patience), unbegun }
    }

    /// The count of operations of the program that is the furthest; none: no candidate's program has begun any.
    pub(super) fn operations(&self) -> Option<u32> {
        let counts = self.lobby.values().filter_map(|of| Some((of.session, of.operations?)));
        let Some(current) = &self.current else {
            return operations::furthest(counts.map(|(_, count)| count));
        };
        // Nobody else knows how far the generation came.
        let members = counts.filter(|(session, _)| current.rank_of(*session).is_some());
        let seen = current.fragments.operations_seen();
        let each = members.map(|(_, count)| operations::begun(count, current.began_with, seen));
        Some(operations_after(current.began_with, each.max().unwrap_or(0)))
    }

    /// When another worker that wants the rank was last heard: one that waits, or one of the generation under way that
    /// lives. None: nobody has it.
    pub(super) fn rival(
        &self,
        now: Instant,
        session: Session,
        rank: u32,
        patience: Patience,
    ) -> Option<Instant> {
        let open = self.current.as_ref().filter(|current| current.end.is_none());
        let holder = open.and_then(|current| current.members.get(rank as usize));
        let lives = |one: &&Member| !one.has_left && !patience.is_silent(now, one.heard);
        let waiting = self.lobby.values().filter(|one| one.wanted == rank && rank != ANY);
        let mut all = waiting.chain(holder.filter(lives));
        all.find(|one| one.session != session).map(|one| one.heard)
    }

    /// When any of its workers was last heard.
    pub(super) fn last_heard(&self) -> Instant {
        let waiting = self.lobby.values().map(Member::presence);
        let all = self.members().chain(waiting).filter(|one| !one.has_left);
        all.map(|one| one.heard).max().unwrap_or_default()
    }

    /// When that other worker was last heard that is silent for the longest time: of those that wait, or of the generation
    /// under way.
    pub(super) fn oldest_heard(&self, session: Session) -> Instant {
        let open = self.current.iter().filter(|current| current.end.is_none());
        let all = open.flat_map(|current| &current.members).chain(self.lobby.values());
        let others = all.filter(|one| one.session != session && !one.has_left);
        others.map(|one| one.heard).min().unwrap_or_default()
    }

    /// Returns true if the next generation begins now with the workers in the lobby.
    pub(super) fn may_begin(&mut self, now: Instant, patience: Patience) -> bool {
        let is_open = self.current.as_ref().is_some_and(|current| current.end.is_none());
        let is_complete = self.lobby.len() == self.workers as usize && !is_open;
        if self.workers == 1 {
            // It waits for nobody whom it could take for its own.
            return is_complete;
        }
        self.owner.may_begin(now, is_complete, |heard| patience.is_silent(now, heard))
    }

    /// The workers of the lobby by rank, if all are there. Those without a wish get what is free: a rank
    /// that the topology has where they are, if there is one.
    pub(super) fn seated(&mut self, job: u16, topology: &Topology) -> Option<Vec<Member>> {
        if self.lobby.len() != self.workers as usize {
            return None;
        }
        let lobby = core::mem::take(&mut self.lobby);
        let mut seats: Vec<Option<Member>> = alloc::vec![None; self.workers as usize];
        let mut others = Vec::new();
        for member in lobby.into_values() {
            match seats.get_mut(member.wanted as usize) {
                Some(seat) if seat.is_none() => *seat = Some(member),
                _ => others.push(member),
            }
        }
        let mut free: BTreeMap<Option<Path>, Vec<usize>> = BTreeMap::new();
        for rank in (0..seats.len()).rev().filter(|rank| seats[*rank].is_none()) {
            let planned = u32::try_from(rank).ok().and_then(|rank| topology.path(job, rank));
            free.entry(planned).or_default().push(rank);
        }
        let mut elsewhere = VecDeque::new();
        for member in others {
            match free.get_mut(&Some(member.path)).and_then(Vec::pop) {
                Some(rank) => seats[rank] = Some(member),
                None => elsewhere.push_back(member),
            }
        }
        seats.into_iter().map(|seat| seat.or_else(|| elsewhere.pop_front())).collect()
    }
}
