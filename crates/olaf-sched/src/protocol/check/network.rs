//! Larger clusters in a simulated network, by chance: loss, repetition, reordering, hosts that die,
//! controllers that die, start anew or are two at once. The two rules are looked at after every
//! event; after the faults end every host must go on.

use crate::JobId;
use crate::protocol::{
    Controller, Event, Grant, Host, HostTiming, Launch, Needs, Packet, Party, Policy, Timing,
};
use fastrand::Rng;
use olaf_wire::mina::LEN;
use std::collections::{BTreeMap, BTreeSet};

const US: u64 = 1000;
const FAULTS_END: u64 = 40_000 * US;
const END: u64 = 120_000 * US;

const TIMING: Timing = Timing {
    resend_ns: 200 * US,
    prepare_ns: 600 * US,
    sendings: 12,
    first_sendings: 25,
    poll_ns: 400 * US,
    hold_ns: 3000 * US,
    take_backs: 4,
    retry_ns: 100 * US,
};
const HOST_TIMING: HostTiming = HostTiming {
    doubt_ns: 1500 * US,
    ask_ns: 300 * US,
    askings: 20,
    farewell_ns: 300 * US,
    farewells_ns: 30_000 * US,
};

/// Gives jobs that are free some operations, by chance.
#[derive(Debug)]
struct Chance(Rng);

impl Policy for Chance {
    fn turn(&mut self, _: u64, free: &[JobId]) -> Option<JobId> {
        self.0.choice(free).copied()
    }
    fn grant(&mut self, _: u64, _: JobId, next: u64) -> Option<Grant> {
        // Also ones that begin in the past, and ones that are empty.
        let from = (next + self.0.u64(0..4)).saturating_sub(1);
        (self.0.u8(..) > 20).then(|| Grant { from, to: from + self.0.u64(0..4) })
    }
}

struct Job {
    needs: Needs,
    hosts: Vec<Host>,
    dead: BTreeSet<usize>,
    modes: BTreeMap<u64, bool>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Arrives { epoch: u64, bytes: [u8; LEN] },
    Execute { job: usize, rank: usize },
    Down { epoch: u64, job: JobId },
    HostDies { job: usize, rank: usize },
    ControllerStarts { old_dies: bool },
}

struct World {
    rng: Rng,
    now: u64,
    loss: u8,
    capacity: BTreeMap<u32, u32>,
    controllers: BTreeMap<u64, Controller<Chance>>,
    epochs: u64,
    jobs: Vec<Job>,
    fenced: BTreeSet<JobId>,
    agenda: BTreeSet<(u64, u64, Next)>,
    count: u64,
    witness: Witness,
}

