//! What needs no network: replaying a trace, reading a rate, trying a rule.

use crate::errors;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use olaf_engine::switch::native::QueueKind;
use olaf_engine::{BitsPerSecond, units};
use olaf_host::push_pull::server::{Applied, Delivered, Rule};
use olaf_net::{ClientConfig, ServerConfig};
use olaf_sim::study::delivery::Delivery;
use olaf_sim::study::replay::{Head, Parameters, ReplayError};
use olaf_sim::study::scenario::Scenario;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::File;

/// The queue disciplines: of each its name, and what it does.
#[pyfunction]
pub(crate) fn queues() -> Vec<(&'static str, &'static str)> {
    QueueKind::ALL.iter().map(|(name, kind)| (*name, kind.about())).collect()
}

/// What the roles do where nothing is set: JSON with a table for ``switch``, ``server``, ``worker``.
#[pyfunction]
pub(crate) fn defaults() -> String {
    olaf_net::defaults()
}

/// Each protocol with a version in its messages, and the version that is spoken here.
#[pyfunction]
pub(crate) fn wire_versions() -> Vec<(&'static str, u8)> {
    olaf_net::wire_versions().to_vec()
}

/// Metrics of a status document, in the text format of OpenMetrics.
#[pyfunction]
pub(crate) fn metrics(status: &str) -> PyResult<String> {
    Ok(olaf_net::watch::metrics(&document(status)?))
}

/// Name, type and help of every metric.
#[pyfunction]
pub(crate) fn metrics_catalogue() -> Vec<(String, &'static str, &'static str)> {
    olaf_net::watch::catalogue()
}

/// The fields of a status document that are neither metrics nor left out by name.
#[pyfunction]
pub(crate) fn metrics_unmapped(status: &str) -> PyResult<Vec<String>> {
    Ok(olaf_net::watch::unmapped(&document(status)?))
}

fn document(text: &str) -> PyResult<serde_json::Value> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Bytes of UDP payload of one worker's update, as pacers count them.
#[pyfunction]
#[pyo3(signature = (parameters, config="{}"))]
pub(crate) fn update_bytes(parameters: u32, config: &str) -> PyResult<u64> {
    let config = ClientConfig::from_json(config).map_err(errors::start)?;
    config.update_bytes(parameters).map_err(errors::start)
}

/// Bits per second of a rate as `tc` writes it: ``40gbit``, ``1.9mbit``.
#[pyfunction]
pub(crate) fn parse_rate(text: &str) -> PyResult<u64> {
    Ok(rate_of(text)?.get())
}

