//! Recorded arrivals through the pure engine, in virtual time, to the last departure.
//!
//! A departure starts when the link is free and takes `bytes * 8 / rate`; meanwhile it holds its
//! slot and takes nothing in (or as [`Head`] says). An arrival at the very instant a departure ends comes after it. An
//! update's generation time is its arrival.

mod error;
mod names;
mod output;
mod summary;
mod trace;

pub use error::ReplayError;
pub use names::Name;
pub use olaf_engine::link::Head;
pub use summary::{ClusterSummary, Counts, Summary};
pub use trace::COLUMNS;

use names::Names;
use olaf_engine::link::pacer::{Pacer, RatePacer};
use olaf_engine::link::{Departure, Link};
use olaf_engine::queue::merging::Gate;
use olaf_engine::switch::native::QueueKind;
use olaf_engine::{
    Arrival, BitsPerSecond, ClusterId, Contribution, Entry, EntryId, Flow, Instant, JobId, Outcome,
    WorkerId,
};
use std::collections::BTreeMap;
use std::io::Read;
use trace::{Row, Trace};

/// The most slots a queue may have.
pub const MAX_SLOTS: usize = 1 << 20;

/// What a trace is replayed through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The queue's discipline.
    pub engine: QueueKind,
    /// Updates the queue holds, the one on the wire included.
    pub slots: usize,
    /// The link's rate.
    pub rate: BitsPerSecond,
    /// The reward gate's threshold; `None`: off.
    pub gate: Gate,
    /// What becomes of an update in the queue while it is sent.
    pub head: Head,
    /// Whether departures and fates are written, or the summary alone.
    pub full: bool,
}

/// What became of one arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Left alone.
    Delivered,
    /// Left with others.
    Merged,
    /// A newer or better one took its place.
    Replaced,
    /// Below the reward gate.
    Filtered,
    /// Found the queue full, or gave its slot to one that helped more.
    Dropped,
    /// Its reward is no finite number.
    Rejected,
}

impl Fate {
    /// Every fate.
    pub const ALL: [Self; 6] = [
        Self::Delivered,
        Self::Merged,
        Self::Replaced,
        Self::Filtered,
        Self::Dropped,
        Self::Rejected,
    ];

    /// Its name in the output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Merged => "merged",
            Self::Replaced => "replaced",
            Self::Filtered => "filtered",
            Self::Dropped => "dropped",
            Self::Rejected => "rejected",
        }
    }
}

/// A replayed trace. Serialized, it is what `olaf replay --json` prints.
pub struct Replay {
    full: bool,
    clusters: Names,
    workers: Names,
    arrivals: Vec<Arrived>,
    departures: Vec<Departed>,
    /// Arrivals of all departures, one departure after the other.
    contributors: Vec<u32>,
    summary: Summary,
}

/// One arrival and its fate.
struct Arrived {
    cluster: u32,
    worker: u32,
    sequence: u64,
    fate: Fate,
}

/// One departure.
struct Departed {
    start: Instant,
    end: Instant,
    cluster: u32,
    /// Where its contributors begin in [`Replay::contributors`].
    first_contributor: usize,
    contributors: usize,
    weight: f64,
    reward: f64,
    generated_ns: (u64, u64),
}

impl Replay {
    /// Counts, ages and fairness.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The fate of each arrival, in order.
    pub fn fates(&self) -> impl Iterator<Item = Fate> + '_ {
        self.arrivals.iter().map(|arrived| arrived.fate)
    }
}

/// Replays a trace.
///
/// # Errors
/// What is wrong with the trace or the parameters.
pub fn replay(mut reader: impl Read, parameters: &Parameters) -> Result<Replay, ReplayError> {
    if parameters.slots == 0 || parameters.slots > MAX_SLOTS {
        return Err(ReplayError::Slots);
    }
    if parameters.gate.is_some_and(|threshold| !(threshold >= 0.0 && threshold.is_finite())) {
        return Err(ReplayError::Gate);
    }
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|error| ReplayError::Read(error.to_string()))?;
    let mut trace = Trace::new(&bytes)?;
    let mut run = Run::new(parameters);
    while let Some(row) = trace.next()? {
        run.depart_until(row.at);
        run.arrive(&row)?;
    }
    while let Some(end) = run.link.next_departure() {
        run.depart_until(end);
    }
    Ok(run.finish(parameters, trace.clusters, trace.workers))
}

