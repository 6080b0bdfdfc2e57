//! Arithmetic on lanes of any type: what the table of blocks sums, compares and rounds.
//!
//! A sum is little-endian bytes, as lanes on the wire are. Its lanes are as wide as those on the wire,
//! but for f16 and bf16, which are summed in f32 and rounded once, in the result. Each kernel changes
//! the sum where it lies. Lanes and sums need no alignment; both at the start of a cache line are
//! fastest ([`Aligned`]).
//!
//! A sum of integers wraps. Of minimum and maximum a NaN wins, as in `PyTorch`: a worker whose lanes
//! went wrong is not hidden by the others.

use super::dispatch::{dispatched, opaque};
use super::f16c::F16c;
use super::half::{BF16_OVERFLOW, F16_OVERFLOW, round_bf16, round_f16, widen_bf16, widen_f16};
use super::{Aligned, INFINITY, MAGNITUDE};
use olaf_wire::reduce::{LaneType, Operator};

const F16_INFINITY: i16 = 0x7c00;
const BF16_INFINITY: i16 = 0x7f80;

/// Bytes of a lane while it is summed.
#[must_use]
pub const fn bytes_in_sum(lane_type: LaneType) -> usize {
    match lane_type {
        LaneType::F32 | LaneType::F16 | LaneType::Bf16 | LaneType::I32 => 4,
        LaneType::I64 => 8,
    }
}

/// Begins a sum with the lanes of its first piece; whether all of them are finite.
pub fn begin(sum: &mut Aligned, lane_type: LaneType, incoming: &[u8]) -> bool {
    sum.resize(incoming.len() / lane_type.bytes() * bytes_in_sum(lane_type));
    match f16c(lane_type) {
        Some(f16c) => f16c.begin(sum, incoming),
        None => begin_lanes(sum, incoming, lane_type),
    }
}

/// Takes lanes into a sum. Whether all is finite: of a sum the lanes with the incoming ones, of a
/// minimum or a maximum the incoming ones.
///
/// # Panics
/// When the two are not as many lanes.
#[inline]
pub fn combine(sum: &mut [u8], lane_type: LaneType, operator: Operator, incoming: &[u8]) -> bool {
    let lanes = incoming.len() / lane_type.bytes();
    assert_eq!(sum.len(), lanes * bytes_in_sum(lane_type), "callers compare the lengths first");
    match f16c(lane_type) {
        Some(f16c) => f16c.combine(sum, incoming, operator),
        None => combine_lanes(sum, incoming, lane_type, operator),
    }
}

/// Returns true if every lane on the wire is a finite number. Integers are.
#[must_use]
pub fn all_finite(lane_type: LaneType, incoming: &[u8]) -> bool {
    match lane_type {
        LaneType::F32 => super::all_finite(incoming),
        LaneType::F16 => halves_fit(incoming, F16_INFINITY),
        LaneType::Bf16 => halves_fit(incoming, BF16_INFINITY),
        LaneType::I32 | LaneType::I64 => true,
    }
}

/// Returns true if every lane of a finite sum is finite in the result, too: an f32 may be more than
/// the largest f16.
#[must_use]
pub fn rounds_to_finite(sum: &[u8], lane_type: LaneType) -> bool {
    match lane_type {
        LaneType::F16 => fits(sum, F16_OVERFLOW),
        LaneType::Bf16 => fits(sum, BF16_OVERFLOW),
        LaneType::F32 | LaneType::I32 | LaneType::I64 => true,
    }
}

/// Writes the sum as lanes on the wire.
///
/// # Panics
/// When `out` has not exactly as many lanes.
pub fn write(sum: &[u8], lane_type: LaneType, out: &mut [u8]) {
    let lanes = sum.len() / bytes_in_sum(lane_type);
    assert_eq!(out.len(), lanes * lane_type.bytes(), "callers ask for the length first");
    match f16c(lane_type) {
        Some(f16c) => f16c.write(sum, out),
        None => write_lanes(sum, out, lane_type),
    }
}

/// The kernels that take the place of the portable ones.
fn f16c(lane_type: LaneType) -> Option<F16c> {
    if lane_type == LaneType::F16 { F16c::new() } else { None }
}

dispatched!(begin_lanes, begin_loop, (sum: &mut [u8], incoming: &[u8], lane_type: LaneType) -> bool);
dispatched!(combine_lanes, combine_loop, (sum: &mut [u8], incoming: &[u8], lane_type: LaneType, operator: Operator) -> bool);
dispatched!(write_lanes, write_loop, (sum: &[u8], out: &mut [u8], lane_type: LaneType) -> ());
dispatched!(fits, fits_loop, (sum: &[u8], limit: u32) -> bool);
dispatched!(halves_fit, halves_fit_loop, (halves: &[u8], limit: i16) -> bool);

#[inline(always)]
fn begin_loop<const N: usize>(sum: &mut [u8], incoming: &[u8], lane_type: LaneType) -> bool {
    let all = opaque(u32::MAX);
    let f32_of = |bytes| f32::from_bits(u32::from_le_bytes(bytes) & all);
    // The sum's old lanes count for nothing.
    let first = |_: f32, incoming: f32| (incoming, incoming);
    match lane_type {
        LaneType::F32 => floats(sum, incoming, f32_of, first),
        LaneType::F16 => floats(sum, incoming, f16_of, first),
        LaneType::Bf16 => floats(sum, incoming, bf16_of, first),
        LaneType::I32 | LaneType::I64 => {
            sum.copy_from_slice(incoming);
            true
        }
    }
}

