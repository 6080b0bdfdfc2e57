//! How a switch of `reduce` is set up: data, checked once.

use crate::keys::{ConfigError, ms, ms_or_off, named};
use crate::party::Tenants;
use crate::sums::SILENCE;
use crate::switch::NonFinite;
use crate::time::BitsPerSecond;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// The set-up, as serde reads and writes it: a flat table with the keys of `[switch.reduce]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Config {
    /// Bytes of the tables of all jobs. Each job gets `memory_bytes` / `jobs`, 32 MiB by
    /// default, while it runs. 1 GiB.
    pub memory_bytes: u64,
    /// Most jobs at once. A group of torch beside the world is one, too. 32.
    pub jobs: u32,
    /// Most slots of a job. Its share of the memory may allow fewer. 8,192.
    pub slots: u32,
    /// A worker that is not heard for this time, in milliseconds, while others wait for it, is dead.
    /// [`SILENCE`]: 5 s.
    #[serde(rename = "silence_ms", with = "ms")]
    pub silence: Duration,
    /// A block that is incomplete for this time, in milliseconds, ends without the missing workers,
    /// for jobs that ask for no deadline of their own. Off: a block waits for all workers.
    #[serde(rename = "deadline_ms", with = "ms_or_off")]
    pub deadline: Option<Duration>,
    /// What becomes of a piece with a NaN or an infinity. `pass`, as other all-reduces do. A refused piece counts as
    /// missing.
    #[serde(with = "named")]
    pub non_finite: NonFinite,
    /// Rate of the link towards the switch above, bits of UDP payload per second. Off: the system's
    /// own socket is the only limit.
    #[serde(rename = "uplink_bps")]
    pub uplink: Option<BitsPerSecond>,
    /// Rate of the link towards the workers, bits of UDP payload per second. Off: the system's own
    /// socket is the only limit.
    #[serde(rename = "downlink_bps")]
    pub downlink: Option<BitsPerSecond>,
    /// Results that may wait for the downlink; more are dropped, and asked for again.
    #[serde(rename = "downlink_limit_datagrams")]
    pub downlink_limit: usize,
    /// Results carry the ECN mark while that many wait for the downlink. Off: never.
    #[serde(rename = "downlink_ecn_depth_datagrams")]
    pub downlink_ecn_depth: Option<usize>,
    /// The longest datagram that the path to the switch above takes.
    #[serde(skip)]
    pub uplink_datagram_bytes: u32,
    /// Engines like this one that the switch has, each on a core and a port of its own. Workers of
    /// fixed jobs divide their operations among them.
    #[serde(skip)]
    pub cores: u32,
    /// A generation is renewed once an operation begins at this block or behind it, so that the
    /// numbers never run out.
    #[serde(skip)]
    pub renew_at: u32,
    /// The jobs that are served, and what each of them may take. All, without limits.
    #[serde(skip)]
    pub tenants: Tenants,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            jobs: 32,
            slots: 8192,
            silence: SILENCE,
            deadline: None,
            non_finite: NonFinite::Pass,
            uplink: None,
            downlink: None,
            downlink_limit: 65_536,
            downlink_ecn_depth: None,
            uplink_datagram_bytes: olaf_wire::offsets::MAX_DATAGRAM as u32,
            cores: 1,
            renew_at: 1 << 31,
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
        ConfigError::unless_positive("memory_bytes", self.memory_bytes > 0)?;
        ConfigError::unless_positive("jobs", self.jobs > 0)?;
        if self.slots == 0 || self.slots > crate::blocks::pool::MAX_SLOTS {
            return Err(ConfigError { key: "slots", allowed: "must be from 1 to 1048576" });
        }
        ConfigError::unless_positive("silence_ms", self.silence > Duration::ZERO)?;
        ConfigError::unless_positive("deadline_ms", self.deadline != Some(Duration::ZERO))?;
        ConfigError::unless_positive("downlink_limit_datagrams", self.downlink_limit > 0)?;
        ConfigError::unless_positive(
            "downlink_ecn_depth_datagrams",
            self.downlink_ecn_depth != Some(0),
        )?;
        Ok(self)
    }
}
