//! The queue for age: slots, merging, replacing and locking as in [`olaf`](crate::queue::merging);
//! what leaves next is what makes the models at the servers younger by most (`docs/design/006`).
//!
//! OLAF sends in the order in which slots were taken. Here each departure goes to the flow whose
//! waiting content is newest *relative to what its server has*: with content that is equally fresh
//! everywhere, the flow of the greatest age. A full queue gives the slot of the entry that would
//! help least to an arrival that helps more.

#[cfg(any(test, feature = "reference"))]
pub mod reference;
mod served;
#[cfg(test)]
mod tests;

use crate::contribution::Contribution;
use crate::ids::Flow;
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, GivenUp, Outcome};
use crate::queue::merging::{Gate, meet};
use crate::queue::slots::{SlotId, Slots};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;
use served::Served;

/// What keeps the queue's memory, and any update's wait, bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows remembered after their departure, at about 80 bytes each. Beyond, the one that was
    /// served longest ago is forgotten, and counts as never served when it comes again.
    pub remembered: usize,
    /// Departures that an entry may have to let pass. Then it is next: the first such after those
    /// of the model under way. Without it, a worker that awaits its answer before it sends again
    /// could wait for ever beside clusters that always have greater news.
    pub patience: u64,
    /// After this number of arrivals in a row, none of them newer than the flow's last departure,
    /// the flow counts as never served: its worker's clock was ahead and has been corrected, or its
    /// server restarted with a new clock.
    pub disbelief: u32,
}

impl Limits {
    /// The limits of a queue with `slots` slots.
    #[must_use]
    pub const fn of(slots: usize) -> Self {
        Self { remembered: 1 << 16, patience: 8 * slots as u64, disbelief: 16 }
    }
}

/// How much a departure helps; the greater goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gain(u64);

impl Gain {
    /// Of a flow whose server has nothing yet.
    const FIRST: Self = Self(u64::MAX);

    /// By how much the age drops, squared, over the link's time for the whole model. The square is
    /// what makes a model that takes four times as long go down half as often, which is best for
    /// the average; among models of one size it orders like the drop itself.
    fn of(contribution: &Contribution, served: &Served) -> Self {
        let Some(departed_ns) = served.newest_ns(contribution.flow) else { return Self::FIRST };
        let drop_ns = contribution.generated_ns.1.saturating_sub(departed_ns) as f64;
        let cost = f64::from(contribution.bytes.max(1)) * f64::from(contribution.segments.max(1));
        // Of numbers from 0 up the bits order as the numbers do.
        Self((drop_ns * drop_ns / cost).to_bits())
    }
}

/// A waiting entry's place.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: SlotId,
    gain: Gain,
    /// Departures when it took its slot.
    joined: u64,
}

/// The queue.
#[derive(Debug)]
pub struct Freshest {
    gate: Gate,
    limits: Limits,
    slots: Slots,
    /// The waiting entry of each flow.
    open: BTreeMap<Flow, EntryId>,
    /// Waiting entries in the order in which they took their slots.
    waiting: BTreeMap<EntryId, Place>,
    /// The same by gain; of equals the one that waits longer is the greater.
    by_gain: BTreeSet<(Gain, Reverse<EntryId>)>,
    served: Served,
    departing: Option<SlotId>,
    /// The entry whose departure is certain already. Nothing else goes before, and nothing evicts it.
    chosen: Option<EntryId>,
    /// The flow that left last: segments of its cluster above it follow first.
    under_way: Option<Flow>,
    departures: u64,
}

impl Freshest {
    /// An empty queue of `slots` segments, the one on the wire included.
    #[must_use]
    pub fn new(slots: usize, gate: Gate) -> Self {
        Self::with_limits(slots, gate, Limits::of(slots))
    }

    /// The same with limits of one's own.
    #[must_use]
    pub fn with_limits(slots: usize, gate: Gate, limits: Limits) -> Self {
        Self {
            gate,
            limits,
            slots: Slots::new(slots),
            open: BTreeMap::new(),
            waiting: BTreeMap::new(),
            by_gain: BTreeSet::new(),
            served: Served::new(limits.remembered, limits.disbelief),
            departing: None,
            chosen: None,
            under_way: None,
            departures: 0,
        }
    }

    /// An arrival without an open entry: it waits, in another's slot if need be.
    fn join(&mut self, arrival: &Arrival<'_>) -> Outcome {
        match self.slots.fill(arrival, None) {
            Ok(Some(slot)) => Outcome::Appended(self.place(slot)),
            Ok(None) => self.evict_for(arrival),
            Err(rejection) => Outcome::Rejected(rejection),
        }
    }

    fn evict_for(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let own = Gain::of(&arrival.contribution, &self.served);
        let least = match self.least() {
            // Of equals the one that waits stays: an exchange would only lose what merged.
            Some((gain, least)) if gain < own => least,
            _ => return Outcome::Dropped,
        };
        let slot = self.unplace(least);
        let Contribution { flow, contributors: dropped, .. } = self.slots.entry(slot).contribution;
        self.slots.clear(slot);
        match self.slots.fill(arrival, None) {
            Ok(Some(slot)) => {
                Outcome::Evicted { entry: self.place(slot), evicted: least, flow, dropped }
            }
            _ => unreachable!("its lanes are finite, and a slot was just freed"),
        }
    }

