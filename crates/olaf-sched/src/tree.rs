//! An aggregation tree: the switches through which one job's sum flows (MINA Figure 1, §III-C).

use crate::topology::{Capacity, Node, Topology};
use crate::{HostId, LinkId, SwitchId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// From a job's hosts up to one root. What a running all-reduce holds while the switches sum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
        Ways::new(topology, hosts, |_| true).roots()
    }

    /// The tree from `hosts` to `root`: each node's way up is the shortest, of equal ones the
    /// first. None when a host is not below `root`.
    #[must_use]
    pub fn to(topology: &Topology, hosts: &[HostId], root: SwitchId) -> Option<Self> {
        Ways::new(topology, hosts, |_| true).tree(root)
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

/// No way is known.
const NO_LINK: LinkId = LinkId(u32::MAX);

/// All ways up from a job's hosts: looked at once, then asked for as many trees as one likes.
///
/// Only switches above the hosts are ever looked at, and hosts with one link are represented by
/// the switch at its end; so a candidate costs about as many steps as its tree has switches, on
/// any topology.
pub struct Ways<'a> {
    topology: &'a Topology,
    hosts: &'a [HostId],
    /// Where the ways begin: the one switch of a host; a host itself if it has several. Ascending.
    begins: Vec<Node>,
    /// A begin is not usable: nothing can be summed.
    cut: bool,
    /// Of each switch: it is a begin, or above one, and usable.
    above: Vec<bool>,
    /// Those switches, by level and number.
    closed: Vec<SwitchId>,
    /// Of each switch: the link on its shortest way up to the root last asked for.
    way: Vec<LinkId>,
    /// The same of each begin that is a host.
    host_way: BTreeMap<HostId, LinkId>,
    /// Switches whose `way` is set.
    set: Vec<SwitchId>,
}

impl<'a> Ways<'a> {
    /// Up from `hosts`, through switches that are `usable`.
    pub fn new(
        topology: &'a Topology,
        hosts: &'a [HostId],
        usable: impl Fn(SwitchId) -> bool,
    ) -> Self {
        let switches = topology.switches().len();
        let mut begins: Vec<Node> = hosts
            .iter()
            .map(|&host| match topology.up(Node::Host(host)) {
                [link] => Node::Switch(topology.link(*link).parent),
                _ => Node::Host(host),
            })
            .collect();
        begins.sort_unstable();
        begins.dedup();
        let (mut above, mut closed, mut cut) = (vec![false; switches], Vec::new(), false);
        let enter = |switch: SwitchId, above: &mut Vec<bool>, closed: &mut Vec<SwitchId>| {
            let open = usable(switch);
            if open && !above[switch.index()] {
                above[switch.index()] = true;
                closed.push(switch);
            }
            open
        };
        for &begin in &begins {
            match begin {
                Node::Switch(switch) => cut |= !enter(switch, &mut above, &mut closed),
                Node::Host(_) => {
                    for &link in topology.up(begin) {
                        enter(topology.link(link).parent, &mut above, &mut closed);
                    }
                }
            }
        }
        let mut next = 0;
        while let Some(&switch) = closed.get(next) {
            next += 1;
            for &link in &topology.switches()[switch.index()].up {
                enter(topology.link(link).parent, &mut above, &mut closed);
            }
        }
        closed.sort_unstable_by_key(|&s| (topology.switches()[s.index()].level, s));
        let way = vec![NO_LINK; switches];
        let (host_way, set) = (BTreeMap::new(), Vec::new());
        Self { topology, hosts, begins, cut, above, closed, way, host_way, set }
    }

    /// The nearest switches above all hosts, ascending: see [`Tree::roots`].
    pub fn roots(&mut self) -> Vec<SwitchId> {
        if self.hosts.len() < 2 || self.cut {
            return Vec::new();
        }
        let mut roots: Vec<SwitchId> = Vec::new();
        for at in 0..self.closed.len() {
            let switch = self.closed[at];
            let level = |s: SwitchId| self.topology.switches()[s.index()].level;
            if roots.first().is_some_and(|&root| level(root) < level(switch)) {
                break;
            }
            if self.descend(switch) {
                roots.push(switch);
            }
        }
        roots
    }

    /// All switches above the hosts that are usable, by level and number.
    #[must_use]
    pub fn above(&self) -> &[SwitchId] {
        &self.closed
    }

