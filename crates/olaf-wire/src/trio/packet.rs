//! The header of a message of Trio-ML: a view that has checked it.

use super::offsets::{
    AGE_OP_SHIFT, DEGRADED, FINAL, HEADER, MAX_GRADIENTS, UNUSED, WORD, header, words,
};
use crate::packet::{Refusal, Writer, array_at};

/// What a datagram of Trio-ML is: the value of `age_op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A part of a block's sum, up, or the sum, down: [`super::Block`].
    Block = 0,
    /// The same, of a block that has aged out (Trio-ML §5).
    Aged = 1,
    /// A worker wants to take part, up: [`super::Hello`].
    Hello = 2,
    /// The answer, down: [`super::Welcome`].
    Welcome = 3,
    /// A worker misses results, up: [`super::Ask`].
    Ask = 4,
    /// The switch misses a worker's part, down: [`super::Want`].
    Want = 5,
    /// The term has ended, down: [`super::Closed`].
    Closed = 6,
    /// A worker's leave, up: [`super::Leave`].
    Leave = 7,
    /// A worker straggles, or no longer does, down: [`super::Straggler`].
    Straggler = 8,
    /// Results are no longer kept, down: [`super::Gone`].
    Gone = 9,
}

impl Kind {
    /// Every kind.
    pub const EACH: [Self; 10] = [
        Self::Block,
        Self::Aged,
        Self::Hello,
        Self::Welcome,
        Self::Ask,
        Self::Want,
        Self::Closed,
        Self::Leave,
        Self::Straggler,
        Self::Gone,
    ];

    /// Returns true if gradients follow the header.
    #[must_use]
    #[inline]
    pub const fn has_gradients(self) -> bool {
        matches!(self, Self::Block | Self::Aged)
    }

    /// The words behind the header; none where gradients follow.
    const fn words(self) -> Option<usize> {
        Some(match self {
            Self::Block | Self::Aged => return None,
            Self::Hello => words::HELLO,
            Self::Welcome => words::WELCOME,
            Self::Ask => words::ASK,
            Self::Want => words::WANT,
            Self::Closed => words::CLOSED,
            Self::Leave => words::LEAVE,
            Self::Straggler => words::STRAGGLER,
            Self::Gone => words::GONE,
        })
    }

    /// Returns true if that many words more have a meaning: a nonce, and in a hello a nonce and a program.
    const fn may_have(self, more: usize) -> bool {
        match self {
            Self::Hello => more == words::NONCE || more == words::NONCE_AND_PROGRAM,
            Self::Welcome => more == words::NONCE,
            _ => false,
        }
    }
}

/// The job of a message; none where there is none.
#[must_use]
pub fn job_of(bytes: &[u8]) -> Option<u32> {
    bytes.get(header::JOB_ID).copied().map(u32::from)
}

/// A datagram of Trio-ML whose header and length are in order.
#[derive(Clone, Copy, Debug)]
pub struct TrioPacket<'a> {
    header: &'a [u8; HEADER],
    words: &'a [u8],
    kind: Kind,
}

