//! A block of gradients: a worker's part of it, up, and the sum, down.

use super::offsets::{CALL_SHIFT, DEGRADED, FINAL, HEADER, WORD, header};
use super::packet::{Fields, Kind, TrioPacket, emit_header};
use crate::packet::Refusal;

/// The header of Figure 8. A worker's part and the result have the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The job.
    pub job: u8,
    /// The block, counted from 0 in the generation.
    pub block: u32,
    /// The block has aged out, here or at a switch below (§5).
    pub aged: bool,
    /// It is the last block of its generation.
    pub is_final: bool,
    /// Workers are missing in the sum (§5).
    pub degraded: bool,
    /// The sender of a part; [`super::ANY`] in a result.
    pub source: u8,
    /// Workers in the sum.
    pub sources: u8,
    /// The generation: one all-reduce of a model.
    pub generation: u16,
    /// What the workers call: 4 bits ([`Call::narrow`](crate::Call::narrow)).
    pub call: u8,
}

impl Block {
    /// Reads the header.
    ///
    /// # Errors
    /// When the packet is of another kind.
    #[inline]
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        if !packet.kind().has_gradients() {
            return Err(Refusal::BadField("kind"));
        }
        Ok(Self {
            job: packet.job(),
            block: packet.u32(header::BLOCK_ID),
            aged: packet.kind() == Kind::Aged,
            is_final: packet.has(FINAL),
            degraded: packet.has(DEGRADED),
            source: packet.source(),
            sources: packet.byte(header::SRC_CNT),
            generation: packet.u16(header::GEN_ID),
            call: (packet.u16(header::GRAD_CNT) >> CALL_SHIFT) as u8,
        })
    }

    /// Writes the header in front of that many gradients, which the caller writes behind it. Returns
    /// where they begin.
    ///
    /// # Panics
    /// When `buf` is shorter than the header.
    pub fn emit_header(&self, gradients: usize, buf: &mut [u8]) -> usize {
        let kind = if self.aged { Kind::Aged } else { Kind::Block };
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.is_final, FINAL) | flag(self.degraded, DEGRADED);
        let fields = Fields {
            job: self.job,
            block: self.block,
            source: self.source,
            sources: self.sources,
            generation: self.generation,
        };
        emit_header(buf, kind, flags, &fields, gradients);
        buf[header::GRAD_CNT] |= self.call << (CALL_SHIFT - 8);
        HEADER
    }

    /// Writes the message with its gradients; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, gradients: &[i32], buf: &mut [u8]) -> usize {
        let start = self.emit_header(gradients.len(), buf);
        let to = buf[start..start + gradients.len() * WORD].as_chunks_mut::<WORD>().0;
        for (to, gradient) in to.iter_mut().zip(gradients) {
            *to = gradient.to_be_bytes();
        }
        start + gradients.len() * WORD
    }
}

/// Bytes of a block's datagram with that many gradients.
#[must_use]
pub const fn datagram_len(gradients: usize) -> usize {
    HEADER + gradients * WORD
}
