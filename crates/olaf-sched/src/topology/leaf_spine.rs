//! Two layers of switches, all of the lower linked to all of the upper.

use super::{MOST_HOSTS, Node, Switch, Topology};
use crate::{HostId, SwitchId};

/// How many there are of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    /// Switches with hosts.
    pub leaves: u32,
    /// Hosts a leaf.
    pub hosts: u32,
    /// Switches above every leaf; fewer than `hosts` is oversubscription.
    pub spines: u32,
}

impl Topology {
    /// Every leaf is linked to every spine.
    ///
    /// # Errors
    /// The shape again, when it has no leaves, hosts or spines, or more than [`MOST_HOSTS`] hosts or
    /// links between switches.
    pub fn leaf_spine(shape: LeafSpine) -> Result<Self, LeafSpine> {
        let LeafSpine { leaves, hosts, spines } = shape;
        let many = |a: u32, b: u32| u64::from(a) * u64::from(b);
        let out = |n: u64| n == 0 || n > MOST_HOSTS;
        if out(many(leaves, hosts)) || out(many(leaves, spines)) {
            return Err(shape);
        }
        let mut topology = Self::empty();
        let switch = |name, level| Switch { name, level, ..Switch::default() };
        topology.switches.extend((0..leaves).map(|leaf| switch(format!("leaf{leaf}"), 1)));
        topology.switches.extend((0..spines).map(|spine| switch(format!("spine{spine}"), 2)));
        for host in 0..leaves * hosts {
            topology.add_host(format!("h{host}"));
            topology.join(Node::Host(HostId(host)), SwitchId(host / hosts));
        }
        for leaf in 0..leaves {
            for spine in 0..spines {
                topology.join(Node::Switch(SwitchId(leaf)), SwitchId(leaves + spine));
            }
        }
        Ok(topology)
    }
}
