//! Members and the switch above that are silent.

use super::Switch;
use super::job::{End, Member};
use crate::blocks::by_index::State;
use crate::ids::JobId;
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::iswitch::{ANY, Sender};
use olaf_wire::reduce::Reason;

impl Switch {
    pub(super) fn check_silence(&mut self, now: Instant) {
        let silence = self.config.silence;
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            let job = self.jobs.get_mut(&id).expect("its key is here");
            let lobby = job.lobby.len();
            job.lobby.retain(|_, candidate| now.since(candidate.heard) <= silence);
            let is_fewer = job.lobby.len() < lobby;
            if let Some((reason, culprit)) = self.dead_member(now, id) {
                self.close(now, id, reason, culprit);
            }
            self.check_above(now, id);
            if is_fewer {
                self.lobby_changed(now, id);
            }
            self.drop_if_deserted(now, id);
        }
    }

    /// The first member that is silent while others wait for it. A lower switch does not see who waits at other
    /// switches: there three times the silence is allowed where nobody waits here.
    fn dead_member(&self, now: Instant, id: JobId) -> Option<(Reason, u32)> {
        let job = self.jobs.get(&id)?;
        let current = job.current.as_ref().filter(|current| current.end.is_none())?;
        let first = current.table.first_incomplete();
        let is_open = current.table.cell(first).is_some_and(|cell| cell.state() == State::Open);
        let is_open = is_open || current.table.open() > 0 || current.table.is_blocked();
        let waits = is_open || !job.lobby.is_empty();
        if !waits && self.out.above().is_none() {
            return None;
        }
        let patience = self.config.silence * if waits { 1 } else { 3 };
        let is_silent = |member: &&Member| now.since(member.heard) > patience;
        let dead = current.members.iter().find(is_silent)?;
        // A switch below has several workers: none of them is to blame.
        let culprit = if dead.sender == Sender::Worker { dead.rank } else { ANY };
        Some((Reason::Dead, culprit))
    }

    /// Ends a generation whose switch above is silent.
    fn check_above(&mut self, now: Instant, id: JobId) {
        if self.out.above().is_none() {
            return;
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let is_silent =
            job.upward.waiting_since.is_some_and(|since| now.since(since) > self.config.silence);
        let Some(current) = job.current.as_ref().filter(|_| is_silent) else { return };
        let index = current.table.first_incomplete();
        job.upward.waiting_since = None;
        self.close_at(now, id, End { index, reason: Reason::SwitchSilent, culprit: ANY });
    }
}
