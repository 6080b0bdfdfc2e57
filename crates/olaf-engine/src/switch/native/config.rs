//! How a switch is set up: data, checked once.

use crate::keys::{ConfigError, Named, ms, ms_or_off, named};
use crate::link::Shares;
use crate::link::pacer::{CreditPacer, Pacer, RatePacer};
use crate::party::{Limits, Ruling, Tenants};
use crate::queue::kind::QueueKind;
use crate::queue::merging::Gate;
use crate::time::BitsPerSecond;
use core::time::Duration;
use serde::{Deserialize, Serialize};

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

impl Named for AnswerTo {
    const NAMES: &'static [(&'static str, Self)] =
        &[("shared", Self::Shared), ("cluster", Self::Cluster)];
}

/// Asking before a cluster that is new here may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// How long a question may take from when it is put.
    pub timeout: Duration,
    /// The answer when time runs out, or when too many questions are open.
    pub unanswered: Ruling,
    /// A refused cluster is not asked about again within this time.
    pub refused_for: Duration,
    /// Questions that may be open at once: one is put, the others wait for their turn.
    pub max_questions: usize,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            // The clusters that are here keep what they were promised.
            unanswered: Ruling::Refuse,
            // A refused cluster that tries again and again does not fill the questions.
            refused_for: Duration::from_secs(10),
            max_questions: 16,
        }
    }
}

/// The set-up, as serde reads and writes it: a flat table.
///
/// The keys are those of `[switch]` in a configuration. A key that says its unit in its name has a
/// whole number of that unit.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Config {
    /// The uplink queue's discipline. `olaf`, as in the paper.
    #[serde(with = "named")]
    pub queue: QueueKind,
    /// Segments the queue holds, the one on the wire included. 8, as in OLAF §8.1.
    pub slots: usize,
    /// The reward gate's threshold, in units of reward. Off, which learned best.
    pub gate: Gate,
    /// Shares of the uplink, the downlinks and the slots by job; 1 for a job that is not named. A job that
    /// has nothing waiting leaves its share to the others.
    pub shares: Shares,
    /// How far one contribution may move a model.
    #[serde(flatten)]
    pub limits: Limits,
    /// Rate of the uplink, bits of UDP payload per second. Off: the system's own socket is the only
    /// limit. At most one of this and `credits`.
    #[serde(rename = "uplink_bps")]
    pub uplink: Option<BitsPerSecond>,
    /// Updates that may be outstanding towards servers. Off: no limit.
    pub credits: Option<usize>,
    /// Milliseconds after which an unanswered credit comes back. 1 s, far above a round trip, so
    /// that only a lost answer counts.
    #[serde(rename = "credit_timeout_ms", with = "ms")]
    pub credit_timeout: Duration,
    /// Who hears an answer. `shared`: an answer to nobody else would be news.
    #[serde(with = "named")]
    pub answer_to: AnswerTo,
    /// Milliseconds that a question whether a cluster may join may take, from when it is put. Off:
    /// nobody is asked, and every cluster may join.
    #[serde(rename = "admission_timeout_ms", with = "ms_or_off")]
    pub admission_timeout: Option<Duration>,
    /// See [`Admission::unanswered`].
    #[serde(with = "named")]
    pub admission_unanswered: Ruling,
    /// See [`Admission::refused_for`], in milliseconds.
    #[serde(rename = "admission_refused_for_ms", with = "ms")]
    pub admission_refused_for: Duration,
    /// See [`Admission::max_questions`].
    #[serde(skip)]
    pub admission_max_questions: usize,
    /// A cluster heard within this time, in milliseconds, or within three rounds, is active: see
    /// [`crate::party::active`]. 1 s, a few updates of a slow cluster.
    #[serde(rename = "active_ms", with = "ms")]
    pub active: Duration,
    /// A party unheard for this time, in milliseconds, is silent. 2 s, four keepalives of a worker.
    #[serde(rename = "silent_after_ms", with = "ms")]
    pub silent_after: Duration,
    /// The largest model a job may have, in parameters. See [`LARGEST_MODEL`].
    pub max_parameters: u32,
    /// Jobs that may be known at once. This and the limits below keep a flood of forged datagrams
    /// from filling the memory; no configuration sets them.
    #[serde(skip)]
    pub max_jobs: usize,
    /// Workers that may be known at once, over all jobs.
    #[serde(skip)]
    pub max_workers: usize,
    /// Switches an update or a join may pass: more are a loop. 16, beyond any tree in use.
    pub max_hops: u8,
    /// Contributions that one worker's update may hold: its own and those it held back before.
    #[serde(skip)]
    pub max_carried: u32,
    /// Control datagrams that may wait for the uplink.
    #[serde(skip)]
    pub control_limit: usize,
    /// Ports that lead down; the uplink is one more. No key: whoever wires the switch knows how many
    /// links lead down. A switch on sockets has one for all its addresses, a simulated switch may
    /// have more.
    #[serde(skip)]
    pub downlinks: u16,
    /// Rate of each downlink, bits of UDP payload per second. Off: the system's own socket is the
    /// only limit.
    #[serde(rename = "downlink_bps")]
    pub downlink_rate: Option<BitsPerSecond>,
    /// Datagrams that may wait for each downlink; what comes on top is dropped. 65,536: at a rate a
    /// burst waits, and the memory stays bounded.
    #[serde(rename = "downlink_limit_datagrams")]
    pub downlink_limit: usize,
    /// From this backlog on the uplink marks departures as "congestion experienced" (ECN). The
    /// backlog counts datagrams and updates, the departing one included. Off: never.
    #[serde(rename = "uplink_ecn_depth_datagrams")]
    pub uplink_ecn_depth: Option<usize>,
    /// The same depth for each downlink, whose backlog has no updates. Off: never.
    #[serde(rename = "downlink_ecn_depth_datagrams")]
    pub downlink_ecn_depth: Option<usize>,
    /// The jobs that are served, and what each of them may take. All, without limits.
    #[serde(skip)]
    pub tenants: Tenants,
}

