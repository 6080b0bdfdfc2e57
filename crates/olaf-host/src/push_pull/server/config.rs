//! How a server is set up: data, checked once.

use super::aggregate::Aggregate;
use super::rule::RuleConfig;
use core::time::Duration;
use olaf_engine::keys::{ConfigError, ms, ms_or_off, named};
use olaf_engine::party::{Limits, Tenants};
use olaf_engine::switch::native::LARGEST_MODEL;
use olaf_wire::{AggregateKind, JobRule};
use serde::{Deserialize, Serialize};

/// The set-up, as serde reads and writes it: a flat table with the keys of `[server]` in a
/// configuration.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ServerConfig {
    /// How updates change the models.
    #[serde(flatten)]
    pub rule: RuleConfig,
    /// How far one contribution may move a model.
    #[serde(flatten)]
    pub limits: Limits,
    /// When updates change the models. `each`, as OLAF has it.
    #[serde(with = "named")]
    pub aggregate: AggregateKind,
    /// `periodic`: this number of contributions changes the model together. 8, one of each worker
    /// of a default run. Off: only `aggregate_within` ends a period.
    pub aggregate_updates: Option<u32>,
    /// Milliseconds. `periodic`: a period ends at the latest this long after its first
    /// contribution. `round`: a round ends then, without the contributions that are missing. 2 s,
    /// several turns of a worker.
    #[serde(rename = "aggregate_ms", with = "ms")]
    pub aggregate_within: Duration,
    /// Lanes of a segment that every worker must have. Off: as the job's first worker has them.
    pub segment_lanes: Option<u32>,
    /// Versions kept for workers that ask for segments they missed. 4: a worker asks within a few
    /// round trips.
    pub keep_versions: usize,
    /// A worker unheard for this time, in milliseconds, is silent; its id may then be taken over.
    /// 2 s, four keepalives of a worker.
    #[serde(rename = "silent_after_ms", with = "ms")]
    pub silent_after: Duration,
    /// A job without workers for this time, in milliseconds, is forgotten, unless the list of jobs names
    /// it. Off: none is. 1 day: a pause overnight loses nothing, and who fills the server with jobs and
    /// goes keeps others out for a day at most.
    #[serde(rename = "forget_jobs_after_ms", with = "ms_or_off")]
    pub forget_jobs_after: Option<Duration>,
    /// Milliseconds. Several segments: a cluster is answered at the latest this long after its
    /// first unanswered segment. 50 ms, far above the spread of one update's segments.
    #[serde(rename = "round_ms", with = "ms")]
    pub round: Duration,
    /// Sends datagrams as ECN-capable, so that a congested link may mark them. Off: a network may
    /// treat such datagrams otherwise, and a server does not slow down on a mark.
    pub ecn: bool,
    /// If no segment of an offered model came for this time, the server takes the model from
    /// another worker. No configuration sets this field or the fields below.
    #[serde(skip)]
    pub offer_patience: Duration,
    /// A job restored from a checkpoint waits this long, from its first join on, for a worker that
    /// has a newer model. Longer than a slow round trip and a keepalive together.
    #[serde(skip)]
    pub restore_patience: Duration,
    /// The largest model, in parameters.
    #[serde(skip)]
    pub max_parameters: u32,
    /// Jobs served at once.
    #[serde(skip)]
    pub max_jobs: usize,
    /// Workers of one job.
    #[serde(skip)]
    pub max_workers: usize,
    /// Datagrams and models that may wait to be sent.
    #[serde(skip)]
    pub answer_limit: usize,
    /// The jobs that are served, and what each of them may take. All, without limits.
    #[serde(skip)]
    pub tenants: Tenants,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            rule: RuleConfig::default(),
            limits: Limits::default(),
            aggregate: AggregateKind::Each,
            aggregate_updates: Some(8),
            aggregate_within: Duration::from_secs(2),
            segment_lanes: None,
            keep_versions: 4,
            silent_after: Duration::from_secs(2),
            forget_jobs_after: Some(Duration::from_secs(86_400)),
            round: Duration::from_millis(50),
            ecn: false,
            offer_patience: Duration::from_millis(300),
            restore_patience: Duration::from_secs(2),
            max_parameters: LARGEST_MODEL,
            max_jobs: 1024,
            max_workers: 65_536,
            answer_limit: 65_536,
            tenants: Tenants::default(),
        }
    }
}

impl ServerConfig {
    /// The same, when it can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        let positive = ConfigError::unless_positive;
        self.rule.check()?;
        self.limits.check()?;
        positive("aggregate_updates", self.aggregate_updates != Some(0))?;
        positive("aggregate_ms", self.aggregate_within > Duration::ZERO)?;
        positive("keep_versions", self.keep_versions > 0)?;
        positive("silent_after_ms", self.silent_after > Duration::ZERO)?;
        positive("forget_jobs_after_ms", self.forget_jobs_after != Some(Duration::ZERO))?;
        positive("round_ms", self.round > Duration::ZERO)?;
        Ok(self)
    }

    /// When updates change the models.
    #[must_use]
    pub const fn aggregate(&self) -> Aggregate {
        match self.aggregate {
            AggregateKind::Each => Aggregate::Each,
            AggregateKind::Periodic => Aggregate::Periodic {
                contributions: self.aggregate_updates,
                after: self.aggregate_within,
            },
            AggregateKind::Round => Aggregate::Round { deadline: self.aggregate_within },
        }
    }

    /// The same with that aggregation.
    #[must_use]
    pub const fn aggregating(mut self, aggregate: Aggregate) -> Self {
        self.aggregate = aggregate.kind();
        match aggregate {
            Aggregate::Each => {}
            Aggregate::Periodic { contributions, after } => {
                (self.aggregate_updates, self.aggregate_within) = (contributions, after);
            }
            Aggregate::Round { deadline } => self.aggregate_within = deadline,
        }
        self
    }

    /// What every welcome tells a worker of the rule.
    pub(super) const fn told(&self) -> JobRule {
        JobRule {
            kind: self.rule.kind,
            aggregate: self.aggregate,
            step: self.rule.step,
            gate: self.rule.gate,
            factor: self.rule.learning_rate,
            staleness_power: self.rule.staleness_power,
        }
    }
}
