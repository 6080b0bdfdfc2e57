//! `olaf_sim::job`: a training job in virtual time, around learners that Python runs.

use crate::{arrays, errors};
use numpy::{PyArray1, ToPyArray};
use olaf_engine::{ClusterId, PeerId};
use olaf_host::push_pull::worker::PushError;
use olaf_net::{ClientConfig, ServerConfig, SwitchConfig};
use olaf_sim::Wire;
use olaf_sim::job::{Config, Job, JoinError};
use olaf_wire::{Address, JobId, Session, WorkerId};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Real workers, a real switch and a real server in virtual time.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct VirtualJob {
    job: Mutex<Job>,
    workers: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    seed: u64,
    clusters: Vec<u32>,
    #[serde(default = "nothing_set")]
    worker: Value,
    switch: Value,
    #[serde(default = "nothing_set")]
    server: Value,
    #[serde(default)]
    edge: Way,
    #[serde(default)]
    core: Way,
}

fn nothing_set() -> Value {
    Value::Object(Map::new())
}

/// A link, alike in both directions.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Way {
    delay_ns: u64,
    jitter_ns: u64,
    loss: f64,
}

impl From<&Way> for Wire {
    fn from(way: &Way) -> Self {
        Self {
            delay: Duration::from_nanos(way.delay_ns),
            jitter: Duration::from_nanos(way.jitter_ns),
            loss: way.loss,
            ..Self::default()
        }
    }
}

impl Setup {
    fn config(&self) -> PyResult<Config> {
        let bad = |error: olaf_net::StartError| PyValueError::new_err(error.to_string());
        let switch = SwitchConfig::from_value(self.switch.clone()).map_err(bad)?;
        let server = ServerConfig::from_value(self.server.clone()).map_err(bad)?;
        let worker = ClientConfig::from_value(self.worker.clone()).map_err(bad)?;
        let of = |section: &'static str| {
            move |error: olaf_net::StartError| PyValueError::new_err(format!("{section}.{error}"))
        };
        // The job gives each worker its own.
        let nobody = Address {
            job: JobId(1),
            cluster: ClusterId(0),
            worker: WorkerId(0),
            session: Session(1),
        };
        let mut worker = worker.worker(nobody, PeerId(0), false, None).map_err(of("worker"))?;
        // These links carry datagrams of any length: the workers need not probe the path.
        worker.path.search = false;
        Ok(Config {
            seed: self.seed,
            clusters: self.clusters.iter().copied().map(ClusterId).collect(),
            worker,
            switch: switch.engine().map_err(of("switch"))?,
            server: server.brain().map_err(of("server"))?,
            edge: (&self.edge).into(),
            core: (&self.core).into(),
        })
    }
}

#[pymethods]
impl VirtualJob {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let bad = |text: String| PyValueError::new_err(text);
        let mut json = serde_json::Deserializer::from_str(config);
        let setup: Setup = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| bad(format!("{}: {}", error.path(), error.inner())))?;
        let job = Job::new(&setup.config()?).map_err(|error| bad(error.to_string()))?;
        let workers = job.workers();
        Ok(Self { job: Mutex::new(job), workers })
    }

    #[getter]
    fn now_ns(&self) -> u64 {
        self.job().now_ns()
    }

    /// Join, and let time pass until the worker is in; return the model's version.
    #[pyo3(signature = (worker, weights, timeout_ns, layout=None))]
    fn join(
        &self,
        py: Python<'_>,
        worker: u32,
        weights: &Bound<'_, PyAny>,
        timeout_ns: u64,
        layout: Option<&str>,
    ) -> PyResult<u32> {
        self.check(worker)?;
        let arrays = arrays::readable(weights)?;
        let slices = arrays::slices(&arrays);
        let timeout = Duration::from_nanos(timeout_ns);
        py.detach(|| self.job().join(worker, &slices, layout, timeout)).map_err(|error| {
            let text = format!("worker {worker}: {error}");
            match error {
                JoinError::Model(_) | JoinError::Layout(_) => PyValueError::new_err(text),
                JoinError::TurnedAway(_) => errors::RefusedError::new_err(text),
                JoinError::Unanswered | JoinError::Left => errors::UnreachableError::new_err(text),
            }
        })
    }

    /// Send one update, now; return its sequence number.
    #[pyo3(signature = (worker, parts, *, reward, weight=1.0))]
    fn push(
        &self,
        py: Python<'_>,
        worker: u32,
        parts: &Bound<'_, PyAny>,
        reward: f64,
        weight: f64,
    ) -> PyResult<u32> {
        self.check(worker)?;
        let arrays = arrays::readable(parts)?;
        let slices = arrays::slices(&arrays);
        let pushed = py.detach(|| self.job().push(worker, &slices, reward, weight));
        pushed.map_err(|error: PushError| PyValueError::new_err(error.to_string()))
    }

    /// Copy the newest model that came to the worker into ``parts``, if above ``newer_than``.
    fn pull(
        &self,
        py: Python<'_>,
        worker: u32,
        parts: &Bound<'_, PyAny>,
        newer_than: u32,
    ) -> PyResult<Option<u32>> {
        self.check(worker)?;
        let mut arrays = arrays::writable(parts)?;
        let mut slices = arrays::slices_mut(&mut arrays);
        let pulled = py.detach(|| self.job().pull(worker, &mut slices, newer_than));
        pulled.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// From here on the worker waits for a model above ``newer_than``: see ``run_until``.
    fn wait(&self, worker: u32, newer_than: u32) -> PyResult<()> {
        self.check(worker)?;
        self.job().wait(worker, newer_than);
        Ok(())
    }

    /// Returns true if the worker's newest update is under way: no answer has told its fate yet.
    fn awaits_end(&self, worker: u32) -> PyResult<bool> {
        self.check(worker)?;
        Ok(self.job().awaits_end(worker))
    }

    /// The worker asks for the server's newest model, now.
    fn refresh(&self, worker: u32) -> PyResult<()> {
        self.check(worker)?;
        self.job().refresh(worker);
        Ok(())
    }

    /// From here on the worker waits for what it asked for: see ``run_until``.
    fn wait_refreshed(&self, worker: u32) -> PyResult<()> {
        self.check(worker)?;
        self.job().wait_refreshed(worker);
        Ok(())
    }

    /// The worker waits no more.
    fn end_wait(&self, worker: u32) {
        self.job().end_wait(worker);
    }

    /// Returns true if transmission control holds back what the worker pushed.
    fn holding(&self, worker: u32) -> PyResult<bool> {
        self.check(worker)?;
        Ok(self.job().is_holding(worker))
    }

    /// Let time pass, to ``ns`` or until workers that wait have their model; these workers.
    fn run_until(&self, py: Python<'_>, ns: u64) -> Vec<u32> {
        py.detach(|| self.job().run_until(ns))
    }

    /// The server's model: version and parameters, or None.
    fn model<'py>(&self, py: Python<'py>) -> Option<(u32, Bound<'py, PyArray1<f32>>)> {
        let (version, parameters) = self.job().model()?;
        Some((version, parameters.to_pyarray(py)))
    }

    /// JSON: ``now_ns``, ``server``, ``switch``, ``workers``, ``links``.
    fn stats(&self) -> String {
        serde_json::to_string(&self.job().statistics()).expect("statistics are plain data")
    }
}

impl VirtualJob {
    fn job(&self) -> MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, worker: u32) -> PyResult<()> {
        if worker < self.workers {
            return Ok(());
        }
        let workers = self.workers;
        let text = format!("worker = {worker}: must be below {workers}, the number of workers");
        Err(PyIndexError::new_err(text))
    }
}
