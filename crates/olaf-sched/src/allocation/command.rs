//! What an [`Allocator`](super::Allocator) can be told, and why it may refuse.

use super::State;
use crate::JobId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One step of the state machine. Refused ones change nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// A job wants to run. It gets the next number.
    Submit(Request),
    /// A job has ended well: it runs nowhere and uses no tree any more.
    Finish {
        /// Whose.
        job: JobId,
    },
    /// A job is dead, or is given up. Its hosts are free; its tree is to be fenced.
    Fail {
        /// Whose.
        job: JobId,
        /// For people.
        reason: String,
    },
    /// A job shall stop: a waiting job ends; a running job gets the order to stop and then reports
    /// that it finished.
    Cancel {
        /// Whose.
        job: JobId,
    },
    /// A job holds nothing of its tree of this generation any more: said by its runtime, or by who
    /// fenced it.
    Released {
        /// Whose.
        job: JobId,
        /// As in the order to release.
        generation: u64,
    },
    /// A job uses its tree of this generation.
    Acquired {
        /// Whose.
        job: JobId,
        /// As in the order to acquire.
        generation: u64,
    },
    /// No tree shall go through this switch.
    DrainSwitch {
        /// Its name.
        switch: String,
    },
    /// Trees may go through this switch again.
    UndrainSwitch {
        /// Its name.
        switch: String,
    },
    /// No job that begins from now on shall get this host.
    DrainHost {
        /// Its name.
        host: String,
    },
    /// Jobs may get this host again.
    UndrainHost {
        /// Its name.
        host: String,
    },
    /// A host is dead: its job fails, and no job gets the host until it is undrained.
    HostLost {
        /// Its name.
        host: String,
    },
}

/// A job as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// For people; need not be unique.
    pub name: String,
    /// The pattern's name, for people; what counts of it is `gain`.
    #[serde(default)]
    pub pattern: Option<String>,
    /// How many hosts.
    pub hosts: u32,
    /// Units that it asks of each resource of its tree: 1, or slots of our own switches.
    pub units: u32,
    /// How many steps it will take, if that is known.
    #[serde(default)]
    pub steps: Option<u64>,
    /// What it wins by its tree, in host-nanoseconds a second: [`gain`](super::gain).
    #[serde(default)]
    pub gain: u64,
}

/// The longest name of a job, and the longest reason of a failure, in bytes.
pub const MOST_TEXT: usize = 256;

/// Why a command cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// A text that is empty, too long or has control characters.
    Text {
        /// Which.
        field: &'static str,
    },
    /// A job without hosts, or with more than the cluster has.
    Hosts {
        /// Asked for.
        hosts: u32,
        /// In the cluster, drained ones too.
        cluster: u32,
    },
    /// No units, or more than a resource has.
    Units {
        /// Asked for.
        units: u32,
        /// Of each resource.
        capacity: u32,
    },
    /// No steps at all.
    Steps,
    /// As many jobs wait as may.
    QueueFull {
        /// How many.
        waiting: usize,
    },
    /// There never was such a job, or it ended long ago.
    NoJob {
        /// Asked for.
        job: JobId,
    },
    /// The job is in a state in which this cannot be.
    NotNow {
        /// Whose.
        job: JobId,
        /// What it is.
        state: State,
    },
    /// The job was never given a tree of that generation.
    Generation {
        /// Whose.
        job: JobId,
        /// Said.
        generation: u64,
        /// The newest of it.
        newest: u64,
    },
    /// The job has not released yet what it says to have acquired anew.
    NotAsked {
        /// Whose.
        job: JobId,
        /// Said.
        generation: u64,
    },
    /// The topology has no switch or host of this name.
    NoNode {
        /// `switch` or `host`.
        what: &'static str,
        /// Asked for.
        name: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { field } => {
                write!(f, "{field}: must have 1 to {MOST_TEXT} bytes and no control character")
            }
            Self::Hosts { hosts, cluster } => {
                write!(f, "hosts = {hosts}: must be from 1 to {cluster}, the cluster's hosts")
            }
            Self::Units { units, capacity } => {
                write!(f, "units = {units}: must be from 1 to {capacity}, the units of a resource")
            }
            Self::Steps => write!(f, "steps: must be at least 1, or left out"),
            Self::QueueFull { waiting } => {
                write!(f, "{waiting} jobs wait already, which is the limit; submit again later")
            }
            Self::NoJob { job } => {
                write!(f, "no job {}; list the jobs to see their numbers", job.0)
            }
            Self::NotNow { job, state } => write!(f, "job {} is {state}", job.0),
            Self::Generation { job, generation, newest } => write!(
                f,
                "job {} was never given a tree of generation {generation}; its newest is {newest}",
                job.0
            ),
            Self::NotAsked { job, generation } => write!(
                f,
                "job {} was not told to acquire generation {generation}; wait for the order",
                job.0
            ),
            Self::NoNode { what, name } => {
                write!(f, "no {what} {name:?}; the topology has its names")
            }
        }
    }
}

impl std::error::Error for Refusal {}
