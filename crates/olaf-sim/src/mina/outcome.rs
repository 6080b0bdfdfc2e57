//! What a simulation came to: whole numbers, from which the driver makes scores.

use super::setting::Window;
use olaf_sched::placement;
use olaf_sched::trees;
use serde::Serialize;

/// The whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// In the cluster.
    pub hosts: u64,
    /// In the order of the list.
    pub jobs: Vec<JobOutcome>,
    /// When the last job ended.
    pub makespan_ns: u64,
    /// All-reduces of all jobs.
    pub operations: u64,
    /// Events taken from the event queue: fewer than two an operation, as jobs that no other job
    /// disturbs go forward by whole steps.
    pub events: u64,
    /// Instants at which trees were chosen.
    pub rebuilds: u64,
    /// Most jobs that ran at once.
    pub most_running: u64,
    /// The trees that each job held, if the setting asks for them.
    pub timeline: Option<Timeline>,
}

/// One job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobOutcome {
    /// When it came to the head of the line.
    pub queued_ns: u64,
    /// When it got its hosts.
    pub start_ns: u64,
    /// When its last step ended.
    pub end_ns: u64,
    /// How long it takes when none of its all-reduces is in the network.
    pub none_ns: u64,
    /// How long it takes when all are.
    pub all_ns: u64,
    /// For how long the switches summed for it.
    pub in_network_ns: u64,
    /// All-reduces with the switches.
    pub operations_with: u64,
    /// All-reduces without.
    pub operations_without: u64,
    /// For how long it had a tree.
    pub tree_ns: u64,
    /// For how long its tree conflicted with another's.
    pub shared_ns: u64,
    /// Changes of its tree for another while it ran.
    pub moved: u64,
    /// Times that it got a tree later than at its start.
    pub gained: u64,
    /// Times that it lost its tree while it ran.
    pub lost: u64,
}

/// What it cost to compute, by the driver's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// Of each job: choosing its hosts.
    pub placement_ns: Vec<u64>,
    /// Of each arrival of jobs together: choosing trees.
    pub trees_ns: Vec<u64>,
    /// Of each end of a job: choosing trees.
    pub leave_ns: Vec<u64>,
}

/// A use of the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Use {
    /// When the all-reduce started.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
}

/// The trees that each job held, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// Of the cluster.
    pub hosts: u32,
    /// Their names.
    pub switches: Vec<String>,
    /// Of each host, its first switch.
    pub tor_of: Vec<u32>,
    /// Uses are kept of this part of the run.
    pub window: Option<Window>,
    /// In the order of the list.
    pub jobs: Vec<JobLine>,
}

/// One job's line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobLine {
    /// Where it ran.
    pub hosts: Vec<u32>,
    /// Why there.
    pub placement: Option<placement::Reason>,
    /// What trees it had, and when.
    pub trees: Vec<TreeSpan>,
    /// Uses of the switches within the window.
    pub uses: Vec<Use>,
}

/// A tree, or none, for a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeSpan {
    /// From when it was the job's.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// Switch; none without a tree.
    pub root: Option<u32>,
    /// Switches on the way, the root among them.
    pub switches: Vec<u32>,
    /// Why.
    pub reason: trees::Reason,
}
