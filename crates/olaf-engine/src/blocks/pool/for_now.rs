//! Until cells have every lane type: what the switch asks of a cell, for `f32`. The table of all lane
//! types replaces this file.

use super::{Cell, Pool};
use olaf_wire::offsets::LANE;

impl Cell {
    /// Lanes of the block.
    #[must_use]
    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// Bytes of the lanes as a result carries them.
    #[must_use]
    pub fn result_bytes(&self) -> usize {
        self.lanes.len() * LANE
    }

    /// Writes the lanes as a result carries them.
    pub fn write_result(&self, buf: &mut [u8]) {
        for (bytes, lane) in buf.chunks_exact_mut(LANE).zip(self.lanes.iter()) {
            bytes.copy_from_slice(&lane.to_le_bytes());
        }
    }

    /// The first member whose piece has a lane that is no finite number.
    #[must_use]
    pub const fn not_finite(&self) -> Option<u32> {
        None
    }
}

impl Pool {
    /// Every member holds the results of all blocks below this one.
    #[must_use]
    pub fn min_holds(&self) -> u32 {
        self.holds.iter().copied().min().unwrap_or(0)
    }
}
