//! `olaf_sim::study::sweep`, step by step: deadlines, threads and Ctrl-C are Python's.

use olaf_sim::study::sweep;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard};

/// Every run that deterministic senders can bring about, or a part of them.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct Sweep(Mutex<sweep::Sweep>);

#[pymethods]
impl Sweep {
    #[new]
    #[pyo3(signature = (question, *, chunk=0, chunks=1))]
    fn new(question: &str, chunk: u64, chunks: u64) -> PyResult<Self> {
        let bad = |text: String| PyValueError::new_err(format!("sweep: {text}"));
        let question: sweep::Question =
            serde_json::from_str(question).map_err(|error| bad(error.to_string()))?;
        let sweep = sweep::Sweep::new(&question, chunk, chunks);
        sweep.map(|sweep| Self(Mutex::new(sweep))).map_err(|error| bad(error.to_string()))
    }

    /// Make at most `runs` runs; return the progress as JSON.
    fn step(&self, py: Python<'_>, runs: u64) -> String {
        py.detach(|| {
            serde_json::to_string(self.sweep().step(runs)).expect("progress is plain data")
        })
    }

    /// Ask nothing beyond the horizon from here on.
    fn to_horizon_only(&self, py: Python<'_>) {
        py.detach(|| self.sweep().to_horizon_only());
    }
}

impl Sweep {
    fn sweep(&self) -> MutexGuard<'_, sweep::Sweep> {
        self.0.lock().expect("a step that broke is not gone on from")
    }
}
