//! An aggregation tree: the switches through which one job's sum flows (MINA Figure 1, §III-C).

use crate::topology::{Capacity, Node, Topology};
use crate::{HostId, LinkId, SwitchId};
use std::collections::{BTreeMap, BTreeSet};

/// From a job's hosts up to one root. What a running all-reduce holds while the switches sum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree {
    /// Where the sum is complete, and turns back.
    pub root: SwitchId,
    /// All switches on the way, the root among them, ascending.
    pub switches: Vec<SwitchId>,
    /// All links on the way, those of the hosts among them, ascending.
    pub links: Vec<LinkId>,
}

impl Tree {
    /// The nearest switches that are above all of `hosts`: the candidates for a root, ascending.
    /// None for fewer than two hosts: there is nothing to sum.
    #[must_use]
    pub fn roots(topology: &Topology, hosts: &[HostId]) -> Vec<SwitchId> {
        if hosts.len() < 2 {
            return Vec::new();
        }
        let mut above: BTreeMap<SwitchId, usize> = BTreeMap::new();
        for &host in hosts {
            let mut seen = BTreeSet::new();
            let mut open = vec![Node::Host(host)];
            while let Some(node) = open.pop() {
                for &link in topology.up(node) {
                    let parent = topology.link(link).parent;
                    if seen.insert(parent) {
                        *above.entry(parent).or_default() += 1;
                        open.push(Node::Switch(parent));
                    }
                }
            }
        }
        let common: Vec<_> =
            above.iter().filter(|(_, hosts_below)| **hosts_below == hosts.len()).collect();
        let level = |switch: SwitchId| topology.switches()[switch.index()].level;
        let lowest = common.iter().map(|(switch, _)| level(**switch)).min();
        common.iter().map(|(switch, _)| **switch).filter(|s| Some(level(*s)) == lowest).collect()
    }

    /// The tree from `hosts` to `root`: each node's way up is the shortest, of equal ones the
    /// first. None when a host is not below `root`.
    #[must_use]
    pub fn to(topology: &Topology, hosts: &[HostId], root: SwitchId) -> Option<Self> {
        // From the root down: the first link on each node's shortest way.
        let mut way: BTreeMap<Node, LinkId> = BTreeMap::new();
        let mut layer = vec![root];
        while !layer.is_empty() {
            let mut next = Vec::new();
            for switch in layer {
                for &link in &topology.switches()[switch.index()].down {
                    let child = topology.link(link).child;
                    if let std::collections::btree_map::Entry::Vacant(entry) = way.entry(child) {
                        entry.insert(link);
                        if let Node::Switch(below) = child {
                            next.push(below);
                        }
                    }
                }
            }
            layer = next;
        }
        let (mut switches, mut links) = (BTreeSet::from([root]), BTreeSet::new());
        for &host in hosts {
            let mut node = Node::Host(host);
            while node != Node::Switch(root) {
                let link = *way.get(&node)?;
                if !links.insert(link) {
                    break;
                }
                let parent = topology.link(link).parent;
                switches.insert(parent);
                node = Node::Switch(parent);
            }
        }
        Some(Self {
            root,
            switches: switches.into_iter().collect(),
            links: links.into_iter().collect(),
        })
    }

    /// What the tree uses of a topology with this `capacity`, ascending: indices of switches or of
    /// links. Two trees conflict where a resource has too few units for both.
    #[must_use]
    pub fn resources(&self, capacity: Capacity) -> Vec<u32> {
        match capacity {
            Capacity::PerPort(_) => self.links.iter().map(|link| link.0).collect(),
            Capacity::PerSwitch(_) | Capacity::Slots(_) => {
                self.switches.iter().map(|switch| switch.0).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::FatTree;

    fn cluster() -> Topology {
        Topology::fat_tree(FatTree::of_degree(4).expect("even")).expect("small")
    }

    fn hosts(numbers: &[u32]) -> Vec<HostId> {
        numbers.iter().map(|&n| HostId(n)).collect()
    }

    #[test]
    fn the_root_is_no_higher_than_it_must_be() {
        let topology = cluster();
        let names = |numbers: &[u32]| -> Vec<String> {
            let roots = Tree::roots(&topology, &hosts(numbers));
            roots.iter().map(|s| topology.switches()[s.index()].name.clone()).collect()
        };
        assert_eq!(names(&[0, 1]), ["tor0.0"]);
        assert_eq!(names(&[0, 2]), ["agg0.0", "agg0.1"]);
        assert_eq!(names(&[0, 15]), ["core0.0", "core0.1", "core1.0", "core1.1"]);
        assert!(names(&[3]).is_empty());
    }

    #[test]
    fn a_tree_holds_one_link_of_each_node_below_its_root() {
        let topology = cluster();
        let root = Tree::roots(&topology, &hosts(&[0, 1, 4]))[2];
        let tree = Tree::to(&topology, &hosts(&[0, 1, 4]), root).expect("below");
        assert_eq!((tree.switches.len(), tree.links.len()), (5, 7));
        assert_eq!(tree.resources(Capacity::PerPort(1)).len(), 7);
        assert_eq!(tree.resources(Capacity::PerSwitch(1)).len(), 5);
        assert!(Tree::to(&topology, &hosts(&[0, 4]), SwitchId(0)).is_none());
    }
}
