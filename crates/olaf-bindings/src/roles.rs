//! The switch and the server.

use crate::errors;
use numpy::{PyArray1, ToPyArray};
use olaf_net::{ServerConfig, SwitchConfig};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// An aggregation switch: its engines, each with its links and its socket in a thread of its own.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct Switch(olaf_net::Switch);

#[pymethods]
impl Switch {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config = SwitchConfig::from_json(config).map_err(errors::start)?;
        py.detach(|| olaf_net::Switch::bind(&config)).map(Self).map_err(errors::start)
    }

    #[getter]
    fn address(&self) -> &str {
        self.0.address()
    }

    /// Address of the HTTP side, or None without one.
    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.0.metrics_address().map(|address| address.to_string())
    }

    /// The address of each engine.
    #[getter]
    fn addresses(&self) -> BTreeMap<&'static str, &str> {
        self.0.addresses().into_iter().collect()
    }

    fn start(&self) -> PyResult<()> {
        self.0.start().map_err(errors::start)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.statistics()).map_err(errors::ask("switch"))
    }

    fn events(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.0.events()).map_err(errors::ask("switch"))
    }

    fn decide(
        &self,
        py: Python<'_>,
        job: u32,
        cluster: u32,
        admitted: Option<bool>,
    ) -> PyResult<bool> {
        py.detach(|| self.0.decide(job, cluster, admitted)).map_err(errors::ask("switch"))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.stop()).map_err(errors::ask("switch"))
    }
}

/// A parameter server: rule, model and socket in a thread of its own.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct Server(olaf_net::Server);

#[pymethods]
impl Server {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config = ServerConfig::from_json(config).map_err(errors::start)?;
        py.detach(|| olaf_net::Server::bind(&config)).map(Self).map_err(errors::start)
    }

    #[getter]
    fn address(&self) -> &str {
        self.0.address()
    }

    /// Address of the HTTP side, or None without one.
    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.0.metrics_address().map(|address| address.to_string())
    }

    fn start(&self) -> PyResult<()> {
        self.0.start().map_err(errors::start)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.0.statistics()).map_err(errors::ask("server"))
    }

    fn events(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.0.events()).map_err(errors::ask("server"))
    }

    /// (version, parameters) of a job now, or None while it has no model.
    fn model<'py>(
        &self,
        py: Python<'py>,
        job: u32,
    ) -> PyResult<Option<(u32, Bound<'py, PyArray1<f32>>)>> {
        let model = py.detach(|| self.0.model(job)).map_err(errors::ask("server"))?;
        Ok(model.map(|(version, lanes)| (version, lanes.to_pyarray(py))))
    }

    /// Take nothing in any more and write the last checkpoint.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.finish()).map_err(errors::ask("server"))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.stop()).map_err(errors::ask("server"))
    }
}
