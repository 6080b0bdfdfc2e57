//! The slow, obvious reference model of [`Freshest`](super::Freshest): a list of entries, looked through
//! from end to end for every decision.

use super::Limits;
use crate::contribution::Contribution;
use crate::ids::Flow;
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, GivenUp, Outcome, Rejection};
use crate::queue::merging::Gate;
use crate::queue::merging::reference::{finite, fresh, meet, product};
use alloc::vec::Vec;

/// The queue.
#[derive(Debug)]
pub struct Reference {
    gate: Gate,
    limits: Limits,
    slots: usize,
    locked: Option<Entry>,
    /// What waits, in the order in which it came, and departures up to then.
    waiting: Vec<Entry>,
    joined: Vec<u64>,
    /// Flows, the newest generation time that left, and arrivals in a row that were no newer; the
    /// flow that left last is the last.
    served: Vec<(Flow, u64, u32)>,
    sent_last: Option<Flow>,
    /// The entry that was promised to be next.
    chosen: Option<EntryId>,
    departures: u64,
    next_id: u64,
}

impl Reference {
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
            slots,
            locked: None,
            waiting: Vec::new(),
            joined: Vec::new(),
            served: Vec::new(),
            sent_last: None,
            chosen: None,
            departures: 0,
            next_id: 0,
        }
    }

    /// What a departure is worth: infinite for a flow whose server has nothing.
    fn worth(&self, sum: &Contribution) -> f64 {
        let Some(served) = self.served.iter().find(|served| served.0 == sum.flow) else {
            return f64::INFINITY;
        };
        let newest_ns = sum.generated_ns.1;
        if newest_ns <= served.1 {
            return 0.0;
        }
        let drop_ns = (newest_ns - served.1) as f64;
        drop_ns * drop_ns / (f64::from(sum.bytes.max(1)) * f64::from(sum.segments.max(1)))
    }

    fn worth_of(&self, entry: &Entry) -> f64 {
        self.worth(&entry.contribution)
    }

    fn append(&mut self, arrival: &Arrival<'_>, lanes: Vec<f32>) -> EntryId {
        let id = EntryId(self.next_id);
        self.next_id += 1;
        self.waiting.push(fresh(id, arrival, lanes));
        self.joined.push(self.departures);
        id
    }

    fn place(&mut self, arrival: &Arrival<'_>) -> Outcome {
        let Some(lanes) = finite(arrival).filter(|_| product(&arrival.contribution).is_finite())
        else {
            return Outcome::Rejected(Rejection::NonFinite);
        };
        if self.used() < self.slots {
            return Outcome::Appended(self.append(arrival, lanes));
        }
        let own = self.worth(&arrival.contribution);
        match self.least() {
            Some(at) if self.worth_of(&self.waiting[at]) < own => {
                let gone = self.waiting.remove(at);
                self.joined.remove(at);
                let entry = self.append(arrival, lanes);
                let Contribution { flow, contributors: dropped, .. } = gone.contribution;
                let evicted = gone.id;
                Outcome::Evicted { entry, evicted, flow, dropped }
            }
            _ => Outcome::Dropped,
        }
    }

    /// The least worth; of equals the one that came last.
    fn least(&self) -> Option<usize> {
        let mut least: Option<usize> = None;
        for at in 0..self.waiting.len() {
            if Some(self.waiting[at].id) == self.chosen {
                continue;
            }
            let worth = self.worth_of(&self.waiting[at]);
            if least.is_none_or(|least| worth <= self.worth_of(&self.waiting[least])) {
                least = Some(at);
            }
        }
        least
    }

    fn next(&self) -> Option<usize> {
        let chosen = self.waiting.iter().position(|entry| Some(entry.id) == self.chosen);
        if chosen.is_some() {
            return chosen;
        }
        if let Some(last) = self.sent_last {
            let above = |flow: Flow| {
                (flow.job, flow.cluster) == (last.job, last.cluster) && flow.segment > last.segment
            };
            let mut following: Option<usize> = None;
            for at in 0..self.waiting.len() {
                let flow = self.waiting[at].contribution.flow;
                if above(flow)
                    && following
                        .is_none_or(|f| flow.segment < self.waiting[f].contribution.flow.segment)
                {
                    following = Some(at);
                }
            }
            if following.is_some() {
                return following;
            }
        }
        let mut chosen = 0;
        if self.waiting.is_empty() {
            return None;
        }
        if self.departures - self.joined[0] < self.limits.patience {
            for at in 1..self.waiting.len() {
                if self.worth_of(&self.waiting[at]) > self.worth_of(&self.waiting[chosen]) {
                    chosen = at;
                }
            }
        }
        let of = self.waiting[chosen].contribution.flow;
        for at in 0..self.waiting.len() {
            let flow = self.waiting[at].contribution.flow;
            if (flow.job, flow.cluster) == (of.job, of.cluster)
                && flow.segment < self.waiting[chosen].contribution.flow.segment
            {
                chosen = at;
            }
        }
        Some(chosen)
    }
}

