//! Which lines of a role's log are printed.

use olaf_net::logging::{self, Level};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Lets lines through from a level on, and not too many of one kind.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct LogFilter(Mutex<logging::LogFilter>);

#[pymethods]
impl LogFilter {
    #[new]
    fn new(level: &str) -> PyResult<Self> {
        let level = level.parse::<Level>();
        let level = level.map_err(|what| PyValueError::new_err(format!("log level: {what}")))?;
        Ok(Self(Mutex::new(logging::LogFilter::new(level))))
    }

    /// The level of an event, by the event's name.
    #[staticmethod]
    fn level(event: &str) -> &'static str {
        Level::of(event).name()
    }

    /// None: the line is left out. A number: it is printed, after so many of its kind that were not.
    fn take(&self, event: &str) -> Option<u64> {
        self.filter().take(event, Instant::now())
    }

    /// Number of left-out lines, by kind, that no printed line has counted yet.
    fn end(&self) -> Vec<(String, u64)> {
        self.filter().end()
    }
}

impl LogFilter {
    fn filter(&self) -> std::sync::MutexGuard<'_, logging::LogFilter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
