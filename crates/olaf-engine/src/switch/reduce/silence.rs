//! Silence: workers that others wait for in vain, and jobs without workers.

use super::Switch;
use super::closing::culprit_is;
use super::generation::{End, Generation, Member};
use super::job::Job;
use crate::drop::DropReason;
use crate::ids::{JobId, PeerId};
use crate::sums::{Dead, Evicted, Look, Patience, Step};
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::reduce::WelcomeCode;

impl Switch {
    /// Looks for workers that are dead, and for jobs without workers.
    pub(super) fn check_silence(&mut self, now: Instant) {
        let patience = self.patience;
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in jobs {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            job.lobby.prune(now, patience);
            let look = Look {
                lobby_is_empty: job.lobby.is_empty(),
                // A generation above that lacks this switch ends there without its word.
                may_go: !job.owner.is_contested(now),
                dead: job.dead(now, patience),
            };
            match patience.step(now, look, job.members()) {
                Step::Stay => {}
                Step::Close(dead) => self.close_without(now, id, dead),
                Step::Forget => self.forget(id),
            }
            self.begin_if_complete(now, id);
        }
    }

    /// Ends a generation because of a member that others wait for in vain.
    fn close_without(&mut self, now: Instant, id: JobId, dead: Dead<(u32, u32)>) {
        let Dead { rank: (number, rank), reason } = dead;
        let job = self.jobs.get(&id);
        let Some(generation) = job.and_then(|job| job.known(number)) else { return };
        let operation = generation.first_incomplete();
        let culprit = Some(generation.name(rank));
        self.close(now, id, number, End { operation, reason, ..culprit_is(culprit, now) });
    }

    /// A job gives its place, or its name, to another one.
    pub(super) fn evict(&mut self, evicted: Evicted<JobId>) {
        let full = DropReason::SumJoinRefused(WelcomeCode::Full);
        (0..evicted.turned_away).for_each(|_| self.counters.refuse(full));
        self.forget(evicted.id);
    }

    pub(super) fn forget(&mut self, id: JobId) {
        for generation in self.jobs.remove(&id).iter().flat_map(Job::generations) {
            self.counters.pieces.retire(&generation.pool.counts());
        }
        self.deadlines.set(id, None);
    }
}

/// The member that a new worker would replace.
pub(super) enum Replaced {
    /// None.
    Nobody,
    /// One that was heard lately, then.
    StillAlive(Instant),
    /// One that is silent or has left.
    Dead(u32),
}

impl Generation {
    /// Returns true if a member has the rank that a new worker wants. In an elastic job it has that
    /// rank only where it asked for it: others have it because ranks are dense, and get another one.
    fn stands_for(&self, rank: u32, wanted: u32) -> bool {
        if self.is_fixed {
            return self.name(rank) == wanted;
        }
        self.members.get(rank as usize).is_some_and(|member| member.wanted == Some(wanted))
    }

    pub(super) fn replaced_by(
        &self,
        now: Instant,
        peer: PeerId,
        wanted: Option<u32>,
        patience: Patience,
    ) -> Replaced {
        // A new life at the address of an old one: the old one is over.
        let is_dead = |member: &Member| {
            member.has_left || member.peer == peer || patience.is_silent(now, member.heard)
        };
        let mut ranks = (0..).zip(&self.members);
        match wanted {
            Some(wanted) => match ranks.find(|(rank, _)| self.stands_for(*rank, wanted)) {
                Some((rank, member)) if is_dead(member) => Replaced::Dead(rank),
                Some((_, member)) => Replaced::StillAlive(member.heard),
                None => Replaced::Nobody,
            },
            None => {
                let dead = ranks.find(|(_, member)| is_dead(member));
                dead.map_or(Replaced::Nobody, |(rank, _)| Replaced::Dead(rank))
            }
        }
    }
}
