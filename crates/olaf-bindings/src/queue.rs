//! A switch's queue for Python: updates arrive, merge while they wait, and depart.

use numpy::{PyReadonlyArray1, ToPyArray};
use olaf_engine::contribution::Contribution;
use olaf_engine::{
    Arrival, ClusterId, Discipline, Entry, Flow, JobId, Outcome, QueueKind, WorkerId,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A queue of updates with a fixed number of slots.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct Queue {
    queue: Mutex<Box<dyn Discipline + Send>>,
}

const MAX_SLOTS: usize = 1 << 20;

#[pymethods]
impl Queue {
    #[new]
    #[pyo3(signature = (discipline = "olaf", slots = 8, gate = None))]
    fn new(discipline: &str, slots: usize, gate: Option<f64>) -> PyResult<Self> {
        let wrong = |what: String| Err(PyValueError::new_err(what));
        let Some(kind) = QueueKind::parse(discipline) else {
            let names = QueueKind::names();
            return wrong(format!("discipline = {discipline:?}: must be {names}"));
        };
        if !(1..=MAX_SLOTS).contains(&slots) {
            return wrong(format!("slots = {slots}: must be from 1 to {MAX_SLOTS}"));
        }
        if let Some(gate) = gate.filter(|gate| !gate.is_finite() || *gate < 0.0) {
            return wrong(format!("gate = {gate}: must be a number of at least 0, or None"));
        }
        Ok(Self { queue: Mutex::new(kind.queue(slots, gate)) })
    }

    #[getter]
    fn slots(&self) -> usize {
        self.lock().slots()
    }

    #[getter]
    fn used(&self) -> usize {
        self.lock().used()
    }

    #[pyo3(signature = (
        lanes, *, worker = 0, sequence = 0, cluster = 0, job = 1, segment = 0, segments = 1,
        contributors = 1, weight = 1.0, reward = 0.0, generated_ns = (0, 0), versions = (0, 0),
        hops = 0, size = None,
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python calls it by keywords")]
    fn arrive(
        &self,
        lanes: PyReadonlyArray1<'_, f32>,
        worker: u32,
        sequence: u32,
        cluster: u32,
        job: u32,
        segment: u32,
        segments: u32,
        contributors: u32,
        weight: f64,
        reward: f64,
        generated_ns: (u64, u64),
        versions: (u32, u32),
        hops: u8,
        size: Option<u32>,
    ) -> PyResult<(&'static str, Option<u64>)> {
        let wrong = |what: &str| Err(PyValueError::new_err(what.to_owned()));
        if !(weight.is_finite() && weight > 0.0) || contributors == 0 {
            return wrong("weight and contributors must be above 0");
        }
        if generated_ns.0 > generated_ns.1 || versions.0 > versions.1 {
            return wrong("generated_ns and versions must be pairs, oldest first");
        }
        if segment >= segments {
            return wrong("segment must be below segments");
        }
        let lanes: Vec<u8> = lanes.as_slice()?.iter().flat_map(|lane| lane.to_le_bytes()).collect();
        let bytes = u32::try_from(lanes.len()).unwrap_or(u32::MAX);
        let contribution = Contribution {
            flow: Flow { job: JobId(job), cluster: ClusterId(cluster), segment },
            worker: WorkerId(worker),
            sequence,
            segments,
            contributors,
            weight,
            reward,
            generated_ns,
            versions,
            hops,
            bytes: size.unwrap_or(bytes),
        };
        let outcome = self.lock().arrive(&Arrival { contribution, lanes: &lanes });
        Ok(match outcome {
            Outcome::Appended(entry) => ("appended", Some(entry.0)),
            Outcome::Merged(entry) => ("merged", Some(entry.0)),
            Outcome::Replaced { entry, .. } => ("replaced", Some(entry.0)),
            Outcome::Filtered(entry) => ("filtered", Some(entry.0)),
            Outcome::Dropped => ("dropped", None),
            Outcome::Evicted { entry, .. } => ("evicted", Some(entry.0)),
            Outcome::Rejected(rejection) => (rejection.name(), None),
        })
    }

    fn begin_departure<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut queue = self.lock();
        queue.begin_departure().map(|entry| described(py, entry)).transpose()
    }

    fn end_departure(&self) -> Option<u64> {
        self.lock().end_departure().map(|entry| entry.0)
    }

    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.lock().entries().into_iter().map(|entry| described(py, entry)).collect()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Box<dyn Discipline + Send>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn described<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyDict>> {
    let of = &entry.contribution;
    let told = PyDict::new(py);
    told.set_item("entry", entry.id.0)?;
    told.set_item("job", of.flow.job.0)?;
    told.set_item("cluster", of.flow.cluster.0)?;
    told.set_item("segment", of.flow.segment)?;
    told.set_item("worker", of.worker.0)?;
    told.set_item("sequence", of.sequence)?;
    told.set_item("contributors", of.contributors)?;
    told.set_item("weight", of.weight)?;
    told.set_item("reward", of.reward)?;
    told.set_item("generated_ns", of.generated_ns)?;
    told.set_item("versions", of.versions)?;
    told.set_item("hops", of.hops)?;
    told.set_item("size", of.bytes)?;
    told.set_item("replaceable", entry.replaceable)?;
    told.set_item("lanes", entry.lanes.to_pyarray(py))?;
    Ok(told)
}
