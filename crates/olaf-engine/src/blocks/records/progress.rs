//! The blocks that are over, by generation. A late piece of a block that is over opens no new record.

use alloc::collections::{BTreeSet, VecDeque};

/// Generations that may be open at once.
pub const MAX_GENERATIONS: u16 = 64;

/// Where a block stands that has no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has not begun.
    New,
    /// It is over.
    Over,
    /// It is too far ahead.
    TooFarAhead,
    /// Its generation ends before it.
    Beyond,
}

/// The generations of a term, from the first whose results somebody lacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    first: u16,
    of: VecDeque<Generation>,
    /// Blocks that may be open, or over, ahead of the first one that is not over.
    span: u32,
}

/// How far a generation is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Generation {
    /// All blocks before this one are over,
    below: u32,
    /// and so are these.
    above: BTreeSet<u32>,
    /// One after the newest block that has begun.
    begun: u32,
    /// Its blocks, once the last one has begun.
    blocks: Option<u32>,
}

impl Generation {
    fn is_over(&self, block: u32) -> bool {
        block < self.below || self.above.contains(&block)
    }

    fn is_finished(&self) -> bool {
        self.blocks == Some(self.below)
    }
}

impl Progress {
    pub(super) const fn new(first: u16, span: u32) -> Self {
        Self { first, of: VecDeque::new(), span }
    }

    /// The first generation whose results somebody lacks.
    pub(super) const fn first(&self) -> u16 {
        self.first
    }

    /// How many generations after the first one that is; none: it is before.
    fn ahead(&self, generation: u16) -> Option<u16> {
        let ahead = generation.wrapping_sub(self.first);
        (ahead < 1 << 15).then_some(ahead)
    }

    fn of(&self, generation: u16) -> Option<&Generation> {
        self.of.get(usize::from(self.ahead(generation)?))
    }

    pub(super) fn standing(&self, generation: u16, block: u32) -> Standing {
        match self.ahead(generation) {
            None => return Standing::Over,
            Some(ahead) if ahead >= MAX_GENERATIONS => return Standing::TooFarAhead,
            Some(_) => {}
        }
        let none = Generation::default();
        let known = self.of(generation).unwrap_or(&none);
        if known.is_over(block) {
            Standing::Over
        } else if known.blocks.is_some_and(|blocks| block >= blocks) {
            Standing::Beyond
        } else if block - known.below >= self.span {
            Standing::TooFarAhead
        } else {
            Standing::New
        }
    }

    /// Notes a new block; whether it can be the last one, if it says so.
    pub(super) fn begin(&mut self, generation: u16, block: u32, is_final: bool) -> bool {
        let Some(ahead) = self.ahead(generation) else { return false };
        while self.of.len() <= ahead.into() {
            self.of.push_back(Generation::default());
        }
        let known = &mut self.of[usize::from(ahead)];
        let (has_later, end) = (known.begun > block, block.checked_add(1));
        let Some(end) = end.filter(|_| !(is_final && has_later)) else { return false };
        known.begun = known.begun.max(end);
        if is_final {
            known.blocks = Some(end);
        }
        true
    }

    /// A block is over.
    pub(super) fn end(&mut self, generation: u16, block: u32) {
        let Some(ahead) = self.ahead(generation) else { return };
        let Some(known) = self.of.get_mut(usize::from(ahead)) else { return };
        if !known.is_over(block) {
            known.above.insert(block);
        }
        while known.above.remove(&known.below) {
            known.below += 1;
        }
    }

    /// Returns true if all blocks of a generation are over.
    pub(super) fn is_finished(&self, generation: u16) -> bool {
        self.ahead(generation).is_none() || self.of(generation).is_some_and(Generation::is_finished)
    }

    /// Returns true if a block is over.
    pub(super) fn is_over(&self, generation: u16, block: u32) -> bool {
        self.standing(generation, block) == Standing::Over
    }

    /// The first generation that is not finished.
    pub(super) fn first_unfinished(&self) -> u16 {
        let finished = self.of.iter().take_while(|generation| generation.is_finished()).count();
        self.first.wrapping_add(u16::try_from(finished).unwrap_or(MAX_GENERATIONS))
    }

    /// Forgets the first generation, if it is finished and is before `generation`; its blocks.
    pub(super) fn forget_before(&mut self, generation: u16) -> Option<u32> {
        if generation.wrapping_sub(self.first).wrapping_sub(1) >= 1 << 15 {
            return None;
        }
        let blocks = self.of.front().filter(|first| first.is_finished())?.below;
        self.of.pop_front();
        self.first = self.first.wrapping_add(1);
        Some(blocks)
    }

    /// How many blocks of the first generation have begun.
    pub(super) fn begun_of_first(&self) -> u32 {
        self.of.front().map_or(0, |generation| generation.begun)
    }
}
