//! Lanes of f16 with F16C, which has instructions for both conversions.
//!
//! These kernels are written by hand: the compiler finds the instructions only through their
//! intrinsics. They give what the kernels of [`typed`](super::typed) give, to the last bit, but for a
//! NaN's payload. The tests compare every f16.

#![allow(unsafe_code, reason = "code for wider registers is sound only where they are")]

use super::{INFINITY, MAGNITUDE};
use core::arch::x86_64::*;
use core::sync::atomic::{AtomicU8, Ordering};
use olaf_wire::reduce::Operator;

/// Lanes of a register.
const LANES: usize = 8;
/// Bytes of a register of f32.
const WIDE: usize = LANES * 4;
/// Bytes of as many f16.
const HALF: usize = LANES * 2;

/// Shows that the processor has AVX2 and F16C.
#[derive(Clone, Copy)]
pub(super) struct F16c(());

impl F16c {
    /// None where the processor lacks one of the two.
    #[inline]
    pub(super) fn new() -> Option<Self> {
        cpufeatures::new!(avx2, "avx2");
        // `avx2` says also that the system keeps the wide registers.
        (super::dispatch::allows(32) && avx2::get() && has_f16c()).then_some(Self(()))
    }

    /// Writes the lanes over a sum; whether all are finite.
    pub(super) fn begin(self, sum: &mut [u8], incoming: &[u8]) -> bool {
        // SAFETY: `self` shows that the processor has AVX2 and F16C, all that this asks for.
        unsafe { begin(sum, incoming) }
    }

    /// Takes lanes into a sum; whether what must be finite is (see [`combine`](super::typed::combine)).
    pub(super) fn combine(self, sum: &mut [u8], incoming: &[u8], operator: Operator) -> bool {
        // SAFETY: `self` shows that the processor has AVX2 and F16C, all that this asks for.
        unsafe { combine(sum, incoming, operator) }
    }

    /// Rounds a sum to lanes on the wire.
    pub(super) fn write(self, sum: &[u8], out: &mut [u8]) {
        // SAFETY: `self` shows that the processor has AVX2 and F16C, all that this asks for.
        unsafe { write(sum, out) }
    }
}

/// Returns true if the processor has F16C, which `cpufeatures` does not look for.
fn has_f16c() -> bool {
    const UNKNOWN: u8 = 0;
    const ABSENT: u8 = 1;
    const PRESENT: u8 = 2;
    static SEEN: AtomicU8 = AtomicU8::new(UNKNOWN);
    let mut seen = SEEN.load(Ordering::Relaxed);
    if seen == UNKNOWN {
        #[allow(unused_unsafe, reason = "it is safe in newer versions of Rust")]
        // SAFETY: every processor with AVX2 has the instruction `cpuid`, and its leaf 1.
        let leaf = unsafe { __cpuid(1) };
        seen = if leaf.ecx & (1 << 29) == 0 { ABSENT } else { PRESENT };
        SEEN.store(seen, Ordering::Relaxed);
    }
    seen == PRESENT
}

#[target_feature(enable = "avx2,f16c")]
fn begin(sum: &mut [u8], incoming: &[u8]) -> bool {
    // The sum's old lanes count for nothing.
    each(sum, incoming, |_, new| (new, new))
}

#[target_feature(enable = "avx2,f16c")]
fn combine(sum: &mut [u8], incoming: &[u8], operator: Operator) -> bool {
    let nan = _mm256_set1_ps(f32::NAN);
    // `or_nan(lanes, have)`: a NaN of the sum wins. One that comes in is what minimum and maximum of
    // the two are: where there is no order they give the second number, as for two zeros.
    let or_nan =
        |lanes, have| _mm256_blendv_ps(lanes, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(have, have));
    match operator {
        Operator::Sum => each(sum, incoming, |have, new| {
            let sum = _mm256_add_ps(have, new);
            (sum, sum)
        }),
        Operator::Min => {
            each(sum, incoming, |have, new| (or_nan(_mm256_min_ps(have, new), have), new))
        }
        Operator::Max => {
            each(sum, incoming, |have, new| (or_nan(_mm256_max_ps(have, new), have), new))
        }
        // A broadcast is its first piece.
        Operator::Broadcast => true,
    }
}

