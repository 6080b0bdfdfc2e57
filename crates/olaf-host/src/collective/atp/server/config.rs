//! How a parameter server of ATP is set up: data, checked once.

use core::time::Duration;
use olaf_engine::BitsPerSecond;
use olaf_engine::keys::{ConfigError, ms, named};
use olaf_engine::party::Tenants;
use olaf_engine::sums::SILENCE;
use olaf_engine::switch::NonFinite;
use serde::{Deserialize, Serialize};

/// The largest window: sequence numbers of 16 bits tell windows of this size apart.
const MOST_WINDOW: u16 = 1 << 14;

/// The set-up, as serde reads and writes it: a flat table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ServerConfig {
    /// Most jobs at once. 8.
    pub jobs: u32,
    /// Bytes of sums and results of all jobs. Each job gets `memory_bytes` / `jobs`. 1 GiB.
    pub memory_bytes: u64,
    /// Fragments that a worker may be ahead of its first unanswered one. The memory may allow fewer.
    /// 8,192.
    pub window: u16,
    /// A worker that is not heard for this time, in milliseconds, is dead. [`SILENCE`]: 5 s.
    #[serde(rename = "silence_ms", with = "ms")]
    pub silence: Duration,
    /// A parameter packet is not sent again before this time, in milliseconds, unless a worker asks
    /// twice: workers of a job ask for it one after the other. 1 ms.
    #[serde(rename = "repeat_ms", with = "ms")]
    pub repeat: Duration,
    /// After a worker appears behind another switch, the server waits for this time, in milliseconds,
    /// before it seats the workers anew: others may follow. 100 ms.
    #[serde(rename = "settle_ms", with = "ms")]
    pub settle: Duration,
    /// Only the first switch on a packet's way adds, and the server gets a sum from each: the rack-scale solution
    /// that ATP §5.2.2 compares with. Off: switches add at every level.
    pub rack_scale: bool,
    /// What becomes of a packet of f32 with a NaN or an infinity, and of a sum that no f32 holds. `refuse`: the
    /// generation ends, and no worker gets that result.
    #[serde(with = "named")]
    pub non_finite: NonFinite,
    /// Rate of the link, bits of UDP payload per second. Off: the system's own socket is the only limit.
    #[serde(rename = "link_bps")]
    pub link: Option<BitsPerSecond>,
    /// Datagrams that may wait for the link; more are dropped, and asked for again.
    #[serde(rename = "link_limit_datagrams")]
    pub link_limit: usize,
    /// The jobs that are served, and what each of them may take. All, without limits.
    #[serde(skip)]
    pub tenants: Tenants,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            jobs: 8,
            memory_bytes: 1 << 30,
            window: 8192,
            silence: SILENCE,
            repeat: Duration::from_millis(1),
            settle: Duration::from_millis(100),
            rack_scale: false,
            non_finite: NonFinite::Pass,
            link: None,
            link_limit: 65_536,
            tenants: Tenants::default(),
        }
    }
}

impl ServerConfig {
    /// The same, when its numbers can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        ConfigError::unless_positive("jobs", self.jobs > 0)?;
        ConfigError::unless_positive("memory_bytes", self.memory_bytes > 0)?;
        if self.window == 0 || self.window > MOST_WINDOW {
            return Err(ConfigError { key: "window", allowed: "must be from 1 to 16384" });
        }
        ConfigError::unless_positive("silence_ms", self.silence > Duration::ZERO)?;
        ConfigError::unless_positive("repeat_ms", self.repeat > Duration::ZERO)?;
        ConfigError::unless_positive("settle_ms", self.settle > Duration::ZERO)?;
        ConfigError::unless_positive("link_limit_datagrams", self.link_limit > 0)?;
        Ok(self)
    }

    /// Fragments of a window with that many values each: the server keeps two windows, and a sum has
    /// eight bytes a value.
    pub(super) fn window_of(&self, values: u16) -> u16 {
        let share = self.memory_bytes / u64::from(self.jobs);
        let fragments = share / (2 * 8 * u64::from(values.max(1)));
        u16::try_from(fragments).unwrap_or(u16::MAX).clamp(1, self.window)
    }
}
