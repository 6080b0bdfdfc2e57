//! Hosts, switches and the links between them; how many jobs each can sum for.
//!
//! A topology is a graph without cycles whose links lead *up*: from a host to its switch, from a
//! switch to those above it. A fat tree, a leaf-spine and any tree are such graphs. An aggregation
//! tree goes up from a job's hosts to one root (MINA Figure 1).

mod error;
mod fat_tree;
mod leaf_spine;
mod pods;
mod spec;
mod text;

pub use error::{CapacityError, TopologyError};
pub use fat_tree::{FatTree, FatTreeError};
pub use leaf_spine::LeafSpine;
pub use pods::{Part, Pod, PodId, Pods};
pub use spec::{HostSpec, SwitchSpec, TopologySpec};

use crate::{HostId, LinkId, SwitchId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The largest cluster, in hosts.
pub const MOST_HOSTS: u64 = 1 << 20;
/// The most switches that a file may name.
pub const MOST_SWITCHES: usize = 1 << 18;
/// The most links that a file may name.
pub const MOST_LINKS: usize = 1 << 23;
/// The most switches on a way up.
pub const MOST_LEVELS: u32 = 64;

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
    /// Number of jobs a port, whatever the other ports do: 1 on Quantum-2 NDR.
    PerPort(u32),
    /// Number of slots a switch; each job asks for some of them: our own switches.
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

    /// Hosts all of whose links end at one of `switches`: what is cut off when these are drained.
    /// In a fat tree a ToR switch has hosts of its own; the others have none.
    #[must_use]
    pub fn cut_off(&self, switches: &BTreeSet<SwitchId>) -> Vec<HostId> {
        let is_cut_off =
            |host: &Host| host.up.iter().all(|&link| switches.contains(&self.link(link).parent));
        let hosts = (0u32..).zip(&self.hosts).filter(|(_, host)| is_cut_off(host));
        hosts.map(|(number, _)| HostId(number)).collect()
    }

    /// One line for people: `1024 hosts, 320 switches on 3 levels (128, 128, 64), 3072 links`.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut levels: BTreeMap<u32, usize> = BTreeMap::new();
        self.switches.iter().for_each(|switch| *levels.entry(switch.level).or_default() += 1);
        let counts: Vec<_> = levels.values().map(usize::to_string).collect();
        let many =
            |n: usize, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
        format!(
            "{}, {} on {} ({}), {}",
            many(self.hosts.len(), "host", "hosts"),
            many(self.switches.len(), "switch", "switches"),
            many(levels.len(), "level", "levels"),
            counts.join(", "),
            many(self.links.len(), "link", "links"),
        )
    }

    const fn empty() -> Self {
        Self { hosts: Vec::new(), switches: Vec::new(), links: Vec::new() }
    }

    fn add_host(&mut self, name: String) -> HostId {
        let number = u32::try_from(self.hosts.len()).expect("fewer than MOST_HOSTS, checked");
        self.hosts.push(Host { name, up: Vec::new() });
        HostId(number)
    }

    fn join(&mut self, child: Node, parent: SwitchId) {
        let number = u32::try_from(self.links.len()).expect("fewer than 2^32 links, checked");
        let link = LinkId(number);
        self.links.push(Link { child, parent });
        match child {
            Node::Host(host) => self.hosts[host.index()].up.push(link),
            Node::Switch(switch) => self.switches[switch.index()].up.push(link),
        }
        self.switches[parent.index()].down.push(link);
    }
}
