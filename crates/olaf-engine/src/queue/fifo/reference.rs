//! The slow, obvious reference model of [`Fifo`](super::Fifo): a list, its front on the wire.

use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, GivenUp, Outcome, Rejection};
use crate::queue::merging::reference::{finite, fresh, product};
use alloc::vec::Vec;

/// The queue.
#[derive(Debug)]
pub struct Reference {
    slots: usize,
    /// Every entry; the first is the locked one while `locked`.
    entries: Vec<Entry>,
    locked: bool,
    next_id: u64,
}

impl Reference {
    /// An empty queue of `slots` segments, the one on the wire included.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self { slots, entries: Vec::new(), locked: false, next_id: 0 }
    }
}

impl Discipline for Reference {
    fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let lanes = finite(arrival).filter(|_| product(&arrival.contribution).is_finite());
        let Some(lanes) = lanes else {
            return Outcome::Rejected(Rejection::NonFinite);
        };
        if self.entries.len() == self.slots {
            return Outcome::Dropped;
        }
        let id = EntryId(self.next_id);
        self.next_id += 1;
        self.entries.push(fresh(id, arrival, lanes));
        Outcome::Appended(id)
    }

    fn begin_departure(&mut self) -> Option<&Entry> {
        if self.locked || self.entries.is_empty() {
            return None;
        }
        self.locked = true;
        self.entries.first()
    }

    fn departing(&self) -> Option<&Entry> {
        if self.locked { self.entries.first() } else { None }
    }

    fn end_departure(&mut self) -> Option<EntryId> {
        if !self.locked {
            return None;
        }
        self.locked = false;
        Some(self.entries.remove(0).id)
    }

    fn choose(&mut self) -> Option<&Entry> {
        self.entries.get(usize::from(self.locked))
    }

    fn share(&mut self, slots: usize, next: EntryId) {
        (self.slots, self.next_id) = (slots, next.0);
    }

    fn give_up(&mut self) -> Option<GivenUp> {
        let waits = self.entries.len() > usize::from(self.locked);
        waits.then(|| GivenUp::from(&self.entries.pop().expect("one waits")))
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn used(&self) -> usize {
        self.entries.len()
    }

    fn entries(&self) -> Vec<&Entry> {
        self.entries.iter().collect()
    }
}
