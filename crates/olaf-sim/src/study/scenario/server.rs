//! The server of a scenario: what came of each cluster and worker, and who hears an answer.

use super::hop::Packet;
use super::spec::{ClusterPlace, Scenario, SpecError};
use olaf_engine::Instant;
use olaf_host::age::AgeOfModel;
use olaf_host::recent_age::{RecentAge, mean_of};

pub(super) struct Cluster {
    pub(super) place: ClusterPlace,
    pub(super) age: AgeOfModel,
    pub(super) peak_max_ns: u64,
    pub(super) packets: u64,
    pub(super) contributions: u64,
}

pub(super) struct Server {
    pub(super) clusters: Vec<Cluster>,
    /// Of each worker: the age of the newest of its own contributions.
    pub(super) workers: Vec<AgeOfModel>,
    /// Delivered datagrams by the number of their contributions.
    pub(super) fan_in: Vec<u64>,
    recent: Vec<RecentAge>,
    ages_begun: bool,
    to_cluster: bool,
}

impl Server {
    pub(super) fn new(scenario: &Scenario) -> Result<Self, SpecError> {
        let places = scenario.clusters()?;
        let workers = places.last().map_or(0, |place| place.workers.end as usize);
        let clusters = places.into_iter().map(|place| Cluster {
            place,
            age: AgeOfModel::new(),
            peak_max_ns: 0,
            packets: 0,
            contributions: 0,
        });
        let clusters: Vec<Cluster> = clusters.collect();
        Ok(Self {
            workers: vec![AgeOfModel::new(); workers],
            fan_in: Vec::new(),
            recent: vec![RecentAge::default(); clusters.len()],
            ages_begun: false,
            to_cluster: scenario.answers.to == "cluster",
            clusters,
        })
    }

    /// Returns true if the scenario has all that the packet names.
    pub(super) fn knows(&self, packet: &Packet) -> bool {
        let mut workers = packet.holds.iter().map(|(worker, _)| worker).chain(&packet.met);
        (packet.cluster() as usize) < self.clusters.len()
            && workers.all(|worker| (*worker as usize) < self.workers.len())
    }

    pub(super) fn deliver(&mut self, now: Instant, packet: &Packet) {
        let count = packet.contribution.contributors as usize;
        if self.fan_in.len() <= count {
            self.fan_in.resize(count + 1, 0);
        }
        self.fan_in[count] += 1;
        self.begin_ages(now);
        for (worker, generated_ns) in &packet.holds {
            self.workers[*worker as usize].deliver(now, *generated_ns);
        }
        let newest_ns = packet.contribution.generated_ns.1;
        let cluster = &mut self.clusters[packet.cluster() as usize];
        cluster.packets += 1;
        cluster.contributions += count as u64;
        if let Some(before) = cluster.age.newest_generation_ns().filter(|n| *n < newest_ns) {
            cluster.peak_max_ns = cluster.peak_max_ns.max(now.0.saturating_sub(before));
        }
        cluster.age.deliver(now, newest_ns);
        self.recent[packet.cluster() as usize].deliver(now, newest_ns);
    }

    /// From the first delivery on, clusters and workers that starve have an age, too.
    fn begin_ages(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.ages_begun, true) {
            self.clusters.iter_mut().for_each(|cluster| cluster.age.observe_from(now));
            self.workers.iter_mut().for_each(|age| age.observe_from(now));
        }
    }

    /// The age of a cluster of late, and the mean over all clusters, nanoseconds; 0: not known.
    pub(super) fn recent_ages(&self, now: Instant, cluster: u32) -> (f64, f64) {
        let own = self.recent[cluster as usize].mean_ns(now);
        (own.unwrap_or_default(), mean_of(&self.recent, now))
    }

    /// The workers that hear the answer to a packet, in order.
    pub(super) fn receivers(&self, packet: &Packet) -> Vec<u32> {
        let mut to: Vec<u32> = if self.to_cluster {
            self.clusters[packet.cluster() as usize].place.workers.clone().collect()
        } else {
            packet
                .holds
                .iter()
                .map(|(worker, _)| *worker)
                .chain(packet.met.iter().copied())
                .collect()
        };
        to.sort_unstable();
        to.dedup();
        to
    }
}
