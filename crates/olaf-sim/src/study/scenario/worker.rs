//! A worker of a scenario: its place, its packets, and its own age at the server.

use super::hop::Packet;
use super::sender::{Held, Sender};
use olaf_engine::{ClusterId, Contribution, Flow, JobId, WorkerId};
use olaf_host::age::AgeOfModel;

pub(super) struct Worker {
    pub(super) id: u32,
    pub(super) cluster: u32,
    pub(super) switch: usize,
    pub(super) sender: Sender,
    /// Age of the newest of its own contributions at the server.
    pub(super) age: AgeOfModel,
    bytes: u32,
    sequence: u32,
}

impl Worker {
    pub(super) fn new(place: (u32, u32, usize), bytes: u32, sender: Sender) -> Self {
        let (id, cluster, switch) = place;
        Self { id, cluster, switch, sender, age: AgeOfModel::new(), bytes, sequence: 0 }
    }

    /// The next packet, which holds these updates.
    pub(super) fn packet(&mut self, held: Held) -> Packet {
        self.sequence += 1;
        let flow = Flow { job: JobId(1), cluster: ClusterId(self.cluster), segment: 0 };
        let (oldest_ns, newest_ns) = held.generated_ns;
        Packet {
            contribution: Contribution {
                sequence: self.sequence,
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