/// Combines the lanes of a sum with incoming ones. `combine` returns the new lanes, and those that
/// must be finite.
#[target_feature(enable = "avx2,f16c")]
fn each(
    sum: &mut [u8],
    incoming: &[u8],
    combine: impl Fn(__m256, __m256) -> (__m256, __m256),
) -> bool {
    let magnitude = _mm256_set1_epi32(MAGNITUDE as i32);
    let mut largest = _mm256_setzero_si256();
    let mut step = |sum: &mut [u8; WIDE], incoming: &[u8; HALF]| {
        let (lanes, look_at) = combine(load(sum), _mm256_cvtph_ps(load_half(incoming)));
        store(sum, lanes);
        let bits = _mm256_and_si256(_mm256_castps_si256(look_at), magnitude);
        largest = _mm256_max_epu32(largest, bits);
    };
    let (strides, sum_rest) = sum.as_chunks_mut::<WIDE>();
    let (halves, rest) = incoming.as_chunks::<HALF>();
    for (sum, incoming) in strides.iter_mut().zip(halves) {
        step(sum, incoming);
    }
    if !rest.is_empty() {
        // The lanes that are missing are 0, which is finite and changes nothing.
        let (mut lanes, mut halves) = ([0; WIDE], [0; HALF]);
        lanes[..sum_rest.len()].copy_from_slice(sum_rest);
        halves[..rest.len()].copy_from_slice(rest);
        step(&mut lanes, &halves);
        sum_rest.copy_from_slice(&lanes[..sum_rest.len()]);
    }
    let infinity = _mm256_set1_epi32(INFINITY as i32 - 1);
    _mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, infinity)) == 0
}