/// That the runs reach what they are about.
#[derive(Default, Debug)]
struct Witness {
    granted: u32,
    granted_late: u32,
    aborted: u32,
    fenced: u32,
    in_network: u32,
    superseded: u32,
    in_doubt: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let capacity: BTreeMap<u32, u32> = (0..3).map(|r| (r, rng.u32(1..=2))).collect();
        let mut world = Self {
            now: 0,
            loss: rng.u8(0..80),
            capacity,
            controllers: BTreeMap::new(),
            epochs: 0,
            jobs: Vec::new(),
            fenced: BTreeSet::new(),
            agenda: BTreeSet::new(),
            count: 0,
            witness: Witness::default(),
            rng,
        };
        for job in 0..world.rng.usize(2..=4) {
            let hosts = world.rng.u16(1..=4);
            let mut resources: Vec<u32> = (0..3).filter(|_| world.rng.bool()).collect();
            resources.push(3);
            world.capacity.insert(3, 1);
            let needs = Needs { hosts, resources, units: 1 };
            let id = JobId(job as u64 + 1);
            let of = (0..hosts).map(|rank| Host::new(id, rank, hosts, HOST_TIMING)).collect();
            for rank in 0..usize::from(hosts) {
                world.plan(0..50 * US, Next::Execute { job, rank });
                if world.rng.u8(..) < 25 {
                    world.plan(0..FAULTS_END, Next::HostDies { job, rank });
                }
            }
            let (dead, modes) = (BTreeSet::new(), BTreeMap::new());
            world.jobs.push(Job { needs, hosts: of, dead, modes });
        }
        world.start_controller();
        for _ in 0..world.rng.u8(0..4) {
            let old_dies = world.rng.bool();
            world.plan(0..FAULTS_END, Next::ControllerStarts { old_dies });
        }
        world
    }

    fn plan(&mut self, within: std::ops::Range<u64>, next: Next) {
        let at = self.now + self.rng.u64(within);
        self.count += 1;
        self.agenda.insert((at, self.count, next));
    }

    fn start_controller(&mut self) {
        self.epochs += 1;
        let policy = Chance(self.rng.fork());
        let (seed, capacity) = (self.rng.u64(..), self.capacity.clone());
        let mut controller = Controller::new(self.epochs, seed, TIMING, capacity, policy);
        for (at, job) in self.jobs.iter().enumerate() {
            let id = JobId(at as u64 + 1);
            if !self.fenced.contains(&id) {
                controller.submit(self.now, id, job.needs.clone()).expect("it fits");
            }
        }
        self.controllers.insert(self.epochs, controller);
    }

    /// The next event, of the agenda or of a timer.
    fn step(&mut self) -> bool {
        let timer = |host: &Host| host.poll_timeout();
        let of_hosts = self.jobs.iter().flat_map(|job| {
            job.hosts
                .iter()
                .enumerate()
                .filter(|(r, _)| !job.dead.contains(r))
                .filter_map(move |(_, h)| timer(h))
        });
        let of_controllers = self.controllers.values().filter_map(Controller::poll_timeout);
        let due = of_hosts.chain(of_controllers).min().unwrap_or(u64::MAX);
        let planned = self.agenda.first().map_or(u64::MAX, |(at, ..)| *at);
        self.now = self.now.max(due.min(planned));
        if self.now >= END {
            return false;
        }
        if planned <= due {
            let (_, _, next) = self.agenda.pop_first().expect("it is planned");
            self.happen(next);
        }
        let now = self.now;
        for controller in self.controllers.values_mut() {
            if controller.poll_timeout().is_some_and(|at| at <= now) {
                controller.handle_timeout(now);
            }
        }
        for job in &mut self.jobs {
            for (rank, host) in job.hosts.iter_mut().enumerate() {
                if !job.dead.contains(&rank) {
                    host.handle_timeout(now);
                }
            }
        }
        self.give_out();
        self.check();
        true
    }

    fn happen(&mut self, next: Next) {
        match next {
            Next::Arrives { epoch, bytes } => self.arrive(epoch, &bytes),
            Next::Execute { job, rank } => self.execute(job, rank),
            Next::Down { epoch, job } => {
                self.fenced.insert(job);
                if let Some(controller) = self.controllers.get_mut(&epoch) {
                    controller.fenced(self.now, job);
                }
            }
            Next::HostDies { job, rank } => {
                self.jobs[job].dead.insert(rank);
            }
            Next::ControllerStarts { old_dies } => {
                if old_dies {
                    self.controllers.clear();
                }
                self.start_controller();
            }
        }
    }

    fn arrive(&mut self, epoch: u64, bytes: &[u8]) {
        let packet = Packet::parse(bytes).expect("nothing changes it on its way");
        match packet.to {
            Party::Controller => {
                if let Some(controller) = self.controllers.get_mut(&epoch) {
                    controller.handle_packet(self.now, &packet);
                }
            }
            Party::Host(rank) => {
                let job = &mut self.jobs[packet.job.0 as usize - 1];
                if !job.dead.contains(&usize::from(rank)) {
                    job.hosts[usize::from(rank)].handle_packet(self.now, &packet);
                }
            }
        }
    }

    /// The execution thread: computes, launches, waits for the others, ends.
    fn execute(&mut self, at: usize, rank: usize) {
        let job = &mut self.jobs[at];
        if job.dead.contains(&rank) || job.hosts[rank].failed().is_some() {
            return;
        }
        if let Some(Launch { index, .. }) = job.hosts[rank].running() {
            if job.hosts.iter().all(|host| host.next() > index) {
                job.hosts[rank].done(index);
            }
        } else if let Ok(launch) = job.hosts[rank].launch() {
            self.witness.in_network += u32::from(launch.in_network);
            let mode = *job.modes.entry(launch.index).or_insert(launch.in_network);
            assert_eq!(mode, launch.in_network, "job {} mixes modes in {}", at + 1, launch.index);
        }
        self.plan(20 * US..300 * US, Next::Execute { job: at, rank });
    }

    fn give_out(&mut self) {
        let mut packets: Vec<(u64, Packet)> = Vec::new();
        let mut down = Vec::new();
        for (epoch, controller) in &mut self.controllers {
            while let Some(packet) = controller.poll_transmit() {
                packets.push((*epoch, packet));
            }
            while let Some(event) = controller.poll_event() {
                let late = self.now > FAULTS_END + 20_000 * US;
                match event {
                    Event::Granted(..) => {
                        self.witness.granted += 1;
                        self.witness.granted_late += u32::from(late);
                    }
                    Event::Aborted(_) => self.witness.aborted += 1,
                    Event::Fence(job, _) => {
                        self.witness.fenced += 1;
                        down.push(Next::Down { epoch: *epoch, job });
                    }
                    Event::Superseded(_) => self.witness.superseded += 1,
                    Event::Free(_) | Event::Left(_) => {}
                }
            }
        }
        for next in down {
            self.plan(0..2000 * US, next);
        }
        // All controllers hear the hosts, because any of them may have the address.
        let epochs: Vec<u64> = self.controllers.keys().copied().collect();
        for job in &mut self.jobs {
            for (rank, host) in job.hosts.iter_mut().enumerate() {
                while let Some(packet) = host.poll_transmit() {
                    if !job.dead.contains(&rank) {
                        self.witness.in_doubt += u32::from(packet.to != Party::Controller);
                        packets.extend(epochs.iter().map(|epoch| (*epoch, packet)));
                    }
                }
            }
        }
        for (epoch, packet) in packets {
            let faulty = self.now < FAULTS_END;
            while !(faulty && self.rng.u8(..) < self.loss) {
                let bytes = packet.emit();
                let within =
                    if self.rng.u8(..) < 230 { 10 * US..60 * US } else { 10 * US..900 * US };
                self.plan(within, Next::Arrives { epoch, bytes });
                if !faulty || self.rng.u8(..) > 30 {
                    break;
                }
            }
        }
    }

    fn check(&self) {
        for (resource, units) in &self.capacity {
            let uses = |(at, job): &(usize, &Job)| {
                !self.fenced.contains(&JobId(*at as u64 + 1))
                    && job.needs.resources.contains(resource)
                    && job.hosts.iter().any(|h| h.running().is_some_and(|l| l.in_network))
            };
            let used = self.jobs.iter().enumerate().filter(uses).count();
            assert!(used <= *units as usize, "resource {resource}: {used} jobs at {}", self.now);
        }
    }

    /// The index of every host of a job that lost none, by job.
    fn progress(&self) -> Vec<Option<u64>> {
        let of = |job: &Job| {
            let whole = job.dead.is_empty() && job.hosts.iter().all(|h| h.failed().is_none());
            whole.then(|| job.hosts.iter().map(Host::next).min().unwrap_or(0))
        };
        self.jobs.iter().map(of).collect()
    }
}

