//! Which segments of a model are here.

use alloc::vec::Vec;
use core::iter;

/// Which segments of one model are here.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    /// As far as the last segment that is here: a model's size alone takes no memory.
    words: Vec<u64>,
    missing: u32,
    segments: u32,
}

impl Present {
    pub(crate) fn none_of(segments: u32) -> Self {
        Self { words: Vec::new(), missing: segments, segments }
    }

    /// Notes a segment; whether it is news.
    pub(crate) fn insert(&mut self, segment: u32) -> bool {
        if segment >= self.segments || self.contains(segment) {
            return false;
        }
        let word = segment as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (segment % 64);
        self.missing -= 1;
        true
    }

    pub(crate) fn contains(&self, segment: u32) -> bool {
        self.words.get(segment as usize / 64).is_some_and(|w| w >> (segment % 64) & 1 == 1)
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.missing == 0
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.missing == self.segments
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.missing = self.segments;
    }

    pub(crate) fn first_missing(&self) -> Option<u32> {
        self.missing_from_first().map(|(first, _)| first)
    }

    /// The first segment that is missing, and a mask of those that are from it on.
    pub(crate) fn missing_from_first(&self) -> Option<(u32, u64)> {
        let mut windows = self.missing_windows();
        let (first, mask) = windows.next()?;
        let skipped = mask.trailing_zeros();
        let next = windows.next().filter(|(next, _)| *next == first + 64).map_or(0, |(_, m)| m);
        let beyond = if skipped == 0 { 0 } else { next << (64 - skipped) };
        Some((first + skipped, mask >> skipped | beyond))
    }

    /// Windows of 64 segments in which some are missing: the first segment and a mask of the
    /// missing ones.
    pub(crate) fn missing_windows(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let words = self.words.iter().copied().chain(iter::repeat(0));
        (0..self.segments).step_by(64).zip(words).filter_map(|(first, word)| {
            let there = (self.segments - first).min(64);
            let all = if there == 64 { u64::MAX } else { (1 << there) - 1 };
            let mask = !word & all;
            (mask != 0).then_some((first, mask))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_takes_no_memory_before_a_segment_came() {
        let mut present = Present::none_of(u32::MAX);
        assert_eq!(present.words.capacity(), 0);
        assert_eq!(present.missing_from_first(), Some((0, u64::MAX)));
        assert!(present.insert(70));
        assert_eq!(present.words.len(), 2);
        assert_eq!(present.missing_from_first(), Some((0, u64::MAX)));
        present.clear();
        assert!(!present.contains(70));
    }

    #[test]
    fn what_is_missing_is_named_in_windows() {
        let mut present = Present::none_of(70);
        for segment in (0..70).filter(|s| *s != 3 && *s != 69) {
            assert!(present.insert(segment));
            assert!(!present.insert(segment));
        }
        assert!(!present.insert(70));
        let windows: Vec<_> = present.missing_windows().collect();
        assert_eq!(windows, [(0, 1 << 3), (64, 1 << 5)]);
        assert_eq!(present.missing_from_first(), Some((3, 1)));
        let mut two = Present::none_of(130);
        (0..130).filter(|s| ![60, 62, 65, 123, 124].contains(s)).for_each(|s| {
            two.insert(s);
        });
        assert_eq!(two.missing_from_first(), Some((60, 1 | 1 << 2 | 1 << 5 | 1 << 63)));
        present.insert(3);
        present.insert(69);
        assert!(present.is_complete() && present.missing_from_first().is_none());
    }
}
