//! The worker's state as plain data, in the names of `docs/reference/statistics.md`.

use super::{Standing, Worker};
use crate::collective::member::Operations;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use serde::Serialize;

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) lives: u64,
    pub(super) moved: u64,
    pub(super) joins: u64,
    pub(super) leaves: u64,
    pub(super) sent: u64,
    pub(super) resent: u64,
    pub(super) too_large: u64,
    pub(super) abandoned: u64,
    pub(super) results: u64,
    pub(super) taken: u64,
    pub(super) results_again: u64,
    pub(super) float_requests: u64,
    pub(super) results_refused: u64,
    pub(super) marked: u64,
    pub(super) losses: u64,
    pub(super) time_outs: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
}

/// Fragments: `sent` is the sum of `answered`, `in_flight` and `abandoned`.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Fragments {
    pub sent: u64,
    pub answered: u64,
    pub in_flight: u64,
    pub abandoned: u64,
    pub resent: u64,
    pub too_large: u64,
}

/// Parameter packets: `received` is the sum of all others.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Parameters {
    pub received: u64,
    pub taken: u64,
    pub repeated: u64,
    pub float_requests: u64,
    pub refused: u64,
}

/// The stream to a server.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct FlowStatistics {
    pub server: usize,
    pub generation: Option<u16>,
    pub expected_sequence: u64,
    pub window_packets: u32,
    pub in_flight: u64,
    pub replaced_indices: u64,
    pub factor: f64,
    pub round_trip_ns: Option<u64>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct WorkerStatistics {
    pub job: u16,
    pub session: u32,
    pub standing: &'static str,
    pub turned_away: Option<&'static str>,
    pub rank: Option<u32>,
    pub workers: u32,
    pub operations: Operations,
    pub generations: u64,
    pub seated_anew: u64,
    pub joins: u64,
    pub leaves: u64,
    pub fragments: Fragments,
    pub parameters: Parameters,
    pub marked: u64,
    pub losses: u64,
    pub time_outs: u64,
    pub flows: Vec<FlowStatistics>,
    pub refused: BTreeMap<&'static str, u64>,
}

pub(super) fn of(end: &Worker) -> WorkerStatistics {
    let counts = &end.counts;
    let rank = match end.standing {
        Standing::In { rank, .. } => Some(rank),
        _ => None,
    };
    let flows = end.flows.iter().enumerate().map(|(server, flow)| FlowStatistics {
        server,
        generation: flow.seat.map(|seat| seat.generation),
        expected_sequence: flow.expected(),
        window_packets: flow.window_packets(),
        in_flight: flow.in_flight(),
        replaced_indices: flow.replaced,
        factor: flow.factor(flow.expected()),
        round_trip_ns: flow
            .round_trip()
            .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
    });
    let flows: Vec<FlowStatistics> = flows.collect();
    let in_flight = flows.iter().map(|flow| flow.in_flight).sum();
    WorkerStatistics {
        job: end.job,
        session: end.config.session.0,
        standing: end.standing.name(),
        turned_away: end.standing.turned_away(),
        rank,
        workers: end.config.workers,
        operations: end.ledger.operations(end.open_operations()),
        generations: counts.lives,
        seated_anew: counts.moved,
        joins: counts.joins,
        leaves: counts.leaves,
        fragments: Fragments {
            sent: counts.sent,
            answered: counts.taken,
            in_flight,
            abandoned: counts.abandoned,
            resent: counts.resent,
            too_large: counts.too_large,
        },
        parameters: Parameters {
            received: counts.results,
            taken: counts.taken,
            repeated: counts.results_again,
            float_requests: counts.float_requests,
            refused: counts.results_refused,
        },
        marked: counts.marked,
        losses: counts.losses,
        time_outs: counts.time_outs,
        flows,
        refused: counts.refused.clone(),
    }
}
