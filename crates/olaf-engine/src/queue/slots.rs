//! Slots: fixed storage for entries, with buffers that live as long as the queue.

use crate::lanes;
use crate::lanes::Lanes;
use crate::queue::discipline::{Arrival, Entry, EntryId, Rejection};
use alloc::vec::Vec;
use core::num::NonZeroU64;
use olaf_wire::offsets::LANE;

/// Names a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotId(usize);

/// Says that the lanes of an arrival were added to those of a slot's entry beside both, or copied. The arrival
/// itself uses the result. After anything else that happened to the slots it says nothing.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Which of the [`Prepared`]. A number and a length fit two registers.
    number: NonZeroU64,
    length: f64,
}

/// What lies in the last spare buffer.
#[derive(Debug, Default)]
struct Prepared {
    /// The count of preparations then; 0: the buffer has nothing that can be used.
    number: u64,
    /// Whose sum; none: it is a copy.
    slot: Option<SlotId>,
    /// Where the arrival's lanes are in memory, and how many bytes.
    of: (usize, usize),
}

impl Ready {
    /// The length of the arrival's lanes as a vector: finite.
    #[must_use]
    pub const fn length(&self) -> f64 {
        self.length
    }
}

fn address(lanes: &[u8]) -> (usize, usize) {
    (lanes.as_ptr().addr(), lanes.len())
}

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
    prepared: Prepared,
    preparations: u64,
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
            prepared: Prepared::default(),
            preparations: 0,
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
    pub fn fill(
        &mut self,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
    ) -> Result<Option<SlotId>, Rejection> {
        if self.used() >= self.count {
            // A refusal is the worker's own doing and goes before the queue's: what cannot be
            // summed is rejected, whether or not there was room.
            return if arrival.contribution.has_product() && lanes::all_finite(arrival.lanes) {
                Ok(None)
            } else {
                Err(Rejection::NonFinite)
            };
        }
        let lanes = self.checked_copy(arrival, ready)?;
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
    pub fn replace(
        &mut self,
        slot: SlotId,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
    ) -> Result<u32, Rejection> {
        let lanes = self.checked_copy(arrival, ready)?;
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
    pub fn merge(
        &mut self,
        slot: SlotId,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
    ) -> Result<(), Rejection> {
        let is_ready = self.use_up(ready, Some(slot), arrival);
        let (entry, products, sum) = self.beside(slot);
        merge_into(entry, products, arrival, sum, is_ready)
    }

    /// Adds an arrival's lanes to those of a slot's entry, and keeps the sum beside the entry until
    /// [`merge`](Slots::merge). Nothing where the two have no finite sum.
    #[inline]
    pub fn prepare(&mut self, slot: SlotId, arrival: &Arrival<'_>) -> Option<Ready> {
        self.prepared.number = 0;
        let (entry, _, sum) = self.beside(slot);
        if arrival.lanes.len() != entry.lanes.len() * LANE {
            return None;
        }
        let length = lanes::add_and_length(sum, &entry.lanes, arrival.lanes)?;
        Some(self.ready(Some(slot), arrival, length))
    }

    /// Copies an arrival's lanes, and keeps the copy until [`fill`](Slots::fill) or
    /// [`replace`](Slots::replace). Nothing where they are not finite.
    #[inline]
    pub fn prepare_copy(&mut self, arrival: &Arrival<'_>) -> Option<Ready> {
        self.prepared.number = 0;
        if self.spare.is_empty() {
            self.spare.push(Lanes::default());
        }
        let copy = self.spare.last_mut().expect("one was just put there");
        let length = lanes::copy_and_length(copy, arrival.lanes)?;
        Some(self.ready(None, arrival, length))
    }

    /// Remembers what the last spare buffer has.
    #[inline]
    fn ready(&mut self, slot: Option<SlotId>, arrival: &Arrival<'_>, length: f64) -> Ready {
        let number = NonZeroU64::MIN.saturating_add(self.preparations);
        self.preparations = number.get();
        self.prepared = Prepared { number: number.get(), slot, of: address(arrival.lanes) };
        Ready { number, length }
    }

    /// Returns true if the last spare buffer has what was prepared of that arrival for that slot. From now
    /// on it has nothing that can be used.
    #[inline]
    fn use_up(
        &mut self,
        ready: Option<Ready>,
        slot: Option<SlotId>,
        arrival: &Arrival<'_>,
    ) -> bool {
        let Prepared { slot: of_slot, of, .. } = self.prepared;
        let number = core::mem::take(&mut self.prepared.number);
        ready.is_some_and(|ready| ready.number.get() == number)
            && of_slot == slot
            && of == address(arrival.lanes)
    }

    /// A slot's entry, its sum of products, and the buffer for its next sum.
    #[inline]
    fn beside(&mut self, slot: SlotId) -> (&mut Entry, &mut Option<f64>, &mut Lanes) {
        if self.spare.is_empty() {
            self.spare.push(Lanes::default());
        }
        let entry = self.entries[slot.0].as_mut();
        let entry = entry.expect("a discipline names only slots that it filled");
        let sum = self.spare.last_mut().expect("one was just put there");
        (entry, &mut self.products[slot.0], sum)
    }

    /// Empties a slot.
    pub fn clear(&mut self, slot: SlotId) -> EntryId {
        let entry =
            self.entries[slot.0].take().expect("a discipline names only slots that it filled");
        self.spare.push(entry.lanes);
        self.prepared.number = 0;
        self.free.push(slot);
        entry.id
    }

    fn checked_copy(
        &mut self,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
    ) -> Result<Lanes, Rejection> {
        let is_ready = self.use_up(ready, None, arrival);
        let mut copy = self.spare.pop().unwrap_or_default();
        if arrival.contribution.has_product() && (is_ready || lanes::copy(&mut copy, arrival.lanes))
        {
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
    is_ready: bool,
) -> Result<(), Rejection> {
    if arrival.lanes.len() != entry.lanes.len() * LANE {
        return Err(Rejection::WrongSize);
    }
    let (totals, sum_of_products) =
        entry.contribution.totals_by_products(*products, &arrival.contribution)?;
    if !is_ready && !lanes::add(sum, &entry.lanes, arrival.lanes) {
        return Err(Rejection::NonFinite);
    }
    core::mem::swap(&mut entry.lanes, sum);
    *products = Some(sum_of_products);
    entry.contribution.take_in(&arrival.contribution, totals);
    entry.replaceable = false;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::update;

    #[test]
    fn what_was_prepared_is_not_used_after_something_else_has_happened() {
        let mut slots = Slots::new(1);
        let (one, two, four) =
            (update(0, 1, &[1.0; 16]), update(0, 2, &[2.0; 16]), update(0, 3, &[4.0; 16]));
        let slot = one.arrival(|arrival| slots.fill(arrival, None).unwrap().unwrap());
        let sum = |slots: &Slots| slots.entry(slot).lanes[0];
        four.arrival(|four| {
            let ready = slots.prepare(slot, four);
            assert!(ready.is_some());
            two.arrival(|two| slots.merge(slot, two, None).unwrap());
            slots.merge(slot, four, ready).unwrap();
            assert_eq!(sum(&slots), 7.0, "all three");
            // The same preparation once more, after its use.
            slots.merge(slot, four, ready).unwrap();
            assert_eq!(sum(&slots), 11.0);
            // Of two preparations of one arrival only the newer one counts, and only once.
            let (old, new) = (slots.prepare(slot, four), slots.prepare(slot, four));
            slots.merge(slot, four, new).unwrap();
            slots.merge(slot, four, old).unwrap();
            assert_eq!(sum(&slots), 19.0);
        });
    }
}