/// The largest model a switch or a server takes by default, in parameters: 1 GiB of float32.
pub const LARGEST_MODEL: u32 = 1 << 28;

impl Default for Config {
    fn default() -> Self {
        let asking = Admission::default();
        Self {
            queue: QueueKind::Merging,
            slots: 8,
            gate: None,
            shares: Shares::default(),
            limits: Limits::default(),
            uplink: None,
            credits: None,
            credit_timeout: Duration::from_secs(1),
            answer_to: AnswerTo::Shared,
            admission_timeout: None,
            admission_unanswered: asking.unanswered,
            admission_refused_for: asking.refused_for,
            admission_max_questions: asking.max_questions,
            active: Duration::from_secs(1),
            silent_after: Duration::from_secs(2),
            max_parameters: LARGEST_MODEL,
            max_jobs: 1024,
            max_workers: 65_536,
            max_hops: 16,
            max_carried: 1024,
            control_limit: 4096,
            downlinks: 1,
            downlink_rate: None,
            downlink_limit: 65_536,
            uplink_ecn_depth: None,
            downlink_ecn_depth: None,
            tenants: Tenants::default(),
        }
    }
}

impl Config {
    /// The same, when it can be.
    ///
    /// # Errors
    /// The first key that cannot.
    pub fn check(self) -> Result<Self, ConfigError> {
        let positive = ConfigError::unless_positive;
        if self.slots == 0 || self.slots > 1 << 20 {
            return Err(ConfigError { key: "slots", allowed: "must be from 1 to 1048576" });
        }
        if self.gate.is_some_and(|threshold| !(threshold >= 0.0 && threshold.is_finite())) {
            return Err(ConfigError {
                key: "gate",
                allowed: "must be a number of at least 0, or off",
            });
        }
        if self.uplink.is_some() && self.credits.is_some() {
            return Err(ConfigError {
                key: "uplink_bps and credits",
                allowed: "give at most one of the two",
            });
        }
        if let Some(credits) = self.credits {
            positive("credits", credits > 0)?;
            positive("credit_timeout", self.credit_timeout > Duration::ZERO)?;
        }
        if let Some(timeout) = self.admission_timeout {
            positive("admission_timeout", timeout > Duration::ZERO)?;
            positive("admission_max_questions", self.admission_max_questions > 0)?;
        }
        self.shares.check()?;
        if self.shares.own_slots() > self.slots {
            return Err(ConfigError {
                key: "slots of the jobs",
                allowed: "must be at most those of the switch together",
            });
        }
        self.limits.check()?;
        positive("active", self.active > Duration::ZERO)?;
        positive("silent_after", self.silent_after > Duration::ZERO)?;
        positive("max_parameters", self.max_parameters > 0)?;
        positive("max_jobs", self.max_jobs > 0)?;
        positive("max_workers", self.max_workers > 0)?;
        positive("max_hops", self.max_hops > 0)?;
        positive("max_carried", self.max_carried > 0)?;
        positive("control_limit", self.control_limit > 0)?;
        positive("downlink_limit_datagrams", self.downlink_limit > 0)?;
        if !(1..u16::MAX).contains(&self.downlinks) {
            return Err(ConfigError { key: "downlinks", allowed: "must be from 1 to 65534" });
        }
        mark_depth("uplink_ecn_depth_datagrams", self.uplink_ecn_depth)?;
        mark_depth("downlink_ecn_depth_datagrams", self.downlink_ecn_depth)?;
        Ok(self)
    }

