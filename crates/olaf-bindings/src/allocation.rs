//! `olaf._olaf.Allocator`: the allocation controller's state machine, with JSON in and out.

use olaf_sched::allocation::{self, Command, Config, Snapshot, State};
use olaf_sched::placement;
use olaf_sched::topology::TopologySpec;
use olaf_sched::{AllReduceSpeed, Capacity, JobId, Pattern, Topology, trees};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// What [`Allocator`] is made of.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    topology: TopologyWord,
    capacity: String,
    placement: Choice<placement::Policy>,
    trees: Choice<trees::Policy>,
    seed: u64,
    most_queued: usize,
    most_ended: usize,
}

/// A word of the command line, or all that it stands for.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Choice<T> {
    Word(String),
    Policy(T),
}

/// A word of the command line, or a graph from a file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TopologyWord {
    Word(String),
    Graph(TopologySpec),
}

/// A command's outcome, or why it was refused.
#[derive(Serialize)]
struct Answer {
    done: Option<allocation::Outcome>,
    /// Of what was done: equal for equal decisions.
    digest: Option<i64>,
    refused: Option<Refused>,
}

#[derive(Serialize)]
struct Refused {
    why: allocation::Refusal,
    text: String,
}

/// What a replay found.
#[derive(Default, Serialize)]
struct Replayed {
    /// Events in all.
    events: u64,
    /// The last of them.
    last: VecDeque<allocation::Event>,
    /// The first command that was decided differently than before, by its place.
    differs: Option<usize>,
}

/// The allocation controller's state machine.
#[pyclass(module = "olaf._olaf")]
pub(crate) struct Allocator(allocation::Allocator);

#[pymethods]
impl Allocator {
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let (topology, config) = made_of(spec)?;
        Ok(Self(allocation::Allocator::new(topology, config)))
    }

    #[staticmethod]
    fn restore(py: Python<'_>, spec: &str, snapshot: &str) -> PyResult<Self> {
        py.detach(|| {
            let (topology, config) = made_of(spec)?;
            let snapshot: Snapshot = from_json("snapshot", snapshot)?;
            let restored = allocation::Allocator::restore(topology, config, &snapshot);
            restored.map(Self).map_err(|error| PyValueError::new_err(format!("snapshot: {error}")))
        })
    }

    fn snapshot(&self, py: Python<'_>) -> String {
        py.detach(|| json(&self.0.snapshot()))
    }

    #[staticmethod]
    fn resolve(spec: &str) -> PyResult<String> {
        let mut spec: Spec = from_json("spec", spec)?;
        spec.placement = Choice::Policy(spec.placement.resolved(spec.seed)?);
        spec.trees = Choice::Policy(spec.trees.resolved()?);
        Ok(json(&spec))
    }

    fn apply(&mut self, py: Python<'_>, now_ms: u64, command: &str) -> PyResult<String> {
        let command: Command = from_json("command", command)?;
        let state = &mut self.0;
        Ok(py.detach(|| {
            json(&match state.apply(now_ms, &command) {
                Ok(done) => {
                    let digest = Some(digest(&done));
                    Answer { done: Some(done), digest, refused: None }
                }
                Err(why) => {
                    let refused = Some(Refused { text: why.to_string(), why });
                    Answer { done: None, digest: None, refused }
                }
            })
        }))
    }

    fn replay(
        &mut self,
        py: Python<'_>,
        commands: Vec<(u64, String, i64)>,
        keep: usize,
    ) -> PyResult<String> {
        let state = &mut self.0;
        py.detach(|| {
            let mut replayed = Replayed::default();
            for (at, (now_ms, text, before)) in commands.into_iter().enumerate() {
                let command: Command = from_json("command", &text)?;
                let outcome = state.apply(now_ms, &command).ok();
                let Some(outcome) = outcome.filter(|outcome| digest(outcome) == before) else {
                    replayed.differs = Some(at);
                    break;
                };
                replayed.events += outcome.events.len() as u64;
                replayed.last.extend(outcome.events);
                while replayed.last.len() > keep {
                    replayed.last.pop_front();
                }
            }
            Ok(json(&replayed))
        })
    }

    #[pyo3(signature = (*, after=0, most=1000, state=None))]
    fn jobs(
        &self,
        py: Python<'_>,
        after: u64,
        most: usize,
        state: Option<&str>,
    ) -> PyResult<String> {
        let state = state.map(|word| from_json::<State>("state", &format!("{word:?}")));
        let state = state.transpose()?;
        Ok(py.detach(|| {
            let jobs = self.0.list(JobId(after));
            let jobs = jobs.filter(|job| state.is_none_or(|state| job.state == state));
            json(&jobs.take(most).collect::<Vec<_>>())
        }))
    }

    fn job(&self, job: u64) -> Option<String> {
        self.0.view(JobId(job)).map(|view| json(&view))
    }

    fn explain(&self, py: Python<'_>, job: u64) -> Option<String> {
        py.detach(|| self.0.explain(JobId(job)).map(|explanation| json(&explanation)))
    }

    fn cluster(&self) -> String {
        json(&self.0.cluster())
    }
}

