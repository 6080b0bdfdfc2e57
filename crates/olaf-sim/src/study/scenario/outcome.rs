//! What a scenario came to, as plain data.

use super::hop::HopFates;
use super::server::{Cluster, Server};
use super::spec::{ClusterPlace, Scenario, small};
use super::worker::Worker;
use olaf_engine::Instant;
use olaf_host::age::jain;
use serde::Serialize;

/// Contributions by fate from worker to server. `generated` is the sum of all the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fates {
    /// Updates that workers had ready.
    pub generated: u64,
    /// In a datagram that the server received.
    pub delivered: u64,
    /// Gave way to a newer or better one in a queue.
    pub replaced: u64,
    /// Below a reward gate.
    pub filtered: u64,
    /// In a datagram that met a full queue.
    pub dropped: u64,
    /// Refused by a queue.
    pub rejected: u64,
    /// Not sent by its worker and given up.
    pub discarded: u64,
    /// Not sent by its worker yet, at the end.
    pub held: u64,
    /// In a queue or on a link, at the end.
    pub on_the_way: u64,
}

/// One cluster.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterOutcome {
    /// Its group.
    pub group: String,
    /// Its number.
    pub cluster: u32,
    /// Time average of its Age-of-Model from the scenario's first delivery on, ns; a cluster of
    /// which nothing was delivered is as old as that is ago. None: nothing delivered of any.
    pub age_mean_ns: Option<f64>,
    /// Mean of its peaks, ns.
    pub age_peak_mean_ns: Option<f64>,
    /// Its highest peak, ns.
    pub age_peak_max_ns: Option<u64>,
    /// Mean over its workers of each worker's own age, ns, taken in the same way.
    pub worker_age_mean_ns: Option<f64>,
    /// Workers without a delivered update.
    pub workers_unheard: u32,
    /// Datagrams delivered.
    pub packets: u64,
    /// Contributions delivered.
    pub contributions: u64,
}

/// A switch.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchOutcome {
    /// Its name.
    pub name: String,
    /// The fates of the updates that came in.
    #[serde(flatten)]
    pub fates: HopFates,
}

/// The whole.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Contributions, end to end.
    pub fates: Fates,
    /// Datagrams that workers sent.
    pub packets_sent: u64,
    /// Datagrams that met a full queue anywhere.
    pub packets_dropped: u64,
    /// Datagrams that the server received.
    pub packets_delivered: u64,
    /// Datagrams merged into others anywhere.
    pub packets_merged: u64,
    /// Dropped datagrams over sent ones.
    pub loss_packets: f64,
    /// Contributions in dropped datagrams over contributions sent.
    pub loss_contributions: f64,
    /// Jain's index over the clusters' mean ages; none: nothing delivered of any.
    pub fairness: Option<f64>,
    /// The clusters.
    pub clusters: Vec<ClusterOutcome>,
    /// The switches.
    pub switches: Vec<SwitchOutcome>,
    /// Mean of P_s over all decisions.
    pub probability_mean: f64,
    /// Contributions in each delivered datagram: how many datagrams held 1, 2, ..
    pub fan_in: Vec<u64>,
}

/// What the scenario came to. `on_links` contributions are under way between switches.
pub(super) fn of(
    scenario: &Scenario,
    workers: &[&Worker],
    server: &Server,
    hops: Vec<HopFates>,
    on_links: u64,
) -> Outcome {
    let end = Instant(scenario.duration_ns);
    let hops = scenario.switches.iter().zip(hops);
    let switches: Vec<SwitchOutcome> =
        hops.map(|(spec, fates)| SwitchOutcome { name: spec.name.clone(), fates }).collect();
    let sum = |of: fn(&HopFates) -> u64| switches.iter().map(|s| of(&s.fates)).sum::<u64>();
    let packets_sent = workers.iter().map(|w| u64::from(w.packets_sent)).sum();
    let contributions_sent = workers.iter().map(|w| w.contributions_sent).sum();
    let fates = Fates {
        generated: workers.iter().map(|w| w.generated).sum(),
        delivered: server.clusters.iter().map(|c| c.contributions).sum(),
        replaced: sum(|f| f.replaced),
        filtered: sum(|f| f.filtered),
        dropped: sum(|f| f.dropped),
        rejected: sum(|f| f.rejected),
        discarded: workers.iter().map(|w| w.sender.discarded()).sum(),
        held: workers.iter().map(|w| w.sender.held()).sum(),
        on_the_way: sum(|f| f.waiting) + on_links,
    };
    let clusters = (0..).zip(&server.clusters);
    let clusters: Vec<ClusterOutcome> =
        clusters.map(|(id, c)| cluster_outcome(scenario, server, id, c, end)).collect();
    let packets_dropped = sum(|f| f.packets_dropped);
    let decisions = workers.iter().map(|w| w.sender.probability());
    let (chances, decisions) =
        decisions.fold((0.0, 0), |(sum, count), (p, n)| (sum + p, count + n));
    Outcome {
        packets_sent,
        packets_dropped,
        packets_delivered: clusters.iter().map(|c| c.packets).sum(),
        packets_merged: sum(|f| f.packets_merged),
        loss_packets: ratio(packets_dropped, packets_sent),
        loss_contributions: ratio(fates.dropped, contributions_sent),
        fairness: jain(clusters.iter().filter_map(|cluster| cluster.age_mean_ns)),
        fates,
        clusters,
        switches,
        probability_mean: if decisions == 0 { 1.0 } else { chances / decisions as f64 },
        fan_in: server.fan_in.clone(),
    }
}

fn cluster_outcome(
    scenario: &Scenario,
    server: &Server,
    id: u32,
    cluster: &Cluster,
    end: Instant,
) -> ClusterOutcome {
    let ClusterPlace { group, workers, .. } = &cluster.place;
    let own = &server.workers[workers.start as usize..workers.end as usize];
    let ages: Vec<f64> = own.iter().filter_map(|age| age.mean_ns(end)).collect();
    ClusterOutcome {
        group: scenario.groups[*group].name.clone(),
        cluster: id,
        age_mean_ns: cluster.age.mean_ns(end),
        age_peak_mean_ns: cluster.age.peak_mean_ns(),
        age_peak_max_ns: (cluster.peak_max_ns > 0).then_some(cluster.peak_max_ns),
        worker_age_mean_ns: (!ages.is_empty())
            .then(|| ages.iter().sum::<f64>() / ages.len() as f64),
        workers_unheard: small(
            own.iter().filter(|age| age.newest_generation_ns().is_none()).count(),
        ),
        packets: cluster.packets,
        contributions: cluster.contributions,
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
