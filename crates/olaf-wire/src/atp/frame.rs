//! Gradient fragment packets and parameter packets.

use super::key::Key;
use super::offsets::{HEADER, TRAILER, VALUE, flags, header as at, more, trailer, upper};
use super::packet::{AtpPacket, Kind};
use super::upper::Upper;
use crate::packet::{Refusal, Writer};
use core::ops::Range;

/// Everything in a packet but its values (ATP §3.3, Figure 5).
///
/// | field | in a gradient fragment packet | in a parameter packet |
/// |---|---|---|
/// | `bitmap0` | workers of one group; 0: all workers of the groups that the next bitmap names | with `collision`: the new aggregator index |
/// | `bitmap1` | groups of workers at the second edge switch; 0: all of those in the next bitmap | 0 |
/// | `fan_in0` | workers of the group | the code of the factor that the fragment a window later has; 0: the first factor |
/// | `fan_in1` | groups | 0 |
/// | `overflow` | the values are f32 | the server asks for f32; there are no values |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Position at the first edge switch, one bit a worker.
    pub bitmap0: u32,
    /// Position at the second edge switch, one bit a group.
    pub bitmap1: u32,
    /// Workers at the first edge switch, 1 to 32.
    pub fan_in0: u8,
    /// Groups, or workers, at the second edge switch, 1 to 32.
    pub fan_in1: u8,
    /// See the table.
    pub overflow: bool,
    /// The server that has this part of the tensor, below 4.
    pub server: u8,
    /// A link on the way was congested.
    pub ecn: bool,
    /// No switch may keep the packet.
    pub resend: bool,
    /// An aggregator was in use by another fragment.
    pub collision: bool,
    /// It is a parameter packet.
    pub ack: bool,
    /// It is on its way to the second edge switch.
    pub edge: bool,
    /// The first edge switch is the second one, too.
    pub same_switch: bool,
    /// The job.
    pub job: u16,
    /// The sequence number, which wraps: see [`Key`].
    pub sequence: u16,
    /// The aggregator.
    pub index: u16,
    /// The tensor key.
    pub key: Key,
    /// Values of the whole tensor, at all servers.
    pub tensor_length: u32,
    /// The third and the fourth level, in gradient fragment packets of a job with more than two.
    pub upper: Option<Upper>,
}

/// Bytes of a packet with that many values, of a job with two levels at most.
#[must_use]
pub const fn datagram_len(values: usize) -> usize {
    HEADER + values * VALUE + TRAILER
}

impl Header {
    /// Bytes of a packet with this header and that many values.
    #[must_use]
    pub const fn datagram_len(&self, values: usize) -> usize {
        datagram_len(values) + if self.upper.is_some() { upper::LEN } else { 0 }
    }

    /// Reads the header of a gradient fragment packet or a parameter packet.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind.
    #[inline]
    pub fn parse(packet: &AtpPacket<'_>) -> Result<Self, Refusal> {
        if !matches!(packet.kind(), Kind::Gradient | Kind::Parameters) {
            return Err(Refusal::BadField("kind"));
        }
        let bytes = packet.bytes();
        let end = bytes.len() - TRAILER;
        let is = |bit: u8| bytes[at::MORE] & bit != 0;
        Ok(Self {
            bitmap0: packet.u32(at::BITMAP0),
            bitmap1: packet.u32(at::BITMAP1),
            fan_in0: bytes[at::FAN_IN0],
            fan_in1: bytes[at::FAN_IN1],
            overflow: packet.flag(flags::OVERFLOW),
            server: packet.server(),
            ecn: packet.flag(flags::ECN),
            resend: packet.flag(flags::RESEND),
            collision: packet.flag(flags::COLLISION),
            ack: packet.flag(flags::ACK),
            edge: is(more::EDGE),
            same_switch: is(more::SAME_SWITCH),
            job: packet.job(),
            sequence: packet.u16(at::SEQUENCE),
            index: packet.u16(at::INDEX),
            key: Key::from_bits(packet.u64(end + trailer::KEY)),
            tensor_length: packet.u32(end + trailer::LENGTH),
            upper: packet.upper().map(Upper::parse),
        })
    }

    /// Writes the header and the trailer of a packet with `values` values. Returns the place of the
    /// values, which the caller writes.
    ///
    /// # Panics
    /// When `buf` is shorter than the datagram.
    #[inline]
    pub fn emit_around(&self, values: usize, buf: &mut [u8]) -> Range<usize> {
        let start = self.values_at();
        let end = start + values * VALUE;
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let mut writer = Writer(buf);
        writer.put(at::BITMAP0, self.bitmap0.to_be_bytes());
        writer.put(at::BITMAP1, self.bitmap1.to_be_bytes());
        writer.put(at::FAN_IN0, [self.fan_in0]);
        writer.put(at::FAN_IN1, [self.fan_in1]);
        let flags = bit(self.overflow, flags::OVERFLOW)
            | self.server << flags::SERVER_SHIFT & flags::SERVER
            | bit(self.ecn, flags::ECN)
            | bit(self.resend, flags::RESEND)
            | bit(self.collision, flags::COLLISION)
            | bit(self.ack, flags::ACK);
        writer.put(at::FLAGS, [flags]);
        writer.put(at::MORE, [self.more()]);
        writer.put(at::JOB, self.job.to_be_bytes());
        writer.put(at::SEQUENCE, self.sequence.to_be_bytes());
        writer.put(at::INDEX, self.index.to_be_bytes());
        writer.put(end + trailer::KEY, self.key.to_bits().to_be_bytes());
        writer.put(end + trailer::LENGTH, self.tensor_length.to_be_bytes());
        if let Some(upper) = &self.upper {
            upper.emit(HEADER, &mut writer);
        }
        start..end
    }

    /// Writes the packet; returns its length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, values: &[u8], buf: &mut [u8]) -> usize {
        let at = self.emit_around(values.len() / VALUE, buf);
        let end = at.end;
        buf[at].copy_from_slice(values);
        end + TRAILER
    }
}
