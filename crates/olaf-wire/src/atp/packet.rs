//! A datagram of ATP: a view that has checked it.

use super::offsets::{
    self, BITS, HEADER, LEVELS, TRAILER, VALUE, closed, control, flags, header, join, leave, left,
    more, trailer, upper, welcome,
};
use super::upper::Upper;
use crate::offsets::MAX_DATAGRAM;
use crate::packet::{Refusal, array_at};

/// What a datagram of ATP is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A gradient fragment packet, up.
    Gradient,
    /// A parameter packet, down.
    Parameters,
    /// A worker wants to take part, or is still there, up: [`super::Join`].
    Join,
    /// The answer to a join, down: [`super::Welcome`].
    Welcome,
    /// A worker's leave, up: [`super::Leave`].
    Leave,
    /// The generation has ended, down: [`super::Closed`].
    Closed,
    /// The server has heard a leave, down: [`super::Left`].
    Left,
}

impl Kind {
    /// Every kind.
    pub const EACH: [Self; 7] = [
        Self::Gradient,
        Self::Parameters,
        Self::Join,
        Self::Welcome,
        Self::Leave,
        Self::Closed,
        Self::Left,
    ];

    /// The byte of a control message; 0 of the others.
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Gradient | Self::Parameters => 0,
            Self::Join => 1,
            Self::Welcome => 2,
            Self::Leave => 3,
            Self::Closed => 4,
            Self::Left => 5,
        }
    }

    pub(super) const fn len(self) -> usize {
        match self {
            Self::Gradient | Self::Parameters => HEADER + TRAILER,
            Self::Join => join::LEN,
            Self::Welcome => welcome::LEN,
            Self::Leave => leave::LEN,
            Self::Closed => closed::LEN,
            Self::Left => left::LEN,
        }
    }

    /// The length of a message about more than two levels.
    pub(super) const fn long(self) -> usize {
        match self {
            Self::Join => join::LONG,
            Self::Welcome => welcome::LONG,
            _ => self.len(),
        }
    }
}

/// What a bitmap is called, by level.
const BITMAPS: [&str; LEVELS] = ["bitmap0", "bitmap1", "bitmap2", "bitmap3"];

/// The job of a packet; none where there is none. Packets and control messages have it at the same
/// place.
#[must_use]
pub fn job_of(bytes: &[u8]) -> Option<u32> {
    let job = bytes.get(header::JOB..header::JOB + 2)?;
    Some(u32::from(u16::from_be_bytes(job.try_into().ok()?)))
}

/// A datagram of ATP whose length, flags and, of a packet with values, all fields are in order.
#[derive(Clone, Copy, Debug)]
pub struct AtpPacket<'a> {
    bytes: &'a [u8],
    kind: Kind,
}

