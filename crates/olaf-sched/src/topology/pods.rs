//! Pods: what placement knows of a topology (MINA §III-B).
//!
//! A pod is a set of hosts below a switch; a host by itself is one too, but has no number here.
//! Switches above the same hosts are one pod: a fat tree's pods are those of its ToR switches, of
//! its aggregation switches, and the whole cluster.
//!
//! Pods are nested or apart, or else there is no recursion over them. In a graph where two sets
//! overlap (hosts with two ToR switches, say) the one that comes later, by level and then by number,
//! is no pod; its hosts belong to the next pod above. The whole cluster is always a pod, with or
//! without a switch above all of it.

use super::{Node, Topology};
use crate::{HostId, SwitchId};
use std::collections::BTreeMap;
use std::ops::Range;

/// A pod: an index into [`Pods::all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId(pub u32);

impl PodId {
    /// The whole cluster.
    pub const CLUSTER: Self = Self(0);

    /// As an index into [`Pods::all`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One of the nested sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// The next larger; none of the cluster.
    pub parent: Option<PodId>,
    /// What it is made of, from left to right: pods, and hosts that are in none of them.
    pub parts: Vec<Part>,
    /// Its hosts' places from left to right: a range of [`Pods::order`].
    pub places: Range<u32>,
    /// The switches above exactly these hosts, ascending; none for a cluster without a top.
    pub switches: Vec<SwitchId>,
    /// Pods above it.
    pub depth: u32,
}

/// A part of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A smaller pod.
    Pod(PodId),
    /// A host.
    Host(HostId),
}

/// The pods of a topology, as a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    all: Vec<Pod>,
    /// Hosts, so that each pod's lie side by side.
    order: Vec<HostId>,
    /// Where each host stands in `order`.
    place: Vec<u32>,
    /// The smallest pod that each host is in.
    of: Vec<PodId>,
}

impl Pods {
    /// The pods of `topology`.
    #[must_use]
    pub fn of(topology: &Topology) -> Self {
        nest(topology.hosts().len(), nested_sets(topology))
    }

    /// All of them, a pod before the smaller ones in it; the first is the cluster.
    #[must_use]
    pub fn all(&self) -> &[Pod] {
        &self.all
    }

    /// The pod of this number.
    #[must_use]
    pub fn pod(&self, pod: PodId) -> &Pod {
        &self.all[pod.index()]
    }

    /// All hosts, each pod's side by side; as numbered, in a fat tree.
    #[must_use]
    pub fn order(&self) -> &[HostId] {
        &self.order
    }

    /// Where a host stands in [`order`](Self::order).
    #[must_use]
    pub fn place(&self, host: HostId) -> u32 {
        self.place[host.index()]
    }

    /// The smallest pod that a host is in: its ToR switch's, in a fat tree.
    #[must_use]
    pub fn smallest(&self, host: HostId) -> PodId {
        self.of[host.index()]
    }

