//! Results of operations that this end has not begun yet: the other workers went on without it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use olaf_wire::trio::Block;

/// Most bytes of gradients that are kept.
const MOST_BYTES: usize = 64 << 20;

/// Results that wait for their operation to begin here.
#[derive(Debug, Default)]
pub(super) struct Early {
    results: BTreeMap<(u16, u32), (Block, Vec<u8>)>,
    bytes: usize,
}

impl Early {
    /// Keeps a result; whether there is room. The switch keeps what there is no room for.
    pub(super) fn keep(&mut self, block: &Block, gradients: &[u8]) -> bool {
        let place = (block.generation, block.block);
        if self.results.contains_key(&place) || self.bytes + gradients.len() > MOST_BYTES {
            return false;
        }
        self.bytes += gradients.len();
        self.results.insert(place, (*block, gradients.to_vec()));
        true
    }

    /// A result of that generation.
    pub(super) fn take(&mut self, generation: u16) -> Option<(Block, Vec<u8>)> {
        let place = *self.results.range((generation, 0)..=(generation, u32::MAX)).next()?.0;
        let kept = self.results.remove(&place)?;
        self.bytes -= kept.1.len();
        Some(kept)
    }

    pub(super) fn len(&self) -> usize {
        self.results.len()
    }
}
