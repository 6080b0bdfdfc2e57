//! A job: its membership table, its generation, and the workers that wait for the next one.

use super::length::Length;
use super::vectors::Vectors;
use crate::blocks::ByIndex;
use crate::ids::{JobId, PeerId, Session};
use crate::party::{Draws, Moved};
use crate::sums::{self, Held, Lobby, Owner, Patience, Presence, Upward, operations};
use crate::time::Instant;
use alloc::sync::Arc;
use alloc::vec::Vec;
use olaf_wire::iswitch::{ANY, Sender};
use olaf_wire::operations_after;
use olaf_wire::reduce::Reason;

/// What a join says beside who waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// The sender's number in the membership table.
    pub(super) member: u32,
    pub(super) sender: Sender,
    pub(super) packet_floats: u32,
    /// The count of its program's operations, as it says; [`ANY`]: it was in no generation.
    pub(super) operations: u32,
}

pub(super) type Candidate = sums::Candidate<Wish>;

/// A row of the membership table (iSwitch Figure 9). Its parent is this switch.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: u32,
    pub(super) peer: PeerId,
    pub(super) session: Session,
    pub(super) sender: Sender,
    /// Of a worker.
    pub(super) rank: u32,
    pub(super) contributors: u32,
    pub(super) heard: Instant,
    pub(super) has_left: bool,
    /// The results that it alone got.
    pub(super) draws: Draws,
}

impl Member {
    /// The member, as far as its life goes.
    pub(super) const fn presence(&self) -> Presence {
        Presence { heard: self.heard, has_left: self.has_left }
    }
}

/// How a generation ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The first packet without a result.
    pub(super) index: u64,
    pub(super) reason: Reason,
    pub(super) culprit: u32,
    /// What the culprit calls, as it says; 0: nothing.
    pub(super) calls: u8,
}

/// A time with one set of members.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) number: u8,
    /// Its number at the switch above.
    pub(super) above: Option<u8>,
    pub(super) members: Vec<Member>,
    /// Their addresses: the receivers of results.
    pub(super) group: Arc<[PeerId]>,
    pub(super) table: ByIndex,
    pub(super) length: Length,
    pub(super) vectors: Vectors,
    pub(super) packet_floats: u32,
    /// Workers of the whole job.
    pub(super) workers: u32,
    /// The count of operations of the program that was the furthest when it began.
    pub(super) operations: u32,
    pub(super) end: Option<End>,
    /// What the switch above was told: it says where the generation ends.
    pub(super) halting: Option<(Reason, u32, u8)>,
}

impl Generation {
    /// Workers behind the members of this switch.
    pub(super) fn here(&self) -> u32 {
        self.members.iter().map(|member| member.contributors).sum()
    }

    /// The operations that a candidate says were begun in this generation, as far as it is believed: a member of the
    /// generation may say so, and no more than could be.
    fn begun_by(&self, session: Session, candidate: &Candidate) -> u32 {
        let is_it = |member: &Member| member.session == session || member.peer == candidate.peer;
        if candidate.wish.operations == ANY || !self.members.iter().any(is_it) {
            return 0;
        }
        operations::begun(candidate.wish.operations, self.operations, self.vectors.ended())
    }

    /// Returns true if a vector with a number above 0 is in the sum of a packet.
    pub(super) fn note_numbered(&mut self, index: u64, is_numbered: bool) {
        let oldest =
            self.table.first_incomplete().saturating_sub(2 * u64::from(self.table.slots()));
        self.vectors.note_numbered(index, is_numbered, oldest);
    }

    /// Returns true if a member may have one result more for itself alone.
    pub(super) fn may_draw(&mut self, now: Instant, member: u32) -> bool {
        let (results, window) = (self.table.first_incomplete(), self.table.slots());
        let member = &mut self.members[member as usize];
        member.draws.take(now, Moved { results, window, behind: member.contributors })
    }
}

/// One job.
#[derive(Debug)]
pub(super) struct Job {
    /// Workers of the whole job.
    pub(super) workers: u32,
    pub(super) owner: Owner,
    pub(super) lobby: Lobby<Wish>,
    /// The newest generation, open or closed.
    pub(super) current: Option<Generation>,
    pub(super) upward: Upward,
}

