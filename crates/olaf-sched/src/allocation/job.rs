//! A job as the allocation controller knows it.

use super::Request;
use crate::{HostId, Tree, placement};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for hosts.
    Queued,
    /// It has hosts.
    Running,
    /// It has hosts, and was told to stop.
    Stopping,
    /// It ended well.
    Finished,
    /// It died, or was given up.
    Failed,
    /// It was told to stop, and did.
    Cancelled,
}

impl State {
    /// It has hosts.
    #[must_use]
    pub const fn runs(self) -> bool {
        matches!(self, Self::Running | Self::Stopping)
    }

    /// Nothing will become of it any more.
    #[must_use]
    pub const fn ended(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// A job, from its submission to some time after its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// As it was submitted.
    pub request: Request,
    /// Where it is.
    pub state: State,
    /// Milliseconds, by the clock of the process that applied the commands.
    pub submitted_ms: u64,
    /// When it got its hosts.
    pub started_ms: Option<u64>,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// What was said of its end.
    pub note: Option<String>,
    /// Its hosts, ascending; those it had, when it has ended.
    pub hosts: Vec<HostId>,
    /// Why these.
    pub placed: Option<placement::Reason>,
    /// The tree that it shall have.
    pub tree: Option<Arc<Tree>>,
    /// How often its tree was decided anew. 0: it never was.
    pub generation: u64,
    /// How often it was told to give a tree up for another, or for none.
    pub migrations: u64,
}

impl Job {
    pub(super) fn new(request: Request, now_ms: u64) -> Self {
        Self {
            request,
            state: State::Queued,
            submitted_ms: now_ms,
            started_ms: None,
            ended_ms: None,
            note: None,
            hosts: Vec::new(),
            placed: None,
            tree: None,
            generation: 0,
            migrations: 0,
        }
    }
}
