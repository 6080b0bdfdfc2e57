//! One run: phases and an order of ranks, through the queue and the pacer of the switch.

use super::order::{Set, each, only};
use super::question::{Kind, MOST_TICKS, Question};
use super::tick::{Arrived, Met, Pairs, Tick};
use olaf_engine::link::Link;
use olaf_engine::link::pacer::{Pacer, RatePacer};
use olaf_engine::queue::merging::Merging;
use olaf_engine::{
    Arrival, BitsPerSecond, ClusterId, Contribution, Flow, Instant, JobId, Outcome, WorkerId,
};

/// Nanoseconds of a tick here. The rank of a sender is as many nanoseconds after it, so that what
/// it begins keeps its rank by itself.
const TICK: u64 = 4096;

/// A byte takes a nanosecond.
const RATE: u64 = 8_000_000_000;

/// Where the engine's time begins anew.
const LATE: u64 = 1 << 62;

/// An update of a cluster left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) cluster: usize,
    /// The paper's D, ticks.
    pub(super) end: u64,
    /// When the newest of its contributions was made, ticks.
    pub(super) newest: u64,
}

/// Updates of the clusters asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) dropped: u64,
}

/// From here on the run repeats itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    pub(super) from: u64,
    pub(super) period: u64,
    /// Deliveries before it, and before it repeats itself.
    pub(super) deliveries: (usize, usize),
    /// In it.
    pub(super) counts: Counts,
}

/// The engine, and what it made of the last run. Kept from run to run for its memory.
pub(super) struct Runner {
    question: Question,
    /// Of each cluster whether the question is about it.
    about: Vec<bool>,
    /// None: the question stops at the horizon.
    hyperperiod: Option<u64>,
    link: Link,
    /// When the run began for the engine, ns.
    base: u64,
    /// Next arrival of each sender, ticks.
    next: Vec<u64>,
    tick: Tick,
    states: Vec<State>,
    /// On which comparisons of ranks the run depended.
    pub(super) needed: Pairs,
    /// In order, beyond the horizon too where a cycle was looked for.
    pub(super) deliveries: Vec<Delivered>,
    /// Up to the horizon.
    pub(super) counts: Counts,
    /// Senders whose phase is hardly below their interval.
    ends: Set,
    /// Whether a departure at the horizon may be hardly after it, where that matters.
    pub(super) may_miss_last: bool,
    /// From the beginning.
    all_counts: Counts,
    pub(super) cycle: Option<Cycle>,
}

/// All that decides how a run goes on, at a multiple of the hyperperiod.
struct State {
    at: u64,
    deliveries: usize,
    counts: Counts,
    /// Arrivals that may have begun the busy period; time left on the wire; cluster and age of each
    /// update.
    content: Vec<u64>,
}

impl Runner {
    pub(super) fn new(question: &Question) -> Self {
        let about = (0..question.alike.len()).map(|c| question.about.contains(&c)).collect();
        let hyperperiod = question.hyperperiod().filter(|_| question.hyperperiods > 0);
        Self {
            question: question.clone(),
            about,
            hyperperiod,
            link: link(question.slots),
            base: 0,
            next: Vec::new(),
            tick: Tick::default(),
            states: Vec::new(),
            needed: Vec::new(),
            deliveries: Vec::new(),
            counts: Counts::default(),
            ends: 0,
            may_miss_last: false,
            all_counts: Counts::default(),
            cycle: None,
        }
    }

