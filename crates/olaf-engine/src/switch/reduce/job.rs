//! A job: its generations, and the workers that wait for the next one.

use super::generation::{Generation, Member};
use crate::drop::DropReason;
use crate::engine::Source;
use crate::ids::{JobId, PeerId, Session};
use crate::sums::{self, Dead, Held, Lobby, Owner, Patience, Presence, Upward, operations};
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::operations_after;
use olaf_wire::reduce::Address;

/// What a join asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) block_bytes: u32,
    pub(super) datagram_bytes: u32,
    pub(super) sent_at_us: u32,
    /// The count of its program's operations, as it says; none: it was in no generation.
    pub(super) operations: Option<u32>,
}

pub(super) type Candidate = sums::Candidate<Wish>;

/// The generation of a message that says to come from one of its members, which is heard now. `job` is the job that the
/// message names.
pub(super) fn hear<'a>(
    job: Option<&'a mut Job>,
    now: Instant,
    from: Source,
    address: &Address,
) -> Result<&'a mut Generation, DropReason> {
    let generation = job.and_then(|job| job.generation(address.generation));
    let generation = generation.ok_or(DropReason::UnknownGeneration)?;
    generation.hear(now, from, address)?;
    Ok(generation)
}

/// One job.
#[derive(Debug)]
pub(super) struct Job {
    /// Workers that every generation waits for; 0: the job is elastic.
    pub(super) fixed: u32,
    /// The deadline that its workers ask for; 0: the switch's own.
    pub(super) deadline_us: u32,
    pub(super) owner: Owner,
    pub(super) lobby: Lobby<Wish>,
    /// The newest generation, open or closed.
    pub(super) current: Option<Generation>,
    /// The one before, for members that still lack results of it.
    pub(super) previous: Option<Generation>,
    /// What this switch told the switch above about the lobby.
    pub(super) upward: Upward,
}

impl Job {
    pub(super) fn new(fixed: u32, deadline_us: u32, owner: Owner) -> Self {
        Self {
            fixed,
            deadline_us,
            owner,
            lobby: Lobby::default(),
            current: None,
            previous: None,
            upward: Upward::default(),
        }
    }

    /// The members of the newest generation, as far as their lives go. Who is in the one before alone has to join
    /// again, and waits in the lobby then.
    pub(super) fn members(&self) -> impl Iterator<Item = Presence> + Clone {
        self.current.iter().flat_map(|current| current.members.iter().map(Member::presence))
    }

    /// Returns true if nobody takes part or waits.
    pub(super) fn is_deserted(&self, now: Instant, patience: Patience) -> bool {
        self.lobby.is_deserted(now, patience, self.members())
    }

    /// The member that others wait for in vain, with the number of its generation.
    pub(super) fn dead(&self, now: Instant, patience: Patience) -> Option<Dead<(u32, u32)>> {
        self.generations().find_map(|generation| {
            let Dead { rank, reason } = generation.dead(now, patience)?;
            Some(Dead { rank: (generation.number, rank), reason })
        })
    }

    /// The job as the door looks at it.
    pub(super) fn held(&self, id: JobId, now: Instant, patience: Patience) -> Held<JobId> {
        let members = self.current.as_ref().map(|_| self.members());
        self.lobby.held(id, now, patience, members)
    }

    /// Returns true if the workers that joined before asked for something else: one worker must not
    /// change what the others get. Workers of an elastic job come and go, and take the deadline that it
    /// has.
    pub(super) fn contradicts(&self, workers: u32, deadline_us: u32) -> bool {
        self.fixed != workers || self.fixed > 0 && self.deadline_us != deadline_us
    }

    pub(super) fn generation(&mut self, number: u32) -> Option<&mut Generation> {
        let mut both = self.current.iter_mut().chain(&mut self.previous);
        both.find(|generation| generation.number == number)
    }

    pub(super) fn known(&self, number: u32) -> Option<&Generation> {
        self.generations().find(|generation| generation.number == number)
    }

    pub(super) fn generations(&self) -> impl Iterator<Item = &Generation> {
        self.current.iter().chain(&self.previous)
    }

    pub(super) fn generations_mut(&mut self) -> impl Iterator<Item = &mut Generation> {
        self.current.iter_mut().chain(&mut self.previous)
    }

