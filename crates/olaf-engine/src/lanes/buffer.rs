//! Where a slot keeps its sum.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};
use olaf_wire::offsets::{LANE, update};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lanes from the start of a line to the first lane. In a datagram at the start of a line the first
/// lane has the same place. The vectors of both then straddle no two lines, which would cost an
/// addition a third of its speed.
const FIRST: usize = update::PAYLOAD % LINE / LANE;
/// Lanes from the first one to the start of the next line.
pub(super) const HEAD: usize = LINE / LANE - FIRST;

/// Lanes in memory that suits vector stores. Reads and writes like a slice.
#[derive(Default)]
pub struct Lanes {
    buffer: Vec<f32>,
    start: usize,
    len: usize,
}

impl Lanes {
    /// So many lanes, of any values.
    pub fn resize(&mut self, len: usize) {
        let room = LINE / LANE;
        if self.buffer.len() < len + room + FIRST {
            self.buffer.resize(len + room + FIRST, 0.0);
            // What is not aligned is slower and just as right.
            self.start = self.buffer.as_ptr().align_offset(LINE).min(room) + FIRST;
        }
        self.len = len;
    }
}

impl Deref for Lanes {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl DerefMut for Lanes {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.buffer[self.start..self.start + self.len]
    }
}

impl From<&[f32]> for Lanes {
    fn from(lanes: &[f32]) -> Self {
        let mut own = Self::default();
        own.resize(lanes.len());
        own.copy_from_slice(lanes);
        own
    }
}

impl Clone for Lanes {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_aligned_however_they_grow() {
        let mut lanes = Lanes::default();
        for len in [1, 100, 3, 2208, 16_000] {
            lanes.resize(len);
            let first = lanes.as_ptr().wrapping_sub(FIRST);
            assert_eq!((lanes.len(), first.align_offset(LINE)), (len, 0));
        }
        assert!(Lanes::default().is_empty());
        assert_eq!(*Lanes::from([1.0, 2.0].as_slice()).clone(), [1.0, 2.0]);
    }
}
