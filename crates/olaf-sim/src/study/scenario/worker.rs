//! A worker of a scenario: its place, its packets, and its own age at the server.

use super::hop::Packet;
use super::sender::{Held, Sender};
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
        Packet {
            cluster: self.cluster,
            worker: self.id,
            sequence: self.sequence,
            contributors: held.count,
            generated_ns: held.generated_ns,
            hops: 0,
            bytes: self.bytes,
            holds: vec![(self.id, held.generated_ns.1)],
            met: Vec::new(),
        }
    }
}