    /// Where the session is, and when it was last heard there. A member that has left is nowhere.
    fn place_of(&self, session: Session) -> Option<(PeerId, Instant)> {
        if let Some(candidate) = self.lobby.get(session) {
            return Some((candidate.peer, candidate.heard));
        }
        let mut members = self.current.iter().flat_map(|current| &current.members);
        let member = members.find(|member| member.session == session && !member.has_left)?;
        Some((member.peer, member.heard))
    }

    /// Returns true if the session is at another address than that one, and was heard there lately.
    pub(super) fn is_elsewhere(
        &self,
        now: Instant,
        session: Session,
        peer: PeerId,
        patience: Patience,
    ) -> bool {
        let place = self.place_of(session);
        place.is_some_and(|(known, heard)| known != peer && !patience.is_silent(now, heard))
    }

    /// When its next block is overdue.
    pub(super) fn overdue(&self) -> Option<Instant> {
        self.generations().filter_map(|one| one.pool.next_deadline()).min()
    }

    /// The count of operations of the program that is the furthest; none: no candidate's program has begun any.
    pub(super) fn operations(&self) -> Option<u32> {
        let counts = self.lobby.iter();
        let counts = counts.filter_map(|(session, of)| Some((session, of.wish.operations?)));
        let Some(current) = &self.current else {
            return operations::furthest(counts.map(|(_, count)| count));
        };
        let members = counts.filter(|(session, _)| current.rank_of(*session).is_some());
        let (seen, _) = current.shapes.next();
        let each = members.map(|(_, count)| operations::begun(count, current.began_with, seen));
        (!self.lobby.is_empty())
            .then(|| operations_after(current.began_with, each.max().unwrap_or(0)))
    }

    /// Returns true if the next generation can begin with the workers in the lobby.
    pub(super) fn is_complete(&self, now: Instant, patience: Patience) -> bool {
        if self.fixed > 0 {
            return self.lobby.contributors() == self.fixed;
        }
        let Some(current) = &self.current else { return !self.lobby.is_empty() };
        let Some(end) = current.end else { return false };
        let is_expected = |at: usize| {
            let member = &current.members[at];
            // A lower switch that lost one of several workers comes again with the others.
            let is_dead = end.reason == olaf_wire::reduce::Reason::Dead
                && end.culprit as usize == at
                && member.contributors == 1;
            !member.has_left && !is_dead && !patience.is_silent(now, member.heard)
        };
        let mut expected = (0..current.members.len()).filter(|at| is_expected(*at));
        !self.lobby.is_empty()
            && expected.all(|at| self.lobby.get(current.members[at].session).is_some())
    }

    /// Returns true if the next generation begins now with the workers in the lobby.
    pub(super) fn may_begin(&mut self, now: Instant, patience: Patience) -> bool {
        let is_complete = self.is_complete(now, patience);
        if self.fixed < 2 {
            // Nobody waits for others whom he could take for his own.
            return is_complete;
        }
        self.owner.may_begin(now, is_complete, |heard| patience.is_silent(now, heard))
    }

    /// Gives the workers of the lobby their ranks, and empties it. A worker keeps the rank that it
    /// wants, or else had, where that is free.
    pub(super) fn seat(&mut self) -> Vec<(Session, Candidate)> {
        let lobby = self.lobby.take();
        let mut seats: Vec<Option<(Session, Candidate)>> = Vec::new();
        seats.resize_with(lobby.len(), || None);
        let mut others = Vec::new();
        for (session, candidate) in lobby {
            let had = || self.current.as_ref().and_then(|current| current.rank_of(session));
            let wish = candidate.wanted.or_else(had);
            match wish.and_then(|rank| seats.get_mut(rank as usize)) {
                Some(seat) if seat.is_none() => *seat = Some((session, candidate)),
                _ => others.push((session, candidate)),
            }
        }
        // The others in the order of the ranks that they want, which exist only in a tree.
        others.sort_by_key(|(session, candidate)| (candidate.wanted, *session));
        let mut others = others.into_iter();
        seats.into_iter().filter_map(|seat| seat.or_else(|| others.next())).collect()
    }
}
