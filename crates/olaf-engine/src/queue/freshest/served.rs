//! What has left, by flow: generation times of the newest contribution, for a bounded number of
//! flows.

use crate::ids::Flow;
use alloc::collections::BTreeMap;

/// The memory.
#[derive(Debug)]
pub(super) struct Served {
    remembered: usize,
    disbelief: u32,
    flows: BTreeMap<Flow, Record>,
    /// Flows by their last departure.
    by_departure: BTreeMap<u64, Flow>,
    departures: u64,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    newest_ns: u64,
    departure: u64,
    /// Arrivals in a row that were no newer.
    no_news: u32,
}

impl Served {
    pub(super) fn new(remembered: usize, disbelief: u32) -> Self {
        let (flows, by_departure) = (BTreeMap::new(), BTreeMap::new());
        Self { remembered, disbelief, flows, by_departure, departures: 0 }
    }

    /// When the newest contribution of a flow that has left was generated; nothing for a flow that
    /// was never served or is forgotten.
    pub(super) fn newest_ns(&self, flow: Flow) -> Option<u64> {
        self.flows.get(&flow).map(|record| record.newest_ns)
    }

    /// A flow departs; names the one that is forgotten for it, if any.
    pub(super) fn departs(&mut self, flow: Flow, newest_ns: u64) -> Option<Flow> {
        self.departures += 1;
        let departure = self.departures;
        let record = self.flows.entry(flow).or_insert(Record { newest_ns, departure, no_news: 0 });
        self.by_departure.remove(&record.departure);
        self.by_departure.insert(departure, flow);
        // An older entry that departs late does not make the server's model older.
        record.newest_ns = record.newest_ns.max(newest_ns);
        record.departure = departure;
        if self.flows.len() <= self.remembered {
            return None;
        }
        let (_, forgotten) = self.by_departure.pop_first()?;
        self.flows.remove(&forgotten);
        Some(forgotten)
    }

    /// An arrival of a flow, generated at `newest_ns`; says whether the flow is forgotten for it.
    pub(super) fn hears(&mut self, flow: Flow, newest_ns: u64) -> bool {
        let Some(record) = self.flows.get_mut(&flow) else { return false };
        record.no_news = if newest_ns > record.newest_ns { 0 } else { record.no_news + 1 };
        if record.no_news < self.disbelief {
            return false;
        }
        self.by_departure.remove(&record.departure);
        self.flows.remove(&flow);
        true
    }
}
