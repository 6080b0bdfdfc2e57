//! Where the lanes of an operation lie.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Memory of a program that an operation reads its lanes from and writes its result to. The lanes
/// are little-endian and have [`LaneType::bytes`](olaf_wire::reduce::LaneType::bytes) bytes each.
pub trait Buffer: Send {
    /// The lanes.
    fn bytes(&self) -> &[u8];
    /// The same, to write the result.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Buffer for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl core::fmt::Debug for Box<dyn Buffer> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}
