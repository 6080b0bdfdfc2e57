//! Where a table of blocks keeps its sums.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes that begin at a cache line, as the lanes of a `reduce` datagram do. A vector of either then
/// straddles no two lines. Reads and writes like a slice.
#[derive(Default)]
pub struct Aligned {
    buffer: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// Sets the length. The values of the bytes are undefined.
    pub fn resize(&mut self, len: usize) {
        if self.buffer.len() < len + LINE {
            self.buffer.resize(len + LINE, 0);
            // What is not aligned is slower and just as right.
            self.start = self.buffer.as_ptr().align_offset(LINE).min(LINE);
        }
        self.len = len;
    }
}

impl Deref for Aligned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.start + self.len]
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        let mut own = Self::default();
        own.resize(self.len);
        own.copy_from_slice(self);
        own
    }
}

impl fmt::Debug for Aligned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_however_they_grow() {
        let mut bytes = Aligned::default();
        assert!(bytes.is_empty());
        for len in [1, 100, 3, 8960, 64_000] {
            bytes.resize(len);
            assert_eq!((bytes.len(), bytes.as_ptr().align_offset(LINE)), (len, 0));
            assert_eq!(bytes.clone().as_ptr().align_offset(LINE), 0);
        }
    }
}
