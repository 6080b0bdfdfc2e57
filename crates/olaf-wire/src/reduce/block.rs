//! Pieces up and results down: the messages with lanes.

use super::arithmetic::{LaneType, Operator};
use super::called::Called;
use super::offsets::{
    CONGESTED, HEADER, MAX_WORDS, NOT_FINITE, PARTIAL, RESENT, WORD, block as at, common,
};
use super::packet::{Address, Kind, ReducePacket, emit_common};
use crate::call::Call;
use crate::packet::{Refusal, Writer};

/// A block of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The block, counted from 0 in the generation.
    pub number: u32,
    /// The operation, counted from 0 in the generation.
    pub operation: u32,
    /// The first block of the operation; at most `number`.
    pub first: u32,
    /// Lanes of the whole operation.
    pub lanes_of_operation: u64,
    /// What a lane is.
    pub lane_type: LaneType,
    /// What becomes of the contributors' lanes.
    pub operator: Operator,
    /// What the workers call.
    pub call: Call,
}

impl Block {
    /// The signature of its operation.
    #[must_use]
    #[inline]
    pub const fn called(&self) -> Called {
        let Self { call, lane_type, operator, lanes_of_operation: lanes, .. } = *self;
        Called { call, lane_type, operator, lanes }
    }

    #[inline]
    fn read(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        Ok(Self {
            number: packet.u32(common::BLOCK),
            operation: packet.u32(common::OPERATION),
            first: packet.u32(at::FIRST_BLOCK),
            lanes_of_operation: packet.u64(at::LANES_OF_OPERATION),
            lane_type: LaneType::from_byte(packet.byte(at::LANE_TYPE))
                .ok_or(Refusal::BadField("lane_type"))?,
            operator: Operator::from_byte(packet.byte(at::OPERATOR))
                .ok_or(Refusal::BadField("operator"))?,
            call: Call::from_bits(packet.u16(at::CALL)),
        })
    }

    #[inline]
    fn put(&self, writer: &mut Writer<'_>) {
        writer.put(common::BLOCK, self.number.to_be_bytes());
        writer.put(common::OPERATION, self.operation.to_be_bytes());
        writer.put(at::FIRST_BLOCK, self.first.to_be_bytes());
        writer.put(at::LANES_OF_OPERATION, self.lanes_of_operation.to_be_bytes());
        writer.put(at::LANE_TYPE, [self.lane_type as u8]);
        writer.put(at::OPERATOR, [self.operator as u8]);
        writer.put(at::CALL, self.call.to_bits().to_be_bytes());
    }
}

/// What else a piece or a result says of its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks {
    /// The sender has sent it before.
    pub resent: bool,
    /// A lane is no finite number.
    pub not_finite: bool,
    /// A piece of the block came with an ECN mark: the way up is congested.
    pub congested: bool,
}

impl Marks {
    #[inline]
    fn read(flags: u16) -> Self {
        Self {
            resent: flags & RESENT != 0,
            not_finite: flags & NOT_FINITE != 0,
            congested: flags & CONGESTED != 0,
        }
    }

    #[inline]
    fn flags(self) -> u16 {
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        flag(self.resent, RESENT)
            | flag(self.not_finite, NOT_FINITE)
            | flag(self.congested, CONGESTED)
    }
}

/// A worker's part of a block, or a lower switch's sum of it. Its lanes are
/// [`ReducePacket::lanes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The sender.
    pub address: Address,
    /// The block.
    pub block: Block,
    /// How many workers' lanes are summed here: 1 from a worker.
    pub contributors: u32,
    /// The sender holds the results of all blocks before this one; 0: of none.
    pub holds: u32,
    /// When the sender sent it, microseconds of its own clock, which wraps; 0: not said.
    pub sent_at_us: u32,
    /// What else it says of its lanes.
    pub marks: Marks,
}

impl Piece {
    /// Reads a piece's header.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind.
    #[inline]
    pub fn parse(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Piece)?;
        Ok(Self {
            address: packet.address(),
            block: Block::read(packet)?,
            contributors: packet.u32(at::CONTRIBUTORS),
            holds: packet.u32(at::HOLDS),
            sent_at_us: packet.u32(common::SENT_AT_US),
            marks: Marks::read(packet.flags()),
        })
    }

    /// Writes the header and the lanes, which are in wire order; returns the datagram's length.
    /// `words` names the contributors of a sum in which some are missing, and is empty otherwise.
    ///
    /// # Panics
    /// When `buf` is shorter than that, or the lanes are more than a datagram takes.
    pub fn emit(&self, words: &[u64], lanes: &[u8], buf: &mut [u8]) -> usize {
        let count = lanes_in(lanes, self.block.lane_type);
        let start = self.emit_header(words, count, buf);
        behind(start, lanes, buf)
    }

    /// Writes the header and the words of a datagram whose lanes the caller writes behind them.
    /// Returns where the lanes begin.
    ///
    /// # Panics
    /// When `buf` is shorter than that, or there are more lanes or words than a header can count.
    #[inline]
    pub fn emit_header(&self, words: &[u64], lanes: usize, buf: &mut [u8]) -> usize {
        let mut writer = emit_common(buf, Kind::Piece, &self.address);
        self.block.put(&mut writer);
        writer.put(at::CONTRIBUTORS, self.contributors.to_be_bytes());
        writer.put(at::HOLDS, self.holds.to_be_bytes());
        writer.put(common::SENT_AT_US, self.sent_at_us.to_be_bytes());
        put_rest(&mut writer, self.marks, words, lanes)
    }
}