    /// The tree up to `root`: see [`Tree::to`].
    pub fn tree(&mut self, root: SwitchId) -> Option<Tree> {
        let (mut switches, mut links) = self.climb(root)?;
        for &host in self.hosts {
            if let [link] = self.topology.up(Node::Host(host)) {
                links.push(*link);
            }
        }
        switches.sort_unstable();
        links.sort_unstable();
        Some(Tree { root, switches, links })
    }

    /// What the tree up to `root` uses that another job could want too, ascending: as
    /// [`Tree::resources`], without the hosts' own links.
    pub fn contested(&mut self, root: SwitchId, capacity: Capacity) -> Option<Vec<u32>> {
        let (switches, links) = self.climb(root)?;
        let mut resources: Vec<u32> = match capacity {
            Capacity::PerPort(_) => links
                .iter()
                .filter(|&&link| matches!(self.topology.link(link).child, Node::Switch(_)))
                .map(|link| link.0)
                .collect(),
            Capacity::PerSwitch(_) | Capacity::Slots(_) => switches.iter().map(|s| s.0).collect(),
        };
        resources.sort_unstable();
        Some(resources)
    }

    /// Switches and links from the begins up to `root`, in no order.
    fn climb(&mut self, root: SwitchId) -> Option<(Vec<SwitchId>, Vec<LinkId>)> {
        if self.cut || !self.descend(root) {
            return None;
        }
        let (mut switches, mut links) = (vec![root], Vec::new());
        for &begin in &self.begins {
            let mut node = begin;
            while node != Node::Switch(root) {
                let link = match node {
                    Node::Host(host) => self.host_way[&host],
                    // A way that was taken before is marked so, and leads on as it did then.
                    Node::Switch(switch) => {
                        switches.push(switch);
                        std::mem::replace(&mut self.way[switch.index()], NO_LINK)
                    }
                };
                if link == NO_LINK {
                    switches.pop();
                    break;
                }
                links.push(link);
                node = Node::Switch(self.topology.link(link).parent);
            }
        }
        Some((switches, links))
    }

    /// Finds each begin's way up to `root`. False when one has none.
    fn descend(&mut self, root: SwitchId) -> bool {
        for switch in self.set.drain(..) {
            self.way[switch.index()] = NO_LINK;
        }
        self.host_way.clear();
        if !self.above[root.index()] {
            return false;
        }
        let hosts_begin = matches!(self.begins.first(), Some(Node::Host(_)));
        let mut missing = self.begins.len();
        missing -= usize::from(self.begins.binary_search(&Node::Switch(root)).is_ok());
        let (mut layer, mut next) = (vec![root], Vec::new());
        while missing > 0 && !layer.is_empty() {
            for switch in layer.drain(..) {
                let below = &self.topology.switches()[switch.index()];
                if below.level == 1 && !hosts_begin {
                    continue;
                }
                for &link in &below.down {
                    match self.topology.link(link).child {
                        Node::Switch(child) => {
                            let way = &mut self.way[child.index()];
                            if self.above[child.index()] && *way == NO_LINK && child != root {
                                *way = link;
                                self.set.push(child);
                                next.push(child);
                                let begin = self.begins.binary_search(&Node::Switch(child));
                                missing -= usize::from(begin.is_ok());
                            }
                        }
                        Node::Host(host) => {
                            if self.begins.binary_search(&Node::Host(host)).is_ok()
                                && !self.host_way.contains_key(&host)
                            {
                                self.host_way.insert(host, link);
                                missing -= 1;
                            }
                        }
                    }
                }
            }
            std::mem::swap(&mut layer, &mut next);
        }
        missing == 0
    }
}

/// The slow and obvious way to the same trees, for tests.
#[cfg(test)]
pub(crate) mod reference {
    use super::*;
    use std::collections::BTreeSet;

