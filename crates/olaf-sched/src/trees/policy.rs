//! Which policies choose trees, their parameters, and their words on the command line.

use super::seat::Limits;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How trees are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Policy {
    /// Nobody has a tree.
    None,
    /// A new job gets the first tree that conflicts with no other, and keeps it; or none, for good
    /// (MINA §V-A, baselines).
    First,
    /// As `First`, but a job that gains nothing by a tree gets none. The baseline of a sceptic:
    /// the smallest change that keeps useless trees out of the way of useful ones.
    FirstGain,
    /// A new job gets any tree that conflicts with no other, and keeps it; or none, for good.
    Random,
    /// The largest set of trees that do not conflict, found anew at each arrival (MINA §III-C).
    Mina {
        /// So many trees of each job, drawn at random when it arrives; 0 for all (MINA Figure 14).
        candidates: usize,
        /// What makes a set large.
        weight: Weight,
        /// A job that is left over joins the one tree that its own conflicts with.
        join: bool,
        /// Disturbances that the local search recovers from.
        rounds: u32,
        /// Of equally large sets, one that changes few trees.
        /// differs: the paper's is any; without, each job's tree moves about ten times.
        #[serde(default = "yes")]
        keep: bool,
    },
    /// What the jobs of the set gain together is as large as can be; trees change only where that
    /// pays.
    Gain {
        /// So many trees of each job, drawn at random when it arrives; 0 for all.
        candidates: usize,
        /// With which jobs a job takes turns that has no place in the set.
        join: Join,
        /// Cost of changing a running job's tree, in thousandths of the job's gain.
        price_millis: u64,
        /// Longest chain of jobs that make room for each other.
        depth: u32,
        /// Most looks at a resource in one event: bounds its time.
        work: u64,
    },
    /// As `Gain`; then a solver looks for more, see [`Forest::arrive_with`].
    ///
    /// [`Forest::arrive_with`]: super::Forest::arrive_with
    Exact {
        /// So many trees of each job, drawn at random when it arrives; 0 for all.
        candidates: usize,
        /// With which jobs a job takes turns that has no place in the set.
        join: Join,
        /// Cost of changing a running job's tree, in thousandths of the job's gain.
        price_millis: u64,
    },
}

impl Policy {
    /// As in the paper: 5 candidates, jobs counted, groups joined (§III-C, §V-C).
    pub const MINA: Self =
        Self::Mina { candidates: 5, weight: Weight::Jobs, join: true, rounds: 50, keep: true };
    /// Ours.
    pub const GAIN: Self = Self::Gain {
        candidates: 64,
        join: Join::DEFAULT,
        price_millis: 50,
        depth: DEPTH,
        work: WORK,
    };
    /// Ours, and a solver.
    pub const EXACT: Self = Self::Exact { candidates: 64, join: Join::DEFAULT, price_millis: 50 };

    /// Returns true if it gives trees that conflict, whose jobs have to take turns.
    #[must_use]
    pub const fn shares(self) -> bool {
        match self {
            Self::None | Self::First | Self::FirstGain | Self::Random => false,
            Self::Mina { join, .. } => join,
            Self::Gain { join, .. } | Self::Exact { join, .. } => !matches!(join, Join::None),
        }
    }

    /// When a job that has no tree may get one.
    #[must_use]
    pub const fn again(self) -> Again {
        match self {
            Self::None | Self::First | Self::FirstGain | Self::Random => Again::Never,
            Self::Mina { .. } => Again::Arrival,
            Self::Gain { .. } | Self::Exact { .. } => Again::Free,
        }
    }

    pub(super) const fn gains(self) -> Option<(Limits, Join)> {
        match self {
            Self::Gain { join, price_millis, depth, work, .. } => {
                Some((Limits { depth, work, price_millis }, join))
            }
            Self::Exact { join, price_millis, .. } => {
                Some((Limits { depth: DEPTH, work: WORK, price_millis }, join))
            }
            Self::None | Self::First | Self::FirstGain | Self::Random | Self::Mina { .. } => None,
        }
    }

    pub(super) const fn candidates(self) -> usize {
        match self {
            Self::Mina { candidates, .. }
            | Self::Gain { candidates, .. }
            | Self::Exact { candidates, .. } => candidates,
            Self::None | Self::First | Self::FirstGain | Self::Random => 0,
        }
    }
}

