//! All arithmetic on payload lanes: one pass that adds or copies and notices what is not finite.
//!
//! Each kernel is one plain loop, compiled for every machine, for AVX2 and for AVX-512. Lanes come as
//! little-endian bytes and need no alignment; a datagram at the start of a cache line is the fastest,
//! because its lanes and those of a sum then lie in their lines alike.
//!
//! What is not finite is noticed by adding up everything a kernel writes: an infinity or a NaN
//! makes such a sum not finite and stays in it, at the cost of one addition a vector. Where that
//! happens to numbers that are only very large, a second look at each of them decides.

mod aligned;
mod buffer;
mod dispatch;
pub mod fixed;
mod half;
pub mod saturating;
pub mod typed;

pub use aligned::Aligned;
pub use buffer::Lanes;

use buffer::HEAD;
use dispatch::dispatched;

const MAGNITUDE: u32 = 0x7fff_ffff;
const INFINITY: u32 = f32::INFINITY.to_bits();

/// Whether every lane is a finite number.
#[must_use]
pub fn all_finite(incoming: &[u8]) -> bool {
    looks_finite(incoming) || lanes(incoming).all(f32::is_finite)
}

/// Writes `incoming` into `out`, which takes its length; whether all of it is finite. `out` is
/// garbage where it is not.
pub fn copy(out: &mut Lanes, incoming: &[u8]) -> bool {
    out.resize(incoming.len() / 4);
    copy_lanes(out, incoming) || out.iter().all(|lane| lane.is_finite())
}

/// Writes `have + incoming` into `out`, which takes their length; whether all of it is finite.
/// `out` is garbage where it is not, and `have` is as it was.
///
/// The sum of a finite lane is not finite exactly when the incoming one is not, or when the two
/// overflow: both are refused, so looking at the sum alone is enough.
///
/// # Panics
/// When `incoming` is not four bytes for each lane of `have`.
#[inline]
pub fn add(out: &mut Lanes, have: &[f32], incoming: &[u8]) -> bool {
    assert_eq!(incoming.len(), have.len() * 4, "callers compare the lengths first");
    out.resize(have.len());
    add_lanes(out, have, incoming) || out.iter().all(|lane| lane.is_finite())
}

/// The length of the lanes as a vector; not finite where a lane is not.
#[must_use]
pub fn length(incoming: &[u8]) -> f64 {
    let sum = sum_of_squares(incoming);
    // The squares of very large lanes do not fit a float32. Those of lanes below 1e-22 are 0, and so is
    // the length of an update of such lanes: nothing depends on it, and a flood of zeros costs no more.
    let fits = sum < 1e30;
    let slow = || lanes(incoming).map(f64::from).map(|lane| lane * lane).sum();
    libm::sqrt(if fits { sum } else { slow() })
}

dispatched!(sum_of_squares, squares_loop, (incoming: &[u8]) -> f64);
dispatched!(add_lanes, add_loop, (out: &mut [f32], have: &[f32], incoming: &[u8]) -> bool);
dispatched!(copy_lanes, copy_loop, (out: &mut [f32], incoming: &[u8]) -> bool);
dispatched!(looks_finite, look_loop, (incoming: &[u8]) -> bool);

/// Adds the head, long strides, short strides and the rest; see [`cuts`].
#[inline(always)]
fn add_loop<const N: usize>(out: &mut [f32], have: &[f32], incoming: &[u8]) -> bool {
    let incoming = incoming.as_chunks::<4>().0;
    let mut sums = [0f32; N];
    let [a, b, c] = cuts::<N>(out.len());
    add_strides::<HEAD, N>(&mut out[..a], &have[..a], &incoming[..a], &mut sums);
    add_strides::<N, N>(&mut out[a..b], &have[a..b], &incoming[a..b], &mut sums);
    add_strides::<HEAD, N>(&mut out[b..c], &have[b..c], &incoming[b..c], &mut sums);
    for ((out, have), incoming) in out[c..].iter_mut().zip(&have[c..]).zip(&incoming[c..]) {
        *out = have + f32::from_le_bytes(*incoming);
    }
    largest(&sums).max(largest(&out[c..])) < INFINITY
}

/// Adds `M` lanes at once. `N` lanes are four registers: their additions need not wait for each
/// other.
#[inline(always)]
fn add_strides<const M: usize, const N: usize>(
    out: &mut [f32],
    have: &[f32],
    incoming: &[[u8; 4]],
    sums: &mut [f32; N],
) {
    let have = have.as_chunks::<M>().0;
    let strides = out.as_chunks_mut::<M>().0.iter_mut().zip(have);
    for ((out, have), incoming) in strides.zip(incoming.as_chunks::<M>().0) {
        for i in 0..M {
            let sum = have[i] + f32::from_le_bytes(incoming[i]);
            out[i] = sum;
            sums[i] += sum;
        }
    }
}

#[inline(always)]
fn copy_loop<const N: usize>(out: &mut [f32], incoming: &[u8]) -> bool {
    let incoming = incoming.as_chunks::<4>().0;
    let mut sums = [0f32; N];
    let [a, b, c] = cuts::<N>(out.len());
    copy_strides::<HEAD, N>(&mut out[..a], &incoming[..a], &mut sums);
    copy_strides::<N, N>(&mut out[a..b], &incoming[a..b], &mut sums);
    copy_strides::<HEAD, N>(&mut out[b..c], &incoming[b..c], &mut sums);
    for (out, incoming) in out[c..].iter_mut().zip(&incoming[c..]) {
        *out = f32::from_le_bytes(*incoming);
    }
    largest(&sums).max(largest(&out[c..])) < INFINITY
}

