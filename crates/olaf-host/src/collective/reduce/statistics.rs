//! The end's state as plain data, in the names of `docs/reference/statistics.md`.

use super::Reducer;
use alloc::collections::BTreeMap;
use olaf_engine::Instant;
use serde::Serialize;

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) operations_again: u64,
    pub(super) generations: u64,
    pub(super) joins: u64,
    pub(super) leaves: u64,
    pub(super) pieces: u64,
    pub(super) pieces_resent: u64,
    pub(super) answered: u64,
    pub(super) in_flight: u64,
    pub(super) results: u64,
    pub(super) taken: u64,
    pub(super) early: u64,
    pub(super) early_used: u64,
    pub(super) early_discarded: u64,
    pub(super) unneeded: u64,
    pub(super) asks: u64,
    pub(super) asked_blocks: u64,
    pub(super) acknowledgements: u64,
    pub(super) time_outs: u64,
    pub(super) wanted: u64,
    pub(super) lost_results: u64,
    pub(super) results_refused: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
    pub(super) other_version: Option<u8>,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Debug, Serialize)]
pub struct ReducerStatistics {
    pub job: u32,
    pub session: u32,
    pub standing: &'static str,
    pub turned_away: Option<&'static str>,
    pub generation: Option<u32>,
    pub rank: Option<u32>,
    pub workers: u32,
    pub here: u32,
    pub operations: Operations,
    pub generations: u64,
    pub joins: u64,
    pub leaves: u64,
    pub pieces: Pieces,
    pub results: Results,
    pub asks: u64,
    pub asked_blocks: u64,
    pub acknowledgements: u64,
    pub time_outs: u64,
    pub window_blocks: u32,
    pub holds: u32,
    pub slots: u32,
    pub round_trip_ns: Option<u64>,
    pub switch_alive: bool,
    pub switch_silent_ns: u64,
    pub refused: BTreeMap<&'static str, u64>,
    pub other_version: Option<u8>,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Operations {
    pub begun: u64,
    pub done: u64,
    pub failed: u64,
    pub open: u64,
    pub again: u64,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pieces {
    pub sent: u64,
    pub answered: u64,
    pub in_flight: u64,
    pub abandoned: u64,
    pub resent: u64,
    pub wanted: u64,
    pub unneeded: u64,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Results {
    pub received: u64,
    pub taken: u64,
    pub early: u64,
    pub early_used: u64,
    pub early_discarded: u64,
    pub early_waiting: u64,
    pub refused: u64,
    pub lost: u64,
}

pub(super) fn of(end: &Reducer, now: Instant) -> ReducerStatistics {
    let nanos = |d: core::time::Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let counts = &end.counts;
    let standing = end.standing();
    let (here, workers) = standing.here(end.config.workers);
    let of = end.ledger.operations(end.open_operations());
    let generation = end.generation.as_ref();
    ReducerStatistics {
        job: end.config.job.0,
        session: end.config.session.0,
        standing: standing.name(),
        turned_away: standing.turned_away(),
        generation: generation.map(|generation| generation.address.generation),
        rank: generation.map(|generation| generation.address.rank),
        workers,
        here,
        operations: Operations {
            begun: of.begun,
            done: of.done,
            failed: of.failed,
            open: of.open,
            again: counts.operations_again,
        },
        generations: counts.generations,
        joins: counts.joins,
        leaves: counts.leaves,
        pieces: Pieces {
            sent: counts.pieces,
            answered: counts.answered,
            in_flight: counts.in_flight,
            abandoned: counts.pieces - counts.answered - counts.in_flight,
            resent: counts.pieces_resent,
            wanted: counts.wanted,
            unneeded: counts.unneeded,
        },
        results: Results {
            received: counts.results,
            taken: counts.taken,
            early: counts.early,
            early_used: counts.early_used,
            early_discarded: counts.early_discarded,
            early_waiting: generation.map_or(0, |generation| generation.early.len() as u64),
            refused: counts.results_refused,
            lost: counts.lost_results,
        },
        asks: counts.asks,
        asked_blocks: counts.asked_blocks,
        acknowledgements: counts.acknowledgements,
        time_outs: counts.time_outs,
        window_blocks: end.window.state().0,
        holds: generation.map_or(0, |generation| generation.blocks.holds()),
        slots: generation.map_or(0, |generation| generation.blocks.slots()),
        round_trip_ns: end.path.smoothed().map(nanos),
        switch_alive: !end.quiet.is_silent(),
        switch_silent_ns: nanos(end.quiet.lasts(now)),
        refused: counts.refused.clone(),
        other_version: counts.other_version,
    }
}
