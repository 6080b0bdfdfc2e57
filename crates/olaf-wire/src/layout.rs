//! A worker's description of its model: names and shapes of its arrays, as text in parts.

use crate::offsets::layout as at;
use crate::packet::{Address, Kind, Packet, Refusal, emit_common};

/// The longest description, bytes.
pub const MAX_LAYOUT: usize = 64 * 1024;
/// Bytes of every part but the last: a part fits the smallest path that updates fit.
pub const LAYOUT_PART: usize = 960;

/// One part of a description, up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutPart<'a> {
    /// The worker.
    pub address: Address,
    /// Which part, from 0.
    pub part: u32,
    /// Bytes of the whole description.
    pub total: u32,
    /// The bytes of this part.
    pub text: &'a [u8],
}

/// Parts of a description of `total` bytes.
#[must_use]
pub const fn layout_parts(total: usize) -> u32 {
    // At most 69, see MAX_LAYOUT.
    total.div_ceil(LAYOUT_PART) as u32
}

impl<'a> LayoutPart<'a> {
    /// A part of `text`, or nothing where it has no such part.
    #[must_use]
    pub fn of(text: &'a [u8], address: Address, part: u32) -> Option<Self> {
        if text.len() > MAX_LAYOUT {
            return None;
        }
        let bytes = text.chunks(LAYOUT_PART).nth(part as usize)?;
        Some(Self { address, part, total: text.len() as u32, text: bytes })
    }

    /// Reads a part.
    ///
    /// # Errors
    /// [`Refusal::BadField`] where its numbers do not agree with each other.
    pub fn parse(packet: &Packet<'a>) -> Result<Self, Refusal> {
        if packet.kind() != Kind::Layout {
            return Err(Refusal::BadField("kind"));
        }
        let (part, total) = (packet.u32(at::PART), packet.u32(at::TOTAL));
        let whole = total as usize;
        if whole == 0 || whole > MAX_LAYOUT {
            return Err(Refusal::BadField("total"));
        }
        if part >= layout_parts(whole) {
            return Err(Refusal::BadField("part"));
        }
        let text = packet.lanes();
        let start = part as usize * LAYOUT_PART;
        if text.len() != (whole - start).min(LAYOUT_PART) {
            return Err(Refusal::BadField("len"));
        }
        Ok(Self { address: packet.address(), part, total, text })
    }

    /// Writes the part; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Layout, &self.address);
        writer.put(at::PART, self.part.to_be_bytes());
        writer.put(at::TOTAL, self.total.to_be_bytes());
        writer.put(at::LEN_OF_TEXT, (self.text.len() as u32).to_be_bytes());
        let end = at::TEXT + self.text.len();
        buf[at::TEXT..end].copy_from_slice(self.text);
        end
    }
}
