//! `olaf_sim::mina`, a slice of time at a time: progress, Ctrl-C and the clock are the driver's.

use olaf_sched::trees::{Problem, Solution, Solve};
use olaf_sim::mina::{Advanced, Costs, Outcome, Setting, Simulation};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Events between two looks at the clock: a few microseconds.
const UNWATCHED: u32 = 256;

/// Jobs on a cluster whose switches sum, in virtual time (MINA §V).
#[pyclass(module = "olaf._olaf", frozen)]
pub(crate) struct MinaSimulation(Mutex<Run>);

struct Run {
    simulation: Option<Simulation>,
    /// What the solver raised.
    raised: Raised,
}

type Raised = Arc<Mutex<Option<PyErr>>>;

/// A Python callable: a problem as JSON to a solution as JSON, or None.
struct PySolver {
    call: Py<PyAny>,
    raised: Raised,
}

impl PySolver {
    fn ask(&self, problem: &Problem) -> PyResult<Option<Solution>> {
        let text = serde_json::to_string(problem).expect("a problem is plain data");
        let answer: Option<String> =
            Python::attach(|py| self.call.call1(py, (text,))?.extract(py))?;
        let Some(answer) = answer else { return Ok(None) };
        let solution: Solution = serde_json::from_str(&answer)
            .map_err(|error| PyValueError::new_err(format!("the solver's answer: {error}")))?;
        let worth = problem.check(&solution);
        worth.map_err(|error| PyValueError::new_err(format!("the solver's answer: {error}")))?;
        Ok(Some(solution))
    }
}

impl Solve for PySolver {
    fn solve(&mut self, problem: &Problem) -> Option<Solution> {
        if self.raised.lock().expect("nobody panics here").is_some() {
            return None;
        }
        self.ask(problem).unwrap_or_else(|error| {
            *self.raised.lock().expect("nobody panics here") = Some(error);
            None
        })
    }
}

#[derive(Serialize)]
struct Finished {
    outcome: Outcome,
    costs: Costs,
}

#[pymethods]
impl MinaSimulation {
    #[new]
    #[pyo3(signature = (setting, solve = None))]
    fn new(py: Python<'_>, setting: &str, solve: Option<Py<PyAny>>) -> PyResult<Self> {
        let bad = |text: String| PyValueError::new_err(text);
        let mut json = serde_json::Deserializer::from_str(setting);
        let setting: Setting = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| bad(format!("{}: {}", error.path(), error.inner())))?;
        let simulation = py.detach(|| Simulation::new(setting));
        let mut simulation = simulation.map_err(|error| bad(error.to_string()))?;
        let raised = Raised::default();
        if let Some(call) = solve {
            let solver = PySolver { call, raised: Arc::clone(&raised) };
            simulation = simulation.with_solver(Box::new(solver));
        }
        Ok(Self(Mutex::new(Run { simulation: Some(simulation), raised })))
    }

    /// Go on for about `seconds`; return the numbers of ended and running jobs, the virtual time in
    /// nanoseconds, and whether all jobs have ended.
    fn advance(&self, py: Python<'_>, seconds: f64) -> PyResult<(u64, u64, u64, bool)> {
        let slice = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(format!("seconds {seconds}: {error}")))?;
        py.detach(|| {
            let mut run = self.run();
            let raised = Arc::clone(&run.raised);
            let simulation = run.simulation.as_mut().ok_or_else(taken)?;
            let begin = Instant::now();
            let mut unwatched = 0;
            let over = loop {
                match simulation.advance(&mut cpu_ns) {
                    Advanced::Done => break true,
                    Advanced::Jobs => unwatched = UNWATCHED,
                    Advanced::Operation => unwatched += 1,
                }
                if unwatched >= UNWATCHED {
                    if let Some(error) = raised.lock().expect("nobody panics here").take() {
                        return Err(error);
                    }
                    unwatched = 0;
                    if begin.elapsed() >= slice {
                        break false;
                    }
                }
            };
            let (done, running, now_ns) = simulation.progress();
            Ok((done, running, now_ns, over))
        })
    }

    /// What it came to and what it cost, as JSON, once all jobs are over.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let simulation = self.run().simulation.take().ok_or_else(taken)?;
            let (outcome, costs) = simulation.finish();
            let finished = Finished { outcome, costs };
            Ok(serde_json::to_string(&finished).expect("an outcome is plain data"))
        })
    }
}

/// CPU time of this thread: what else the machine does is not the decisions' cost.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).expect("CPU time is not negative")
}

fn taken() -> PyErr {
    PyValueError::new_err("this simulation has ended and its outcome was taken: make a new one")
}

impl MinaSimulation {
    fn run(&self) -> MutexGuard<'_, Run> {
        self.0.lock().expect("a simulation that broke is not gone on from")
    }
}
