//! Arithmetic on lanes of any type: what the table of blocks sums, compares and rounds.
//!
//! A sum is little-endian bytes, as lanes on the wire are. Its lanes are as wide as those on the wire,
//! but for f16 and bf16, which are summed in f32 and rounded once, in the result. Each kernel changes
//! the sum where it lies. Lanes and sums need no alignment; both at the start of a cache line are
//! fastest ([`Aligned`]).
//!
//! A sum of integers wraps. Of minimum and maximum a NaN wins, as in `PyTorch`: a worker whose lanes
//! went wrong is not hidden by the others.

use super::half::{BF16_OVERFLOW, F16_OVERFLOW, round_bf16, round_f16, widen_bf16, widen_f16};
use super::{Aligned, INFINITY, MAGNITUDE, dispatch::dispatched, largest};
use olaf_wire::reduce::{LaneType, Operator};

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
    begin_lanes(sum, incoming, lane_type) || all_finite(lane_type, incoming)
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
    combine_lanes(sum, incoming, lane_type, operator)
        || match operator {
            Operator::Sum => fits(sum, INFINITY),
            Operator::Min | Operator::Max | Operator::Broadcast => all_finite(lane_type, incoming),
        }
}

/// Whether every lane on the wire is a finite number. Integers are.
#[must_use]
pub fn all_finite(lane_type: LaneType, incoming: &[u8]) -> bool {
    let halves = |exponent: u16| {
        let mut halves = incoming.as_chunks::<2>().0.iter();
        halves.all(|half| u16::from_le_bytes(*half) & exponent != exponent)
    };
    match lane_type {
        LaneType::F32 => super::all_finite(incoming),
        LaneType::F16 => halves(0x7c00),
        LaneType::Bf16 => halves(0x7f80),
        LaneType::I32 | LaneType::I64 => true,
    }
}

/// Whether every lane of a finite sum is finite in the result, too: an f32 may be more than the
/// largest f16.
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
    write_lanes(sum, out, lane_type);
}

dispatched!(begin_lanes, begin_loop, (sum: &mut [u8], incoming: &[u8], lane_type: LaneType) -> bool);
dispatched!(combine_lanes, combine_loop, (sum: &mut [u8], incoming: &[u8], lane_type: LaneType, operator: Operator) -> bool);
dispatched!(write_lanes, write_loop, (sum: &[u8], out: &mut [u8], lane_type: LaneType) -> ());
dispatched!(fits, fits_loop, (sum: &[u8], limit: u32) -> bool);

