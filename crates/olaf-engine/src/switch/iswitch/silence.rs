//! Members and the switch above that are silent.

use super::Switch;
use super::job::End;
use crate::blocks::by_index::State;
use crate::ids::JobId;
use crate::sums::{Dead, Look, Step};
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::iswitch::{ANY, Sender};
use olaf_wire::reduce::Reason;

impl Switch {
    pub(super) fn check_silence(&mut self, now: Instant) {
        let patience = self.patience;
        let has_above = self.out.above().is_some();
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            let job = self.jobs.get_mut(&id).expect("its key is here");
            let lobby = job.lobby.len();
            job.lobby.prune(now, patience);
            let is_fewer = job.lobby.len() < lobby;
            let look = Look {
                lobby_is_empty: job.lobby.is_empty(),
                // The switch above has to hear first that a generation ends: it waits for all workers of this one.
                may_go: (!has_above || !job.is_open()) && !job.owner.is_contested(now),
                dead: self.dead(now, id),
            };
            match patience.step(now, look, self.jobs[&id].members()) {
                Step::Stay => {}
                Step::Close(dead) => self.close(now, id, dead.reason, dead.rank),
                Step::Forget => {
                    self.forget_job(id);
                    continue;
                }
            }
            self.check_above(now, id);
            if is_fewer {
                // A lower switch stands for fewer workers than it told the switch above.
                self.lobby_changed(now, id);
            }
        }
    }

    /// The first member that is dead, by its rank. A data packet does not say whose packets its sender lacks: any sum that
    /// is not complete waits for any silent member.
    fn dead(&self, now: Instant, id: JobId) -> Option<Dead<u32>> {
        let job = self.jobs.get(&id)?;
        let current = job.current.as_ref().filter(|current| current.end.is_none())?;
        let first = current.table.first_incomplete();
        let is_open = current.table.cell(first).is_some_and(|cell| cell.state() == State::Open);
        let is_open = is_open || current.table.open() > 0 || current.table.is_blocked();
        // Workers at other switches may wait, and no message says so.
        if !is_open && job.lobby.is_empty() && self.out.above().is_none() {
            return None;
        }
        let members = current.members.iter().map(|member| {
            // A switch below has several workers: none of them is to blame.
            let culprit = if member.sender == Sender::Worker { member.rank } else { ANY };
            (culprit, member.presence())
        });
        let is_asked_for = !job.lobby.is_empty();
        let patience = if is_asked_for { self.patience.where_asked_for() } else { self.patience };
        patience.dead(now, members, true, |_| false)
    }

    /// Ends a generation whose switch above is silent.
    fn check_above(&mut self, now: Instant, id: JobId) {
        if self.out.above().is_none() {
            return;
        }
        let Some(job) = self.jobs.get(&id) else { return };
        let is_silent = job.is_open() && job.upward.is_silent(now, self.patience);
        let Some(current) = job.current.as_ref().filter(|_| is_silent) else { return };
        let index = current.table.first_incomplete();
        self.close_at(now, id, End { index, reason: Reason::SwitchSilent, culprit: ANY, calls: 0 });
    }
}
