//! A scenario under way: everything in order of time.

use super::hop::{Hop, Packet};
use super::outcome::{self, Outcome};
use super::sender::{Decision, Sender};
use super::shelf::Shelf;
use super::spec::{Scenario, SpecError};
use super::worker::Worker;
use core::cmp::Reverse;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_engine::link::Head;
use olaf_host::age::AgeOfModel;
use olaf_host::recent_age::{RecentAge, mean_of};
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

pub(super) struct Cluster {
    pub(super) group: usize,
    pub(super) workers: core::ops::Range<u32>,
    pub(super) age: AgeOfModel,
    pub(super) peak_max_ns: u64,
    pub(super) packets: u64,
    pub(super) contributions: u64,
    /// Its workers' switch and all above it, up to the server.
    path: Vec<usize>,
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
    pub(super) clusters: Vec<Cluster>,
    pub(super) generated: u64,
    pub(super) packets_sent: u64,
    pub(super) contributions_sent: u64,
    /// Delivered datagrams that held so many contributions.
    pub(super) fan_in: Vec<u64>,
    pub(super) on_links: Shelf<Packet>,
    recent: Vec<RecentAge>,
    ages_begun: bool,
    plans: BinaryHeap<Reverse<(Instant, u64, Plan)>>,
    planned: u64,
    answers: Shelf<Answer>,
    answer_delay: Duration,
    to_cluster: bool,
    notices: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, SpecError> {
        let upstreams = scenario.upstreams()?;
        let hops = scenario.switches.iter().zip(&upstreams);
        let head = if scenario.head_keeps_slot { Head::Locked } else { Head::Gone };
        let hops = hops.map(|(spec, up)| Hop::new(spec, *up, head)).collect();
        let mut run = Self {
            scenario,
            hops,
            workers: Vec::new(),
            clusters: Vec::new(),
            generated: 0,
            packets_sent: 0,
            contributions_sent: 0,
            fan_in: Vec::new(),
            on_links: Shelf::default(),
            recent: Vec::new(),
            ages_begun: false,
            plans: BinaryHeap::new(),
            planned: 0,
            answers: Shelf::default(),
            answer_delay: Duration::from_nanos(scenario.answers.delay_ns),
            to_cluster: scenario.answers.to == "cluster",
            notices: false,
        };
        run.populate(&upstreams)?;
        Ok(run)
    }

    fn populate(&mut self, upstreams: &[Option<usize>]) -> Result<(), SpecError> {
        let scenario = self.scenario;
        let config = scenario.transmission()?;
        for (group, spec) in scenario.groups.iter().enumerate() {
            let switch = scenario.switch(&spec.switch, &spec.name)?;
            let path = core::iter::successors(Some(switch), |at| upstreams[*at]);
            let path: Vec<usize> = path.collect();
            for _ in 0..spec.clusters {
                let cluster = small(self.clusters.len());
                let first = small(self.workers.len());
                for id in first..first + small(spec.workers) {
                    let sender = Sender::new(scenario.seed, id, config);
                    let place = (id, cluster, switch);
                    self.workers.push(Worker::new(place, spec.packet_bytes, sender));
                }
                self.clusters.push(Cluster {
                    group,
                    workers: first..small(self.workers.len()),
                    age: AgeOfModel::new(),
                    peak_max_ns: 0,
                    packets: 0,
                    contributions: 0,
                    path: path.clone(),
                });
            }
        }
        self.recent = vec![RecentAge::default(); self.clusters.len()];
        self.notices = self.workers.iter().any(|w| w.sender.wants_notices());
        Ok(())
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
                for worker in self.clusters[cluster as usize].workers.clone() {
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
        self.generated += 1;
        let decision = self.workers[worker as usize].sender.ready(now);
        self.act(now, worker, decision);
    }

    fn act(&mut self, now: Instant, worker: u32, decision: Decision) {
        match decision {
            Decision::Send(held) => {
                let packet = self.workers[worker as usize].packet(held);
                self.packets_sent += 1;
                self.contributions_sent += u64::from(packet.contribution.contributors);
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
            None => self.deliver(now, packet),
        }
    }

    fn deliver(&mut self, now: Instant, packet: Packet) {
        let count = packet.contribution.contributors;
        if self.fan_in.len() <= count as usize {
            self.fan_in.resize(count as usize + 1, 0);
        }
        self.fan_in[count as usize] += 1;
        self.begin_ages(now);
        for (worker, generated_ns) in &packet.holds {
            self.workers[*worker as usize].age.deliver(now, *generated_ns);
        }
        let newest_ns = packet.contribution.generated_ns.1;
        let cluster = &mut self.clusters[packet.cluster() as usize];
        cluster.packets += 1;
        cluster.contributions += u64::from(count);
        if let Some(before) = cluster.age.newest_generation_ns().filter(|n| *n < newest_ns) {
            cluster.peak_max_ns = cluster.peak_max_ns.max(now.0.saturating_sub(before));
        }
        cluster.age.deliver(now, newest_ns);
        self.recent[packet.cluster() as usize].deliver(now, newest_ns);
        self.answer(now, packet);
    }

    /// From the first delivery on, clusters and workers that starve have an age, too.
    fn begin_ages(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.ages_begun, true) {
            self.clusters.iter_mut().for_each(|cluster| cluster.age.observe_from(now));
            self.workers.iter_mut().for_each(|worker| worker.age.observe_from(now));
        }
    }

    fn answer(&mut self, now: Instant, packet: Packet) {
        let own = self.recent[packet.cluster() as usize].mean_ns(now);
        let (queue, round_ns) = self.path_status(now, packet.cluster());
        let feedback = Feedback {
            queue,
            round_ns,
            own_age_ns: own.unwrap_or_default() as u64,
            mean_age_ns: mean_of(&self.recent, now) as u64,
        };
        let mut to: Vec<u32> = if self.to_cluster {
            self.clusters[packet.cluster() as usize].workers.clone().collect()
        } else {
            packet.holds.iter().map(|(worker, _)| *worker).chain(packet.met).collect()
        };
        to.sort_unstable();
        to.dedup();
        let answer = self.answers.put(Answer { feedback, to });
        self.plan(now + self.answer_delay, Plan::Hear(answer));
    }

    /// The status of the most crowded switch on a cluster's path, and the longest round there.
    fn path_status(&mut self, now: Instant, cluster: u32) -> (QueueStatus, u64) {
        let window = Duration::from_nanos(self.scenario.answers.active_ns);
        let (mut status, mut round_ns) = (QueueStatus::default(), 0);
        // As an answer passes them: from the server down.
        for switch in self.clusters[cluster as usize].path.iter().rev() {
            let (own, own_round_ns) = self.hops[*switch].status(now, window);
            status = status.passing(own);
            round_ns = own_round_ns.max(round_ns);
        }
        (status, round_ns)
    }

    pub(super) fn finish(self) -> Outcome {
        outcome::of(&self)
    }
}

pub(super) fn small(n: usize) -> u32 {
    u32::try_from(n).expect("a scenario is checked to be smaller")
}