/// Nanoseconds of a time: ``20ms``, ``1.5s``.
#[pyfunction]
pub(crate) fn parse_time(text: &str) -> PyResult<u64> {
    units::parse_time(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Bytes of a size: ``9kB``, ``1500B``.
#[pyfunction]
pub(crate) fn parse_size(text: &str) -> PyResult<u64> {
    units::parse_size(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Nanoseconds as a time that `parse_time` reads: ``20ms``.
#[pyfunction]
pub(crate) fn format_time(ns: u64) -> String {
    units::format_time(ns)
}

/// Bytes as a size that `parse_size` reads: ``9kB``.
#[pyfunction]
pub(crate) fn format_size(bytes: u64) -> String {
    units::format_size(bytes)
}

/// Bits per second as a rate that `parse_rate` reads: ``400kbit``.
#[pyfunction]
pub(crate) fn format_rate(bits_per_second: u64) -> PyResult<String> {
    BitsPerSecond::new(bits_per_second)
        .map(units::format_rate)
        .ok_or_else(|| PyValueError::new_err("a rate is above 0 and at most 10tbit"))
}

fn rate_of(text: &str) -> PyResult<BitsPerSecond> {
    BitsPerSecond::parse(text)
        .map_err(|error| PyValueError::new_err(format!("rate {text:?}: {error}")))
}

/// Run a recorded trace through the pure engine in virtual time.
#[pyfunction]
#[pyo3(signature = (trace, *, engine, slots, rate, gate=None, head="locked", full=true))]
#[allow(clippy::too_many_arguments, reason = "Python calls it by keywords")]
pub(crate) fn replay(
    py: Python<'_>,
    trace: &str,
    engine: &str,
    slots: usize,
    rate: &str,
    gate: Option<f64>,
    head: &str,
    full: bool,
) -> PyResult<String> {
    let kind = QueueKind::parse(engine).ok_or_else(|| {
        PyValueError::new_err(format!("engine {engine:?}: must be {}", QueueKind::names()))
    })?;
    let head = Head::parse(head).ok_or_else(|| {
        PyValueError::new_err(format!("head {head:?}: must be locked, open or gone"))
    })?;
    let parameters = Parameters { engine: kind, slots, rate: rate_of(rate)?, gate, head, full };
    let replayed = py.detach(|| {
        let file = File::open(trace).map_err(|error| ReplayError::Read(error.to_string()))?;
        let replay = olaf_sim::study::replay::replay(file, &parameters)?;
        Ok(serde_json::to_string(&replay).expect("a replay is plain data"))
    });
    replayed.map_err(|error: ReplayError| PyValueError::new_err(format!("{trace}: {error}")))
}

/// Run a scenario (workers, a tree of queues, a server) in virtual time; JSON in and out.
#[pyfunction]
pub(crate) fn simulate(py: Python<'_>, scenario: &str) -> PyResult<String> {
    let spec: Scenario = scenario_of(scenario)?;
    let outcome = py.detach(|| olaf_sim::study::scenario::run(&spec));
    let outcome = outcome.map_err(|error| PyValueError::new_err(format!("scenario: {error}")))?;
    Ok(serde_json::to_string(&outcome).expect("an outcome is plain data"))
}

/// Run jobs that sum their gradients in virtual time; JSON in and out. `told` is called with the number of iterations
/// of workers that have ended.
#[pyfunction]
pub(crate) fn simulate_sums(
    py: Python<'_>,
    scenario: &str,
    told: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let spec: olaf_sim::sums::Scenario = scenario_of(scenario)?;
    let told = told.clone().unbind();
    let mut failed = None;
    let outcome = py.detach(|| {
        olaf_sim::sums::run(&spec, &mut |ended| {
            if failed.is_none() {
                failed = Python::attach(|py| told.call1(py, (ended,))).err();
            }
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let outcome = outcome.map_err(|error| PyValueError::new_err(format!("scenario: {error}")))?;
    Ok(serde_json::to_string(&outcome).expect("an outcome is plain data"))
}

/// Time until a server has a number of updates of each worker, in virtual time; JSON in and out.
#[pyfunction]
pub(crate) fn deliver(py: Python<'_>, delivery: &str) -> PyResult<String> {
    let spec: Delivery = serde_json::from_str(delivery)
        .map_err(|error| PyValueError::new_err(format!("delivery: {error}")))?;
    let outcome = py.detach(|| olaf_sim::study::delivery::run(&spec));
    let outcome = outcome.map_err(|error| PyValueError::new_err(format!("delivery: {error}")))?;
    Ok(serde_json::to_string(&outcome).expect("an outcome is plain data"))
}

/// A scenario, or an error that says which key of it cannot be.
fn scenario_of<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (key, text) = (error.path().to_string(), error.inner().to_string());
        // A program wrote the text, so the place in it does not help the reader.
        let what = text.split(" at line ").next().unwrap_or(&text);
        PyValueError::new_err(match key.as_str() {
            "." => format!("scenario: {what}"),
            key => format!("scenario: {key}: {what}"),
        })
    })
}

/// An update as [`apply_rule`] takes it: sum of lanes, weight, reward, versions behind, contributors,
/// contributions that changed the model since.
type Given<'py> = (PyReadonlyArray1<'py, f32>, f64, f64, u32, u32, f64);

/// Apply updates to weights by a server rule without a network (for tests and tuning).
#[pyfunction]
pub(crate) fn apply_rule<'py>(
    config: &str,
    weights: &Bound<'py, PyAny>,
    updates: Vec<Given<'py>>,
) -> PyResult<Vec<bool>> {
    let config = ServerConfig::from_json(config).and_then(|config| config.rule());
    let mut rule = Rule::new(config.map_err(errors::start)?);
    let mut weights: PyReadwriteArray1<'py, f32> = weights.extract()?;
    let contiguous = |_| PyValueError::new_err("weights: pass a contiguous array");
    let weights = weights.as_slice_mut().map_err(contiguous)?;
    let mut model = weights.to_vec();
    let mut applied = Vec::with_capacity(updates.len());
    for (index, given) in updates.iter().enumerate() {
        let (sum, weight, reward, versions_behind, contributors, overlapped) = given;
        let sum: Vec<u8> = sum.as_array().iter().flat_map(|lane| lane.to_le_bytes()).collect();
        if sum.len() != model.len() * 4 {
            return Err(PyValueError::new_err(format!(
                "update {index} has {} lanes where the weights have {}",
                sum.len() / 4,
                model.len()
            )));
        }
        let delivered = Delivered {
            sum: &sum,
            weight: *weight,
            reward: *reward,
            reward_is_clipped: false,
            versions_behind: *versions_behind,
            contributors: *contributors,
            overlapped: *overlapped,
        };
        applied.push(rule.apply(&mut model, &delivered) == Applied::Yes);
    }
    weights.copy_from_slice(&model);
    Ok(applied)
}
