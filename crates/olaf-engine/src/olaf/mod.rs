//! The OLAF queue (OLAF §4, Algorithm 1): updates of one cluster replace or join each other while
//! they wait.
//!
//! At most one *open* update per flow waits; the one on the wire is locked, and while it is, its
//! flow may hold one more.

#[cfg(any(test, feature = "reference"))]
pub mod reference;
#[cfg(test)]
mod tests;

use crate::discipline::{Arrival, Discipline, Entry, EntryId, Outcome};
use crate::ids::Flow;
use crate::slots::{SlotId, Slots};
use alloc::collections::{BTreeMap, VecDeque};
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
pub struct Olaf {
    gate: Gate,
    slots: Slots,
    /// Waiting slots in departure order, the open ones all.
    order: VecDeque<SlotId>,
    open: BTreeMap<Flow, SlotId>,
    departing: Option<SlotId>,
}

impl Olaf {
    /// An empty queue of `slots` segments, the one on the wire included.
    #[must_use]
    pub fn new(slots: usize, gate: Gate) -> Self {
        Self {
            gate,
            slots: Slots::new(slots),
            order: VecDeque::with_capacity(slots),
            open: BTreeMap::new(),
            departing: None,
        }
    }

    fn meet(&mut self, slot: SlotId, arrival: &Arrival<'_>) -> Outcome {
        let waiting = self.slots.entry(slot);
        let id = waiting.id;
        // Algorithm 1, line 8: the newer update of the same worker subsumes the older one.
        let same_worker =
            waiting.replaceable && arrival.contributors == 1 && waiting.worker == arrival.worker;
        let gated = if same_worker {
            Gated::Replace
        } else {
            gate(self.gate, waiting.reward, arrival.reward)
        };
        let result = match gated {
            _ if !arrival.reward.is_finite() => Err(crate::Rejection::NonFinite),
            Gated::Merge => self.slots.merge(slot, arrival).map(|()| Outcome::Merged(id)),
            Gated::Replace => self
                .slots
                .replace(slot, arrival)
                .map(|displaced| Outcome::Replaced { entry: id, displaced }),
            Gated::Filter if crate::lanes::all_finite(arrival.lanes) => Ok(Outcome::Filtered(id)),
            Gated::Filter => Err(crate::Rejection::NonFinite),
        };
        result.unwrap_or_else(Outcome::Rejected)
    }
}

impl Discipline for Olaf {
    fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome {
        if let Some(slot) = self.open.get(&arrival.flow).copied() {
            return self.meet(slot, arrival);
        }
        match self.slots.fill(arrival) {
            Ok(Some(slot)) => {
                self.order.push_back(slot);
                self.open.insert(arrival.flow, slot);
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
        let slot = self.order.pop_front()?;
        // OLAF §12.1: scheduled for departure, the head takes nothing in any more.
        self.open.remove(&self.slots.entry(slot).flow);
        self.departing = Some(slot);
        self.departing()
    }

    fn departing(&self) -> Option<&Entry> {
        self.departing.map(|slot| self.slots.entry(slot))
    }

    fn end_departure(&mut self) -> Option<EntryId> {
        self.departing.take().map(|slot| self.slots.clear(slot))
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
