//! A model's size, and how it is cut into segments.

use core::ops::Range;
use olaf_wire::Update;
use olaf_wire::offsets::LANE;

/// The most segments that a model may be cut into: 1 GiB of float32 over paths of 1,500 bytes. It
/// bounds the tables of those segments that came.
pub const MOST_SEGMENTS: u32 = 1 << 20;

/// A model may be cut into this many segments of any size: a worker's table of them is small.
pub const SEGMENTS_OF_ANY_SIZE: u32 = 1 << 12;
/// The fewest lanes of a segment beyond that. A table has some 100 bytes for each segment that came: at
/// least 256 bytes of lanes came with it. Every path that carries 576 bytes has room for more lanes.
pub const LEAST_SEGMENT_LANES: u32 = 64;

/// How many parameters a model has, and how many of them a segment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Parameters of the whole model, above 0.
    pub parameters: u32,
    /// Lanes of a segment but for the last, above 0.
    pub segment_lanes: u32,
}

impl Shape {
    /// Segments of the model.
    #[must_use]
    #[inline]
    pub const fn segments(self) -> u32 {
        self.parameters.div_ceil(self.segment_lanes)
    }

    /// Returns true if the model is cut into more segments than any party takes, or into many small
    /// ones.
    #[must_use]
    pub const fn is_cut_too_finely(self) -> bool {
        let is_small = self.segment_lanes < LEAST_SEGMENT_LANES;
        self.segments() > MOST_SEGMENTS || is_small && self.segments() > SEGMENTS_OF_ANY_SIZE
    }

    /// Which parameters a segment carries; empty where there is no such segment.
    #[must_use]
    #[inline]
    pub fn range(self, segment: u32) -> Range<usize> {
        let start = u64::from(segment) * u64::from(self.segment_lanes);
        let end = (start + u64::from(self.segment_lanes)).min(u64::from(self.parameters));
        let start = start.min(end);
        usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX)
    }

    /// Lanes of a segment; 0 where there is no such segment.
    #[must_use]
    #[inline]
    pub fn lanes(self, segment: u32) -> usize {
        self.range(segment).len()
    }

    /// Returns true if an update is cut like the model, and its lanes are as many as its segment's.
    #[must_use]
    #[inline]
    pub fn fits(self, update: &Update, lanes: &[u8]) -> bool {
        update.segments == self.segments() && self.lanes(update.segment) * LANE == lanes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_segment_carries_the_rest() {
        let shape = Shape { parameters: 10, segment_lanes: 4 };
        assert_eq!(shape.segments(), 3);
        assert_eq!([0, 1, 2, 3].map(|s| shape.lanes(s)), [4, 4, 2, 0]);
        assert_eq!(shape.lanes(u32::MAX), 0);
    }

    #[test]
    fn a_model_has_a_most_of_segments() {
        let cut = |segment_lanes| Shape { parameters: 1 << 28, segment_lanes }.is_cut_too_finely();
        assert_eq!([cut(1), cut(255), cut(256), cut(2208)], [true, true, false, false]);
    }

    #[test]
    fn many_segments_are_no_smaller_than_their_entries_in_a_table() {
        let cut =
            |parameters, segment_lanes| Shape { parameters, segment_lanes }.is_cut_too_finely();
        // Some small segments may be: 4,096.
        assert_eq!([cut(4096, 1), cut(4097, 1), cut(4097, 2)], [false, true, false]);
        assert_eq!([cut(1 << 20, 63), cut(1 << 20, 64)], [true, false]);
    }
}
