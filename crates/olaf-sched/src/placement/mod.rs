//! Which hosts a job gets (MINA §III-B).
//!
//! A [`Placer`] knows which hosts are free and decides for one arriving job at a time; running
//! jobs never move.

mod first_fit;

use crate::{HostId, Topology};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How hosts are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Policy {
    /// The first that are free, from the left, as Slurm does (MINA §V-A, baselines).
    FirstFit,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// They were the first free.
    First,
}

/// Why a job has no hosts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoRoom {
    /// It asks for none.
    NoHosts,
    /// It never will: the cluster has no so many hosts.
    TooLarge {
        /// Asked for.
        hosts: u32,
        /// In the cluster, drained ones not counted.
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

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHosts => write!(f, "a job has at least one host"),
            Self::TooLarge { hosts, cluster } => {
                write!(f, "{hosts} hosts asked for, the cluster has {cluster}")
            }
            Self::Busy { hosts, free } => write!(f, "{hosts} hosts asked for, {free} are free"),
        }
    }
}

impl std::error::Error for NoRoom {}

/// Which hosts are free, and the choice among them.
#[derive(Clone, Debug)]
pub struct Placer {
    policy: Policy,
    free: Vec<bool>,
    /// Hosts that are free.
    left: u32,
    /// Hosts that may be given at all.
    usable: u32,
}

impl Placer {
    /// All hosts of `topology` are free.
    #[must_use]
    pub fn new(topology: &Topology, policy: Policy) -> Self {
        let hosts = topology.hosts().len();
        let usable = u32::try_from(hosts).expect("a topology has fewer than 2^32 hosts");
        Self { policy, free: vec![true; hosts], left: usable, usable }
    }

    /// Chooses and takes `hosts` hosts.
    ///
    /// # Errors
    /// When there are not so many free; nothing is taken then.
    pub fn place(&mut self, hosts: u32) -> Result<Placement, NoRoom> {
        if hosts == 0 {
            return Err(NoRoom::NoHosts);
        }
        if hosts > self.usable {
            return Err(NoRoom::TooLarge { hosts, cluster: self.usable });
        }
        if hosts > self.left {
            return Err(NoRoom::Busy { hosts, free: self.left });
        }
        let placement = match self.policy {
            Policy::FirstFit => first_fit::choose(&self.free, hosts),
        };
        self.take(&placement.hosts);
        Ok(placement)
    }

    /// Takes these hosts, whoever chose them: a job that was placed before a restart.
    ///
    /// # Panics
    /// When one is not free.
    pub fn take(&mut self, hosts: &[HostId]) {
        for host in hosts {
            assert!(self.free[host.index()], "host {} is taken twice", host.0);
            self.free[host.index()] = false;
            self.left -= 1;
        }
    }

    /// A job has ended: its hosts are free again.
    ///
    /// # Panics
    /// When one is free already.
    pub fn release(&mut self, hosts: &[HostId]) {
        for host in hosts {
            assert!(!self.free[host.index()], "host {} is released twice", host.0);
            self.free[host.index()] = true;
            self.left += 1;
        }
    }

    /// Hosts that are free.
    #[must_use]
    pub const fn free(&self) -> u32 {
        self.left
    }
}
