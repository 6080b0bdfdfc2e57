//! Sums of big-endian i32 in fixed point that saturate, and stay saturated (ATP §3.8).
//!
//! The largest and the smallest number stand for "a sum ran over here": nothing that is added later
//! brings such a lane back, so that the server notices it.

use super::dispatch::{dispatched, opaque};

/// Returns true if a lane ran over, or was too large from the beginning.
#[must_use]
#[inline]
pub const fn is_saturated(lane: i32) -> bool {
    lane == i32::MAX || lane == i32::MIN
}

/// Adds big-endian lanes to a sum. Lanes without a counterpart are left alone.
pub fn add(sum: &mut [i32], incoming: &[u8]) {
    add_lanes(sum, incoming);
}

/// Writes big-endian lanes over a sum.
pub fn copy(sum: &mut [i32], incoming: &[u8]) {
    for (sum, lane) in sum.iter_mut().zip(incoming.as_chunks::<4>().0) {
        *sum = i32::from_be_bytes(*lane);
    }
}

/// Writes a sum as big-endian lanes.
pub fn write(sum: &[i32], out: &mut [u8]) {
    for (out, lane) in out.as_chunks_mut::<4>().0.iter_mut().zip(sum) {
        *out = lane.to_be_bytes();
    }
}

dispatched!(add_lanes, add_loop, (sum: &mut [i32], incoming: &[u8]) -> ());

#[inline(always)]
fn add_loop<const N: usize>(sum: &mut [i32], incoming: &[u8]) {
    let all = opaque(-1);
    for (sum, incoming) in sum.iter_mut().zip(incoming.as_chunks::<4>().0) {
        *sum = sticky(*sum, i32::from_be_bytes(*incoming)) & all;
    }
}

#[inline(always)]
const fn sticky(have: i32, new: i32) -> i32 {
    let sum = have.saturating_add(new);
    let sum = if is_saturated(new) { new } else { sum };
    if is_saturated(have) { have } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn bytes(lanes: &[i32]) -> Vec<u8> {
        lanes.iter().flat_map(|lane| lane.to_be_bytes()).collect()
    }

    proptest! {
        #[test]
        fn adding_is_adding_each_lane(pairs in prop::collection::vec((any::<i32>(), any::<i32>()), 0..200)) {
            let (mut sum, incoming): (Vec<i32>, Vec<i32>) = pairs.iter().copied().unzip();
            add(&mut sum, &bytes(&incoming));
            for ((have, new), sum) in pairs.iter().zip(&sum) {
                let exact = i64::from(*have) + i64::from(*new);
                prop_assert!(i64::from(*sum) == exact || is_saturated(*sum));
            }
            let mut out = bytes(&incoming);
            write(&sum, &mut out);
            let mut again = sum.clone();
            copy(&mut again, &out);
            prop_assert_eq!(again, sum);
        }
    }

    #[test]
    fn a_saturated_lane_stays_saturated() {
        for (lanes, expected) in [
            ([i32::MAX, -5, -5], i32::MAX),
            ([2_000_000_000, 2_000_000_000, -2_000_000_000], i32::MAX),
            ([-2_000_000_000, -2_000_000_000, 2_000_000_000], i32::MIN),
            ([-5, i32::MAX, -5], i32::MAX),
            ([5, i32::MIN, 5], i32::MIN),
            ([1, -2, 3], 2),
        ] {
            let mut sum = [0; 70];
            lanes.iter().for_each(|lane| add(&mut sum, &bytes(&[*lane; 70])));
            assert_eq!(sum, [expected; 70]);
        }
    }
}
