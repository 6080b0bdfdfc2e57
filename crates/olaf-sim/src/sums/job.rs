//! The iterations of a job: what each worker computes, begins and gets, and when.

use super::outcome::{IterationOutcome, JobOutcome};
use super::spec::JobSpec;
use olaf_engine::{Instant, PeerId};
use olaf_host::collective::{Buffer, Done, Failure, OperationId, Sum};
use std::collections::BTreeMap;

/// A job at work.
pub(super) struct Job {
    pub(super) spec: JobSpec,
    pub(super) workers: Vec<PeerId>,
    pub(super) members: Vec<Member>,
    pub(super) stage: Stage,
    /// The sum of all gradients.
    expected: Vec<u8>,
    /// Iterations that have not ended at all workers.
    open: BTreeMap<u32, Vec<Times>>,
    ended: Vec<IterationOutcome>,
    begin: Instant,
    end: Instant,
    totals: Totals,
    exact: u64,
    degraded: u64,
    degraded_in: BTreeMap<u32, u32>,
    /// For an ideal job: workers that have begun with a tensor of an iteration.
    pub(super) begun: BTreeMap<(u32, usize), u32>,
    /// For an ideal job: its network is free from then on.
    pub(super) free_at: Instant,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its time has not come.
    Waits,
    /// That many workers have joined.
    Joins(u32),
    Runs,
    Ended,
    Failed(String),
}

/// A worker.
pub(super) struct Member {
    pub(super) iteration: u32,
    gradient: Vec<u8>,
    pub(super) has_joined: bool,
    /// Operations that have begun and not ended.
    open: Vec<(OperationId, usize)>,
    /// Buffers of ended operations, by tensor.
    spare: Vec<Option<Box<dyn Buffer>>>,
    sums: u32,
    times: Times,
}

/// When a worker went through an iteration.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    begin: Instant,
    /// Its last tensor was ready.
    ready: Instant,
    /// It had the last sum.
    summed: Instant,
    end: Instant,
}

/// Sums over workers and iterations, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    compute: f64,
    wait: f64,
    aggregation: f64,
    update: f64,
    count: f64,
}

