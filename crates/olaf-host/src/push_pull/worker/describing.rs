//! What the arrays of the model are called: told to a server that asks.

use super::Worker;
use crate::push_pull::layout::{Layout, LayoutError};
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::{LayoutPart, Welcome, layout_parts};

/// A description is sent again at most so often, and at most once in two round trips: each welcome
/// that was on its way meanwhile asks for the same.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What a worker tells of its arrays.
#[derive(Debug, Default)]
pub(super) struct Description {
    text: Vec<u8>,
    /// Parts to send now, from which on; all to the last.
    next: Option<u32>,
    not_before: Option<Instant>,
}

impl Worker {
    /// Names the arrays of a model with `parameters` parameters for the server. The text is JSON of
    /// the form `[{"name": "w", "shape": [2, 3]}, ..]`, in the order of the parts that
    /// [`join`](Worker::join) gets. Call it before `join`.
    ///
    /// # Errors
    /// What is wrong with the text; the server then gets no description.
    pub fn describe(&mut self, text: &str, parameters: u32) -> Result<(), LayoutError> {
        Layout::parse(text.as_bytes(), parameters)?;
        self.description = Description { text: text.as_bytes().into(), ..Description::default() };
        Ok(())
    }

    /// The server's welcome says which part it lacks.
    pub(super) fn asked_for_layout(&mut self, now: Instant, welcome: &Welcome) {
        let description = &mut self.description;
        let there_is = welcome.layout_missing < layout_parts(description.text.len());
        if !there_is || description.not_before.is_some_and(|at| now < at) {
            return;
        }
        let round_trip = Duration::from_nanos(now.0.saturating_sub(welcome.echoed_sent_at_ns));
        description.next = Some(welcome.layout_missing);
        description.not_before = Some(now + (round_trip * 2).clamp(AGAIN_AFTER, AGAIN_AFTER * 100));
    }

    pub(super) fn emit_layout(&mut self, buf: &mut [u8]) -> Option<usize> {
        let part = self.description.next?;
        let layout = LayoutPart::of(&self.description.text, self.config.address, part);
        self.description.next = layout.is_some().then(|| part + 1);
        layout.map(|layout| layout.emit(buf))
    }
}
