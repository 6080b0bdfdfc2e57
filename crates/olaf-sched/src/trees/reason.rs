//! What the forest says: whose tree changed, and why a job has the tree that it has.

use crate::{JobId, SwitchId, Tree};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A job's tree changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whose.
    pub job: JobId,
    /// What it had.
    pub from: Option<Arc<Tree>>,
    /// What it has now.
    pub to: Option<Arc<Tree>>,
    /// Why.
    pub reason: Reason,
}

impl Change {
    /// A running job must let go of a tree: what a migration costs (MINA §V-D). A job that gets
    /// its first tree, or none on arrival, does not.
    #[must_use]
    pub fn is_migration(&self) -> bool {
        self.from.is_some()
    }
}

/// Why a job has the tree that it has, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// It has one host: nothing to sum.
    OneHost,
    /// The policy gives no trees.
    Off,
    /// No switch is above all its hosts, drained ones not counted.
    Cut {
        /// Drained switches above its hosts: why.
        drained: Vec<SwitchId>,
    },
    /// It asks for more units than a resource has.
    TooLarge {
        /// Asked for.
        units: u32,
        /// What there is.
        capacity: u32,
    },
    /// No tree of it is free of conflicts.
    Conflict {
        /// How many were looked at.
        candidates: usize,
        /// The jobs in the way of them.
        with: Vec<JobId>,
    },
    /// It gains nothing by a tree, and none is free of conflicts.
    NoGain {
        /// The jobs in the way.
        with: Vec<JobId>,
    },
    /// Each of its trees conflicts with several groups, or with none that shares.
    LeftOut {
        /// How many were looked at.
        candidates: usize,
        /// With whose trees they conflict.
        with: Vec<JobId>,
    },
    /// Its tree conflicts with no other.
    Alone,
    /// Its tree conflicts with no other. The job had another tree before, and made room.
    Moved {
        /// The job that got the room.
        made_room_for: JobId,
    },
    /// Its tree conflicts with others': they take turns (MINA §III-D).
    Shares {
        /// The jobs that it conflicts with directly.
        with: Vec<JobId>,
    },
}
