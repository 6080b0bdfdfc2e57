//! First in, first out: what a switch does that does not merge. The same slots as OLAF's.

#[cfg(any(test, feature = "reference"))]
pub mod reference;
#[cfg(test)]
mod tests;

use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, GivenUp, Outcome};
use crate::queue::slots::{Ready, SlotId, Slots};
use crate::table::Hint;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The queue.
#[derive(Debug)]
pub struct Fifo {
    pub(crate) slots: Slots,
    /// Waiting slots in departure order.
    pub(crate) order: VecDeque<SlotId>,
    departing: Option<SlotId>,
}

impl Fifo {
    /// An empty queue of `slots` segments, the one on the wire included.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self { slots: Slots::new(slots), order: VecDeque::with_capacity(slots), departing: None }
    }
}

impl Discipline for Fifo {
    fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome {
        self.join(arrival, None)
    }

    fn prepare(&mut self, arrival: &Arrival<'_>, _: &mut Hint) -> Option<Ready> {
        self.slots.prepare_copy(arrival)
    }

    fn join(&mut self, arrival: &Arrival<'_>, ready: Option<Ready>) -> Outcome {
        match self.slots.fill(arrival, ready) {
            Ok(Some(slot)) => {
                self.order.push_back(slot);
                Outcome::Appended(self.slots.entry(slot).id)
            }
            Ok(None) => Outcome::Dropped,
            Err(rejection) => Outcome::Rejected(rejection),
        }
    }

    fn begin_departure(&mut self) -> Option<&Entry> {
        if self.departing.is_some() {
            return None;
        }
        self.departing = Some(self.order.pop_front()?);
        self.departing()
    }

    fn departing(&self) -> Option<&Entry> {
        self.departing.map(|slot| self.slots.entry(slot))
    }

    fn end_departure(&mut self) -> Option<EntryId> {
        self.departing.take().map(|slot| self.slots.clear(slot))
    }

    fn choose(&mut self) -> Option<&Entry> {
        // The front does not change: nothing overtakes it.
        self.order.front().map(|slot| self.slots.entry(*slot))
    }

    fn share(&mut self, slots: usize, next: EntryId) {
        self.slots.share(slots, next);
    }

    fn give_up(&mut self) -> Option<GivenUp> {
        let slot = self.order.pop_back()?;
        let gone = GivenUp::from(self.slots.entry(slot));
        self.slots.clear(slot);
        Some(gone)
    }

    fn slots(&self) -> usize {
        self.slots.count()
    }

    fn used(&self) -> usize {
        self.slots.used()
    }

    fn entries(&self) -> Vec<&Entry> {
        self.departing.iter().chain(&self.order).map(|slot| self.slots.entry(*slot)).collect()
    }
}
