//! The header of a message of `reduce`: a view that has checked it.

use super::arithmetic::{LaneType, Operator};
use super::offsets::{
    self, ALL, CONGESTED, HEADER, MAGIC, MAX_RANKS, MAX_WORDS, NOT_FINITE, PARTIAL, RESENT, WORD,
    block, common,
};
use crate::ids::{JobId, Session};
use crate::offsets::MAX_DATAGRAM;
use crate::packet::{Refusal, Writer, array_at};

/// What a datagram of `reduce` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A part of a block's sum, up: [`super::Piece`].
    Piece = 1,
    /// The sum of a block, down: [`super::BlockResult`].
    Result = 2,
    /// A worker lacks results, up: [`super::Ask`].
    Ask = 3,
    /// The switch lacks pieces, down: [`super::Want`].
    Want = 4,
    /// A worker wants to take part, up: [`super::Join`].
    Join = 5,
    /// The answer to a join, down: [`super::Welcome`].
    Welcome = 6,
    /// A worker's leave, up: [`super::Leave`].
    Leave = 7,
    /// The generation has ended, down: [`super::Closed`].
    Closed = 8,
}

impl Kind {
    /// Every kind.
    pub const EACH: [Self; 8] = [
        Self::Piece,
        Self::Result,
        Self::Ask,
        Self::Want,
        Self::Join,
        Self::Welcome,
        Self::Leave,
        Self::Closed,
    ];

    #[inline]
    const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Piece,
            2 => Self::Result,
            3 => Self::Ask,
            4 => Self::Want,
            5 => Self::Join,
            6 => Self::Welcome,
            7 => Self::Leave,
            8 => Self::Closed,
            _ => return None,
        })
    }

    /// Returns true if a block's lanes follow the header.
    #[inline]
    const fn has_lanes(self) -> bool {
        matches!(self, Self::Piece | Self::Result)
    }

    /// Returns true if [`ALL`] may stand in place of a rank.
    #[inline]
    const fn may_name_all(self) -> bool {
        !matches!(self, Self::Piece | Self::Ask | Self::Leave)
    }

    /// The flags that a message of this kind may have.
    #[inline]
    const fn flags(self) -> u16 {
        if self.has_lanes() { PARTIAL | RESENT | NOT_FINITE | CONGESTED } else { 0 }
    }
}

/// The sender of a message up, or the receiver of a message down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Address {
    /// The job.
    pub job: JobId,
    /// The generation, counted from 0 in the life of the switch. In a [`super::Join`]: the
    /// generation in which the sender was last, 0 before its first.
    pub generation: u32,
    /// The worker in the generation, below [`MAX_RANKS`]; [`ALL`] in a message to all workers.
    pub rank: u32,
    /// The worker's life; 0 where the message is for all workers.
    pub session: Session,
}

/// The job in the header of a message; none of bytes that are no message.
#[must_use]
#[inline]
pub fn job_of(bytes: &[u8]) -> Option<u32> {
    let job = bytes.get(common::JOB..common::JOB + 4).filter(|_| bytes.starts_with(&MAGIC))?;
    Some(u32::from_be_bytes(job.try_into().ok()?))
}

/// A datagram of `reduce` whose magic, version, kind, flags, rank and length are in order, and of a
/// piece or a result all fields.
#[derive(Clone, Copy, Debug)]
pub struct ReducePacket<'a> {
    header: &'a [u8; HEADER],
    words: &'a [u8],
    lanes: &'a [u8],
    kind: Kind,
}

