//! How a switch of ATP is set up: data, checked once.

use crate::keys::{ConfigError, ms};
use crate::party::Tenants;
use crate::sums::SILENCE;
use crate::time::BitsPerSecond;
use core::time::Duration;
use olaf_wire::atp::MAX_AGGREGATORS;
use serde::{Deserialize, Serialize};

/// The set-up, as serde reads and writes it: a flat table with the keys of `[switch.atp]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Config {
    /// Aggregators of all jobs together. 16,384: 4 MB of the paper's frames.
    pub aggregators: u32,
    /// Bytes of all sums. A packet that finds no memory goes on to the server. 64 MiB.
    pub memory_bytes: u64,
    /// An aggregator that is not added to for this time, in milliseconds, may be freed by another
    /// fragment's parameter packet (ATP §3.7 leaves the value open). 1 s.
    #[serde(rename = "max_age_ms", with = "ms")]
    pub max_age: Duration,
    /// Most jobs at once, counted for each server of theirs. 64.
    pub jobs: u32,
    /// A worker that is not heard for this time, in milliseconds, gets no parameter packets any more.
    /// [`SILENCE`]: 5 s.
    #[serde(rename = "silence_ms", with = "ms")]
    pub silence: Duration,
    /// Rate of the link towards the servers, bits of UDP payload per second. Off: the system's own
    /// socket is the only limit.
    #[serde(rename = "uplink_bps")]
    pub uplink: Option<BitsPerSecond>,
    /// Rate of the link towards the workers, bits of UDP payload per second. Off: the system's own
    /// socket is the only limit.
    #[serde(rename = "downlink_bps")]
    pub downlink: Option<BitsPerSecond>,
    /// Datagrams that may wait for each link; more are dropped, and sent again by the workers.
    #[serde(rename = "link_limit_datagrams")]
    pub link_limit: usize,
    /// Packets carry the ECN mark while that many wait for their link. Off: never.
    #[serde(rename = "ecn_depth_datagrams")]
    pub ecn_depth: Option<usize>,
    /// The jobs that are served, and what each of them may take. All, without limits.
    #[serde(skip)]
    pub tenants: Tenants,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            aggregators: 16_384,
            memory_bytes: 64 << 20,
            max_age: Duration::from_secs(1),
            jobs: 64,
            silence: SILENCE,
            uplink: None,
            downlink: None,
            link_limit: 65_536,
            ecn_depth: None,
            tenants: Tenants::default(),
        }
    }
}

impl Config {
    /// The same, when its numbers can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        if self.aggregators == 0 || self.aggregators > MAX_AGGREGATORS {
            return Err(ConfigError { key: "aggregators", allowed: "must be from 1 to 65536" });
        }
        ConfigError::unless_positive("memory_bytes", self.memory_bytes > 0)?;
        ConfigError::unless_positive("max_age_ms", self.max_age > Duration::ZERO)?;
        ConfigError::unless_positive("jobs", self.jobs > 0)?;
        ConfigError::unless_positive("silence_ms", self.silence > Duration::ZERO)?;
        ConfigError::unless_positive("link_limit_datagrams", self.link_limit > 0)?;
        ConfigError::unless_positive("ecn_depth_datagrams", self.ecn_depth != Some(0))?;
        Ok(self)
    }
}