    /// Runs these phases with senders ranked in this order, the lowest rank first: up to the
    /// horizon and, where a cycle is looked for, until the run repeats itself.
    pub(super) fn run(&mut self, phases: &[u64], order: &[u8], look: bool) {
        self.next.clear();
        self.next.extend_from_slice(phases);
        self.tick.begun = 0;
        self.needed.clear();
        self.deliveries.clear();
        (self.counts, self.all_counts) = (Counts::default(), Counts::default());
        self.cycle = None;
        self.states.clear();
        self.may_miss_last = false;
        let intervals = self.question.senders.iter().map(|sender| sender.interval);
        let ends =
            phases.iter().zip(intervals).enumerate().filter(|(_, (phase, end))| **phase == *end);
        self.ends = ends.fold(0, |set, (sender, _)| set | only(sender));
        // Arrivals repeat themselves from tick 0 on, or else from the first update of those that
        // begin with their interval.
        let begin = |hyperperiod| if self.ends == 0 { 0 } else { hyperperiod };
        let mut look_at = self.hyperperiod.filter(|_| look).map(begin);
        loop {
            let now = self.next_event();
            if let Some(at) = look_at
                && at <= now
            {
                look_at = self.look(at);
            } else if now > self.question.horizon && look_at.is_none() {
                return self.clear(now);
            } else {
                self.step(now, order);
                if now <= self.question.horizon {
                    self.counts = self.all_counts;
                }
            }
        }
    }

    fn next_event(&self) -> u64 {
        let arrival = self.next.iter().min().copied().expect("there is a sender");
        let departure = self.link.next_departure().map(|end| (end.0 - self.base) / TICK);
        departure.map_or(arrival, |departure| departure.min(arrival))
    }

    /// All events of a tick.
    fn step(&mut self, now: u64, order: &[u8]) {
        let used = self.link.used();
        self.tick.arrived.clear();
        self.tick.departed = None;
        self.tick.locked = None;
        self.tick.idle = used == 0;
        self.tick.waiting = used > 1;
        self.tick.free = self.question.slots - used;
        let start = self.base + now * TICK;
        for (rank, sender) in order.iter().enumerate() {
            let sender = usize::from(*sender);
            if self.next[sender] == now {
                let at = start + rank as u64;
                self.depart(at, now, order);
                self.arrive(at, sender);
                self.next[sender] += self.question.senders[sender].interval;
            }
        }
        self.depart(start + TICK - 1, now, order);
        if self.tick.idle || self.tick.departed.is_some() {
            let on_wire = self.link.leaving_update();
            self.tick.locked =
                on_wire.map(|entry| (entry.id, entry.contribution.flow.cluster.0 as usize));
        }
        if now == self.question.horizon && self.tick.departed.is_some() {
            self.may_miss_last = self.question.kind == Kind::FairPeak && self.may_be_after(order);
        }
        self.tick.begun = self.tick.needs(&mut self.needed);
        let made = self.tick.arrived.iter().filter(|a| matches!(a.met, Met::Appended(_))).count();
        self.tick.first_new += made as u64;
    }

    fn arrive(&mut self, at: u64, sender: usize) {
        let question = &self.question;
        let cluster = question.senders[sender].cluster;
        let bytes = u32::try_from(question.service * TICK).expect("the question was checked");
        let met = match self.link.arrive(Instant(at), &arrival(at, sender, cluster, bytes)) {
            Outcome::Appended(id) => Met::Appended(id),
            Outcome::Merged(entry) | Outcome::Replaced { entry, .. } => Met::Joined(entry),
            Outcome::Dropped => Met::Dropped,
            other => unreachable!("OLAF without a gate does not answer {other:?}"),
        };
        self.tick.arrived.push(Arrived { sender, cluster, met });
        if self.about[cluster] {
            self.all_counts.sent += 1;
            self.all_counts.dropped += u64::from(met == Met::Dropped);
        }
    }

    /// The departure that ends by then, if any: there is one in a tick at most.
    fn depart(&mut self, by: u64, now: u64, order: &[u8]) {
        let Some(departure) = self.link.due(Instant(by)) else { return };
        let entry = self.link.leaving_update().expect("nothing but updates is sent here");
        let newest = (entry.contribution.generated_ns.1 - self.base) / TICK;
        let cluster = entry.contribution.flow.cluster.0 as usize;
        self.deliveries.push(Delivered { cluster, end: now, newest });
        self.link.release(Instant(by), None);
        self.tick.departed = Some(self.tick.arrived.len());
        let rank = usize::try_from(departure.end.0 % TICK).expect("it is below TICK");
        self.tick.begun_by = usize::from(order[rank]);
        debug_assert!(self.tick.begun & only(self.tick.begun_by) != 0);
    }

