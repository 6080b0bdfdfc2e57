//! Silence: workers that others wait for in vain, and jobs without workers.

use super::Switch;
use super::closing::culprit_is;
use super::generation::{End, Generation, Member};
use super::job::Job;
use crate::drop::DropReason;
use crate::ids::{JobId, PeerId};
use crate::party::GONE;
use crate::sums::Evicted;
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_wire::reduce::{Reason, WelcomeCode};

impl Switch {
    /// Looks for workers that are silent while others wait for them, and for jobs without workers.
    pub(super) fn check_silence(&mut self, now: Instant) {
        let silence = self.config.silence;
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in jobs {
            let generations = self.jobs.get(&id).into_iter().flat_map(Job::generations);
            let dead = generations.filter_map(|generation| {
                let rank = generation.dead(now, silence)?;
                let has_left = generation.members[rank as usize].has_left;
                let reason = if has_left { Reason::Left } else { Reason::Dead };
                let operation = generation.first_incomplete();
                let culprit = Some(generation.name(rank));
                Some((generation.number, End { operation, reason, ..culprit_is(culprit, now) }))
            });
            let dead: Vec<_> = dead.collect();
            for (number, end) in dead {
                self.close(now, id, number, end);
            }
            if let Some(job) = self.jobs.get_mut(&id) {
                job.lobby.retain(|_, candidate| now.since(candidate.heard) < silence);
            }
            self.begin_if_complete(now, id);
            let is_gone = |job: &Job| {
                job.lobby.is_empty()
                    && job.generations().all(|one| one.is_deserted(now, silence * GONE))
            };
            if self.jobs.get(&id).is_some_and(is_gone) {
                self.forget(id);
            }
        }
    }

    /// A job gives its place, or its name, to another one.
    pub(super) fn evict(&mut self, evicted: Evicted<JobId>) {
        let full = DropReason::SumJoinRefused(WelcomeCode::Full);
        (0..evicted.turned_away).for_each(|_| self.counters.refuse(full));
        self.forget(evicted.id);
    }

    pub(super) fn forget(&mut self, id: JobId) {
        for generation in self.jobs.remove(&id).iter().flat_map(Job::generations) {
            self.counters.retire(&generation.pool.counts());
        }
        self.deadlines.set(id, None);
    }
}

/// The member that a new worker would replace.
pub(super) enum Replaced {
    /// None.
    Nobody,
    /// One that was heard lately.
    StillAlive,
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
        silence: Duration,
    ) -> Replaced {
        // A new life at the address of an old one: the old one is over.
        let is_dead = |member: &Member| {
            member.has_left || member.peer == peer || now.since(member.heard) >= silence
        };
        let mut ranks = (0..).zip(&self.members);
        match wanted {
            Some(wanted) => match ranks.find(|(rank, _)| self.stands_for(*rank, wanted)) {
                Some((rank, member)) if is_dead(member) => Replaced::Dead(rank),
                Some(_) => Replaced::StillAlive,
                None => Replaced::Nobody,
            },
            None => {
                let dead = ranks.find(|(_, member)| is_dead(member));
                dead.map_or(Replaced::Nobody, |(rank, _)| Replaced::Dead(rank))
            }
        }
    }
}
