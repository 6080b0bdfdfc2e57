//! Sets of ranks: whose pieces a sum has.

use super::offsets::{MAX_RANKS, MAX_WORDS};
use crate::packet::Refusal;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// A set of ranks below [`MAX_RANKS`]. Up to 64 ranks take no memory of their own.
#[derive(Clone)]
pub struct RankSet(Words);

/// Bit `r % 64` of word `r / 64` stands for rank `r`.
#[derive(Clone)]
enum Words {
    /// Ranks below 64.
    One(u64),
    /// All ranks. Words at the end may be 0.
    Many(Vec<u64>),
}

impl RankSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Words::One(0))
    }

    /// The ranks below `ranks`.
    ///
    /// # Panics
    /// When `ranks` is more than [`MAX_RANKS`].
    #[must_use]
    pub fn below(ranks: u32) -> Self {
        assert!(ranks <= MAX_RANKS, "a job has at most MAX_RANKS ranks");
        // The last word has 1 to 64 ranks.
        let bits_of_last = ranks.saturating_sub(1) % 64 + 1;
        let last = if ranks == 0 { 0 } else { u64::MAX >> (64 - bits_of_last) };
        if ranks <= 64 {
            return Self(Words::One(last));
        }
        let mut words = vec![u64::MAX; ranks.div_ceil(64) as usize];
        *words.last_mut().expect("more than one word") = last;
        Self(Words::Many(words))
    }

    /// The set of a bitmap, as [`super::ReducePacket::contributor_words`] reads it.
    ///
    /// # Errors
    /// [`Refusal::BadField`] where the bitmap has more than [`MAX_WORDS`] words.
    pub fn from_words(words: impl IntoIterator<Item = u64>) -> Result<Self, Refusal> {
        let mut words = words.into_iter();
        let first = words.next().unwrap_or(0);
        let Some(second) = words.next() else { return Ok(Self(Words::One(first))) };
        let mut many = vec![first, second];
        many.extend(words.by_ref().take(MAX_WORDS - many.len()));
        match words.next() {
            None => Ok(Self(Words::Many(many))),
            Some(_) => Err(Refusal::BadField("words")),
        }
    }

    /// Adds a rank; says whether it is new.
    ///
    /// # Panics
    /// When `rank` is [`MAX_RANKS`] or more. A [`super::ReducePacket`] has no such rank.
    #[inline]
    pub fn insert(&mut self, rank: u32) -> bool {
        assert!(rank < MAX_RANKS, "ranks are below MAX_RANKS, see ReducePacket::new_checked");
        let word = self.word_mut(rank as usize / 64);
        let bit = 1 << (rank % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Adds the ranks of another set.
    pub fn union(&mut self, other: &Self) {
        for (index, word) in other.words().iter().enumerate() {
            *self.word_mut(index) |= word;
        }
    }

    /// Takes all ranks out, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        match &mut self.0 {
            Words::One(word) => *word = 0,
            Words::Many(words) => words.fill(0),
        }
    }

    /// Returns true if the set has the rank.
    #[must_use]
    #[inline]
    pub fn contains(&self, rank: u32) -> bool {
        let word = self.all_words().get(rank as usize / 64).copied().unwrap_or(0);
        word >> (rank % 64) & 1 == 1
    }

    /// Returns true if both sets have a rank in common.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.all_words().iter().zip(other.all_words()).any(|(one, other)| one & other != 0)
    }

    /// How many ranks the set has.
    #[must_use]
    #[inline]
    pub fn len(&self) -> u32 {
        self.all_words().iter().map(|word| word.count_ones()).sum()
    }

    /// Returns true if the set has no rank.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all_words().iter().all(|word| *word == 0)
    }

    /// The ranks, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).step_by(64).zip(self.all_words()).flat_map(|(first, word)| {
            let others = |rest: &u64| not_empty(rest & (rest - 1));
            let rests = core::iter::successors(not_empty(*word), others);
            rests.map(move |rest| first + rest.trailing_zeros())
        })
    }

    /// The bitmap as a piece or a result carries it: up to the word of the largest rank. Empty for
    /// the empty set.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &[u64] {
        let words = self.all_words();
        let len = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        &words[..len]
    }

    #[inline]
    fn all_words(&self) -> &[u64] {
        match &self.0 {
            Words::One(word) => core::slice::from_ref(word),
            Words::Many(words) => words,
        }
    }

    /// The word, which becomes one of the set where it is not.
    #[inline]
    fn word_mut(&mut self, index: usize) -> &mut u64 {
        if index >= self.all_words().len() {
            let mut words = self.all_words().to_vec();
            words.resize(index + 1, 0);
            self.0 = Words::Many(words);
        }
        match &mut self.0 {
            Words::One(word) => word,
            Words::Many(words) => &mut words[index],
        }
    }
}

fn not_empty(word: u64) -> Option<u64> {
    (word != 0).then_some(word)
}

impl Default for RankSet {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for RankSet {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for RankSet {}

impl fmt::Debug for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Extend<u32> for RankSet {
    /// # Panics
    /// As [`RankSet::insert`].
    fn extend<T: IntoIterator<Item = u32>>(&mut self, ranks: T) {
        for rank in ranks {
            self.insert(rank);
        }
    }
}

impl FromIterator<u32> for RankSet {
    /// # Panics
    /// As [`RankSet::insert`].
    fn from_iter<T: IntoIterator<Item = u32>>(ranks: T) -> Self {
        let mut set = Self::new();
        set.extend(ranks);
        set
    }
}