fn made_of(spec: &str) -> PyResult<(Arc<Topology>, Config)> {
    let spec: Spec = from_json("spec", spec)?;
    let topology = topology_of(&spec.topology)?;
    let config = Config {
        capacity: Capacity::parse(&spec.capacity)
            .map_err(|error| PyValueError::new_err(error.to_string()))?,
        placement: spec.placement.resolved(spec.seed)?,
        trees: spec.trees.resolved()?,
        seed: spec.seed,
        most_queued: spec.most_queued,
        most_ended: spec.most_ended,
    };
    Ok((Arc::new(topology), config))
}

/// A policy for trees from its word and the parameters that were given; all others filled in.
#[pyfunction]
pub(crate) fn trees_policy(asked: &str) -> PyResult<String> {
    let asked: trees::Asked = from_json("trees", asked)?;
    let policy = asked.resolve().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(json(&policy))
}

/// What a job wins by its tree, in host-nanoseconds a second.
#[pyfunction]
pub(crate) fn tree_gain(pattern: &str, network: &str, hosts: u32) -> PyResult<u64> {
    let pattern: Pattern = from_json("pattern", pattern)?;
    let pattern =
        pattern.check().map_err(|error| PyValueError::new_err(format!("pattern: {error}")))?;
    let network: AllReduceSpeed = from_json("network", network)?;
    let network =
        network.check().map_err(|error| PyValueError::new_err(format!("network: {error}")))?;
    Ok(allocation::gain(&pattern, &network, hosts))
}

impl Choice<placement::Policy> {
    fn resolved(&self, seed: u64) -> PyResult<placement::Policy> {
        match self {
            Self::Policy(policy) => Ok(*policy),
            Self::Word(word) => match word.as_str() {
                "first-fit" => Ok(placement::Policy::FirstFit),
                "random" => Ok(placement::Policy::Random { seed }),
                "fragments" => {
                    Ok(placement::Policy::Fragments { alpha_millis: placement::ALPHA_MILLIS })
                }
                _ => Err(PyValueError::new_err(format!(
                    "placement {word:?}: must be fragments, first-fit or random"
                ))),
            },
        }
    }
}

impl Choice<trees::Policy> {
    fn resolved(&self) -> PyResult<trees::Policy> {
        match self {
            Self::Policy(policy) => Ok(*policy),
            // The service has no solver.
            Self::Word(word) if word == "exact" => Err(PyValueError::new_err(
                "trees \"exact\": must be gain, mina, first, first-gain, random or none",
            )),
            Self::Word(word) => {
                let asked = trees::Asked { trees: word.clone(), ..trees::Asked::default() };
                asked.resolve().map_err(|error| PyValueError::new_err(error.to_string()))
            }
        }
    }
}

fn topology_of(topology: &TopologyWord) -> PyResult<Topology> {
    let built = match topology {
        TopologyWord::Word(word) => Topology::parse(word),
        TopologyWord::Graph(spec) => spec.build(),
    };
    built.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// FNV-1a over what was decided. Not against malice: against another version of the program.
fn digest(outcome: &allocation::Outcome) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in json(outcome).bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash.cast_signed()
}

fn from_json<'a, T: Deserialize<'a>>(what: &str, text: &'a str) -> PyResult<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (key, inner) = (error.path().to_string(), error.inner().to_string());
        let inner = inner.split(" at line ").next().unwrap_or_default();
        PyValueError::new_err(match key.as_str() {
            "." => format!("{what}: {inner}"),
            key => format!("{what}: {key}: {inner}"),
        })
    })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is shown is plain data")
}
