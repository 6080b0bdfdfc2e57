//! A scenario under way: everything in order of time.

use super::hop::{Hop, Packet};
use super::outcome::{self, Outcome};
use super::sender::Decision;
use super::server::{Cluster, Server};
use super::shelf::Shelf;
use super::spec::{Scenario, SpecError};
use super::worker::Worker;
use core::cmp::Reverse;
use core::iter::successors;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_engine::link::Head;
use olaf_host::transmission::Feedback;
use olaf_wire::QueueStatus;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Plan {
    /// The departure of a switch ends.
    Depart(usize),
    /// A datagram comes to a switch, or to the server.
    Reach(Option<usize>, usize),
    /// An answer comes to its workers.
    Hear(usize),
    /// A cluster's workers are told what their switch has taken in.
    Taken(u32, u64),
    /// A worker decides anew.
    Retry(u32),
}

/// An answer on its way down.
struct Answer {
    feedback: Feedback,
    to: Vec<u32>,
}

pub(super) struct Run<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) hops: Vec<Hop>,
    pub(super) workers: Vec<Worker>,
    pub(super) server: Server,
    pub(super) on_links: Shelf<Packet>,
    /// Of each cluster: its workers' switch and all above it, up to the server.
    paths: Vec<Vec<usize>>,
    plans: BinaryHeap<Reverse<(Instant, u64, Plan)>>,
    planned: u64,
    answers: Shelf<Answer>,
    answer_delay: Duration,
    notices: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, SpecError> {
        let upstreams = scenario.upstreams()?;
        let hops = scenario.switches.iter().zip(&upstreams);
        let head = if scenario.head_keeps_slot { Head::Locked } else { Head::Gone };
        let hops = hops.map(|(spec, up)| Hop::new(spec, *up, head)).collect();
        let server = Server::new(scenario)?;
        let (mut workers, mut paths) = (Vec::new(), Vec::new());
        for (cluster, Cluster { place, .. }) in (0..).zip(&server.clusters) {
            for id in place.workers.clone() {
                workers.push(Worker::new(scenario, (cluster, place), id)?);
            }
            paths.push(successors(Some(place.switch), |at| upstreams[*at]).collect());
        }
        Ok(Self {
            scenario,
            hops,
            notices: scenario.wants_notices()?,
            workers,
            server,
            on_links: Shelf::default(),
            paths,
            plans: BinaryHeap::new(),
            planned: 0,
            answers: Shelf::default(),
            answer_delay: Duration::from_nanos(scenario.answers.delay_ns),
        })
    }

    fn plan(&mut self, at: Instant, plan: Plan) {
        self.planned += 1;
        self.plans.push(Reverse((at, self.planned, plan)));
    }

    /// Carries out the next thing planned for `until` or before; false where there is none.
    pub(super) fn carry_out_next(&mut self, until: Instant) -> bool {
        if self.plans.peek().is_none_or(|Reverse((at, ..))| *at > until) {
            return false;
        }
        let Some(Reverse((now, _, plan))) = self.plans.pop() else { return false };
        match plan {
            Plan::Depart(switch) => self.depart(now, switch),
            Plan::Reach(to, packet) => {
                let packet = self.on_links.take(packet);
                self.reach(now, to, packet);
            }
            Plan::Hear(answer) => {
                let answer = self.answers.take(answer);
                for worker in answer.to {
                    self.workers[worker as usize].sender.hear(now, &answer.feedback);
                }
            }
            Plan::Taken(cluster, newest_ns) => {
                for worker in self.server.clusters[cluster as usize].place.workers.clone() {
                    self.workers[worker as usize].sender.taken(now, newest_ns);
                }
            }
            Plan::Retry(worker) => {
                let decision = self.workers[worker as usize].sender.retry(now);
                self.act(now, worker, decision);
            }
        }
        true
    }

    /// A worker has one more update ready.
    pub(super) fn generate(&mut self, now: Instant, worker: u32) {
        let decision = self.workers[worker as usize].ready(now);
        self.act(now, worker, decision);
    }

    fn act(&mut self, now: Instant, worker: u32, decision: Decision) {
        match decision {
            Decision::Send(held) => {
                let packet = self.workers[worker as usize].packet(held);
                let switch = self.workers[worker as usize].switch;
                self.arrive(now, switch, packet);
            }
            Decision::RetryAfter(after) => self.plan(now + after, Plan::Retry(worker)),
            Decision::Hold => {}
        }
    }

    fn arrive(&mut self, now: Instant, switch: usize, packet: Packet) {
        let (cluster, newest_ns) = (packet.cluster(), packet.contribution.generated_ns.1);
        let straight_from_worker = packet.contribution.hops == 0;
        let arrived = self.hops[switch].arrive(now, packet);
        if let Some(end) = arrived.departure_ends {
            self.plan(end, Plan::Depart(switch));
        }
        if self.notices && straight_from_worker && arrived.taken {
            self.plan(now + self.answer_delay, Plan::Taken(cluster, newest_ns));
        }
    }

    fn depart(&mut self, now: Instant, switch: usize) {
        let (packet, next) = self.hops[switch].depart(now);
        if let Some(end) = next {
            self.plan(end, Plan::Depart(switch));
        }
        let (to, delay) = (self.hops[switch].upstream, self.hops[switch].delay);
        if delay.is_zero() {
            self.reach(now, to, packet);
        } else {
            let packet = self.on_links.put(packet);
            self.plan(now + delay, Plan::Reach(to, packet));
        }
    }

    fn reach(&mut self, now: Instant, to: Option<usize>, packet: Packet) {
        match to {
            Some(switch) => self.arrive(now, switch, packet),
            None => {
                self.server.deliver(now, &packet);
                self.answer(now, &packet);
            }
        }
    }

    fn answer(&mut self, now: Instant, packet: &Packet) {
        let (own, mean) = self.server.recent_ages(now, packet.cluster());
        let (queue, round_ns) = self.path_status(now, packet.cluster());
        let (own_age_ns, mean_age_ns) = (own as u64, mean as u64);
        let feedback = Feedback { queue, round_ns, own_age_ns, mean_age_ns };
        let to = self.server.receivers(packet);
        let answer = self.answers.put(Answer { feedback, to });
        self.plan(now + self.answer_delay, Plan::Hear(answer));
    }

    /// The status of the most crowded switch on a cluster's path, and the longest round there.
    fn path_status(&mut self, now: Instant, cluster: u32) -> (QueueStatus, u64) {
        let window = Duration::from_nanos(self.scenario.answers.active_ns);
        let (mut status, mut round_ns) = (QueueStatus::default(), 0);
        // As an answer passes them: from the server down.
        for switch in self.paths[cluster as usize].iter().rev() {
            let (own, own_round_ns) = self.hops[*switch].status(now, window);
            status = status.passing(own);
            round_ns = own_round_ns.max(round_ns);
        }
        (status, round_ns)
    }

    pub(super) fn finish(self) -> Outcome {
        let workers: Vec<&Worker> = self.workers.iter().collect();
        let hops = self.hops.iter().map(Hop::settle).collect();
        let on_links = self.on_links.all().map(|p| u64::from(p.contribution.contributors)).sum();
        outcome::of(self.scenario, &workers, &self.server, hops, on_links)
    }
}