    /// The pods that a host is in, from the smallest to the cluster.
    pub fn above(&self, host: HostId) -> impl Iterator<Item = PodId> + '_ {
        std::iter::successors(Some(self.smallest(host)), |&pod| self.pod(pod).parent)
    }

    /// The hosts of a pod, from left to right.
    #[must_use]
    pub fn hosts(&self, pod: PodId) -> &[HostId] {
        let Range { start, end } = self.pod(pod).places;
        &self.order[start as usize..end as usize]
    }

    /// Returns true if a host is in a pod.
    #[must_use]
    pub fn contains(&self, pod: PodId, host: HostId) -> bool {
        self.pod(pod).places.contains(&self.place(host))
    }

    /// The smallest pod that all of `hosts` are in; none for none.
    #[must_use]
    pub fn common(&self, hosts: &[HostId]) -> Option<PodId> {
        let (first, rest) = hosts.split_first()?;
        self.above(*first).find(|&pod| rest.iter().all(|&host| self.contains(pod, host)))
    }

    /// Fragments of a set of hosts (MINA §III-B): a pod that is all in the set is one, a pod without
    /// any is none, any other is what its parts are together. Hosts that stand twice count once.
    #[must_use]
    pub fn fragments_of(&self, hosts: &[HostId]) -> u32 {
        let mut places: Vec<u32> = hosts.iter().map(|&host| self.place(host)).collect();
        places.sort_unstable();
        places.dedup();
        self.fragments(PodId::CLUSTER, &places)
    }

    fn fragments(&self, pod: PodId, places: &[u32]) -> u32 {
        let pod = self.pod(pod);
        if places.is_empty() || places.len() == pod.places.len() {
            return u32::from(!places.is_empty());
        }
        let (mut sum, mut rest) = (0, places);
        for part in &pod.parts {
            let end = match part {
                Part::Pod(pod) => self.pod(*pod).places.end,
                Part::Host(host) => self.place(*host) + 1,
            };
            let (inside, after) = rest.split_at(rest.partition_point(|&place| place < end));
            sum += match part {
                Part::Pod(pod) => self.fragments(*pod, inside),
                Part::Host(_) => u32::from(!inside.is_empty()),
            };
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        sum
    }
}

/// A set of hosts that will be a pod, ascending, and the switches above it.
struct Set {
    hosts: Vec<HostId>,
    switches: Vec<SwitchId>,
}

/// The distinct sets of two hosts and more below switches, those that overlap an earlier one left
/// out; and the cluster.
fn nested_sets(topology: &Topology) -> Vec<Set> {
    let switches = topology.switches();
    let mut by_level: Vec<SwitchId> = (0u32..).zip(switches).map(|(n, _)| SwitchId(n)).collect();
    by_level.sort_by_key(|switch| (switches[switch.index()].level, *switch));
    let mut sets: Vec<Set> = Vec::new();
    // Of each switch: what lies below it, as known sets and single hosts. Two switches with the same
    // key have the same hosts, and most switches of a cluster do: then they are not listed.
    let mut below: Vec<Option<usize>> = vec![None; switches.len()];
    let mut by_key: BTreeMap<Vec<(bool, u32)>, Option<usize>> = BTreeMap::new();
    let mut by_hosts: BTreeMap<Vec<HostId>, Option<usize>> = BTreeMap::new();
    let mut holders: Vec<Vec<usize>> = vec![Vec::new(); topology.hosts().len()];
    for switch in by_level {
        let mut key: Vec<(bool, u32)> = Vec::new();
        let mut plain = true;
        for &link in &switches[switch.index()].down {
            match topology.link(link).child {
                Node::Host(host) => key.push((false, host.0)),
                Node::Switch(child) => match below[child.index()] {
                    Some(set) => key.push((true, u32::try_from(set).expect("fewer than hosts"))),
                    None => plain = false,
                },
            }
        }
        key.sort_unstable();
        key.dedup();
        if plain && let Some(&known) = by_key.get(&key) {
            below[switch.index()] = known;
            if let Some(set) = known {
                sets[set].switches.push(switch);
            }
            continue;
        }
        let hosts = hosts_below(topology, switch);
        let known = by_hosts.get(&hosts).copied().unwrap_or_else(|| {
            let fits = hosts.len() > 1 && is_nested(&hosts, &sets, &holders);
            let number = fits.then_some(sets.len());
            if let Some(number) = number {
                hosts.iter().for_each(|host| holders[host.index()].push(number));
                sets.push(Set { hosts: hosts.clone(), switches: Vec::new() });
            }
            by_hosts.insert(hosts, number);
            number
        });
        if plain {
            by_key.insert(key, known);
        }
        if let Some(set) = known {
            sets[set].switches.push(switch);
        }
        below[switch.index()] = known;
    }
    let hosts = topology.hosts().len();
    if !sets.iter().any(|set| set.hosts.len() == hosts) {
        let all = (0u32..).zip(topology.hosts()).map(|(number, _)| HostId(number)).collect();
        sets.push(Set { hosts: all, switches: Vec::new() });
    }
    for set in &mut sets {
        set.switches.sort_unstable();
    }
    sets
}