#[target_feature(enable = "avx2,f16c")]
fn write(sum: &[u8], out: &mut [u8]) {
    let step = |sum: &[u8; WIDE], out: &mut [u8; HALF]| {
        // The nearest f16; of two the even one.
        store_half(out, _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(load(sum)));
    };
    let (strides, rest) = sum.as_chunks::<WIDE>();
    let (halves, out_rest) = out.as_chunks_mut::<HALF>();
    for (sum, out) in strides.iter().zip(halves) {
        step(sum, out);
    }
    if !rest.is_empty() {
        let (mut lanes, mut halves) = ([0; WIDE], [0; HALF]);
        lanes[..rest.len()].copy_from_slice(rest);
        step(&lanes, &mut halves);
        out_rest.copy_from_slice(&halves[..out_rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx")]
fn load(lanes: &[u8; WIDE]) -> __m256 {
    // SAFETY: the array has the bytes of a register, and the load asks for no alignment.
    unsafe { _mm256_loadu_ps(lanes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx")]
fn store(to: &mut [u8; WIDE], lanes: __m256) {
    // SAFETY: the array has the bytes of a register, and the store asks for no alignment.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr().cast(), lanes) }
}

#[inline]
#[target_feature(enable = "avx")]
fn load_half(halves: &[u8; HALF]) -> __m128i {
    // SAFETY: the array has the bytes of a register, and the load asks for no alignment.
    unsafe { _mm_loadu_si128(halves.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx")]
fn store_half(to: &mut [u8; HALF], halves: __m128i) {
    // SAFETY: the array has the bytes of a register, and the store asks for no alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), halves) }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::with_at_most;
    use super::super::half::round_f16;
    use super::super::{Aligned, typed};
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use olaf_wire::reduce::LaneType::F16;

    const OPERATORS: [Operator; 4] =
        [Operator::Sum, Operator::Min, Operator::Max, Operator::Broadcast];

    /// Numbers that a sum may hold: zeros, numbers that are no f16, subnormal ones, the largest f16 and
    /// what rounds to an infinity, infinities, NaNs of both signs.
    const HAVE: [u32; 24] = [
        0,
        0x8000_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x3f80_0001,
        0x3eaa_aaab,
        0xc2f7_3333,
        0x3380_0000,
        0xb380_0000,
        0x387f_c000,
        0x3880_0000,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x477f_e000,
        0xc77f_e000,
        0x477f_f000,
        0xc780_0000,
        0x7f7f_ffff,
        0xff7f_ffff,
        INFINITY,
        INFINITY | 0x8000_0000,
        0x7fc0_0000,
        0xff80_0001,
    ];

    fn every_half() -> Vec<u8> {
        (0..=u16::MAX).flat_map(u16::to_le_bytes).collect()
    }

    /// The same number, or a NaN both.
    fn assert_same(ours: &[u8], portable: &[u8], what: &str) {
        assert_eq!(ours.len(), portable.len());
        let lanes = |bytes: &[u8]| bytes.as_chunks::<4>().0.to_vec();
        for (at, (ours, portable)) in lanes(ours).iter().zip(lanes(portable)).enumerate() {
            let (ours, portable) = (f32::from_le_bytes(*ours), f32::from_le_bytes(portable));
            let same = ours.to_bits() == portable.to_bits() || ours.is_nan() && portable.is_nan();
            assert!(same, "{what}, half {at:#x}: {ours:e} and {portable:e}");
        }
    }

    fn portable<T>(test: impl FnOnce() -> T) -> T {
        with_at_most(16, test)
    }

    // A processor without F16C has nothing to compare.

    #[test]
    fn every_half_begins_a_sum_as_the_portable_kernel_says() {
        let Some(f16c) = F16c::new() else { return };
        let (halves, mut expected) = (every_half(), Aligned::default());
        let mut sum = vec![0xff; halves.len() * 2];
        assert!(!f16c.begin(&mut sum, &halves));
        assert!(!portable(|| typed::begin(&mut expected, F16, &halves)));
        assert_same(&sum, &expected, "begin");
    }

    #[test]
    fn every_half_combines_with_any_sum_as_the_portable_kernel_says() {
        let Some(f16c) = F16c::new() else { return };
        let halves = every_half();
        for operator in OPERATORS {
            for have in HAVE {
                let mut sum: Vec<u8> = (0..=u16::MAX).flat_map(|_| have.to_le_bytes()).collect();
                let mut expected = sum.clone();
                let finite = f16c.combine(&mut sum, &halves, operator);
                let also = portable(|| typed::combine(&mut expected, F16, operator, &halves));
                assert_eq!(finite, also);
                assert_same(&sum, &expected, &alloc::format!("{operator:?} with {have:#x}"));
            }
        }
    }

    #[test]
    fn every_half_alone_is_as_finite_as_the_portable_kernel_says() {
        let Some(f16c) = F16c::new() else { return };
        for half in 0..=u16::MAX {
            let half = half.to_le_bytes();
            let (mut sum, mut expected) = ([0; 4], Aligned::default());
            let finite =
                [f16c.begin(&mut sum, &half), portable(|| typed::begin(&mut expected, F16, &half))];
            assert_eq!(finite, [typed::all_finite(F16, &half); 2], "{half:x?}");
            for operator in OPERATORS {
                for have in [0x3f80_0000, 0x7f7f_ffff, INFINITY, 0xff80_0001u32] {
                    let (mut sum, mut expected) = (have.to_le_bytes(), have.to_le_bytes());
                    let finite = f16c.combine(&mut sum, &half, operator);
                    let also = portable(|| typed::combine(&mut expected, F16, operator, &half));
                    assert_eq!(finite, also, "{operator:?} of {have:#x} and {half:x?}");
                }
            }
        }
    }

    #[test]
    fn sums_round_as_the_portable_kernel_says() {
        let Some(f16c) = F16c::new() else { return };
        let mut sum = Vec::new();
        for half in 0..=u16::MAX {
            let exact = super::super::half::widen_f16(half).to_bits();
            // Between two halves: just below the middle, the middle, just above it. Subnormal halves
            // lie further apart.
            for half_step in (8..24).map(|bit| 1u32 << bit).chain([0]) {
                for off in [u32::MAX, 0, 1] {
                    let bits = exact.wrapping_add(half_step).wrapping_add(off);
                    sum.extend(bits.to_le_bytes());
                }
            }
        }
        let mut halves = vec![0; sum.len() / 2];
        f16c.write(&sum, &mut halves);
        for (lane, half) in sum.as_chunks::<4>().0.iter().zip(halves.as_chunks::<2>().0) {
            let (lane, half) = (f32::from_le_bytes(*lane), u16::from_le_bytes(*half));
            let is_nan = half & 0x7fff > 0x7c00 && (half >> 15 == 1) == lane.is_sign_negative();
            let same = if lane.is_nan() { is_nan } else { half == round_f16(lane) };
            assert!(same, "{lane:e}: {half:#x} and {:#x}", round_f16(lane));
        }
    }

    #[test]
    fn lanes_that_fill_no_register_are_lanes_too() {
        let Some(f16c) = F16c::new() else { return };
        for lanes in 0..=3 * LANES {
            let halves: Vec<u8> =
                (0..lanes).flat_map(|lane| round_f16(lane as f32 - 3.5).to_le_bytes()).collect();
            let mut sum = vec![0; lanes * 4];
            assert!(f16c.begin(&mut sum, &halves));
            assert!(f16c.combine(&mut sum, &halves, Operator::Sum));
            let mut out = vec![0; lanes * 2];
            f16c.write(&sum, &mut out);
            let twice =
                (0..lanes).flat_map(|lane| round_f16(2.0 * lane as f32 - 7.0).to_le_bytes());
            assert_eq!(out, twice.collect::<Vec<u8>>());
            for at in 0..lanes {
                let mut bad = halves.clone();
                bad[2 * at..][..2].copy_from_slice(&0x7c00u16.to_le_bytes());
                assert!(!f16c.begin(&mut sum.clone(), &bad), "{at} of {lanes}");
                for operator in [Operator::Sum, Operator::Min, Operator::Max] {
                    assert!(!f16c.combine(&mut sum.clone(), &bad, operator), "{at} of {lanes}");
                }
            }
        }
    }
}
