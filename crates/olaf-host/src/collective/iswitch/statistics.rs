//! The end's state as plain data, in the names of `docs/reference/statistics.md`.

use super::Worker;
use crate::collective::member::Operations;
use crate::collective::{Collective, Commit};
use alloc::collections::BTreeMap;
use core::time::Duration;
use olaf_engine::Instant;
use serde::Serialize;

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) generations: u64,
    pub(super) joins: u64,
    pub(super) leaves: u64,
    pub(super) vectors: Vectors,
    pub(super) packets: u64,
    pub(super) packets_resent: u64,
    pub(super) answered: u64,
    pub(super) wanted: u64,
    pub(super) results: u64,
    pub(super) taken: u64,
    pub(super) results_again: u64,
    pub(super) early: u64,
    pub(super) results_refused: u64,
    pub(super) lost_results: u64,
    pub(super) helps: u64,
    pub(super) helped_packets: u64,
    pub(super) fbcasts: u64,
    pub(super) acks: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStatistics {
    pub job: u32,
    pub session: u32,
    pub standing: &'static str,
    pub turned_away: Option<&'static str>,
    pub generation: Option<u8>,
    pub rank: Option<u32>,
    pub workers: u32,
    pub here: u32,
    pub operations: Operations,
    pub generations: u64,
    pub joins: u64,
    pub leaves: u64,
    pub packets: Packets,
    pub vectors: Vectors,
    pub results: Results,
    pub helps: u64,
    pub helped_packets: u64,
    pub fbcasts: u64,
    pub acks: u64,
    pub window_packets: u32,
    pub packet_floats: u32,
    pub holds: u64,
    pub round_trip_ns: Option<u64>,
    pub switch_silent_ns: u64,
    pub refused: BTreeMap<&'static str, u64>,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Packets {
    pub sent: u64,
    pub answered: u64,
    pub resent: u64,
    pub wanted: u64,
}

/// Vectors of asynchronous training. `committed` is the sum of the others.
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Vectors {
    pub committed: u64,
    pub sent: u64,
    pub stale: u64,
    pub surplus: u64,
    pub without_sum: u64,
}

impl Vectors {
    pub(super) const fn note(&mut self, commit: Commit) {
        self.committed += 1;
        *match commit {
            Commit::Send { .. } => &mut self.sent,
            Commit::Stale { .. } => &mut self.stale,
            Commit::Surplus => &mut self.surplus,
            Commit::NoSum => &mut self.without_sum,
        } += 1;
    }
}

/// `received` is the sum of `taken`, `again`, `early` and `refused`.
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Results {
    pub received: u64,
    pub taken: u64,
    pub again: u64,
    pub early: u64,
    pub refused: u64,
    pub lost: u64,
}

pub(super) fn of(end: &Worker, now: Instant) -> WorkerStatistics {
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let counts = &end.counts;
    let standing = end.standing();
    let (here, workers) = standing.here(end.config.workers);
    let generation = end.generation.as_ref();
    WorkerStatistics {
        job: end.config.job.0,
        session: end.config.session.0,
        standing: standing.name(),
        turned_away: standing.turned_away(),
        generation: generation.map(|generation| generation.number),
        rank: generation.map(|generation| generation.rank),
        workers,
        here,
        operations: end.ledger.operations(end.open_operations()),
        generations: counts.generations,
        joins: counts.joins,
        leaves: counts.leaves,
        packets: Packets {
            sent: counts.packets,
            answered: counts.answered,
            resent: counts.packets_resent,
            wanted: counts.wanted,
        },
        vectors: counts.vectors,
        results: Results {
            received: counts.results,
            taken: counts.taken,
            again: counts.results_again,
            early: counts.early,
            refused: counts.results_refused,
            lost: counts.lost_results,
        },
        helps: counts.helps,
        helped_packets: counts.helped_packets,
        fbcasts: counts.fbcasts,
        acks: counts.acks,
        window_packets: end.window.state().0,
        packet_floats: generation.map_or(0, |generation| generation.packet_floats),
        holds: generation.map_or(0, |generation| generation.holds),
        round_trip_ns: end.path.smoothed().map(nanos),
        switch_silent_ns: nanos(end.quiet.lasts(now)),
        refused: counts.refused.clone(),
    }
}
