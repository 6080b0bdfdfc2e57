//! The link of a switch whose driver says when it is free, and which updates met in which entry.

use crate::types::{olaf_contributor, olaf_part};
use core::time::Duration;
use olaf_engine::link::Link;
use olaf_engine::link::pacer::Pacer;
use olaf_engine::party::active::activity;
use olaf_engine::switch::native::Fates;
use olaf_engine::{
    Arrival, ClusterId, Contribution, Discipline, Entry, EntryId, Instant, JobId, Outcome,
    Rejection,
};
use olaf_wire::QueueStatus;
use std::collections::BTreeMap;

/// Datagrams by what became of them, a merge as one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Packets {
    pub(crate) received: u64,
    pub(crate) merged: u64,
    pub(crate) replaced: u64,
    pub(crate) filtered: u64,
    pub(crate) dropped: u64,
    pub(crate) rejected: u64,
}

/// A discipline with the memory that a switch has of it.
pub(crate) struct SharedQueue {
    link: Link,
    active: Duration,
    max_hops: u8,
    fates: Fates,
    packets: Packets,
    contributors: BTreeMap<EntryId, Vec<olaf_contributor>>,
    last_heard: BTreeMap<(JobId, ClusterId), Instant>,
    hop_sequences: BTreeMap<JobId, u32>,
}

impl SharedQueue {
    pub(crate) fn new(queue: Box<dyn Discipline + Send>, active: Duration, max_hops: u8) -> Self {
        Self {
            link: Link::new(Pacer::Unlimited).with_queue(queue),
            active,
            max_hops,
            fates: Fates::default(),
            packets: Packets::default(),
            contributors: BTreeMap::new(),
            last_heard: BTreeMap::new(),
            hop_sequences: BTreeMap::new(),
        }
    }

    /// An update arrives: what became of it, or why it was rejected.
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        mut met: Vec<olaf_contributor>,
    ) -> Result<Outcome, Rejection> {
        let Contribution { flow, hops, contributors, .. } = arrival.contribution;
        self.packets.received += 1;
        if hops >= self.max_hops {
            self.packets.rejected += 1;
            self.fates.reject(contributors, Rejection::TooManyHops);
            return Err(Rejection::TooManyHops);
        }
        self.last_heard.insert((flow.job, flow.cluster), now);
        let outcome = self.link.arrive(now, arrival);
        self.fates.count(contributors, outcome);
        match outcome {
            Outcome::Appended(_) => {}
            Outcome::Merged(_) => self.packets.merged += 1,
            Outcome::Replaced { .. } => self.packets.replaced += 1,
            Outcome::Filtered(_) => self.packets.filtered += 1,
            Outcome::Dropped | Outcome::Evicted { .. } => self.packets.dropped += 1,
            Outcome::Rejected(_) => self.packets.rejected += 1,
        }
        let entry = match outcome {
            Outcome::Appended(entry) | Outcome::Merged(entry) => entry,
            Outcome::Replaced { entry, .. } => {
                for before in self.contributors.entry(entry).or_default() {
                    *before = before.gone(olaf_part::OLAF_PART_REPLACED);
                }
                entry
            }
            Outcome::Evicted { entry, evicted, .. } => {
                self.contributors.remove(&evicted);
                entry
            }
            Outcome::Filtered(entry) => {
                for filtered in &mut met {
                    *filtered = filtered.gone(olaf_part::OLAF_PART_FILTERED);
                }
                entry
            }
            Outcome::Dropped => return Ok(outcome),
            Outcome::Rejected(rejection) => return Err(rejection.into()),
        };
        self.contributors.entry(entry).or_default().extend(met);
        Ok(outcome)
    }

    /// Locks the entry whose turn it is.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        self.link.due(now).is_some()
    }

    pub(crate) fn departing(&self) -> Option<&Entry> {
        self.link.leaving_update()
    }

    /// The entry whose turn comes next.
    pub(crate) fn next(&self) -> Option<&Entry> {
        let departing = self.departing().map(|entry| entry.id);
        self.link.updates().find(|entry| Some(entry.id) != departing)
    }

    /// The departing entry has left.
    pub(crate) fn end(&mut self) -> Option<EntryId> {
        let (job, contributors) = self
            .departing()
            .map(|entry| (entry.contribution.flow.job, entry.contribution.contributors))?;
        let sequence = self.hop_sequence(job);
        self.hop_sequences.insert(job, sequence);
        self.fates.departed(contributors);
        self.free()
    }

    /// The departing entry is thrown away.
    pub(crate) fn discard(&mut self) -> Option<EntryId> {
        let contributors = self.departing().map(|entry| entry.contribution.contributors)?;
        self.fates.dropped += u64::from(contributors);
        self.packets.dropped += 1;
        self.free()
    }

    fn free(&mut self) -> Option<EntryId> {
        let now = self.link.next_departure()?;
        let id = self.link.release(now, None)?;
        self.contributors.remove(&id);
        Some(id)
    }

    /// What the next departure of a job is numbered: from 1, and after the last 1 again, as a
    /// switch does it.
    pub(crate) fn hop_sequence(&self, job: JobId) -> u32 {
        self.hop_sequences.get(&job).copied().unwrap_or(0).wrapping_add(1).max(1)
    }

    pub(crate) fn contributors(&self, entry: EntryId) -> &[olaf_contributor] {
        self.contributors.get(&entry).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn fates(&self) -> &Fates {
        &self.fates
    }

    pub(crate) fn packets(&self) -> &Packets {
        &self.packets
    }

    /// `service_ns`: how long the link takes for an update; 0: not known.
    pub(crate) fn status(&self, now: Instant, service_ns: u64) -> QueueStatus {
        let heard = self.last_heard.values().map(|heard| (*heard, 1));
        let service = Duration::from_nanos(service_ns);
        let activity = activity(heard, now, self.active, service);
        QueueStatus {
            active_clusters: u16::try_from(activity.clusters).unwrap_or(u16::MAX),
            slots: u16::try_from(self.link.slots()).unwrap_or(u16::MAX),
            used: u16::try_from(self.link.used()).unwrap_or(u16::MAX),
            switches: 1,
            round_us: u32::try_from(activity.round.as_micros()).unwrap_or(u32::MAX),
        }
    }
}
