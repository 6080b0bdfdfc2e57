//! A small cluster: the machines, the packets on their way, and what the checks look at.

use crate::JobId;
use crate::protocol::job::{HostState, Phase};
use crate::protocol::timing::Bug;
use crate::protocol::{
    Body, Controller, Event, Failure, Grant, Host, HostTiming, Launch, Needs, Packet, Party,
    Policy, Timing,
};
use std::collections::{BTreeMap, BTreeSet};

/// What is explored.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Hosts of each job.
    pub(super) jobs: Vec<u16>,
    /// Units of the one resource that all need one of.
    pub(super) units: u32,
    /// All-reduces of each job.
    pub(super) operations: u64,
    /// Grants that a controller gives each job.
    pub(super) grants: u8,
    /// Operations of a grant, and how many before it do not use the switches.
    pub(super) span: u64,
    pub(super) lead: u64,
    /// Rounds a controller may begin; states beyond are not entered.
    pub(super) rounds: u64,
    /// Lives of the controller. The one before may still be at work.
    pub(super) epochs: u64,
    /// The first controller knows that no host holds anything yet.
    pub(super) knows: bool,
    /// Checks in every state that all hosts can go on: takes long.
    pub(super) rest: bool,
    /// Keeps in the state what happened on the way: more states.
    pub(super) witnesses: bool,
    /// Hosts that have launched all leave.
    pub(super) leave: bool,
    pub(super) bug: Bug,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            jobs: vec![2, 1],
            units: 1,
            operations: 2,
            grants: 1,
            span: 1,
            lead: 0,
            rounds: 4,
            epochs: 1,
            knows: false,
            rest: true,
            witnesses: true,
            leave: false,
            bug: Bug::None,
        }
    }
}

/// All times are zero: every timer that runs may fire at any moment, before or after anything.
const TIMING: Timing = Timing {
    resend_ns: 0,
    prepare_ns: 0,
    sendings: 1,
    first_sendings: 1,
    poll_ns: 0,
    hold_ns: 0,
    take_backs: 1,
    retry_ns: 0,
};
/// A host leaves as often as the search chooses `Leave`.
const HOST_TIMING: HostTiming =
    HostTiming { doubt_ns: 0, ask_ns: 0, askings: 1, farewell_ns: 0, farewells_ns: 0 };

/// Gives each job the number of grants in `left`; the job with the most grants left comes first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wants {
    left: BTreeMap<JobId, u8>,
    span: u64,
    lead: u64,
}

impl Policy for Wants {
    fn turn(&mut self, _: u64, free: &[JobId]) -> Option<JobId> {
        let left = |job: &JobId| self.left.get(job).copied().unwrap_or(0);
        free.iter().copied().filter(|job| left(job) > 0).max_by_key(|job| (left(job), job.0))
    }

    fn grant(&mut self, _: u64, job: JobId, next: u64) -> Option<Grant> {
        *self.left.get_mut(&job)? -= 1;
        Some(Grant { from: next + self.lead, to: next + self.lead + self.span })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cluster {
    /// By epoch less one.
    pub(super) controllers: Vec<Controller<Wants>>,
    /// By job less one, by rank.
    pub(super) hosts: Vec<Vec<Host>>,
    /// Sent, and of use to somebody. Each may be delivered any number of times, or never.
    pub(super) network: BTreeSet<Packet>,
    /// Trees that a controller wants torn down.
    pub(super) to_fence: BTreeSet<(u64, JobId)>,
    /// Jobs that the switches refuse.
    pub(super) fenced: BTreeSet<JobId>,
    /// How each operation of each job was launched first.
    modes: Vec<Vec<bool>>,
    /// A job whose hosts launched one operation in two modes.
    pub(super) mixed: Option<JobId>,
    pub(super) seen: Seen,
    /// Zero, but where `model` looks whether everybody gets on.
    pub(super) now: u64,
}

/// What happened on the way here: that the checks can fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    /// A round for a grant ended without one.
    pub(super) aborted: bool,
    /// And one of the same job was given later.
    pub(super) retried: bool,
    /// A dead job's tree was torn down, and another job given a grant after that.
    pub(super) given_on: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Deliver(Packet),
    Launch(usize, usize),
    Done(usize, usize),
    Leave(usize, usize),
    HostTimer(usize, usize),
    ControllerTimer(u64, JobId),
    Fence(u64, JobId),
    /// Another controller starts.
    Start,
}

pub(super) const fn job_of(index: usize) -> JobId {
    JobId(index as u64 + 1)
}

const fn index_of(job: JobId) -> usize {
    job.0 as usize - 1
}

impl Cluster {
    pub(super) fn new(setup: &Setup) -> Self {
        let job = |(at, hosts): (usize, &u16)| -> Vec<Host> {
            let host = |rank| {
                let mut host = Host::new(job_of(at), rank, *hosts, HOST_TIMING);
                host.bug = setup.bug;
                host
            };
            (0..*hosts).map(host).collect()
        };
        let mut cluster = Self {
            controllers: Vec::new(),
            hosts: setup.jobs.iter().enumerate().map(job).collect(),
            network: BTreeSet::new(),
            to_fence: BTreeSet::new(),
            fenced: BTreeSet::new(),
            modes: vec![Vec::new(); setup.jobs.len()],
            mixed: None,
            seen: Seen::default(),
            now: 0,
        };
        cluster.start(setup);
        cluster
    }

