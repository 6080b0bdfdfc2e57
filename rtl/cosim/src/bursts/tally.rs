//! What a run comes to. Ages are those of `olaf replay`.

use super::Bursts;
use olaf_engine::Instant;
use olaf_host::age::AgeOfModel;
use serde::Serialize;

/// A run in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Updates that left, merged or alone.
    pub received: u64,
    /// Updates that neither left by themselves nor were lost: merged or replaced.
    pub aggregated: u64,
    /// Updates that found no slot.
    pub dropped: u64,
    /// Contributors of each update that left.
    pub contributors: Vec<u32>,
    /// Mean over the clusters of the time average of their Age-of-Model, nanoseconds; none if a cluster
    /// was not observed for any time.
    pub age_ns: Option<f64>,
    /// Cycles of the run.
    pub cycles: u64,
}

/// Collects departures and losses.
pub(super) struct Tally {
    ages: Vec<AgeOfModel>,
    updates: u64,
    dropped: u64,
    contributors: Vec<u32>,
    last: Instant,
}

impl Tally {
    pub(super) fn new(bursts: &Bursts) -> Self {
        let clusters = bursts.cluster.iter().max().map_or(0, |last| *last as usize + 1);
        Self {
            ages: vec![AgeOfModel::new(); clusters],
            updates: bursts.at_ns.len() as u64,
            dropped: 0,
            contributors: Vec::new(),
            last: Instant(0),
        }
    }

    pub(super) fn dropped(&mut self) {
        self.dropped += 1;
    }

    /// The last byte of an update left at `now_ns`; its newest contribution was generated at `newest_ns`.
    pub(super) fn departed(
        &mut self,
        now_ns: u64,
        cluster: u32,
        contributors: u32,
        newest_ns: u64,
    ) {
        self.last = Instant(now_ns);
        if self.contributors.is_empty() {
            self.ages.iter_mut().for_each(|age| age.observe_from(self.last));
        }
        self.ages[cluster as usize].deliver(self.last, newest_ns);
        self.contributors.push(contributors);
    }

    /// Everything has left.
    pub(super) fn outcome(self, cycles: u64) -> Outcome {
        let received = self.contributors.len() as u64;
        let means: Option<Vec<f64>> = self.ages.iter().map(|age| age.mean_ns(self.last)).collect();
        Outcome {
            received,
            aggregated: self.updates - self.dropped - received,
            dropped: self.dropped,
            age_ns: means.map(|means| means.iter().sum::<f64>() / means.len() as f64),
            contributors: self.contributors,
            cycles,
        }
    }
}
