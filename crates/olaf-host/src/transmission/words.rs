//! Transmission control in the words of configurations.

use super::{Control, Fair, Paper, Slope, TransmissionConfig, Unsent};
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;
use olaf_engine::keys::ms;
use serde::{Deserialize, Serialize};

/// What a configuration says, as serde reads and writes it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Words {
    /// Which control decides: `off`, `paper` or `fair`. `off`, as most jobs have an uplink that
    /// carries every update.
    #[serde(rename = "transmission")]
    pub control: String,
    /// See [`Paper::threshold`], in milliseconds. 400 ms, as in the paper's §6.
    #[serde(rename = "threshold_ms", with = "ms")]
    pub threshold: Duration,
    /// See [`Slope`]: `urgency`, `fairness`, or a number per second.
    pub slope: String,
    /// What becomes of an update that is not sent: `carry`, `discard` or `retry`. `carry` loses
    /// nothing that was learned.
    pub unsent: String,
    /// See [`Unsent::Retry`], in milliseconds. 10 ms, short beside the time between two updates.
    #[serde(rename = "retry_ms", with = "ms")]
    pub retry: Duration,
    /// Of the fair control. Scenarios set it, no role's configuration does.
    #[serde(skip)]
    pub fair: Fair,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            control: "off".into(),
            threshold: Duration::from_millis(400),
            slope: "urgency".into(),
            unsent: "carry".into(),
            retry: Duration::from_millis(10),
            fair: Fair::default(),
        }
    }
}

/// A word that means nothing here, and what may stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordError {
    /// The field of [`Words`].
    pub field: &'static str,
    /// What it says.
    pub found: String,
    /// What it may say.
    pub allowed: &'static str,
}

impl fmt::Display for WordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}: must be {}", self.field, self.found, self.allowed)
    }
}

impl core::error::Error for WordError {}

impl Words {
    /// What is meant.
    ///
    /// # Errors
    /// The first word that means nothing.
    pub fn read(&self) -> Result<TransmissionConfig, WordError> {
        // All words are read, those too that the control has no use for: a slip is a slip.
        let paper = Paper { threshold: self.threshold()?, slope: self.slope()? };
        let fair = self.fair()?;
        let control = match self.control.as_str() {
            "off" => Control::Off,
            "paper" => Control::Paper(paper),
            "fair" => Control::Fair(fair),
            other => return Err(error("control", other, "off, paper or fair")),
        };
        Ok(TransmissionConfig { control, unsent: self.unsent()? })
    }

    fn threshold(&self) -> Result<Duration, WordError> {
        if self.threshold.is_zero() {
            return Err(error("threshold", "0", "above 0"));
        }
        Ok(self.threshold)
    }

    fn slope(&self) -> Result<Slope, WordError> {
        match self.slope.as_str() {
            "urgency" => Ok(Slope::Urgency),
            "fairness" => Ok(Slope::Fairness),
            number => match number.parse::<f64>() {
                Ok(slope) if slope >= 0.0 && slope.is_finite() => Ok(Slope::PerSecond(slope)),
                _ => Err(error("slope", number, "urgency, fairness, or a number per second")),
            },
        }
    }

    fn unsent(&self) -> Result<Unsent, WordError> {
        match self.unsent.as_str() {
            "carry" => Ok(Unsent::Carry),
            "discard" => Ok(Unsent::Discard),
            "retry" if self.retry.is_zero() => Err(error("retry", "0", "above 0")),
            "retry" => Ok(Unsent::Retry(self.retry)),
            other => Err(error("unsent", other, "carry, discard or retry")),
        }
    }

    fn fair(&self) -> Result<Fair, WordError> {
        let Fair { rounds, yields } = self.fair;
        for (field, value) in [("rounds", rounds), ("yields", yields)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(error(field, &format!("{value}"), "a number of at least 0"));
            }
        }
        Ok(self.fair)
    }
}

fn error(field: &'static str, found: &str, allowed: &'static str) -> WordError {
    WordError { field, found: found.into(), allowed }
}
