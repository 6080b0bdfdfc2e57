//! The switch's state as plain data, in the names of `docs/reference/statistics.md`.

use super::counters::{ClippedCounts, Fates};
use super::{AdmissionCounts, Pacing, Switch};
use crate::drop::DropReason;
use crate::ids::{ClusterId, JobId, PeerId, PortId};
use crate::link::pacer::Pacer;
use crate::party::arrivals::ArrivalStatistics;
use crate::rejection::Rejection;
use crate::time::{BitsPerSecond, Instant};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::iter;
use serde::Serialize;

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
mod schema {
    use super::{BTreeMap, Serialize, Vec};

    #[derive(Clone, Debug, Serialize)]
    pub struct Statistics {
        pub epoch: u32,
        pub queue: Queue,
        pub uplink: Uplink,
        pub downlinks: Vec<Downlink>,
        pub received: u64,
        pub fates: FatesByReason,
        pub clipped: super::ClippedCounts,
        pub departures: u64,
        pub refused: BTreeMap<&'static str, u64>,
        pub forwarded: Forwarded,
        pub clusters: Vec<Cluster>,
        pub workers: Vec<Worker>,
        pub switches: Vec<SwitchBelow>,
        pub servers: Vec<Server>,
        pub admission: Option<Admission>,
        pub arrivals: super::ArrivalStatistics,
        pub departed: Vec<Departed>,
        pub events_forgotten: u64,
    }

