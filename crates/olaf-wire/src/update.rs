//! A model update, or a merge of several, on its way to the server.

use crate::offsets::{LANE, update as at};
use crate::packet::{Address, Kind, Packet, Refusal, emit_common};

/// The header of one segment of an update. Its lanes follow it on the wire and hold the *sum* of
/// the contributors' values times their weights; `sum / weight` is the mean.
///
/// differs: OLAF §7 sends reward and gradients only; the rest is what makes larger models,
/// weighting, staleness and accounting possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The worker; of a merge, the contributor that came first.
    pub address: Address,
    /// The worker's count of its updates, from 0; of a merge, its first contributor's.
    pub sequence: u32,
    /// The last sender's count of its updates on this hop for this job: an answer names it.
    pub hop_sequence: u32,
    /// The last sender's count of its updates in this flow (job, cluster and segment) on this hop.
    /// An answer gives the ends of this update and of the 63 before it ([`crate::Ends`]).
    pub flow_sequence: u32,
    /// Which segment of the model, from 0.
    pub segment: u32,
    /// Segments the model has.
    pub segments: u32,
    /// Generation time of the oldest contributor, nanoseconds of Unix time, server's clock.
    pub generated_oldest_ns: u64,
    /// Generation time of the newest contributor.
    pub generated_newest_ns: u64,
    /// Oldest model version a contributor computed on.
    pub version_oldest: u32,
    /// Newest model version a contributor computed on.
    pub version_newest: u32,
    /// How many contributions are summed here.
    pub contributors: u32,
    /// The contributions' weights, summed; finite and above 0.
    pub weight: f64,
    /// The contributors' mean reward by weight; finite.
    pub reward: f64,
    /// Switches passed.
    pub hops: u8,
}

impl Update {
    /// Reads an update's header; its lanes are [`Packet::lanes`].
    ///
    /// A reward that is not a number is no reason to refuse the bytes: the engine rejects it and
    /// counts it against its worker.
    ///
    /// # Errors
    /// [`Refusal::BadField`] where fields contradict each other.
    #[inline]
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::Update {
            return Err(Refusal::BadField("kind"));
        }
        let header = packet.header_of::<{ at::PAYLOAD }>();
        let update = Self {
            address: header.address(),
            sequence: header.u32(at::SEQUENCE),
            hop_sequence: header.u32(at::HOP_SEQUENCE),
            flow_sequence: header.u32(at::FLOW_SEQUENCE),
            segment: header.u32(at::SEGMENT),
            segments: header.u32(at::SEGMENTS),
            generated_oldest_ns: header.u64(at::GENERATED_OLDEST),
            generated_newest_ns: header.u64(at::GENERATED_NEWEST),
            version_oldest: header.u32(at::VERSION_OLDEST),
            version_newest: header.u32(at::VERSION_NEWEST),
            contributors: header.u32(at::CONTRIBUTORS),
            weight: header.f64(at::WEIGHT),
            reward: header.f64(at::REWARD),
            hops: header.byte(at::HOPS),
        };
        if update.segment >= update.segments {
            return Err(Refusal::BadField("segment"));
        }
        if update.generated_oldest_ns > update.generated_newest_ns {
            return Err(Refusal::BadField("generated"));
        }
        if update.version_oldest > update.version_newest {
            return Err(Refusal::BadField("version"));
        }
        if update.contributors == 0 {
            return Err(Refusal::BadField("contributors"));
        }
        if !(update.weight > 0.0 && update.weight <= f64::MAX) {
            return Err(Refusal::BadField("weight"));
        }
        if packet.len() <= at::PAYLOAD {
            return Err(Refusal::BadField("lanes"));
        }
        Ok(update)
    }

    /// Bytes of a datagram with `lanes` lanes.
    #[must_use]
    pub const fn datagram_len(lanes: usize) -> usize {
        at::PAYLOAD + lanes * LANE
    }

    /// Writes header and lanes into `buf`; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than [`Update::datagram_len`].
    pub fn emit(&self, lanes: &[f32], buf: &mut [u8]) -> usize {
        self.emit_parts(core::iter::once(lanes), buf)
    }

    /// As [`Update::emit`], with lanes that lie in several places.
    ///
    /// # Panics
    /// When `buf` is shorter than [`Update::datagram_len`].
    pub fn emit_parts<'a>(
        &self,
        parts: impl Iterator<Item = &'a [f32]> + Clone,
        buf: &mut [u8],
    ) -> usize {
        let lanes = parts.clone().map(<[f32]>::len).sum();
        self.emit_header(lanes, buf);
        let len = Self::datagram_len(lanes);
        let mut rest = &mut buf[at::PAYLOAD..len];
        for part in parts {
            let (now, later) = rest.split_at_mut(part.len() * LANE);
            write_lanes(part, now);
            rest = later;
        }
        len
    }

    /// Writes the header for a datagram whose lanes the caller writes behind it.
    ///
    /// # Panics
    /// When `buf` is shorter than the header.
    pub fn emit_header(&self, lanes: usize, buf: &mut [u8]) {
        let mut writer = emit_common(buf, Kind::Update, &self.address);
        writer.put(at::SEQUENCE, self.sequence.to_be_bytes());
        writer.put(at::HOP_SEQUENCE, self.hop_sequence.to_be_bytes());
        writer.put(at::FLOW_SEQUENCE, self.flow_sequence.to_be_bytes());
        writer.put(at::SEGMENT, self.segment.to_be_bytes());
        writer.put(at::SEGMENTS, self.segments.to_be_bytes());
        writer.put(at::GENERATED_OLDEST, self.generated_oldest_ns.to_be_bytes());
        writer.put(at::GENERATED_NEWEST, self.generated_newest_ns.to_be_bytes());
        writer.put(at::VERSION_OLDEST, self.version_oldest.to_be_bytes());
        writer.put(at::VERSION_NEWEST, self.version_newest.to_be_bytes());
        writer.put(at::CONTRIBUTORS, self.contributors.to_be_bytes());
        writer.put(at::LANES, lane_count(lanes).to_be_bytes());
        writer.put(at::WEIGHT, self.weight.to_be_bytes());
        writer.put(at::REWARD, self.reward.to_be_bytes());
        writer.put(at::HOPS, [self.hops]);
    }
}

pub(crate) fn lane_count(lanes: usize) -> u32 {
    u32::try_from(lanes).expect("a segment has at most MAX_SEGMENT_LANES lanes")
}

/// Writes lanes in wire order.
///
/// # Panics
/// When `bytes` is not four times as long as `lanes`.
pub fn write_lanes(lanes: &[f32], bytes: &mut [u8]) {
    assert_eq!(bytes.len(), lanes.len() * LANE, "a lane is four bytes");
    for (lane, out) in lanes.iter().zip(bytes.chunks_exact_mut(LANE)) {
        out.copy_from_slice(&lane.to_le_bytes());
    }
}

/// Reads lanes in wire order into `lanes`.
///
/// # Panics
/// When `bytes` is not four times as long as `lanes`.
pub fn read_lanes(bytes: &[u8], lanes: &mut [f32]) {
    assert_eq!(bytes.len(), lanes.len() * LANE, "a lane is four bytes");
    for (lane, bytes) in lanes.iter_mut().zip(bytes.chunks_exact(LANE)) {
        *lane = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
}
