//! The processes of the sharing protocol: `olaf_net::SharingController` and `SharingHost`.

use crate::errors;
use olaf_net::{SharingConfig, SharingHostConfig};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The sharing controller (MINA §IV-B); works while `run` is called.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct SharingController(Mutex<olaf_net::SharingController>);

#[pymethods]
impl SharingController {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config = SharingConfig::from_json(config).map_err(errors::start)?;
        let bound = py.detach(|| olaf_net::SharingController::bind(&config));
        bound.map(|controller| Self(Mutex::new(controller))).map_err(errors::start)
    }

    #[getter]
    fn address(&self) -> String {
        self.controller().address().to_owned()
    }

    /// Work for so long, or until something must be acted on: what happened, as JSON.
    fn run(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Vec<String>> {
        let time = Duration::try_from_secs_f64(timeout_s.max(0.0)).unwrap_or(Duration::MAX);
        Ok(py.detach(|| self.controller().run(time))?)
    }

    /// What it did so far, as JSON.
    fn statistics(&self) -> String {
        self.controller().statistics()
    }

    /// The switches refuse the job from now on.
    fn fenced(&self, job: u64) {
        self.controller().fenced(job);
    }

    /// The job has ended or failed.
    fn fail(&self, job: u64) {
        self.controller().fail(job);
    }
}

impl SharingController {
    fn controller(&self) -> MutexGuard<'_, olaf_net::SharingController> {
        self.0.lock().expect("a run that broke is not gone on from")
    }
}

/// One host of a job: plays its steps in real time, in threads of its own.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct SharingHost(olaf_net::SharingHost);

#[pymethods]
impl SharingHost {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config = SharingHostConfig::from_json(config).map_err(errors::start)?;
        py.detach(|| olaf_net::SharingHost::start(&config)).map(Self).map_err(errors::start)
    }

    /// Has it played everything, or failed?
    fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// End it; what it did, as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let said = py.detach(|| self.0.finish()).map_err(errors::ask("sharing host"))?;
        said.map_err(errors::UnreachableError::new_err)
    }
}
