//! Results of operations that this end has not begun yet.

use super::operations::Arrived;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::reduce::BlockResult;

/// Most bytes of lanes that are kept.
const MOST_BYTES: usize = 16 << 20;

/// Results that wait for their operation to begin here.
#[derive(Debug, Default)]
pub(super) struct Early {
    results: BTreeMap<u32, Kept>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Kept {
    header: BlockResult,
    lanes: Vec<u8>,
    missing: Option<u32>,
}

impl Kept {
    pub(super) fn arrived(&self) -> Arrived<'_> {
        Arrived { header: &self.header, lanes: &self.lanes, missing: self.missing }
    }
}

impl Early {
    /// Keeps a result, at most `slots` of them; whether there is room.
    pub(super) fn keep(&mut self, arrived: &Arrived<'_>, slots: u32) -> bool {
        let bytes = self.bytes + arrived.lanes.len();
        if self.results.len() >= slots as usize || bytes > MOST_BYTES {
            return false;
        }
        self.bytes = bytes;
        let Arrived { header, lanes, missing } = *arrived;
        let kept = Kept { header: *header, lanes: lanes.to_vec(), missing };
        self.results.insert(header.block.number, kept);
        true
    }

    /// Keeps a result that was taken out too soon.
    pub(super) fn put_back(&mut self, kept: Kept) {
        self.bytes += kept.lanes.len();
        self.results.insert(kept.header.block.number, kept);
    }

    /// The next result of a block before `end`.
    pub(super) fn take_before(&mut self, end: u32) -> Option<Kept> {
        let first = self.results.first_entry().filter(|first| *first.key() < end)?;
        let kept = first.remove();
        self.bytes -= kept.lanes.len();
        Some(kept)
    }

    pub(super) fn len(&self) -> usize {
        self.results.len()
    }
}