/// The sum of a block. Its lanes are [`ReducePacket::lanes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockResult {
    /// The receiver.
    pub address: Address,
    /// The block.
    pub block: Block,
    /// How many workers' lanes are summed here.
    pub contributors: u32,
    /// How many workers' lanes belong into the sum; at least `contributors`. The sum is partial where
    /// it is more.
    pub expected: u32,
    /// `sent_at_us` of the piece that completed the sum, or of the question that this result answers.
    /// The worker that sent at this time measures its round trip with it. 0: not said.
    pub sent_at_us: u32,
    /// What else it says of its lanes.
    pub marks: Marks,
}

impl BlockResult {
    /// Returns true if contributors are missing.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.contributors < self.expected
    }

    /// Reads a result's header.
    ///
    /// # Errors
    /// [`Refusal::BadField`] for another kind.
    #[inline]
    pub fn parse(packet: &ReducePacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Result)?;
        Ok(Self {
            address: packet.address(),
            block: Block::read(packet)?,
            contributors: packet.u32(at::CONTRIBUTORS),
            expected: packet.u32(at::EXPECTED),
            sent_at_us: packet.u32(common::SENT_AT_US),
            marks: Marks::read(packet.flags()),
        })
    }

    /// Writes the header and the lanes, which are in wire order; returns the datagram's length.
    /// `words` names the contributors of a partial sum, and is empty otherwise.
    ///
    /// # Panics
    /// When `buf` is shorter than that, or the lanes are more than a datagram takes.
    pub fn emit(&self, words: &[u64], lanes: &[u8], buf: &mut [u8]) -> usize {
        let count = lanes_in(lanes, self.block.lane_type);
        let start = self.emit_header(words, count, buf);
        behind(start, lanes, buf)
    }

    /// Writes the header and the words of a datagram whose lanes the caller writes behind them.
    /// Returns where the lanes begin.
    ///
    /// # Panics
    /// When `buf` is shorter than that, or there are more lanes or words than a header can count.
    #[inline]
    pub fn emit_header(&self, words: &[u64], lanes: usize, buf: &mut [u8]) -> usize {
        debug_assert_eq!(self.is_partial(), !words.is_empty(), "words name a partial sum's ranks");
        let mut writer = emit_common(buf, Kind::Result, &self.address);
        self.block.put(&mut writer);
        writer.put(at::CONTRIBUTORS, self.contributors.to_be_bytes());
        writer.put(at::EXPECTED, self.expected.to_be_bytes());
        writer.put(common::SENT_AT_US, self.sent_at_us.to_be_bytes());
        put_rest(&mut writer, self.marks, words, lanes)
    }
}

/// Bytes of a piece or a result with as many words and lanes.
#[must_use]
pub const fn datagram_len(words: usize, lane_type: LaneType, lanes: usize) -> usize {
    HEADER + words * WORD + lanes * lane_type.bytes()
}

/// Writes what pieces and results say alike. Returns where the lanes begin.
#[inline]
fn put_rest(writer: &mut Writer<'_>, marks: Marks, words: &[u64], lanes: usize) -> usize {
    assert!(words.len() <= MAX_WORDS, "a bitmap has at most MAX_WORDS words");
    let lanes = u16::try_from(lanes).expect("a block has at most as many lanes as fit a datagram");
    let partial = if words.is_empty() { 0 } else { PARTIAL };
    writer.put(common::FLAGS, (marks.flags() | partial).to_be_bytes());
    writer.put(at::LANES, lanes.to_be_bytes());
    writer.put(at::WORDS, (words.len() as u16).to_be_bytes());
    for (word, at) in words.iter().zip((HEADER..).step_by(WORD)) {
        writer.put(at, word.to_le_bytes());
    }
    HEADER + words.len() * WORD
}

fn lanes_in(bytes: &[u8], lane_type: LaneType) -> usize {
    assert_eq!(bytes.len() % lane_type.bytes(), 0, "lanes are whole");
    bytes.len() / lane_type.bytes()
}

/// Copies the lanes to their place; returns where they end.
fn behind(start: usize, lanes: &[u8], buf: &mut [u8]) -> usize {
    let end = start + lanes.len();
    buf[start..end].copy_from_slice(lanes);
    end
}