impl<'a> ReducePacket<'a> {
    /// Checks `bytes`, one whole datagram.
    ///
    /// # Errors
    /// The [`Refusal`] that says what is wrong with it.
    #[inline]
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Refusal::NotOurs);
        }
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(Refusal::Truncated { have: bytes.len(), need: HEADER });
        };
        if header[common::VERSION] != offsets::VERSION {
            let have = header[common::VERSION];
            return Err(Refusal::WrongVersion { have, speaks: offsets::VERSION });
        }
        let kind = Kind::from_byte(header[common::KIND])
            .ok_or(Refusal::UnknownKind(header[common::KIND]))?;
        let packet = Self { header, words: &[], lanes: &[], kind };
        if packet.flags() & !kind.flags() != 0 {
            return Err(Refusal::UnknownFlags(packet.flags()));
        }
        let rank = packet.u32(common::RANK);
        if rank >= MAX_RANKS && !(rank == ALL && kind.may_name_all()) {
            return Err(Refusal::BadField("rank"));
        }
        let (words, lanes) = if kind.has_lanes() { packet.bytes_behind()? } else { (0, 0) };
        let need = HEADER + words + lanes;
        if rest.len() < words + lanes {
            return Err(Refusal::Truncated { have: bytes.len(), need });
        }
        if rest.len() > words + lanes {
            return Err(Refusal::Oversized { have: bytes.len(), need });
        }
        let (words, lanes) = rest.split_at(words);
        let packet = Self { words, lanes, ..packet };
        if !words.is_empty() {
            packet.check_words()?;
        }
        Ok(packet)
    }

    /// Bytes of the words and of the lanes that the header of a piece or a result announces, once its
    /// fields agree with each other.
    #[inline]
    fn bytes_behind(&self) -> Result<(usize, usize), Refusal> {
        let flag = |flag: u16| self.flags() & flag != 0;
        let lane_type = LaneType::from_byte(self.header[block::LANE_TYPE])
            .ok_or(Refusal::BadField("lane_type"))?;
        if Operator::from_byte(self.header[block::OPERATOR]).is_none() {
            return Err(Refusal::BadField("operator"));
        }
        if self.u32(common::BLOCK) < self.u32(block::FIRST_BLOCK) {
            return Err(Refusal::BadField("first_block"));
        }
        let words = usize::from(self.u16(block::WORDS));
        if words > MAX_WORDS || (words > 0) != flag(PARTIAL) {
            return Err(Refusal::BadField("words"));
        }
        let contributors = self.u32(block::CONTRIBUTORS);
        if contributors == 0 {
            return Err(Refusal::BadField("contributors"));
        }
        if self.kind == Kind::Result {
            // A sum is partial if and only if contributors are missing.
            let expected = self.u32(block::EXPECTED);
            if contributors > expected || (contributors < expected) != flag(PARTIAL) {
                return Err(Refusal::BadField("expected"));
            }
        }
        let lanes = self.u16(block::LANES);
        let bytes = usize::from(lanes) * lane_type.bytes();
        if u64::from(lanes) > self.u64(block::LANES_OF_OPERATION)
            || HEADER + words * WORD + bytes > MAX_DATAGRAM
        {
            return Err(Refusal::BadField("lanes"));
        }
        Ok((words * WORD, bytes))
    }

    /// Checks that the words name at least one contributor. A lower switch counts as one rank and as
    /// many contributors as its sum has, so the words may name fewer than there are.
    #[inline]
    fn check_words(&self) -> Result<(), Refusal> {
        let named: u32 = self.contributor_words().map(u64::count_ones).sum();
        if named == 0 || named > self.u32(block::CONTRIBUTORS) {
            return Err(Refusal::BadField("contributors"));
        }
        Ok(())
    }

    /// What the datagram is.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Its sender, or its receiver.
    #[must_use]
    #[inline]
    pub fn address(&self) -> Address {
        address_of(self.header)
    }

    /// The lanes as they came: little-endian, [`LaneType::bytes`] each, at any alignment.
    #[must_use]
    #[inline]
    pub const fn lanes(&self) -> &'a [u8] {
        self.lanes
    }

    /// The bitmap of contributors as it came; empty where none is missing.
    /// [`super::RankSet::from_words`] reads it.
    #[inline]
    pub fn contributor_words(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.words.chunks_exact(WORD).map(|word| u64::from_le_bytes(array_at(word, 0)))
    }

    /// Returns true if contributors are missing in the piece or the result.
    #[must_use]
    #[inline]
    pub fn is_partial(&self) -> bool {
        self.flags() & PARTIAL != 0
    }

    #[inline]
    pub(super) fn flags(&self) -> u16 {
        self.u16(common::FLAGS)
    }

    #[inline]
    pub(super) const fn byte(&self, at: usize) -> u8 {
        self.header[at]
    }

    #[inline]
    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(array_at(self.header, at))
    }

    #[inline]
    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(array_at(self.header, at))
    }

    #[inline]
    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(array_at(self.header, at))
    }

    /// Checks the kind before the fields of a message are read.
    #[inline]
    pub(super) fn expect(&self, kind: Kind) -> Result<(), Refusal> {
        if self.kind == kind { Ok(()) } else { Err(Refusal::BadField("kind")) }
    }

    /// Checks that a message without lanes has zeros where it has no field: written again, it has the
    /// same bytes.
    pub(super) fn expect_written(
        &self,
        emit: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), Refusal> {
        let mut again = [0; HEADER];
        emit(&mut again);
        if again == *self.header { Ok(()) } else { Err(Refusal::BadField("unused")) }
    }
}

#[inline]
fn address_of(header: &[u8; HEADER]) -> Address {
    let field = |at| u32::from_be_bytes(array_at(header, at));
    Address {
        job: JobId(field(common::JOB)),
        generation: field(common::GENERATION),
        rank: field(common::RANK),
        session: Session(field(common::SESSION)),
    }
}

/// The sender of a join in another version of the format. Magic, version, kind and address have the
/// same place in every version. A welcome can therefore tell the sender the version of this side.
#[must_use]
pub fn join_of_another_version(bytes: &[u8]) -> Option<Address> {
    let header = bytes.first_chunk::<HEADER>()?;
    let ours = header.starts_with(&MAGIC) && header[common::KIND] == Kind::Join as u8;
    let other = header[common::VERSION] != offsets::VERSION;
    (ours && other).then(|| address_of(header))
}

/// Writes magic, version, kind and address; zeroes the rest of the header.
///
/// # Panics
/// When `buf` is shorter than the header: buffers are the caller's, not the network's.
pub(super) fn emit_common<'a>(buf: &'a mut [u8], kind: Kind, address: &Address) -> Writer<'a> {
    buf[..HEADER].fill(0);
    let mut writer = Writer(buf);
    writer.put(0, MAGIC);
    writer.put(common::VERSION, [offsets::VERSION]);
    writer.put(common::KIND, [kind as u8]);
    writer.put(common::JOB, address.job.0.to_be_bytes());
    writer.put(common::GENERATION, address.generation.to_be_bytes());
    writer.put(common::RANK, address.rank.to_be_bytes());
    writer.put(common::SESSION, address.session.0.to_be_bytes());
    writer
}
