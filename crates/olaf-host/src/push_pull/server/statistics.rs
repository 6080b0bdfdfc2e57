//! The server's state as plain data, in the names of `docs/reference/statistics.md`.

use super::{Counts, Server};
use crate::age::jain;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use olaf_engine::party::arrivals::ArrivalStatistics;
use olaf_engine::switch::native::ClippedCounts;
use olaf_engine::{ClusterId, Instant};
use serde::Serialize;

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
mod schema {
    use super::{BTreeMap, ClippedCounts, Serialize, String, Vec};

    #[derive(Clone, Debug, Serialize)]
    pub struct ServerStatistics {
        pub epoch: u32,
        pub refused: BTreeMap<&'static str, u64>,
        pub jobs: Vec<Job>,
        pub answers_superseded: u64,
        pub answers_dropped: u64,
        pub arrivals: super::ArrivalStatistics,
        pub signatures: u64,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Job {
        pub job: u32,
        pub version: u32,
        pub parameters: u32,
        pub segments: u32,
        pub rule: &'static str,
        pub aggregate: &'static str,
        pub collections: u64,
        pub rounds_short: u64,
        pub ready: bool,
        pub arrays: Option<usize>,
        pub restored: Option<Restored>,
        pub received: u64,
        pub deliveries: u64,
        pub fates: Fates,
        pub clipped: ClippedCounts,
        pub clipped_workers: BTreeMap<u32, u64>,
        pub staleness_mean: Option<f64>,
        pub staleness_max: u32,
        pub clusters: Vec<Cluster>,
        pub fairness: Option<f64>,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Fates {
        pub delivered_alone: u64,
        pub delivered_merged: u64,
        pub gated: u64,
        pub waiting: u64,
        pub rejected: BTreeMap<String, u64>,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Restored {
        pub version: u32,
        #[serde(flatten)]
        pub counts: super::Counts,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Cluster {
        pub cluster: u32,
        pub workers: usize,
        pub deliveries: u64,
        pub contributions: u64,
        pub aom_now_ns: Option<u64>,
        pub aom_mean_ns: Option<f64>,
        pub aom_peak_mean_ns: Option<f64>,
        pub staleness_mean: Option<f64>,
        pub staleness_max: u32,
        pub last_reward: Option<f64>,
        pub clock_error_ns: Option<u64>,
    }
}

pub use schema::ServerStatistics;

pub(super) fn of(server: &Server, now: Instant) -> ServerStatistics {
    ServerStatistics {
        epoch: server.epoch,
        refused: server.refused.clone(),
        jobs: server.jobs.iter().map(|(id, job)| job_statistics(server, now, id.0, job)).collect(),
        answers_superseded: server.answers.superseded,
        answers_dropped: server.answers.dropped + server.answers.unproven,
        arrivals: server.arrivals.statistics(),
        signatures: server.answers.signing.made,
    }
}

fn job_statistics(server: &Server, now: Instant, id: u32, job: &super::Job) -> schema::Job {
    let clusters: Vec<_> = job
        .clusters
        .iter()
        .map(|(id, cluster)| cluster_statistics(now, job, *id, cluster))
        .collect();
    schema::Job {
        job: id,
        version: job.version,
        parameters: job.shape.parameters,
        segments: job.shape.segments(),
        rule: server.config.rule.kind.name(),
        aggregate: server.config.aggregate.name(),
        collections: job.collection.closed,
        rounds_short: job.collection.short,
        ready: job.model.is_some(),
        restored: job.before.clone().map(|(version, counts)| schema::Restored { version, counts }),
        arrays: job.description.layout.as_ref().map(|layout| layout.arrays().len()),
        received: job.fates.received,
        deliveries: job.fates.deliveries,
        fates: schema::Fates {
            delivered_alone: job.fates.delivered_alone,
            delivered_merged: job.fates.delivered_merged,
            gated: job.fates.gated,
            waiting: job.collection.waiting,
            rejected: job.fates.rejected.iter().map(|(r, n)| (r.as_ref().into(), *n)).collect(),
        },
        clipped: job.clipped,
        clipped_workers: job
            .members
            .iter()
            .filter(|(_, member)| member.clipped.0 > 0)
            .map(|(worker, member)| (worker.0, member.clipped.0))
            .collect(),
        staleness_mean: job.staleness.mean(),
        staleness_max: job.staleness.max,
        fairness: jain(clusters.iter().filter_map(|cluster| cluster.aom_mean_ns)),
        clusters,
    }
}

fn cluster_statistics(
    now: Instant,
    job: &super::Job,
    id: ClusterId,
    cluster: &super::cluster::Cluster,
) -> schema::Cluster {
    let members = || job.members.values().filter(|member| member.cluster == id);
    // The age is as accurate as the least accurate clock among the members, which stamp it.
    let error_us = members().map(|m| m.clock_error_us).max().filter(|us| *us != u32::MAX);
    schema::Cluster {
        cluster: id.0,
        workers: members().count(),
        deliveries: cluster.deliveries,
        contributions: cluster.contributions,
        aom_now_ns: cluster.age.now(now).map(|d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
        aom_mean_ns: cluster.age.mean_ns(now),
        aom_peak_mean_ns: cluster.age.peak_mean_ns(),
        staleness_mean: cluster.staleness.mean(),
        staleness_max: cluster.staleness.max,
        last_reward: cluster.last_reward,
        clock_error_ns: error_us.map(|us| u64::from(us) * 1000),
    }
}
