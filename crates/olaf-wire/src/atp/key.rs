//! The tensor key, which tells old packets from new ones.

use super::offsets::{SEQUENCE_BITS, TENSOR_BITS};

/// What the tensor key says.
///
/// differs: the paper does not say how 16-bit sequence numbers wrap, nor what tells the packets of a
/// restarted job from old ones. Here the key has the generation (16 bits), the tensor (24 bits), and
/// how often the sequence number has wrapped (24 bits). An old packet thus never passes for a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The generation: a time with one set of workers in one arrangement.
    pub generation: u16,
    /// The tensor, counted from 0; its lowest 24 bits.
    pub tensor: u32,
    /// How often the sequence number has wrapped; its lowest 24 bits.
    pub wraps: u32,
}

impl Key {
    const MASK: u32 = (1 << TENSOR_BITS) - 1;

    /// The key of a fragment.
    #[must_use]
    pub const fn new(generation: u16, tensor: u64, sequence: u64) -> Self {
        let (tensor, wraps) = (tensor as u32, (sequence >> 16) as u32);
        Self { generation, tensor: tensor & Self::MASK, wraps: wraps & Self::MASK }
    }

    /// The same as a number.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 48 | (self.tensor as u64) << 24 | self.wraps as u64
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        let (tensor, wraps) = ((bits >> 24) as u32, bits as u32);
        Self {
            generation: (bits >> 48) as u16,
            tensor: tensor & Self::MASK,
            wraps: wraps & Self::MASK,
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
