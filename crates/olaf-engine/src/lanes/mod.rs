//! All arithmetic on payload lanes: one pass that adds or copies and notices what is not finite.
//!
//! Each kernel is one plain loop, compiled for every machine, for AVX2 and for AVX-512. Lanes come as
//! little-endian bytes and need no alignment; a datagram at the start of a cache line is the fastest,
//! because its lanes and those of a sum then lie in their lines alike.
//!
//! What is not finite is noticed by the largest magnitude of all that a kernel writes, compared as
//! bits: an infinity or a NaN has more than any number. A maximum of integers does not depend on its
//! order, so that the compiler makes vectors of these loops by itself. `scripts/check-kernels` looks at
//! the machine code.

mod aligned;
mod buffer;
mod dispatch;
#[cfg_attr(not(target_arch = "x86_64"), path = "no_f16c.rs")]
mod f16c;
pub mod fixed;
pub mod half;
pub mod saturating;
pub mod typed;

pub use aligned::Aligned;
pub use buffer::Lanes;

use buffer::HEAD;
use dispatch::{dispatched, opaque};

const MAGNITUDE: u32 = 0x7fff_ffff;
const INFINITY: u32 = f32::INFINITY.to_bits();
/// A sum of squares below this number is a sum of lanes that are finite, and whose squares fit a float32.
const FITS: f64 = 1e30;

/// Returns true if every lane is a finite number.
#[must_use]
pub fn all_finite(incoming: &[u8]) -> bool {
    largest_of(incoming) < INFINITY
}

/// Writes `incoming` into `out`, which takes its length; whether all of it is finite. `out` is
/// garbage where it is not.
pub fn copy(out: &mut Lanes, incoming: &[u8]) -> bool {
    out.resize(incoming.len() / 4);
    copy_lanes(out, incoming) < INFINITY
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
    add_lanes(out, have, incoming) < INFINITY
}

/// Does what [`copy`] does, and returns what [`length`] returns for `incoming`, to the last bit, in one
/// pass. None where a lane is not finite; `out` is garbage then.
pub fn copy_and_length(out: &mut Lanes, incoming: &[u8]) -> Option<f64> {
    out.resize(incoming.len() / 4);
    finite_length(copy_and_square(out, incoming), out, incoming)
}

/// Does what [`add`] does, and returns what [`length`] returns for `incoming`, to the last bit, in one
/// pass. None where a lane of the sum is not finite; `out` is garbage then, and `have`, which is finite,
/// is as it was.
///
/// # Panics
/// When `incoming` is not four bytes for each lane of `have`.
#[inline]
pub fn add_and_length(out: &mut Lanes, have: &[f32], incoming: &[u8]) -> Option<f64> {
    assert_eq!(incoming.len(), have.len() * 4, "callers compare the lengths first");
    out.resize(have.len());
    finite_length(add_and_square(out, have, incoming), out, incoming)
}

/// The length of lanes whose squares have that sum; none where a lane of `out` is not finite. `out` are
/// the same lanes, or finite ones to which they were added.
///
/// Where the sum is below [`FITS`], no lane is above 1e15. Such a lane is less than half of the distance
/// between the two largest numbers, which is 2e31. So it makes no finite number infinite, and nobody has
/// to look at `out`.
#[inline]
fn finite_length(sum: f64, out: &[f32], incoming: &[u8]) -> Option<f64> {
    let is_finite = sum < FITS || out.iter().all(|lane| lane.is_finite());
    is_finite.then(|| length_of(sum, incoming))
}

/// The length of the lanes as a vector; not finite where a lane is not.
#[must_use]
pub fn length(incoming: &[u8]) -> f64 {
    length_of(sum_of_squares(incoming), incoming)
}

/// The length of lanes whose squares have that sum.
fn length_of(sum: f64, incoming: &[u8]) -> f64 {
    // The squares of very large lanes do not fit a float32. Those of lanes below 1e-22 are 0, and so is
    // the length of an update of such lanes: nothing depends on it, and a flood of zeros costs no more.
    libm::sqrt(if sum < FITS { sum } else { slow_sum_of_squares(incoming) })
}

#[cold]
fn slow_sum_of_squares(incoming: &[u8]) -> f64 {
    lanes(incoming).map(f64::from).map(|lane| lane * lane).sum()
}

dispatched!(sum_of_squares, squares_loop, 32, (incoming: &[u8]) -> f64);
dispatched!(add_lanes, add_loop, (out: &mut [f32], have: &[f32], incoming: &[u8]) -> u32);
dispatched!(add_and_square, add_and_square_loop, 32, (out: &mut [f32], have: &[f32], incoming: &[u8]) -> f64);
dispatched!(copy_lanes, copy_loop, (out: &mut [f32], incoming: &[u8]) -> u32);
dispatched!(copy_and_square, copy_and_square_loop, 32, (out: &mut [f32], incoming: &[u8]) -> f64);
dispatched!(largest_of, look_loop, (incoming: &[u8]) -> u32);