    pub(crate) fn roots(topology: &Topology, hosts: &[HostId]) -> Vec<SwitchId> {
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

    pub(crate) fn to(topology: &Topology, hosts: &[HostId], root: SwitchId) -> Option<Tree> {
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
        Some(Tree {
            root,
            switches: switches.into_iter().collect(),
            links: links.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{FatTree, Host, Switch};
    use proptest::prelude::*;

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

    #[test]
    fn no_way_leads_through_a_switch_that_is_not_usable() {
        let topology = cluster();
        let job = hosts(&[0, 15]);
        let agg = SwitchId(8);
        assert_eq!(topology.switches()[8].name, "agg0.0");
        let mut ways = Ways::new(&topology, &job, |switch| switch != agg);
        let names: Vec<_> =
            ways.roots().iter().map(|s| topology.switches()[s.index()].name.clone()).collect();
        assert_eq!(names, ["core1.0", "core1.1"]);
        assert!(Ways::new(&topology, &job, |switch| switch != SwitchId(0)).roots().is_empty());
    }

    /// Any graph that leads up: `above` has, level by level, the nodes above that each is linked
    /// to.
    fn graph(hosts: usize, above: &[Vec<Vec<usize>>]) -> Topology {
        let mut topology = Topology { hosts: Vec::new(), switches: Vec::new(), links: Vec::new() };
        topology.hosts = vec![Host::default(); hosts];
        let mut below: Vec<Node> =
            (0..hosts).map(|h| Node::Host(HostId(u32::try_from(h).expect("few")))).collect();
        for (level, layer) in above.iter().enumerate() {
            let first = topology.switches.len();
            let level = u32::try_from(level + 1).expect("few");
            topology.switches.extend(layer.iter().map(|_| Switch { level, ..Switch::default() }));
            let mut now = Vec::new();
            for (at, children) in layer.iter().enumerate() {
                let parent = SwitchId(u32::try_from(first + at).expect("few"));
                let mut children: Vec<_> =
                    children.iter().map(|c| below[c % below.len()]).collect();
                children.sort_unstable();
                children.dedup();
                for child in children {
                    let link = LinkId(u32::try_from(topology.links.len()).expect("few"));
                    topology.links.push(crate::topology::Link { child, parent });
                    match child {
                        Node::Host(host) => topology.hosts[host.index()].up.push(link),
                        Node::Switch(switch) => topology.switches[switch.index()].up.push(link),
                    }
                    topology.switches[parent.index()].down.push(link);
                }
                now.push(Node::Switch(parent));
            }
            // Links may skip a level.
            if level % 2 == 0 {
                now.extend(below.iter().copied().filter(|node| matches!(node, Node::Switch(_))));
            }
            below = now;
        }
        topology
    }

    fn same(topology: &Topology, hosts: &[HostId]) {
        let roots = reference::roots(topology, hosts);
        let mut ways = Ways::new(topology, hosts, |_| true);
        assert_eq!(ways.roots(), roots);
        for at in 0..topology.switches().len() {
            let root = SwitchId(u32::try_from(at).expect("few"));
            let tree = reference::to(topology, hosts, root);
            assert_eq!(ways.tree(root), tree);
            for capacity in [Capacity::PerPort(1), Capacity::PerSwitch(1)] {
                let all = tree.as_ref().map(|tree| tree.resources(capacity));
                let wanted = all.map(|mut all| {
                    if matches!(capacity, Capacity::PerPort(_)) {
                        all.retain(|&link| {
                            matches!(topology.link(LinkId(link)).child, Node::Switch(_))
                        });
                    }
                    all
                });
                assert_eq!(ways.contested(root, capacity), wanted);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: olaf_samples::cases(200), ..ProptestConfig::default() })]

        #[test]
        fn on_a_fat_tree_the_fast_ways_are_the_slow_ones(
            down in prop::array::uniform3(1u32..4),
            up in prop::array::uniform2(1u32..4),
            chosen in prop::collection::btree_set(0u32..27, 1..8),
        ) {
            let topology = Topology::fat_tree(FatTree { down, up }).expect("small");
            let count = u32::try_from(topology.hosts().len()).expect("few");
            let mut hosts: Vec<_> = chosen.into_iter().map(|h| HostId(h % count)).collect();
            hosts.sort_unstable();
            hosts.dedup();
            same(&topology, &hosts);
        }

        #[test]
        fn on_any_graph_the_fast_ways_are_the_slow_ones(
            shape in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0usize..12, 1..5), 1..5), 1..4),
            chosen in prop::collection::btree_set(0u32..8, 1..6),
        ) {
            let topology = graph(8, &shape);
            let hosts: Vec<_> = chosen.into_iter().map(HostId).collect();
            same(&topology, &hosts);
        }
    }
}
