//! What was lost: results that a worker lacks, and pieces that the switch lacks.

use super::called::Called;
use super::offsets::{HEADER, common, missing as at};
use super::packet::{Address, Kind, ReducePacket, emit_common};
use crate::packet::{Refusal, Writer};

/// Up to 64 blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Blocks {
    /// The block that bit 0 of `mask` stands for.
    pub first: u32,
    /// Bit i set: block `first + i` is meant.
    pub mask: u64,
}

impl Blocks {
    /// The blocks, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let Self { first, mask } = *self;
        (0..u64::BITS)
            .filter(move |bit| mask >> bit & 1 == 1)
            .filter_map(move |bit| first.checked_add(bit))
    }

    fn read(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        let blocks = Self { first: packet.u32(common::BLOCK), mask: packet.u64(at::MASK) };
        let last = u64::BITS - blocks.mask.leading_zeros();
        match blocks.first.checked_add(last.saturating_sub(1)) {
            Some(_) => Ok(blocks),
            None => Err(Refusal::BadField("mask")),
        }
    }
}

/// The results of these blocks are missing at the sender. Without blocks it is the acknowledgement
/// of a worker that sends no pieces at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The sender.
    pub address: Address,
    /// The newest operation that the sender has begun.
    pub operation: u32,
    /// The blocks.
    pub blocks: Blocks,
    /// The sender holds the results of all blocks before this one; 0: of none.
    pub holds: u32,
    /// When the sender sent it, microseconds of its own clock, which wraps; 0: not said.
    pub sent_at_us: u32,
    /// The operation of the first block, and what the sender calls it. Who sends no pieces of it has no other
    /// message that says so.
    pub awaits: Option<(u32, Called)>,
}

impl Ask {
    /// Reads a question for results.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, for blocks that no number can name, and where a field
    /// is set that the message does not have.
    pub fn parse(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Ask)?;
        let ask = Self {
            address: packet.address(),
            operation: packet.u32(common::OPERATION),
            blocks: Blocks::read(packet)?,
            holds: packet.u32(at::HOLDS),
            sent_at_us: packet.u32(common::SENT_AT_US),
            awaits: match packet.u32(at::AWAITED).checked_sub(1) {
                Some(awaited) => Called::read(packet, at::CALLED)?.map(|called| (awaited, called)),
                None => None,
            },
        };
        packet.expect_written(|buf| ask.emit(buf))?;
        Ok(ask)
    }

    /// Writes the question; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let Self { address, operation, blocks, holds, sent_at_us, awaits } = self;
        let mut writer = emit_common(buf, Kind::Ask, address);
        if let Some((awaited, called)) = awaits {
            // An operation is below the largest number: see `Shapes`.
            writer.put(at::AWAITED, awaited.saturating_add(1).to_be_bytes());
            called.put(&mut writer, at::CALLED);
        }
        put(writer, blocks, [*operation, *holds, *sent_at_us])
    }
}

/// The receiver's pieces of these blocks are missing at the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The receiver.
    pub address: Address,
    /// The operation of the first block.
    pub operation: u32,
    /// The blocks.
    pub blocks: Blocks,
    /// As far as the switch knows, every worker holds the results of all blocks before this one.
    pub holds: u32,
    /// `sent_at_us` of the [`Ask`] that this answers; 0: not said.
    pub sent_at_us: u32,
}

impl Want {
    /// Reads a wish for pieces.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind, for blocks that no number can name, and where a field
    /// is set that the message does not have.
    pub fn parse(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Want)?;
        let want = Self {
            address: packet.address(),
            operation: packet.u32(common::OPERATION),
            blocks: Blocks::read(packet)?,
            holds: packet.u32(at::HOLDS),
            sent_at_us: packet.u32(common::SENT_AT_US),
        };
        packet.expect_written(|buf| want.emit(buf))?;
        Ok(want)
    }

    /// Writes the wish; returns the datagram's length.
    ///
    /// # Panics
    /// When `buf` is shorter than that.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let Self { address, operation, blocks, holds, sent_at_us } = self;
        let writer = emit_common(buf, Kind::Want, address);
        put(writer, blocks, [*operation, *holds, *sent_at_us])
    }
}

/// Writes the fields of both messages; returns the datagram's length.
fn put(mut writer: Writer<'_>, blocks: &Blocks, numbers: [u32; 3]) -> usize {
    let [operation, holds, sent_at_us] = numbers;
    writer.put(common::BLOCK, blocks.first.to_be_bytes());
    writer.put(at::MASK, blocks.mask.to_be_bytes());
    writer.put(common::OPERATION, operation.to_be_bytes());
    writer.put(at::HOLDS, holds.to_be_bytes());
    writer.put(common::SENT_AT_US, sent_at_us.to_be_bytes());
    HEADER
}
