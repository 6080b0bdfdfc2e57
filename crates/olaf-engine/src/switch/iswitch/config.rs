//! How a switch of iSwitch is set up: data, checked once.

use crate::blocks::by_index::MAX_SLOTS;
use crate::keys::{ConfigError, ms, named};
use crate::party::Tenants;
use crate::sums::SILENCE;
use crate::switch::NonFinite;
use crate::time::BitsPerSecond;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Most jobs of a switch: each of their generations has a number of its own in the 8 bits of a Seg.
const MAX_JOBS: u32 = 128;

/// The set-up, as serde reads and writes it: a flat table with the keys of `[switch.iswitch]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Config {
    /// Bytes of the tables of all jobs. Each job gets `memory_bytes` / `jobs`. 256 MiB.
    pub memory_bytes: u64,
    /// Most jobs at once, at most 128. 8.
    pub jobs: u32,
    /// Most places for packets of a job, two cells each. Its share of the memory may allow fewer. 1,024.
    pub slots: u32,
    /// A worker that is not heard for this time, in milliseconds, while others wait for it, is dead.
    /// [`SILENCE`]: 5 s.
    #[serde(rename = "silence_ms", with = "ms")]
    pub silence: Duration,
    /// What becomes of a data packet with a NaN or an infinity. `pass`, as the paper's accelerator does. A refused
    /// packet ends the generation, because a sum would wait for it.
    #[serde(with = "named")]
    pub non_finite: NonFinite,
    /// Results say whether a worker's numbered vector is in their sum: a synchronous operation then does not
    /// take one worker's vectors for those of several. `true`. `false`: as the accelerator in `rtl/`, whose
    /// results do not say it.
    pub tells_numbered: bool,
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
    /// The jobs that are served, and what each of them may take. All, without limits.
    #[serde(skip)]
    pub tenants: Tenants,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            jobs: 8,
            slots: 1024,
            silence: SILENCE,
            non_finite: NonFinite::Pass,
            tells_numbered: true,
            uplink: None,
            downlink: None,
            downlink_limit: 65_536,
            downlink_ecn_depth: None,
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
        if self.jobs == 0 || self.jobs > MAX_JOBS {
            return Err(ConfigError { key: "jobs", allowed: "must be from 1 to 128" });
        }
        if self.slots == 0 || self.slots > MAX_SLOTS {
            return Err(ConfigError { key: "slots", allowed: "must be from 1 to 1048576" });
        }
        ConfigError::unless_positive("silence_ms", self.silence > Duration::ZERO)?;
        ConfigError::unless_positive("downlink_limit_datagrams", self.downlink_limit > 0)?;
        ConfigError::unless_positive(
            "downlink_ecn_depth_datagrams",
            self.downlink_ecn_depth != Some(0),
        )?;
        Ok(self)
    }

    /// Slots of a job whose packets have that many floats; at least 1.
    pub(super) fn slots_for(&self, packet_floats: u32) -> u32 {
        let share = self.memory_bytes / u64::from(self.jobs);
        let slots = share / (2 * 4 * u64::from(packet_floats));
        u32::try_from(slots).unwrap_or(u32::MAX).clamp(1, self.slots)
    }
}
