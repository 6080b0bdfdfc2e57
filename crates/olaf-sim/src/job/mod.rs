//! A training job in virtual time: real workers, one real switch, one real server, and links.
//!
//! The learners are the caller's: it says when an update is ready, lets time pass, and hears which
//! of the workers that wait have their model. The same configuration, seed and calls give the same
//! result to the bit.

mod config;
mod error;
mod statistics;

pub use config::Config;
pub use error::{JoinError, ModelSize, SetupError};
pub use statistics::Statistics;

use crate::network::Network;
use core::time::Duration;
use olaf_engine::switch::native::Switch;
use olaf_engine::{Instant, PeerId};
use olaf_host::Server;
use olaf_host::push_pull::worker::{PushError, Standing, Worker};
use olaf_wire::JobId;
use std::collections::BTreeMap;

/// The only job of this network.
const JOB: JobId = JobId(1);
const SWITCH: PeerId = PeerId(1 << 31);
const SERVER: PeerId = PeerId((1 << 31) + 1);
/// Times of 0 mean "never" here and there: the network's clock begins later, the job's at 0.
const BEGIN: Instant = Instant(1_000_000_000);

/// The job.
pub struct Job {
    network: Network,
    workers: u32,
    /// Workers that wait for a model.
    waits: BTreeMap<u32, Wait>,
}

/// Which model a worker waits for.
enum Wait {
    /// One above this version.
    Above(u32),
    /// What it asked for by [`Job::refresh`].
    Refreshed,
}

impl Job {
    /// The parties at their places, and the links between them; no worker has joined.
    ///
    /// # Errors
    /// The key that cannot be.
    pub fn new(config: &Config) -> Result<Self, SetupError> {
        let mut network = Network::new(config.seed, BEGIN).without_records();
        let workers = config.place(&mut network)?;
        Ok(Self { network, workers, waits: BTreeMap::new() })
    }

    /// The workers, numbered from 0.
    #[must_use]
    pub const fn workers(&self) -> u32 {
        self.workers
    }

