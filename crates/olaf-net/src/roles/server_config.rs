//! The configuration of a parameter server as a process runs it.

use crate::checkpoint::{Files, Keeper};
use crate::error::StartError;
use crate::io::ReceiveLoss;
use olaf_host::push_pull::server::Server as Brain;
use olaf_host::push_pull::server::{self, Aggregate, RuleConfig, RuleKind, ServerGate, Step};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How updates change the model, as `docs/reference/statistics.md` describes it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address and port.
    pub listen: String,
    /// `delta` or `paper-literal`.
    pub rule: String,
    /// Gamma in `w += gamma g`.
    pub learning_rate: f64,
    /// `overlap`, `mean` or `sum`.
    pub step: String,
    /// `none`, `best` or `recent`.
    pub gate: String,
    /// How far below the gate's reference an update may be.
    pub gate_margin: f64,
    /// An update counts `(1 + versions behind)^-power`.
    pub staleness_power: f64,
    /// `each`, `periodic` or `round`.
    pub aggregate: String,
    /// `periodic`: so many contributions change the model together; none: only time does.
    pub aggregate_updates: Option<u32>,
    /// `periodic`: at the latest so long after the first; `round`: a round ends so long after its
    /// first contribution, without those that are missing.
    pub aggregate_ms: u64,
    /// Versions kept for workers that ask for missing segments.
    pub keep_versions: usize,
    /// Lanes of a segment, where the server is to insist on them; the first worker's otherwise.
    pub segment_lanes: Option<u32>,
    /// A worker unheard for so long is reported silent.
    pub silent_after_ms: u64,
    /// Several segments: a cluster is answered at the latest so long after its first one.
    pub round_ms: u64,
    /// The core to run on; none: the system chooses.
    pub core: Option<usize>,
    /// For tests and experiments: lose some of what arrives; none: lose nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_loss: Option<ReceiveLoss>,
    /// File that the model and all that goes with it is kept in; `{job}` stands for the job.
    pub checkpoint: Option<String>,
    /// How often that is written while anything changes.
    pub checkpoint_every_ms: u64,
    /// A file that exists is not taken up.
    pub fresh: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let (brain, rule) = (server::ServerConfig::default(), RuleConfig::default());
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        Self {
            listen: "127.0.0.1:5556".into(),
            rule: "delta".into(),
            learning_rate: rule.learning_rate,
            step: "overlap".into(),
            gate: "none".into(),
            gate_margin: rule.gate_margin,
            staleness_power: rule.staleness_power,
            aggregate: "each".into(),
            aggregate_updates: Some(8),
            aggregate_ms: 2000,
            keep_versions: brain.keep_versions,
            segment_lanes: None,
            silent_after_ms: ms(brain.silent_after),
            round_ms: ms(brain.round),
            core: None,
            receive_loss: None,
            checkpoint: None,
            checkpoint_every_ms: 30_000,
            fresh: false,
        }
    }
}

impl ServerConfig {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        crate::json::read("server", text)
    }

    /// Reads a table of a configuration file, in which `off` stands for what is not set.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_table(
        table: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, StartError> {
        crate::json::read_value("server", crate::json::with_nothing_for_off(table))
    }

    /// The table that [`Self::from_table`] reads, with every key.
    #[must_use]
    pub fn to_table(&self) -> serde_json::Map<String, serde_json::Value> {
        crate::json::written(self)
    }

    /// The rule alone.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn rule(&self) -> Result<RuleConfig, StartError> {
        let kinds = [("delta", RuleKind::Delta), ("paper-literal", RuleKind::PaperLiteral)];
        let steps = [("overlap", Step::Overlap), ("mean", Step::Mean), ("sum", Step::Sum)];
        let gates = [
            ("none", ServerGate::None),
            ("best", ServerGate::Best),
            ("recent", ServerGate::Recent),
        ];
        RuleConfig {
            kind: one_of("rule", &self.rule, &kinds)?,
            learning_rate: self.learning_rate,
            step: one_of("step", &self.step, &steps)?,
            gate: one_of("gate", &self.gate, &gates)?,
            gate_margin: self.gate_margin,
            staleness_power: self.staleness_power,
        }
        .check()
        .map_err(|error| StartError::Config(error.to_string()))
    }

    fn aggregate(&self) -> Result<Aggregate, StartError> {
        let above_0 = |key: &str| StartError::Config(format!("{key}: must be above 0"));
        if self.aggregate_ms == 0 {
            return Err(above_0("aggregate_ms"));
        }
        let (after, contributions) =
            (Duration::from_millis(self.aggregate_ms), self.aggregate_updates);
        if contributions == Some(0) {
            return Err(above_0("aggregate_updates"));
        }
        let known = [
            ("each", Aggregate::Each),
            ("periodic", Aggregate::Periodic { contributions, after }),
            ("round", Aggregate::Round { deadline: after }),
        ];
        one_of("aggregate", &self.aggregate, &known)
    }

    pub(super) fn keeper(&self, brain: &mut Brain) -> Result<Option<Keeper>, StartError> {
        if self.checkpoint_every_ms == 0 {
            return Err(StartError::Config("checkpoint_every_ms: must be above 0".into()));
        }
        let Some(path) = &self.checkpoint else { return Ok(None) };
        let every = Duration::from_millis(self.checkpoint_every_ms);
        Keeper::new(Files::new(path)?, every, self.fresh, brain).map(Some)
    }

    /// What the server's decisions depend on: without its address, its core and its files.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn brain(&self) -> Result<server::ServerConfig, StartError> {
        let positive = |key: &str, value: u64| match value {
            0 => Err(StartError::Config(format!("{key}: must be above 0"))),
            value => Ok(value),
        };
        Ok(server::ServerConfig {
            rule: self.rule()?,
            aggregate: self.aggregate()?,
            segment_lanes: self.segment_lanes,
            keep_versions: usize::try_from(positive("keep_versions", self.keep_versions as u64)?)
                .unwrap_or(usize::MAX),
            silent_after: Duration::from_millis(positive("silent_after_ms", self.silent_after_ms)?),
            round: Duration::from_millis(positive("round_ms", self.round_ms)?),
            ..server::ServerConfig::default()
        })
    }
}

fn one_of<T: Copy>(key: &str, name: &str, known: &[(&str, T)]) -> Result<T, StartError> {
    known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(known, _)| *known).collect();
        StartError::Config(format!("{key} = {name:?}: must be one of {}", names.join(", ")))
    })
}
