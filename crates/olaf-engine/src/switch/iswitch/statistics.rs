//! The switch's state as plain data, in the names of `docs/reference/statistics.md`.

use super::Switch;
use super::counters::Sent;
use crate::ids::PeerId;
use crate::sums::{ByReason, Pieces};
use crate::time::Instant;
use alloc::vec::Vec;
use olaf_wire::iswitch::Sender;
use serde::Serialize;

/// A row of the membership table (iSwitch Figure 9). Entry 0 is this switch, the parent of all others.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Entry {
    pub id: u32,
    pub address: PeerId,
    pub kind: &'static str,
    pub parent: u32,
    pub rank: u32,
    pub workers: u32,
    pub heard_ms_ago: u64,
    pub left: bool,
}

/// A job's newest generation.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct JobStatistics {
    pub job: u32,
    pub workers: u32,
    pub waiting_workers: u32,
    pub generation: Option<u8>,
    pub closed: Option<&'static str>,
    pub slots: u32,
    pub used_slots: usize,
    pub packet_floats: u32,
    pub threshold: u32,
    pub packets: u64,
    pub members: Vec<Entry>,
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
    pub passed_on: u64,
    pub controls_received: ByReason,
    pub generations: u64,
    pub closed_generations: ByReason,
    pub forced_packets: u64,
    pub non_finite_packets: u64,
    pub results_above: u64,
    pub results_above_again: u64,
    pub above: Option<PeerId>,
    pub jobs: Vec<JobStatistics>,
    pub events_forgotten: u64,
}

impl Switch {
    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self, now: Instant) -> Statistics {
        let generations = self.jobs.values().filter_map(|job| job.current.as_ref());
        let tables = generations.map(|current| current.table.counts());
        Statistics {
            pieces: Pieces::of(&self.counters.pieces, tables),
            sent: self.out.sent.clone(),
            link_full: self.out.full(),
            marked: self.out.marked,
            waiting_datagrams: self.out.waiting(),
            refused: self.counters.refused.clone(),
            passed_on: self.counters.passed_on,
            controls_received: self.counters.controls.clone(),
            generations: self.counters.generations,
            closed_generations: self.counters.closed.clone(),
            forced_packets: self.counters.forced,
            non_finite_packets: self.counters.non_finite,
            results_above: self.counters.results_above,
            results_above_again: self.counters.results_above_again,
            above: self.out.above(),
            jobs: self.jobs.iter().map(|(id, job)| of_job(id.0, now, job)).collect(),
            events_forgotten: self.events.forgotten(),
        }
    }
}

fn of_job(id: u32, now: Instant, job: &super::job::Job) -> JobStatistics {
    let current = job.current.as_ref();
    let members = current.iter().flat_map(|one| &one.members);
    let members = members.map(|member| Entry {
        id: member.id,
        address: member.peer,
        kind: match member.sender {
            Sender::Worker => "worker",
            Sender::Switch => "switch",
        },
        parent: 0,
        rank: member.rank,
        workers: member.contributors,
        heard_ms_ago: u64::try_from(now.since(member.heard).as_millis()).unwrap_or(u64::MAX),
        left: member.has_left,
    });
    JobStatistics {
        job: id,
        workers: job.workers,
        waiting_workers: job.lobby.contributors(),
        generation: current.map(|one| one.number),
        closed: current.and_then(|one| one.end).map(|end| end.reason.name()),
        slots: current.map_or(0, |one| one.table.slots()),
        used_slots: current.map_or(0, |one| one.table.open()),
        packet_floats: current.map_or(0, |one| one.packet_floats),
        threshold: current.map_or(0, |one| one.table.threshold()),
        packets: current.map_or(0, |one| one.table.first_incomplete()),
        members: members.collect(),
    }
}