    /// Nanoseconds since the job began.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.network.now().0 - BEGIN.0
    }

    /// Joins, offering `parts` as the model to begin with, and lets time pass until the worker is in
    /// and has the job's model; its version. `layout` is that of [`Worker::describe`].
    ///
    /// # Errors
    /// See [`JoinError`].
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn join(
        &mut self,
        worker: u32,
        parts: &[&[f32]],
        layout: Option<&str>,
        timeout: Duration,
    ) -> Result<u32, JoinError> {
        let deadline = self.network.now() + timeout;
        self.with(worker, |worker, now| {
            if let Some(layout) = layout {
                let parameters = parts.iter().map(|part| part.len()).sum::<usize>();
                let parameters = u32::try_from(parameters).unwrap_or(u32::MAX);
                worker.describe(layout, parameters).map_err(JoinError::Layout)?;
            }
            worker.join(now, parts).map_err(JoinError::Model)
        })?;
        loop {
            match self.worker(worker).standing() {
                Standing::Joined => {
                    return Ok(self.worker(worker).model().map_or(0, |model| model.version));
                }
                // These pass when the owner of the id is forgotten: the worker tries on.
                Standing::Joining => {}
                Standing::TurnedAway(code) if code.may_pass() => {}
                Standing::TurnedAway(code) => return Err(JoinError::TurnedAway(code)),
                Standing::Outside | Standing::Left => return Err(JoinError::Left),
            }
            if !self.network.step(deadline) {
                return Err(JoinError::Unanswered);
            }
        }
    }

    /// Sends one update, now; its sequence number. See [`Worker::push`].
    ///
    /// # Errors
    /// See [`PushError`]; nothing is sent then.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn push(
        &mut self,
        worker: u32,
        parts: &[&[f32]],
        reward: f64,
        weight: f64,
    ) -> Result<u32, PushError> {
        self.with(worker, |worker, now| worker.push(now, parts, reward, weight))
    }

    /// Copies the newest model that has come to a worker into `parts`, if it is above `newer_than`.
    ///
    /// # Errors
    /// `parts` are not of the model's size.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn pull(
        &mut self,
        worker: u32,
        parts: &mut [&mut [f32]],
        newer_than: u32,
    ) -> Result<Option<u32>, ModelSize> {
        self.with(worker, |worker, _| {
            let Some(model) = worker.model().filter(|model| model.version > newer_than) else {
                return Ok(None);
            };
            let have = parts.iter().map(|part| part.len()).sum();
            if model.lanes.len() != have {
                return Err(ModelSize { have, need: model.lanes.len() });
            }
            let mut rest = model.lanes.as_slice();
            for part in parts {
                let (now, later) = rest.split_at(part.len());
                part.copy_from_slice(now);
                rest = later;
            }
            let version = model.version;
            worker.taken(version);
            Ok(Some(version))
        })
    }

    /// From here on the worker waits for a model above `newer_than`: [`Self::run_until`] ends when
    /// it comes.
    pub fn wait(&mut self, worker: u32, newer_than: u32) {
        self.waits.insert(worker, Wait::Above(newer_than));
    }

    /// Returns true if an update of the worker is under way. See [`Worker::awaits_end`].
    ///
    /// # Panics
    /// When there is no such worker.
    #[must_use]
    pub fn awaits_end(&self, worker: u32) -> bool {
        self.worker(worker).awaits_end()
    }

    /// The worker asks for the server's newest model, now. See [`Worker::refresh`].
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn refresh(&mut self, worker: u32) {
        self.with(worker, |worker, _| worker.refresh());
    }

    /// From here on the worker waits for what it asked for: [`Self::run_until`] ends when it comes.
    pub fn wait_refreshed(&mut self, worker: u32) {
        self.waits.insert(worker, Wait::Refreshed);
    }

    /// The worker waits no more.
    pub fn end_wait(&mut self, worker: u32) {
        self.waits.remove(&worker);
    }

    /// Returns true if transmission control holds back what the worker pushed, so that no answer
    /// comes.
    ///
    /// # Panics
    /// When there is no such worker.
    #[must_use]
    pub fn is_holding(&self, worker: u32) -> bool {
        self.worker(worker).statistics(self.network.now()).held > 0
    }

    /// Lets time pass: to `then_ns`, or until workers that wait have their model. Returns these
    /// workers; they wait no more.
    pub fn run_until(&mut self, then_ns: u64) -> Vec<u32> {
        let then = Instant(BEGIN.0.saturating_add(then_ns));
        loop {
            let answered = self.answered();
            if !answered.is_empty() || !self.network.step(then) {
                return answered;
            }
        }
    }

    /// The server's model: its version and its parameters; nothing before there is one.
    ///
    /// # Panics
    /// Never: the server lives as long as the job.
    #[must_use]
    pub fn model(&self) -> Option<(u32, Vec<f32>)> {
        let (version, segments) = self.server().model(JOB)?;
        Some((version, segments.flatten().copied().collect()))
    }

    /// Everything that the parties and the links counted so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        statistics::of(self)
    }

    fn answered(&mut self) -> Vec<u32> {
        let over = |(id, wait): (&u32, &Wait)| {
            let worker = self.worker(*id);
            let is_over = match wait {
                Wait::Above(version) => worker.model().is_some_and(|m| m.version > *version),
                Wait::Refreshed => !worker.is_refreshing(),
            };
            is_over.then_some(*id)
        };
        let answered: Vec<u32> = self.waits.iter().filter_map(over).collect();
        answered.iter().for_each(|worker| self.end_wait(*worker));
        answered
    }

    fn with<T>(&mut self, worker: u32, act: impl FnOnce(&mut Worker, Instant) -> T) -> T {
        let node = self.network.with(place(worker), act);
        node.expect("the caller names workers of this job, who live as long as it does")
    }

    fn worker(&self, worker: u32) -> &Worker {
        let node = self.network.node::<Worker>(place(worker));
        node.expect("the caller names workers of this job, who live as long as it does")
    }

    fn switch(&self) -> &Switch {
        let node = self.network.node::<Switch>(SWITCH);
        node.expect("the switch lives as long as the job")
    }

    fn server(&self) -> &Server {
        let node = self.network.node::<Server>(SERVER);
        node.expect("the server lives as long as the job")
    }
}

const fn place(worker: u32) -> PeerId {
    PeerId(worker)
}
