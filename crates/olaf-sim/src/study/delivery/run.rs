//! A delivery under way: everything in order of time.

use super::{Delivery, Outcome};
use crate::chance::Chance;
use core::cmp::Reverse;
use olaf_engine::ids::{ClusterId, Flow, JobId, WorkerId};
use olaf_engine::link::Link;
use olaf_engine::link::pacer::{Pacer, RatePacer};
use olaf_engine::queue::discipline::{Arrival, EntryId, Outcome as Met};
use olaf_engine::switch::native::QueueKind;
use olaf_engine::{BitsPerSecond, Contribution, Instant};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Plan {
    /// The departure ends.
    Depart,
    /// The answer to a worker's update comes.
    Answer(u32, u32),
    /// A worker has waited long enough for the answer to this update, sent that often.
    Resend(u32, u32, u32),
    /// A worker has its next update ready.
    Ready(u32),
}

struct Worker {
    cluster: u32,
    /// Whose intervals it follows, and which comes next.
    record: usize,
    next: usize,
    generated: u32,
    delivered: u32,
    sequence: u32,
    /// Updates that wait for the one under way, oldest first.
    waiting: VecDeque<u32>,
    /// The update under way, and how often it was sent.
    under_way: Option<(u32, u32)>,
    chance: Chance,
}

