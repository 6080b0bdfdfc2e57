//! What comes down: acknowledgements and segments of the model.

use crate::offsets::{LANE, answer as at};
use crate::packet::{Address, Kind, Packet, Refusal, emit_common};
use crate::update::{lane_count, write_lanes};

/// State of a switch's queue, written into every answer that passes back (OLAF §5,
/// "Reverse-path Signaling": N, Qmax and Qn).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueStatus {
    /// Clusters heard within the switch's window.
    pub active_clusters: u16,
    /// Segments the queue can hold.
    pub slots: u16,
    /// Segments it holds.
    pub used: u16,
    /// Switches that have looked at this status; 0 means no switch wrote one.
    pub switches: u8,
    /// Time in which a queue of the path serves each active cluster once, microseconds: the
    /// longest of the path, which need not be that of the queue above; 0: not known.
    pub round_us: u32,
}

impl QueueStatus {
    /// What an answer tells below a switch whose own status is `own`, when it told this above it
    /// (OLAF §5): of several queues on the path the most crowded one, the one with the most active
    /// clusters for each slot, and the longest round. At equals the queue nearer to the worker.
    #[must_use]
    pub fn passing(self, own: Self) -> Self {
        let crowding =
            |of: Self, other: Self| u32::from(of.active_clusters) * u32::from(other.slots.max(1));
        let above = self.switches > 0 && crowding(self, own) > crowding(own, self);
        Self {
            switches: self.switches.saturating_add(1),
            round_us: self.round_us.max(own.round_us),
            ..if above { self } else { own }
        }
    }
}

/// How old the server's clusters are, of late: what a sender may compare itself with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ages {
    /// The answered cluster's Age-of-Model, averaged over about a second, microseconds; 0: not
    /// known.
    pub own_us: u32,
    /// The same, averaged over all clusters that the server serves.
    pub mean_us: u32,
}

/// What became of a receiver's own updates in one flow, by the receiver's count of them
/// ([`crate::Update::flow_sequence`]). Nothing is said of a number that is in neither mask: it is on
/// its way, or was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ends {
    /// The number that bit 0 of both masks stands for; bit `i` stands for the number `i` before it.
    /// 0: nothing is said.
    pub newest: u32,
    /// Those that reached the server.
    pub delivered: u64,
    /// Those that never will: replaced by a newer one, filtered, dropped or refused on the way.
    pub ended: u64,
}

impl Ends {
    /// Says nothing.
    pub const NONE: Self = Self { newest: 0, delivered: 0, ended: 0 };

    /// The bit that stands for a number, if one does.
    #[must_use]
    pub const fn bit(newest: u32, number: u32) -> Option<u64> {
        let behind = newest.wrapping_sub(number);
        if behind < 64 { Some(1 << behind) } else { None }
    }

    /// Returns true if that number is said to have reached the server.
    #[must_use]
    pub fn is_delivered(&self, number: u32) -> bool {
        self.newest != 0
            && Self::bit(self.newest, number).is_some_and(|bit| self.delivered & bit != 0)
    }

    /// Returns true if that number is said to have ended on the way.
    #[must_use]
    pub fn has_ended(&self, number: u32) -> bool {
        self.newest != 0 && Self::bit(self.newest, number).is_some_and(|bit| self.ended & bit != 0)
    }
}

/// An answer to delivered updates: an acknowledgement, with a segment of the model or without.
///
/// Upward, as an *offer*, the same message carries a worker's model to a server that has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The cluster answered; `worker` is [`crate::WorkerId::ALL`] or the one that asked.
    pub address: Address,
    /// The newest hop sequence of the receiver that this answers, and with it all before: no sender
    /// waits for an answer to those any more. What became of each is in `ends`.
    pub acknowledges: u32,
    /// Which segment of the model the lanes are; of an acknowledgement, the segment delivered.
    pub segment: u32,
    /// Segments the model has.
    pub segments: u32,
    /// Version of the model the lanes are of.
    pub model_version: u32,
    /// Parameters of the whole model.
    pub parameters: u32,
    /// The server's life: changes when it restarts.
    pub epoch: u32,
    /// Newest model version among the delivered contributions of the cluster.
    pub delivered_version: u32,
    /// Newest generation time among the delivered contributions of the cluster: its age at the
    /// server is `server_time_ns` minus this.
    pub delivered_newest_ns: u64,
    /// The server's clock when it answered, nanoseconds of Unix time.
    pub server_time_ns: u64,
    /// The queue on the path.
    pub queue: QueueStatus,
    /// Ages at the server.
    pub ages: Ages,
    /// What became of the receiver's updates in the flow of `address.cluster` and `segment`.
    pub ends: Ends,
}

