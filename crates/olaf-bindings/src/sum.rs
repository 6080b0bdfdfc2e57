//! A worker that reduces arrays with others through a switch.

use crate::memory::Memory;
use crate::{errors, waiting};
use olaf_host::collective::{Buffer, Commit, Label, Operation, Reduction, Sum};
use olaf_net::{Pending, SumConfig, SumError};
use olaf_wire::Call;
use olaf_wire::reduce::LaneType;
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A worker's end of a job of `reduce`: one UDP socket and one thread that keeps time.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct SumClient(Arc<olaf_net::SumClient>);

/// An operation that has begun.
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct SumOperation {
    client: Arc<olaf_net::SumClient>,
    pending: Pending,
}

/// Contributors, workers that belong into the sum, and whether a lane was no finite number.
type Counts = (u32, u32, bool);

#[pymethods]
impl SumClient {
    #[new]
    #[pyo3(signature = (address, *, job, workers=None, rank=None, config="{}"))]
    fn new(
        py: Python<'_>,
        address: &str,
        job: u32,
        workers: Option<u32>,
        rank: Option<u32>,
        config: &str,
    ) -> PyResult<Self> {
        let config = SumConfig::from_json(config).map_err(errors::start)?;
        // A name is looked up, which takes its time.
        py.detach(|| olaf_net::SumClient::open(address, job, workers, rank, &config))
            .map(|client| Self(Arc::new(client)))
            .map_err(errors::start)
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

    /// Seconds after which an operation without a time limit of its own ends with an error.
    #[getter]
    fn operation_timeout_s(&self) -> f64 {
        self.0.operation_timeout().as_secs_f64()
    }

    /// Rank and number of workers in the newest generation; None before the first.
    fn place(&self, py: Python<'_>) -> Option<(u32, u32)> {
        py.detach(|| self.0.place_in_job())
    }

    /// Join the job, and wait until it begins.
    fn join(&self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        let joining = py.detach(|| self.0.start_join()).map_err(errors::client)?;
        match waiting::until(py, timeout_s, |slice| self.0.await_join(slice))? {
            Some(joined) => joined.map_err(errors::client),
            None => Err(match self.0.why_not_in(&joining) {
                SumError::Failed(silent) => errors::UnreachableError::new_err(silent.text),
                other => errors::sum(py, other),
            }),
        }
    }

    /// Begin an operation on the memory of ``array``, and wait for its end.
    #[pyo3(signature = (array, lanes, op, *, root=0, partial=false, timeout_s=None, tag=0))]
    #[allow(clippy::too_many_arguments, reason = "Python gives each of them a name")]
    fn reduce(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        lanes: &str,
        op: &str,
        root: u32,
        partial: bool,
        timeout_s: Option<f64>,
        tag: u16,
    ) -> PyResult<Counts> {
        let pending = self.begin_on(py, array, lanes, (op, root), partial, timeout_s, tag)?;
        let ended = || waiting::until(py, f64::INFINITY, |slice| self.waited(&pending, slice));
        if let Err(interrupted) = ended() {
            // Nothing may write to the array any more once the caller has it back.
            py.detach(|| self.0.give_up(&pending));
            return Err(interrupted);
        }
        ended_with(py, &self.0, &pending)
    }

    /// Begin an operation on the memory of ``array``, which must not be touched until its end.
    #[pyo3(signature = (array, lanes, op, *, root=0, partial=false, timeout_s=None, tag=0))]
    #[allow(clippy::too_many_arguments, reason = "Python gives each of them a name")]
    fn begin(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        lanes: &str,
        op: &str,
        root: u32,
        partial: bool,
        timeout_s: Option<f64>,
        tag: u16,
    ) -> PyResult<SumOperation> {
        let pending = self.begin_on(py, array, lanes, (op, root), partial, timeout_s, tag)?;
        self.0.go_on();
        Ok(SumOperation { client: self.0.clone(), pending })
    }

    /// Begin a pipelined sum. Its mean is written to ``array``, whose contents are not sent.
    #[pyo3(signature = (array, *, iteration, timeout_s=None))]
    fn begin_pipelined(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        iteration: u64,
        timeout_s: Option<f64>,
    ) -> PyResult<SumOperation> {
        let reduction = Reduction::Pipelined { iteration };
        let kind = (LaneType::F32, reduction);
        let pending = self.begin_as(py, array, kind, false, timeout_s, 0)?;
        self.0.go_on();
        Ok(SumOperation { client: self.0.clone(), pending })
    }

    /// Send a copy of ``array`` for the first pipelined sum that is open. What becomes of it, and its
    /// staleness where that was looked at.
    #[pyo3(signature = (array, *, began, bound))]
    fn contribute(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        began: u64,
        bound: u64,
    ) -> PyResult<(&'static str, Option<u64>)> {
        let vector = Memory::of(array, LaneType::F32.bytes())?.bytes().to_vec();
        let commit = py.detach(|| self.0.contribute(began, bound, vector));
        Ok(match commit.map_err(|error| errors::sum(py, error))? {
            Commit::Send { staleness } => ("sent", Some(staleness)),
            Commit::Stale { staleness } => ("stale", Some(staleness)),
            Commit::Surplus => ("surplus", None),
            Commit::NoSum => ("without_sum", None),
        })
    }

    /// Take part in pipelined sums no more: those without a result fail at all workers.
    fn end_pipeline(&self, py: Python<'_>) {
        py.detach(|| self.0.end_pipeline());
    }

    /// The id of the next operation of `SumOperation.tell` that has ended. Waits for it; None if the
    /// connection is closed.
    fn next_told(&self, py: Python<'_>) -> Option<u64> {
        // In a thread that Python's signals do not concern.
        py.detach(|| {
            loop {
                let told = self.0.next_told(Duration::from_secs(3600));
                if told.is_some() || self.0.has_told_all() {
                    return told;
                }
            }
        })
    }

    /// JSON: see ``docs/reference/statistics.md#worker-of-sums``.
    fn stats(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.statistics())
    }

