//! What a switch tells all workers of a job.

use super::offsets::header;
use super::packet::{Fields, Kind, TrioPacket, emit, halves};
use crate::call::Sides;
use crate::packet::Refusal;
use crate::reduce::Reason;

/// The term has ended, down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The job.
    pub job: u8,
    /// The term.
    pub term: u32,
    /// The worker that is the reason; [`super::ANY`]: nobody of the term.
    pub culprit: u8,
    /// All generations before this one are finished: their results can be had.
    pub generation: u16,
    /// Bit `i`: generation `generation + i` is finished too. All others end without a result.
    pub mask: u64,
    /// Why it has ended.
    pub reason: Reason,
    /// What the worker and the others call, where they differ.
    pub sides: Sides,
}

impl Closed {
    /// Reads the fields.
    ///
    /// # Errors
    /// Names the field that cannot be.
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Closed)?;
        let reason = packet.word(0);
        let reason = Reason::EACH.into_iter().find(|known| *known as u32 == reason);
        Ok(Self {
            job: packet.job(),
            term: packet.u32(header::BLOCK_ID),
            culprit: packet.source(),
            generation: packet.u16(header::GEN_ID),
            mask: packet.long(1),
            reason: reason.ok_or(Refusal::BadField("reason"))?,
            sides: Sides::from_byte(packet.byte(header::SRC_CNT)),
        })
    }

    /// Returns true if all results of a generation can still be had.
    #[must_use]
    pub const fn finishes(&self, generation: u16) -> bool {
        let ahead = generation.wrapping_sub(self.generation);
        match ahead {
            0..64 => self.mask >> ahead & 1 == 1,
            _ => ahead >= 1 << 15,
        }
    }

    /// Writes the message; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let fields = Fields {
            job: self.job,
            block: self.term,
            source: self.culprit,
            sources: self.sides.byte(),
            generation: self.generation,
        };
        let [high, low] = halves(self.mask);
        emit(buf, Kind::Closed, &fields, [self.reason as u32, high, low])
    }
}

/// What a worker that blocks went without is (Trio-ML §5, advanced straggler mitigation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Straggling {
    /// It keeps up again.
    Not = 0,
    /// It slows down temporarily: blocks still wait for it.
    Temporary = 1,
    /// It is out of service: blocks no longer wait for it.
    Permanent = 2,
}

impl Straggling {
    /// Every value.
    pub const EACH: [Self; 3] = [Self::Not, Self::Temporary, Self::Permanent];

    /// A short stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Not => "not",
            Self::Temporary => "temporary",
            Self::Permanent => "permanent",
        }
    }
}

/// A worker straggles, or no longer does, down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Straggler {
    /// The job.
    pub job: u8,
    /// The term.
    pub term: u32,
    /// The worker.
    pub source: u8,
    /// What it is now.
    pub straggling: Straggling,
    /// Blocks that went without it in this term.
    pub events: u32,
}

impl Straggler {
    /// Reads the fields.
    ///
    /// # Errors
    /// Names the field that cannot be.
    pub fn parse(packet: &TrioPacket<'_>) -> Result<Self, Refusal> {
        packet.expect(Kind::Straggler)?;
        packet
            .expect_unused(packet.byte(header::SRC_CNT) == 0 && packet.u16(header::GEN_ID) == 0)?;
        let what = packet.word(0);
        let what = Straggling::EACH.into_iter().find(|known| *known as u32 == what);
        Ok(Self {
            job: packet.job(),
            term: packet.u32(header::BLOCK_ID),
            source: packet.source(),
            straggling: what.ok_or(Refusal::BadField("straggling"))?,
            events: packet.word(1),
        })
    }

    /// Writes the message; the bytes written.
    ///
    /// # Panics
    /// When `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let fields =
            Fields { job: self.job, block: self.term, source: self.source, ..Fields::default() };
        emit(buf, Kind::Straggler, &fields, [self.straggling as u32, self.events])
    }
}