#[inline(always)]
fn begin_loop<const N: usize>(sum: &mut [u8], incoming: &[u8], lane_type: LaneType) -> bool {
    // The sum's old lanes count for nothing.
    let first = |_: f32, incoming: f32| (incoming, incoming);
    match lane_type {
        LaneType::F32 => floats::<N, 4>(sum, incoming, f32::from_le_bytes, first),
        LaneType::F16 => floats::<N, 2>(sum, incoming, f16_of, first),
        LaneType::Bf16 => floats::<N, 2>(sum, incoming, bf16_of, first),
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
    match lane_type {
        LaneType::F32 => float_loop::<N, 4>(sum, incoming, f32::from_le_bytes, operator),
        LaneType::F16 => float_loop::<N, 2>(sum, incoming, f16_of, operator),
        LaneType::Bf16 => float_loop::<N, 2>(sum, incoming, bf16_of, operator),
        LaneType::I32 => integers::<4, i32>(
            sum,
            incoming,
            operator,
            (i32::from_le_bytes, i32::to_le_bytes, i32::wrapping_add),
        ),
        LaneType::I64 => integers::<8, i64>(
            sum,
            incoming,
            operator,
            (i64::from_le_bytes, i64::to_le_bytes, i64::wrapping_add),
        ),
    }
}

#[inline(always)]
fn float_loop<const N: usize, const W: usize>(
    sum: &mut [u8],
    incoming: &[u8],
    lane_of: impl Fn([u8; W]) -> f32,
    operator: Operator,
) -> bool {
    match operator {
        Operator::Sum => {
            floats::<N, W>(sum, incoming, lane_of, |have, new| (have + new, have + new))
        }
        Operator::Min => floats::<N, W>(sum, incoming, lane_of, |have, new| {
            (if have < new || have.is_nan() { have } else { new }, new)
        }),
        Operator::Max => floats::<N, W>(sum, incoming, lane_of, |have, new| {
            (if have > new || have.is_nan() { have } else { new }, new)
        }),
        // A broadcast is its first piece.
        Operator::Broadcast => true,
    }
}

/// Combines the lanes of a sum, which are f32, with incoming ones of `W` bytes. `combine` returns the
/// new lane, and the number that must be finite.
///
/// Long strides of `N` lanes come first: these are four registers, whose additions need not wait for
/// each other. Then come strides of one cache line, and lanes alone.
#[inline(always)]
fn floats<const N: usize, const W: usize>(
    sum: &mut [u8],
    incoming: &[u8],
    lane_of: impl Fn([u8; W]) -> f32,
    combine: impl Fn(f32, f32) -> (f32, f32),
) -> bool {
    let mut noticed = [0f32; N];
    let (strides, rest) = sum.as_chunks_mut::<4>().0.as_chunks_mut::<N>();
    let (incoming, incoming_rest) = incoming.as_chunks::<W>().0.as_chunks::<N>();
    for (sum, incoming) in strides.iter_mut().zip(incoming) {
        stride(sum, incoming, &mut noticed, &lane_of, &combine);
    }
    let (strides, rest) = rest.as_chunks_mut::<16>();
    let (incoming, incoming_rest) = incoming_rest.as_chunks::<16>();
    for (sum, incoming) in strides.iter_mut().zip(incoming) {
        let noticed = noticed.first_chunk_mut().expect("a stride is a line or more");
        stride(sum, incoming, noticed, &lane_of, &combine);
    }
    let (rest, _) = rest.as_chunks_mut::<1>();
    let (incoming, _) = incoming_rest.as_chunks::<1>();
    for (sum, incoming) in rest.iter_mut().zip(incoming) {
        let noticed = noticed.first_chunk_mut().expect("a stride is a lane or more");
        stride(sum, incoming, noticed, &lane_of, &combine);
    }
    largest(&noticed) < INFINITY
}

#[inline(always)]
fn stride<const M: usize, const W: usize>(
    sum: &mut [[u8; 4]; M],
    incoming: &[[u8; W]; M],
    noticed: &mut [f32; M],
    lane_of: &impl Fn([u8; W]) -> f32,
    combine: &impl Fn(f32, f32) -> (f32, f32),
) {
    for i in 0..M {
        let (lane, look_at) = combine(f32::from_le_bytes(sum[i]), lane_of(incoming[i]));
        sum[i] = lane.to_le_bytes();
        noticed[i] += look_at;
    }
}

/// How integers of `W` bytes are read, written and added.
type Integer<const W: usize, T> = (fn([u8; W]) -> T, fn(T) -> [u8; W], fn(T, T) -> T);

#[inline(always)]
fn integers<const W: usize, T: Copy + Ord>(
    sum: &mut [u8],
    incoming: &[u8],
    operator: Operator,
    (read, write, add): Integer<W, T>,
) -> bool {
    let lanes = sum.as_chunks_mut::<W>().0.iter_mut().zip(incoming.as_chunks::<W>().0);
    match operator {
        Operator::Sum => lanes.for_each(|(sum, new)| *sum = write(add(read(*sum), read(*new)))),
        Operator::Min => lanes.for_each(|(sum, new)| *sum = write(read(*sum).min(read(*new)))),
        Operator::Max => lanes.for_each(|(sum, new)| *sum = write(read(*sum).max(read(*new)))),
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

/// Whether every magnitude is less than that of these bits.
#[inline(always)]
fn fits_loop<const N: usize>(sum: &[u8], limit: u32) -> bool {
    let lanes = sum.as_chunks::<4>().0.iter();
    lanes.fold(0, |largest, lane| largest.max(u32::from_le_bytes(*lane) & MAGNITUDE)) < limit
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
