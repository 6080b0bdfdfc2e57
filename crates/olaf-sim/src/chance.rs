//! Chance from a seed: the same seed, the same draws.

/// A stream of draws.
#[derive(Clone, Debug)]
pub(crate) struct Chance(fastrand::Rng);

impl Chance {
    /// The stream of a seed for one purpose: what is drawn elsewhere does not shift it.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut mixed = fastrand::Rng::with_seed(seed);
        Self(fastrand::Rng::with_seed(mixed.u64(..) ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// True so often.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        // Drawn even where it cannot happen, so that settings do not shift what is drawn later.
        self.0.f64() < probability
    }

    /// A number from 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0.f64()
    }

    /// A number from 0 to `most`.
    pub(crate) fn up_to(&mut self, most: u64) -> u64 {
        self.0.u64(0..=most)
    }
}
