//! Hosts, switches and the links between them; how many jobs each can sum for.
//!
//! A topology is a graph without cycles whose links lead *up*: from a host to its switch, from a
//! switch to those above it. A fat tree, a leaf-spine and any tree are such graphs. An aggregation
//! tree goes up from a job's hosts to one root (MINA Figure 1).

mod fat_tree;

pub use fat_tree::{FatTree, FatTreeError, MOST_HOSTS};

use crate::{HostId, LinkId, SwitchId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Either end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A leaf.
    Host(HostId),
    /// What may sum.
    Switch(SwitchId),
}

/// A link up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The end nearer to the hosts.
    pub child: Node,
    /// The switch above it, at one of whose ports it ends.
    pub parent: SwitchId,
}

/// A switch, by its links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// For people: `core3`, `agg0.2`, `tor5.1`.
    pub name: String,
    /// Longest way down to a host, in links; a switch with hosts only is at level 1.
    pub level: u32,
    /// Links to the switches above, in the order in which they were given.
    pub up: Vec<LinkId>,
    /// Links from below.
    pub down: Vec<LinkId>,
}

/// A host, by its link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// For people: `h17`.
    pub name: String,
    /// Links up; a host of a fat tree has one.
    pub up: Vec<LinkId>,
}

/// The graph. Built once; jobs come and go in other places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub(crate) hosts: Vec<Host>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) links: Vec<Link>,
}

/// What a switch can sum for at once (MINA §III-C, (2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capacity {
    /// So many jobs a switch: 1 with SHARP on Quantum HDR.
    PerSwitch(u32),
    /// So many jobs a port, whatever the other ports do: 1 on Quantum-2 NDR.
    PerPort(u32),
    /// So many slots a switch, of which each job asks for some: our own switches.
    Slots(u32),
}

impl Capacity {
    /// Of each resource, in the units that a job asks for.
    #[must_use]
    pub const fn units(self) -> u32 {
        match self {
            Self::PerSwitch(units) | Self::PerPort(units) | Self::Slots(units) => units,
        }
    }

    /// How many resources there are on `topology`: switches, or links.
    #[must_use]
    pub fn resources(self, topology: &Topology) -> usize {
        match self {
            Self::PerPort(_) => topology.links.len(),
            Self::PerSwitch(_) | Self::Slots(_) => topology.switches.len(),
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSwitch(n) => write!(f, "{n} a switch"),
            Self::PerPort(n) => write!(f, "{n} a port"),
            Self::Slots(n) => write!(f, "{n} slots a switch"),
        }
    }
}

impl Topology {
    /// From left to right.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// In no order that means anything; a link's child may have a smaller or a larger number.
    #[must_use]
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// Links of hosts first.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Links up from `node`.
    #[must_use]
    pub fn up(&self, node: Node) -> &[LinkId] {
        match node {
            Node::Host(host) => &self.hosts[host.index()].up,
            Node::Switch(switch) => &self.switches[switch.index()].up,
        }
    }

    /// The link's two ends.
    #[must_use]
    pub fn link(&self, link: LinkId) -> Link {
        self.links[link.index()]
    }
}
