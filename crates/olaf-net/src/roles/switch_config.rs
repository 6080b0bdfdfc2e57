//! The configuration of a switch as a process runs it.

use crate::error::StartError;
use crate::io::ReceiveLoss;
use crate::json;
use crate::roles::ONLY_WHERE_SET;
use olaf_engine::switch::native as switch;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The set-up: the engine's own, and what a process has besides.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct SwitchConfig {
    /// Address and port for workers and servers alike. Loopback, so that nothing is offered to a
    /// network by accident.
    pub listen: String,
    /// The server of every job not named in `routes`, or the next switch on the way to it. The
    /// address that a server has by default on the same machine.
    pub upstream: String,
    /// Servers of single jobs.
    pub routes: BTreeMap<u32, String>,
    /// The core to run on. Off: the system chooses.
    pub core: Option<usize>,
    /// For tests and experiments: lose some of the arriving datagrams; none: lose nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_loss: Option<ReceiveLoss>,
    /// What the switch's decisions depend on.
    #[serde(flatten)]
    pub engine: switch::Config,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:5555".into(),
            upstream: super::ServerConfig::default().listen,
            routes: BTreeMap::new(),
            core: None,
            receive_loss: None,
            engine: switch::Config::default(),
        }
    }
}

impl SwitchConfig {
    /// Reads JSON, which names the upstream.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        json::parsed("switch", text).and_then(Self::from_value)
    }

    /// Reads JSON that was parsed already and names the upstream.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_value(value: Value) -> Result<Self, StartError> {
        if value.get("upstream").is_none() {
            // A program that starts a switch knows where its updates shall go.
            return Err(StartError::Config("switch configuration: missing key `upstream`".into()));
        }
        json::read_flat("switch", value, ONLY_WHERE_SET)
    }

    /// Reads a table of a configuration file, in which `off` stands for what is not set.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_table(table: Map<String, Value>) -> Result<Self, StartError> {
        json::read_flat("switch", json::with_nothing_for_off(table), ONLY_WHERE_SET)
    }

    /// The table that [`Self::from_table`] reads, with every key.
    #[must_use]
    pub fn to_table(&self) -> Map<String, Value> {
        json::written(self)
    }

    /// What the switch's decisions depend on: without its address, its servers and its core.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn engine(&self) -> Result<switch::Config, StartError> {
        self.engine.clone().check().map_err(|error| StartError::Config(error.to_string()))
    }
}
