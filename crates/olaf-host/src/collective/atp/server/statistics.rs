//! The server's state as plain data, in the names of `docs/reference/statistics.md`.

use super::AtpServer;
use crate::collective::atp::seats::Path;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

/// Gradient fragment packets by their fate: `received` is the sum of all others, and of those among
/// `refused` that are gradient fragment packets.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Gradients {
    pub received: u64,
    /// Added: of one worker.
    pub singles: u64,
    /// Added: a switch's sum of several.
    pub sums: u64,
    pub repeated: u64,
    /// Some of their workers were in the sum already.
    pub overlapping: u64,
    /// The fragment was complete.
    pub late: u64,
    /// A sum ran over.
    pub ran_over: u64,
    /// Integers of a fragment that waits for f32.
    pub not_float: u64,
    pub mismatched: u64,
    pub refused: u64,
}

/// Parameter packets, each receiver counted.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Parameters {
    pub sent: u64,
    pub again: u64,
    /// Requests for f32.
    pub requests: u64,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) gradients: Gradients,
    pub(super) parameters: Parameters,
    pub(super) fragments: u64,
    pub(super) non_finite: u64,
    pub(super) collisions: u64,
    pub(super) replaced: u64,
    pub(super) joins: u64,
    pub(super) leaves: u64,
    pub(super) generations: u64,
    pub(super) seated_anew: u64,
    pub(super) misplaced: u64,
    pub(super) closed: BTreeMap<&'static str, u64>,
    pub(super) link_full: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
}

/// A worker.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct WorkerOfJob {
    pub rank: usize,
    pub group: u32,
    pub first_switch: u32,
    pub second_switch: u32,
    pub switches: Vec<u32>,
}

/// A job.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct JobStatistics {
    pub job: u16,
    pub server: u8,
    pub workers: u32,
    pub waiting_workers: usize,
    pub generation: Option<u16>,
    pub closed: Option<&'static str>,
    pub open_sequence: u64,
    pub levels: usize,
    pub members: Vec<WorkerOfJob>,
    pub misplaced: Vec<Misplaced>,
}

/// A worker that is elsewhere than the topology says.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct Misplaced {
    pub rank: u32,
    pub planned: Vec<String>,
    pub found: Vec<String>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "each field stands in docs/reference/statistics.md")]
pub struct ServerStatistics {
    pub gradients: Gradients,
    pub parameters: Parameters,
    pub fragments: u64,
    pub non_finite_packets: u64,
    pub collisions: u64,
    pub replaced_indices: u64,
    pub joins: u64,
    pub leaves: u64,
    pub generations: u64,
    pub seated_anew: u64,
    pub misplaced: u64,
    pub closed_generations: BTreeMap<&'static str, u64>,
    pub link_full: u64,
    pub refused: BTreeMap<&'static str, u64>,
    pub jobs: Vec<JobStatistics>,
    pub events_forgotten: u64,
}

impl AtpServer {
    fn names(&self, path: Option<Path>) -> Vec<String> {
        path.map(|path| self.topology.names(&path)).unwrap_or_default()
    }

    /// Everything counted so far.
    #[must_use]
    pub fn statistics(&self) -> ServerStatistics {
        let jobs = self.jobs.iter().map(|((number, server), job)| {
            let current = job.current.as_ref();
            let members = current.into_iter().flat_map(|current| {
                let seated = current.members.iter().zip(&current.seating.seats).enumerate();
                seated.map(|(rank, (member, seat))| WorkerOfJob {
                    rank,
                    group: seat.group(),
                    first_switch: member.path.0[0],
                    second_switch: member.path.0[1],
                    switches: member.path.switches().collect(),
                })
            });
            let misplaced = current.into_iter().flat_map(|current| {
                let each = current.misplaced.iter();
                each.map(|rank| Misplaced {
                    rank: *rank,
                    planned: self.names(self.topology.path(*number, *rank)),
                    found: self.names(current.members.get(*rank as usize).map(|of| of.path)),
                })
            });
            JobStatistics {
                job: *number,
                server: *server,
                workers: job.workers,
                waiting_workers: job.lobby.len(),
                generation: current.map(|current| current.number),
                closed: current.and_then(|current| current.end).map(|end| end.reason.name()),
                open_sequence: current.map_or(0, |current| current.fragments.open()),
                levels: current.map_or(0, |current| current.seating.levels),
                members: members.collect(),
                misplaced: misplaced.collect(),
            }
        });
        let counts = &self.counts;
        ServerStatistics {
            gradients: counts.gradients.clone(),
            parameters: counts.parameters.clone(),
            fragments: counts.fragments,
            non_finite_packets: counts.non_finite,
            collisions: counts.collisions,
            replaced_indices: counts.replaced,
            joins: counts.joins,
            leaves: counts.leaves,
            generations: counts.generations,
            seated_anew: counts.seated_anew,
            misplaced: counts.misplaced,
            closed_generations: counts.closed.clone(),
            link_full: counts.link_full,
            refused: counts.refused.clone(),
            jobs: jobs.collect(),
            events_forgotten: self.events.forgotten(),
        }
    }
}