impl Job {
    pub(super) fn new(spec: &JobSpec, workers: Vec<PeerId>) -> Self {
        let lanes = spec.lanes();
        let member = |worker| Member {
            iteration: 0,
            gradient: (0..lanes).flat_map(|at| lane(worker, at).to_le_bytes()).collect(),
            has_joined: false,
            open: Vec::new(),
            spare: (0..spec.tensors).map(|_| None).collect(),
            sums: 0,
            times: Times::default(),
        };
        let sum = |at: usize| (0..spec.workers).map(|worker| lane(worker, at)).sum::<f32>();
        Self {
            spec: spec.clone(),
            workers,
            members: (0..spec.workers).map(member).collect(),
            stage: Stage::Waits,
            expected: (0..lanes).flat_map(|at| sum(at).to_le_bytes()).collect(),
            open: BTreeMap::new(),
            ended: Vec::new(),
            begin: Instant::default(),
            end: Instant::default(),
            totals: Totals::default(),
            exact: 0,
            degraded: 0,
            degraded_in: BTreeMap::new(),
            begun: BTreeMap::new(),
            free_at: Instant::default(),
        }
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Ended | Stage::Failed(_))
    }

    pub(super) fn fail(&mut self, now: Instant, why: String) {
        if !self.is_over() {
            self.stage = Stage::Failed(why);
            self.end = now;
        }
    }

    /// All workers have joined.
    pub(super) fn start(&mut self, now: Instant) {
        self.stage = Stage::Runs;
        self.begin = now;
    }

    /// A worker begins to compute.
    pub(super) fn begin_iteration(&mut self, now: Instant, worker: usize) {
        let member = &mut self.members[worker];
        member.times = Times { begin: now, ..Times::default() };
        member.sums = 0;
    }

    /// The lanes of a tensor that is ready.
    pub(super) fn lanes(&mut self, now: Instant, worker: usize, tensor: usize) -> Box<dyn Buffer> {
        let range = self.spec.tensor(tensor);
        let member = &mut self.members[worker];
        member.times.ready = now;
        let lanes = &member.gradient[range];
        match member.spare[tensor].take() {
            Some(mut spare) => {
                spare.bytes_mut().copy_from_slice(lanes);
                spare
            }
            None => Box::new(lanes.to_vec()),
        }
    }

    /// A tensor of an ideal job is ready: it has no lanes.
    pub(super) fn ready(&mut self, now: Instant, worker: usize) {
        self.members[worker].times.ready = now;
    }

    pub(super) fn opened(&mut self, worker: usize, id: OperationId, tensor: usize) {
        self.members[worker].open.push((id, tensor));
    }

    /// An operation has ended. Returns true if it was the worker's last one of the iteration.
    pub(super) fn take(&mut self, now: Instant, worker: usize, done: Done) -> bool {
        let member = &mut self.members[worker];
        let iteration = member.iteration;
        let Some(at) = member.open.iter().position(|(id, _)| *id == done.id) else { return false };
        let (_, tensor) = member.open.swap_remove(at);
        match done.outcome {
            Ok(Sum { contributors, expected, .. }) if contributors < expected => {
                self.degraded += 1;
                *self.degraded_in.entry(iteration).or_default() += 1;
            }
            Ok(_) if done.buffer.bytes() == &self.expected[self.spec.tensor(tensor)] => {
                self.exact += 1;
            }
            Ok(_) => {
                let why = format!("worker {worker} got a wrong sum in iteration {iteration}");
                self.fail(now, why);
                return false;
            }
            Err(failure) => {
                let why = format!("worker {worker}, iteration {iteration}: {}", told(failure));
                self.fail(now, why);
                return false;
            }
        }
        self.members[worker].spare[tensor] = Some(done.buffer);
        self.summed(now, worker)
    }

    /// A worker of an ideal job has a sum. Returns true if it was the last one of the iteration.
    pub(super) fn take_ideal(&mut self, now: Instant, worker: usize) -> bool {
        self.exact += 1;
        self.summed(now, worker)
    }

    fn summed(&mut self, now: Instant, worker: usize) -> bool {
        let member = &mut self.members[worker];
        member.sums += 1;
        member.times.summed = now;
        member.sums == self.spec.tensors
    }

    /// A worker has updated its model. Returns true if it goes on.
    pub(super) fn end_iteration(&mut self, now: Instant, worker: usize) -> bool {
        let member = &mut self.members[worker];
        member.times.end = now;
        let (iteration, times) = (member.iteration, member.times);
        member.iteration += 1;
        let goes_on = member.iteration < self.spec.iterations;
        let all = self.open.entry(iteration).or_default();
        all.push(times);
        if all.len() == self.members.len() {
            self.close(iteration);
        }
        if self.members.iter().all(|member| member.iteration == self.spec.iterations) {
            self.stage = Stage::Ended;
            self.end = now;
        }
        goes_on
    }

    /// An iteration has ended at all workers.
    fn close(&mut self, iteration: u32) {
        let all = self.open.remove(&iteration).unwrap_or_default();
        let last = all.iter().map(|times| times.ready).max().unwrap_or_default();
        let mut of = Totals::default();
        for times in &all {
            // A sum without this worker, or without another one, does not wait for the last one.
            let waited = last.min(times.summed).max(times.ready);
            of.compute += ns(times.begin, times.ready);
            of.wait += ns(times.ready, waited);
            of.aggregation += ns(waited, times.summed);
            of.update += ns(times.summed, times.end);
            of.count += 1.0;
        }
        self.totals.compute += of.compute;
        self.totals.wait += of.wait;
        self.totals.aggregation += of.aggregation;
        self.totals.update += of.update;
        self.totals.count += of.count;
        self.ended.push(IterationOutcome {
            begin_ns: all.iter().map(|times| times.begin.0).min().unwrap_or(0),
            end_ns: all.iter().map(|times| times.end.0).max().unwrap_or(0),
            compute_ns: of.compute / of.count,
            wait_ns: of.wait / of.count,
            aggregation_ns: of.aggregation / of.count,
            degraded: self.degraded_in.remove(&iteration).unwrap_or(0),
        });
    }

    /// What came of it, apart from what its parties counted.
    pub(super) fn outcome(self) -> JobOutcome {
        let Totals { compute, wait, aggregation, update, count } = self.totals;
        let mean = |total: f64| if count > 0.0 { total / count } else { 0.0 };
        let in_network = mean(wait + aggregation);
        let bits = self.spec.model_bytes as f64 * 8.0;
        JobOutcome {
            name: self.spec.name,
            engine: self.spec.engine.name(),
            workers: self.spec.workers,
            model_bytes: self.spec.model_bytes,
            failed: match self.stage {
                Stage::Failed(why) => Some(why),
                _ => None,
            },
            begin_ns: self.begin.0,
            end_ns: self.end.0,
            iterations: self.ended,
            iteration_ns: mean(compute + wait + aggregation + update),
            compute_ns: mean(compute),
            wait_ns: mean(wait),
            aggregation_ns: mean(aggregation),
            update_ns: mean(update),
            goodput_bps: (in_network > 0.0).then(|| bits / in_network * 1e9),
            packets: 0,
            resent: 0,
            exact: self.exact,
            degraded: self.degraded,
            at_server: 0,
            collisions: 0,
        }
    }
}

fn ns(from: Instant, to: Instant) -> f64 {
    to.since(from).as_nanos() as f64
}

/// A lane of a worker's gradient. Sums of whole 64ths are exact in every order, in f32 and in the integers of ATP and
/// Trio-ML.
fn lane(worker: u32, at: usize) -> f32 {
    let mixed = (at as u32).wrapping_mul(0x9e37_79b9) ^ worker.wrapping_mul(0x85eb_ca6b);
    f32::from((mixed.wrapping_mul(0xc2b2_ae35) >> 30) as u8) / 64.0 - 1.0 / 32.0
}

fn told(failure: Failure) -> String {
    match failure {
        Failure::SwitchSilent => "the switch was not heard".into(),
        Failure::Closed { reason, .. } => format!("the generation ended: {reason:?}"),
        Failure::BadOperation(why) => why.into(),
        other => format!("{other:?}"),
    }
}
