//! Data packets: a Seg and raw floats (iSwitch Figure 5b).

use super::offsets::{
    GENERATION_SHIFT, LAST_SHIFT, MAX_INDEX, MAX_WORKERS, MISSING_SHIFT, SEG, VERSION,
};
use crate::offsets::MAX_DATAGRAM;
use crate::packet::{Refusal, array_at};

/// Bytes of a float.
const FLOAT: usize = 4;
const _: () = assert!(VERSION == 3, "a Seg has no version: a join of another version is refused");

/// The 8 bytes before the floats. Every value of 8 bytes is a Seg.
///
/// differs: in the paper a Seg is a place in the gradient vector. A repeated or late packet would count
/// twice. Here `index` counts on from one vector to the next: packet `i` of the `n`-th vector of `P` packets
/// has index `n P + i`. The upper bits say which times of one membership these are, and what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Seg {
    /// The time with one set of workers, modulo 256.
    pub generation: u8,
    /// The packet is the last of its vector.
    pub last: bool,
    /// Of a sum: workers that are not in it, at most [`MAX_WORKERS`], and the number of workers more where the sum
    /// has [numbered](Self::vectors_of) vectors. Of a worker's own packet: the worker's vectors for the same sum
    /// before this one, 0 except in asynchronous training (iSwitch §4.1).
    pub missing: u16,
    /// The packet's number in its generation, at most [`MAX_INDEX`].
    pub index: u64,
}

impl Seg {
    /// The Seg of these 8 bytes, which are in network byte order.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            generation: (bits >> GENERATION_SHIFT) as u8,
            last: bits >> LAST_SHIFT & 1 == 1,
            missing: (bits >> MISSING_SHIFT) as u16 & MAX_WORKERS as u16,
            index: bits & MAX_INDEX,
        }
    }

    /// The 8 bytes as a number.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        let missing = self.missing & MAX_WORKERS as u16;
        (self.generation as u64) << GENERATION_SHIFT
            | (self.last as u64) << LAST_SHIFT
            | (missing as u64) << MISSING_SHIFT
            | self.index & MAX_INDEX
    }
}

impl Seg {
    /// [`missing`](Self::missing) of a sum of `vectors` vectors, where `workers` belong to it. `numbered`: a worker's
    /// vector with a number above 0 is among them.
    #[must_use]
    pub const fn missing_of(workers: u32, vectors: u32, numbered: bool) -> u16 {
        let missing = workers.saturating_sub(vectors);
        (if numbered { missing + workers } else { missing }) as u16
    }

    /// Vectors in a sum that `workers` belong to, and whether one of them has a number above 0. Several vectors may
    /// then be of one worker: fewer workers than vectors may be in the sum.
    #[must_use]
    pub const fn vectors_of(self, workers: u32) -> (u32, bool) {
        let missing = self.missing as u32;
        if missing < workers {
            return (workers - missing, false);
        }
        (workers.saturating_sub(missing - workers), true)
    }
}

/// Writes a Seg; returns where the floats begin.
///
/// # Panics
/// When `buf` is shorter than a Seg: buffers are the caller's, not the network's.
pub fn emit_seg(seg: Seg, buf: &mut [u8]) -> usize {
    buf[..SEG].copy_from_slice(&seg.to_bits().to_be_bytes());
    SEG
}

/// A data packet whose length is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPacket<'a> {
    /// Which packet it is.
    pub seg: Seg,
    /// The floats as they came: f32, little-endian, at least one, at any alignment.
    pub floats: &'a [u8],
}

impl<'a> DataPacket<'a> {
    /// Checks `bytes`, one whole datagram of [`DATA_CLASS`](super::DATA_CLASS).
    ///
    /// # Errors
    /// [`Refusal::Truncated`] where there is no whole float behind the Seg, [`Refusal::BadField`] where
    /// the last float is not whole, [`Refusal::Oversized`] beyond [`MAX_DATAGRAM`].
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let have = bytes.len();
        if have < SEG + FLOAT {
            return Err(Refusal::Truncated { have, need: SEG + FLOAT });
        }
        if have > MAX_DATAGRAM {
            return Err(Refusal::Oversized { have, need: MAX_DATAGRAM });
        }
        let floats = &bytes[SEG..];
        if !floats.len().is_multiple_of(FLOAT) {
            return Err(Refusal::BadField("floats"));
        }
        Ok(Self { seg: Seg::from_bits(u64::from_be_bytes(array_at(bytes, 0))), floats })
    }
}