    /// What happened since the last call, a JSON object each.
    fn events(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.0.events()).map_err(errors::client)
    }

    /// What to tell people once this worker goes on through its second switch. Waits for it; None if it never will.
    fn next_move(&self, py: Python<'_>) -> Option<String> {
        // In a thread that Python's signals do not concern.
        py.detach(|| {
            loop {
                let moved = self.0.await_move(Duration::from_secs(3600));
                if moved.is_some() || self.0.is_where_it_stays() {
                    return moved;
                }
            }
        })
    }

    /// Leave the job, then close. Open operations fail. With a second switch it first waits until no other worker lacks a
    /// result of this one. Idempotent.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        let waited = py.detach(|| self.0.say_farewell()).map_or(Ok(None), |pending| {
            waiting::until(py, f64::INFINITY, |slice| self.waited(&pending, slice))
        });
        self.leave_at_once(py);
        waited.map(drop)
    }

    /// Leave the job, then close, without waiting for others.
    fn leave_at_once(&self, py: Python<'_>) {
        py.detach(|| self.0.leave());
    }
}

impl SumClient {
    #[allow(clippy::too_many_arguments, reason = "Python gives each of them a name")]
    fn begin_on(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        lanes: &str,
        (op, root): (&str, u32),
        partial: bool,
        timeout_s: Option<f64>,
        tag: u16,
    ) -> PyResult<Pending> {
        let kind = (lane_type(lanes)?, reduction(op, root)?);
        self.begin_as(py, array, kind, partial, timeout_s, tag)
    }

    fn begin_as(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        (lane_type, reduction): (LaneType, Reduction),
        partial: bool,
        timeout_s: Option<f64>,
        tag: u16,
    ) -> PyResult<Pending> {
        if tag > Call::LARGEST_TAG {
            let largest = Call::LARGEST_TAG;
            return Err(PyValueError::new_err(format!("tag = {tag}: must be at most {largest}")));
        }
        let memory = Memory::of(array, lane_type.bytes())?;
        let is_empty = memory.bytes().is_empty();
        let label = Label { tag, is_empty, lacks: None };
        // An empty array is an operation, too: all workers have to call it.
        let bytes = if is_empty { lane_type.bytes() } else { memory.bytes().len() };
        let buffer = move |part: Range<usize>| -> Box<dyn Buffer> {
            if is_empty { Box::new(vec![0u8; part.len()]) } else { Box::new(memory.part(part)) }
        };
        let part = move |part| Operation {
            lane_type,
            reduction,
            buffer: buffer(part),
            accepts_partial: partial,
            label,
        };
        let timeout = match timeout_s {
            None => self.0.operation_timeout(),
            Some(seconds) if seconds > 0.0 => {
                Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
            }
            Some(seconds) => {
                return Err(PyValueError::new_err(format!(
                    "timeout_s = {seconds}: must be above 0"
                )));
            }
        };
        py.detach(|| self.0.begin(bytes, part, timeout)).map_err(|error| errors::sum(py, error))
    }

    fn waited(&self, pending: &Pending, slice: Duration) -> Option<()> {
        self.0.wait(pending, slice).then_some(())
    }
}

#[pymethods]
impl SumOperation {
    /// Names the operation among those of its client.
    #[getter]
    fn id(&self) -> u64 {
        self.pending.id()
    }

    /// Returns true if it has ended.
    fn done(&self, py: Python<'_>) -> bool {
        py.detach(|| self.client.settle(&self.pending))
    }

    /// Wait for the end; False at the deadline. None waits for the end itself.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        let wait = |slice| self.client.wait(&self.pending, slice).then_some(());
        Ok(waiting::until(py, timeout_s.unwrap_or(f64::INFINITY), wait)?.is_some())
    }

    /// How it ended: once.
    fn outcome(&self, py: Python<'_>) -> PyResult<Counts> {
        ended_with(py, &self.client, &self.pending)
    }

    /// Give the operation up: nothing writes to its array any more.
    fn give_up(&self, py: Python<'_>) {
        py.detach(|| self.client.give_up(&self.pending));
    }

    /// Tell its end through `SumClient.next_told`; False if it has ended.
    fn tell(&self, py: Python<'_>) -> bool {
        py.detach(|| self.client.tell(&self.pending))
    }
}

fn ended_with(py: Python<'_>, client: &olaf_net::SumClient, pending: &Pending) -> PyResult<Counts> {
    match client.outcome(pending) {
        Some(Ok(Sum { contributors, expected, not_finite })) => {
            Ok((contributors, expected, not_finite))
        }
        Some(Err(error)) => Err(errors::ended(py, error)),
        None if pending.has_ended() => Err(PyValueError::new_err("the outcome was taken before")),
        None => Err(PyTimeoutError::new_err("the operation has not ended")),
    }
}

fn lane_type(name: &str) -> PyResult<LaneType> {
    LaneType::EACH.into_iter().find(|lane_type| lane_type.name() == name).ok_or_else(|| {
        let known = LaneType::EACH.map(LaneType::name).join(", ");
        PyValueError::new_err(format!("lanes = {name:?}: must be one of {known}"))
    })
}

fn reduction(op: &str, root: u32) -> PyResult<Reduction> {
    Ok(match op {
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        "exact_sum" => Reduction::ExactSum,
        "exact_mean" => Reduction::ExactMean,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        "broadcast" => Reduction::Broadcast { root },
        other => {
            return Err(PyValueError::new_err(format!(
                "op = {other:?}: must be sum, mean, min or max"
            )));
        }
    })
}
