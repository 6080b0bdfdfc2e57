//! The factor of fixed point where it is dynamic (ATP §B.3).
//!
//! differs: in the paper packets carry the factors that workers wish for, and switches keep the smallest
//! one. Their frame has no room for it. Here the server sees the range of the recent sums, and names the
//! factor for the fragment a window later in each parameter packet. No worker sends that fragment before
//! it has this parameter packet. So all workers use the same factor for a fragment. The paper changes the
//! factor where sums run over often; here it also grows where gradients are small.

use alloc::vec::Vec;

/// Values may double from one window to the next.
const HEADROOM: f64 = 2.0;

/// Code 0 stands for the factor that the job began with, code `c` for 2 to the power of `c` - 128. Powers
/// of two lose nothing.
const ZERO: i32 = 128;

/// The factors of a window of fragments.
#[derive(Clone, Debug, Default)]
pub(super) struct Factors {
    first: f64,
    /// Codes by place in the window; none where the factor is fixed.
    codes: Vec<u8>,
}

impl Factors {
    /// The factors at the beginning. `scale` is that of the join: a negative one is dynamic.
    pub(super) fn new(scale: f64, window: u16) -> Self {
        let codes = if scale < 0.0 { alloc::vec![0; window.into()] } else { Vec::new() };
        Self { first: scale.abs(), codes }
    }

    pub(super) const fn is_dynamic(&self) -> bool {
        !self.codes.is_empty()
    }

    /// The factor of a fragment.
    pub(super) fn at(&self, sequence: u64) -> f64 {
        match self.place(sequence).map_or(0, |place| self.codes[place]) {
            0 => self.first,
            code => libm::scalbn(1.0, i32::from(code) - ZERO),
        }
    }

    /// The fragment a window later has that factor.
    pub(super) fn set(&mut self, sequence: u64, code: u8) {
        if let Some(place) = self.place(sequence) {
            self.codes[place] = code;
        }
    }

    fn place(&self, sequence: u64) -> Option<usize> {
        self.is_dynamic().then(|| (sequence % self.codes.len() as u64) as usize)
    }
}

/// The range of the recent sums, as the server sees them.
#[derive(Clone, Debug, Default)]
pub(super) struct Range {
    /// The largest bounds of this window of fragments and of the one before.
    largest: [f64; 2],
    fragments: u64,
}

impl Range {
    /// A fragment is complete; no sum of some of its workers was larger than `bound`, likely.
    pub(super) fn see(&mut self, bound: f64, window: u16) {
        if self.fragments.is_multiple_of(u64::from(window.max(1))) {
            self.largest = [0.0, self.largest[0]];
        }
        self.fragments += 1;
        if bound.is_finite() {
            self.largest[0] = self.largest[0].max(bound);
        }
    }

    /// The code of the largest factor with which sums do not run over (ATP §B.1, theorem 2); 0 while
    /// nothing is known.
    pub(super) fn code(&self, workers: u32) -> u8 {
        let largest = self.largest[0].max(self.largest[1]) * HEADROOM;
        if largest <= 0.0 {
            return 0;
        }
        let factor = (2_147_483_648.0 - f64::from(workers)) / largest;
        // A worker names the scale, so that sums may be as small as a float can be, and the factor infinite.
        let exponent = libm::floor(libm::log2(factor)) as i32;
        u8::try_from(exponent.saturating_add(ZERO).clamp(1, 255)).unwrap_or(0)
    }
}

/// A bound of all partial sums of a fragment, from its sum with that factor: workers' values may have
/// both signs, and each may have been rounded to 0.
pub(super) fn bound_of_sum(workers: u32, sum: &[u8], factor: f64) -> f64 {
    let workers = f64::from(workers);
    let values = sum.as_chunks::<4>().0.iter().map(|value| f32::from_be_bytes(*value));
    let largest = values.map(|value| f64::from(value.abs())).fold(0.0, f64::max);
    (largest * libm::sqrt(workers)).max(workers * 0.5 / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_takes_effect_a_window_later() {
        let mut factors = Factors::new(-1e8, 4);
        assert_eq!((factors.at(5), factors.is_dynamic()), (1e8, true));
        factors.set(5, 138);
        assert_eq!((factors.at(9), factors.at(8)), (1024.0, 1e8));
        factors.set(9, 0);
        assert_eq!(factors.at(13), 1e8);
        let mut fixed = Factors::new(1e8, 4);
        fixed.set(5, 138);
        assert_eq!((fixed.at(9), fixed.is_dynamic()), (1e8, false));
    }

    #[test]
    fn the_factor_follows_the_largest_sum_of_two_windows() {
        let mut range = Range::default();
        assert_eq!(range.code(4), 0, "nothing is known");
        let factor = |range: &Range| libm::scalbn(1.0, i32::from(range.code(4)) - ZERO);
        range.see(1.0, 2);
        assert!(factor(&range) * 2.0 <= 2_147_483_644.0 && factor(&range) * 4.0 > 2_147_483_644.0);
        range.see(1e-6, 2);
        range.see(1e-6, 2);
        assert!(factor(&range) < 2f64.powi(31), "the window before had a 1");
        (0..2).for_each(|_| range.see(1e-6, 2));
        assert!(factor(&range) > 2f64.powi(48));
        range.see(f64::INFINITY, 2);
        range.see(1e6, 2);
        assert!(factor(&range) <= 2f64.powi(10), "{}", factor(&range));
    }

    #[test]
    fn the_factor_of_the_smallest_sums_is_the_largest() {
        let mut range = Range::default();
        range.see(f64::MIN_POSITIVE / 1024.0, 2);
        assert_eq!(range.code(4), 255);
        range.see(f64::MAX, 2);
        assert_eq!(range.code(4), 1);
    }

    #[test]
    fn a_bound_has_room_for_both_signs() {
        let sum = [3f32.to_be_bytes(), (-8f32).to_be_bytes()].concat();
        assert_eq!(bound_of_sum(4, &sum, 1e8), 16.0);
        assert_eq!(bound_of_sum(4, &[0; 8], 1e3), 0.002, "values below the step");
    }
}
