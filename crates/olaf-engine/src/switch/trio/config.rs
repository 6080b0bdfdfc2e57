//! How a switch of Trio-ML is set up: data, checked once.

use crate::blocks::records;
use crate::keys::{ConfigError, ms, ms_or_off};
use crate::party::Tenants;
use crate::sums::SILENCE;
use crate::time::BitsPerSecond;
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Lower switches on the way to a worker, at most.
const LEVELS: u32 = 3;

/// The set-up, as serde reads and writes it: a flat table with the keys of `[switch.trio]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Config {
    /// Bytes of the records of all jobs. Each job gets `memory_bytes` / `jobs`, which bounds its
    /// `block_cnt_max`. 640 MiB: windows of 4,096 blocks of 1,024 gradients, as in Trio-ML §6.
    pub memory_bytes: u64,
    /// Most job records. 8; the header can name 256.
    pub jobs: u32,
    /// Time, in milliseconds, in which the timers look at every block record once. It is the shortest
    /// time-out there is. 10 ms, as in Trio-ML §6.
    #[serde(rename = "timer_ms", with = "ms")]
    pub timer: Duration,
    /// Number of timers. Each timer looks at its part of the table. 100, as in Trio-ML §6.
    pub threads: u32,
    /// A block without a new piece for this time, in milliseconds, goes without the stragglers, for
    /// jobs that ask for no time-out of their own. It lasts up to `timer_ms` longer. Off: a block
    /// waits for all workers.
    ///
    /// differs: in the paper every job has a time-out. An all-reduce whose caller does not accept a
    /// partial sum would fail with the first worker that begins late.
    #[serde(rename = "deadline_ms", with = "ms_or_off")]
    pub deadline: Option<Duration>,
    /// Time, in milliseconds, between two looks at what each worker has contributed: the second kind
    /// of timer of Trio-ML §5. 500 ms.
    #[serde(rename = "straggler_check_ms", with = "ms")]
    pub straggler_check: Duration,
    /// A straggler that contributes nothing for this time, in milliseconds, while blocks go without
    /// it, is a permanent one: blocks wait for it no longer. 1 s.
    #[serde(rename = "permanent_after_ms", with = "ms")]
    pub permanent_after: Duration,
    /// A worker that is not heard for this time, in milliseconds, while a block without a time-out
    /// waits for it, is dead. [`SILENCE`]: 5 s.
    #[serde(rename = "silence_ms", with = "ms")]
    pub silence: Duration,
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
    /// The jobs that are served, and what each of them may take. All, without limits.
    #[serde(skip)]
    pub tenants: Tenants,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory_bytes: 640 << 20,
            jobs: 8,
            timer: Duration::from_millis(10),
            threads: 100,
            deadline: None,
            straggler_check: Duration::from_millis(500),
            permanent_after: Duration::from_secs(1),
            silence: SILENCE,
            uplink: None,
            downlink: None,
            downlink_limit: 65_536,
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
        if self.jobs == 0 || self.jobs > 256 {
            return Err(ConfigError { key: "jobs", allowed: "must be from 1 to 256" });
        }
        if self.threads == 0 || self.threads > 10_000 {
            return Err(ConfigError { key: "threads", allowed: "must be from 1 to 10000" });
        }
        ConfigError::unless_positive("timer_ms", self.timer > Duration::ZERO)?;
        ConfigError::unless_positive("deadline_ms", self.deadline != Some(Duration::ZERO))?;
        let is_positive = self.straggler_check > Duration::ZERO;
        ConfigError::unless_positive("straggler_check_ms", is_positive)?;
        ConfigError::unless_positive("permanent_after_ms", self.permanent_after > Duration::ZERO)?;
        ConfigError::unless_positive("silence_ms", self.silence > Duration::ZERO)?;
        ConfigError::unless_positive("downlink_limit_datagrams", self.downlink_limit > 0)?;
        Ok(self)
    }

    /// The incomplete blocks of that many gradients that a job's memory has room for.
    pub(super) fn room(&self, gradients: u16) -> u16 {
        let share = self.memory_bytes / u64::from(self.jobs);
        let blocks = share / records::bytes_of(1, gradients);
        u16::try_from(blocks).unwrap_or(u16::MAX).max(1)
    }

    /// Returns true if parties with these time-outs may be in one job. A lower switch asks for twice the
    /// time-out of those behind it.
    pub(super) fn agree(&self, one: u16, other: u16) -> bool {
        let own = self.deadline.map_or(0, |deadline| deadline.as_millis());
        let ms = |asked: u16| if asked > 0 { asked.into() } else { own };
        let (short, long) = (ms(one).min(ms(other)), ms(one).max(ms(other)));
        let is_doubled = short > 0 && (1..=LEVELS).any(|level| long == short << level);
        self.visits(one) == self.visits(other) || is_doubled
    }

    /// Looks of the timers after which a block ages out; 0: never.
    pub(super) fn visits(&self, timeout_ms: u16) -> u16 {
        let asked = Duration::from_millis(timeout_ms.into());
        let timeout = if timeout_ms > 0 { asked } else { self.deadline.unwrap_or_default() };
        let visits = timeout.as_nanos().div_ceil(self.timer.as_nanos());
        u16::try_from(visits).unwrap_or(u16::MAX)
    }
}