    fn place(&mut self, slot: SlotId) -> EntryId {
        let entry = self.slots.entry(slot);
        let (id, gain) = (entry.id, Gain::of(&entry.contribution, &self.served));
        self.open.insert(entry.contribution.flow, id);
        self.waiting.insert(id, Place { slot, gain, joined: self.departures });
        self.by_gain.insert((gain, Reverse(id)));
        id
    }

    fn unplace(&mut self, id: EntryId) -> SlotId {
        let place = self.waiting.remove(&id).expect("it is named because it waits");
        self.chosen = self.chosen.filter(|chosen| *chosen != id);
        self.by_gain.remove(&(place.gain, Reverse(id)));
        self.open.remove(&self.slots.entry(place.slot).contribution.flow);
        place.slot
    }

    /// Looks again at what the departure of a flow's open entry, if it has one, would bring.
    fn weigh(&mut self, flow: Flow) {
        let Some(id) = self.open.get(&flow).copied() else { return };
        let place = self.waiting.get_mut(&id).expect("it is named because it waits");
        let gain = Gain::of(&self.slots.entry(place.slot).contribution, &self.served);
        if gain == place.gain {
            return;
        }
        self.by_gain.remove(&(place.gain, Reverse(id)));
        self.by_gain.insert((gain, Reverse(id)));
        place.gain = gain;
    }

    /// The entry that would be missed least, and its gain.
    fn least(&self) -> Option<(Gain, EntryId)> {
        let may_go = |(_, Reverse(id)): &&(Gain, Reverse<EntryId>)| Some(*id) != self.chosen;
        self.by_gain.iter().find(may_go).map(|(gain, Reverse(id))| (*gain, *id))
    }

    /// Whose turn it is.
    fn next(&self) -> Option<EntryId> {
        if self.chosen.is_some() {
            return self.chosen;
        }
        let above = |flow: Flow| Some(Flow { segment: flow.segment.checked_add(1)?, ..flow });
        if let Some(from) = self.under_way.and_then(above)
            && let Some(following) = self.first_of_cluster(from)
        {
            return Some(following);
        }
        let (oldest, place) = self.waiting.first_key_value()?;
        let chosen = if self.departures - place.joined >= self.limits.patience {
            *oldest
        } else {
            self.by_gain.last().expect("as many as wait").1.0
        };
        let flow = self.slots.entry(self.waiting[&chosen].slot).contribution.flow;
        self.first_of_cluster(Flow { segment: 0, ..flow })
    }

    /// The lowest waiting segment of a cluster, from `from` up.
    fn first_of_cluster(&self, from: Flow) -> Option<EntryId> {
        let to = Flow { segment: u32::MAX, ..from };
        self.open.range(from..=to).next().map(|(_, id)| *id)
    }
}

impl Discipline for Freshest {
    fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let Contribution { flow, generated_ns: (_, newest_ns), .. } = arrival.contribution;
        let open = self.open.get(&flow).map(|id| self.waiting[id].slot);
        let outcome = match open {
            Some(slot) => meet(&mut self.slots, slot, self.gate, arrival, None),
            None => self.join(arrival),
        };
        if !matches!(outcome, Outcome::Rejected(_)) {
            let disbelieved = self.served.hears(flow, newest_ns);
            if disbelieved || open.is_some() {
                self.weigh(flow);
            }
        }
        outcome
    }

    fn begin_departure(&mut self) -> Option<&Entry> {
        if self.departing.is_some() {
            return None;
        }
        let slot = self.unplace(self.next()?);
        self.departing = Some(slot);
        let Contribution { flow, generated_ns: (_, newest_ns), .. } =
            self.slots.entry(slot).contribution;
        self.under_way = Some(flow);
        self.departures += 1;
        if let Some(forgotten) = self.served.departs(flow, newest_ns) {
            self.weigh(forgotten);
        }
        self.departing()
    }

    fn departing(&self) -> Option<&Entry> {
        self.departing.map(|slot| self.slots.entry(slot))
    }

    fn end_departure(&mut self) -> Option<EntryId> {
        self.departing.take().map(|slot| self.slots.clear(slot))
    }

    fn choose(&mut self) -> Option<&Entry> {
        self.chosen = self.next();
        let slot = self.waiting.get(&self.chosen?)?.slot;
        Some(self.slots.entry(slot))
    }

    fn share(&mut self, slots: usize, next: EntryId) {
        self.slots.share(slots, next);
    }

    fn give_up(&mut self) -> Option<GivenUp> {
        let (_, least) = self.least()?;
        let slot = self.unplace(least);
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
        let next = self.next();
        let others = self.by_gain.iter().rev().map(|(_, Reverse(id))| *id);
        let waiting = next.into_iter().chain(others.filter(|id| Some(*id) != next));
        let slots = self.departing.into_iter().chain(waiting.map(|id| self.waiting[&id].slot));
        slots.map(|slot| self.slots.entry(slot)).collect()
    }
}
