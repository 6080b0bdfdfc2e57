//! What is simulated: a cluster, its policies, and a list of jobs. Checked once.

use olaf_sched::topology::{Capacity, TopologyError, TopologySpec};
use olaf_sched::{AllReduceSpeed, Pattern, Steps, Topology};
use olaf_sched::{pattern, placement, sharing, trees};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A cluster, its policies and its jobs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Hosts and switches.
    pub topology: Shape,
    /// What each switch, or each port, can sum for at once: no all-reduce uses more.
    #[serde(deserialize_with = "capacity_word")]
    pub capacity: Capacity,
    /// When two trees conflict.
    pub conflicts: trees::Conflicts,
    /// Which hosts a job gets.
    pub placement: placement::Policy,
    /// Which tree.
    pub trees: trees::Policy,
    /// Which of its all-reduces use it.
    pub sharing: sharing::Policy,
    /// How long an all-reduce takes.
    pub network: AllReduceSpeed,
    /// How much faster than recorded the jobs compute, in thousandths.
    pub compute_speed_millis: u32,
    /// For how long a job has no tree when it is given another one.
    pub migration_ns: u64,
    /// What happens when jobs end at the same instant.
    pub ties: Ties,
    /// Of what the choice of trees draws.
    pub seed: u64,
    /// What jobs communicate.
    pub patterns: Vec<Pattern>,
    /// In order of arrival; all wait in line at time 0.
    pub jobs: Vec<Job>,
    /// Records the trees that each job held, and each use of the switches, in this part of the run.
    pub timeline: Option<Window>,
}

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// From.
    pub from_ns: u64,
    /// Up to.
    pub to_ns: u64,
}

/// A topology as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// As [`Topology::parse`] reads it: `fat-tree:16`.
    Word(String),
    /// Any graph.
    Graph(TopologySpec),
}

impl Shape {
    fn build(&self) -> Result<Topology, TopologyError> {
        match self {
            Self::Word(word) => Topology::parse(word),
            Self::Graph(spec) => spec.build(),
        }
    }
}

/// What happens when several jobs end at the same instant: steps are alike, so this is common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// All leave, then those at the head of the line are placed and arrive together.
    #[default]
    Together,
    /// One leaves and those for which there is room then arrive; then the next, in the list's
    /// order.
    Forwards,
    /// The same from the list's end: the order of the authors' simulator, one job a switch.
    Backwards,
}

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Job {
    /// An index into the patterns.
    pub pattern: usize,
    /// How many it asks for.
    pub hosts: u32,
    /// How many steps it takes.
    pub steps: u64,
}

fn capacity_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Capacity, D::Error> {
    let word = String::deserialize(deserializer)?;
    Capacity::parse(&word).map_err(serde::de::Error::custom)
}

/// The most jobs.
pub const MOST_JOBS: usize = 10_000_000;
/// All jobs one after the other take less than this, so that no sum of times overflows: 146 years.
const LONGEST_RUN_NS: u128 = 1 << 62;

