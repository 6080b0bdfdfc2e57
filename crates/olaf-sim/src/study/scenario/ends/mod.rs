//! A scenario's ends as engines: another simulator has the links and the queues between them.

mod notices;
mod server;
mod worker;

pub use notices::Notices;
pub use server::{Contributor, ServerEnd};
pub use worker::WorkerEnd;

use super::hop::HopFates;
use super::outcome::{self, Outcome};
use super::spec::{Scenario, SpecError};
use olaf_engine::Engine;

/// One end of a scenario. It exchanges Olaf's own datagrams with the others; a worker's peer has
/// the worker's number, counted through all groups.
pub enum End {
    /// A worker.
    Worker(Box<WorkerEnd>),
    /// The server.
    Server(Box<ServerEnd>),
    /// A switch's notices to its workers.
    Notices(Box<Notices>),
}

impl Scenario {
    /// What the scenario came to between these ends and the switches' queues, whose fates stand in
    /// the scenario's order.
    ///
    /// # Errors
    /// The ends are not one server and every worker, the switches are of another number, or more
    /// contributions ended than the workers made.
    pub fn outcome(&self, ends: &[&End], hops: Vec<HopFates>) -> Result<Outcome, SpecError> {
        let workers = ends.iter().filter_map(|end| match end {
            End::Worker(end) => Some(&end.worker),
            _ => None,
        });
        let mut workers: Vec<_> = workers.collect();
        workers.sort_unstable_by_key(|worker| worker.id);
        let mut servers = ends.iter().filter_map(|end| match end {
            End::Server(end) => Some(&end.server),
            _ => None,
        });
        let (Some(server), None) = (servers.next(), servers.next()) else {
            return Err(SpecError("an outcome needs one server".into()));
        };
        if !workers.iter().map(|worker| worker.id as usize).eq(0..server.workers.len()) {
            return Err(SpecError("an outcome needs each worker once".into()));
        }
        if hops.len() != self.switches.len() {
            return Err(SpecError("an outcome needs the fates of each switch".into()));
        }
        let mut outcome = outcome::of(self, &workers, server, hops, 0);
        let fates = &mut outcome.fates;
        let ended = fates.delivered + fates.replaced + fates.filtered + fates.dropped;
        let ended = ended + fates.rejected + fates.discarded + fates.held;
        // The links belong to the other simulator: what has no other fate is in a queue or on a link.
        fates.on_the_way = fates
            .generated
            .checked_sub(ended)
            .ok_or_else(|| SpecError("more contributions ended than the workers made".into()))?;
        Ok(outcome)
    }
}

impl End {
    /// The end as an engine, to look at.
    #[must_use]
    pub fn engine(&self) -> &dyn Engine {
        match self {
            Self::Worker(end) => &**end,
            Self::Server(end) => &**end,
            Self::Notices(end) => &**end,
        }
    }

    /// The end as an engine, to drive.
    pub fn engine_mut(&mut self) -> &mut dyn Engine {
        match self {
            Self::Worker(end) => &mut **end,
            Self::Server(end) => &mut **end,
            Self::Notices(end) => &mut **end,
        }
    }
}