impl<'a> AtpPacket<'a> {
    /// Checks `bytes`, one whole datagram.
    ///
    /// # Errors
    /// The [`Refusal`] that says what is wrong with it.
    #[inline]
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if bytes.len() < HEADER {
            return Err(Refusal::Truncated { have: bytes.len(), need: HEADER });
        }
        if bytes[header::MORE] & more::CONTROL != 0 {
            return Self::control(bytes);
        }
        let kind =
            if bytes[header::FLAGS] & flags::ACK == 0 { Kind::Gradient } else { Kind::Parameters };
        let packet = Self { bytes, kind };
        packet.check_frame()?;
        Ok(packet)
    }

    fn control(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if bytes[control::VERSION] != offsets::VERSION {
            let have = bytes[control::VERSION];
            return Err(Refusal::WrongVersion { have, speaks: offsets::VERSION });
        }
        let byte = bytes[control::KIND];
        let kind = Kind::EACH.into_iter().find(|kind| byte != 0 && kind.byte() == byte);
        let kind = kind.ok_or(Refusal::UnknownKind(byte))?;
        let flags = (bytes[control::FLAGS], bytes[control::MORE]);
        if flags.0 & !flags::SERVER != 0 || flags.1 != more::CONTROL {
            return Err(Refusal::UnknownFlags(u16::from_be_bytes([flags.1, flags.0])));
        }
        match (bytes.len(), kind.len()) {
            (have, _) if have == kind.long() => Ok(Self { bytes, kind }),
            (have, need) if have < need => Err(Refusal::Truncated { have, need }),
            (have, need) if have > need => Err(Refusal::Oversized { have, need }),
            _ => Ok(Self { bytes, kind }),
        }
    }

    /// Checks a gradient fragment packet or a parameter packet.
    #[inline]
    fn check_frame(&self) -> Result<(), Refusal> {
        let have = self.bytes.len();
        let more = self.bytes[header::MORE];
        let known = more::EDGE | more::SAME_SWITCH | more::UPPER;
        if more & !known != 0 || self.flag(flags::SECOND_HALF) {
            let flags = [more, self.bytes[header::FLAGS]];
            return Err(Refusal::UnknownFlags(u16::from_be_bytes(flags)));
        }
        let start = self.values_at();
        let need = start + TRAILER + VALUE;
        let is_request = self.kind == Kind::Parameters && self.flag(flags::OVERFLOW);
        if have < start + TRAILER || (have < need && !is_request) {
            return Err(Refusal::Truncated { have, need });
        }
        if have > MAX_DATAGRAM {
            return Err(Refusal::Oversized { have, need: MAX_DATAGRAM });
        }
        let rest = (have - start - TRAILER) % VALUE;
        if rest != 0 {
            return Err(Refusal::Truncated { have, need: have - rest + VALUE });
        }
        let values = self.values().len() / VALUE;
        if is_request && values > 0 {
            return Err(Refusal::BadField("values"));
        }
        if (self.u32(have - TRAILER + trailer::LENGTH) as usize) < values {
            return Err(Refusal::BadField("tensor_length"));
        }
        match self.kind {
            Kind::Gradient => self.check_gradient(more),
            _ => self.check_parameters(more),
        }
    }

    #[inline]
    fn check_gradient(&self, more: u8) -> Result<(), Refusal> {
        let mut bitmaps = [self.u32(header::BITMAP0), self.u32(header::BITMAP1), 1, 1];
        let mut fan_ins = [self.bytes[header::FAN_IN0], self.bytes[header::FAN_IN1], 1, 1];
        let mut passed = 0;
        if let Some(bytes) = self.upper() {
            let upper = Upper::parse(bytes);
            bitmaps[2..].copy_from_slice(&upper.bitmaps);
            fan_ins[2..].copy_from_slice(&upper.fan_ins);
            let known = upper::PASSED | upper::SAME_SWITCH1 | upper::SAME_SWITCH2;
            if bytes[upper::PLACE] & !known != 0 || bytes[upper::UNUSED] != 0 {
                return Err(Refusal::BadField("upper"));
            }
            passed = usize::from(upper.passed);
        }
        if fan_ins.iter().any(|fan_in| *fan_in == 0 || u32::from(*fan_in) > BITS) {
            return Err(Refusal::BadField("fan_in"));
        }
        if more & more::EDGE == 0 && passed > 0 {
            return Err(Refusal::BadField("upper"));
        }
        let level = if more & more::EDGE == 0 { 0 } else { 1 + passed };
        // One bit of a level: the next lower one names workers or groups there. Several: all of them,
        // and the lower bitmaps are 0.
        let mut is_whole = false;
        for at in (0..LEVELS).rev() {
            let named = bitmaps[at].count_ones();
            let fits = if is_whole { named == 0 } else { named > 0 };
            if !fits || named > u32::from(fan_ins[at]) || (named > 1 && level < at) {
                return Err(Refusal::BadField(BITMAPS[at]));
            }
            is_whole |= named > 1;
        }
        Ok(())
    }

    fn check_parameters(&self, more: u8) -> Result<(), Refusal> {
        let bitmaps = [self.u32(header::BITMAP0), self.u32(header::BITMAP1)];
        let most = if self.flag(flags::COLLISION) { u32::from(u16::MAX) } else { 0 };
        if bitmaps[0] > most || bitmaps[1] != 0 {
            return Err(Refusal::BadField("bitmap0"));
        }
        // A result names a factor there.
        let is_result = !self.flag(flags::OVERFLOW);
        if (self.bytes[header::FAN_IN0] != 0 && !is_result) || self.bytes[header::FAN_IN1] != 0 {
            return Err(Refusal::BadField("fan_in"));
        }
        if more != 0 || self.flag(flags::RESEND) {
            let flags = [more, self.bytes[header::FLAGS]];
            return Err(Refusal::UnknownFlags(u16::from_be_bytes(flags)));
        }
        Ok(())
    }

    /// What the datagram is.
    #[must_use]
    #[inline]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The values as they came: big-endian, four bytes each; none of a control message.
    #[must_use]
    #[inline]
    pub fn values(&self) -> &'a [u8] {
        match self.kind {
            Kind::Gradient | Kind::Parameters => {
                &self.bytes[self.values_at()..self.bytes.len() - TRAILER]
            }
            _ => &[],
        }
    }

    /// Where the values begin.
    #[inline]
    const fn values_at(&self) -> usize {
        HEADER + if self.bytes[header::MORE] & more::UPPER == 0 { 0 } else { upper::LEN }
    }

    /// The part for the third and the fourth level, of a packet with values that has it.
    #[inline]
    pub(super) fn upper(&self) -> Option<&'a [u8; upper::LEN]> {
        let has_it = self.bytes[header::MORE] & (more::UPPER | more::CONTROL) == more::UPPER;
        has_it.then(|| self.bytes.get(HEADER..)?.first_chunk()).flatten()
    }

    /// The job of any message.
    #[must_use]
    #[inline]
    pub fn job(&self) -> u16 {
        self.u16(header::JOB)
    }

    /// The server of any message, below [`super::MAX_SERVERS`].
    #[must_use]
    #[inline]
    pub const fn server(&self) -> u8 {
        (self.bytes[header::FLAGS] & flags::SERVER) >> flags::SERVER_SHIFT
    }

    #[inline]
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(super) const fn flag(&self, flag: u8) -> bool {
        self.bytes[header::FLAGS] & flag != 0
    }

    #[inline]
    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(array_at(self.bytes, at))
    }

    #[inline]
    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(array_at(self.bytes, at))
    }

    #[inline]
    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(array_at(self.bytes, at))
    }

    /// Checks the kind before the fields of a message are read.
    pub(super) fn expect(&self, kind: Kind) -> Result<(), Refusal> {
        if self.kind == kind { Ok(()) } else { Err(Refusal::BadField("kind")) }
    }

    /// Checks that a control message has zeros where it has no field: written again, it has the same
    /// bytes.
    pub(super) fn expect_written(
        &self,
        emit: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), Refusal> {
        let mut again = [0; welcome::LONG];
        let len = emit(&mut again);
        if again[..len] == *self.bytes { Ok(()) } else { Err(Refusal::BadField("unused")) }
    }
}
