//! What a delivery is: data, checked once.

use crate::study::scenario::SpecError;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::QueueKind;
use serde::Deserialize;

/// Workers, a queue, and how much is to arrive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Fixes which part of the record each worker begins with.
    pub seed: u64,
    /// `olaf`, `fifo` or another discipline's name.
    pub queue: String,
    /// Updates the queue holds.
    pub slots: usize,
    /// Rate of the link behind it, bits per second.
    pub rate_bps: u64,
    /// An update's bytes on the link.
    pub packet_bytes: u32,
    /// Clusters.
    pub clusters: u32,
    /// Workers of each cluster.
    pub workers: u32,
    /// Updates of each worker that the server is to have.
    pub wanted: u32,
    /// Of each recorded worker, the times between its pushes in order, nanoseconds.
    pub intervals_ns: Vec<Vec<u64>>,
    /// From a departure's end to the answer at the worker.
    pub answer_delay_ns: u64,
    /// A worker without an answer sends again after this time; none: a lost update is gone.
    pub resend_after_ns: Option<u64>,
    /// Longest addition to that time, drawn for each: without it workers that were dropped together
    /// come back together, and some starve.
    #[serde(default)]
    pub resend_spread_ns: u64,
    /// Give up at this time.
    pub limit_ns: u64,
}

/// Most updates wanted in all, and most updates that may be generated until the limit.
const MOST: u128 = 50_000_000;

impl Delivery {
    /// Everything that the run relies on.
    ///
    /// # Errors
    /// The first thing that cannot be.
    pub fn check(&self) -> Result<(), SpecError> {
        let fail = |text: &str| Err(SpecError(text.into()));
        if QueueKind::parse(&self.queue).is_none() {
            return fail(&format!("queue {:?} must be {}", self.queue, QueueKind::names()));
        }
        if self.slots == 0 || self.slots > 1 << 20 {
            return fail("slots must be from 1 to 1048576");
        }
        if BitsPerSecond::new(self.rate_bps).is_none() || self.packet_bytes == 0 {
            return fail("rate_bps and packet_bytes must be above 0");
        }
        if self.clusters == 0 || self.workers == 0 || self.wanted == 0 {
            return fail("clusters, workers and wanted must be above 0");
        }
        if self.intervals_ns.is_empty() || self.intervals_ns.iter().any(Vec::is_empty) {
            return fail("intervals_ns needs a worker, and an interval of each");
        }
        if self.intervals_ns.iter().flatten().any(|interval| *interval == 0) {
            return fail("intervals_ns must all be above 0");
        }
        if self.resend_after_ns == Some(0) || self.limit_ns == 0 {
            return fail("resend_after_ns and limit_ns must be above 0");
        }
        let workers = u128::from(self.clusters) * u128::from(self.workers);
        let mean =
            |own: &Vec<u64>| own.iter().map(|ns| u128::from(*ns)).sum::<u128>() / own.len() as u128;
        let fastest = self.intervals_ns.iter().map(mean).min().unwrap_or(1).max(1);
        let generated = workers * (u128::from(self.limit_ns) / fastest + 1);
        if workers * u128::from(self.wanted) > MOST || generated > MOST {
            return fail(&format!("more than {MOST} updates wanted, or ready before limit_ns"));
        }
        Ok(())
    }
}
