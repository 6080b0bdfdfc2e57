//! What the controller knows of one job.

use super::controller::{Failure, Needs};
use super::{Ballot, Grant};

/// A job's round, from the question what its hosts hold until they hold nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) needs: Needs,
    pub(super) ballot: Ballot,
    pub(super) phase: Phase,
    pub(super) hosts: Vec<HostState>,
    /// When something is due.
    pub(super) at: Option<u64>,
    /// How often what it holds for too long was asked back.
    pub(super) take_backs: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// It holds nothing. No round before this time.
    Idle(u64),
    /// Its hosts are asked to launch nothing more.
    Preparing {
        /// For a grant; else to learn what it holds, and to take it back.
        give: bool,
        /// A host that is not ready by then ends the round.
        until: u64,
    },
    /// Its hosts are told the outcome, and asked until they hold nothing.
    Settling {
        grant: Option<Grant>,
        /// They should hold nothing by then.
        until: u64,
    },
    /// It has failed; its tree is being torn down.
    Fencing(Failure),
}

/// The state of one host of the job in the present round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HostState {
    /// The index of its next operation, and whether it holds the switches.
    pub(super) ready: Option<(u64, bool)>,
    /// It knows the outcome.
    pub(super) settled: bool,
    /// It holds nothing, and no packet on its way can change that.
    pub(super) free: bool,
    /// It was heard in this life of the controller.
    pub(super) heard: bool,
    /// It has left.
    pub(super) left: bool,
    /// Sendings since it last answered.
    pub(super) unanswered: u32,
}

impl Job {
    pub(super) fn new(needs: Needs, ballot: Ballot) -> Self {
        let hosts = vec![HostState::default(); usize::from(needs.hosts)];
        Self { needs, ballot, phase: Phase::Idle(0), hosts, at: None, take_backs: 0 }
    }

    /// A new part of the round: no host has answered yet.
    pub(super) fn nobody_answered(&mut self) {
        for host in &mut self.hosts {
            let left = host.left;
            *host = HostState { ready: None, settled: left, free: left, unanswered: 0, ..*host };
        }
    }

    /// All hosts are ready: the least and the largest index, and whether any of them holds.
    pub(super) fn all_ready(&self) -> Option<(u64, u64, bool)> {
        let mut all = (u64::MAX, 0, false);
        for host in &self.hosts {
            let (next, held) = host.ready.filter(|_| !host.left)?;
            all = (all.0.min(next), all.1.max(next), all.2 || held);
        }
        Some(all)
    }

    pub(super) fn all_settled(&self) -> bool {
        self.hosts.iter().all(|host| host.settled)
    }

    pub(super) fn all_free(&self) -> bool {
        self.hosts.iter().all(|host| host.settled && host.free)
    }

    /// May be using its resources of the switches, as far as the controller knows.
    pub(super) const fn may_hold(&self) -> bool {
        !matches!(self.phase, Phase::Idle(_))
    }
}
