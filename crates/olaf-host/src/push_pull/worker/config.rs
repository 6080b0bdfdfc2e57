//! How a worker is set up.

use super::path::PathConfig;
use crate::transmission::{TransmissionConfig, Words};
use core::time::Duration;
use olaf_engine::PeerId;
use olaf_engine::keys::{ConfigError, ms};
use olaf_wire::Address;
use olaf_wire::offsets::{DEFAULT_SEGMENT_LANES, MAX_DATAGRAM};
use serde::{Deserialize, Serialize};

/// What all workers of a job may be told alike, as serde reads and writes it: a flat table with
/// keys of `[worker]` in a configuration.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct WorkerOptions {
    /// Milliseconds between two heartbeats while there is nothing else to send. 500 ms: a
    /// switch and a server hear four before they call a worker silent.
    #[serde(rename = "keepalive_ms", with = "ms")]
    pub keepalive: Duration,
    /// A party that owes an answer for this time, in milliseconds, is reported silent. 2 s, as
    /// long as a switch and a server wait.
    #[serde(rename = "silent_after_ms", with = "ms")]
    pub silent_after: Duration,
    /// Sends datagrams as ECN-capable, so that a congested link may mark them. Off: a network may
    /// treat such datagrams otherwise, and a worker does not slow down on a mark.
    pub ecn: bool,
    /// When it sends what it has.
    #[serde(flatten)]
    pub transmission: Words,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            keepalive: Duration::from_millis(500),
            silent_after: Duration::from_secs(2),
            ecn: false,
            transmission: Words::default(),
        }
    }
}

impl WorkerOptions {
    /// The same, when its times can be; [`Words::read`] says whether its words can.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        ConfigError::unless_positive("keepalive_ms", self.keepalive > Duration::ZERO)?;
        ConfigError::unless_positive("silent_after_ms", self.silent_after > Duration::ZERO)?;
        Ok(self)
    }
}

/// The set-up.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// This worker's address. The session names this life of the worker: draw it at random.
    pub address: Address,
    /// The switch, or a server without one.
    pub switch: PeerId,
    /// Lanes of a segment; all workers of a job agree on it. Where the path is searched, the most
    /// that a segment may have.
    pub segment_lanes: u32,
    /// What is known of the path to the server.
    pub path: PathConfig,
    /// The worker says so often that it is there.
    pub keepalive: Duration,
    /// A party that owes an answer for this time is reported silent.
    pub silent_after: Duration,
    /// The datagrams are ECN-capable.
    pub ecn: bool,
    /// The worker asks for a model again if nothing more of the model came within this time.
    pub fetch_after: Duration,
    /// When it sends what it has.
    pub transmission: TransmissionConfig,
    /// Of the draws of transmission control.
    pub chance_seed: u64,
}

impl WorkerConfig {
    /// The usual set-up.
    #[must_use]
    pub fn new(address: Address, switch: PeerId) -> Self {
        let options = WorkerOptions::default();
        Self {
            address,
            switch,
            segment_lanes: DEFAULT_SEGMENT_LANES as u32,
            path: PathConfig { search: false, largest: MAX_DATAGRAM as u32, headers: 28 },
            keepalive: options.keepalive,
            silent_after: options.silent_after,
            ecn: options.ecn,
            fetch_after: Duration::from_millis(20),
            transmission: TransmissionConfig::default(),
            chance_seed: 0,
        }
    }
}
