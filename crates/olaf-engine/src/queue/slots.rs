//! Slots: fixed storage for entries, with buffers that live as long as the queue.

use crate::lanes;
use crate::lanes::Lanes;
use crate::queue::discipline::{Arrival, Entry, EntryId, Rejection};
use alloc::vec::Vec;
use olaf_wire::offsets::LANE;

/// Names a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotId(usize);

/// So many slots, each empty or holding an [`Entry`].
///
/// Sums are written beside the entry they are of and swapped in when they turn out finite: one
/// pass over the lanes, and a refused contribution leaves no trace.
#[derive(Debug)]
pub struct Slots {
    entries: Vec<Option<Entry>>,
    /// For each slot whose entry is a merge: the sum of its contributions' rewards times weights.
    products: Vec<Option<f64>>,
    free: Vec<SlotId>,
    /// Lane buffers of freed slots, and one more for the sum under way.
    spare: Vec<Lanes>,
    next_id: u64,
    /// Slots that may be filled; `entries` grows up to it as it is needed.
    count: usize,
}

impl Slots {
    /// `count` empty slots.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            entries: Vec::new(),
            products: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            next_id: 0,
            count,
        }
    }

    /// See [`Discipline::share`](crate::queue::discipline::Discipline::share).
    pub fn share(&mut self, count: usize, next: EntryId) {
        self.count = count;
        self.next_id = next.0;
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// How many hold an entry.
    #[must_use]
    pub fn used(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// The entry in a slot.
    #[must_use]
    pub fn entry(&self, slot: SlotId) -> &Entry {
        self.entries[slot.0].as_ref().expect("a discipline names only slots that it filled")
    }

    /// Puts an arrival into a free slot; nothing when there is none.
    ///
    /// # Errors
    /// [`Rejection::NonFinite`].
    pub fn fill(&mut self, arrival: &Arrival<'_>) -> Result<Option<SlotId>, Rejection> {
        if self.used() >= self.count {
            // A refusal is the worker's own doing and goes before the queue's: what cannot be
            // summed is rejected, whether or not there was room.
            return if arrival.contribution.has_product() && lanes::all_finite(arrival.lanes) {
                Ok(None)
            } else {
                Err(Rejection::NonFinite)
            };
        }
        let lanes = self.checked_copy(arrival)?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.products.push(None);
            SlotId(self.entries.len() - 1)
        });
        let id = EntryId(self.next_id);
        self.next_id += 1;
        self.entries[slot.0] = Some(entry(id, arrival, lanes));
        self.products[slot.0] = None;
        Ok(Some(slot))
    }

    /// Puts an arrival in the place of a slot's entry, which keeps its name; returns how many
    /// contributions are gone.
    ///
    /// # Errors
    /// [`Rejection::NonFinite`]; the entry stays as it was.
    pub fn replace(&mut self, slot: SlotId, arrival: &Arrival<'_>) -> Result<u32, Rejection> {
        let lanes = self.checked_copy(arrival)?;
        let id = self.entry(slot).id;
        let replaced = self.entries[slot.0].replace(entry(id, arrival, lanes));
        let replaced = replaced.expect("a discipline names only slots that it filled");
        self.products[slot.0] = None;
        self.spare.push(replaced.lanes);
        Ok(replaced.contribution.contributors)
    }

    /// Adds an arrival to a slot's entry.
    ///
    /// # Errors
    /// Why the two have no sum; the entry stays as it was.
    #[inline]
    pub fn merge(&mut self, slot: SlotId, arrival: &Arrival<'_>) -> Result<(), Rejection> {
        if self.spare.is_empty() {
            self.spare.push(Lanes::default());
        }
        let entry = self.entries[slot.0].as_mut();
        let entry = entry.expect("a discipline names only slots that it filled");
        let sum = self.spare.last_mut().expect("one was just put there");
        merge_into(entry, &mut self.products[slot.0], arrival, sum)
    }

    /// Empties a slot.
    pub fn clear(&mut self, slot: SlotId) -> EntryId {
        let entry =
            self.entries[slot.0].take().expect("a discipline names only slots that it filled");
        self.spare.push(entry.lanes);
        self.free.push(slot);
        entry.id
    }

    fn checked_copy(&mut self, arrival: &Arrival<'_>) -> Result<Lanes, Rejection> {
        let mut copy = self.spare.pop().unwrap_or_default();
        if arrival.contribution.has_product() && lanes::copy(&mut copy, arrival.lanes) {
            Ok(copy)
        } else {
            self.spare.push(copy);
            Err(Rejection::NonFinite)
        }
    }
}

fn entry(id: EntryId, arrival: &Arrival<'_>, lanes: Lanes) -> Entry {
    let contribution = arrival.contribution;
    // What an earlier switch merged holds others' experience too: never replaceable.
    Entry { id, contribution, replaceable: contribution.contributors == 1, lanes }
}

#[inline]
fn merge_into(
    entry: &mut Entry,
    products: &mut Option<f64>,
    arrival: &Arrival<'_>,
    sum: &mut Lanes,
) -> Result<(), Rejection> {
    if arrival.lanes.len() != entry.lanes.len() * LANE {
        return Err(Rejection::WrongSize);
    }
    let (totals, sum_of_products) =
        entry.contribution.totals_by_products(*products, &arrival.contribution)?;
    if !lanes::add(sum, &entry.lanes, arrival.lanes) {
        return Err(Rejection::NonFinite);
    }
    core::mem::swap(&mut entry.lanes, sum);
    *products = Some(sum_of_products);
    entry.contribution.take_in(&arrival.contribution, totals);
    entry.replaceable = false;
    Ok(())
}