    /// What left for a job.
    #[derive(Clone, Debug, Serialize)]
    pub struct Departed {
        pub job: u32,
        pub hop_sequence: u32,
        pub left_out: u64,
        pub datagrams: u64,
        pub contributions: u64,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Queue {
        pub discipline: &'static str,
        pub slots: usize,
        pub used: usize,
        pub gate: Option<f64>,
        pub active_clusters: u16,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Uplink {
        pub pacer: &'static str,
        pub bits_per_second: Option<u64>,
        pub credits: Option<usize>,
        pub outstanding: usize,
        pub credits_expired: u64,
        #[serde(flatten)]
        pub datagrams: Datagrams,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Downlink {
        pub port: u16,
        pub pacer: &'static str,
        pub bits_per_second: Option<u64>,
        #[serde(flatten)]
        pub datagrams: Datagrams,
    }

    /// Of one link. All counts but `marked` leave updates out.
    #[derive(Clone, Debug, Serialize)]
    pub struct Datagrams {
        pub limit_datagrams: usize,
        pub ecn_depth_datagrams: Option<usize>,
        pub forwarded: u64,
        pub sent: u64,
        pub waiting: u64,
        pub dropped: BTreeMap<&'static str, u64>,
        pub marked: u64,
    }

    #[derive(Clone, Copy, Debug, Serialize)]
    pub struct Admission {
        #[serde(flatten)]
        pub counts: super::AdmissionCounts,
        pub open: usize,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct FatesByReason {
        pub sent_alone: u64,
        pub merged: u64,
        pub replaced: u64,
        pub filtered: u64,
        pub dropped: BTreeMap<&'static str, u64>,
        pub rejected: BTreeMap<&'static str, u64>,
        pub waiting: u64,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Forwarded {
        pub up: u64,
        pub down: u64,
        pub untouched: u64,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Cluster {
        pub job: u32,
        pub cluster: u32,
        pub active: bool,
        pub received: u64,
        pub departures: u64,
        pub sent_alone: u64,
        pub merged: u64,
        pub replaced: u64,
        pub filtered: u64,
        pub dropped: u64,
        pub rejected: u64,
        pub waiting: u64,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Worker {
        pub job: u32,
        pub cluster: u32,
        pub worker: u32,
        pub address: super::PeerId,
        pub alive: bool,
        pub admitted: bool,
        pub behind_switch: bool,
        pub silent_ns: u64,
        pub received: u64,
        pub last_sequence: Option<u32>,
        pub rejected: u64,
        pub clipped: u64,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct SwitchBelow {
        pub job: u32,
        pub address: super::PeerId,
        pub alive: bool,
        pub silent_ns: u64,
        pub workers: usize,
        pub received: u64,
        pub rejected: u64,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Server {
        pub job: u32,
        pub address: super::PeerId,
        /// Whether it is another switch, with the server somewhere behind it.
        pub is_switch: bool,
        pub alive: bool,
        pub silent_ns: u64,
        pub epoch: u32,
    }
}

pub use schema::*;

impl Switch {
    /// All counters, and the parties that are here.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> Statistics {
        let waiting = self.waiting();
        let all_waiting: u64 = waiting.values().sum();
        let total = &self.counters.total;
        debug_assert_eq!(
            total.received,
            total.settled() + all_waiting,
            "every contribution has one fate"
        );
        let mut links = self.link_statistics();
        let up = links.remove(0);
        let forwarded = Forwarded {
            up: up.forwarded,
            down: links.iter().map(|link| link.forwarded).sum(),
            untouched: self.counters.forwarded_untouched,
        };
        Statistics {
            epoch: self.epoch,
            queue: Queue {
                discipline: self.config.queue.name(),
                slots: self.ports.up.slots(),
                used: self.ports.up.used(),
                gate: self.config.gate,
                active_clusters: self.queue_status(now).active_clusters,
            },
            uplink: self.uplink_statistics(up),
            downlinks: self.downlink_statistics(links),
            received: total.received,
            fates: by_reason(total, all_waiting),
            clipped: self.counters.clipped,
            departures: total.departures,
            refused: self.counters.refused.clone(),
            forwarded,
            clusters: self.cluster_statistics(now, &waiting),
            workers: self.worker_statistics(now),
            switches: self.switch_statistics(now),
            servers: self.server_statistics(now),
            admission: self
                .config
                .admission()
                .map(|_| Admission { counts: self.asking.counts, open: self.asking.open() }),
            arrivals: self.arrivals.statistics(),
            departed: self.departed_statistics(),
            events_forgotten: self.counters.events_forgotten,
        }
    }

    /// Contributions that came so far, by fate, and those still waiting.
    #[must_use]
    pub fn fates(&self) -> (Fates, u64) {
        (self.counters.total.clone(), self.waiting().values().sum())
    }

    fn waiting(&self) -> BTreeMap<(JobId, ClusterId), u64> {
        let mut waiting = BTreeMap::new();
        for entry in self.ports.up.updates() {
            *waiting
                .entry((entry.contribution.flow.job, entry.contribution.flow.cluster))
                .or_default() += u64::from(entry.contribution.contributors);
        }
        waiting
    }

    /// The datagrams of each link, the uplink's first.
    fn link_statistics(&self) -> Vec<Datagrams> {
        let config = &self.config;
        let up = (config.control_limit, config.uplink_ecn_depth);
        let down = (config.downlink_limit, config.downlink_ecn_depth);
        let set_up = iter::once(up).chain(iter::repeat(down));
        let counts = self.ports.counts().iter().zip(self.ports.waiting());
        let links = counts.zip(set_up).map(|((counts, waiting), (limit, depth))| {
            debug_assert_eq!(counts.forwarded, counts.sent + waiting, "each one leaves or waits");
            Datagrams {
                limit_datagrams: limit,
                ecn_depth_datagrams: depth,
                forwarded: counts.forwarded,
                sent: counts.sent,
                waiting,
                dropped: BTreeMap::from([(DropReason::LinkFull.name(), counts.dropped)]),
                marked: counts.marked,
            }
        });
        links.collect()
    }

    fn downlink_statistics(&self, links: Vec<Datagrams>) -> Vec<Downlink> {
        let rate = self.config.downlink_rate;
        let pacer = if rate.is_some() { "rate" } else { "unlimited" };
        let bits_per_second = rate.map(BitsPerSecond::get);
        let ports = PortId::DOWNLINK.0..;
        let link = |(port, datagrams)| Downlink { port, pacer, bits_per_second, datagrams };
        ports.zip(links).map(link).collect()
    }

    fn uplink_statistics(&self, datagrams: Datagrams) -> Uplink {
        let (outstanding, credits_expired) = match self.ports.up.pacer() {
            Pacer::Credit(pacer) => (pacer.outstanding(), pacer.expired()),
            _ => (0, 0),
        };
        let (pacer, bits_per_second, credits) = match self.config.pacing() {
            Pacing::Unlimited => ("unlimited", None, None),
            Pacing::Rate(rate) => ("rate", Some(rate.get()), None),
            Pacing::Credits { credits, .. } => ("credit", None, Some(credits)),
        };
        Uplink { pacer, bits_per_second, credits, outstanding, credits_expired, datagrams }
    }

    fn cluster_statistics(
        &self,
        now: Instant,
        waiting: &BTreeMap<(JobId, ClusterId), u64>,
    ) -> Vec<Cluster> {
        let window = self.activity(now).window;
        let clusters = self.jobs.iter().flat_map(|(job, state)| {
            state.clusters.iter().map(move |(cluster, state)| (*job, *cluster, state))
        });
        clusters
            .map(|(job, cluster, state)| Cluster {
                job: job.0,
                cluster: cluster.0,
                active: state.is_active(now, window),
                received: state.fates.received,
                departures: state.fates.departures,
                sent_alone: state.fates.sent_alone,
                merged: state.fates.merged,
                replaced: state.fates.replaced,
                filtered: state.fates.filtered,
                dropped: state.fates.dropped + state.fates.evicted,
                rejected: state.fates.rejected_sum(),
                waiting: waiting.get(&(job, cluster)).copied().unwrap_or(0),
            })
            .collect()
    }

    fn worker_statistics(&self, now: Instant) -> Vec<Worker> {
        let workers = self.jobs.iter().flat_map(|(job, state)| {
            state.members.iter().map(move |(worker, member)| (*job, *worker, member))
        });
        workers
            .map(|(job, worker, member)| Worker {
                job: job.0,
                cluster: member.cluster.0,
                worker: worker.0,
                address: member.peer,
                alive: !member.liveness.is_silent(),
                admitted: member.admitted,
                behind_switch: member.behind_switch,
                silent_ns: nanos(member.liveness.silence(now)),
                received: member.account.received,
                last_sequence: member.last_sequence,
                rejected: member.account.rejected,
                clipped: member.account.clipped,
            })
            .collect()
    }

    fn switch_statistics(&self, now: Instant) -> Vec<SwitchBelow> {
        let mut all = Vec::new();
        for (job, state) in self.jobs.iter() {
            // Counted once for all: a crowd of switches and workers is looked at while packets wait.
            let mut workers: BTreeMap<PeerId, usize> = BTreeMap::new();
            for member in state.members.values().filter(|member| member.behind_switch) {
                *workers.entry(member.peer).or_default() += 1;
            }
            all.extend(state.below.iter().map(|(peer, below)| SwitchBelow {
                job: job.0,
                address: *peer,
                alive: !below.liveness.is_silent(),
                silent_ns: nanos(below.liveness.silence(now)),
                workers: workers.get(peer).copied().unwrap_or(0),
                received: below.account.received,
                rejected: below.account.rejected,
            }));
        }
        all
    }

    fn departed_statistics(&self) -> Vec<Departed> {
        let each = |(job, departed): (&JobId, &super::counters::Departed)| Departed {
            job: job.0,
            hop_sequence: departed.hop_sequence,
            left_out: departed.left_out,
            datagrams: departed.datagrams,
            contributions: departed.contributions,
        };
        self.departed.iter().map(each).collect()
    }

    fn server_statistics(&self, now: Instant) -> Vec<Server> {
        let servers = self.jobs.iter();
        servers
            .map(|(job, state)| Server {
                job: job.0,
                address: state.server,
                is_switch: state.above.is_known(),
                alive: state.liveness.is_alive(),
                silent_ns: nanos(state.liveness.silence(now)),
                epoch: state.liveness.epoch(),
            })
            .collect()
    }
}

fn by_reason(fates: &Fates, waiting: u64) -> FatesByReason {
    let mut dropped = BTreeMap::from([("queue_full", fates.dropped)]);
    if fates.evicted > 0 {
        dropped.insert("evicted", fates.evicted);
    }
    let rejected = Rejection::ALL.iter().map(|r| (r.name(), fates.rejected[r.index()]));
    FatesByReason {
        sent_alone: fates.sent_alone,
        merged: fates.merged,
        replaced: fates.replaced,
        filtered: fates.filtered,
        dropped,
        rejected: rejected.filter(|(_, count)| *count > 0).collect(),
        waiting,
    }
}

fn nanos(duration: core::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