/// A job's newest generation, as those find it whose packets are of it.
pub(super) struct Here<'a> {
    pub(super) id: JobId,
    pub(super) current: &'a mut Generation,
}

impl Job {
    /// The newest generation.
    pub(super) fn here(&mut self, id: JobId) -> Option<Here<'_>> {
        self.current.as_mut().map(|current| Here { id, current })
    }

    pub(super) fn new(workers: u32, owner: Owner, session: Session) -> Self {
        let upward = Upward::new(session);
        Self { workers, owner, lobby: Lobby::default(), current: None, upward }
    }

    /// The members of the newest generation, as far as their lives go.
    pub(super) fn members(&self) -> impl Iterator<Item = Presence> + Clone {
        self.current.iter().flat_map(|current| current.members.iter().map(Member::presence))
    }

    /// Returns true if nobody takes part or waits.
    pub(super) fn is_deserted(&self, now: Instant, patience: Patience) -> bool {
        self.lobby.is_deserted(now, patience, self.members())
    }

    /// The job as the door looks at it.
    pub(super) fn held(&self, id: JobId, now: Instant, patience: Patience) -> Held<JobId> {
        let members = self.current.as_ref().map(|_| self.members());
        self.lobby.held(id, now, patience, members)
    }

    /// When another worker that has that rank in the generation under way was last heard; none: nobody has it, or the one
    /// that has it is gone.
    pub(super) fn holder(
        &self,
        now: Instant,
        (session, peer): (Session, PeerId),
        wanted: Option<u32>,
        patience: Patience,
    ) -> Option<Instant> {
        let wanted = wanted?;
        let open = self.current.as_ref().filter(|current| current.end.is_none())?;
        let mut others = open.members.iter().filter(|one| one.session != session);
        let holder = others.find(|one| one.rank == wanted && one.sender == Sender::Worker)?;
        let lives =
            holder.peer != peer && !holder.has_left && !patience.is_silent(now, holder.heard);
        lives.then_some(holder.heard)
    }

    /// Returns true if the next generation begins now with the workers in the lobby.
    pub(super) fn may_begin(&mut self, now: Instant, patience: Patience) -> bool {
        let is_complete = self.lobby.contributors() == self.workers;
        if self.workers == 1 {
            // It waits for nobody whom it could take for its own.
            return is_complete;
        }
        self.owner.may_begin(now, is_complete, |heard| patience.is_silent(now, heard))
    }

    /// Returns true if a generation is under way.
    pub(super) fn is_open(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.end.is_none())
    }

    /// The count of operations of the program that is the furthest; none: no candidate's program has begun any.
    pub(super) fn operations(&self) -> Option<u32> {
        let Some(current) = &self.current else {
            let each = self.lobby.values().map(|candidate| candidate.wish.operations);
            return operations::furthest(each.filter(|count| *count != ANY));
        };
        let each = self.lobby.iter().map(|(session, one)| current.begun_by(session, one));
        Some(operations_after(current.operations, each.max()?))
    }

    /// Empties the lobby. A worker keeps the rank that it wants where that is free.
    pub(super) fn seat(&mut self) -> Vec<Member> {
        let lobby = self.lobby.take();
        let mut taken = alloc::collections::BTreeSet::new();
        let mut members = Vec::new();
        for (session, candidate) in lobby {
            let rank = candidate.wanted.filter(|rank| taken.insert(*rank)).unwrap_or(ANY);
            members.push(Member {
                id: candidate.wish.member,
                peer: candidate.peer,
                session,
                sender: candidate.wish.sender,
                rank,
                contributors: candidate.contributors,
                heard: candidate.heard,
                has_left: false,
                draws: Draws::default(),
            });
        }
        let mut free = (0..self.workers).filter(|rank| !taken.contains(rank));
        let without = members.iter_mut().filter(|member| member.rank == ANY);
        for member in without.filter(|member| member.sender == Sender::Worker) {
            member.rank = free.next().unwrap_or(ANY);
        }
        members.sort_by_key(|member| (member.rank, member.id));
        members
    }
}
