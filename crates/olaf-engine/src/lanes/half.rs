//! Lanes of 16 bits to lanes of 32 and back.
//!
//! The crate `half` converts lane after lane, and takes branches. These conversions have none, so
//! that the compiler makes vectors of them. The tests compare them with `half`.

/// Bits of the exponent of an f16, where an f32 has them.
const F16_EXPONENT: u32 = 0x7c00 << 13;
/// What an exponent gains on its way from f16 to f32: its bias.
const REBIAS: u32 = (127 - 15) << 23;
/// The smallest normal f16, as an f32.
const F16_NORMAL: f32 = f32::from_bits((127 - 14) << 23);
/// From here to 1 the step between two f32s is the smallest f16: an addition to it rounds to f16s.
const F16_ROUND: f32 = 0.5;
/// The smallest magnitude that rounds to an infinity, as bits.
pub(super) const F16_OVERFLOW: u32 = 65_520f32.to_bits();
/// The same of a bf16: the middle between its largest number and the next one, if there were one.
pub(super) const BF16_OVERFLOW: u32 = 0x7f7f_8000;
const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = f32::INFINITY.to_bits();

/// The f32 of an f16.
#[inline(always)]
#[must_use]
pub const fn widen_f16(half: u16) -> f32 {
    let magnitude = (half as u32 & 0x7fff) << 13;
    let exponent = magnitude & F16_EXPONENT;
    // An infinity or a NaN needs the largest exponent of f32 as well.
    let rebias = if exponent == F16_EXPONENT { 2 * REBIAS } else { REBIAS };
    let normal = magnitude + rebias;
    // A subnormal number is put behind a leading 1, which is then taken away.
    let subnormal = f32::from_bits(magnitude + F16_NORMAL.to_bits()) - F16_NORMAL;
    let bits = if exponent == 0 { subnormal.to_bits() } else { normal };
    f32::from_bits(bits | ((half as u32 & 0x8000) << 16))
}

/// The nearest f16; of two the even one.
#[inline(always)]
#[must_use]
pub const fn round_f16(lane: f32) -> u16 {
    let sign = lane.to_bits() & SIGN;
    let magnitude = lane.to_bits() ^ sign;
    // Adding just under half of the last bit, and the bit itself, rounds ties to even.
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0x0fff + odd) >> 13;
    let subnormal = (f32::from_bits(magnitude) + F16_ROUND).to_bits() - F16_ROUND.to_bits();
    let finite = if magnitude < F16_NORMAL.to_bits() { subnormal } else { normal };
    let not_finite = if magnitude > INFINITY { 0x7e00 } else { 0x7c00 };
    let half = if magnitude < F16_OVERFLOW { finite } else { not_finite };
    (half | (sign >> 16)) as u16
}

/// The f32 of a bf16.
#[inline(always)]
#[must_use]
pub const fn widen_bf16(half: u16) -> f32 {
    f32::from_bits((half as u32) << 16)
}

/// The nearest bf16; of two the even one.
#[inline(always)]
#[must_use]
pub const fn round_bf16(lane: f32) -> u16 {
    let bits = lane.to_bits();
    let odd = (bits >> 16) & 1;
    // A NaN stays one, whatever its lower half was.
    let rounded = if lane.is_nan() { bits | 0x40_0000 } else { bits.wrapping_add(0x7fff + odd) };
    (rounded >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::half::{bf16, f16};
    use proptest::prelude::*;

    fn same(ours: f32, theirs: f32) -> bool {
        ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan()
    }

    fn rounds_alike(lane: f32) {
        let (ours, theirs) = (round_f16(lane), f16::from_f32_const(lane));
        assert!(
            ours == theirs.to_bits() || lane.is_nan() && f16::from_bits(ours).is_nan(),
            "{lane:e}: {ours:x} and {theirs:?}"
        );
        let (ours, theirs) = (round_bf16(lane), bf16::from_f32_const(lane));
        assert!(
            ours == theirs.to_bits() || lane.is_nan() && bf16::from_bits(ours).is_nan(),
            "{lane:e}: {ours:x} and {theirs:?}"
        );
    }

    #[test]
    fn every_half_is_the_number_that_the_library_says() {
        for bits in 0..=u16::MAX {
            assert!(same(widen_f16(bits), f16::from_bits(bits).to_f32_const()), "{bits:x}");
            assert!(same(widen_bf16(bits), bf16::from_bits(bits).to_f32_const()), "{bits:x}");
        }
    }

    #[test]
    fn the_edges_round_as_the_library_does() {
        for bits in 0..=u16::MAX {
            for exact in [widen_f16(bits), widen_bf16(bits)] {
                // Between two halves: just below the middle, the middle, just above it.
                for half_step in [0, 1 << 11, 1 << 12, 3 << 11, 1 << 15] {
                    for off in [-1i32, 0, 1] {
                        let bits = exact.to_bits().wrapping_add_signed(half_step + off);
                        rounds_alike(f32::from_bits(bits));
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_number_rounds_as_the_library_does(bits in any::<u32>()) {
            rounds_alike(f32::from_bits(bits));
        }
    }
}
