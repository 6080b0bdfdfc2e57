//! The slow, obvious reference model of [`Merging`](super::Merging): one list, searched from the front, every sum in
//! a plain loop. It is written from the settled rules and shares no code with what it checks.

use crate::contribution::Contribution;
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, GivenUp, Outcome, Rejection};
use crate::queue::merging::Gate;
use alloc::vec::Vec;

/// The queue.
#[derive(Debug)]
pub struct Reference {
    gate: Gate,
    slots: usize,
    /// Every entry; the first is the locked one while `locked`.
    entries: Vec<Entry>,
    locked: bool,
    next_id: u64,
}

impl Reference {
    /// An empty queue of `slots` segments, the one on the wire included.
    #[must_use]
    pub fn new(slots: usize, gate: Gate) -> Self {
        Self { gate, slots, entries: Vec::new(), locked: false, next_id: 0 }
    }
}

/// Rules 2 and 4: where the open entry `entries[at]` and the arrival meet.
pub(crate) fn meet(entries: &mut [Entry], at: usize, gate: Gate, arrival: &Arrival<'_>) -> Outcome {
    let open = &entries[at];
    let id = open.id;
    let newer_of_the_same = open.replaceable
        && arrival.contribution.contributors == 1
        && arrival.contribution.worker == open.contribution.worker;
    if newer_of_the_same {
        return replace(&mut entries[at], arrival);
    }
    if let Some(threshold) = gate {
        let better_by = arrival.contribution.reward - open.contribution.reward;
        if better_by > threshold {
            return replace(&mut entries[at], arrival);
        }
        if better_by < -threshold {
            return match finite(arrival) {
                Some(_) => Outcome::Filtered(id),
                None => Outcome::Rejected(Rejection::NonFinite),
            };
        }
    }
    match merged(open, arrival) {
        Ok(merged) => {
            entries[at] = merged;
            Outcome::Merged(id)
        }
        Err(rejection) => Outcome::Rejected(rejection),
    }
}

fn replace(open: &mut Entry, arrival: &Arrival<'_>) -> Outcome {
    let Some(lanes) = finite(arrival) else {
        return Outcome::Rejected(Rejection::NonFinite);
    };
    let (id, displaced) = (open.id, open.contribution.contributors);
    *open = fresh(id, arrival, lanes);
    Outcome::Replaced { entry: id, displaced }
}

impl Discipline for Reference {
    fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome {
        if !product(&arrival.contribution).is_finite() {
            return Outcome::Rejected(Rejection::NonFinite);
        }
        let first_open = usize::from(self.locked);
        for at in first_open..self.entries.len() {
            if self.entries[at].contribution.flow == arrival.contribution.flow {
                return meet(&mut self.entries, at, self.gate, arrival);
            }
        }
        let Some(lanes) = finite(arrival) else {
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

/// What a contribution adds to its sum of rewards.
pub(crate) fn product(contribution: &Contribution) -> f64 {
    contribution.reward * contribution.weight
}

/// An entry that holds one arrival.
pub(crate) fn fresh(id: EntryId, arrival: &Arrival<'_>, lanes: Vec<f32>) -> Entry {
    Entry {
        id,
        contribution: arrival.contribution,
        replaceable: arrival.contribution.contributors == 1,
        lanes: lanes.as_slice().into(),
    }
}

/// The arrival's lanes, if all of them are finite.
pub(crate) fn finite(arrival: &Arrival<'_>) -> Option<Vec<f32>> {
    let mut lanes = Vec::new();
    for bytes in arrival.lanes.chunks(4) {
        let lane = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if !lane.is_finite() {
            return None;
        }
        lanes.push(lane);
    }
    Some(lanes)
}

fn merged(entry: &Entry, arrival: &Arrival<'_>) -> Result<Entry, Rejection> {
    if arrival.lanes.len() != 4 * entry.lanes.len() {
        return Err(Rejection::WrongSize);
    }
    let (open, new) = (&entry.contribution, &arrival.contribution);
    let contributors = u64::from(open.contributors) + u64::from(new.contributors);
    let contributors = u32::try_from(contributors).map_err(|_| Rejection::Overflow)?;
    let weight = open.weight + new.weight;
    let products = product(open) + product(new);
    if weight.is_infinite() || products.is_infinite() {
        return Err(Rejection::Overflow);
    }
    let more = finite(arrival).ok_or(Rejection::NonFinite)?;
    let mut lanes = Vec::new();
    for (a, b) in entry.lanes.iter().zip(&more) {
        if !(a + b).is_finite() {
            return Err(Rejection::NonFinite);
        }
        lanes.push(a + b);
    }
    let contribution = Contribution {
        contributors,
        weight,
        reward: open.reward * (open.weight / weight) + new.reward * (new.weight / weight),
        generated_ns: (
            open.generated_ns.0.min(new.generated_ns.0),
            open.generated_ns.1.max(new.generated_ns.1),
        ),
        versions: (open.versions.0.min(new.versions.0), open.versions.1.max(new.versions.1)),
        hops: open.hops.max(new.hops),
        bytes: open.bytes.max(new.bytes),
        ..*open
    };
    Ok(Entry { id: entry.id, contribution, replaceable: false, lanes: lanes.as_slice().into() })
}
