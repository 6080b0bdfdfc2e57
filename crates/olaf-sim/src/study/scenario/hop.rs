//! A switch of a scenario: the very link of a real one, and which workers are in each entry.

use super::spec::SwitchSpec;
use core::time::Duration;
use olaf_engine::link::pacer::{Pacer, RatePacer};
use olaf_engine::link::{Head, Link};
use olaf_engine::party::active::activity;
use olaf_engine::queue::discipline::{Arrival, EntryId, Outcome};
use olaf_engine::switch::native::QueueKind;
use olaf_engine::{BitsPerSecond, Contribution, Instant};
use olaf_wire::QueueStatus;
use serde::Serialize;
use std::collections::BTreeMap;

/// An update on its way: one worker's, or a merge.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) contribution: Contribution,
    /// Newest generation time of each worker whose contribution is in it.
    pub(super) holds: Vec<(u32, u64)>,
    /// Workers whose contribution met it and is not in it: they hear its answer all the same.
    pub(super) met: Vec<u32>,
}

impl Packet {
    pub(super) const fn cluster(&self) -> u32 {
        self.contribution.flow.cluster.0
    }
}

/// Contributions by fate at one switch; `packets_*` count datagrams, a merge as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HopFates {
    /// Came in.
    pub received: u64,
    /// Left in a datagram with no other.
    pub sent_alone: u64,
    /// Left in a datagram with others.
    pub merged: u64,
    /// Gave way to a newer one of the same worker, or a better one.
    pub replaced: u64,
    /// Below the reward gate.
    pub filtered: u64,
    /// Met a full queue.
    pub dropped: u64,
    /// Refused.
    pub rejected: u64,
    /// Still here at the end.
    pub waiting: u64,
    /// Datagrams that came in.
    pub packets_received: u64,
    /// Datagrams that met others here and were merged into them.
    pub packets_merged: u64,
    /// Datagrams that met a full queue.
    pub packets_dropped: u64,
    /// Datagrams that left.
    pub packets_sent: u64,
}

/// What came of an arrival.
pub(super) struct Arrived {
    /// It is in the queue, alone or merged, or there is a better one.
    pub(super) taken: bool,
    /// When the departure ends that began with it.
    pub(super) departure_ends: Option<Instant>,
}

/// Whose contributions have met in an entry; as in [`Packet`].
#[derive(Default)]
struct Inside {
    holds: Vec<(u32, u64)>,
    met: Vec<u32>,
}

pub(super) struct Hop {
    link: Link,
    /// The contributors of each entry.
    inside: BTreeMap<EntryId, Inside>,
    /// When each cluster was last heard.
    heard: BTreeMap<u32, Instant>,
    pub(super) upstream: Option<usize>,
    pub(super) delay: Duration,
    /// How long the newest departure takes.
    service_ns: u64,
    pub(super) fates: HopFates,
}

impl Hop {
    pub(super) fn new(spec: &SwitchSpec, upstream: Option<usize>, head: Head) -> Self {
        let kind = QueueKind::parse(&spec.queue).expect("checked with the scenario");
        let rate = BitsPerSecond::new(spec.rate_bps).expect("checked with the scenario");
        Self {
            link: Link::new(Pacer::Rate(RatePacer::new(rate)))
                .with_queue(kind.queue(spec.slots, spec.gate))
                .with_head(head),
            inside: BTreeMap::new(),
            heard: BTreeMap::new(),
            upstream,
            delay: Duration::from_nanos(spec.delay_ns),
            service_ns: 0,
            fates: HopFates::default(),
        }
    }

    /// A datagram comes in.
    pub(super) fn arrive(&mut self, now: Instant, mut packet: Packet) -> Arrived {
        let count = u64::from(packet.contribution.contributors);
        self.heard.insert(packet.cluster(), now);
        self.fates.received += count;
        self.fates.packets_received += 1;
        packet.contribution.hops += 1;
        let was_idle = self.link.departure().is_none();
        let outcome =
            self.link.arrive(now, &Arrival { contribution: packet.contribution, lanes: &[] });
        match outcome {
            Outcome::Appended(id) => {
                self.inside.insert(id, Inside { holds: packet.holds, met: packet.met });
            }
            Outcome::Merged(id) => {
                let inside = self.inside.entry(id).or_default();
                inside.holds.extend(packet.holds);
                inside.met.extend(packet.met);
                self.fates.packets_merged += 1;
            }
            Outcome::Replaced { entry, displaced } => {
                let inside = self.inside.entry(entry).or_default();
                inside.met.extend(inside.holds.drain(..).map(|(worker, _)| worker));
                inside.holds.extend(packet.holds);
                self.fates.replaced += u64::from(displaced);
            }
            Outcome::Filtered(id) => {
                let inside = self.inside.entry(id).or_default();
                inside.met.extend(packet.holds.into_iter().map(|(worker, _)| worker));
                self.fates.filtered += count;
            }
            Outcome::Evicted { entry, evicted, dropped, .. } => {
                self.inside.remove(&evicted);
                self.inside.insert(entry, Inside { holds: packet.holds, met: packet.met });
                self.fates.dropped += u64::from(dropped);
                self.fates.packets_dropped += 1;
            }
            Outcome::Dropped => {
                self.fates.dropped += count;
                self.fates.packets_dropped += 1;
            }
            Outcome::Rejected(_) => self.fates.rejected += count,
        }
        let taken = !matches!(outcome, Outcome::Dropped | Outcome::Rejected(_));
        let departure_ends = if was_idle { self.begun() } else { None };
        Arrived { taken, departure_ends }
    }

    /// The departure under way has ended: what has left, and when the next one ends.
    pub(super) fn depart(&mut self, now: Instant) -> (Packet, Option<Instant>) {
        self.link.due(now).expect("a departure was planned when it began");
        let entry = self.link.leaving_update().expect("nothing but updates is sent here");
        let Inside { holds, met } = self.inside.remove(&entry.id).unwrap_or_default();
        let packet = Packet { contribution: entry.contribution, holds, met };
        self.link.release(now, None);
        let count = u64::from(packet.contribution.contributors);
        if count == 1 {
            self.fates.sent_alone += 1;
        } else {
            self.fates.merged += count;
        }
        self.fates.packets_sent += 1;
        (packet, self.begun())
    }

    /// When the departure that has just begun ends, if one has.
    fn begun(&mut self) -> Option<Instant> {
        let departure = self.link.departure()?;
        self.service_ns = departure.end.0 - departure.start.0;
        Some(departure.end)
    }

    /// The queue now, and how long it takes to serve each active cluster once, nanoseconds.
    pub(super) fn status(&self, now: Instant, window: Duration) -> (QueueStatus, u64) {
        let heard = self.heard.values().map(|heard| (*heard, 1));
        let activity = activity(heard, now, window, Duration::from_nanos(self.service_ns));
        let small = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let status = QueueStatus {
            active_clusters: small(activity.clusters),
            slots: small(self.link.slots()),
            used: small(self.link.used()),
            switches: 1,
            round_us: 0,
        };
        (status, u64::try_from(activity.round.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The fates, with what still waits.
    pub(super) fn settle(&self) -> HopFates {
        let waiting =
            self.link.updates().map(|entry| u64::from(entry.contribution.contributors)).sum();
        HopFates { waiting, ..self.fates }
    }
}
