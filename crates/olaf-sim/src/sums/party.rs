//! The parties of a job: the real engines, and the baselines.

use super::baseline::{PsServer, PsWorker, RingWorker};
use olaf_engine::switch::{atp, iswitch, reduce, trio};
use olaf_engine::{Engine, Instant};
use olaf_host::collective::{AtpServer, AtpWorker, Collective, IswitchWorker, Reducer, TrioWorker};

/// A party.
pub(super) enum Party {
    /// A worker, which sums.
    Worker(Box<dyn Works>),
    /// A switch or a server.
    Helper(Box<dyn Helps>),
}

impl Party {
    pub(super) fn engine(&mut self) -> &mut dyn Engine {
        match self {
            Self::Worker(worker) => &mut **worker,
            Self::Helper(helper) => &mut **helper,
        }
    }

    /// The worker.
    ///
    /// # Panics
    /// When it is none.
    pub(super) fn worker(&mut self) -> &mut dyn Works {
        match self {
            Self::Worker(worker) => &mut **worker,
            Self::Helper(_) => panic!("the caller knows where it placed workers"),
        }
    }
}

/// What a worker counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Worked {
    /// Data packets sent for the first time.
    pub(super) sent: u64,
    /// Data packets sent again.
    pub(super) resent: u64,
}

/// A worker.
pub(super) trait Works: Collective + Send {
    /// What it counted.
    fn worked(&self, now: Instant) -> Worked;
}

/// What a switch or a server counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Helped {
    /// Data packets of single workers that no switch had added, which the server of ATP adds.
    pub(super) at_server: u64,
    /// Packets that found the place for their sum taken by another one.
    pub(super) collisions: u64,
}

/// A switch or a server.
pub(super) trait Helps: Engine + Send {
    /// What it counted.
    fn helped(&self) -> Helped {
        Helped::default()
    }
}

impl Works for Reducer {
    fn worked(&self, now: Instant) -> Worked {
        let of = self.statistics(now).pieces;
        Worked { sent: of.sent, resent: of.resent }
    }
}

impl Works for IswitchWorker {
    fn worked(&self, now: Instant) -> Worked {
        let of = self.statistics(now).packets;
        Worked { sent: of.sent, resent: of.resent }
    }
}

impl Works for TrioWorker {
    fn worked(&self, now: Instant) -> Worked {
        let of = self.statistics(now).pieces;
        Worked { sent: of.sent, resent: of.resent }
    }
}

impl Works for AtpWorker {
    fn worked(&self, _: Instant) -> Worked {
        let of = self.statistics().fragments;
        Worked { sent: of.sent, resent: of.resent }
    }
}

impl Works for PsWorker {
    fn worked(&self, _: Instant) -> Worked {
        self.counts()
    }
}

impl Works for RingWorker {
    fn worked(&self, _: Instant) -> Worked {
        self.counts()
    }
}

impl Helps for reduce::Switch {}
impl Helps for iswitch::Switch {}
impl Helps for trio::Switch {}
impl Helps for atp::Switch {}
impl Helps for PsServer {}

impl Helps for AtpServer {
    fn helped(&self) -> Helped {
        let of = self.statistics();
        Helped { at_server: of.gradients.singles, collisions: of.collisions }
    }
}
