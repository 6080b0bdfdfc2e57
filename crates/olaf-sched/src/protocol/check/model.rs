//! The cluster as `stateright` explores it, and what must hold in every state.

use super::cluster::{Action, Cluster, Setup, job_of};
use crate::protocol::job::Phase;
use crate::protocol::{Packet, Party};
use stateright::{Model, Property};

/// `Setup` is the model: its states are clusters.
impl Model for Setup {
    type State = Cluster;
    type Action = Action;

    fn init_states(&self) -> Vec<Cluster> {
        vec![Cluster::new(self)]
    }

    fn actions(&self, cluster: &Cluster, actions: &mut Vec<Action>) {
        cluster.actions(self, actions);
    }

    fn next_state(&self, cluster: &Cluster, action: Action) -> Option<Cluster> {
        let mut next = cluster.clone();
        next.act(self, action);
        (next != *cluster).then_some(next)
    }

    fn within_boundary(&self, cluster: &Cluster) -> bool {
        let begun = |job: &crate::protocol::job::Job| job.ballot.round <= self.rounds;
        cluster.controllers.iter().all(|controller| controller.jobs.values().all(begun))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "no resource is used beyond its units",
                |setup: &Self, cluster: &Cluster| cluster.used() <= setup.units as usize,
            ),
            Property::always("no job mixes modes within an all-reduce", |_, cluster: &Cluster| {
                cluster.mixed.is_none()
            }),
            Property::always(
                "everybody gets on once the faults end",
                |setup, cluster: &Cluster| !setup.rest || gets_on(setup, cluster),
            ),
            Property::sometimes("a grant is used", |_, cluster: &Cluster| cluster.used_once(0)),
            Property::sometimes("it is handed on", |setup: &Self, cluster: &Cluster| {
                setup.jobs.len() > 1 && cluster.used_once(0) && cluster.used_once(1)
            }),
            Property::sometimes("a round is aborted and tried again", |_, cluster: &Cluster| {
                cluster.seen.retried
            }),
            Property::sometimes("a dead job's tree is torn down and given on", |_, c: &Cluster| {
                c.seen.given_on
            }),
            Property::sometimes(
                "a host in doubt hears the outcome of another",
                |_, c: &Cluster| {
                    let told = |packet: &Packet| {
                        matches!(
                            (packet.from, packet.body),
                            (Party::Host(_), super::super::Body::Commit(_))
                        )
                    };
                    c.network.iter().any(told)
                },
            ),
        ]
    }
}

/// Loses every packet on its way; from then on no packet is lost and no living host dies. Is every
/// host free to launch after a while, and is every resource free? Tried with all hosts alive, with
/// each host dead, and without a controller.
fn gets_on(setup: &Setup, cluster: &Cluster) -> bool {
    let hosts = || {
        (0..setup.jobs.len())
            .flat_map(|job| (0..usize::from(setup.jobs[job])).map(move |rank| (job, rank)))
    };
    settles(cluster, None, true)
        && settles(cluster, None, false)
        && hosts().all(|dead| settles(cluster, Some(dead), true))
}

const TURNS: usize = 12;

fn settles(cluster: &Cluster, dead: Option<(usize, usize)>, controlled: bool) -> bool {
    let mut cluster = cluster.clone();
    cluster.network.clear();
    for host in cluster.hosts.iter_mut().flatten() {
        host.timing.askings = 5;
    }
    for controller in &mut cluster.controllers {
        controller.timing.sendings = 5;
        controller.timing.first_sendings = 5;
        controller.timing.take_backs = 5;
        controller.timing.retry_ns = 1; // not before the next turn, where indices may meet
    }
    for _ in 0..TURNS {
        cluster.fair_turn(dead, controlled);
        if cluster.at_rest(dead, controlled) {
            return true;
        }
    }
    false
}

impl Cluster {
    /// Every timer fires once, everything sent arrives, and what can be launched is.
    fn fair_turn(&mut self, dead: Option<(usize, usize)>, controlled: bool) {
        self.now += 10;
        let now = self.now;
        for job in 0..self.hosts.len() {
            self.level(job, dead);
        }
        if controlled {
            for at in 0..self.controllers.len() {
                let jobs: Vec<_> = self.controllers[at].jobs.keys().copied().collect();
                for job in jobs {
                    self.controllers[at].expire(now, job);
                    self.controllers[at].turn(now);
                    self.deliver_all(dead, controlled);
                }
            }
            while let Some((epoch, job)) = self.to_fence.pop_first() {
                self.fenced.insert(job);
                self.controllers[epoch as usize - 1].fenced(now, job);
                self.deliver_all(dead, controlled);
            }
        }
        for job in 0..self.hosts.len() {
            for rank in 0..self.hosts[job].len() {
                if dead != Some((job, rank)) {
                    self.hosts[job][rank].handle_timeout(now);
                    self.deliver_all(dead, controlled);
                }
            }
        }
    }

    /// The hosts of a job that lag behind launch what the others have; then all end it.
    fn level(&mut self, job: usize, dead: Option<(usize, usize)>) {
        let most = self.hosts[job].iter().map(crate::protocol::Host::next).max().unwrap_or(0);
        for rank in 0..self.hosts[job].len() {
            if dead != Some((job, rank)) && self.hosts[job][rank].next() < most {
                if let Some(running) = self.hosts[job][rank].running() {
                    self.hosts[job][rank].done(running.index);
                }
                if let Ok(launch) = self.hosts[job][rank].launch() {
                    self.launched(job, launch);
                }
            }
        }
        let least = self.hosts[job].iter().map(crate::protocol::Host::next).min().unwrap_or(0);
        for rank in 0..self.hosts[job].len() {
            let running = self.hosts[job][rank].running().filter(|running| running.index < least);
            if let Some(running) = running.filter(|_| dead != Some((job, rank))) {
                self.hosts[job][rank].done(running.index);
            }
        }
    }

    fn deliver_all(&mut self, dead: Option<(usize, usize)>, controlled: bool) {
        self.drain();
        while let Some(packet) = self.network.pop_first() {
            let lost = match packet.to {
                Party::Controller => !controlled,
                Party::Host(rank) => dead == Some((packet.job.0 as usize - 1, usize::from(rank))),
            };
            if !lost {
                self.deliver(&packet);
                self.drain();
            }
        }
    }

    /// No living host is locked for ever: it launches, or knows that its job has ended. Nothing is
    /// held, as far as a controller that lives knows.
    fn at_rest(&self, dead: Option<(usize, usize)>, controlled: bool) -> bool {
        let free = |(job, hosts): (usize, &Vec<crate::protocol::Host>)| {
            hosts.iter().enumerate().all(|(rank, host)| {
                dead == Some((job, rank)) || !host.locked() || host.failed().is_some()
            }) && (dead.is_some_and(|(of, _)| of == job)
                || self.fenced.contains(&job_of(job))
                || hosts.iter().all(|host| !host.locked() || host.failed().is_some()))
        };
        let idle = |controller: &crate::protocol::Controller<_>| {
            controller.jobs.values().all(|job| matches!(job.phase, Phase::Idle(_)))
        };
        self.hosts.iter().enumerate().all(free)
            && (!controlled || self.controllers.iter().all(idle))
    }
}
