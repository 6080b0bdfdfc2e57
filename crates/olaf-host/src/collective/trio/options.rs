//! What only a worker of Trio-ML is told, as serde reads and writes it: a flat table.

use crate::collective::Config;
use olaf_engine::keys::{ConfigError, named};
use olaf_engine::switch::NonFinite;
use olaf_wire::trio::{ANY, MAX_GRADIENTS, MAX_WORKERS, datagram_len};
use serde::{Deserialize, Serialize};

/// The scale of ATP, which Trio-ML takes over (§4): 10^8.
pub(super) const SCALE: f64 = 1e8;

/// What all workers of a job should be told alike.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Options {
    /// Gradients of a packet. 1,024, as in Trio-ML §6; fewer where the path takes fewer.
    pub gradients: u16,
    /// Packets that may be on their way: the `window` of §4. 4,096, as in §6; up to 65,535 (§5).
    pub window: u16,
    /// What becomes of an operation whose lanes have a NaN or an infinity at this worker. `refuse`: it fails at all workers,
    /// which are told whose lanes they are. `pass`: it is summed as printed, with the largest or the smallest integer in
    /// its place, and the result says so.
    ///
    /// differs: the paper says nothing of them. The sum of a NaN would be -21.47.., a number like any other.
    #[serde(with = "named")]
    pub non_finite: NonFinite,
}

impl Default for Options {
    fn default() -> Self {
        Self { gradients: 1024, window: 4096, non_finite: NonFinite::Refuse }
    }
}

impl Options {
    /// The same, when its numbers can be, and can be together with the rest of the set-up.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self, config: &Config) -> Result<Self, ConfigError> {
        let within = |is_within, key, allowed| {
            if is_within { Ok(()) } else { Err(ConfigError { key, allowed }) }
        };
        let gradients = (1..=MAX_GRADIENTS).contains(&self.gradients);
        within(gradients, "gradients", "must be from 1 to 4095")?;
        within(self.window > 0, "window", "must be from 1 to 65535")?;
        within(config.job.0 <= 255, "job", "must be from 0 to 255")?;
        let workers = (1..=u32::from(MAX_WORKERS)).contains(&config.workers);
        within(workers, "workers", "must be from 1 to 255")?;
        let rank = config.rank.is_none_or(|rank| rank < ANY.into());
        within(rank, "rank", "must be from 0 to 254")?;
        let datagram = config.datagram_bytes as usize >= datagram_len(7);
        within(datagram, "datagram_bytes", "must be at least 40")?;
        let deadline = config.options.deadline.is_none_or(|d| d.as_millis() <= u16::MAX.into());
        within(deadline, "deadline_ms", "must be at most 65535")?;
        Ok(self)
    }

    /// Gradients of a block, as this worker's path takes them.
    pub(super) fn gradients_for(&self, config: &Config) -> u16 {
        let path = (config.datagram_bytes as usize).saturating_sub(datagram_len(0)) / 4;
        let asked = config.options.block_bytes.map_or(usize::MAX, |bytes| bytes as usize / 4);
        let most = path.min(asked).clamp(1, self.gradients.into());
        u16::try_from(most).unwrap_or(self.gradients)
    }
}