/// Why a setting is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// There is no such topology.
    Topology(TopologyError),
    /// A capacity of no unit.
    Capacity,
    /// A speed of 0, one that makes all-reduces slower, or all-reduces of a day.
    Speed(&'static str),
    /// A pattern is none.
    Pattern(String, pattern::PatternError),
    /// More than [`MOST_JOBS`], or none.
    Jobs(usize),
    /// The job at this place has no such pattern.
    NoPattern(usize),
    /// The job at this place has no host or no step.
    Empty(usize),
    /// The job at this place asks for more hosts than the cluster has.
    TooLarge {
        /// Counted from 0.
        job: usize,
        /// Asked for.
        hosts: u32,
        /// In the cluster.
        cluster: usize,
    },
    /// All jobs together may take longer than 146 years, at the job at this place.
    TooLong(usize),
    /// The timeline's part of the run ends before it begins.
    Window(Window),
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology(error) => write!(f, "{error}"),
            Self::Capacity => write!(f, "capacity: must be at least 1"),
            Self::Speed(what) => write!(f, "{what}"),
            Self::Pattern(name, error) => write!(f, "pattern {name}: {error}"),
            Self::Jobs(jobs) => write!(f, "{jobs} jobs: must be from 1 to {MOST_JOBS}"),
            Self::NoPattern(job) => write!(f, "jobs[{job}].pattern: no such pattern is given"),
            Self::Empty(job) => write!(f, "jobs[{job}]: needs at least one host and one step"),
            Self::TooLarge { job, hosts, cluster } => {
                write!(f, "jobs[{job}]: {hosts} hosts asked for; the cluster has {cluster}")
            }
            Self::TooLong(job) => {
                write!(f, "jobs[{job}]: the jobs up to this one may take longer than 146 years")
            }
            Self::Window(window) => {
                let Window { from_ns, to_ns } = window;
                write!(f, "timeline: from {from_ns} ns must be before to {to_ns} ns")
            }
        }
    }
}

impl std::error::Error for SettingError {}

/// A setting that was checked, with what is computed from it once.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) setting: Setting,
    pub(super) topology: Arc<Topology>,
    /// Of each job, shared by those that are alike.
    pub(super) steps: Vec<Arc<Steps>>,
}

impl Setting {
    pub(super) fn check(self) -> Result<Checked, SettingError> {
        let topology = self.topology.build().map_err(SettingError::Topology)?;
        if self.capacity.units() == 0 {
            return Err(SettingError::Capacity);
        }
        self.network.check().map_err(SettingError::Speed)?;
        if self.compute_speed_millis == 0 {
            return Err(SettingError::Speed("compute speed: must be above 0"));
        }
        if let Some(window) = self.timeline.filter(|window| window.from_ns >= window.to_ns) {
            return Err(SettingError::Window(window));
        }
        if self.jobs.is_empty() || self.jobs.len() > MOST_JOBS {
            return Err(SettingError::Jobs(self.jobs.len()));
        }
        let patterns = self.patterns.iter().map(|pattern| {
            let checked = pattern.clone().check();
            let checked = checked.and_then(|it| it.faster(self.compute_speed_millis).check());
            checked.map_err(|error| SettingError::Pattern(pattern.name.clone(), error))
        });
        let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
        let steps = self.steps(&patterns, topology.hosts().len())?;
        Ok(Checked { setting: self, topology: Arc::new(topology), steps })
    }

    fn steps(&self, patterns: &[Pattern], cluster: usize) -> Result<Vec<Arc<Steps>>, SettingError> {
        let mut made: BTreeMap<(usize, u32), Arc<Steps>> = BTreeMap::new();
        let mut total_ns = 0;
        let each = self.jobs.iter().enumerate().map(|(number, job)| {
            let told = patterns.get(job.pattern).ok_or(SettingError::NoPattern(number))?;
            if job.hosts == 0 || job.steps == 0 {
                return Err(SettingError::Empty(number));
            }
            if job.hosts as usize > cluster {
                return Err(SettingError::TooLarge { job: number, hosts: job.hosts, cluster });
            }
            let network = &self.network;
            let steps = made
                .entry((job.pattern, job.hosts))
                .or_insert_with(|| Arc::new(Steps::new(told, network, job.hosts)));
            // What takes longer counts as a day: the run would not be the one that was asked for.
            if steps.without_ns.iter().any(|&ns| ns >= pattern::LONGEST_NS) {
                return Err(SettingError::Speed(
                    "bandwidth, latency: an all-reduce must take less than a day",
                ));
            }
            total_ns += u128::from(steps.none_ns) * u128::from(job.steps);
            total_ns += u128::from(self.migration_ns);
            if total_ns >= LONGEST_RUN_NS {
                return Err(SettingError::TooLong(number));
            }
            Ok(Arc::clone(steps))
        });
        each.collect()
    }
}
