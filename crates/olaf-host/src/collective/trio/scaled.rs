//! f32 as scaled integers, and back: the scaling of ATP that Trio-ML takes over (§4).

/// Bytes of a lane and of a gradient.
pub(super) const LANE: usize = 4;

/// Returns true if no lane is a NaN or an infinity.
pub(super) fn are_finite(lanes: &[u8]) -> bool {
    const EXPONENT: u32 = 0x7f80_0000;
    let lanes = lanes.as_chunks::<LANE>().0.iter();
    // Without a way out at the first one the loop is one of vectors.
    lanes.fold(true, |all, lane| all & (u32::from_le_bytes(*lane) & EXPONENT != EXPONENT))
}

/// Writes lanes times `scale`, rounded, as gradients on the wire. A lane that is too large becomes the
/// largest integer, and one that is no number the smallest. Returns whether every lane fitted.
pub(super) fn quantize(lanes: &[u8], scale: f64, out: &mut [u8]) -> bool {
    let mut fits = true;
    for (lane, out) in lanes.as_chunks::<LANE>().0.iter().zip(out.as_chunks_mut::<LANE>().0) {
        let lane = f32::from_le_bytes(*lane);
        let scaled = libm::rint(f64::from(lane) * scale);
        fits &= scaled.abs() < f64::from(i32::MAX);
        let integer = if lane.is_nan() { i32::MIN } else { scaled as i32 };
        *out = integer.to_be_bytes();
    }
    fits
}

/// Writes gradients as lanes: each divided by `scale`, and by the number of workers where the result
/// is a mean (§5). Returns whether no sum had reached the end of the integers.
pub(super) fn dequantize(gradients: &[u8], scale: f64, by: u32, out: &mut [u8]) -> bool {
    let mut fits = true;
    let by = scale * f64::from(by.max(1));
    for (gradient, out) in gradients.as_chunks::<LANE>().0.iter().zip(out.as_chunks_mut::<LANE>().0)
    {
        let gradient = i32::from_be_bytes(*gradient);
        fits &= gradient != i32::MAX && gradient != i32::MIN;
        *out = ((f64::from(gradient) / by) as f32).to_le_bytes();
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn bytes(lanes: &[f32]) -> Vec<u8> {
        lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    #[test]
    fn a_lane_becomes_an_integer_and_comes_back() {
        let lanes = bytes(&[0.5, -0.25, 1.0, -21.0]);
        let mut wire = [0; 16];
        assert!(quantize(&lanes, 1e8, &mut wire));
        assert_eq!(wire[..4], 50_000_000i32.to_be_bytes());
        let mut back = [0; 16];
        assert!(dequantize(&wire, 1e8, 1, &mut back));
        assert_eq!(back[..], lanes[..]);
        assert!(dequantize(&wire, 1e8, 2, &mut back));
        assert_eq!(back[..], bytes(&[0.25, -0.125, 0.5, -10.5])[..], "the mean of two");
    }

    #[test]
    fn a_nan_or_an_infinity_is_found_wherever_it_is() {
        let fine = [0.0, -0.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE / 2.0];
        assert!(are_finite(&bytes(&fine)) && are_finite(&[]));
        for at in 0..fine.len() {
            for lane in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut lanes = fine;
                lanes[at] = lane;
                assert!(!are_finite(&bytes(&lanes)), "{lane} at {at}");
            }
        }
    }

    #[test]
    fn what_is_too_large_stops_at_the_end_and_is_noticed() {
        for lane in [22.0, -22.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let mut wire = [0; 4];
            assert!(!quantize(&bytes(&[lane]), 1e8, &mut wire), "{lane}");
            let mut back = [0; 4];
            assert!(!dequantize(&wire, 1e8, 1, &mut back), "{lane}");
            let end = if lane > 0.0 { i32::MAX } else { i32::MIN };
            assert_eq!(i32::from_be_bytes(wire), end, "{lane}");
        }
    }
}
