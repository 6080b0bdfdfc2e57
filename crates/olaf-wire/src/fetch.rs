//! A worker's request for what it missed.

use crate::offsets::fetch as at;
use crate::packet::{Address, Kind, Packet, Refusal, emit_common};

/// Asks for up to 64 segments of one version of the model. A server that no longer has the
/// version answers with its newest, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The worker.
    pub address: Address,
    /// The version wanted; 0 is "your newest".
    pub version: u32,
    /// Segment that bit 0 of `mask` stands for.
    pub first: u32,
    /// Bit i set: segment `first + i` is wanted.
    pub mask: u64,
    /// The worker's newest complete model; 0 before the first. Where that is the server's newest as
    /// well, its first segment is answer enough.
    pub have_version: u32,
}

impl Fetch {
    /// Reads a fetch.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind.
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::Fetch {
            return Err(Refusal::BadField("kind"));
        }
        Ok(Self {
            address: packet.address(),
            version: packet.u32(at::VERSION),
            first: packet.u32(at::FIRST),
            mask: packet.u64(at::MASK),
            have_version: packet.u32(at::HAVE_VERSION),
        })
    }

    /// The segments asked for, those that a number can name.
    pub fn segments(&self) -> impl Iterator<Item = u32> {
        let (first, mask) = (self.first, self.mask);
        (0..64)
            .filter(move |bit| mask >> bit & 1 == 1)
            .filter_map(move |bit| first.checked_add(bit))
    }

    /// Writes the fetch; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Fetch, &self.address);
        writer.put(at::VERSION, self.version.to_be_bytes());
        writer.put(at::FIRST, self.first.to_be_bytes());
        writer.put(at::MASK, self.mask.to_be_bytes());
        writer.put(at::HAVE_VERSION, self.have_version.to_be_bytes());
        at::LEN
    }
}
