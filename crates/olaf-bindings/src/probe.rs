//! A probe of a path, for `olaf doctor`.

use crate::{errors, waiting};
use olaf_net::{Probing, ProbingConfig};
use pyo3::prelude::*;

/// Measures the path to a switch or a server, without joining a job. JSON in and out; None if the
/// probe has not ended within `timeout_s`.
#[pyfunction]
#[pyo3(signature = (address, config, timeout_s))]
pub(crate) fn probe(
    py: Python<'_>,
    address: &str,
    config: &str,
    timeout_s: f64,
) -> PyResult<Option<String>> {
    let config = ProbingConfig::from_json(config).map_err(errors::start)?;
    // A name is looked up, which takes its time.
    let probing = py.detach(|| Probing::begin(address, &config)).map_err(errors::start)?;
    waiting::until(py, timeout_s, |slice| probing.wait(slice))
}
