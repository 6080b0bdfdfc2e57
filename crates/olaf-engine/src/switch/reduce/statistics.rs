//! The switch's state as plain data, in the names of `docs/reference/statistics.md`.

use super::Switch;
use super::counters::Sent;
use super::generation::Generation;
use crate::blocks::pool::State;
use crate::ids::PeerId;
use crate::sums::{ByReason, Pieces};
use crate::time::Instant;
use alloc::vec::Vec;
use serde::Serialize;

/// A worker.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Worker {
    pub rank: u32,
    pub address: PeerId,
    pub heard_ms_ago: u64,
    pub left: bool,
}

/// A job's newest generation.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct JobStatistics {
    pub job: u32,
    pub fixed_workers: Option<u32>,
    pub waiting_workers: usize,
    pub generation: Option<u32>,
    pub closed: Option<&'static str>,
    pub slots: u32,
    pub used_slots: u64,
    pub block_bytes: u32,
    pub operation: u32,
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
    pub joins: u64,
    pub asks: u64,
    pub leaves: u64,
    pub generations: u64,
    pub closed_generations: ByReason,
    pub overdue_blocks: u64,
    pub results_above: u64,
    pub results_above_again: u64,
    pub jobs: Vec<JobStatistics>,
    pub events_forgotten: u64,
}

impl Switch {
    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> Statistics {
        let generations = self.jobs.values().flat_map(super::job::Job::generations);
        let tables = generations.map(|generation| generation.pool.counts());
        let jobs = self.jobs.iter().map(|(id, job)| JobStatistics {
            waiting_workers: job.lobby.len(),
            fixed_workers: (job.fixed > 0).then_some(job.fixed),
            ..of_generation(id.0, now, job.current.as_ref())
        });
        Statistics {
            pieces: Pieces::of(&self.counters.pieces, tables),
            sent: self.out.sent.clone(),
            link_full: self.out.full(),
            marked: self.out.marked,
            waiting_datagrams: self.out.waiting(),
            refused: self.counters.refused.clone(),
            joins: self.counters.joins,
            asks: self.counters.asks,
            leaves: self.counters.leaves,
            generations: self.counters.generations,
            closed_generations: self.counters.closed.clone(),
            overdue_blocks: self.counters.overdue,
            results_above: self.counters.results_above,
            results_above_again: self.counters.results_above_again,
            jobs: jobs.collect(),
            events_forgotten: self.events.forgotten(),
        }
    }
}

fn of_generation(job: u32, now: Instant, generation: Option<&Generation>) -> JobStatistics {
    let members = generation.iter().flat_map(|one| (0..).zip(&one.members));
    let workers = members.map(|(rank, member)| Worker {
        rank,
        address: member.peer,
        heard_ms_ago: u64::try_from(now.since(member.heard).as_millis()).unwrap_or(u64::MAX),
        left: member.has_left,
    });
    JobStatistics {
        job,
        fixed_workers: None,
        waiting_workers: 0,
        generation: generation.map(|one| one.number),
        closed: generation.and_then(|one| one.end).map(|end| end.reason.name()),
        slots: generation.map_or(0, |one| one.pool.slots()),
        used_slots: generation.map_or(0, used_slots),
        block_bytes: generation.map_or(0, |one| one.block_bytes),
        operation: generation.map_or(0, |one| one.shapes.next().0),
        workers: workers.collect(),
    }
}

/// Slots with an incomplete block.
fn used_slots(generation: &Generation) -> u64 {
    let first = generation.pool.first_incomplete();
    let cells = (first..).map_while(|block| generation.pool.cell(block));
    cells.filter(|cell| cell.state() == State::Open).count() as u64
}
