//! What a replay comes to: counts, ages, loss, fairness.

use super::names::{Name, Names};
use super::{Arrived, Departed, Fate, Parameters};
use olaf_engine::Instant;
use olaf_host::age::{AgeOfModel, jain};
use serde::Serialize;

/// A whole replay in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The queue's discipline.
    pub engine: &'static str,
    /// Updates the queue holds.
    pub slots: usize,
    /// The link's rate, bits per second.
    pub rate_bps: u64,
    /// The reward gate's threshold; none: off.
    pub gate: Option<f64>,
    /// What became of an update in the queue while it was sent.
    pub head: &'static str,
    /// Updates that arrived.
    pub arrivals: u64,
    /// Updates that left, merged or alone.
    pub departures: u64,
    /// Arrivals by fate.
    #[serde(flatten)]
    pub counts: Counts,
    /// Dropped arrivals over arrivals; none without any.
    pub loss: Option<f64>,
    /// When the last departure ended.
    pub end_ns: Option<u64>,
    /// Jain's index over the clusters' average ages; none where nothing departed, or only at the end.
    pub fairness: Option<f64>,
    /// Each cluster, integers first, in order.
    pub clusters: Vec<ClusterSummary>,
}

/// A cluster in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterSummary {
    /// The cluster as the trace names it.
    pub cluster: Name,
    /// Its updates that arrived.
    pub arrivals: u64,
    /// Its updates that left, merged or alone.
    pub departures: u64,
    /// Its arrivals by fate.
    #[serde(flatten)]
    pub counts: Counts,
    /// Dropped arrivals over arrivals.
    pub loss: Option<f64>,
    /// Time average of its Age-of-Model, from the first departure's end to the last one's; none
    /// where that is no time. Until its own first delivery its age is the time since then.
    pub aom_mean_ns: Option<f64>,
    /// Mean of its age just before each drop; none where it never dropped.
    pub aom_peak_mean_ns: Option<f64>,
}

/// Arrivals by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is a fate, documented there")]
pub struct Counts {
    pub delivered: u64,
    pub merged: u64,
    pub replaced: u64,
    pub filtered: u64,
    pub dropped: u64,
    pub rejected: u64,
}

impl Counts {
    fn count(&mut self, fate: Fate) {
        *match fate {
            Fate::Delivered => &mut self.delivered,
            Fate::Merged => &mut self.merged,
            Fate::Replaced => &mut self.replaced,
            Fate::Filtered => &mut self.filtered,
            Fate::Dropped => &mut self.dropped,
            Fate::Rejected => &mut self.rejected,
        } += 1;
    }

    /// All arrivals.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.delivered + self.merged + self.replaced + self.filtered + self.dropped + self.rejected
    }

    fn loss(&self) -> Option<f64> {
        (self.sum() > 0).then(|| self.dropped as f64 / self.sum() as f64)
    }
}

#[derive(Clone, Default)]
struct Tally {
    counts: Counts,
    departures: u64,
    age: AgeOfModel,
}

impl Summary {
    pub(super) fn of(
        parameters: &Parameters,
        clusters: &Names,
        arrivals: &[Arrived],
        departures: &[Departed],
    ) -> Self {
        let mut tallies = vec![Tally::default(); clusters.len()];
        let mut total = Counts::default();
        for arrived in arrivals {
            tallies[arrived.cluster as usize].counts.count(arrived.fate);
            total.count(arrived.fate);
        }
        if let Some(first) = departures.first() {
            tallies.iter_mut().for_each(|tally| tally.age.observe_from(first.end));
        }
        for departed in departures {
            let tally = &mut tallies[departed.cluster as usize];
            tally.departures += 1;
            tally.age.deliver(departed.end, departed.generated_ns.1);
        }
        let end = departures.last().map(|departed| departed.end);
        let mut summaries: Vec<_> = (0u32..)
            .zip(&tallies)
            .map(|(cluster, tally)| tally.summary(clusters.get(cluster).clone(), end))
            .collect();
        summaries.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        Self {
            engine: parameters.engine.name(),
            slots: parameters.slots,
            rate_bps: parameters.rate.get(),
            gate: parameters.gate,
            head: parameters.head.name(),
            arrivals: total.sum(),
            departures: departures.len() as u64,
            counts: total,
            loss: total.loss(),
            end_ns: end.map(Instant::nanos),
            fairness: jain(summaries.iter().filter_map(|cluster| cluster.aom_mean_ns)),
            clusters: summaries,
        }
    }
}

impl Tally {
    fn summary(&self, cluster: Name, end: Option<Instant>) -> ClusterSummary {
        ClusterSummary {
            cluster,
            arrivals: self.counts.sum(),
            departures: self.departures,
            counts: self.counts,
            loss: self.counts.loss(),
            aom_mean_ns: end.and_then(|end| self.age.mean_ns(end)),
            aom_peak_mean_ns: self.age.peak_mean_ns(),
        }
    }
}
