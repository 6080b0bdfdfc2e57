//! Fixed point: f32 lanes of a program, and big-endian i32 on the wire (ATP §3.8).

use olaf_engine::lanes::saturating::is_saturated;

/// The factor of the paper (ATP §B.1).
pub const SCALE: f64 = 1e8;

/// Writes little-endian f32 as big-endian i32: times `scale`, to the nearest integer. A lane that is
/// too large, or no number, becomes a saturated one, so that the server asks for f32.
pub(super) fn quantize(lanes: &[u8], scale: f64, out: &mut [u8]) {
    for (out, lane) in out.as_chunks_mut::<4>().0.iter_mut().zip(lanes.as_chunks::<4>().0) {
        let scaled = f64::from(f32::from_le_bytes(*lane)) * scale;
        let value = if scaled.is_nan() { i32::MIN } else { libm::rint(scaled) as i32 };
        *out = value.to_be_bytes();
    }
}

/// Writes little-endian f32 as big-endian f32.
pub(super) fn swap(lanes: &[u8], out: &mut [u8]) {
    for (out, lane) in out.as_chunks_mut::<4>().0.iter_mut().zip(lanes.as_chunks::<4>().0) {
        *out = f32::from_le_bytes(*lane).to_be_bytes();
    }
}

/// Writes big-endian f32, divided by that number, as little-endian f32; whether all are finite.
pub(super) fn take(values: &[u8], by: u32, out: &mut [u8]) -> bool {
    let mut finite = true;
    let by = by as f32;
    for (out, value) in out.as_chunks_mut::<4>().0.iter_mut().zip(values.as_chunks::<4>().0) {
        let value = f32::from_be_bytes(*value) / by;
        finite &= value.is_finite();
        *out = value.to_le_bytes();
    }
    finite
}

/// The largest of the little-endian f32, without sign; infinite where one is no number.
pub(super) fn largest(lanes: &[u8]) -> f64 {
    let lanes = lanes.as_chunks::<4>().0.iter().map(|lane| f32::from_le_bytes(*lane).abs());
    lanes.fold(0.0, |largest, lane| {
        let lane = if lane.is_nan() { f64::INFINITY } else { f64::from(lane) };
        lane.max(largest)
    })
}

/// The largest lane that cannot run over, however many workers add such lanes (ATP §B.2).
#[must_use]
pub fn bound(workers: u32, scale: f64) -> f64 {
    let workers = f64::from(workers.max(1));
    (2_147_483_648.0 - workers) / (workers * scale)
}

/// Returns true if a big-endian i32 is saturated.
pub(super) fn any_saturated(values: &[u8]) -> bool {
    values.as_chunks::<4>().0.iter().any(|value| is_saturated(i32::from_be_bytes(*value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn integers(lanes: &[f32]) -> Vec<i32> {
        let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
        let mut out = alloc::vec![0; bytes.len()];
        quantize(&bytes, SCALE, &mut out);
        out.as_chunks().0.iter().map(|value| i32::from_be_bytes(*value)).collect()
    }

    #[test]
    fn lanes_become_integers_and_those_that_do_not_fit_are_saturated() {
        assert_eq!(integers(&[1.0, -0.5, 1e-9, 2e-8]), [100_000_000, -50_000_000, 0, 2]);
        let odd = integers(&[21.5, -22.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
        assert_eq!(odd, [i32::MAX, i32::MIN, i32::MIN, i32::MAX, i32::MIN]);
        assert!(odd.iter().all(|value| any_saturated(&value.to_be_bytes())));
    }

    #[test]
    fn the_largest_lane_has_no_sign() {
        let bytes = |lanes: [f32; 3]| lanes.map(f32::to_le_bytes).concat();
        assert_eq!(largest(&bytes([0.5, -2.0, 1.0])), 2.0);
        assert_eq!(largest(&bytes([0.5, f32::NAN, 1.0])), f64::INFINITY);
    }

    #[test]
    fn the_bound_of_the_paper() {
        // Appendix B.2: 0.2 with 100 workers and a factor of 10^8.
        assert!((bound(100, SCALE) - 0.2147).abs() < 1e-3);
    }

    #[test]
    fn a_mean_is_divided_and_what_is_no_number_is_noticed() {
        let mut out = [0; 8];
        let values = [8f32.to_be_bytes(), (-2f32).to_be_bytes()].concat();
        assert!(take(&values, 4, &mut out));
        assert_eq!(out, [2f32.to_le_bytes(), (-0.5f32).to_le_bytes()].concat()[..]);
        assert!(!take(&f32::NAN.to_be_bytes(), 1, &mut out));
        let mut big_endian = [0; 4];
        swap(&1.5f32.to_le_bytes(), &mut big_endian);
        assert_eq!(big_endian, 1.5f32.to_be_bytes());
    }
}