    /// What may happen next.
    pub(super) fn actions(&self, setup: &Setup, actions: &mut Vec<Action>) {
        actions.extend(self.network.iter().copied().map(Action::Deliver));
        for (job, hosts) in self.hosts.iter().enumerate() {
            if self.fenced.contains(&job_of(job)) {
                continue;
            }
            for (rank, host) in hosts.iter().enumerate() {
                if host.next() < setup.operations {
                    actions.push(Action::Launch(job, rank));
                } else if setup.leave && host.running().is_none() {
                    actions.push(Action::Leave(job, rank));
                }
                if let Some(Launch { index, .. }) = host.running()
                    && hosts.iter().all(|other| other.next() > index)
                {
                    actions.push(Action::Done(job, rank));
                }
                if host.poll_timeout().is_some() {
                    actions.push(Action::HostTimer(job, rank));
                }
            }
        }
        for controller in &self.controllers {
            let timed = controller.jobs.iter().filter(|(_, job)| job.at.is_some());
            actions.extend(timed.map(|(id, _)| Action::ControllerTimer(controller.epoch, *id)));
        }
        actions.extend(self.to_fence.iter().map(|(epoch, job)| Action::Fence(*epoch, *job)));
        if (self.controllers.len() as u64) < setup.epochs {
            actions.push(Action::Start);
        }
    }

    pub(super) fn act(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Deliver(packet) => self.deliver(&packet),
            Action::Launch(job, rank) => {
                if let Ok(launch) = self.hosts[job][rank].launch() {
                    self.launched(job, launch);
                }
            }
            Action::Done(job, rank) => {
                let running = self.hosts[job][rank].running().expect("see actions()");
                self.hosts[job][rank].done(running.index);
            }
            Action::Leave(job, rank) => self.hosts[job][rank].leave(0),
            Action::HostTimer(job, rank) => self.hosts[job][rank].handle_timeout(0),
            Action::ControllerTimer(epoch, job) => {
                let controller = self.controller(epoch);
                controller.expire(0, job);
                controller.turn(0);
            }
            Action::Fence(epoch, job) => {
                self.fenced.insert(job);
                self.to_fence.remove(&(epoch, job));
                self.controller(epoch).fenced(0, job);
            }
            Action::Start => self.start(setup),
        }
        self.drain();
        if !setup.witnesses {
            self.seen = Seen::default();
        }
        self.forget_useless();
    }

    /// Of the one resource: how many units are in use.
    pub(super) fn used(&self) -> usize {
        let uses = |(at, hosts): &(usize, &Vec<Host>)| {
            !self.fenced.contains(&job_of(*at))
                && hosts.iter().any(|h| h.running().is_some_and(|launch| launch.in_network))
        };
        self.hosts.iter().enumerate().filter(uses).count()
    }

    /// Has the job had an operation that used the switches?
    pub(super) fn used_once(&self, job: usize) -> bool {
        self.modes[job].contains(&true)
    }

    fn controller(&mut self, epoch: u64) -> &mut Controller<Wants> {
        &mut self.controllers[epoch as usize - 1]
    }

    pub(super) fn launched(&mut self, job: usize, launch: Launch) {
        let modes = &mut self.modes[job];
        match modes.get(launch.index as usize) {
            None => modes.push(launch.in_network),
            Some(mode) if *mode != launch.in_network => self.mixed = Some(job_of(job)),
            Some(_) => {}
        }
    }

    /// The jobs that the allocation controller knows: those that are not torn down.
    fn start(&mut self, setup: &Setup) {
        let epoch = self.controllers.len() as u64 + 1;
        let left = (0..setup.jobs.len()).map(|at| (job_of(at), setup.grants)).collect();
        let policy = Wants { left, span: setup.span, lead: setup.lead };
        let capacity = BTreeMap::from([(0, setup.units)]);
        let mut controller = Controller::new(epoch, 0, TIMING, capacity, policy);
        controller.bug = setup.bug;
        if setup.knows && epoch == 1 {
            controller.bug = Bug::SkipAsking;
        }
        for (at, hosts) in setup.jobs.iter().enumerate() {
            if !self.fenced.contains(&job_of(at)) {
                let needs = Needs { hosts: *hosts, resources: vec![0], units: 1 };
                controller.submit(0, job_of(at), needs).expect("it is new and small");
            }
        }
        controller.bug = setup.bug;
        self.controllers.push(controller);
        self.drain();
    }

