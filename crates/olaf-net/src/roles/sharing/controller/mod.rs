//! The sharing controller as a process runs it: the engine, its driver and its caller.

mod engine;
mod shown;
mod told;

use super::config::{SharingConfig, resolve, steps};
use crate::clock;
use crate::driver::{Driver, Running};
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::keys;
use crate::roles::exposure;
use crate::watch::{Setting, Watch};
use engine::ControllerEngine;
use olaf_engine::Wiring;
use olaf_sched::JobId;
use olaf_sched::protocol::{Controller, Foresight, Needs, Sharer};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use told::Told;

/// See [`SharingConfig`]. It works in a thread of its own from the first [`run`](Self::run) on.
pub struct SharingController {
    running: Arc<Running<ControllerEngine>>,
    told: Arc<Told>,
    watch: Option<Watch>,
}

impl SharingController {
    /// Takes its port, and asks every job what it holds when it first runs.
    ///
    /// # Errors
    /// What of the set-up cannot be, or why the port cannot be had.
    pub fn bind(config: &SharingConfig) -> Result<Self, StartError> {
        let listen = resolve("listen", &config.listen)?;
        let keys = keys::secrets("key_file", config.key_file.as_slice(), &[], &[])?;
        let is_secret = keys::are_secret(config.key_file.as_deref().into_iter(), &[]);
        exposure::check("controller", "listen", listen, is_secret || config.insecure)?;
        let socket = Socket::bind(listen)?;
        let capacity = config.capacity.clone();
        let policy = Foresight::new(config.policy, config.ahead_ns, capacity.clone());
        let mut controller =
            Controller::new(config.epoch.max(1), config.seed, config.timing(), capacity, policy);
        let (mut peers, mut hosts) = (Peers::new(), BTreeMap::new());
        for (at, job) in config.jobs.iter().enumerate() {
            let (key, id) = (format!("jobs[{at}]"), JobId(job.job));
            let steps = steps(&key, &job.pattern, &config.network, job.hosts.len())?;
            for (rank, host) in (0..).zip(&job.hosts) {
                let address = resolve(&format!("{key}.hosts[{rank}]"), host)?;
                hosts.insert((id, rank), peers.fix(address));
            }
            let hosts = u16::try_from(job.hosts.len()).expect("steps() checked it");
            let (resources, units) = (job.resources.clone(), job.units);
            let needs = Needs { hosts, resources: resources.clone(), units };
            let sharer = Sharer { steps, hosts: hosts.into(), count: job.steps, resources, units };
            controller.policy_mut().add(id, sharer);
            let bad = |error| StartError::Config(format!("{key} (job {}): {error}", job.job));
            controller.submit(clock::now().0, id, needs).map_err(bad)?;
        }
        let told = Arc::new(Told::default());
        let engine = ControllerEngine::new(controller, hosts.clone(), told.clone());
        let above: Vec<_> = hosts.values().copied().collect();
        let driver = Driver::new("sharing controller", engine, Wiring::end(), peers, socket);
        // The controller speaks first: a new one asks every host what it holds.
        let driver = driver.behind_files(keys).beginning_with(&above);
        let watch = Watch::bind(Setting {
            metrics: config.metrics.as_deref(),
            metrics_token_file: config.metrics_token_file.as_deref(),
        })?;
        Ok(Self { running: Arc::new(Running::new(driver, None)), told, watch })
    }

    /// Where the hosts reach it.
    #[must_use]
    pub fn address(&self) -> &str {
        self.running.address()
    }

    /// The address that it serves metrics on, if it does.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.watch.as_ref().map(Watch::address)
    }

    /// Works until `time` has passed, or until something happened that the caller must act on.
    /// Returns what happened, as JSON lines.
    ///
    /// # Errors
    /// When its thread cannot start, or has died.
    pub fn run(&self, time: Duration) -> io::Result<Vec<String>> {
        self.start().map_err(|error| io::Error::other(error.to_string()))?;
        self.told.wait(time);
        // A thread that has died tells nothing more; this says why.
        self.running.ask(|_| ()).map_err(io::Error::other)?;
        Ok(self.told.take())
    }

    fn start(&self) -> Result<(), StartError> {
        self.running.start()?;
        let Some(watch) = &self.watch else { return Ok(()) };
        let running = self.running.clone();
        watch.start(Box::new(move || running.ask(Driver::status)))
    }

    /// What it did so far, as JSON: rounds, and how late its timers were.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn statistics(&self) -> Result<String, AskError> {
        let statistics = self.running.ask(|driver| driver.engine.statistics())?;
        Ok(serde_json::to_string(&statistics).expect("statistics are plain data"))
    }

    /// The switches refuse the job from now on.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn fenced(&self, job: u64) -> Result<(), AskError> {
        self.running.ask(move |driver| {
            driver.engine.controller().fenced(clock::now().0, JobId(job));
        })
    }

    /// The job has ended or failed: its tree is to be torn down.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn fail(&self, job: u64) -> Result<(), AskError> {
        self.running.ask(move |driver| driver.engine.controller().fail(JobId(job)))
    }
}

impl Drop for SharingController {
    fn drop(&mut self) {
        self.watch.iter().for_each(Watch::stop);
        // Whoever still asks for statistics holds no port.
        let _ = self.running.stop();
    }
}

#[cfg(test)]
mod tests;