#[inline(always)]
fn copy_strides<const M: usize, const N: usize>(
    out: &mut [f32],
    incoming: &[[u8; 4]],
    sums: &mut [f32; N],
) {
    let strides = incoming.as_chunks::<M>().0;
    for (out, incoming) in out.as_chunks_mut::<M>().0.iter_mut().zip(strides) {
        for i in 0..M {
            let lane = f32::from_le_bytes(incoming[i]);
            out[i] = lane;
            sums[i] += lane;
        }
    }
}

/// Where the parts of a kernel end: the head, which is the lanes before the first whole cache line,
/// strides of `N` lanes, and strides as short as the head. Fewer lanes remain.
///
/// Example: with 8 lanes in the head and strides of 64, 2,240 lanes are 8, 34 times 64, and 7 times
/// 8.
#[inline(always)]
const fn cuts<const N: usize>(len: usize) -> [usize; 3] {
    if len < HEAD {
        return [0; 3];
    }
    [HEAD, HEAD + (len - HEAD) / N * N, len / HEAD * HEAD]
}

#[inline(always)]
fn look_loop<const N: usize>(incoming: &[u8]) -> bool {
    let mut sums = [0f32; N];
    let (strides, rest) = incoming.as_chunks::<4>().0.as_chunks::<N>();
    for incoming in strides {
        for i in 0..N {
            sums[i] += f32::from_le_bytes(incoming[i]);
        }
    }
    for (incoming, sum) in rest.iter().zip(&mut sums) {
        *sum += f32::from_le_bytes(*incoming);
    }
    largest(&sums) < INFINITY
}

#[inline(always)]
fn squares_loop<const N: usize>(incoming: &[u8]) -> f64 {
    let mut sums = [0f32; N];
    let (strides, rest) = incoming.as_chunks::<4>().0.as_chunks::<N>();
    for incoming in strides {
        for i in 0..N {
            let lane = f32::from_le_bytes(incoming[i]);
            sums[i] += lane * lane;
        }
    }
    for (incoming, sum) in rest.iter().zip(&mut sums) {
        let lane = f32::from_le_bytes(*incoming);
        *sum += lane * lane;
    }
    // Halves, not one after the other: a sum that waits for the one before takes as long as the lanes.
    let (mut sums, mut left) = (sums.map(f64::from), N);
    while left > 1 {
        left /= 2;
        for i in 0..left {
            sums[i] += sums[i + left];
        }
    }
    sums[0]
}

/// The largest magnitude, as bits: those of an infinity or more where one is not finite.
#[inline(always)]
fn largest(lanes: &[f32]) -> u32 {
    // Not by one more sum: each of its additions would wait for the one before.
    lanes.iter().fold(0, |largest, lane| largest.max(lane.to_bits() & MAGNITUDE))
}

fn lanes(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks::<4>().0.iter().map(|lane| f32::from_le_bytes(*lane))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
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
            let mut out = Lanes::default();
            prop_assert_eq!(add(&mut out, &have, &bytes(&incoming)), finite);
            if finite {
                prop_assert_eq!(&*out, expected.as_slice());
            }
        }

        #[test]
        fn a_length_is_the_slow_one(lanes in prop::collection::vec(prop_oneof![-1e3f32..1e3, -1e30f32..1e30, -1e-30f32..1e-30], 0..300)) {
            let slow = lanes.iter().map(|lane| f64::from(*lane).powi(2)).sum::<f64>().sqrt();
            let fast = length(&bytes(&lanes));
            // The squares of lanes below 1e-22 are 0.
            let tiny = 1e-22 * (lanes.len() as f64).sqrt();
            prop_assert!((fast - slow).abs() <= slow * 1e-4 + tiny, "{} {}", fast, slow);
        }

        #[test]
        fn copying_keeps_bits_and_notices_what_is_not_finite(lanes in prop::collection::vec(any::<f32>(), 0..200)) {
            let finite = lanes.iter().all(|lane| lane.is_finite());
            let mut out = Lanes::default();
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
                assert!(!add(&mut Lanes::default(), &[1.0; 100], &bytes(&lanes)), "{bad} at {at}");
                assert!(!copy(&mut Lanes::default(), &bytes(&lanes)), "{bad} at {at}");
                assert!(!all_finite(&bytes(&lanes)), "{bad} at {at}");
            }
        }
    }

    #[test]
    fn large_numbers_are_numbers() {
        let lanes = alloc::vec![f32::MAX; 100];
        assert!(all_finite(&bytes(&lanes)) && copy(&mut Lanes::default(), &bytes(&lanes)));
        let half = alloc::vec![f32::MAX / 2.0; 100];
        assert!(add(&mut Lanes::default(), &half, &bytes(&half)));
        let infinities = [f32::INFINITY, f32::NEG_INFINITY];
        assert!(!all_finite(&bytes(&infinities)), "they do not cancel out");
    }

    #[test]
    fn a_sum_that_overflows_is_noticed() {
        assert!(!add(&mut Lanes::default(), &[f32::MAX], &bytes(&[f32::MAX])));
    }
}