    pub(super) fn deliver(&mut self, packet: &Packet) {
        let now = self.now;
        match packet.to {
            Party::Controller => {
                // What a host says at the end goes to the controller that it knows.
                self.controller(packet.ballot.epoch.max(1)).handle_packet(now, packet);
            }
            Party::Host(rank) => {
                self.hosts[index_of(packet.job)][usize::from(rank)].handle_packet(now, packet);
            }
        }
    }

    pub(super) fn drain(&mut self) {
        for host in self.hosts.iter_mut().flatten() {
            while let Some(mut packet) = host.poll_transmit() {
                if let Body::Settled { next, .. } = &mut packet.body {
                    *next = 0; // for policies that look at it; these do not
                }
                self.network.insert(packet);
            }
        }
        for controller in &mut self.controllers {
            while let Some(packet) = controller.poll_transmit() {
                self.network.insert(packet);
            }
            while let Some(event) = controller.poll_event() {
                match event {
                    Event::Fence(job, why) => {
                        debug_assert!(!matches!(why, Failure::Told));
                        self.to_fence.insert((controller.epoch, job));
                    }
                    Event::Aborted(_) => self.seen.aborted = true,
                    Event::Granted(job, _) => {
                        self.seen.retried |= self.seen.aborted;
                        self.seen.given_on |= self.fenced.iter().any(|fenced| *fenced != job);
                    }
                    Event::Free(_) | Event::Left(_) | Event::Superseded(_) => {}
                }
            }
        }
    }

    /// Forgets what changes nothing whenever it comes, so that states that differ by it are one:
    /// packets too late to have an effect, answers to questions that are closed, and the hosts of a
    /// job that the switches refuse (whatever they do then they could have done just before).
    fn forget_useless(&mut self) {
        for controller in &mut self.controllers {
            for job in controller.jobs.values_mut() {
                for host in &mut job.hosts {
                    let left = host.left;
                    if matches!(job.phase, Phase::Idle(_) | Phase::Fencing(_)) {
                        *host = HostState { left, ..HostState::default() };
                    }
                    host.heard = true; // both limits on sendings are the same here
                }
            }
        }
        for job in &self.fenced {
            for host in &mut self.hosts[index_of(*job)] {
                *host = Host::new(*job, 0, 0, HOST_TIMING);
            }
        }
        let mut network = std::mem::take(&mut self.network);
        network.retain(|packet| self.matters(packet));
        self.network = network;
    }

    fn matters(&self, packet: &Packet) -> bool {
        if self.fenced.contains(&packet.job) {
            return false;
        }
        let hosts = &self.hosts[index_of(packet.job)];
        let controller = self.controllers.get((packet.ballot.epoch.max(1) - 1) as usize);
        let job = controller.and_then(|controller| controller.jobs.get(&packet.job));
        // What this host's answer about this ballot could still tell the controller.
        let awaited = |rank: u16, ready: bool, free: bool| {
            job.is_some_and(|job| {
                let host = &job.hosts[usize::from(rank)];
                job.ballot == packet.ballot
                    && match job.phase {
                        Phase::Preparing { .. } => !ready || host.ready.is_none(),
                        Phase::Settling { .. } => !ready && !(host.settled && (host.free || !free)),
                        Phase::Idle(_) | Phase::Fencing(_) => false,
                    }
            })
        };
        match (packet.from, packet.to) {
            (Party::Host(rank), Party::Controller) => match packet.body {
                Body::Settled { held, epoch, .. } => {
                    awaited(rank, false, !held)
                        || controller.is_some_and(|c| epoch > c.epoch && !c.superseded)
                }
                Body::Ready { .. } => awaited(rank, true, false),
                Body::Bye => job.is_some_and(|job| !job.hosts[usize::from(rank)].left),
                _ => false,
            },
            // Nothing in the model waits for it.
            (Party::Controller, Party::Host(_)) if packet.body == Body::Bye => false,
            (Party::Controller, Party::Host(rank)) => {
                let host = &hosts[usize::from(rank)];
                host.failed.is_none()
                    && (!host.knows(packet.ballot)
                        || awaited(rank, false, true)
                        || packet.ballot.epoch > host.epoch)
            }
            (Party::Host(from), Party::Host(to)) => {
                let (from, to) = (&hosts[usize::from(from)], &hosts[usize::from(to)]);
                let waits = from.promise.as_ref().is_some_and(|p| p.ballot == packet.ballot);
                let answers = packet.body == Body::Ask && waits && from.failed.is_none();
                let tells = packet.body == Body::Ask
                    || to.promise.as_ref().is_some_and(|p| p.ballot == packet.ballot);
                to.failed.is_none() && (!to.knows(packet.ballot) && tells || answers)
            }
            (Party::Controller, Party::Controller) => false,
        }
    }
}
