//! What an end does that has a result of an operation which it calls something else.
//!
//! Where the result came after the operation had begun here, the end does not take it, and asks for it again: its question says what it
//! calls the operation. A result that came before is taken already when that turns out. Then the end says so on its own, until the
//! switch has ended the generation.

use super::Reducer;
use crate::collective::Failure;
use crate::collective::path::micros;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::reduce::{Ask, Block, Blocks, Clash, Reason};

const REPEAT: Duration = Duration::from_millis(20);
/// The switch waits 50 ms for other workers. After this time the end leaves the generation by itself.
const LONGEST: Duration = Duration::from_millis(500);

/// A protest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Protest {
    /// A block of the operation.
    block: u32,
    next: Instant,
    until: Instant,
}

impl Reducer {
    /// A result of the other workers' operation contradicts the operation that this end has begun.
    pub(super) fn note_clash(&mut self, at: usize, theirs: &Block) -> bool {
        let Some(generation) = &self.generation else { return false };
        let culprit = generation.open[at].block(theirs.number).called();
        let clash = Some(Clash { culprit, others: theirs.called() });
        core::mem::replace(&mut self.clash, clash) != clash
    }

    /// That result counts as held.
    pub(super) fn protest(&mut self, now: Instant, at: usize, theirs: &Block) {
        self.note_clash(at, theirs);
        let protest = Protest { block: theirs.number, next: now, until: now + LONGEST };
        self.protest.get_or_insert(protest);
    }

    /// When the protest is due; none: there is none.
    pub(super) fn protests_at(&self) -> Option<Instant> {
        let Protest { block, next, until } = self.protest?;
        self.generation.as_ref()?.open_of(block)?;
        Some(next.min(until))
    }

    /// Says once more what this end calls the operation.
    pub(super) fn emit_protest(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        self.protests_at().filter(|at| *at <= now)?;
        let protest = self.protest.as_mut()?;
        protest.next = now + REPEAT;
        let block = protest.block;
        let generation = self.generation.as_ref()?;
        let described = generation.open_of(block)?.block(block);
        let ask = Ask {
            address: generation.address,
            operation: generation.next_operation.saturating_sub(1),
            blocks: Blocks { first: block, mask: 1 },
            holds: generation.blocks.holds().min(block),
            sent_at_us: micros(now),
            awaits: Some((described.operation, described.called())),
        };
        self.counts.asks += 1;
        self.counts.asked_blocks += 1;
        self.await_answer(now);
        Some(ask.emit(buf))
    }

    /// The switch does not answer the protest: the operation fails here, and the generation ends behind it.
    pub(super) fn give_protest_up(&mut self, now: Instant) {
        let Some(Protest { block, .. }) = self.protest.filter(|protest| protest.until <= now)
        else {
            return;
        };
        self.protest = None;
        let Some(generation) = &self.generation else { return };
        let Some(number) = generation.open_of(block).map(|open| open.at.number) else { return };
        let (reason, culprit) = (Reason::Mismatch, Some(generation.rank));
        self.leave_generation(now, number, Failure::Closed { reason, culprit });
    }
}
