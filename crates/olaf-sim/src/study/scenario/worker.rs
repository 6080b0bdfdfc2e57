//! A worker of a scenario: its place, its sender and its packets.

use super::hop::Packet;
use super::sender::{Bundle, Decision, Sender};
use super::spec::{ClusterPlace, Scenario, SpecError};
use olaf_engine::{ClusterId, Contribution, Flow, Instant, JobId, WorkerId};

pub(super) struct Worker {
    pub(super) id: u32,
    pub(super) cluster: u32,
    pub(super) switch: usize,
    pub(super) sender: Sender,
    /// Updates that became ready.
    pub(super) generated: u64,
    pub(super) contributions_sent: u64,
    pub(super) packets_sent: u32,
    bytes: u32,
}

impl Worker {
    /// A worker of the cluster at `place`, which is `cluster` by number.
    pub(super) fn new(
        scenario: &Scenario,
        (cluster, place): (u32, &ClusterPlace),
        id: u32,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            id,
            cluster,
            switch: place.switch,
            sender: Sender::new(scenario.seed, id, scenario.transmission()?),
            generated: 0,
            contributions_sent: 0,
            packets_sent: 0,
            bytes: scenario.groups[place.group].packet_bytes,
        })
    }

    /// One more update is ready.
    pub(super) fn ready(&mut self, now: Instant) -> Decision {
        self.generated += 1;
        self.sender.ready(now)
    }

    /// The next packet, which holds these updates.
    pub(super) fn packet(&mut self, held: Bundle) -> Packet {
        self.packets_sent += 1;
        self.contributions_sent += u64::from(held.count);
        let flow = Flow { job: JobId(1), cluster: ClusterId(self.cluster), segment: 0 };
        let (oldest_ns, newest_ns) = held.generated_ns;
        Packet {
            contribution: Contribution {
                sequence: self.packets_sent,
                contributors: held.count,
                weight: f64::from(held.count),
                generated_ns: (oldest_ns, newest_ns),
                ..Contribution::of_one(flow, WorkerId(self.id), newest_ns, self.bytes)
            },
            holds: vec![(self.id, newest_ns)],
            met: Vec::new(),
        }
    }
}