/// Lanes that a kernel does by themselves, so that each vector after them lies in one cache line. A
/// vector of AVX-512 is a line long; a shorter one lies in one line anyway (see [`Lanes`]).
const fn alone<const N: usize>(len: usize) -> usize {
    if N < 64 || len < HEAD { 0 } else { HEAD }
}

/// Adds the lanes. Returns the largest magnitude of the sum, as bits.
#[inline(always)]
fn add_loop<const N: usize>(out: &mut [f32], have: &[f32], incoming: &[u8]) -> u32 {
    let incoming = incoming.as_chunks::<4>().0;
    let at = alone::<N>(out.len());
    let first = add_each(&mut out[..at], &have[..at], &incoming[..at]);
    first.max(add_each(&mut out[at..], &have[at..], &incoming[at..]))
}

#[inline(always)]
fn add_each(out: &mut [f32], have: &[f32], incoming: &[[u8; 4]]) -> u32 {
    let mut largest = 0;
    for ((out, have), incoming) in out.iter_mut().zip(have).zip(incoming) {
        *out = have + f32::from_le_bytes(*incoming);
        largest = largest.max(out.to_bits() & MAGNITUDE);
    }
    largest
}

/// Copies the lanes. Returns their largest magnitude, as bits.
#[inline(always)]
fn copy_loop<const N: usize>(out: &mut [f32], incoming: &[u8]) -> u32 {
    let incoming = incoming.as_chunks::<4>().0;
    let at = alone::<N>(out.len());
    let first = copy_each(&mut out[..at], &incoming[..at]);
    first.max(copy_each(&mut out[at..], &incoming[at..]))
}

#[inline(always)]
fn copy_each(out: &mut [f32], incoming: &[[u8; 4]]) -> u32 {
    let all = opaque(u32::MAX);
    let mut largest = 0;
    for (out, incoming) in out.iter_mut().zip(incoming) {
        let bits = u32::from_le_bytes(*incoming) & all;
        *out = f32::from_bits(bits);
        largest = largest.max(bits & MAGNITUDE);
    }
    largest
}

/// Adds the lanes. Returns the sum of the squares of the incoming ones, as [`squares_loop`] does.
#[inline(always)]
fn add_and_square_loop<const N: usize>(out: &mut [f32], have: &[f32], incoming: &[u8]) -> f64 {
    let incoming = incoming.as_chunks::<4>().0;
    assert!(have.len() == out.len() && incoming.len() == out.len(), "they are of one length");
    let mut few = [0f32; HEAD];
    if out.len() < HEAD + N {
        add_and_square_few(out, have, incoming, &mut few);
        return total(&few);
    }
    let ((first, out), (have_first, have)) = (head_mut(out), head(have));
    let (incoming_first, incoming) = head(incoming);
    add_and_square_each(first, have_first, incoming_first, &mut few);
    let (out, out_rest) = out.as_chunks_mut::<N>();
    let (have, have_rest) = have.as_chunks::<N>();
    let (incoming, rest) = incoming.as_chunks::<N>();
    let mut many = [0f32; N];
    for ((out, have), incoming) in out.iter_mut().zip(have).zip(incoming) {
        add_and_square_each(out, have, incoming, &mut many);
    }
    add_and_square_few(out_rest, have_rest, rest, &mut few);
    total(&few) + total(&many)
}

#[inline(always)]
fn add_and_square_few(
    out: &mut [f32],
    have: &[f32],
    incoming: &[[u8; 4]],
    squares: &mut [f32; HEAD],
) {
    let (out, out_rest) = out.as_chunks_mut::<HEAD>();
    let (have, have_rest) = have.as_chunks::<HEAD>();
    let (incoming, rest) = incoming.as_chunks::<HEAD>();
    for ((out, have), incoming) in out.iter_mut().zip(have).zip(incoming) {
        add_and_square_each(out, have, incoming, squares);
    }
    if !rest.is_empty() {
        *squares = add_and_square_rest(out_rest, have_rest, rest, *squares);
    }
}

/// Fewer than eight lanes. Compiled apart: a compiler that knows how few they are takes masked stores.
#[inline(never)]
fn add_and_square_rest(
    out: &mut [f32],
    have: &[f32],
    incoming: &[[u8; 4]],
    mut squares: [f32; HEAD],
) -> [f32; HEAD] {
    for (((out, have), incoming), square) in
        out.iter_mut().zip(have).zip(incoming).zip(&mut squares)
    {
        let lane = f32::from_le_bytes(*incoming);
        *out = have + lane;
        *square += lane * lane;
    }
    squares
}

