//! Which hosts a job gets (MINA §III-B).
//!
//! A [`Placer`] knows which hosts are free and decides for one arriving job at a time; running
//! jobs never move.

mod choice;
mod first_fit;
mod free;
mod random;
mod regular;
mod tables;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use crate::HostId;
use crate::topology::{Pods, Topology};
use choice::Choice;
use free::Free;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// How hosts are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Policy {
    /// The first that are free, from the left, as Slurm does (MINA §V-A, baselines).
    FirstFit,
    /// Any that are free, each set of hosts as likely as any other.
    Random {
        /// The same seed and the same calls give the same hosts.
        seed: u64,
    },
    /// The choice with the least sum of the job's fragments and alpha times the fragments that stay
    /// free (MINA §III-B). Of equal choices the one whose last pod has the fewest of the job's
    /// hosts, then the last but one, and so on within each pod: from the left.
    Fragments {
        /// Alpha, in thousandths: what a free fragment weighs against one of the job. From 0 to
        /// [`MOST_ALPHA_MILLIS`].
        #[serde(default = "half", deserialize_with = "alpha_millis")]
        alpha_millis: u32,
    },
}

/// The largest alpha: 4.
pub const MOST_ALPHA_MILLIS: u32 = 4000;
/// MINA's alpha: 0.5.
pub const ALPHA_MILLIS: u32 = 500;

const fn half() -> u32 {
    ALPHA_MILLIS
}

fn alpha_millis<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let alpha = u32::deserialize(from)?;
    if alpha <= MOST_ALPHA_MILLIS {
        return Ok(alpha);
    }
    Err(serde::de::Error::custom(format_args!(
        "alpha_millis: {alpha}; from 0 to {MOST_ALPHA_MILLIS}"
    )))
}

/// A job's hosts, ascending, and why these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// As many as were asked for.
    pub hosts: Vec<HostId>,
    /// For logs, the status page and `olaf schedule explain`.
    pub reason: Reason,
}

/// What a placement was chosen for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// They were the first free.
    First,
    /// They were drawn.
    Random,
    /// No other hosts had a lower score.
    Fragments {
        /// Fragments of the job's hosts.
        job: u32,
        /// Fragments of the hosts that were free before it came.
        free_before: u32,
        /// Fragments of the hosts that stay free.
        free_after: u32,
        /// What a fragment that stays free weighs against one of the job, in thousandths.
        alpha_millis: u32,
        /// `1000 x job + alpha_millis x free_after`.
        score_millis: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::First => write!(f, "the first free hosts"),
            Self::Random => write!(f, "free hosts, drawn"),
            Self::Fragments { job, free_before, free_after, alpha_millis, score_millis } => {
                let (score, alpha) = (Thousandths(score_millis), Thousandths(alpha_millis.into()));
                write!(
                    f,
                    "fewest fragments: {job} of the job + {alpha} x {free_after} of the free hosts \
                     (before: {free_before}) = {score}"
                )
            }
        }
    }
}

struct Thousandths(u64);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1000, self.0 % 1000);
        let digits = format!("{rest:03}");
        match digits.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            digits => write!(f, "{whole}.{digits}"),
        }
    }
}

/// Why a job has no hosts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoRoom {
    /// It asks for none.
    NoHosts,
    /// It never will: the cluster has fewer hosts, drained or not.
    TooLarge {
        /// Asked for.
        hosts: u32,
        /// In the cluster, drained ones counted.
        cluster: u32,
    },
    /// Not until drained hosts are put back, whichever jobs finish.
    Drained {
        /// Asked for.
        hosts: u32,
        /// Not drained.
        usable: u32,
        /// In the cluster, drained ones counted.
        cluster: u32,
    },
    /// Not until jobs finish.
    Busy {
        /// Asked for.
        hosts: u32,
        /// Free now.
        free: u32,
    },
}

impl NoRoom {
    /// Returns true if waiting is in vain: the job can never run on this cluster. A job that only
    /// drained hosts keep waiting is not refused.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::NoHosts | Self::TooLarge { .. })
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHosts => write!(f, "hosts: a job needs at least one"),
            Self::TooLarge { hosts, cluster } => {
                write!(f, "{hosts} hosts asked for; the cluster has {cluster}")
            }
            Self::Drained { hosts, usable, cluster } => write!(
                f,
                "{hosts} hosts asked for; {usable} of {cluster} are not drained: undrain some"
            ),
            Self::Busy { hosts, free } => write!(f, "{hosts} hosts asked for; {free} are free"),
        }
    }
}

