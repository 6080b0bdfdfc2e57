//! Order-free sums: f32 lanes travel as i32, all of a block at one scale.
//!
//! A sum of floating-point numbers depends on the order of its terms; a sum of integers does not. The
//! same inputs therefore have the same result, bit by bit, in whatever order the pieces come and
//! through whatever tree of switches.
//!
//! Each worker says how large its lanes of a block are ([`exponent_of`]), in an operation before the
//! sum. The largest exponent of all workers sets the block's [`Scale`]. The scale leaves headroom for
//! the sum of all workers, so that no sum can wrap.
//!
//! *Error.* Each lane is rounded to a multiple of the scale's step, and the result once to an f32. For
//! `n` workers whose lanes are below `2^e`, the step is `2^(e + ceil(log2 n) - 30)`. The sum of a lane
//! is therefore off by at most `n / 2` steps, beside the last rounding. Example: with 8 workers this is
//! `2^-25` of `2^e`. One addition of two f32s of that size may lose twice as much.

use super::dispatch::dispatched;
use super::{INFINITY, MAGNITUDE, largest};

/// The exponent of lanes that are all 0: below that of every other number.
pub const ZERO: i16 = -149;
/// The exponent of a block with a NaN or an infinity. It is larger than all others: if one worker has
/// it, every lane of the block's result is NaN at all workers.
pub const NOT_FINITE: i16 = i16::MAX;

/// Bits of an f32's mantissa that are written down.
const MANTISSA: u32 = 23;
/// Adding this rounds an f64 to an integer, of two the even one, whose low 32 bits are those of the
/// sum: its last bit stands for 1.
const ROUND: f64 = (3u64 << 51) as f64;

/// The smallest exponent `e` with every lane below `2^e`, or [`ZERO`] or [`NOT_FINITE`].
#[must_use]
pub fn exponent_of(lanes: &[f32]) -> i16 {
    let bits = magnitude_of(lanes);
    let subnormal = u32::BITS - bits.leading_zeros();
    let exponent = match bits >> MANTISSA {
        _ if bits >= INFINITY => return NOT_FINITE,
        0 => subnormal as i16 - 149,
        exponent => exponent as i16 - 126,
    };
    debug_assert!(exponent >= ZERO);
    exponent
}

/// The scale of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The number that an integer 1 stands for; NaN where a lane is not finite.
    step: f64,
    per_step: f64,
}

impl Scale {
    /// The scale for lanes below `2^exponent` from that many workers.
    #[must_use]
    pub const fn new(exponent: i16, workers: u32) -> Self {
        if exponent == NOT_FINITE {
            return Self { step: f64::NAN, per_step: 0.0 };
        }
        // No real lane needs more than 128, and less than ZERO says no more. A message of the network
        // may say so.
        let exponent = if exponent > 128 { 128 } else { exponent };
        let exponent = if exponent < ZERO { ZERO } else { exponent };
        let headroom = u32::BITS - workers.saturating_sub(1).leading_zeros();
        let step = exponent as i32 + headroom as i32 - 30;
        Self { step: power_of_two(step), per_step: power_of_two(-step) }
    }

    /// Writes lanes as integers on the wire. All must be below the scale's `2^exponent`; where the
    /// scale is that of a block that is not finite, the integers say nothing.
    ///
    /// # Panics
    /// When `out` has not four bytes for each lane.
    pub fn quantize(&self, lanes: &[f32], out: &mut [u8]) {
        assert_eq!(out.len(), lanes.len() * 4, "callers give the lanes their room");
        quantize_lanes(lanes, out, self.per_step);
    }

    /// Reads the lanes of a sum of integers.
    ///
    /// # Panics
    /// When `sum` has not four bytes for each lane.
    pub fn dequantize(&self, sum: &[u8], out: &mut [f32]) {
        assert_eq!(sum.len(), out.len() * 4, "callers give the lanes their room");
        dequantize_lanes(sum, out, self.step);
    }

