//! The counters of all parties, in the names of `docs/reference/statistics.md`.

use super::{Job, SERVER, SWITCH, place};
use crate::wire::WireCounts;
use olaf_engine::switch::native as switch;
use olaf_host::push_pull::server::ServerStatistics;
use olaf_host::push_pull::worker::WorkerStatistics;
use serde::Serialize;

/// Everything counted so far.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// Nanoseconds since the job began.
    pub now_ns: u64,
    /// As of a real server.
    pub server: ServerStatistics,
    /// As of a real switch.
    pub switch: switch::Statistics,
    /// As of real workers, in their order.
    pub workers: Vec<WorkerStatistics>,
    /// Datagrams of any kind on the links.
    pub links: Links,
}

/// Datagrams of all links of a kind, by direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Links {
    /// From workers to the switch.
    pub edge_up: Datagrams,
    /// From the switch to workers.
    pub edge_down: Datagrams,
    /// From the switch to the server.
    pub core_up: Datagrams,
    /// From the server to the switch.
    pub core_down: Datagrams,
}

/// Datagrams of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Datagrams {
    /// Put on the link.
    pub sent: u64,
    /// Lost by it.
    pub lost: u64,
    /// Arrived.
    pub delivered: u64,
}

impl Datagrams {
    fn and(self, counts: WireCounts) -> Self {
        Self {
            sent: self.sent + counts.sent,
            lost: self.lost + counts.lost,
            delivered: self.delivered + counts.delivered,
        }
    }
}

pub(super) fn of(job: &Job) -> Statistics {
    let now = job.network.now();
    let counts = |from, to| job.network.counts(from, to);
    let mut links = Links {
        core_up: Datagrams::default().and(counts(SWITCH, SERVER)),
        core_down: Datagrams::default().and(counts(SERVER, SWITCH)),
        ..Links::default()
    };
    for worker in 0..job.workers {
        links.edge_up = links.edge_up.and(counts(place(worker), SWITCH));
        links.edge_down = links.edge_down.and(counts(SWITCH, place(worker)));
    }
    Statistics {
        now_ns: job.now_ns(),
        server: job.server().statistics(now),
        switch: job.switch().statistics(now),
        workers: (0..job.workers).map(|worker| job.worker(worker).statistics(now)).collect(),
        links,
    }
}
