//! What a switch asks of newcomers: joins alone, which anybody can send from any address, must not keep others out
//! (`docs/design/033-hostile.md`).

use super::Switch;
use super::job::Job;
use crate::drop::DropReason;
use crate::engine::{Source, Verdict};
use crate::ids::{JobId, PeerId};
use crate::time::Instant;
use olaf_wire::{Join, Welcome, WelcomeCode};

/// Jobs that no server has confirmed and that one peer brought.
const JOBS_OF_A_PEER: usize = 16;
/// Jobs in which nobody has proved an address, beyond which a new job begins with a proof.
const UNPROVEN_JOBS: usize = 32;

impl Switch {
    /// Jobs that joins alone have made: no server has confirmed them, or nobody has proved an address there.
    fn unconfirmed(&self) -> impl Iterator<Item = (&JobId, &Job)> {
        self.jobs.iter().filter(|(_, job)| !job.is_confirmed())
    }

    /// Returns true if this peer brings no more jobs for now.
    pub(super) fn has_opened_enough(&self, peer: PeerId) -> bool {
        let own = self.unconfirmed().filter(|(_, job)| job.opened_by == Some(peer));
        own.count() >= JOBS_OF_A_PEER
    }

    /// Returns true if one more job fits. One that joins alone have made gives way when there is no other
    /// room, the one with the oldest join first: joins alone must not keep new jobs out.
    pub(super) fn makes_room_for_a_job(&mut self) -> bool {
        if self.jobs.len() < self.config.max_jobs {
            return true;
        }
        let oldest = self.unconfirmed().min_by_key(|(_, job)| job.last_join).map(|(id, _)| *id);
        oldest.is_some_and(|id| self.jobs.remove(&id).is_some())
    }

    /// Returns true if a newcomer has to prove its address before it takes a place: many others have not
    /// proved theirs. Where its join does so, it is let in.
    pub(super) fn must_prove_first(
        &mut self,
        now: Instant,
        peer: PeerId,
        join: &Join,
        opens: bool,
    ) -> bool {
        let id = join.address.job;
        if self.proofs.is_proven(&(id, peer)) {
            return false;
        }
        let unproven = || self.jobs.values().filter(|job| !job.has_proof && !job.configured);
        let many = self.proofs.are_crowded() || opens && unproven().count() >= UNPROVEN_JOBS;
        many && !self.proofs.takes_cookie(now, (peer, (id, peer)), join.nonce)
    }

    /// Nothing is remembered of the join. Its sender joins again at once with the cookie.
    pub(super) fn ask_for_a_proof(&mut self, now: Instant, from: Source, join: &Join) -> Verdict {
        let nonce = self.proofs.cookie(now, from.peer);
        let code = WelcomeCode::JoinAgain;
        let welcome = self.welcome(now, join.address, join.sent_at_ns, code);
        self.reply(now, from, Welcome { nonce, ..welcome });
        Verdict::Drop(DropReason::NotProven)
    }
}