impl Answer {
    /// Reads an answer's header; its lanes are [`Packet::lanes`].
    ///
    /// # Errors
    /// [`Refusal::BadField`] where fields contradict each other.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        let lanes = packet.lanes().len() / LANE;
        match (packet.kind(), lanes) {
            (Kind::Acknowledgement, 0) | (Kind::Model, 1..) => {}
            (Kind::Acknowledgement | Kind::Model, _) => return Err(Refusal::BadField("lanes")),
            _ => return Err(Refusal::BadField("kind")),
        }
        let answer = Self {
            address: packet.address(),
            acknowledges: packet.u32(at::ACKNOWLEDGES),
            segment: packet.u32(at::SEGMENT),
            segments: packet.u32(at::SEGMENTS),
            model_version: packet.u32(at::MODEL_VERSION),
            parameters: packet.u32(at::PARAMETERS),
            epoch: packet.u32(at::EPOCH),
            delivered_version: packet.u32(at::DELIVERED_VERSION),
            delivered_newest_ns: packet.u64(at::DELIVERED_NEWEST),
            server_time_ns: packet.u64(at::SERVER_TIME),
            queue: QueueStatus {
                active_clusters: packet.u16(at::ACTIVE_CLUSTERS),
                slots: packet.u16(at::SLOTS),
                used: packet.u16(at::USED),
                switches: packet.byte(at::SWITCHES),
                round_us: packet.u32(at::ROUND_US),
            },
            ages: Ages { own_us: packet.u32(at::OWN_AGE_US), mean_us: packet.u32(at::MEAN_AGE_US) },
            ends: Ends {
                newest: packet.u32(at::FLOW_NEWEST),
                delivered: packet.u64(at::DELIVERED),
                ended: packet.u64(at::ENDED),
            },
        };
        if answer.segment >= answer.segments {
            return Err(Refusal::BadField("segment"));
        }
        if answer.ends.delivered & answer.ends.ended != 0 {
            return Err(Refusal::BadField("ends"));
        }
        if lanes > answer.parameters as usize {
            return Err(Refusal::BadField("parameters"));
        }
        Ok(answer)
    }

    /// Writes the answer, a [`Kind::Model`] when it has lanes; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than header and lanes.
    pub fn emit(&self, lanes: &[f32], buf: &mut [u8]) -> usize {
        self.emit_header(lanes.len(), buf);
        let len = at::PAYLOAD + lanes.len() * LANE;
        write_lanes(lanes, &mut buf[at::PAYLOAD..len]);
        len
    }

    /// The same, with lanes that are in wire order already: those of a [`Packet`] that is passed on.
    ///
    /// # Panics
    /// When `buf` is shorter than header and lanes.
    pub fn emit_in_wire_order(&self, lanes: &[u8], buf: &mut [u8]) -> usize {
        self.emit_header(lanes.len() / LANE, buf);
        let len = at::PAYLOAD + lanes.len();
        buf[at::PAYLOAD..len].copy_from_slice(lanes);
        len
    }

    fn emit_header(&self, lanes: usize, buf: &mut [u8]) {
        let kind = if lanes == 0 { Kind::Acknowledgement } else { Kind::Model };
        let mut writer = emit_common(buf, kind, &self.address);
        writer.put(at::ACKNOWLEDGES, self.acknowledges.to_be_bytes());
        writer.put(at::SEGMENT, self.segment.to_be_bytes());
        writer.put(at::SEGMENTS, self.segments.to_be_bytes());
        writer.put(at::MODEL_VERSION, self.model_version.to_be_bytes());
        writer.put(at::PARAMETERS, self.parameters.to_be_bytes());
        writer.put(at::LANES, lane_count(lanes).to_be_bytes());
        writer.put(at::EPOCH, self.epoch.to_be_bytes());
        writer.put(at::DELIVERED_VERSION, self.delivered_version.to_be_bytes());
        writer.put(at::DELIVERED_NEWEST, self.delivered_newest_ns.to_be_bytes());
        writer.put(at::SERVER_TIME, self.server_time_ns.to_be_bytes());
        writer.put(at::ACTIVE_CLUSTERS, self.queue.active_clusters.to_be_bytes());
        writer.put(at::SLOTS, self.queue.slots.to_be_bytes());
        writer.put(at::USED, self.queue.used.to_be_bytes());
        writer.put(at::SWITCHES, [self.queue.switches]);
        writer.put(at::ROUND_US, self.queue.round_us.to_be_bytes());
        writer.put(at::OWN_AGE_US, self.ages.own_us.to_be_bytes());
        writer.put(at::MEAN_AGE_US, self.ages.mean_us.to_be_bytes());
        writer.put(at::FLOW_NEWEST, self.ends.newest.to_be_bytes());
        writer.put(at::DELIVERED, self.ends.delivered.to_be_bytes());
        writer.put(at::ENDED, self.ends.ended.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_crowded_queue_of_a_path_is_told_with_the_longest_round() {
        let status = |active_clusters, slots, round_us| QueueStatus {
            active_clusters,
            slots,
            used: slots,
            switches: 1,
            round_us,
        };
        let none = QueueStatus::default();
        let near = status(5, 5, 700);
        let far = none.passing(status(10, 8, 400));
        assert_eq!((far.active_clusters, far.switches), (10, 1));
        // 10 / 8 is more than 5 / 5, whichever comes first.
        assert_eq!(far.passing(near), QueueStatus { switches: 2, round_us: 700, ..far });
        let told = none.passing(near).passing(status(10, 8, 400));
        assert_eq!((told.active_clusters, told.switches, told.round_us), (10, 2, 700));
        assert_eq!(none.passing(near).passing(status(6, 6, 0)).active_clusters, 6);
        assert_eq!(QueueStatus { switches: 255, ..near }.passing(near).switches, 255);
    }
}
