//! The OLAF queue (OLAF §4, Algorithm 1): updates of one cluster replace or join each other while
//! they wait.
//!
//! At most one *open* update per flow waits; the one on the wire is locked, and while it is, its
//! flow may hold one more.

#[cfg(any(test, feature = "reference"))]
pub mod reference;
#[cfg(test)]
mod tests;

use crate::ids::Flow;
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, GivenUp, Outcome, Rejection};
use crate::queue::fifo::Fifo;
use crate::queue::slots::{Ready, SlotId, Slots};
use crate::table::{Hint, Table};
use alloc::vec::Vec;

/// How far a reward may be from the waiting one's to merge (OLAF §3); `None` merges whatever the
/// reward.
pub type Gate = Option<f64>;

/// What the reward gate says to an arrival for an open entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gated {
    /// Within the threshold: the two are merged.
    Merge,
    /// Above it: the arrival takes the entry's place.
    Replace,
    /// Below it: the arrival is filtered.
    Filter,
}

/// The reward gate (OLAF §3): a difference of exactly the threshold is still comparable.
#[must_use]
pub fn gate(gate: Gate, waiting_reward: f64, reward: f64) -> Gated {
    match gate {
        Some(threshold) if reward - waiting_reward > threshold => Gated::Replace,
        Some(threshold) if waiting_reward - reward > threshold => Gated::Filter,
        _ => Gated::Merge,
    }
}

/// The queue.
#[derive(Debug)]
pub struct Merging {
    gate: Gate,
    /// The waiting entries in their order, as without merging: an entry that merges keeps its
    /// place.
    line: Fifo,
    /// The waiting slot of each flow.
    open: Table<Flow, SlotId>,
}

impl Merging {
    /// An empty queue of `slots` segments, the one on the wire included.
    #[must_use]
    pub fn new(slots: usize, gate: Gate) -> Self {
        Self { gate, line: Fifo::new(slots), open: Table::new() }
    }
}

/// Returns true if the waiting entry is an unmerged update of the arrival's worker.
#[inline]
fn is_newer(waiting: &Entry, arrival: &Arrival<'_>) -> bool {
    waiting.replaceable
        && arrival.contribution.contributors == 1
        && waiting.contribution.worker == arrival.contribution.worker
}

/// Where an arrival meets the open entry of its flow: replaced, merged, filtered or turned away. Every
/// queue that merges does it here.
#[inline]
pub(crate) fn meet(
    slots: &mut Slots,
    slot: SlotId,
    gate: Gate,
    arrival: &Arrival<'_>,
    ready: Option<Ready>,
) -> Outcome {
    let waiting = slots.entry(slot);
    let id = waiting.id;
    // Algorithm 1, line 8: the newer update of the same worker subsumes the older one.
    let gated = if is_newer(waiting, arrival) {
        Gated::Replace
    } else {
        self::gate(gate, waiting.contribution.reward, arrival.contribution.reward)
    };
    let result = match gated {
        _ if !arrival.contribution.has_product() => Err(Rejection::NonFinite),
        Gated::Merge => slots.merge(slot, arrival, ready).map(|()| Outcome::Merged(id)),
        Gated::Replace => slots
            .replace(slot, arrival, ready)
            .map(|displaced| Outcome::Replaced { entry: id, displaced }),
        Gated::Filter if crate::lanes::all_finite(arrival.lanes) => Ok(Outcome::Filtered(id)),
        Gated::Filter => Err(Rejection::NonFinite),
    };
    result.unwrap_or_else(Outcome::Rejected)
}

impl Discipline for Merging {
    fn prepare(&mut self, arrival: &Arrival<'_>, hint: &mut Hint) -> Option<Ready> {
        let slots = &mut self.line.slots;
        match self.open.at(&arrival.contribution.flow, hint) {
            Some(slot) if !is_newer(slots.entry(*slot), arrival) => slots.prepare(*slot, arrival),
            _ => slots.prepare_copy(arrival),
        }
    }

    fn meet(
        &mut self,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
        hint: &mut Hint,
    ) -> Option<Outcome> {
        let slot = *self.open.at(&arrival.contribution.flow, hint)?;
        Some(meet(&mut self.line.slots, slot, self.gate, arrival, ready))
    }

    fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome {
        if let Some(outcome) = self.meet(arrival, None, &mut Hint::default()) {
            return outcome;
        }
        self.join(arrival, None)
    }

    fn join(&mut self, arrival: &Arrival<'_>, ready: Option<Ready>) -> Outcome {
        let outcome = self.line.join(arrival, ready);
        if let (Outcome::Appended(_), Some(slot)) = (outcome, self.line.order.back()) {
            self.open.insert(arrival.contribution.flow, *slot);
        }
        outcome
    }

    fn begin_departure(&mut self) -> Option<&Entry> {
        let leaving = self.line.begin_departure()?;
        // OLAF §12.1: scheduled for departure, the head takes nothing in any more.
        self.open.remove(&leaving.contribution.flow);
        Some(leaving)
    }

    fn departing(&self) -> Option<&Entry> {
        self.line.departing()
    }

    fn end_departure(&mut self) -> Option<EntryId> {
        self.line.end_departure()
    }

    fn choose(&mut self) -> Option<&Entry> {
        self.line.choose()
    }

    fn share(&mut self, slots: usize, next: EntryId) {
        self.line.share(slots, next);
    }

    fn give_up(&mut self) -> Option<GivenUp> {
        let gone = self.line.give_up()?;
        self.open.remove(&gone.flow);
        Some(gone)
    }

    fn slots(&self) -> usize {
        self.line.slots()
    }

    fn used(&self) -> usize {
        self.line.used()
    }

    fn entries(&self) -> Vec<&Entry> {
        self.line.entries()
    }
}