fn hosts_below(topology: &Topology, switch: SwitchId) -> Vec<HostId> {
    let mut seen = vec![false; topology.switches().len()];
    let (mut open, mut hosts) = (vec![switch], Vec::new());
    while let Some(switch) = open.pop() {
        if std::mem::replace(&mut seen[switch.index()], true) {
            continue;
        }
        for &link in &topology.switches()[switch.index()].down {
            match topology.link(link).child {
                Node::Host(host) => hosts.push(host),
                Node::Switch(child) => open.push(child),
            }
        }
    }
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// Returns true if `hosts` holds, or is held by, or is apart from each of `sets`.
fn is_nested(hosts: &[HostId], sets: &[Set], holders: &[Vec<usize>]) -> bool {
    let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
    for set in hosts.iter().flat_map(|host| &holders[host.index()]) {
        *shared.entry(*set).or_default() += 1;
    }
    shared.iter().all(|(&set, &n)| n == hosts.len() || n == sets[set].hosts.len())
}

/// The tree of nested sets, numbered from the cluster down and from left to right.
fn nest(hosts: usize, mut sets: Vec<Set>) -> Pods {
    // From the largest: a set's parent is the last before it that holds its first host.
    sets.sort_by_key(|set| (std::cmp::Reverse(set.hosts.len()), set.hosts[0]));
    let mut innermost = vec![0; hosts];
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); sets.len()];
    for (number, set) in sets.iter().enumerate().skip(1) {
        children[innermost[set.hosts[0].index()]].push(number);
        set.hosts.iter().for_each(|host| innermost[host.index()] = number);
    }
    let mut pods = Pods {
        all: Vec::with_capacity(sets.len()),
        order: Vec::with_capacity(hosts),
        place: vec![0; hosts],
        of: vec![PodId::CLUSTER; hosts],
    };
    // By the first host in it, whether a set or single.
    let mut parts: Vec<Vec<(HostId, Option<usize>)>> = children
        .iter()
        .map(|children| children.iter().map(|&set| (sets[set].hosts[0], Some(set))).collect())
        .collect();
    for (number, &set) in (0u32..).zip(&innermost) {
        parts[set].push((HostId(number), None));
    }
    pods.lay(0, None, 0, &mut parts, &mut sets);
    pods
}