pub(super) struct Run<'a> {
    spec: &'a Delivery,
    link: Link,
    /// Whose contributions are in each entry: worker, and which of its updates.
    inside: BTreeMap<EntryId, Vec<(u32, u32)>>,
    workers: Vec<Worker>,
    plans: BinaryHeap<Reverse<(Instant, u64, Plan)>>,
    planned: u64,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    pub(super) fn new(spec: &'a Delivery) -> Self {
        let kind = QueueKind::parse(&spec.queue).expect("checked before the run");
        let rate = BitsPerSecond::new(spec.rate_bps).expect("checked before the run");
        let mut run = Self {
            spec,
            link: Link::new(Pacer::Rate(RatePacer::new(rate)))
                .with_queue(kind.queue(spec.slots, None)),
            inside: BTreeMap::new(),
            workers: Vec::new(),
            plans: BinaryHeap::new(),
            planned: 0,
            outcome: Outcome::default(),
        };
        for id in 0..spec.clusters * spec.workers {
            let record = id as usize % spec.intervals_ns.len();
            let own = &spec.intervals_ns[record];
            let mut chance = Chance::new(spec.seed, u64::from(id));
            let next = usize::try_from(chance.up_to(own.len() as u64 - 1)).expect("an index");
            // It is found somewhere within the interval it is in.
            let first = chance.up_to(own[next]);
            run.workers.push(Worker {
                cluster: id / spec.workers,
                record,
                next: (next + 1) % own.len(),
                generated: 0,
                delivered: 0,
                sequence: 0,
                waiting: VecDeque::new(),
                under_way: None,
                chance,
            });
            run.plan(Instant(first), Plan::Ready(id));
        }
        run
    }

    pub(super) fn until_done(mut self) -> Outcome {
        while self.outcome.worker_done_ns.len() < self.workers.len() {
            let Some(Reverse((now, _, plan))) = self.plans.pop() else { break };
            if now.0 > self.spec.limit_ns {
                break;
            }
            match plan {
                Plan::Depart => self.depart(now),
                Plan::Answer(worker, update) => self.answer(now, worker, update),
                Plan::Resend(worker, update, times) => self.resend(now, worker, update, times),
                Plan::Ready(worker) => self.ready(now, worker),
            }
        }
        self.outcome.waiting =
            self.link.updates().map(|entry| u64::from(entry.contribution.contributors)).sum();
        let all = self.outcome.worker_done_ns.len() == self.workers.len();
        self.outcome.done_ns = self.outcome.worker_done_ns.last().copied().filter(|_| all);
        self.outcome
    }

    fn plan(&mut self, at: Instant, plan: Plan) {
        self.planned += 1;
        self.plans.push(Reverse((at, self.planned, plan)));
    }

    fn ready(&mut self, now: Instant, id: u32) {
        let worker = &mut self.workers[id as usize];
        let own = &self.spec.intervals_ns[worker.record];
        let again = Instant(now.0 + own[worker.next]);
        worker.next = (worker.next + 1) % own.len();
        let update = worker.generated;
        worker.generated += 1;
        self.outcome.generated += 1;
        self.plan(again, Plan::Ready(id));
        if self.spec.resend_after_ns.is_none() {
            self.send(now, id, update);
            return;
        }
        self.workers[id as usize].waiting.push_back(update);
        self.next_under_way(now, id);
    }

    fn next_under_way(&mut self, now: Instant, id: u32) {
        let worker = &mut self.workers[id as usize];
        if worker.under_way.is_none()
            && let Some(update) = worker.waiting.pop_front()
        {
            worker.under_way = Some((update, 1));
            self.send_for_certain(now, id, update, 1);
        }
    }

    fn send_for_certain(&mut self, now: Instant, id: u32, update: u32, times: u32) {
        self.send(now, id, update);
        if let Some(after) = self.spec.resend_after_ns {
            let chance = &mut self.workers[id as usize].chance;
            let after = after + chance.up_to(self.spec.resend_spread_ns);
            self.plan(Instant(now.0 + after), Plan::Resend(id, update, times));
        }
    }

    fn resend(&mut self, now: Instant, id: u32, update: u32, times: u32) {
        if self.workers[id as usize].under_way == Some((update, times)) {
            self.workers[id as usize].under_way = Some((update, times + 1));
            self.outcome.sent_again += 1;
            self.send_for_certain(now, id, update, times + 1);
        }
    }

    fn answer(&mut self, now: Instant, id: u32, update: u32) {
        let worker = &mut self.workers[id as usize];
        if worker.under_way.is_some_and(|(under_way, _)| under_way == update) {
            worker.under_way = None;
            self.next_under_way(now, id);
        }
    }

    fn send(&mut self, now: Instant, id: u32, update: u32) {
        let worker = &mut self.workers[id as usize];
        let flow = Flow { job: JobId(1), cluster: ClusterId(worker.cluster), segment: 0 };
        let one = Contribution::of_one(flow, WorkerId(id), now.0, self.spec.packet_bytes);
        let contribution = Contribution { sequence: worker.sequence, hops: 1, ..one };
        let arrival = Arrival { contribution, lanes: &[] };
        // An update that is sent again is a new one to the switch, which takes each number once.
        worker.sequence += 1;
        self.outcome.sent += 1;
        let was_idle = self.link.departure().is_none();
        match self.link.arrive(now, &arrival) {
            Met::Appended(entry) => {
                self.inside.insert(entry, vec![(id, update)]);
            }
            Met::Merged(entry) => self.inside.entry(entry).or_default().push((id, update)),
            Met::Replaced { entry, displaced } => {
                self.outcome.replaced += u64::from(displaced);
                self.inside.insert(entry, vec![(id, update)]);
            }
            Met::Evicted { entry, evicted, dropped, .. } => {
                self.inside.remove(&evicted);
                self.inside.insert(entry, vec![(id, update)]);
                self.outcome.dropped += u64::from(dropped);
            }
            Met::Dropped | Met::Filtered(_) | Met::Rejected(_) => self.outcome.dropped += 1,
        }
        if was_idle {
            self.plan_departure();
        }
    }

    /// Plans for the end of the departure that has just begun, if one has.
    fn plan_departure(&mut self) {
        if let Some(end) = self.link.next_departure() {
            self.plan(end, Plan::Depart);
        }
    }

    fn depart(&mut self, now: Instant) {
        self.link.due(now).expect("it was planned when it began");
        let entry = self.link.release(now, None).expect("nothing but updates is sent here");
        self.outcome.departures += 1;
        for (id, update) in self.inside.remove(&entry).unwrap_or_default() {
            let worker = &mut self.workers[id as usize];
            // Updates that are sent for certain come in order, one at a time.
            if self.spec.resend_after_ns.is_some() && update != worker.delivered {
                self.outcome.repeated += 1;
            } else {
                worker.delivered += 1;
                self.outcome.delivered += 1;
                if worker.delivered == self.spec.wanted {
                    self.outcome.worker_done_ns.push(now.0);
                }
            }
            self.plan(Instant(now.0 + self.spec.answer_delay_ns), Plan::Answer(id, update));
        }
        self.plan_departure();
    }
}
