//! All jobs of a scenario together, from the first event to the last.

use super::fabric::{Alarm, Fabric, Step, What};
use super::job::{Job, Stage};
use super::outcome::{JobOutcome, LinkOutcome, Outcome};
use super::party::{Helped, Party};
use super::placing::{Placed, place};
use super::spec::{Engine, Scenario};
use super::work::time_to_compute;
use crate::study::scenario::SpecError;
use core::time::Duration;
use olaf_engine::{Instant, PeerId};
use olaf_host::collective::{Label, Operation, Reduction, Standing};
use olaf_wire::reduce::LaneType;

/// Runs a scenario until all jobs have ended. `on_iteration` is told how many iterations of workers have ended.
///
/// # Errors
/// What cannot be in the scenario.
///
/// # Panics
/// When a frame has no fate: a mistake of this program.
pub fn run(scenario: &Scenario, on_iteration: &mut dyn FnMut(u64)) -> Result<Outcome, SpecError> {
    scenario.check()?;
    let Placed { fabric, workers } = place(scenario)?;
    let jobs = scenario.jobs.iter().zip(workers);
    let jobs: Vec<Job> = jobs.map(|(spec, workers)| Job::new(spec, workers)).collect();
    let mut run = Run::new(scenario, fabric, jobs);
    for job in 0..scenario.jobs.len() {
        let alarm = Alarm { job, worker: 0, what: What::Begin };
        run.fabric.tell_at(Instant(scenario.jobs[job].begin_ns), alarm);
    }
    let mut told = 0;
    while run.jobs.iter().any(|job| !job.is_over()) {
        let step = run.fabric.step();
        if run.fabric.now().0 > scenario.limit_ns {
            run.fail_all("it had not ended at the scenario's limit");
        }
        match step {
            Step::Over => run.fail_all("no party had anything to do any more"),
            Step::Forwarded => {}
            Step::Served(party) => run.served(party),
            Step::Alarm(alarm) => run.alarm(alarm),
        }
        run.take_done();
        if run.ended > told {
            told = run.ended;
            on_iteration(told);
        }
    }
    run.fabric.account().unwrap_or_else(|link| panic!("a frame has no fate: {link}"));
    Ok(run.outcome())
}