    /// Returns true if the tick's departure may be after the moment in its tick at which the
    /// observation begins: where it is not before, nor is at the latest with, a phase that ends
    /// before that.
    fn may_be_after(&mut self, order: &[u8]) -> bool {
        let begun_by = self.tick.begun_by;
        if self.ends == 0 {
            return true;
        }
        let number = |sender| u8::try_from(sender).expect("there are at most 64 senders");
        for earlier in each(self.tick.begun & !only(begun_by)) {
            self.needed.push((number(earlier), number(begun_by)));
        }
        let mut is_later = false;
        for sender in order.iter().copied() {
            if usize::from(sender) == begun_by {
                is_later = true;
            } else if self.ends & only(usize::from(sender)) != 0 {
                let pair = (sender, number(begun_by));
                self.needed.push(if is_later { (pair.1, pair.0) } else { pair });
            }
        }
        let last_end = order.iter().rposition(|sender| self.ends & only(usize::from(*sender)) != 0);
        let place = order.iter().position(|sender| usize::from(*sender) == begun_by);
        place > last_end
    }

    pub(super) fn question(&self) -> &Question {
        &self.question
    }

    /// Returns true if the run repeats itself from an earlier multiple of the hyperperiod on; where
    /// not, when to look again.
    fn look(&mut self, at: u64) -> Option<u64> {
        let hyperperiod = self.hyperperiod?;
        let (deliveries, counts) = (self.deliveries.len(), self.all_counts);
        let left = self.link.next_departure().map_or(0, |end| (end.0 - self.base) / TICK - at);
        let mut content = vec![self.tick.begun, left];
        for entry in self.link.entries() {
            let newest = (entry.contribution.generated_ns.1 - self.base) / TICK;
            content.extend([u64::from(entry.contribution.flow.cluster.0), at - newest]);
        }
        if let Some(same) = self.states.iter().find(|state| state.content == content) {
            self.cycle = Some(Cycle {
                from: same.at,
                period: at - same.at,
                deliveries: (same.deliveries, deliveries),
                counts: Counts {
                    sent: counts.sent - same.counts.sent,
                    dropped: counts.dropped - same.counts.dropped,
                },
            });
            return None;
        }
        self.states.push(State { at, deliveries, counts, content });
        let next = at + hyperperiod;
        let most = hyperperiod.saturating_mul(self.question.hyperperiods).min(MOST_TICKS);
        (next <= most).then_some(next)
    }

    /// Empties the queue for the next run, which begins after all that it held.
    fn clear(&mut self, now: u64) {
        let mut last = self.base + now * TICK;
        while let Some(end) = self.link.next_departure() {
            self.link.due(end);
            self.link.release(end, None);
            last = last.max(end.0);
        }
        self.base = (last / TICK + 1) * TICK;
        if self.base > LATE {
            self.link = link(self.question.slots);
            (self.base, self.tick.first_new) = (0, 0);
        }
    }
}

fn link(slots: usize) -> Link {
    let rate = BitsPerSecond::new(RATE).expect("it is below 10 Tbit/s");
    Link::new(Pacer::Rate(RatePacer::new(rate))).with_queue(Box::new(Merging::new(slots, None)))
}

fn arrival(at: u64, sender: usize, cluster: usize, bytes: u32) -> Arrival<'static> {
    let number = |index| u32::try_from(index).expect("the question was checked");
    let flow = Flow { job: JobId(0), cluster: ClusterId(number(cluster)), segment: 0 };
    let contribution = Contribution::of_one(flow, WorkerId(number(sender)), at, bytes);
    Arrival { contribution, lanes: &[] }
}