#[inline(always)]
fn add_and_square_each<const N: usize>(
    out: &mut [f32; N],
    have: &[f32; N],
    incoming: &[[u8; 4]; N],
    squares: &mut [f32; N],
) {
    for i in 0..N {
        let lane = f32::from_le_bytes(incoming[i]);
        out[i] = have[i] + lane;
        squares[i] += lane * lane;
    }
}

/// Copies the lanes. Returns the sum of their squares, as [`squares_loop`] does.
#[inline(always)]
fn copy_and_square_loop<const N: usize>(out: &mut [f32], incoming: &[u8]) -> f64 {
    let incoming = incoming.as_chunks::<4>().0;
    assert!(incoming.len() == out.len(), "they are of one length");
    let (mut few, all) = ([0f32; HEAD], opaque(u32::MAX));
    if out.len() < HEAD + N {
        copy_and_square_few(out, incoming, all, &mut few);
        return total(&few);
    }
    let ((first, out), (incoming_first, incoming)) = (head_mut(out), head(incoming));
    copy_and_square_each(first, incoming_first, all, &mut few);
    let (out, out_rest) = out.as_chunks_mut::<N>();
    let (incoming, rest) = incoming.as_chunks::<N>();
    let mut many = [0f32; N];
    for (out, incoming) in out.iter_mut().zip(incoming) {
        copy_and_square_each(out, incoming, all, &mut many);
    }
    copy_and_square_few(out_rest, rest, all, &mut few);
    total(&few) + total(&many)
}

#[inline(always)]
fn copy_and_square_few(out: &mut [f32], incoming: &[[u8; 4]], all: u32, squares: &mut [f32; HEAD]) {
    let (out, out_rest) = out.as_chunks_mut::<HEAD>();
    let (incoming, rest) = incoming.as_chunks::<HEAD>();
    for (out, incoming) in out.iter_mut().zip(incoming) {
        copy_and_square_each(out, incoming, all, squares);
    }
    if !rest.is_empty() {
        *squares = copy_and_square_rest(out_rest, rest, *squares);
    }
}

#[inline(never)]
fn copy_and_square_rest(
    out: &mut [f32],
    incoming: &[[u8; 4]],
    mut squares: [f32; HEAD],
) -> [f32; HEAD] {
    for ((out, incoming), square) in out.iter_mut().zip(incoming).zip(&mut squares) {
        *out = f32::from_le_bytes(*incoming);
        *square += *out * *out;
    }
    squares
}

#[inline(always)]
fn copy_and_square_each<const N: usize>(
    out: &mut [f32; N],
    incoming: &[[u8; 4]; N],
    all: u32,
    squares: &mut [f32; N],
) {
    for i in 0..N {
        let lane = f32::from_bits(u32::from_le_bytes(incoming[i]) & all);
        out[i] = lane;
        squares[i] += lane * lane;
    }
}

/// The lanes before the first full cache line (see [`Lanes`]), and the others.
#[inline(always)]
fn head<T>(lanes: &[T]) -> (&[T; HEAD], &[T]) {
    lanes.split_first_chunk().expect("the caller has seen that they are more")
}

/// The same, to write into.
#[inline(always)]
fn head_mut<T>(lanes: &mut [T]) -> (&mut [T; HEAD], &mut [T]) {
    lanes.split_first_chunk_mut().expect("the caller has seen that they are more")
}

#[inline(always)]
fn look_loop<const N: usize>(incoming: &[u8]) -> u32 {
    let lanes = incoming.as_chunks::<4>().0.iter();
    lanes.fold(0, |largest, lane| largest.max(u32::from_le_bytes(*lane) & MAGNITUDE))
}

/// The sum of the squares. Lane `i` of a stride of `N` lanes goes to sum `i`. The lanes before the first full
/// cache line, and those after the last stride, go to eight other sums. All sums are added up last.
#[inline(always)]
fn squares_loop<const N: usize>(incoming: &[u8]) -> f64 {
    let incoming = incoming.as_chunks::<4>().0;
    let mut few = [0f32; HEAD];
    if incoming.len() < HEAD + N {
        square_few(incoming, &mut few);
        return total(&few);
    }
    let (first, incoming) = head(incoming);
    square_each(first, &mut few);
    let (incoming, rest) = incoming.as_chunks::<N>();
    let mut many = [0f32; N];
    for incoming in incoming {
        square_each(incoming, &mut many);
    }
    square_few(rest, &mut few);
    total(&few) + total(&many)
}