/// A longer chain of moves hardly ever pays.
const DEPTH: u32 = 3;
/// A few milliseconds.
const WORK: u64 = 100_000;

const fn yes() -> bool {
    true
}

/// What makes a conflict-free set large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The number of jobs, as in the paper's objective.
    Jobs,
    /// Their hosts together, as in a newer revision of its code.
    Hosts,
}

/// When a job that has no tree is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Again {
    /// As soon as what it needs is free.
    Free,
    /// When another job begins to run.
    Arrival,
    /// Never: it has none for good.
    Never,
}

/// With which jobs a job may take turns that has no place in the conflict-free set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// With none: the job has a tree only where no other job uses what the tree needs.
    #[serde(alias = "nobody")]
    None,
    /// With the jobs of at most one sharing group, as in the paper (§III-C).
    One,
    /// Also with jobs of several groups, which become one.
    Several,
}

impl Join {
    /// What `Policy::GAIN` and `Policy::EXACT` do unless told otherwise. How it was chosen:
    /// docs/design/017-sharing-in-time.md.
    pub const DEFAULT: Self = Self::Several;
}

/// A policy by its word on the command line, with those parameters that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// `none`, `first`, `first-gain`, `random`, `mina`, `gain` or `exact`.
    pub trees: String,
    /// Trees of each job that are looked at; 0 for all.
    #[serde(default)]
    pub candidates: Option<usize>,
    /// With which jobs a job takes turns.
    #[serde(default)]
    pub join: Option<Join>,
    /// Cost of changing a running job's tree, in thousandths of the job's gain.
    #[serde(default)]
    pub price_millis: Option<u64>,
}

/// Why a policy cannot be as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedError {
    /// No policy has this word.
    Word(String),
    /// The policy has no such parameter: the policy's word, then the parameter.
    Parameter(String, &'static str),
    /// MINA's trees join one group at most.
    MinaJoinsOne,
}

impl fmt::Display for AskedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(
                f,
                "trees {word:?}: one of none, first, first-gain, random, mina, gain, exact"
            ),
            Self::Parameter(word, name) => {
                write!(f, "{name}: trees `{word}` has no such parameter; take `gain`")
            }
            Self::MinaJoinsOne => write!(
                f,
                "join several: MINA's trees join one sharing group at most; take `one`, or trees \
                 `gain`"
            ),
        }
    }
}

impl std::error::Error for AskedError {}

impl Asked {
    /// The policy, what was not given as in [`Policy::MINA`], [`Policy::GAIN`], [`Policy::EXACT`].
    ///
    /// # Errors
    /// When no policy has the word, or the policy has no such parameter.
    pub fn resolve(&self) -> Result<Policy, AskedError> {
        let mut policy = match self.trees.as_str() {
            "none" => Policy::None,
            "first" => Policy::First,
            "first-gain" => Policy::FirstGain,
            "random" => Policy::Random,
            "mina" => Policy::MINA,
            "gain" => Policy::GAIN,
            "exact" => Policy::EXACT,
            _ => return Err(AskedError::Word(self.trees.clone())),
        };
        let without = |name| Err(AskedError::Parameter(self.trees.clone(), name));
        if let Some(given) = self.candidates {
            match &mut policy {
                Policy::Mina { candidates, .. }
                | Policy::Gain { candidates, .. }
                | Policy::Exact { candidates, .. } => *candidates = given,
                _ => return without("candidates"),
            }
        }
        if let Some(given) = self.join {
            match &mut policy {
                Policy::Mina { .. } if given == Join::Several => {
                    return Err(AskedError::MinaJoinsOne);
                }
                Policy::Mina { join, .. } => *join = given == Join::One,
                Policy::Gain { join, .. } | Policy::Exact { join, .. } => *join = given,
                _ => return without("join"),
            }
        }
        if let Some(given) = self.price_millis {
            match &mut policy {
                Policy::Gain { price_millis, .. } | Policy::Exact { price_millis, .. } => {
                    *price_millis = given;
                }
                _ => return without("migration price"),
            }
        }
        Ok(policy)
    }
}