    /// What stands before the uplink.
    #[must_use]
    pub const fn pacing(&self) -> Pacing {
        match (self.uplink, self.credits) {
            (Some(rate), _) => Pacing::Rate(rate),
            (None, Some(credits)) => Pacing::Credits { credits, timeout: self.credit_timeout },
            (None, None) => Pacing::Unlimited,
        }
    }

    /// The same with that pacing.
    #[must_use]
    pub const fn paced(mut self, pacing: Pacing) -> Self {
        (self.uplink, self.credits) = match pacing {
            Pacing::Unlimited => (None, None),
            Pacing::Rate(rate) => (Some(rate), None),
            Pacing::Credits { credits, timeout } => {
                self.credit_timeout = timeout;
                (None, Some(credits))
            }
        };
        self
    }

    /// How a question is put before a new cluster may join; `None`: nobody is asked.
    #[must_use]
    pub fn admission(&self) -> Option<Admission> {
        self.admission_timeout.map(|timeout| Admission {
            timeout,
            unanswered: self.admission_unanswered,
            refused_for: self.admission_refused_for,
            max_questions: self.admission_max_questions,
        })
    }

    /// The same with those questions, or with none.
    #[must_use]
    pub fn asking(mut self, admission: impl Into<Option<Admission>>) -> Self {
        let admission = admission.into();
        self.admission_timeout = admission.map(|asking| asking.timeout);
        if let Some(asking) = admission {
            self.admission_unanswered = asking.unanswered;
            self.admission_refused_for = asking.refused_for;
            self.admission_max_questions = asking.max_questions;
        }
        self
    }

    pub(super) fn downlink_pacer(&self) -> Pacer {
        Pacer::at(self.downlink_rate)
    }

    pub(super) fn pacer(&self) -> Pacer {
        match self.pacing() {
            Pacing::Unlimited => Pacer::Unlimited,
            Pacing::Rate(rate) => Pacer::Rate(RatePacer::new(rate)),
            Pacing::Credits { credits, timeout } => {
                Pacer::Credit(CreditPacer::new(credits, timeout))
            }
        }
    }
}

/// A link that marked at a backlog of 0 would mark without congestion.
fn mark_depth(key: &'static str, depth: Option<usize>) -> Result<(), ConfigError> {
    match depth {
        Some(0) => Err(ConfigError { key, allowed: "must be at least 1, or off" }),
        _ => Ok(()),
    }
}