#[inline(always)]
fn square_few(incoming: &[[u8; 4]], squares: &mut [f32; HEAD]) {
    let (incoming, rest) = incoming.as_chunks::<HEAD>();
    for incoming in incoming {
        square_each(incoming, squares);
    }
    if !rest.is_empty() {
        *squares = square_rest(rest, *squares);
    }
}

#[inline(never)]
fn square_rest(incoming: &[[u8; 4]], mut squares: [f32; HEAD]) -> [f32; HEAD] {
    for (incoming, square) in incoming.iter().zip(&mut squares) {
        let lane = f32::from_le_bytes(*incoming);
        *square += lane * lane;
    }
    squares
}

#[inline(always)]
fn square_each<const N: usize>(incoming: &[[u8; 4]; N], squares: &mut [f32; N]) {
    for i in 0..N {
        let lane = f32::from_le_bytes(incoming[i]);
        squares[i] += lane * lane;
    }
}

#[inline(always)]
fn total<const N: usize>(squares: &[f32; N]) -> f64 {
    // Halves, not one after the other: a sum that waits for the one before takes as long as the lanes.
    // The compiler takes sums that are never in memory in pieces of two.
    let (mut sums, mut left) = (opaque(*squares).map(f64::from), N);
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
    use super::dispatch::with_at_most;
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

    proptest! {
        #[test]
        fn one_pass_is_two_passes_to_the_last_bit(
            pairs in prop::collection::vec((-1e30f32..1e30, prop_oneof![-1e3f32..1e3, -1e3f32..1e3, any::<f32>()]), 0..300),
            width in prop::sample::select(alloc::vec![16, 32, 64]),
        ) {
            let (have, incoming): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let incoming = bytes(&incoming);
            with_at_most(width, || {
                let (mut one, mut two) = (Lanes::default(), Lanes::default());
                let length = add_and_length(&mut one, &have, &incoming);
                let expected = add(&mut two, &have, &incoming).then(|| super::length(&incoming));
                prop_assert_eq!(length.map(f64::to_bits), expected.map(f64::to_bits));
                prop_assert_eq!(bytes(&one), bytes(&two));

                let length = copy_and_length(&mut one, &incoming);
                let expected = copy(&mut two, &incoming).then(|| super::length(&incoming));
                prop_assert_eq!(length.map(f64::to_bits), expected.map(f64::to_bits));
                prop_assert_eq!(bytes(&one), bytes(&two));
                Ok(())
            })?;
        }
    }

    #[test]
    fn one_bad_lane_anywhere_is_noticed() {
        for at in 0..100 {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut lanes = alloc::vec![1.0f32; 100];
                lanes[at] = bad;
                let (mut out, lanes) = (Lanes::default(), bytes(&lanes));
                for width in [16, 32, 64] {
                    with_at_most(width, || {
                        assert!(!add(&mut out, &[1.0; 100], &lanes), "{bad} at {at}");
                        assert!(!copy(&mut out, &lanes), "{bad} at {at}");
                        assert!(!all_finite(&lanes), "{bad} at {at}");
                        assert_eq!(add_and_length(&mut out, &[1.0; 100], &lanes), None);
                        assert_eq!(copy_and_length(&mut out, &lanes), None);
                    });
                }
            }
        }
    }

    #[test]
    fn a_sum_of_squares_that_fits_says_that_a_sum_is_finite() {
        // The largest number, and lanes on both sides of the limit of the squares.
        for lane in [1e15, 0.99e15, -1e15, 1.1e15, 1e30, 1e31, 3e31, f32::MAX, f32::INFINITY] {
            for have in [f32::MAX, -f32::MAX] {
                for count in [1, 8, 40, 77] {
                    let (have, incoming) = (alloc::vec![have; count], bytes(&[lane].repeat(count)));
                    let (mut one, mut two) = (Lanes::default(), Lanes::default());
                    let is_finite = add(&mut two, &have, &incoming);
                    let found = add_and_length(&mut one, &have, &incoming);
                    assert_eq!(found.is_some(), is_finite, "{lane} and {have:?}");
                }
            }
        }
    }

    #[test]
    fn each_lane_counts_once_in_a_length() {
        for count in 0..150 {
            // The squares and their sums are exact.
            let lanes: Vec<f32> = (1..=count).map(|lane| lane as f32).collect();
            let exact = libm::sqrt((count * (count + 1) * (2 * count + 1) / 6) as f64);
            for width in [16, 32, 64] {
                assert_eq!(with_at_most(width, || length(&bytes(&lanes))), exact, "{count} lanes");
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
