//! All arithmetic on payload lanes: one pass that adds or copies and notices what is not finite.
//!
//! Each kernel is one plain loop, compiled twice: for every machine, and for AVX2 where the
//! processor has it. Lanes come as little-endian bytes and need no alignment.

use alloc::vec::Vec;

const EXPONENT: u32 = 0x7f80_0000;
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Lanes a kernel handles at once; a multiple of what any vector register holds.
const STRIDE: usize = 32;

/// Whether every lane is a finite number.
#[must_use]
pub fn all_finite(incoming: &[u8]) -> bool {
    let mut worst = 0;
    for bytes in incoming.chunks_exact(4) {
        worst = worst.max(lane(bytes).to_bits() & MAGNITUDE);
    }
    worst < EXPONENT
}

/// Writes `incoming` into `out`, which takes its length; whether all of it is finite. `out` is
/// garbage where it is not.
pub fn copy(out: &mut Vec<f32>, incoming: &[u8]) -> bool {
    out.resize(incoming.len() / 4, 0.0);
    dispatch(Kernel::Copy, out, &[], incoming) < EXPONENT
}

/// Writes `have + incoming` into `out`, which takes their length; whether all of it is finite.
/// `out` is garbage where it is not, and `have` is as it was.
///
/// The sum of a finite lane is not finite exactly when the incoming one is not, or when the two
/// overflow: both are refused, so looking at the sum alone is enough.
///
/// # Panics
/// When `incoming` is not four bytes for each lane of `have`.
pub fn add(out: &mut Vec<f32>, have: &[f32], incoming: &[u8]) -> bool {
    assert_eq!(incoming.len(), have.len() * 4, "callers compare the lengths first");
    out.resize(have.len(), 0.0);
    dispatch(Kernel::Add, out, have, incoming) < EXPONENT
}

#[derive(Clone, Copy)]
enum Kernel {
    Add,
    Copy,
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calling code compiled for AVX2 is sound only where there is AVX2")]
fn dispatch(kernel: Kernel, out: &mut [f32], have: &[f32], incoming: &[u8]) -> u32 {
    cpufeatures::new!(avx2, "avx2");
    if avx2::get() {
        // SAFETY: the processor was just seen to have AVX2, all that `wide` asks for.
        unsafe { wide(kernel, out, have, incoming) }
    } else {
        narrow(kernel, out, have, incoming)
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn dispatch(kernel: Kernel, out: &mut [f32], have: &[f32], incoming: &[u8]) -> u32 {
    narrow(kernel, out, have, incoming)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide(kernel: Kernel, out: &mut [f32], have: &[f32], incoming: &[u8]) -> u32 {
    narrow(kernel, out, have, incoming)
}

/// The largest magnitude written, as bits: at or above [`EXPONENT`] it was no finite number.
#[inline(always)]
fn narrow(kernel: Kernel, out: &mut [f32], have: &[f32], incoming: &[u8]) -> u32 {
    match kernel {
        Kernel::Add => add_loop(out, have, incoming),
        Kernel::Copy => copy_loop(out, incoming),
    }
}

#[inline(always)]
fn add_loop(out: &mut [f32], have: &[f32], incoming: &[u8]) -> u32 {
    let mut worst = [0u32; STRIDE];
    let (out_strides, out_rest) = out.as_chunks_mut::<STRIDE>();
    let (have_strides, have_rest) = have.as_chunks::<STRIDE>();
    let (strides, rest) = incoming.as_chunks::<{ STRIDE * 4 }>();
    for ((out, have), incoming) in out_strides.iter_mut().zip(have_strides).zip(strides) {
        for i in 0..STRIDE {
            let sum = have[i] + lane(&incoming[i * 4..i * 4 + 4]);
            out[i] = sum;
            worst[i] = worst[i].max(sum.to_bits() & MAGNITUDE);
        }
    }
    for ((out, have), bytes) in out_rest.iter_mut().zip(have_rest).zip(rest.chunks_exact(4)) {
        let sum = have + lane(bytes);
        *out = sum;
        worst[0] = worst[0].max(sum.to_bits() & MAGNITUDE);
    }
    worst.into_iter().fold(0, u32::max)
}

#[inline(always)]
fn copy_loop(out: &mut [f32], incoming: &[u8]) -> u32 {
    let mut worst = [0u32; STRIDE];
    let (out_strides, out_rest) = out.as_chunks_mut::<STRIDE>();
    let (strides, rest) = incoming.as_chunks::<{ STRIDE * 4 }>();
    for (out, incoming) in out_strides.iter_mut().zip(strides) {
        for i in 0..STRIDE {
            let value = lane(&incoming[i * 4..i * 4 + 4]);
            out[i] = value;
            worst[i] = worst[i].max(value.to_bits() & MAGNITUDE);
        }
    }
    for (out, bytes) in out_rest.iter_mut().zip(rest.chunks_exact(4)) {
        *out = lane(bytes);
        worst[0] = worst[0].max(out.to_bits() & MAGNITUDE);
    }
    worst.into_iter().fold(0, u32::max)
}

#[inline(always)]
fn lane(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(lanes: &[f32]) -> Vec<u8> {
        lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    proptest! {
        #[test]
        fn adding_is_adding_each_lane(pairs in prop::collection::vec((-1e30f32..1e30, any::<f32>()), 0..200)) {
            let (have, incoming): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let expected: Vec<f32> = pairs.iter().map(|(a, b)| a + b).collect();
            let finite = expected.iter().all(|lane| lane.is_finite());
            let mut out = Vec::new();
            prop_assert_eq!(add(&mut out, &have, &bytes(&incoming)), finite);
            if finite {
                prop_assert_eq!(out, expected);
            }
        }

        #[test]
        fn copying_keeps_bits_and_notices_what_is_not_finite(lanes in prop::collection::vec(any::<f32>(), 0..200)) {
            let finite = lanes.iter().all(|lane| lane.is_finite());
            let mut out = Vec::new();
            prop_assert_eq!(copy(&mut out, &bytes(&lanes)), finite);
            prop_assert_eq!(all_finite(&bytes(&lanes)), finite);
            prop_assert_eq!(bytes(&out), bytes(&lanes));
        }
    }

    #[test]
    fn one_bad_lane_anywhere_is_noticed() {
        for at in 0..100 {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut lanes = alloc::vec![1.0f32; 100];
                lanes[at] = bad;
                assert!(!add(&mut Vec::new(), &[1.0; 100], &bytes(&lanes)), "{bad} at {at}");
                assert!(!copy(&mut Vec::new(), &bytes(&lanes)), "{bad} at {at}");
            }
        }
    }

    #[test]
    fn a_sum_that_overflows_is_noticed() {
        assert!(!add(&mut Vec::new(), &[f32::MAX], &bytes(&[f32::MAX])));
    }
}