impl Pods {
    fn lay(
        &mut self,
        set: usize,
        parent: Option<PodId>,
        depth: u32,
        parts: &mut [Vec<(HostId, Option<usize>)>],
        sets: &mut [Set],
    ) -> PodId {
        let id = PodId(u32::try_from(self.all.len()).expect("fewer pods than hosts"));
        let here = |order: &[HostId]| u32::try_from(order.len()).expect("fewer than MOST_HOSTS");
        let start = here(&self.order);
        let switches = std::mem::take(&mut sets[set].switches);
        self.all.push(Pod { parent, parts: Vec::new(), places: start..start, switches, depth });
        let mut inside = std::mem::take(&mut parts[set]);
        inside.sort_unstable();
        let mut laid = Vec::with_capacity(inside.len());
        for (host, set) in inside {
            laid.push(match set {
                Some(set) => Part::Pod(self.lay(set, Some(id), depth + 1, parts, sets)),
                None => {
                    self.place[host.index()] = here(&self.order);
                    self.of[host.index()] = id;
                    self.order.push(host);
                    Part::Host(host)
                }
            });
        }
        self.all[id.index()].parts = laid;
        self.all[id.index()].places.end = here(&self.order);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::TopologySpec;

    fn graph(hosts: &[(&str, &[&str])], switches: &[(&str, &[&str])]) -> Topology {
        let names = |up: &[&str]| up.iter().map(|&name| name.into()).collect();
        let mut spec = TopologySpec::default();
        for &(name, up) in hosts {
            spec.hosts.push(super::super::HostSpec {
                name: name.into(),
                count: None,
                up: names(up),
            });
        }
        for &(name, up) in switches {
            spec.switches.push(super::super::SwitchSpec { name: name.into(), up: names(up) });
        }
        spec.build().expect("a graph")
    }

    fn ids(hosts: &[u32]) -> Vec<HostId> {
        hosts.iter().map(|&host| HostId(host)).collect()
    }

    #[test]
    fn a_fat_tree_has_tors_pods_and_the_cluster() {
        let topology = Topology::parse("fat-tree:16").expect("a form");
        let pods = Pods::of(&topology);
        assert_eq!(pods.all().len(), 1 + 16 + 128);
        assert_eq!(pods.pod(PodId::CLUSTER).switches.len(), 64);
        assert!(pods.order().iter().enumerate().all(|(place, host)| place == host.index()));
        let above: Vec<_> =
            pods.above(HostId(70)).map(|pod| pods.pod(pod).places.clone()).collect();
        assert_eq!(above, [64..72, 64..128, 0..1024]);
        assert_eq!(pods.common(&ids(&[64, 70])), Some(pods.smallest(HostId(70))));
        assert_eq!(pods.common(&ids(&[0, 1023])), Some(PodId::CLUSTER));
    }

    #[test]
    fn fragments_are_whole_pods_and_what_is_left() {
        let pods = Pods::of(&Topology::parse("fat-tree:4").expect("a form"));
        let count = |hosts: &[u32]| pods.fragments_of(&ids(hosts));
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[0, 1]), 1);
        assert_eq!(count(&[1, 2]), 2);
        assert_eq!(count(&[0, 1, 2]), 2);
        assert_eq!(count(&[0, 1, 2, 3]), 1);
        assert_eq!(count(&[3, 2, 1, 0, 8, 8]), 2);
        assert_eq!(count(&(0..16).collect::<Vec<_>>()), 1);
    }

    #[test]
    fn of_overlapping_sets_the_later_is_no_pod() {
        let topology = graph(
            &[("a", &["s"]), ("b", &["s", "t"]), ("c", &["t"]), ("d", &["u"]), ("e", &["u"])],
            &[("s", &["top"]), ("t", &["top"]), ("u", &["top"]), ("top", &[])],
        );
        let pods = Pods::of(&topology);
        let sets: Vec<_> = pods.all().iter().map(|pod| pod.places.clone()).collect();
        assert_eq!(sets, [0..5, 0..2, 3..5]);
        assert_eq!(pods.smallest(HostId(2)), PodId::CLUSTER);
    }

    #[test]
    fn hosts_of_a_pod_lie_side_by_side_in_the_order() {
        let topology = graph(
            &[("a", &["s"]), ("b", &["t"]), ("c", &["s"]), ("d", &["t"])],
            &[("t", &["top", "other"]), ("s", &["top", "other"]), ("top", &[]), ("other", &[])],
        );
        let pods = Pods::of(&topology);
        assert_eq!(pods.order(), ids(&[0, 2, 1, 3]));
        assert_eq!(pods.hosts(pods.smallest(HostId(3))), ids(&[1, 3]));
        assert_eq!(pods.pod(PodId::CLUSTER).switches.len(), 2);
        assert_eq!(pods.fragments_of(&ids(&[0, 2])), 1);
    }

    #[test]
    fn a_cluster_without_a_top_is_a_pod() {
        let topology =
            graph(&[("a", &["s"]), ("b", &["s", "t"]), ("c", &["t"])], &[("s", &[]), ("t", &[])]);
        let pods = Pods::of(&topology);
        assert_eq!(pods.pod(PodId::CLUSTER).places, 0..3);
        assert!(pods.pod(PodId::CLUSTER).switches.is_empty());
    }
}
