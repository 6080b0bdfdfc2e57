//! Which all-reduces use the switches, when several jobs want the same ones (MINA §III-D).
//!
//! [`decide`] is asked before each all-reduce of a job that has a tree. It answers at once, with a
//! reason: the all-reduce starts now in either case, summed by the switches or by the hosts.
//! Nothing is remembered between two questions, so nothing goes stale when a tree or a group
//! changes.

pub mod bound;
pub mod group;
mod mina;
mod next;
mod plan;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use next::Next;

use crate::{JobId, Steps};
use serde::{Deserialize, Serialize};

/// How jobs share a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// No all-reduce uses the switches.
    None,
    /// Every all-reduce that finds its tree free uses it (MINA §V-A, baselines).
    Greedy,
    /// It yields to another job that would gain more in the time (MINA §III-D).
    Mina,
    /// Both answers are tried on the jobs' future, and the better one taken: ours.
    Plan,
}

/// Whom a policy wants to see as `rivals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Nobody: the slice may be empty.
    Nobody,
    /// The running jobs whose trees conflict with mine.
    Conflicting,
    /// All running jobs of my sharing group (MINA §III-C), whether or not our trees conflict.
    Group,
}

/// A job in the middle of a step: what a policy may know of it.
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// Whose.
    pub job: JobId,
    /// Its pattern on its network.
    pub steps: &'a Steps,
    /// How many hosts wait for its step to end.
    pub hosts: u32,
    /// When its step began.
    pub step_begin_ns: u64,
    /// The next operation to start: an index into `steps`; their number when all of this step have
    /// started.
    pub next: usize,
    /// When the operation that runs ends; if none runs, when the job became free to start `next`.
    pub ready_ns: u64,
    /// The operation that runs uses the switches.
    pub in_network_now: bool,
    /// An operation runs. The asking job has none.
    pub running: bool,
    /// Steps still to end, this one among them: 1 in the last.
    pub steps_left: u64,
}

/// The answer for one all-reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The switches sum; the hosts if not.
    pub in_network: bool,
    /// Why.
    pub reason: Reason,
}

/// Why an all-reduce uses the switches, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// No: the policy uses no switches.
    Off,
    /// No: another job's all-reduce uses what it would need.
    Busy,
    /// Yes: no other job may want them before it ends, or the policy does not ask.
    Free,
    /// Yes: others want them before it ends, and gain no more by them in the time.
    Ahead,
    /// No: another job gains more by them in the time.
    Yields {
        /// That job.
        to: JobId,
    },
}

impl Policy {
    /// Whom [`decide`] wants to see.
    #[must_use]
    pub const fn scope(self) -> Scope {
        match self {
            Self::None | Self::Greedy => Scope::Nobody,
            Self::Plan => Scope::Conflicting,
            Self::Mina => Scope::Group,
        }
    }
}

impl Decision {
    pub(crate) const fn yes(reason: Reason) -> Self {
        Self { in_network: true, reason }
    }

    pub(crate) const fn no(reason: Reason) -> Self {
        Self { in_network: false, reason }
    }

    /// What the caller says itself when the tree of the job is in use.
    pub const BUSY: Self = Self::no(Reason::Busy);
}

/// What a caller knows of the rivals that [`decide_among`] is shown, beyond themselves. They are
/// named by their places in the slice.
pub trait Surroundings {
    /// Returns true if the trees of two of them conflict with each other, as each does with mine.
    fn conflict(&self, a: usize, b: usize) -> bool;

    /// When nobody but me would keep one of them from using its tree, as far as that can be told
    /// now: the end of the operation that uses something of it. Any time up to now if none does.
    fn free_ns(&self, rival: usize) -> u64;
}

/// Every job conflicts with every other: the jobs of a group that share one tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneTree;

impl Surroundings for OneTree {
    fn conflict(&self, _: usize, _: usize) -> bool {
        true
    }

    fn free_ns(&self, _: usize) -> u64 {
        0
    }
}

/// As [`decide_among`], where all share one tree.
///
/// # Panics
/// If `me.next` is no operation of its step: there is nothing to decide then.
#[must_use]
pub fn decide(policy: Policy, now_ns: u64, me: &Running<'_>, rivals: &[Running<'_>]) -> Decision {
    decide_among(policy, now_ns, me, rivals, &OneTree)
}

/// Returns true if `me`, which starts its operation `me.next` at `now_ns`, uses its tree, which is
/// free now.
///
/// `rivals` are those that [`Policy::scope`] asks for, in an order that is the caller's but always
/// the same; the first of those that `me` could yield to is the one named.
///
/// # Panics
/// If `me.next` is no operation of its step: there is nothing to decide then.
#[must_use]
pub fn decide_among(
    policy: Policy,
    now_ns: u64,
    me: &Running<'_>,
    rivals: &[Running<'_>],
    surroundings: &impl Surroundings,
) -> Decision {
    assert!(me.next < me.steps.len(), "an operation starts: next is one of the step's");
    match policy {
        Policy::None => Decision::no(Reason::Off),
        Policy::Greedy => Decision::yes(Reason::Free),
        Policy::Mina => mina::decide(now_ns, me, rivals),
        Policy::Plan => plan::decide(now_ns, me, rivals, surroundings),
    }
}
