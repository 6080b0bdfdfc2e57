//! A replay as JSON, written piece by piece: a million arrivals need no tree of a million nodes.

use super::{Arrived, Departed, Name, Replay};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

impl Serialize for Replay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Replay", if self.full { 3 } else { 1 })?;
        if self.full {
            object.serialize_field("departures", &Departures(self))?;
            object.serialize_field("fates", &Fates(self))?;
        }
        object.serialize_field("summary", &self.summary)?;
        object.end()
    }
}

struct Departures<'a>(&'a Replay);

impl Serialize for Departures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.departures.iter().map(|departed| self.0.departure(departed)))
    }
}

struct Fates<'a>(&'a Replay);

impl Serialize for Fates<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.arrivals.iter().map(|arrived| self.0.fate(arrived)))
    }
}

#[derive(Serialize)]
struct DepartureRow<'a> {
    start_ns: u64,
    end_ns: u64,
    cluster: &'a Name,
    contributors: Vec<String>,
    weight: f64,
    reward: f64,
    oldest_ns: u64,
    newest_ns: u64,
}

#[derive(Serialize)]
struct FateRow<'a> {
    cluster: &'a Name,
    worker: &'a Name,
    seq: u64,
    fate: &'static str,
}

impl Replay {
    fn departure(&self, departed: &Departed) -> DepartureRow<'_> {
        let first = departed.first_contributor;
        let of = &self.contributors[first..first + departed.contributors];
        let mut contributors: Vec<String> = of
            .iter()
            .map(|arrival| &self.arrivals[*arrival as usize])
            .map(|arrived| format!("{}:{}", self.workers.get(arrived.worker), arrived.sequence))
            .collect();
        contributors.sort_unstable();
        DepartureRow {
            start_ns: departed.start.0,
            end_ns: departed.end.0,
            cluster: self.clusters.get(departed.cluster),
            contributors,
            weight: departed.weight,
            reward: departed.reward,
            oldest_ns: departed.generated_ns.0,
            newest_ns: departed.generated_ns.1,
        }
    }

    fn fate(&self, arrived: &Arrived) -> FateRow<'_> {
        FateRow {
            cluster: self.clusters.get(arrived.cluster),
            worker: self.workers.get(arrived.worker),
            seq: arrived.sequence,
            fate: arrived.fate.name(),
        }
    }
}
