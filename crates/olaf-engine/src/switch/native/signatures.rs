//! The server's signatures on their way down. A switch has no key to make one, and passes each on as
//! it came: to the receivers of the model that it is of, or to the worker that asked.

use super::answers::Receiver;
use super::ports::Message;
use super::{AnswerTo, Switch};
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, Verdict};
use crate::ids::{PeerId, PortId, WorkerId};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::{Packet, Signature};

impl Switch {
    pub(super) fn handle_signature(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        bytes: &[u8],
    ) -> Verdict {
        let signature = match Signature::parse(packet) {
            Ok(signature) => signature,
            Err(refusal) => return Verdict::Drop(DropReason::Malformed(refusal)),
        };
        let address = signature.address;
        let (id, cluster) = (address.job, address.cluster);
        if let Err(reason) = self.heard_server(now, id, from.peer, signature.epoch, false) {
            return Verdict::Drop(reason);
        }
        let receivers = if address.worker == WorkerId::ALL {
            self.receivers_of_version(&signature)
        } else {
            Vec::from([Receiver::Worker(address.worker)])
        };
        // All receivers behind a port get the very same bytes, each of them once.
        let mut ports: BTreeMap<PortId, Vec<PeerId>> = BTreeMap::new();
        for receiver in receivers {
            let Some((place, receiver)) = self.place_of(id, cluster, receiver) else { continue };
            // The answer to a worker's question is for that life of it.
            if address.worker != WorkerId::ALL && receiver.session != address.session {
                continue;
            }
            if !self.proofs.is_proven(&(id, place.peer)) {
                self.counters.refuse(DropReason::NotProven);
                continue;
            }
            let peers = ports.entry(place.port).or_default();
            if !peers.contains(&place.peer) {
                peers.push(place.peer);
            }
        }
        if ports.is_empty() {
            return Verdict::Drop(DropReason::UnknownReceiver);
        }
        for (port, peers) in ports {
            let copies = peers.len();
            let to = match peers[..] {
                [peer] => Receivers::One(peer),
                _ => Receivers::Many(peers.into()),
            };
            let message = Message::Untouched(bytes.into());
            if let Verdict::Drop(reason) = self.send_to(now, port, to, from.class, message) {
                (0..copies).for_each(|_| self.counters.refuse(reason));
            }
        }
        Verdict::Absorb
    }

    /// The receivers of the model that the signature is of; the whole cluster where this switch does
    /// not know them any more. A signature that nobody waits for does no harm.
    fn receivers_of_version(&self, signature: &Signature) -> Vec<Receiver> {
        let Some(job) = self.jobs.get(&signature.address.job) else { return Vec::new() };
        let cluster = signature.address.cluster;
        let known = job.clusters.get(&cluster).and_then(|known| known.answering.as_ref());
        let known = known.filter(|_| self.config.answer_to != AnswerTo::Cluster);
        match known.filter(|known| known.is_of(signature.version)) {
            Some(known) => known.receivers().collect(),
            None => job.receivers_in(cluster),
        }
    }
}
