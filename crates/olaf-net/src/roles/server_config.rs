//! The configuration of a parameter server as a process runs it.

use crate::checkpoint::{Files, Keeper};
use crate::error::StartError;
use crate::io::ReceiveLoss;
use crate::json;
use crate::keys::KeyText;
use crate::roles::ONLY_WHERE_SET;
use crate::roles::tenants::{self, JobConfig};
use olaf_engine::keys::ms;
use olaf_host::push_pull::server::{self, RuleConfig, Server as Brain};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// The set-up: the server's own, and what a process has besides.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct ServerConfig {
    /// Address and port. Loopback, so that nothing is offered to a network by accident.
    pub listen: String,
    /// Addresses of the switches that send to the server. A join that has passed another switch is refused.
    /// None: each sender may be a switch; without keys a stranger, too.
    pub switches_from: Vec<String>,
    /// Files with keys, each of one job or of any: only parties with a key are let in. None: everybody
    /// is.
    pub key_files: Vec<String>,
    /// Texts of such files, from the program that started this one.
    #[serde(skip_serializing)]
    pub keys: Vec<KeyText>,
    /// Listens beyond this machine without a key, so that anybody there may take part.
    pub insecure: bool,
    /// Address to serve metrics, health and a status page on, by HTTP. None: they are not served.
    pub metrics: Option<String>,
    /// File with the token that readers of `metrics` send; an address beyond loopback needs one.
    pub metrics_token_file: Option<String>,
    /// The jobs that are served, each with its key and what it may take. None: every job, without
    /// limits.
    pub jobs: Vec<JobConfig>,
    /// The core to run on. Off: the system chooses.
    pub core: Option<usize>,
    /// For tests and experiments: lose some of the arriving datagrams; none: lose nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_loss: Option<ReceiveLoss>,
    /// File that the model and all that goes with it is kept in; `{job}` stands for the job.
    pub checkpoint: Option<String>,
    /// Milliseconds between checkpoints, while anything changes.
    #[serde(rename = "checkpoint_every_ms", with = "ms")]
    pub checkpoint_every: Duration,
    /// A file that exists is not taken up.
    pub fresh: bool,
    /// What the server's decisions depend on.
    #[serde(flatten)]
    pub brain: server::ServerConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:5556".into(),
            switches_from: Vec::new(),
            key_files: Vec::new(),
            keys: Vec::new(),
            insecure: false,
            metrics: None,
            metrics_token_file: None,
            jobs: Vec::new(),
            core: None,
            receive_loss: None,
            checkpoint: None,
            checkpoint_every: Duration::from_secs(30),
            fresh: false,
            brain: server::ServerConfig::default(),
        }
    }
}

impl ServerConfig {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        json::parsed("server", text).and_then(Self::from_value)
    }

    /// Reads JSON that was parsed already.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_value(value: Value) -> Result<Self, StartError> {
        json::read_flat("server", value, ONLY_WHERE_SET)
    }

    /// Reads a table of a configuration file, in which `off` stands for what is not set.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_table(table: Map<String, Value>) -> Result<Self, StartError> {
        Self::from_value(json::with_nothing_for_off(table))
    }

    /// The table that [`Self::from_table`] reads, with every key.
    #[must_use]
    pub fn to_table(&self) -> Map<String, Value> {
        json::written(self)
    }

    /// Returns true if parties need a key.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        tenants::has_keys(&self.key_files, &self.keys, &self.jobs)
    }

    /// Returns true if other machines may reach it: each of its keys is secret, or it serves anybody.
    pub(super) fn may_be_reached(&self) -> bool {
        self.insecure || tenants::has_secret_keys(&self.key_files, &self.keys, &self.jobs)
    }

    /// The rule alone.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn rule(&self) -> Result<RuleConfig, StartError> {
        self.brain.rule.check().map_err(|error| StartError::Config(error.to_string()))
    }

    pub(super) fn keeper(&self, brain: &mut Brain) -> Result<Option<Keeper>, StartError> {
        if self.checkpoint_every.is_zero() {
            return Err(StartError::Config("checkpoint_every_ms: must be above 0".into()));
        }
        let Some(path) = &self.checkpoint else { return Ok(None) };
        Keeper::new(Files::new(path)?, self.checkpoint_every, self.fresh, brain).map(Some)
    }

    /// What the server's decisions depend on: without its address, its core and its files.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn brain(&self) -> Result<server::ServerConfig, StartError> {
        let tenants = tenants::tenants(&self.jobs)?;
        let brain = server::ServerConfig { tenants, ..self.brain.clone() };
        brain.check().map_err(|error| StartError::Config(error.to_string()))
    }
}
