//! What an [`Allocator`](super::Allocator) tells the others.

use crate::topology::{Node, Topology};
use crate::{JobId, Tree, placement, trees};
use serde::Serialize;

/// Something that happened, and for some of them: what a runtime shall now do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A job waits.
    Queued {
        /// Whose.
        job: JobId,
        /// 1 is the head.
        position: usize,
        /// Why it waits.
        why: Waiting,
    },
    /// A job has hosts. Its runtime may start.
    Started {
        /// Whose.
        job: JobId,
        /// Their names, from left to right.
        hosts: Vec<String>,
        /// Why these.
        reason: placement::Reason,
    },
    /// What tree the job shall have was decided anew. Orders follow.
    Planned {
        /// Whose.
        job: JobId,
        /// Of this decision; each job counts its own.
        generation: u64,
        /// None: it shall do without.
        root: Option<String>,
        /// Why.
        reason: trees::Reason,
    },
    /// Order: after the running all-reduce, stop to use this tree and say `released`. Go on
    /// without (MINA §IV-A a).
    Release {
        /// Whose.
        job: JobId,
        /// What it holds, or may be about to.
        generation: u64,
    },
    /// Order: this tree is yours, set it up and say `acquired`.
    Acquire {
        /// Whose.
        job: JobId,
        /// Of the tree.
        generation: u64,
        /// The tree.
        tree: TreeView,
    },
    /// Order to the keeper of the switches: tear down a dead job's tree, then send `released` in
    /// the job's place.
    Fence {
        /// Whose.
        job: JobId,
        /// Of the tree.
        generation: u64,
    },
    /// Order: stop, then say `finish`.
    Stop {
        /// Whose.
        job: JobId,
    },
    /// A job has ended; its hosts are free.
    Ended {
        /// Whose.
        job: JobId,
        /// How.
        state: super::State,
        /// What was said of it.
        note: Option<String>,
    },
    /// A switch or host is drained, or is not any more.
    Drained {
        /// Which.
        name: String,
        /// Now.
        drained: bool,
    },
}

/// Why a job waits for hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Waiting {
    /// It is the head, and too few hosts are free.
    Hosts {
        /// Asked for.
        hosts: u32,
        /// Free and not drained.
        free: u32,
    },
    /// The queue keeps its order: no job overtakes the head.
    Behind {
        /// The first job of the queue.
        head: JobId,
    },
}

/// A tree by the names of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeView {
    /// Where the sum is complete.
    pub root: String,
    /// The switches that sum, the root among them.
    pub switches: Vec<String>,
    /// The links in it, as `[lower end, upper end]`.
    pub links: Vec<[String; 2]>,
}

impl TreeView {
    pub(super) fn new(topology: &Topology, tree: &Tree) -> Self {
        let switch = |s: &crate::SwitchId| topology.switches()[s.index()].name.clone();
        let link = |l: &crate::LinkId| {
            let link = topology.link(*l);
            [name(topology, link.child), name(topology, Node::Switch(link.parent))]
        };
        Self {
            root: switch(&tree.root),
            switches: tree.switches.iter().map(switch).collect(),
            links: tree.links.iter().map(link).collect(),
        }
    }
}

pub(super) fn name(topology: &Topology, node: Node) -> String {
    match node {
        Node::Host(host) => topology.hosts()[host.index()].name.clone(),
        Node::Switch(switch) => topology.switches()[switch.index()].name.clone(),
    }
}
