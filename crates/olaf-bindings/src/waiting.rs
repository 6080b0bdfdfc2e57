//! Waits that end at a deadline, at Ctrl-C, or when there is something.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Python looks at its signals so often.
const SLICE: Duration = Duration::from_millis(50);

/// Calls `wait`, without the GIL and with a slice of the time each, until it finds something or
/// `timeout_s` is over.
pub(crate) fn until<T: Send>(
    py: Python<'_>,
    timeout_s: f64,
    wait: impl Fn(Duration) -> Option<T> + Sync,
) -> PyResult<Option<T>> {
    if timeout_s.is_nan() {
        return Err(PyValueError::new_err("timeout_s is NaN: give seconds"));
    }
    let timeout = Duration::try_from_secs_f64(timeout_s.max(0.0)).unwrap_or(Duration::MAX);
    let began = Instant::now();
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        let found = py.detach(|| wait(left.min(SLICE)));
        if found.is_some() || left.is_zero() {
            return Ok(found);
        }
        py.check_signals()?;
    }
}
