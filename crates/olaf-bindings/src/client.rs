//! A worker's end of a job.

use crate::{arrays, errors, waiting};
use olaf_net::ClientConfig;
use pyo3::prelude::*;
use std::time::Duration;

/// A worker's end of a job: one UDP socket and one thread that keeps time.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct Client(olaf_net::Client);

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (address, *, job, cluster, worker=None, config="{}"))]
    fn new(
        py: Python<'_>,
        address: &str,
        job: u32,
        cluster: u32,
        worker: Option<u32>,
        config: &str,
    ) -> PyResult<Self> {
        let config = ClientConfig::from_json(config).map_err(errors::start)?;
        // A name is looked up, which takes its time.
        py.detach(|| olaf_net::Client::open(address, job, cluster, worker, &config))
            .map(Self)
            .map_err(errors::start)
    }

    #[getter]
    fn worker(&self) -> u32 {
        self.0.worker()
    }

    /// Address of the HTTP side, or None without one.
    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.0.metrics_address().map(|address| address.to_string())
    }

    #[getter]
    fn local_address(&self) -> String {
        self.0.local_address().to_string()
    }

    /// Join the job, offering ``weights`` as its first model; return the model version.
    #[pyo3(signature = (weights, timeout_s, layout=None))]
    fn join(
        &self,
        py: Python<'_>,
        weights: &Bound<'_, PyAny>,
        timeout_s: f64,
        layout: Option<&str>,
    ) -> PyResult<u32> {
        let arrays = arrays::readable(weights)?;
        let slices = arrays::slices(&arrays);
        let joining = py.detach(|| self.0.start_join(&slices, layout)).map_err(errors::client)?;
        let outcome = waiting::until(py, timeout_s, |slice| self.0.await_join(&joining, slice))?;
        outcome.unwrap_or_else(|| Err(self.0.give_up(&joining))).map_err(errors::client)
    }

    /// Go on in another cluster of the job; what is pushed from here on is that cluster's.
    fn move_to(&self, py: Python<'_>, cluster: u32) -> PyResult<()> {
        py.detach(|| self.0.move_to(cluster)).map_err(errors::client)
    }

    /// Send one update and return its sequence number, from 0. Never waits for an answer.
    #[pyo3(signature = (parts, *, reward, weight=1.0))]
    fn push(
        &self,
        py: Python<'_>,
        parts: &Bound<'_, PyAny>,
        reward: f64,
        weight: f64,
    ) -> PyResult<u32> {
        let arrays = arrays::readable(parts)?;
        let slices = arrays::slices(&arrays);
        py.detach(|| self.0.push(&slices, reward, weight)).map_err(errors::client)
    }

    /// Copy the newest complete model into ``parts`` if its version is above ``newer_than``.
    fn pull(
        &self,
        py: Python<'_>,
        parts: &Bound<'_, PyAny>,
        newer_than: u32,
    ) -> PyResult<Option<u32>> {
        let mut arrays = arrays::writable(parts)?;
        let mut slices = arrays::slices_mut(&mut arrays);
        py.detach(|| self.0.pull(&mut slices, newer_than)).map_err(errors::client)
    }

    /// Wait until a complete model above ``newer_than`` is here; its version, or None.
    fn wait(&self, py: Python<'_>, newer_than: u32, timeout_s: f64) -> PyResult<Option<u32>> {
        waiting::until(py, timeout_s, |slice| self.0.wait(newer_than, slice))
    }

    /// Ask the server for its newest model, without waiting for it.
    fn refresh(&self, py: Python<'_>) {
        py.detach(|| self.0.refresh());
    }

    /// Wait for the answer to `refresh`; whether it has come.
    fn refreshed(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let here = |slice: Duration| self.0.wait_refreshed(slice).then_some(());
        Ok(waiting::until(py, timeout_s, here)?.is_some())
    }

    /// Returns true if the newest update is under way: no answer has told its fate yet.
    fn awaits_end(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.awaits_end())
    }

    /// Returns true if transmission control holds back what was pushed, so that no answer comes.
    fn holding(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.is_holding())
    }

    /// Wait until it is known what became of each update sent so far; False at the deadline.
    fn flush(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let flushing = py.detach(|| self.0.start_flush());
        let known = |slice: Duration| flushing.await_flush(&self.0, slice).then_some(());
        let flushed = waiting::until(py, timeout_s, known);
        py.detach(|| self.0.end_flush());
        Ok(flushed?.is_some())
    }

    /// How the server applies an update: JSON with ``kind``, ``aggregate``, ``step``, ``gate``,
    /// ``factor`` and ``staleness_power``. None before the server's first welcome.
    fn rule(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.0.rule())
    }

    /// JSON: see ``docs/reference/statistics.md#worker``.
    fn stats(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.statistics())
    }

    /// What happened since the last call, a JSON object each.
    fn events(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.0.events()).map_err(errors::client)
    }

    /// Tell the job, then close. Idempotent.
    fn leave(&self, py: Python<'_>) {
        py.detach(|| self.0.leave());
    }
}