#[inline(always)]
fn combine_loop<const N: usize>(
    sum: &mut [u8],
    incoming: &[u8],
    lane_type: LaneType,
    operator: Operator,
) -> bool {
    let all = opaque(-1);
    match lane_type {
        LaneType::F32 => float_loop(sum, incoming, f32::from_le_bytes, operator),
        LaneType::F16 => float_loop(sum, incoming, f16_of, operator),
        LaneType::Bf16 => float_loop(sum, incoming, bf16_of, operator),
        LaneType::I32 => integers::<4, i32>(
            sum,
            incoming,
            operator,
            (i32::from_le_bytes, i32::to_le_bytes, i32::wrapping_add),
            |lane| lane,
        ),
        LaneType::I64 => integers::<8, i64>(
            sum,
            incoming,
            operator,
            (i64::from_le_bytes, i64::to_le_bytes, i64::wrapping_add),
            // There is no instruction for the larger one of two i64.
            |lane| lane & all,
        ),
    }
}

#[inline(always)]
fn float_loop<const W: usize>(
    sum: &mut [u8],
    incoming: &[u8],
    lane_of: impl Fn([u8; W]) -> f32,
    operator: Operator,
) -> bool {
    match operator {
        Operator::Sum => floats(sum, incoming, lane_of, |have, new| (have + new, have + new)),
        // A constant NaN, not the one of the sum: the compiler would store that one with masks.
        Operator::Min => floats(sum, incoming, lane_of, |have, new| {
            let less = if have < new { have } else { new };
            (if have.is_nan() { f32::NAN } else { less }, new)
        }),
        Operator::Max => floats(sum, incoming, lane_of, |have, new| {
            let more = if have > new { have } else { new };
            (if have.is_nan() { f32::NAN } else { more }, new)
        }),
        // A broadcast is its first piece.
        Operator::Broadcast => true,
    }
}

/// Combines the lanes of a sum, which are f32, with incoming ones of `W` bytes. `combine` returns the
/// new lane, and the number that must be finite.
#[inline(always)]
fn floats<const W: usize>(
    sum: &mut [u8],
    incoming: &[u8],
    lane_of: impl Fn([u8; W]) -> f32,
    combine: impl Fn(f32, f32) -> (f32, f32),
) -> bool {
    let mut largest = 0;
    let lanes = sum.as_chunks_mut::<4>().0.iter_mut();
    for (sum, incoming) in lanes.zip(incoming.as_chunks::<W>().0) {
        let (lane, look_at) = combine(f32::from_le_bytes(*sum), lane_of(*incoming));
        *sum = lane.to_le_bytes();
        largest = largest.max(look_at.to_bits() & MAGNITUDE);
    }
    largest < INFINITY
}

/// How integers of `W` bytes are read, written and added.
type Integer<const W: usize, T> = (fn([u8; W]) -> T, fn(T) -> [u8; W], fn(T, T) -> T);

#[inline(always)]
fn integers<const W: usize, T: Copy + Ord>(
    sum: &mut [u8],
    incoming: &[u8],
    operator: Operator,
    (read, write, add): Integer<W, T>,
    masked: impl Fn(T) -> T,
) -> bool {
    let lanes = sum.as_chunks_mut::<W>().0.iter_mut().zip(incoming.as_chunks::<W>().0);
    let lanes = lanes.map(|(sum, new)| (read(*sum), read(*new), sum));
    match operator {
        Operator::Sum => lanes.for_each(|(have, new, sum)| *sum = write(add(have, new))),
        Operator::Min => lanes.for_each(|(have, new, sum)| *sum = write(masked(have.min(new)))),
        Operator::Max => lanes.for_each(|(have, new, sum)| *sum = write(masked(have.max(new)))),
        // A broadcast is its first piece.
        Operator::Broadcast => {}
    }
    true
}

#[inline(always)]
fn write_loop<const N: usize>(sum: &[u8], out: &mut [u8], lane_type: LaneType) {
    match lane_type {
        LaneType::F32 | LaneType::I32 | LaneType::I64 => out.copy_from_slice(sum),
        LaneType::F16 => halves(sum, out, round_f16),
        LaneType::Bf16 => halves(sum, out, round_bf16),
    }
}

#[inline(always)]
fn halves(sum: &[u8], out: &mut [u8], round: impl Fn(f32) -> u16) {
    for (out, lane) in out.as_chunks_mut::<2>().0.iter_mut().zip(sum.as_chunks::<4>().0) {
        *out = round(f32::from_le_bytes(*lane)).to_le_bytes();
    }
}

/// Returns true if every magnitude is less than that of these bits.
#[inline(always)]
fn fits_loop<const N: usize>(sum: &[u8], limit: u32) -> bool {
    let lanes = sum.as_chunks::<4>().0.iter();
    lanes.fold(0, |largest, lane| largest.max(u32::from_le_bytes(*lane) & MAGNITUDE)) < limit
}

/// Returns true if every magnitude is less than that of these bits.
#[inline(always)]
fn halves_fit_loop<const N: usize>(halves: &[u8], limit: i16) -> bool {
    let halves = halves.as_chunks::<2>().0.iter();
    halves.fold(0, |largest, half| largest.max(i16::from_le_bytes(*half) & i16::MAX)) < limit
}

#[inline(always)]
fn f16_of(bytes: [u8; 2]) -> f32 {
    widen_f16(u16::from_le_bytes(bytes))
}

#[inline(always)]
fn bf16_of(bytes: [u8; 2]) -> f32 {
    widen_bf16(u16::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests;
