//! The configuration of a switch as a process runs it.

use crate::error::StartError;
use crate::io::ReceiveLoss;
use olaf_engine::BitsPerSecond;
use olaf_engine::switch::native::{self as switch, Admission, AnswerTo, Pacing, QueueKind, Ruling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The set-up, as `docs/reference/statistics.md` describes it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Address and port for workers and servers alike.
    #[serde(default = "default_listen")]
    pub listen: String,
    /// The server of every job not named in `routes`, or the next switch on the way to it.
    pub upstream: String,
    /// Servers of single jobs.
    #[serde(default)]
    pub routes: BTreeMap<u32, String>,
    /// The name of a [`QueueKind`].
    #[serde(default = "default_queue")]
    pub queue: String,
    /// Segments the queue holds, the one on the wire included.
    #[serde(default = "default_slots")]
    pub slots: usize,
    /// The reward gate's threshold; none: off.
    #[serde(default)]
    pub gate: Option<f64>,
    /// The rate pacer, bits of UDP payload per second.
    #[serde(default)]
    pub uplink_bps: Option<u64>,
    /// The credit pacer: updates outstanding towards servers.
    #[serde(default)]
    pub credits: Option<usize>,
    /// An unanswered credit comes back after so long.
    #[serde(default = "default_credit_timeout_ms")]
    pub credit_timeout_ms: u64,
    /// Who hears an answer: `shared` or `cluster`.
    #[serde(default = "default_answer_to")]
    pub answer_to: String,
    /// Asking before a cluster joins: how long an answer may take; none: nobody is asked.
    #[serde(default)]
    pub admission_timeout_ms: Option<u64>,
    /// The answer when time runs out: `admit` or `refuse`.
    #[serde(default = "default_admission_unanswered")]
    pub admission_unanswered: String,
    /// A refused cluster is not asked about again for so long.
    #[serde(default = "default_admission_refused_for_ms")]
    pub admission_refused_for_ms: u64,
    /// A cluster heard within so long is active.
    #[serde(default = "default_active_ms")]
    pub active_ms: u64,
    /// A peer unheard for so long is reported silent.
    #[serde(default = "default_silent_after_ms")]
    pub silent_after_ms: u64,
    /// The largest model a job may announce.
    #[serde(default = "default_max_parameters")]
    pub max_parameters: u32,
    /// Switches that an update or a join may pass; more are a circle.
    #[serde(default = "default_max_hops")]
    pub max_hops: u8,
    /// The core to run on; none: the system chooses.
    #[serde(default)]
    pub core: Option<usize>,
    /// For tests and experiments: lose some of what arrives; none: lose nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_loss: Option<ReceiveLoss>,
}

fn default_listen() -> String {
    "127.0.0.1:5555".into()
}
fn default_queue() -> String {
    "olaf".into()
}
fn default_slots() -> usize {
    8
}
fn default_credit_timeout_ms() -> u64 {
    1000
}
fn default_answer_to() -> String {
    "shared".into()
}
fn default_admission_unanswered() -> String {
    Ruling::Refuse.name().into()
}
fn default_admission_refused_for_ms() -> u64 {
    10_000
}
fn default_active_ms() -> u64 {
    1000
}
fn default_silent_after_ms() -> u64 {
    2000
}
fn default_max_hops() -> u8 {
    16
}
fn default_max_parameters() -> u32 {
    1 << 28
}

impl SwitchConfig {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        crate::json::read("switch", text)
    }

    /// Reads a table of a configuration file, in which `off` stands for what is not set.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_table(
        table: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, StartError> {
        crate::json::read_value("switch", crate::json::with_nothing_for_off(table))
    }

    /// The table that [`Self::from_table`] reads, with every key.
    #[must_use]
    pub fn to_table(&self) -> serde_json::Map<String, serde_json::Value> {
        crate::json::written(self)
    }

    /// What the switch's decisions depend on: without its address, its servers and its core.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn engine(&self) -> Result<switch::Config, StartError> {
        let queue = QueueKind::parse(&self.queue).ok_or_else(|| {
            StartError::Config(format!("queue = {:?}: must be {}", self.queue, QueueKind::names()))
        })?;
        let answer_to = match self.answer_to.as_str() {
            "shared" => AnswerTo::Shared,
            "cluster" => AnswerTo::Cluster,
            other => {
                return Err(StartError::Config(format!(
                    "answer_to = {other:?}: must be shared or cluster"
                )));
            }
        };
        let unanswered = Ruling::parse(&self.admission_unanswered).ok_or_else(|| {
            StartError::Config(format!(
                "admission_unanswered = {:?}: must be admit or refuse",
                self.admission_unanswered
            ))
        })?;
        let admission = self.admission_timeout_ms.map(|timeout| Admission {
            timeout: Duration::from_millis(timeout),
            unanswered,
            refused_for: Duration::from_millis(self.admission_refused_for_ms),
            ..Admission::default()
        });
        let timeout = Duration::from_millis(self.credit_timeout_ms);
        let pacing = match (self.uplink_bps, self.credits) {
            (None, None) => Pacing::Unlimited,
            (Some(rate), None) => Pacing::Rate(BitsPerSecond::new(rate).ok_or_else(|| {
                let max = BitsPerSecond::MAX;
                StartError::Config(format!("uplink_bps = {rate}: must be from 1 to {max}"))
            })?),
            (None, Some(credits)) => Pacing::Credits { credits, timeout },
            (Some(_), Some(_)) => {
                return Err(StartError::Config(
                    "uplink_bps and credits: give at most one of the two".into(),
                ));
            }
        };
        let config = switch::Config {
            queue,
            slots: self.slots,
            gate: self.gate,
            pacing,
            answer_to,
            admission,
            active: Duration::from_millis(self.active_ms),
            silent_after: Duration::from_millis(self.silent_after_ms),
            max_parameters: self.max_parameters,
            max_hops: self.max_hops,
            ..switch::Config::default()
        };
        config.check().map_err(|error| StartError::Config(error.to_string()))
    }
}
