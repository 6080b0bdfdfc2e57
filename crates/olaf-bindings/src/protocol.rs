//! The processes of the sharing protocol: `olaf_net::SharingController` and `SharingHost`.

use crate::errors;
use olaf_net::{SharingConfig, SharingHostConfig};
use pyo3::prelude::*;
use std::time::Duration;

/// The sharing controller (MINA §IV-B); works from the first `run` on.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct SharingController(olaf_net::SharingController);

#[pymethods]
impl SharingController {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config = SharingConfig::from_json(config).map_err(errors::start)?;
        let bound = py.detach(|| olaf_net::SharingController::bind(&config));
        bound.map(Self).map_err(errors::start)
    }

    #[getter]
    fn address(&self) -> &str {
        self.0.address()
    }

    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.0.metrics_address().map(|address| address.to_string())
    }

    /// Wait until `timeout_s` has passed, or something must be acted on: what happened, as JSON.
    fn run(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Vec<String>> {
        let time = Duration::try_from_secs_f64(timeout_s.max(0.0)).unwrap_or(Duration::MAX);
        Ok(py.detach(|| self.0.run(time))?)
    }

    /// What it did so far, as JSON.
    fn statistics(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.statistics()).map_err(errors::ask("sharing controller"))
    }

    /// The switches refuse the job from now on.
    fn fenced(&self, py: Python<'_>, job: u64) -> PyResult<()> {
        py.detach(|| self.0.fenced(job)).map_err(errors::ask("sharing controller"))
    }

    /// The job has ended or failed.
    fn fail(&self, py: Python<'_>, job: u64) -> PyResult<()> {
        py.detach(|| self.0.fail(job)).map_err(errors::ask("sharing controller"))
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

    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.0.metrics_address().map(|address| address.to_string())
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
