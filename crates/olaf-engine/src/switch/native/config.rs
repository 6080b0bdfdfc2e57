//! How a switch is set up: data, checked once.

use crate::link::pacer::{CreditPacer, Pacer, RatePacer};
use crate::party::Ruling;
use crate::queue::discipline::Discipline;
use crate::queue::kind::QueueKind;
use crate::queue::merging::Gate;
use crate::time::BitsPerSecond;
use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

/// What stands before the uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Nothing.
    Unlimited,
    /// A link's rate, bits of UDP payload per second.
    Rate(BitsPerSecond),
    /// So many updates outstanding towards servers.
    Credits {
        /// How many.
        credits: usize,
        /// After how long an unacknowledged one comes back.
        timeout: Duration,
    },
}

/// Who hears the answer to a delivered update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerTo {
    /// The workers whose updates met in it: merged into it, replaced in its slot or filtered
    /// against it.
    Shared,
    /// Every worker of its cluster (OLAF §7: a multicast group for each cluster).
    Cluster,
}

/// Asking before a cluster that is new here may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// How long a question may take from when it is put.
    pub timeout: Duration,
    /// The answer when time runs out, or when too many questions are open.
    pub unanswered: Ruling,
    /// A refused cluster is not asked about again for so long.
    pub refused_for: Duration,
    /// Questions that may be open at once: one is put, the others wait for their turn.
    pub max_questions: usize,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            unanswered: Ruling::Refuse,
            refused_for: Duration::from_secs(10),
            max_questions: 16,
        }
    }
}

/// The set-up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The uplink queue's discipline.
    pub queue: QueueKind,
    /// Segments the queue holds, the one on the wire included. 8, as in OLAF §8.1.
    pub slots: usize,
    /// The reward gate's threshold; `None`: off.
    pub gate: Gate,
    /// The uplink's pacer.
    pub pacing: Pacing,
    /// Who hears an answer.
    pub answer_to: AnswerTo,
    /// Whether somebody is asked before a new cluster may join; `None`: nobody is.
    pub admission: Option<Admission>,
    /// A cluster heard within this time, or within three rounds, is active: see
    /// [`crate::party::active`].
    pub active: Duration,
    /// A party unheard for this time is silent.
    pub silent_after: Duration,
    /// The largest model a job may have, in parameters.
    pub max_parameters: u32,
    /// Jobs that may be known at once.
    pub max_jobs: usize,
    /// Workers that may be known at once, over all jobs.
    pub max_workers: usize,
    /// Switches an update or a join may pass: more are a loop.
    pub max_hops: u8,
    /// Contributions that one worker's update may hold: its own and those it held back before.
    pub max_carried: u32,
    /// Control datagrams that may wait for the uplink.
    pub control_limit: usize,
    /// Ports that lead down; the uplink is one more. A switch on sockets has one.
    pub downlinks: u16,
    /// The rate of each downlink, bits of UDP payload per second; `None`: unlimited.
    pub downlink_rate: Option<BitsPerSecond>,
    /// Datagrams that may wait for a downlink.
    pub downlink_limit: usize,
    /// From this backlog on, datagrams and updates together, the uplink marks what leaves as having
    /// met congestion (ECN); `None`: never.
    pub ecn_depth: Option<usize>,
    /// The same for each downlink.
    pub downlink_ecn_depth: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            queue: QueueKind::Merging,
            slots: 8,
            gate: None,
            pacing: Pacing::Unlimited,
            answer_to: AnswerTo::Shared,
            admission: None,
            active: Duration::from_secs(1),
            silent_after: Duration::from_secs(2),
            max_parameters: 1 << 28,
            max_jobs: 1024,
            max_workers: 65_536,
            max_hops: 16,
            max_carried: 1024,
            control_limit: 4096,
            downlinks: 1,
            downlink_rate: None,
            downlink_limit: 65_536,
            ecn_depth: None,
            downlink_ecn_depth: None,
        }
    }
}

/// A key that cannot be, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key.
    pub key: &'static str,
    /// What it may be.
    pub allowed: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.allowed)
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// The same, when it can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        let positive = |key, ok: bool| {
            if ok { Ok(()) } else { Err(ConfigError { key, allowed: "must be above 0" }) }
        };
        if self.slots == 0 || self.slots > 1 << 20 {
            return Err(ConfigError { key: "slots", allowed: "must be from 1 to 1048576" });
        }
        if self.gate.is_some_and(|threshold| !(threshold >= 0.0 && threshold.is_finite())) {
            return Err(ConfigError {
                key: "gate",
                allowed: "must be a number of at least 0, or off",
            });
        }
        if let Pacing::Credits { credits, timeout } = self.pacing {
            positive("credits", credits > 0)?;
            positive("credit_timeout", timeout > Duration::ZERO)?;
        }
        if let Some(admission) = self.admission {
            positive("admission_timeout", admission.timeout > Duration::ZERO)?;
            positive("admission_max_questions", admission.max_questions > 0)?;
        }
        positive("active", self.active > Duration::ZERO)?;
        positive("silent_after", self.silent_after > Duration::ZERO)?;
        positive("max_parameters", self.max_parameters > 0)?;
        positive("max_jobs", self.max_jobs > 0)?;
        positive("max_workers", self.max_workers > 0)?;
        positive("max_hops", self.max_hops > 0)?;
        positive("max_carried", self.max_carried > 0)?;
        positive("control_limit", self.control_limit > 0)?;
        positive("downlink_limit", self.downlink_limit > 0)?;
        if !(1..u16::MAX).contains(&self.downlinks) {
            return Err(ConfigError { key: "downlinks", allowed: "must be from 1 to 65534" });
        }
        positive("ecn_depth", self.ecn_depth != Some(0))?;
        positive("downlink_ecn_depth", self.downlink_ecn_depth != Some(0))?;
        Ok(self)
    }

    pub(super) fn discipline(&self) -> Box<dyn Discipline + Send> {
        self.queue.queue(self.slots, self.gate)
    }

    pub(super) fn downlink_pacer(&self) -> Pacer {
        Pacer::at(self.downlink_rate)
    }

    pub(super) fn pacer(&self) -> Pacer {
        match self.pacing {
            Pacing::Unlimited => Pacer::Unlimited,
            Pacing::Rate(rate) => Pacer::Rate(RatePacer::new(rate)),
            Pacing::Credits { credits, timeout } => {
                Pacer::Credit(CreditPacer::new(credits, timeout))
            }
        }
    }
}
