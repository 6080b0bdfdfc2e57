//! The end's state as plain data, in the names of `docs/reference/statistics.md`.

use super::Worker;
use crate::collective::Collective;
use crate::collective::member::Operations;
use alloc::collections::BTreeMap;
use olaf_engine::Instant;
use olaf_wire::trio::Straggling;
use serde::Serialize;

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) terms: u64,
    pub(super) hellos: u64,
    pub(super) leaves: u64,
    pub(super) pieces: u64,
    pub(super) pieces_resent: u64,
    pub(super) answered: u64,
    pub(super) abandoned: u64,
    /// Blocks whose result came before this end had sent its piece.
    pub(super) spared: u64,
    pub(super) results: u64,
    pub(super) taken: u64,
    pub(super) degraded: u64,
    pub(super) early: u64,
    pub(super) early_used: u64,
    pub(super) early_discarded: u64,
    pub(super) results_refused: u64,
    pub(super) asks: u64,
    pub(super) asked_blocks: u64,
    pub(super) acknowledgements: u64,
    pub(super) time_outs: u64,
    pub(super) wanted: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
    /// What the switch said last of each worker.
    pub(super) stragglers: BTreeMap<u8, Straggling>,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStatistics {
    pub job: u32,
    pub session: u32,
    pub standing: &'static str,
    pub turned_away: Option<&'static str>,
    pub term: Option<u32>,
    pub rank: Option<u32>,
    pub workers: u32,
    pub operations: Operations,
    pub terms: u64,
    pub hellos: u64,
    pub leaves: u64,
    pub pieces: Pieces,
    pub results: Results,
    pub asks: u64,
    pub asked_blocks: u64,
    pub acknowledgements: u64,
    pub time_outs: u64,
    pub window_blocks: u32,
    pub round_trip_ns: Option<u64>,
    pub switch_alive: bool,
    pub switch_silent_ns: u64,
    pub stragglers: BTreeMap<u8, &'static str>,
    pub refused: BTreeMap<&'static str, u64>,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pieces {
    pub sent: u64,
    pub answered: u64,
    pub in_flight: u64,
    pub abandoned: u64,
    pub spared: u64,
    pub resent: u64,
    pub wanted: u64,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Results {
    pub received: u64,
    pub taken: u64,
    pub degraded: u64,
    pub early: u64,
    pub early_used: u64,
    pub early_discarded: u64,
    pub early_waiting: u64,
    pub refused: u64,
}

pub(super) fn of(end: &Worker, now: Instant) -> WorkerStatistics {
    let nanos = |d: core::time::Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let counts = &end.counts;
    let standing = end.standing();
    let term = end.term.as_ref();
    let open = term.into_iter().flat_map(|term| &term.open);
    WorkerStatistics {
        job: end.config.job.0,
        session: end.config.session.0,
        standing: standing.name(),
        turned_away: standing.turned_away(),
        term: term.map(|term| term.number),
        rank: term.map(|term| term.source.into()),
        workers: end.config.workers,
        operations: end.ledger.operations(end.open_operations()),
        terms: counts.terms,
        hellos: counts.hellos,
        leaves: counts.leaves,
        pieces: Pieces {
            sent: counts.pieces,
            answered: counts.answered,
            in_flight: open.map(super::operations::Open::in_flight).sum(),
            abandoned: counts.abandoned,
            spared: counts.spared,
            resent: counts.pieces_resent,
            wanted: counts.wanted,
        },
        results: Results {
            received: counts.results,
            taken: counts.taken,
            degraded: counts.degraded,
            early: counts.early,
            early_used: counts.early_used,
            early_discarded: counts.early_discarded,
            early_waiting: term.map_or(0, |term| term.early.len() as u64),
            refused: counts.results_refused,
        },
        asks: counts.asks,
        asked_blocks: counts.asked_blocks,
        acknowledgements: counts.acknowledgements,
        time_outs: counts.time_outs,
        window_blocks: end.window.state().0,
        round_trip_ns: end.path.smoothed().map(nanos),
        switch_alive: !end.quiet.is_silent(),
        switch_silent_ns: nanos(end.quiet.lasts(now)),
        stragglers: counts.stragglers.iter().map(|(rank, what)| (*rank, what.name())).collect(),
        refused: counts.refused.clone(),
    }
}