/// A replay under way.
struct Run {
    link: Link,
    /// Arrivals that wait, by the entry they are in.
    waiting: BTreeMap<EntryId, Vec<u32>>,
    arrivals: Vec<Arrived>,
    departures: Vec<Departed>,
    contributors: Vec<u32>,
}

impl Run {
    fn new(parameters: &Parameters) -> Self {
        Self {
            link: Link::new(Pacer::Rate(RatePacer::new(parameters.rate)))
                .with_queue(parameters.engine.queue(parameters.slots, parameters.gate))
                .with_head(parameters.head),
            waiting: BTreeMap::new(),
            arrivals: Vec::new(),
            departures: Vec::new(),
            contributors: Vec::new(),
        }
    }

    /// Takes out every departure that ends by `now`.
    fn depart_until(&mut self, now: Instant) {
        while let Some(departure) = self.link.due(now) {
            let entry = self.link.leaving_update().expect("nothing but updates is sent here");
            let (id, departed) = (entry.id, departed(entry, departure));
            self.link.release(now, None);
            let sharers = self.waiting.remove(&id).expect("every entry has arrivals");
            let fate = if sharers.len() == 1 { Fate::Delivered } else { Fate::Merged };
            self.departures.push(Departed {
                first_contributor: self.contributors.len(),
                contributors: sharers.len(),
                ..departed
            });
            self.settle(&sharers, fate);
            self.contributors.extend(sharers);
        }
    }

    fn arrive(&mut self, row: &Row) -> Result<(), ReplayError> {
        let this = u32::try_from(self.arrivals.len()).map_err(|_| ReplayError::TooLong)?;
        let outcome = self.link.arrive(row.at, &arrival(row));
        let fate = match outcome {
            Outcome::Appended(entry) => {
                self.waiting.insert(entry, vec![this]);
                Fate::Delivered
            }
            Outcome::Merged(entry) => {
                self.waiting.entry(entry).or_default().push(this);
                Fate::Merged
            }
            Outcome::Replaced { entry, .. } => {
                let replaced = self.waiting.insert(entry, vec![this]).unwrap_or_default();
                self.settle(&replaced, Fate::Replaced);
                Fate::Delivered
            }
            Outcome::Evicted { entry, evicted, .. } => {
                let gone = self.waiting.remove(&evicted).unwrap_or_default();
                self.settle(&gone, Fate::Dropped);
                self.waiting.insert(entry, vec![this]);
                Fate::Delivered
            }
            Outcome::Filtered(_) => Fate::Filtered,
            Outcome::Dropped => Fate::Dropped,
            Outcome::Rejected(_) => Fate::Rejected,
        };
        // Of what waits, this is a guess that its departure or replacement sets right.
        let (cluster, worker, sequence) = (row.cluster, row.worker, row.sequence);
        self.arrivals.push(Arrived { cluster, worker, sequence, fate });
        Ok(())
    }

    fn settle(&mut self, arrivals: &[u32], fate: Fate) {
        for arrival in arrivals {
            self.arrivals[*arrival as usize].fate = fate;
        }
    }

    fn finish(self, parameters: &Parameters, clusters: Names, workers: Names) -> Replay {
        let summary = Summary::of(parameters, &clusters, &self.arrivals, &self.departures);
        Replay {
            full: parameters.full,
            clusters,
            workers,
            arrivals: self.arrivals,
            departures: self.departures,
            contributors: self.contributors,
            summary,
        }
    }
}

/// What left, its contributors apart.
fn departed(entry: &Entry, departure: Departure) -> Departed {
    let sum = &entry.contribution;
    Departed {
        start: departure.start,
        end: departure.end,
        cluster: sum.flow.cluster.0,
        first_contributor: 0,
        contributors: 0,
        weight: sum.weight,
        reward: sum.reward,
        generated_ns: sum.generated_ns,
    }
}

fn arrival(row: &Row) -> Arrival<'static> {
    let flow = Flow { job: JobId(0), cluster: ClusterId(row.cluster), segment: 0 };
    let one = Contribution::of_one(flow, WorkerId(row.worker), row.at.0, row.bytes);
    Arrival { contribution: Contribution { reward: row.reward, ..one }, lanes: &[] }
}
