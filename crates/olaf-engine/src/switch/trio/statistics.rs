//! What the switch counts, and its state as plain data, in the names of `docs/reference/statistics.md`.

use super::Switch;
use crate::blocks::records::Counts;
use crate::drop::DropReason;
use crate::ids::PeerId;
use crate::sums::{ByReason, refuse};
use crate::time::Instant;
use alloc::vec::Vec;
use serde::Serialize;

/// Datagrams down, each receiver counted, and up.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sent {
    /// Results to all workers.
    pub(super) results: u64,
    /// Results to one worker: it asked, or came late.
    pub(super) results_again: u64,
    /// Results and sums whose record was gone before they left.
    pub(super) results_gone: u64,
    pub(super) welcomes: u64,
    pub(super) wants: u64,
    pub(super) gone: u64,
    pub(super) closed: u64,
    pub(super) straggler_notices: u64,
    /// Sums to the switch above.
    pub(super) sums_up: u64,
    pub(super) sums_up_again: u64,
    pub(super) asks_up: u64,
    pub(super) hellos_up: u64,
    pub(super) leaves_up: u64,
}

/// Everything else.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Datagrams that reached no table, by reason.
    pub(super) refused: ByReason,
    pub(super) hellos: u64,
    pub(super) asks: u64,
    pub(super) leaves: u64,
    pub(super) terms: u64,
    /// Terms that ended, by reason.
    pub(super) closed: ByReason,
    /// Blocks that aged out.
    pub(super) aged: u64,
    /// Blocks that went without permanent stragglers.
    pub(super) excused: u64,
    pub(super) temporary: u64,
    pub(super) permanent: u64,
    pub(super) results_above: u64,
    pub(super) results_above_again: u64,
}

impl Counters {
    pub(super) fn refuse(&mut self, reason: DropReason) {
        refuse(&mut self.refused, reason);
    }
}

/// What became of the pieces: `received` is the sum of all others.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Pieces {
    pub received: u64,
    pub summed: u64,
    pub waiting: u64,
    pub late: u64,
    pub repeated: u64,
    pub overtaken: u64,
    pub given_up: u64,
    pub refused: ByReason,
}

impl From<&Counts> for Pieces {
    fn from(counts: &Counts) -> Self {
        let refused = counts.refused.iter();
        Self {
            received: counts.received,
            summed: counts.summed,
            waiting: counts.waiting,
            late: counts.late,
            repeated: counts.repeated,
            overtaken: counts.overtaken,
            given_up: counts.given_up,
            refused: refused.map(|(reason, count)| (reason.name(), *count)).collect(),
        }
    }
}

/// A worker.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Worker {
    pub rank: u8,
    pub address: PeerId,
    pub heard_ms_ago: u64,
    pub pieces: u64,
    pub late_pieces: u64,
    pub straggler_events: u64,
    pub straggling: &'static str,
}

/// A job record.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct JobStatistics {
    pub job: u8,
    pub fixed_workers: u8,
    pub waiting_workers: u32,
    pub term: Option<u32>,
    pub closed: Option<&'static str>,
    pub block_cnt_max: u16,
    pub block_grad_max: u16,
    pub block_curr_cnt: u32,
    pub block_total_cnt: u64,
    pub used_records: u32,
    pub workers: Vec<Worker>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Statistics {
    pub pieces: Pieces,
    #[serde(flatten)]
    sent: Sent,
    pub link_full: u64,
    pub marked: u64,
    pub waiting_datagrams: usize,
    pub refused: ByReason,
    pub hellos: u64,
    pub asks: u64,
    pub leaves: u64,
    pub terms: u64,
    pub closed_terms: ByReason,
    pub aged_blocks: u64,
    pub excused_blocks: u64,
    pub temporary_stragglers: u64,
    pub permanent_stragglers: u64,
    pub results_above: u64,
    pub results_above_again: u64,
    pub jobs: Vec<JobStatistics>,
    pub events_forgotten: u64,
}

impl Switch {
    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> Statistics {
        let counters = &self.counters;
        Statistics {
            pieces: Pieces::from(self.records.counts()),
            sent: self.out.sent.clone(),
            link_full: self.out.full(),
            marked: self.out.marked,
            waiting_datagrams: self.out.waiting(),
            refused: counters.refused.clone(),
            hellos: counters.hellos,
            asks: counters.asks,
            leaves: counters.leaves,
            terms: counters.terms,
            closed_terms: counters.closed.clone(),
            aged_blocks: counters.aged,
            excused_blocks: counters.excused,
            temporary_stragglers: counters.temporary,
            permanent_stragglers: counters.permanent,
            results_above: counters.results_above,
            results_above_again: counters.results_above_again,
            jobs: self.jobs.keys().map(|id| self.statistics_of(now, *id)).collect(),
            events_forgotten: self.events.forgotten(),
        }
    }

    fn statistics_of(&self, now: Instant, id: u8) -> JobStatistics {
        let job = &self.jobs[&id];
        let term = job.term.as_ref();
        let (block_curr_cnt, used_records, block_total_cnt) = self.records.usage(id);
        let members = term.into_iter().flat_map(|term| &term.members);
        let workers = members.map(|(source, member)| {
            let counts = self.records.source(id, *source);
            let ago = now.since(member.heard).as_millis();
            Worker {
                rank: *source,
                address: member.peer,
                heard_ms_ago: u64::try_from(ago).unwrap_or(u64::MAX),
                pieces: counts.pieces,
                late_pieces: counts.late,
                straggler_events: counts.events,
                straggling: member.straggling.name(),
            }
        });
        JobStatistics {
            job: id,
            fixed_workers: job.workers,
            waiting_workers: job.lobby.contributors(),
            term: term.map(|term| term.number),
            closed: term.and_then(|term| term.closed).map(|closed| closed.reason.name()),
            block_cnt_max: term.map_or(0, |term| term.window),
            block_grad_max: term.map_or(0, |term| term.gradients),
            block_curr_cnt,
            block_total_cnt,
            used_records,
            workers: workers.collect(),
        }
    }
}
