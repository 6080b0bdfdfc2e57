//! The switch's state as plain data, in the names of `docs/reference/statistics.md`.

use super::Switch;
use crate::blocks::hashed::Counts;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use serde::Serialize;

/// What is counted beside the table.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Counters {
    /// Gradient fragment packets.
    pub(super) gradients: u64,
    /// Of these: complete without an aggregator.
    pub(super) alone: u64,
    /// Of these: f32, which no switch adds.
    pub(super) floats: u64,
    /// Of these: of a worker whose join did not pass here.
    pub(super) strangers: u64,
    /// Parts of a group at a level above the first, which go on alone.
    pub(super) parts: u64,
    /// Of groups beyond those that the switch keeps of a job.
    pub(super) too_many_groups: u64,
    pub(super) parameters: u64,
    pub(super) joins: u64,
}

/// A job, as one of its servers has it.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct JobStatistics {
    pub job: u16,
    pub server: u8,
    pub workers: usize,
    pub generation: u16,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Statistics {
    pub aggregators: usize,
    pub used_aggregators: usize,
    pub sum_bytes: u64,
    pub pieces: Counts,
    #[serde(flatten)]
    counters: Counters,
    pub sent_up: u64,
    pub sent_down: u64,
    pub link_full_up: u64,
    pub link_full_down: u64,
    pub marked: u64,
    pub waiting_datagrams: usize,
    pub refused: BTreeMap<&'static str, u64>,
    pub jobs: Vec<JobStatistics>,
    pub events_forgotten: u64,
}

impl Switch {
    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let jobs = self.jobs.iter().map(|((job, server), state)| JobStatistics {
            job: *job,
            server: *server,
            workers: state.len(),
            generation: state.generation,
        });
        Statistics {
            aggregators: self.table.capacity(),
            used_aggregators: self.table.used(),
            sum_bytes: self.table.bytes(),
            pieces: self.table.counts().clone(),
            counters: self.counters.clone(),
            sent_up: self.out.sent.up,
            sent_down: self.out.sent.down,
            link_full_up: self.out.full_up,
            link_full_down: self.out.full_down,
            marked: self.out.marked,
            waiting_datagrams: self.out.waiting(),
            refused: self.refused.clone(),
            jobs: jobs.collect(),
            events_forgotten: self.events.forgotten(),
        }
    }
}
