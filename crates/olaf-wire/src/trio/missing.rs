//! What is missing, and who should send it again.

use super::offsets::header;
use super::packet::{Fields, Kind, TrioPacket, emit, halves};
use crate::ids::Session;
use crate::packet::Refusal;

/// A worker misses results, or says which ones it holds, up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The job.
    pub job: u8,
    /// The term.
    pub term: u32,
    /// The sender.
    pub source: u8,
    /// The sender's life.
    pub session: Session,
    /// The generation of the blocks.
    pub generation: u16,
    /// The first block.
    pub block: u32,
    /// Bit `i` stands for block `block + i`. 0: the sender misses nothing.
    pub mask: u64,
    /// The sender holds the results of all generations before this one,
    pub held_generation: u16,
    /// and of this generation's blocks below this one.
    pub held_block: u32,
    /// The sender's time, in microseconds: a [`Want`] repeats it.
    pub sent_at_us: u32,
}

impl Ask {
    /// Reads the fields.
    ///
    /// # Errors
    /// Names the field that cannot be.
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Ask)?;
        packet.expect_unused(packet.byte(header::SRC_CNT) == 0)?;
        let block = packet.u32(header::BLOCK_ID);
        Ok(Self {
            job: packet.job(),
            term: packet.word(1),
            source: packet.source(),
            session: Session(packet.word(0)),
            generation: packet.u16(header::GEN_ID),
            block,
            mask: checked_mask(block, packet.long(2))?,
            held_generation: packet.narrow(4, "held_generation")?,
            held_block: packet.word(5),
            sent_at_us: packet.word(6),
        })
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        blocks(self.block, self.mask)
    }

    /// Writes the message; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let fields = Fields {
            job: self.job,
            block: self.block,
            source: self.source,
            sources: 0,
            generation: self.generation,
        };
        let [high, low] = halves(self.mask);
        let words = [
            self.session.0,
            self.term,
            high,
            low,
            self.held_generation.into(),
            self.held_block,
            self.sent_at_us,
        ];
        emit(buf, Kind::Ask, &fields, words)
    }
}

/// The answer to a question, down: these parts of the asker are not here. No blocks: a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The job.
    pub job: u8,
    /// The term.
    pub term: u32,
    /// The receiver.
    pub source: u8,
    /// The receiver's life.
    pub session: Session,
    /// The generation of the blocks.
    pub generation: u16,
    /// The first block.
    pub block: u32,
    /// Bit `i` stands for block `block + i`.
    pub mask: u64,
    /// From the question.
    pub sent_at_us: u32,
}

impl Want {
    /// Reads the fields.
    ///
    /// # Errors
    /// Names the field that cannot be.
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Want)?;
        packet.expect_unused(packet.byte(header::SRC_CNT) == 0)?;
        let block = packet.u32(header::BLOCK_ID);
        Ok(Self {
            job: packet.job(),
            term: packet.word(1),
            source: packet.source(),
            session: Session(packet.word(0)),
            generation: packet.u16(header::GEN_ID),
            block,
            mask: checked_mask(block, packet.long(2))?,
            sent_at_us: packet.word(4),
        })
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        blocks(self.block, self.mask)
    }

    /// Writes the message; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let fields = Fields {
            job: self.job,
            block: self.block,
            source: self.source,
            sources: 0,
            generation: self.generation,
        };
        let [high, low] = halves(self.mask);
        emit(buf, Kind::Want, &fields, [self.session.0, self.term, high, low, self.sent_at_us])
    }
}

/// The result of a block is no longer kept, down. A receiver that lacks it was away for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The job.
    pub job: u8,
    /// The term.
    pub term: u32,
    /// The receiver.
    pub source: u8,
    /// The receiver's life.
    pub session: Session,
    /// The generation of the block.
    pub generation: u16,
    /// The block.
    pub block: u32,
}

impl Gone {
    /// Reads the fields.
    ///
    /// # Errors
    /// Names the field that cannot be.
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Gone)?;
        packet.expect_unused(packet.byte(header::SRC_CNT) == 0)?;
        Ok(Self {
            job: packet.job(),
            term: packet.word(1),
            source: packet.source(),
            session: Session(packet.word(0)),
            generation: packet.u16(header::GEN_ID),
            block: packet.u32(header::BLOCK_ID),
        })
    }

    /// Writes the message; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let Self { job, term, source, session, generation, block } = *self;
        let fields = Fields { job, block, source, sources: 0, generation };
        emit(buf, Kind::Gone, &fields, [session.0, term])
    }
}

/// Checks that a number can name every block of a mask.
fn checked_mask(block: u32, mask: u64) -> Result<u64, Refusal> {
    let last = u64::from(block) + u64::from(63 - mask.leading_zeros().min(63));
    if mask != 0 && last > u32::MAX.into() { Err(Refusal::BadField("mask")) } else { Ok(mask) }
}

fn blocks(first: u32, mask: u64) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| first + bit)
}