fn run(seed: u64, total: &mut Witness) {
    let mut world = World::new(seed);
    let mut before = None;
    while world.step() {
        if world.now > END - 20_000 * US && before.is_none() {
            before = Some(world.progress());
        }
    }
    let after = world.progress();
    // Nothing happens any more only if every job has a dead host.
    let before = before.unwrap_or_else(|| vec![Some(u64::MAX); after.len()]);
    for (job, (before, after)) in before.iter().zip(&after).enumerate() {
        if let (Some(before), Some(after)) = (before, after) {
            assert!(after > before, "seed {seed}: job {} stands still at {after}", job + 1);
        }
    }
    let whole = |at: usize| after[at].is_some() && !world.fenced.contains(&JobId(at as u64 + 1));
    let some_whole = (0..world.jobs.len()).any(whole);
    assert!(!some_whole || world.witness.granted_late > 0, "seed {seed}: nobody is given anything");
    let of = &world.witness;
    total.granted += of.granted;
    total.granted_late += of.granted_late;
    total.aborted += of.aborted;
    total.fenced += of.fenced;
    total.in_network += of.in_network;
    total.superseded += of.superseded;
    total.in_doubt += of.in_doubt;
}

fn run_all(seeds: std::ops::Range<u64>) {
    let mut total = Witness::default();
    for seed in seeds.clone() {
        let one = std::panic::AssertUnwindSafe(|| run(seed, &mut total));
        if let Err(panic) = std::panic::catch_unwind(one) {
            eprintln!("with seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
    eprintln!("{seeds:?}: {total:?}");
    let counts = [total.granted_late, total.aborted, total.fenced, total.in_network];
    assert!(counts.iter().chain(&[total.superseded, total.in_doubt]).all(|n| *n > 0), "{total:?}");
}

#[test]
fn random_networks_keep_the_rules_and_get_on() {
    run_all(0..100);
}

#[test]
#[ignore = "minutes: make model-check"]
fn thousands_of_random_networks_keep_the_rules_and_get_on() {
    run_all(100..5000);
}
