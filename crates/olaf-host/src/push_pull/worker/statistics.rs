//! The worker's state as plain data, in the names of `docs/reference/statistics.md`.

use super::{Standing, Worker};
use alloc::collections::BTreeMap;
use olaf_engine::Instant;
use olaf_wire::JobRule;
use serde::Serialize;

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStatistics {
    pub job: u32,
    pub cluster: u32,
    pub worker: u32,
    pub session: u32,
    pub joined: bool,
    pub awaits_admission: bool,
    pub turned_away: Option<&'static str>,
    pub updates: u32,
    pub contributions: u64,
    pub sent: u64,
    pub replaced_unsent: u64,
    pub datagrams: u64,
    pub hop_sequence: u32,
    pub unsent: u64,
    pub held: u64,
    pub carried: u64,
    pub discarded: u64,
    pub acknowledged: u64,
    pub not_delivered: u64,
    pub unconfirmed: u64,
    pub awaited: u64,
    pub acknowledgements: u64,
    pub model_version: u32,
    pub segments: u32,
    pub models: u64,
    pub models_missed: u64,
    pub fetches: u64,
    pub joins: u64,
    pub offers: u64,
    pub staleness_last: u32,
    pub rule: Option<Rule>,
    pub queue: Queue,
    /// The paper's P_s, now.
    pub probability: f64,
    pub notices: u64,
    pub round_trip_ns: Option<u64>,
    pub path_round_trip_ns: Option<u64>,
    pub clock_offset_ns: i64,
    pub clock_error_ns: Option<u64>,
    pub switch_alive: bool,
    pub server_alive: bool,
    pub switch_silent_ns: u64,
    pub server_silent_ns: u64,
    pub path: Path,
    pub signatures: SignatureCounts,
    pub refused: BTreeMap<&'static str, u64>,
    pub other_version: Option<u8>,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SignatureCounts {
    pub checks: bool,
    pub checked: u64,
    pub held: usize,
    pub forged: u64,
    pub unsigned: u64,
    pub wrong: u64,
    pub asked: u64,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Path {
    /// The longest IP packet that was seen to pass; none if the path was not probed.
    pub mtu_bytes: Option<u32>,
    pub segment_lanes: u32,
    pub narrow: bool,
    pub probes: u64,
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rule {
    pub kind: &'static str,
    pub aggregate: &'static str,
    pub step: &'static str,
    pub gate: &'static str,
    pub factor: f64,
    pub staleness_power: f64,
}

impl From<JobRule> for Rule {
    fn from(rule: JobRule) -> Self {
        Self {
            kind: rule.kind.name(),
            aggregate: rule.aggregate.name(),
            step: rule.step.name(),
            gate: rule.gate.name(),
            factor: rule.factor,
            staleness_power: rule.staleness_power,
        }
    }
}

#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Queue {
    pub active_clusters: u16,
    pub slots: u16,
    pub used: u16,
    pub switches: u8,
    pub round_us: u32,
}

pub(super) fn of(worker: &Worker, now: Instant) -> WorkerStatistics {
    let nanos = |d: core::time::Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let address = worker.config.address;
    let counts = &worker.outbox.counts;
    WorkerStatistics {
        job: address.job.0,
        cluster: address.cluster.0,
        worker: address.worker.0,
        session: address.session.0,
        joined: worker.standing == Standing::Joined,
        awaits_admission: worker.awaits_admission,
        turned_away: match worker.standing {
            Standing::TurnedAway(code) => Some(code.name()),
            _ => None,
        },
        updates: counts.updates,
        contributions: counts.contributions,
        sent: counts.sent,
        datagrams: counts.datagrams,
        hop_sequence: worker.outbox.hop_sequence(),
        replaced_unsent: counts.replaced_unsent,
        unsent: worker.outbox.unsent(),
        held: worker.outbox.held(),
        carried: counts.carried,
        discarded: counts.discarded,
        acknowledged: counts.acknowledged,
        not_delivered: counts.not_delivered,
        unconfirmed: counts.unconfirmed,
        awaited: counts.awaited,
        acknowledgements: worker.counters.acknowledgements,
        model_version: worker.models.newest().map_or(0, |model| model.version),
        segments: worker.shape.map_or(0, crate::Shape::segments),
        models: worker.models.completed,
        models_missed: worker.models.missed,
        fetches: worker.counters.fetches,
        joins: worker.joins.sent,
        offers: worker.counters.offers,
        staleness_last: worker.counters.staleness_last,
        rule: worker.rule.map(Rule::from),
        queue: Queue {
            active_clusters: worker.queue.active_clusters,
            slots: worker.queue.slots,
            used: worker.queue.used,
            switches: worker.queue.switches,
            round_us: worker.queue.round_us,
        },
        probability: worker.transmission.probability(now, worker.clock.server_time(now)),
        notices: worker.counters.notices,
        round_trip_ns: worker.outbox.round_trip().map(nanos),
        path_round_trip_ns: worker.joins.round_trip.smoothed().map(nanos),
        clock_offset_ns: worker.clock.offset_ns(),
        clock_error_ns: worker.clock.error_ns(),
        switch_alive: worker.switch.is_alive(),
        server_alive: worker.server.is_alive(),
        switch_silent_ns: nanos(worker.switch.silence(now)),
        server_silent_ns: nanos(worker.server.silence(now)),
        path: Path {
            mtu_bytes: worker.path.mtu_bytes(),
            segment_lanes: worker.shape.map_or(0, |shape| shape.segment_lanes),
            narrow: worker.path.is_narrow(),
            probes: worker.path.probes,
        },
        signatures: SignatureCounts {
            checks: worker.models.checked,
            checked: worker.signatures.counts.checked,
            held: worker.models.held().len(),
            forged: worker.signatures.counts.forged,
            unsigned: worker.signatures.counts.unsigned,
            wrong: worker.signatures.counts.wrong,
            asked: worker.signatures.counts.asked,
        },
        refused: worker.counters.refused.clone(),
        other_version: worker.counters.other_version,
    }
}
