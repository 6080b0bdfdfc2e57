//! What the execution thread did so far: it counts, and those who watch look.

use crate::roles::sharing::log::Cost;
use crate::roles::sharing::waiting::{Late, Lateness};
use olaf_sched::protocol::Launch;
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counts, behind a lock that nobody holds for long.
#[derive(Debug, Default)]
pub(super) struct Played(Mutex<Counts>);

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) total: Total,
    pub(super) lateness: Lateness,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Total {
    pub(super) launches: u64,
    pub(super) in_network: u64,
    pub(super) locked: u64,
    pub(super) locked_ns: u64,
    pub(super) longest_locked_ns: u64,
    pub(super) decide_ns: u64,
    pub(super) longest_decide_ns: u64,
}

/// For those who watch.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    total: Total,
    timers: u64,
    late: Late,
}

impl Played {
    pub(super) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shown(&self) -> Shown {
        let counts = self.lock();
        let (timers, late) = (counts.lateness.total(), counts.lateness.shown());
        Shown { total: counts.total, timers, late }
    }
}

impl Total {
    pub(super) fn add(&mut self, launch: Launch, cost: Cost) {
        self.launches += 1;
        self.in_network += u64::from(launch.in_network);
        self.locked += u64::from(cost.locked_ns > 0);
        self.locked_ns += cost.locked_ns;
        self.longest_locked_ns = self.longest_locked_ns.max(cost.locked_ns);
        self.decide_ns += cost.decide_ns;
        self.longest_decide_ns = self.longest_decide_ns.max(cost.decide_ns);
    }
}
