//! A set of sources: the four masks of 64 bits of a record (Trio-ML, Figures 17 and 18).

/// Sources, by `src_id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sources([u64; 4]);

impl Sources {
    /// Returns true if the source is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(&self, source: u8) -> bool {
        self.0[(source >> 6) as usize] >> (source & 63) & 1 == 1
    }

    /// Adds a source.
    #[inline]
    pub const fn insert(&mut self, source: u8) {
        self.0[(source >> 6) as usize] |= 1 << (source & 63);
    }

    /// Takes a source out.
    pub const fn remove(&mut self, source: u8) {
        self.0[(source >> 6) as usize] &= !(1 << (source & 63));
    }

    /// Returns true if every one of `others` is in the set.
    #[must_use]
    #[inline]
    pub fn contains_all(&self, others: &Self) -> bool {
        self.0.iter().zip(&others.0).all(|(have, need)| need & !have == 0)
    }

    /// The sources that are not among `others`.
    #[must_use]
    #[inline]
    pub fn without(&self, others: &Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] & !others.0[at]))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.0.iter().map(|mask| mask.count_ones()).sum()
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Every source, in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let set = *self;
        (0..=u8::MAX).filter(move |source| set.contains(*source))
    }
}

impl FromIterator<u8> for Sources {
    fn from_iter<I: IntoIterator<Item = u8>>(sources: I) -> Self {
        let mut set = Self::default();
        sources.into_iter().for_each(|source| set.insert(source));
        set
    }
}
