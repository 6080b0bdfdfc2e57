//! What only an end of iSwitch can be told.

use olaf_engine::keys::ConfigError;
use olaf_wire::iswitch::{MAX_WORKERS, PACKET_FLOATS};
use serde::{Deserialize, Serialize};

/// The options, as serde reads and writes them: a flat table. All workers of a job are told alike.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Options {
    /// Most floats of a data packet. 366, as fit a frame of 1,522 bytes (iSwitch §3.2). Off: as many as the
    /// longest datagram of the path takes.
    pub packet_floats: Option<u32>,
    /// The aggregation threshold H: this many vectors complete a sum at the worker's switch. Off: the switch's
    /// own, which is the number of its members.
    pub threshold: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { packet_floats: Some(PACKET_FLOATS), threshold: None }
    }
}

impl Options {
    /// The same, when its numbers can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        ConfigError::unless_positive("packet_floats", self.packet_floats != Some(0))?;
        if self.threshold.is_some_and(|h| h == 0 || h > MAX_WORKERS) {
            return Err(ConfigError { key: "threshold", allowed: "must be from 1 to 2047" });
        }
        Ok(self)
    }
}