impl<'a> TrioPacket<'a> {
    /// Checks `bytes`, one whole datagram.
    ///
    /// # Errors
    /// The [`Refusal`] that says what is wrong with it.
    #[inline]
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let Some((header, words)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(Refusal::Truncated { have: bytes.len(), need: HEADER });
        };
        let age_op = header[header::AGE_OP] >> AGE_OP_SHIFT;
        let Some(kind) = Kind::EACH.get(usize::from(age_op)).copied() else {
            return Err(Refusal::UnknownKind(age_op));
        };
        let packet = Self { header, words, kind };
        let counted = packet.u16(header::GRAD_CNT);
        let count = if kind.has_gradients() { counted & MAX_GRADIENTS } else { counted };
        if packet.flags() & UNUSED != 0 || count > MAX_GRADIENTS {
            return Err(Refusal::BadField("unused"));
        }
        match kind.words() {
            Some(_) if packet.flags() != 0 => {
                return Err(Refusal::UnknownFlags(packet.flags().into()));
            }
            Some(words)
                if usize::from(count)
                    .checked_sub(words)
                    .is_some_and(|more| kind.may_have(more)) => {}
            Some(words) if usize::from(count) != words => {
                return Err(Refusal::BadField("grad_cnt"));
            }
            None if count == 0 => return Err(Refusal::BadField("grad_cnt")),
            None if packet.byte(header::SRC_CNT) == 0 => return Err(Refusal::BadField("src_cnt")),
            // Trio-ML §5: a block that has aged out is degraded.
            None if kind == Kind::Aged && !packet.has(DEGRADED) => {
                return Err(Refusal::BadField("degraded"));
            }
            _ => {}
        }
        let need = HEADER + usize::from(count) * WORD;
        match bytes.len() {
            have if have < need => Err(Refusal::Truncated { have, need }),
            have if have > need => Err(Refusal::Oversized { have, need }),
            _ => Ok(packet),
        }
    }

    /// What the datagram is.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Its job.
    #[must_use]
    #[inline]
    pub const fn job(&self) -> u8 {
        self.byte(header::JOB_ID)
    }

    /// Its sender, or the worker that it is about.
    #[must_use]
    #[inline]
    pub const fn source(&self) -> u8 {
        self.byte(header::SRC_ID)
    }

    /// The bytes behind the header: gradients, big-endian, at any alignment.
    #[must_use]
    #[inline]
    pub const fn gradients(&self) -> &'a [u8] {
        self.words
    }

    #[inline]
    fn flags(&self) -> u8 {
        self.byte(header::AGE_OP) & ((1 << AGE_OP_SHIFT) - 1)
    }

    #[inline]
    pub(super) fn has(&self, flag: u8) -> bool {
        debug_assert!(flag == FINAL || flag == DEGRADED, "there are two flags");
        self.flags() & flag != 0
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

    /// A word behind the header.
    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(array_at(self.words, at * WORD))
    }

    /// The word behind those that the kind always has; 0: there is none.
    pub(super) fn nonce(&self) -> Result<u32, Refusal> {
        let at = self.kind.words().unwrap_or_default();
        if self.words.len() <= at * WORD {
            return Ok(0);
        }
        // A nonce of 0 is left out, where no program follows.
        let has_more = self.words.len() > (at + words::NONCE) * WORD;
        let nonce = self.word(at);
        if nonce != 0 || has_more { Ok(nonce) } else { Err(Refusal::BadField("nonce")) }
    }

    /// The program behind the nonce; 0: there is none.
    pub(super) fn program(&self) -> Result<u64, Refusal> {
        let at = self.kind.words().unwrap_or_default() + words::NONCE;
        if self.words.len() <= at * WORD {
            return Ok(0);
        }
        // A program of 0 is left out.
        Some(self.long(at)).filter(|program| *program != 0).ok_or(Refusal::BadField("program"))
    }

    /// Two words.
    pub(super) fn long(&self, at: usize) -> u64 {
        u64::from(self.word(at)) << 32 | u64::from(self.word(at + 1))
    }

    /// A word that has one byte, or two.
    pub(super) fn narrow<T: TryFrom<u32>>(
        &self,
        at: usize,
        name: &'static str,
    ) -> Result<T, Refusal> {
        T::try_from(self.word(at)).map_err(|_| Refusal::BadField(name))
    }

    /// Checks the kind before the fields of a message are read.
    pub(super) fn expect(&self, kind: Kind) -> Result<(), Refusal> {
        if self.kind == kind { Ok(()) } else { Err(Refusal::BadField("kind")) }
    }

    /// Checks that fields that a message does not use are zero.
    pub(super) fn expect_unused(&self, unused: bool) -> Result<(), Refusal> {
        if unused { Ok(()) } else { Err(Refusal::BadField("unused")) }
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields {
    pub(super) job: u8,
    pub(super) block: u32,
    pub(super) source: u8,
    pub(super) sources: u8,
    pub(super) generation: u16,
}

/// Writes the header; `flags` are [`FINAL`] and [`DEGRADED`].
///
/// # Panics
/// When `buf` is shorter than the header: buffers are the caller's, not the network's.
pub(super) fn emit_header(buf: &mut [u8], kind: Kind, flags: u8, fields: &Fields, count: usize) {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    debug_assert!(count <= MAX_GRADIENTS, "callers count the gradients first");
    let mut writer = Writer(buf);
    writer.put(header::JOB_ID, [fields.job]);
    writer.put(header::BLOCK_ID, fields.block.to_be_bytes());
    writer.put(header::AGE_OP, [(kind as u8) << AGE_OP_SHIFT | flags]);
    writer.put(header::SRC_ID, [fields.source]);
    writer.put(header::SRC_CNT, [fields.sources]);
    writer.put(header::GEN_ID, fields.generation.to_be_bytes());
    writer.put(header::GRAD_CNT, count.to_be_bytes());
}

/// Writes a message without gradients; the bytes written.
pub(super) fn emit<const N: usize>(
    buf: &mut [u8],
    kind: Kind,
    fields: &Fields,
    words: [u32; N],
) -> usize {
    debug_assert_eq!(kind.words(), Some(N), "every kind has its number of words");
    emit_header(buf, kind, 0, fields, N);
    for (at, word) in words.into_iter().enumerate() {
        Writer(buf).put(HEADER + at * WORD, word.to_be_bytes());
    }
    HEADER + N * WORD
}

/// Writes a nonce, where there is one, behind a message that has been written; the bytes of both.
pub(super) fn emit_nonce(buf: &mut [u8], len: usize, nonce: u32) -> usize {
    if nonce == 0 { len } else { emit_more(buf, len, [nonce]) }
}

/// Writes words behind a message that has been written; the bytes of both.
pub(super) fn emit_more<const N: usize>(buf: &mut [u8], len: usize, words: [u32; N]) -> usize {
    let count = u16::try_from((len - HEADER) / WORD + N).unwrap_or(u16::MAX);
    let mut writer = Writer(buf);
    writer.put(header::GRAD_CNT, count.to_be_bytes());
    for (at, word) in words.into_iter().enumerate() {
        writer.put(len + at * WORD, word.to_be_bytes());
    }
    len + N * WORD
}

/// The two words of a long one.
pub(super) const fn halves(long: u64) -> [u32; 2] {
    [(long >> 32) as u32, long as u32]
}
