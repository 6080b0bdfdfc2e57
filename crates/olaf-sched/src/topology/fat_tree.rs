//! Three layers of switches, the shape in which MINA is evaluated (§V-A).

use super::{MOST_HOSTS, Node, Switch, Topology};
use crate::{HostId, SwitchId};
use std::fmt;

/// How many links each layer has, down and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Hosts a ToR switch, ToR switches a pod, pods.
    pub down: [u32; 3],
    /// Links up of a ToR switch, and of an aggregation switch. Fewer than `down` of the same layer
    /// is oversubscription (MINA Figure 13).
    pub up: [u32; 2],
}

/// Why there is no such fat tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatTreeError {
    /// A degree that is odd, 0 or more than 160.
    Degree(u32),
    /// A layer without links, or more than [`MOST_HOSTS`].
    Size(FatTree),
}

impl fmt::Display for FatTreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Degree(degree) => {
                write!(f, "degree {degree}: a fat tree's degree is even, from 2 to 160")
            }
            Self::Size(FatTree { down, up }) => {
                write!(f, "down {down:?}, up {up:?}: each from 1, and {MOST_HOSTS} hosts at most")
            }
        }
    }
}

impl std::error::Error for FatTreeError {}

impl FatTree {
    /// The full fat tree: `degree` ports a switch, `degree`^3 / 4 hosts.
    ///
    /// # Errors
    /// For an odd degree, or one out of range.
    pub const fn of_degree(degree: u32) -> Result<Self, FatTreeError> {
        if degree < 2 || degree % 2 == 1 || degree > 160 {
            return Err(FatTreeError::Degree(degree));
        }
        let half = degree / 2;
        Ok(Self { down: [half, half, degree], up: [half, half] })
    }
}

impl Topology {
    /// A fat tree. Aggregation switch `a` of each pod is above all its ToR switches; core switch
    /// `a`.`c` is above aggregation switch `a` of every pod.
    ///
    /// # Errors
    /// For a layer without links, and more than [`MOST_HOSTS`].
    pub fn fat_tree(shape: FatTree) -> Result<Self, FatTreeError> {
        let FatTree { down: [hosts, tors, pods], up: [aggs, cores] } = shape;
        let positive = [hosts, tors, pods, aggs, cores].iter().all(|&n| n > 0 && n <= 4096);
        let many = |a: u32, b: u32, c: u32| u64::from(a) * u64::from(b) * u64::from(c);
        if !positive
            || many(hosts, tors, pods).max(many(aggs, tors, pods)).max(many(aggs, cores, pods))
                > MOST_HOSTS
        {
            return Err(FatTreeError::Size(shape));
        }
        let mut topology = Self::empty();
        let tor = |pod: u32, t: u32| pod * tors + t;
        let agg = |pod: u32, a: u32| pods * tors + pod * aggs + a;
        let core = |a: u32, c: u32| pods * (tors + aggs) + a * cores + c;
        let named = |name: String, level| Switch { name, level, ..Switch::default() };
        for pod in 0..pods {
            topology.switches.extend((0..tors).map(|t| named(format!("tor{pod}.{t}"), 1)));
        }
        for pod in 0..pods {
            topology.switches.extend((0..aggs).map(|a| named(format!("agg{pod}.{a}"), 2)));
        }
        for a in 0..aggs {
            topology.switches.extend((0..cores).map(|c| named(format!("core{a}.{c}"), 3)));
        }
        for host in 0..pods * tors * hosts {
            topology.add_host(format!("h{host}"));
            topology.join(Node::Host(HostId(host)), SwitchId(host / hosts));
        }
        for pod in 0..pods {
            for t in 0..tors {
                for a in 0..aggs {
                    topology.join(Node::Switch(SwitchId(tor(pod, t))), SwitchId(agg(pod, a)));
                }
            }
        }
        for pod in 0..pods {
            for a in 0..aggs {
                for c in 0..cores {
                    topology.join(Node::Switch(SwitchId(agg(pod, a))), SwitchId(core(a, c)));
                }
            }
        }
        Ok(topology)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degree_16_is_the_papers_cluster() {
        let shape = FatTree::of_degree(16).expect("16 is even");
        let topology = Topology::fat_tree(shape).expect("it is small");
        assert_eq!((topology.hosts.len(), topology.switches.len()), (1024, 320));
        assert!(topology.switches.iter().all(|switch| switch.up.len() + switch.down.len() == 16));
    }

    #[test]
    fn odd_degrees_are_refused() {
        assert_eq!(FatTree::of_degree(7), Err(FatTreeError::Degree(7)));
    }
}
