//! Updates whose lanes are sent from where the caller has them.
//!
//! [`Worker::push`] copies an update, because it may leave later. Most updates leave at once, and
//! for a large model this copy costs more than all the rest. So a driver may borrow the lanes
//! until the call that pushes them returns:
//!
//! 1. [`Worker::push_lent`] takes the update in.
//! 2. [`Worker::poll_transmit_lent`] writes its datagrams, and all others that are due.
//! 3. [`Worker::keep`] copies what has not left. From then on the update is like any other.
//!
//! In between, `Engine::poll_transmit` passes over the update. A newer update replaces it, as
//! always.

use super::{PushError, Worker};
use alloc::vec::Vec;
use core::ops::Range;
use olaf_engine::{Instant, Transmit};

/// The lanes of an update that was pushed, where its caller has them.
#[derive(Clone, Debug)]
pub struct Lent<'a> {
    sequence: u32,
    parts: &'a [&'a [f32]],
    /// The index of each part's first lane among all lanes.
    starts: Vec<usize>,
}

impl<'a> Lent<'a> {
    pub(super) fn new(sequence: u32, parts: &'a [&'a [f32]]) -> Self {
        let starts = parts.iter().scan(0, |next, part| {
            let start = *next;
            *next += part.len();
            Some(start)
        });
        Self { sequence, parts, starts: starts.collect() }
    }

    /// The update's sequence number.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    pub(super) const fn parts(&self) -> &'a [&'a [f32]] {
        self.parts
    }

    /// Those lanes, in order.
    pub(super) fn lanes(&self, range: Range<usize>) -> impl Iterator<Item = &'a [f32]> + Clone {
        let first = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let parts = self.starts[first..].iter().zip(&self.parts[first..]);
        let end = range.end;
        parts.take_while(move |(start, _)| **start < end).map(move |(start, part)| {
            let within = |at: usize| at.saturating_sub(*start).min(part.len());
            &part[within(range.start)..within(end)]
        })
    }
}

impl Worker {
    /// As [`Worker::push`], but does not copy lanes that can leave at once. The caller sends them
    /// with [`Worker::poll_transmit_lent`], and then calls [`Worker::keep`].
    ///
    /// # Errors
    /// See [`PushError`]; nothing is queued then.
    pub fn push_lent<'a>(
        &mut self,
        now: Instant,
        parts: &'a [&'a [f32]],
        reward: f64,
        weight: f64,
    ) -> Result<Lent<'a>, PushError> {
        let sequence = self.queue(now, parts, (reward, weight), true)?;
        Ok(Lent::new(sequence, parts))
    }

    /// As `Engine::poll_transmit`. It also sends the lent update.
    pub fn poll_transmit_lent(
        &mut self,
        now: Instant,
        lent: &Lent<'_>,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        self.emit(now, Some(lent), buf)
    }

    /// The lanes are the caller's again: copies them if the update has not left.
    pub fn keep(&mut self, lent: &Lent<'_>) {
        self.outbox.keep(lent);
    }
}
