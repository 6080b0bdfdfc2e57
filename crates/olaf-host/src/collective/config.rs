//! How an end of `reduce` is set up.

use core::time::Duration;
use olaf_engine::PeerId;
use olaf_engine::keys::{ConfigError, Named, ms, ms_or_off, named};
use olaf_engine::sums::SILENCE;
use olaf_wire::ids::{JobId, Session};
use olaf_wire::offsets::MAX_DATAGRAM;
use serde::{Deserialize, Serialize};

/// How lost pieces and results come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The end asks for missing results; the switch says whose pieces are lost.
    Ask,
    /// The end sends each piece again until its result comes, as SwitchML does.
    Timer,
    /// Nothing is sent again. After a loss an operation ends with its time-out.
    Off,
}

impl Named for Recovery {
    const NAMES: &'static [(&'static str, Self)] =
        &[("ask", Self::Ask), ("timer", Self::Timer), ("off", Self::Off)];
}

/// What all workers of a job may be told alike, as serde reads and writes it: a flat table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Options {
    /// Bytes of a block's lanes. Off: as many as fit a datagram of the path.
    pub block_bytes: Option<u32>,
    /// Blocks that may be on their way. Off: the window follows congestion and loss.
    pub window_blocks: Option<u32>,
    /// A block that is incomplete for this time, in milliseconds, ends without the missing workers.
    /// Off: a block waits for all workers.
    #[serde(rename = "deadline_ms", with = "ms_or_off")]
    pub deadline: Option<Duration>,
    /// A switch that is not heard for this time, in milliseconds, has failed. [`SILENCE`]: 5 s.
    #[serde(rename = "silence_ms", with = "ms")]
    pub silence: Duration,
    /// Milliseconds between two heartbeats while there is nothing else to send. 500 ms.
    #[serde(rename = "keepalive_ms", with = "ms")]
    pub keepalive: Duration,
    /// How lost pieces and results come back. `ask`.
    #[serde(with = "named")]
    pub recovery: Recovery,
    /// With `timer`: milliseconds after which a piece without a result is sent again. 1, as in
    /// SwitchML.
    #[serde(rename = "timer_ms", with = "ms")]
    pub timer: Duration,
    /// Sums of f32 travel as integers: each lane times this number, rounded. Integers wrap where a
    /// sum is too large. Off: they travel as f32.
    pub scale: Option<f64>,
    /// The program that the worker belongs to: the same number at all workers of the program, and at no other program's. A
    /// switch keeps two programs apart that say one. 0: not said.
    pub program: u64,
    /// Sends datagrams as ECN-capable, so that a congested link may mark them.
    pub ecn: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            block_bytes: None,
            window_blocks: None,
            deadline: None,
            silence: SILENCE,
            keepalive: Duration::from_millis(500),
            recovery: Recovery::Ask,
            timer: Duration::from_millis(1),
            scale: None,
            program: 0,
            ecn: true,
        }
    }
}

impl Options {
    /// The longest time between two questions for an overdue result. The answer may be that a worker died:
    /// where the notice of that is lost, the next question brings it.
    pub(super) fn longest_wait(&self) -> Duration {
        self.keepalive / 2
    }

    /// The same, when its numbers can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        ConfigError::unless_positive("silence_ms", self.silence > Duration::ZERO)?;
        ConfigError::unless_positive("keepalive_ms", self.keepalive > Duration::ZERO)?;
        ConfigError::unless_positive("timer_ms", self.timer > Duration::ZERO)?;
        let is_scale = |scale: f64| scale.is_finite() && scale > 0.0;
        ConfigError::unless_positive("scale", self.scale.is_none_or(is_scale))?;
        ConfigError::unless_positive("block_bytes", self.block_bytes != Some(0))?;
        ConfigError::unless_positive("window_blocks", self.window_blocks != Some(0))?;
        ConfigError::unless_positive("deadline_ms", self.deadline != Some(Duration::ZERO))?;
        Ok(self)
    }
}

/// The set-up of one end.
#[derive(Clone, Debug)]
pub struct Config {
    /// The job.
    pub job: JobId,
    /// This incarnation of the worker: draw it at random.
    pub session: Session,
    /// The wanted rank; none: any that is free.
    pub rank: Option<u32>,
    /// Workers to wait for before the first generation begins; 0: those that are there.
    pub workers: u32,
    /// The switch.
    pub switch: PeerId,
    /// The longest datagram that the path takes.
    pub datagram_bytes: u32,
    /// The rest.
    pub options: Options,
}

impl Config {
    /// The usual set-up.
    #[must_use]
    pub fn new(job: JobId, session: Session, switch: PeerId) -> Self {
        Self {
            job,
            session,
            rank: None,
            workers: 0,
            switch,
            datagram_bytes: MAX_DATAGRAM as u32,
            options: Options::default(),
        }
    }
}