impl std::error::Error for NoRoom {}

/// Which hosts are free, and the choice among them.
#[derive(Clone, Debug)]
pub struct Placer {
    policy: Policy,
    free: Free,
    choice: Choice,
}

impl Placer {
    /// All hosts of `topology` are free.
    ///
    /// # Panics
    /// For an alpha beyond [`MOST_ALPHA_MILLIS`].
    #[must_use]
    pub fn new(topology: &Topology, policy: Policy) -> Self {
        let free = Free::all(Pods::of(topology));
        let choice = Choice::new(policy, &free);
        Self { policy, free, choice }
    }

    /// Chooses and takes `hosts` hosts.
    ///
    /// # Errors
    /// If fewer hosts are free; then no host is taken.
    pub fn place(&mut self, hosts: u32) -> Result<Placement, NoRoom> {
        let (cluster, usable, free) = (self.free.cluster(), self.free.usable(), self.free.left());
        match hosts {
            0 => Err(NoRoom::NoHosts),
            _ if hosts > cluster => Err(NoRoom::TooLarge { hosts, cluster }),
            _ if hosts > usable => Err(NoRoom::Drained { hosts, usable, cluster }),
            _ if hosts > free => Err(NoRoom::Busy { hosts, free }),
            _ => Ok(self.choose(hosts)),
        }
    }

    fn choose(&mut self, count: u32) -> Placement {
        let free_before = self.free.fragments();
        let chosen = self.choice.choose(&self.free, count);
        self.take(&chosen.hosts);
        let free_after = self.free.fragments();
        let reason = match self.policy {
            Policy::FirstFit => Reason::First,
            Policy::Random { .. } => Reason::Random,
            Policy::Fragments { alpha_millis } => {
                let score_millis = chosen.score_millis;
                let of_free = u64::from(alpha_millis) * u64::from(free_after);
                let job = u32::try_from((score_millis - of_free) / 1000).expect("a job's hosts");
                Reason::Fragments { job, free_before, free_after, alpha_millis, score_millis }
            }
        };
        Placement { hosts: chosen.hosts, reason }
    }

    /// Takes hosts that were chosen before: those of a job that was placed before a restart. They
    /// may have been drained since.
    ///
    /// # Panics
    /// When a job has one.
    pub fn take(&mut self, hosts: &[HostId]) {
        self.free.take(hosts, &mut self.choice);
    }

    /// A job has ended: its hosts are free again, but for the drained ones.
    ///
    /// # Panics
    /// When no job has one of them.
    pub fn release(&mut self, hosts: &[HostId]) {
        self.free.release(hosts, &mut self.choice);
    }

    /// The host is not given any more; a job that runs there stays. False when it is drained
    /// already.
    pub fn drain(&mut self, host: HostId) -> bool {
        self.free.drain(host, &mut self.choice)
    }

    /// The host may be given again. False when it is not drained.
    pub fn undrain(&mut self, host: HostId) -> bool {
        self.free.undrain(host, &mut self.choice)
    }

    /// Hosts that are free: no job has them, and they are not drained.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.free.left()
    }

    /// Hosts that are not drained.
    #[must_use]
    pub const fn usable(&self) -> u32 {
        self.free.usable()
    }

    /// Returns true if a host may be given now.
    #[must_use]
    pub fn is_free(&self, host: HostId) -> bool {
        self.free.is_free(host)
    }

    /// Returns true if a host is drained.
    #[must_use]
    pub fn is_drained(&self, host: HostId) -> bool {
        self.free.is_drained(host)
    }

    /// The pods of the cluster.
    #[must_use]
    pub const fn pods(&self) -> &Pods {
        self.free.pods()
    }

    /// Fragments of the hosts that are free (MINA §III-B), kept up to date as hosts come and go.
    #[must_use]
    pub fn free_fragments(&self) -> u32 {
        self.free.fragments()
    }

    /// Fragments of a set of hosts, a job's for instance (MINA §III-B).
    #[must_use]
    pub fn fragments_of(&self, hosts: &[HostId]) -> u32 {
        self.free.pods().fragments_of(hosts)
    }
}