struct Run<'a> {
    scenario: &'a Scenario,
    fabric: Fabric,
    jobs: Vec<Job>,
    /// By party: its job, and its number in it.
    members: Vec<Option<(usize, usize)>>,
    ended: u64,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, fabric: Fabric, jobs: Vec<Job>) -> Self {
        let mut members = vec![None; fabric.next_id().0 as usize];
        for (at, job) in jobs.iter().enumerate() {
            for (worker, party) in job.workers.iter().enumerate() {
                members[party.0 as usize] = Some((at, worker));
            }
        }
        Self { scenario, fabric, jobs, members, ended: 0 }
    }

    fn fail_all(&mut self, why: &str) {
        let now = self.fabric.now();
        self.jobs.iter_mut().for_each(|job| job.fail(now, why.into()));
    }

    fn alarm(&mut self, Alarm { job, worker, what }: Alarm) {
        if self.jobs[job].is_over() {
            return;
        }
        match what {
            What::Begin => self.begin(job),
            What::Tensor(tensor) => self.tensor(job, worker, tensor),
            What::Updated => self.updated(job, worker),
            What::Ideal(_) => {
                if self.jobs[job].take_ideal(self.fabric.now(), worker) {
                    self.update(job, worker);
                }
            }
        }
    }

    fn begin(&mut self, job: usize) {
        self.jobs[job].stage = Stage::Joins(0);
        if self.jobs[job].spec.engine == Engine::Ideal {
            self.start(job);
            return;
        }
        for party in self.jobs[job].workers.clone() {
            self.fabric.with(party, |party, now| party.worker().join(now));
            self.served(party);
        }
    }

    /// A party had something to do: it may have joined.
    fn served(&mut self, party: PeerId) {
        let Some((job, worker)) = self.members[party.0 as usize] else { return };
        let Stage::Joins(joined) = self.jobs[job].stage else { return };
        if self.jobs[job].members[worker].has_joined {
            return;
        }
        let Party::Worker(of) = self.fabric.party(party) else { return };
        match of.standing() {
            Standing::In { .. } => {
                self.jobs[job].members[worker].has_joined = true;
                self.jobs[job].stage = Stage::Joins(joined + 1);
                if joined + 1 == self.jobs[job].spec.workers {
                    self.start(job);
                }
            }
            Standing::Refused(code) => {
                let why = format!("the switch turned worker {worker} away: {}", code.name());
                self.jobs[job].fail(self.fabric.now(), why);
            }
            _ => {}
        }
    }

    fn start(&mut self, job: usize) {
        self.jobs[job].start(self.fabric.now());
        for worker in 0..self.jobs[job].members.len() {
            self.compute(job, worker);
        }
    }

    /// A worker begins an iteration: its tensors become ready in the last part of the computation.
    fn compute(&mut self, job: usize, worker: usize) {
        let now = self.fabric.now();
        let of = &mut self.jobs[job];
        of.begin_iteration(now, worker);
        let iteration = of.members[worker].iteration;
        let took = time_to_compute(self.scenario.seed, job, &of.spec, worker, iteration);
        let (tensors, overlap) = (of.spec.tensors, of.spec.overlap);
        for tensor in 0..tensors {
            let left = f64::from(tensors - 1 - tensor) / f64::from(tensors);
            let ready = now + took.mul_f64(1.0 - overlap * left);
            let alarm = Alarm { job, worker, what: What::Tensor(tensor as usize) };
            self.fabric.tell_at(ready, alarm);
        }
    }

    fn tensor(&mut self, job: usize, worker: usize, tensor: usize) {
        let now = self.fabric.now();
        if self.jobs[job].spec.engine == Engine::Ideal {
            self.ideal_tensor(job, worker, tensor);
            return;
        }
        let buffer = self.jobs[job].lanes(now, worker, tensor);
        // A job with a deadline goes on without stragglers.
        let accepts_partial = self.jobs[job].spec.accepts_partial();
        let (lane_type, reduction) = (LaneType::F32, Reduction::Sum);
        let label = Label::default();
        let operation = Operation { lane_type, reduction, buffer, accepts_partial, label };
        let party = self.jobs[job].workers[worker];
        match self.fabric.with(party, |party, now| party.worker().begin(now, operation)) {
            Ok(id) => self.jobs[job].opened(worker, id, tensor),
            Err((failure, _)) => {
                let why = format!("worker {worker} could not begin a sum: {failure:?}");
                self.jobs[job].fail(now, why);
            }
        }
    }

    /// The slowest worker begins with the tensor: its bytes cross the slowest link of a host.
    fn ideal_tensor(&mut self, job: usize, worker: usize, tensor: usize) {
        let now = self.fabric.now();
        let of = &mut self.jobs[job];
        of.ready(now, worker);
        let key = (of.members[worker].iteration, tensor);
        let begun = of.begun.entry(key).or_default();
        *begun += 1;
        if *begun < of.spec.workers {
            return;
        }
        of.begun.remove(&key);
        let bits = of.spec.tensor(tensor).len() as u128 * 8;
        let ns = bits * 1_000_000_000 / u128::from(self.scenario.network.rate_bps);
        let took = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        of.free_at = of.free_at.max(now) + took;
        for worker in 0..of.members.len() {
            let alarm = Alarm { job, worker, what: What::Ideal(tensor) };
            self.fabric.tell_at(of.free_at, alarm);
        }
    }

    fn take_done(&mut self) {
        while let Some((party, done)) = self.fabric.poll_done() {
            let (job, worker) = self.members[party.0 as usize].expect("only workers sum");
            let now = self.fabric.now();
            if !self.jobs[job].is_over() && self.jobs[job].take(now, worker, done) {
                self.update(job, worker);
            }
        }
    }

    fn update(&mut self, job: usize, worker: usize) {
        let at = self.fabric.now() + Duration::from_nanos(self.jobs[job].spec.update_ns);
        self.fabric.tell_at(at, Alarm { job, worker, what: What::Updated });
    }

    fn updated(&mut self, job: usize, worker: usize) {
        self.ended += 1;
        let goes_on = self.jobs[job].end_iteration(self.fabric.now(), worker);
        if goes_on {
            self.compute(job, worker);
        } else if self.jobs[job].is_over() {
            // The others have their last sums: nobody waits for this job any more.
            for party in self.jobs[job].workers.clone() {
                self.fabric.with(party, |party, now| party.worker().leave(now));
            }
        }
    }

    fn outcome(self) -> Outcome {
        let now = self.fabric.now();
        let mut helped = Helped::default();
        for party in self.fabric.parties() {
            if let Party::Helper(helper) = party {
                let of = helper.helped();
                helped.at_server += of.at_server;
                helped.collisions += of.collisions;
            }
        }
        let links = links(&self.fabric, now);
        let events = self.fabric.events();
        let fabric = &self.fabric;
        let jobs = self.jobs.into_iter().map(|job| {
            let (workers, engine) = (job.workers.clone(), job.spec.engine);
            let mut outcome = job.outcome();
            for party in workers {
                count(fabric, party, &mut outcome);
            }
            if engine == Engine::Atp {
                (outcome.at_server, outcome.collisions) = (helped.at_server, helped.collisions);
            }
            outcome
        });
        let jobs = jobs.collect();
        Outcome { seed: self.scenario.seed, jobs, links, end_ns: now.0, events }
    }
}

fn count(fabric: &Fabric, party: PeerId, outcome: &mut JobOutcome) {
    if let Party::Worker(worker) = fabric.party(party) {
        let of = worker.worked(fabric.now());
        outcome.packets += of.sent;
        outcome.resent += of.resent;
    }
}

fn links(fabric: &Fabric, now: Instant) -> Vec<LinkOutcome> {
    let all = fabric.links().iter().zip(fabric.on_the_way());
    // A host's way to itself is no link.
    let all = all.filter(|(link, _)| link.name.contains(" to ") && link.counts.offered > 0);
    let outcome = all.map(|(link, on_the_way)| {
        let of = link.counts;
        let rate_bps = link.config.rate.get();
        let busy_ns = of.bytes as f64 * 8e9 / rate_bps as f64;
        LinkOutcome {
            name: link.name.clone(),
            rate_bps,
            offered: of.offered,
            delivered: of.delivered,
            lost: of.lost,
            dropped: of.dropped,
            on_the_way,
            marked: of.marked,
            bytes: of.bytes,
            busy: if now.0 > 0 { busy_ns / now.0 as f64 } else { 0.0 },
            longest_wait_ns: u64::try_from(of.longest_wait.as_nanos()).unwrap_or(u64::MAX),
        }
    });
    outcome.collect()
}