    /// The number that an integer 1 stands for.
    #[must_use]
    pub const fn step(&self) -> f64 {
        self.step
    }
}

/// 2 to an exponent that an f64 has.
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

dispatched!(magnitude_of, magnitude_loop, (lanes: &[f32]) -> u32);
dispatched!(quantize_lanes, quantize_loop, (lanes: &[f32], out: &mut [u8], per_step: f64) -> ());
dispatched!(dequantize_lanes, dequantize_loop, (sum: &[u8], out: &mut [f32], step: f64) -> ());

/// The bits of the largest magnitude.
#[inline(always)]
fn magnitude_loop<const N: usize>(lanes: &[f32]) -> u32 {
    largest(lanes) & MAGNITUDE
}

#[inline(always)]
fn quantize_loop<const N: usize>(lanes: &[f32], out: &mut [u8], per_step: f64) {
    for (out, lane) in out.as_chunks_mut::<4>().0.iter_mut().zip(lanes) {
        // An f64 has the bits for every f32 times a power of two: only the addition rounds.
        let rounded = f64::from(*lane) * per_step + ROUND;
        *out = (rounded.to_bits() as u32).to_le_bytes();
    }
}

#[inline(always)]
fn dequantize_loop<const N: usize>(sum: &[u8], out: &mut [f32], step: f64) {
    for (out, lane) in out.iter_mut().zip(sum.as_chunks::<4>().0) {
        *out = (f64::from(i32::from_le_bytes(*lane)) * step) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Pool;
    use crate::blocks::pool::Piece;
    use crate::time::Instant;
    use alloc::vec;
    use alloc::vec::Vec;
    use olaf_wire::reduce::{LaneType, Operator};
    use proptest::prelude::*;

    /// A table sums the pieces in that order.
    fn summed(pieces: &[Vec<u8>], order: &[usize]) -> Vec<u8> {
        let mut pool = Pool::new(1, order.len() as u32);
        for (member, piece) in (0..).zip(order) {
            let piece = Piece {
                block: 0,
                member,
                holds: 0,
                contributors: 1,
                congested: false,
                not_finite: false,
                deadline: None,
                lane_type: LaneType::I32,
                operator: Operator::Sum,
                lanes: &pieces[*piece],
            };
            pool.meet(Instant(0), &piece);
        }
        let mut sum = vec![0; pieces[0].len()];
        pool.cell(0).expect("it opened").write_result(&mut sum);
        sum
    }

    /// As numbers of a training come: of all magnitudes, few of them very small or very large.
    fn lane() -> impl Strategy<Value = f32> {
        prop_oneof![
            4 => -1f32..1.0,
            2 => (-1f32..1.0, -60i32..60).prop_map(|(lane, by)| lane * (by as f32).exp2()),
            1 => any::<f32>().prop_filter("finite", |lane| lane.is_finite()),
            1 => Just(f32::MAX),
            1 => prop::num::f32::SUBNORMAL,
            1 => Just(0.0),
        ]
    }

    /// The lanes of some workers, and an order of theirs.
    fn workers() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<usize>)> {
        (1usize..9, 1usize..40).prop_flat_map(|(workers, lanes)| {
            let each = prop::collection::vec(lane(), lanes);
            let order: Vec<usize> = (0..workers).collect();
            (prop::collection::vec(each, workers), Just(order).prop_shuffle())
        })
    }

    fn half_step_of(lane: f64) -> f64 {
        let as_f32 = lane as f32;
        f64::from(f32::from_bits(as_f32.abs().to_bits() + 1) - as_f32.abs()) / 2.0
    }

    proptest! {
        #[test]
        fn any_order_and_any_tree_has_the_same_bits_and_the_stated_error((lanes, order) in workers()) {
            let exponent = lanes.iter().map(|lanes| exponent_of(lanes)).max().expect("a worker");
            let workers = lanes.len();
            let scale = Scale::new(exponent, workers as u32);
            let pieces: Vec<Vec<u8>> = lanes
                .iter()
                .map(|lanes| {
                    let mut out = vec![0; lanes.len() * 4];
                    scale.quantize(lanes, &mut out);
                    out
                })
                .collect();
            let in_order: Vec<usize> = (0..workers).collect();
            let sum = summed(&pieces, &in_order);
            prop_assert_eq!(&summed(&pieces, &order), &sum);
            // A lower switch each for two parts of the workers.
            let (left, right) = order.split_at(workers / 2);
            if !left.is_empty() {
                let lower = [summed(&pieces, left), summed(&pieces, right)];
                prop_assert_eq!(&summed(&lower, &[1, 0]), &sum);
            }
            let mut result = vec![0.0; lanes[0].len()];
            scale.dequantize(&sum, &mut result);
            for (at, result) in result.iter().enumerate() {
                // An f64 adds these few f32s with an error far below the bound.
                let exact: f64 = lanes.iter().map(|lanes| f64::from(lanes[at])).sum();
                let bound = workers as f64 / 2.0 * scale.step();
                if result.is_finite() {
                    let off = (f64::from(*result) - exact).abs();
                    prop_assert!(off <= bound + half_step_of(exact) * 1.001, "{off:e}: {bound:e}");
                } else {
                    prop_assert!(exact.abs() + bound >= f64::from(f32::MAX), "{exact:e}");
                }
            }
        }
    }

    #[test]
    fn the_largest_lanes_of_the_most_workers_do_not_wrap() {
        for workers in [1, 2, 3, 4, 127, 128, 129, 8191, 8192] {
            for lane in [f32::MAX, -f32::MAX, 1.0, 0.999_999_94, f32::from_bits(1)] {
                let scale = Scale::new(exponent_of(&[lane]), workers);
                let mut piece = [0; 4];
                scale.quantize(&[lane], &mut piece);
                let integer = i32::from_le_bytes(piece);
                let sum = i64::from(integer) * i64::from(workers);
                assert!(i32::try_from(sum).is_ok(), "{lane:e} of {workers} workers");
                let mut out = [0.0];
                scale.dequantize(&i32::to_le_bytes(sum as i32), &mut out);
                let exact = f64::from(lane) * f64::from(workers);
                let bound = f64::from(workers) / 2.0 * scale.step();
                let is_near = (f64::from(out[0]) - exact).abs() <= bound + half_step_of(exact);
                assert!(is_near || out[0].is_infinite(), "{lane:e} of {workers} workers");
            }
        }
    }

    #[test]
    fn an_exponent_is_the_smallest_that_fits() {
        for (lane, exponent) in [
            (0.0, ZERO),
            (-0.0, ZERO),
            (f32::from_bits(1), -148),
            (f32::from_bits(3), -147),
            (f32::MIN_POSITIVE, -125),
            (0.5, 0),
            (0.75, 0),
            (1.0, 1),
            (-1.5, 1),
            (f32::MAX, 128),
            (f32::NAN, NOT_FINITE),
            (f32::NEG_INFINITY, NOT_FINITE),
        ] {
            assert_eq!(exponent_of(&[0.0, lane]), exponent, "{lane:e}");
        }
        assert_eq!(exponent_of(&[]), ZERO);
    }

    #[test]
    fn where_one_lane_is_not_finite_the_block_is_not() {
        let exponent = exponent_of(&[1.0, f32::NAN]).max(exponent_of(&[2.0, 3.0]));
        let scale = Scale::new(exponent, 2);
        let (mut piece, mut out) = ([0; 8], [0.0; 2]);
        scale.quantize(&[2.0, 3.0], &mut piece);
        scale.dequantize(&piece, &mut out);
        assert!(out.iter().all(|lane| lane.is_nan()));
    }
}
