//! A datagram of ATP: a view that has checked it.

use super::offsets::{
    self, BITS, HEADER, TRAILER, VALUE, closed, control, flags, header, join, leave, more, trailer,
    welcome,
};
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
    /// A worker's good-bye, up: [`super::Leave`].
    Leave,
    /// The generation has ended, down: [`super::Closed`].
    Closed,
}

impl Kind {
    /// Every kind.
    pub const EACH: [Self; 6] =
        [Self::Gradient, Self::Parameters, Self::Join, Self::Welcome, Self::Leave, Self::Closed];

    /// The byte of a control message; 0 of the others.
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Gradient | Self::Parameters => 0,
            Self::Join => 1,
            Self::Welcome => 2,
            Self::Leave => 3,
            Self::Closed => 4,
        }
    }

    pub(super) const fn len(self) -> usize {
        match self {
            Self::Gradient | Self::Parameters => HEADER + TRAILER,
            Self::Join => join::LEN,
            Self::Welcome => welcome::LEN,
            Self::Leave => leave::LEN,
            Self::Closed => closed::LEN,
        }
    }
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
            (have, need) if have < need => Err(Refusal::Truncated { have, need }),
            (have, need) if have > need => Err(Refusal::Oversized { have, need }),
            _ => Ok(Self { bytes, kind }),
        }
    }

    /// Checks a gradient fragment packet or a parameter packet.
    #[inline]
    fn check_frame(&self) -> Result<(), Refusal> {
        let have = self.bytes.len();
        let need = HEADER + TRAILER + VALUE;
        let is_request = self.kind == Kind::Parameters && self.flag(flags::OVERFLOW);
        if have < HEADER + TRAILER || (have < need && !is_request) {
            return Err(Refusal::Truncated { have, need });
        }
        if have > MAX_DATAGRAM {
            return Err(Refusal::Oversized { have, need: MAX_DATAGRAM });
        }
        let rest = (have - HEADER - TRAILER) % VALUE;
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
        let more = self.bytes[header::MORE];
        if more & !(more::EDGE | more::SAME_SWITCH) != 0 || self.flag(flags::SECOND_HALF) {
            let flags = [more, self.bytes[header::FLAGS]];
            return Err(Refusal::UnknownFlags(u16::from_be_bytes(flags)));
        }
        match self.kind {
            Kind::Gradient => self.check_gradient(more),
            _ => self.check_parameters(more),
        }
    }

    #[inline]
    fn check_gradient(&self, more: u8) -> Result<(), Refusal> {
        let bitmaps = [self.u32(header::BITMAP0), self.u32(header::BITMAP1)];
        let fan_in = [self.bytes[header::FAN_IN0], self.bytes[header::FAN_IN1]];
        if fan_in.iter().any(|fan_in| *fan_in == 0 || u32::from(*fan_in) > BITS) {
            return Err(Refusal::BadField("fan_in"));
        }
        let many = |level: usize| bitmaps[level].count_ones() > u32::from(fan_in[level]);
        // One bit of the second bitmap: the first one names workers there. Several: all workers there.
        let is_whole = bitmaps[1].count_ones() > 1;
        if bitmaps[1] == 0 || many(1) {
            return Err(Refusal::BadField("bitmap1"));
        }
        if is_whole != (bitmaps[0] == 0) || many(0) || (is_whole && more & more::EDGE == 0) {
            return Err(Refusal::BadField("bitmap0"));
        }
        Ok(())
    }

    fn check_parameters(&self, more: u8) -> Result<(), Refusal> {
        let bitmaps = [self.u32(header::BITMAP0), self.u32(header::BITMAP1)];
        let most = if self.flag(flags::COLLISION) { u32::from(u16::MAX) } else { 0 };
        if bitmaps[0] > most || bitmaps[1] != 0 {
            return Err(Refusal::BadField("bitmap0"));
        }
        if self.bytes[header::FAN_IN0] != 0 || self.bytes[header::FAN_IN1] != 0 {
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
            Kind::Gradient | Kind::Parameters => &self.bytes[HEADER..self.bytes.len() - TRAILER],
            _ => &[],
        }
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
        let mut again = [0; welcome::LEN];
        let len = emit(&mut again);
        if again[..len] == *self.bytes { Ok(()) } else { Err(Refusal::BadField("unused")) }
    }
}
