//! The tensor key, which tells old packets from new ones.

use super::offsets::{SEQUENCE_BITS, TENSOR_BITS};

/// What the tensor key says.
///
/// differs: the paper does not say how 16-bit sequence numbers wrap, nor what tells the packets of a
/// restarted job from old ones. Here the key has the generation (16 bits), what the workers call (4 bits),
/// the tensor (20 bits), and how often the sequence number has wrapped (24 bits). An old packet thus never passes for
/// a new one. Switches add packets with one key: workers that call different operations meet at the server alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The generation: a time with one set of workers in one arrangement.
    pub generation: u16,
    /// What the workers call: 4 bits ([`Call::narrow`](crate::Call::narrow)).
    pub call: u8,
    /// The tensor, counted from 0; its lowest 20 bits.
    pub tensor: u32,
    /// How often the sequence number has wrapped; its lowest 24 bits.
    pub wraps: u32,
}

impl Key {
    const TENSOR: u32 = (1 << TENSOR_BITS) - 1;
    const WRAPS: u32 = (1 << 24) - 1;
    const CALL: u8 = 0xf;
    const CALL_SHIFT: u32 = 24 + TENSOR_BITS;

    /// The key of a fragment of a sum.
    #[must_use]
    pub const fn new(generation: u16, tensor: u64, sequence: u64) -> Self {
        let (tensor, wraps) = (tensor as u32, (sequence >> 16) as u32);
        let (tensor, wraps) = (tensor & Self::TENSOR, wraps & Self::WRAPS);
        Self { generation, call: 0, tensor, wraps }
    }

    /// The same of an operation that the workers call that.
    #[must_use]
    pub const fn calling(self, call: u8) -> Self {
        Self { call: call & Self::CALL, ..self }
    }

    /// The same as a number.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        let call = (self.call as u64) << Self::CALL_SHIFT;
        (self.generation as u64) << 48 | call | (self.tensor as u64) << 24 | self.wraps as u64
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        let (tensor, wraps) = ((bits >> 24) as u32, bits as u32);
        Self {
            generation: (bits >> 48) as u16,
            call: (bits >> Self::CALL_SHIFT) as u8 & Self::CALL,
            tensor: tensor & Self::TENSOR,
            wraps: wraps & Self::WRAPS,
        }
    }

    /// The sequence number with its wraps, of which the frame has 40 bits, that is nearest to `near`.
    #[must_use]
    pub const fn sequence(self, low: u16, near: u64) -> u64 {
        widen((self.wraps as u64) << 16 | low as u64, SEQUENCE_BITS, near)
    }

    /// The tensor's number that is nearest to `near`.
    #[must_use]
    pub const fn tensor_near(self, near: u64) -> u64 {
        widen(self.tensor as u64, TENSOR_BITS, near)
    }
}

/// The number with those lowest `bits` bits that is nearest to `near`.
#[must_use]
pub const fn widen(low: u64, bits: u32, near: u64) -> u64 {
    let span = 1u64 << bits;
    let ahead = low.wrapping_sub(near) & (span - 1);
    let behind = span - ahead;
    if ahead <= span / 2 || near < behind { near.wrapping_add(ahead) } else { near - behind }
}