impl Discipline for Reference {
    fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome {
        if !product(&arrival.contribution).is_finite() {
            return Outcome::Rejected(Rejection::NonFinite);
        }
        let outcome = match self
            .waiting
            .iter()
            .position(|entry| entry.contribution.flow == arrival.contribution.flow)
        {
            Some(at) => meet(&mut self.waiting, at, self.gate, arrival),
            None => self.place(arrival),
        };
        if let Outcome::Rejected(_) = outcome {
            return outcome;
        }
        if let Some(at) =
            self.served.iter().position(|served| served.0 == arrival.contribution.flow)
        {
            if arrival.contribution.generated_ns.1 > self.served[at].1 {
                self.served[at].2 = 0;
            } else {
                self.served[at].2 += 1;
            }
            if self.served[at].2 >= self.limits.disbelief {
                self.served.remove(at);
            }
        }
        outcome
    }

    fn begin_departure(&mut self) -> Option<&Entry> {
        if self.locked.is_some() {
            return None;
        }
        let at = self.next()?;
        let entry = self.waiting.remove(at);
        self.joined.remove(at);
        self.departures += 1;
        self.sent_last = Some(entry.contribution.flow);
        let mut record = (entry.contribution.flow, entry.contribution.generated_ns.1, 0);
        if let Some(at) = self.served.iter().position(|served| served.0 == entry.contribution.flow)
        {
            let before = self.served.remove(at);
            record = (entry.contribution.flow, record.1.max(before.1), before.2);
        }
        self.served.push(record);
        if self.served.len() > self.limits.remembered {
            self.served.remove(0);
        }
        self.locked = Some(entry);
        self.locked.as_ref()
    }

    fn departing(&self) -> Option<&Entry> {
        self.locked.as_ref()
    }

    fn end_departure(&mut self) -> Option<EntryId> {
        self.locked.take().map(|entry| entry.id)
    }

    fn choose(&mut self) -> Option<&Entry> {
        let next = self.next()?;
        self.chosen = Some(self.waiting[next].id);
        self.waiting.get(next)
    }

    fn share(&mut self, slots: usize, next: EntryId) {
        (self.slots, self.next_id) = (slots, next.0);
    }

    fn give_up(&mut self) -> Option<GivenUp> {
        let least = self.least()?;
        self.joined.remove(least);
        Some(GivenUp::from(&self.waiting.remove(least)))
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn used(&self) -> usize {
        self.waiting.len() + usize::from(self.locked.is_some())
    }

    fn entries(&self) -> Vec<&Entry> {
        let mut waiting: Vec<&Entry> = self.waiting.iter().collect();
        let next = self.next().map(|at| waiting.remove(at));
        // The sort is stable: of equal entries the first to come stays first.
        waiting.sort_by(|a, b| self.worth_of(b).total_cmp(&self.worth_of(a)));
        self.locked.iter().chain(next).chain(waiting).collect()
    }
}
