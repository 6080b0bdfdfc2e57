//! Replays the queue traces of `vectors/queue` through each queue and its reference model.
//!
//! To add a case: write its steps as a file of its own with the fields `arrive`, `begin` and `end`
//! alone, run this test with `OLAF_FILL_VECTORS=1`, which lets the reference model fill in what follows
//! from each step, and read what it wrote.

use olaf_engine::switch::native::QueueKind;
use olaf_engine::{
    Arrival, ClusterId, Contribution, Discipline, Entry, Flow, JobId, Outcome, WorkerId,
    queue::fifo, queue::freshest, queue::merging,
};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    about: String,
    discipline: String,
    slots: usize,
    gate: Option<f64>,
    steps: Vec<Step>,
}

#[derive(Deserialize, Serialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(skip_serializing_if = "Option::is_none")]
    arrive: Option<Update>,
    /// The next entry, if any, is locked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    begin: bool,
    /// The locked entry, if any, has left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    end: bool,
    /// What became of the arrival.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    outcome: String,
    /// The entry that the step was about; null where there was none.
    #[serde(default)]
    entry: Option<u64>,
    /// Whether the first of the queue is on the wire.
    #[serde(default)]
    locked: bool,
    /// The queue after the step.
    #[serde(default)]
    queue: Vec<Update>,
}

/// An arrival, or an entry. Numbers that JSON does not have are written as texts: "nan", "inf".
#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Update {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<u64>,
    job: u32,
    cluster: u32,
    segment: u32,
    /// Of an arrival: segments of its model, where not as many as up to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    segments: Option<u32>,
    worker: u32,
    sequence: u32,
    contributors: u32,
    weight: Number,
    reward: Number,
    generated_ns: (u64, u64),
    versions: (u32, u32),
    hops: u8,
    bytes: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaceable: Option<bool>,
    lanes: Vec<Number>,
}

#[derive(Deserialize, Serialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Text(String),
}

impl Number {
    fn get(&self) -> f64 {
        match self {
            Self::Finite(number) => *number,
            Self::Text(text) => text.parse().unwrap(),
        }
    }
}

fn queue_of(update: &Entry) -> Update {
    let sum = &update.contribution;
    Update {
        entry: Some(update.id.0),
        job: sum.flow.job.0,
        cluster: sum.flow.cluster.0,
        segment: sum.flow.segment,
        segments: None,
        worker: sum.worker.0,
        sequence: sum.sequence,
        contributors: sum.contributors,
        weight: Number::Finite(sum.weight),
        reward: Number::Finite(sum.reward),
        generated_ns: sum.generated_ns,
        versions: sum.versions,
        hops: sum.hops,
        bytes: sum.bytes,
        replaceable: Some(update.replaceable),
        lanes: update.lanes.iter().map(|lane| Number::Finite(f64::from(*lane))).collect(),
    }
}

/// The step with what follows from it.
fn take(step: &Step, queue: &mut dyn Discipline) -> Step {
    let mut taken =
        Step { arrive: step.arrive.clone(), begin: step.begin, end: step.end, ..Step::default() };
    if let Some(update) = &step.arrive {
        let lanes: Vec<u8> =
            update.lanes.iter().flat_map(|lane| (lane.get() as f32).to_le_bytes()).collect();
        let (job, cluster) = (JobId(update.job), ClusterId(update.cluster));
        let contribution = Contribution {
            flow: Flow { job, cluster, segment: update.segment },
            worker: WorkerId(update.worker),
            sequence: update.sequence,
            segments: update.segments.unwrap_or(update.segment + 1),
            contributors: update.contributors,
            weight: update.weight.get(),
            reward: update.reward.get(),
            generated_ns: update.generated_ns,
            versions: update.versions,
            hops: update.hops,
            bytes: update.bytes,
        };
        let outcome = queue.arrive(&Arrival { contribution, lanes: &lanes });
        let (name, entry) = match outcome {
            Outcome::Appended(entry) => ("appended", Some(entry)),
            Outcome::Merged(entry) => ("merged", Some(entry)),
            Outcome::Replaced { entry, .. } => ("replaced", Some(entry)),
            Outcome::Filtered(entry) => ("filtered", Some(entry)),
            Outcome::Evicted { entry, .. } => ("evicted", Some(entry)),
            Outcome::Dropped => ("dropped", None),
            Outcome::Rejected(rejection) => (rejection.name(), None),
        };
        (taken.outcome, taken.entry) = (name.to_owned(), entry.map(|entry| entry.0));
    } else if step.begin {
        taken.entry = queue.begin_departure().map(|entry| entry.id.0);
    } else {
        taken.entry = queue.end_departure().map(|entry| entry.0);
    }
    taken.locked = queue.departing().is_some();
    taken.queue = queue.entries().into_iter().map(queue_of).collect();
    taken
}

fn same(found: &Step, expected: &Step) -> bool {
    let head = |step: &Step| (step.outcome.clone(), step.entry, step.locked, step.queue.len());
    head(found) == head(expected)
        && found.queue.iter().zip(&expected.queue).all(|(found, expected)| {
            let (a, b) = (found.reward.get(), expected.reward.get());
            let reward = expected.reward.clone();
            (a - b).abs() <= 1e-9 * b.abs().max(1.0)
                && Update { reward, ..found.clone() } == *expected
        })
}

fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/queue");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    files
}

fn fill(vector: &Vector, reference: &mut dyn Discipline) -> String {
    let quoted = |value| serde_json::to_string(value).unwrap();
    let (about, discipline) = (quoted(&vector.about), quoted(&vector.discipline));
    let gate = vector.gate.map_or("null".to_owned(), |gate| gate.to_string());
    let mut out = format!(
        "{{\n\"about\": {about},\n\"discipline\": {discipline}, \"slots\": {}, \"gate\": {gate},\n\"steps\": [",
        vector.slots
    );
    for (at, step) in vector.steps.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(out, "{comma}\n{}", serde_json::to_string(&take(step, reference)).unwrap()).unwrap();
    }
    out + "\n]}\n"
}

#[test]
fn every_queue_replays_every_vector() {
    let files = files();
    assert!(files.len() >= 10, "only {} vectors are here", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let vector: Vector =
            serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let kind = QueueKind::parse(&vector.discipline).unwrap();
        let (slots, gate) = (vector.slots, vector.gate);
        let mut reference: Box<dyn Discipline> = match kind {
            QueueKind::Merging => Box::new(merging::reference::Reference::new(slots, gate)),
            QueueKind::Fifo => Box::new(fifo::reference::Reference::new(slots)),
            QueueKind::Freshest => Box::new(freshest::reference::Reference::new(slots, gate)),
            #[allow(unreachable_patterns, reason = "for the next discipline")]
            kind => panic!("{}: give it its slow reference here", kind.name()),
        };
        if std::env::var_os("OLAF_FILL_VECTORS").is_some() {
            std::fs::write(&file, fill(&vector, &mut *reference)).unwrap();
            continue;
        }
        let mut queue = kind.queue(slots, gate);
        for (at, step) in vector.steps.iter().enumerate() {
            for (name, found) in
                [("queue", take(step, &mut *queue)), ("reference", take(step, &mut *reference))]
            {
                let (file, about) = (file.display(), &vector.about);
                let (found_json, step_json) =
                    (serde_json::to_string(&found).unwrap(), serde_json::to_string(step).unwrap());
                assert!(
                    same(&found, step),
                    "{file} ({about}), step {at}, the {name} has\n{found_json}\nwhere belongs\n{step_json}"
                );
            }
        }
    }
}
