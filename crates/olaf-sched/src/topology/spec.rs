//! Any tree or graph, from a file: named hosts and switches, each with its links up.

use super::{MOST_HOSTS, MOST_LEVELS, MOST_LINKS, MOST_SWITCHES};
use super::{Node, Switch, Topology, TopologyError};
use crate::{HostId, SwitchId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A topology as a file says it.
///
/// ```toml
/// hosts = [
///     { name = "a", count = 4, up = ["rack0"] },   # a0 to a3
///     { name = "login", up = ["rack1"] },
/// ]
/// switches = [
///     { name = "rack0", up = ["spine0", "spine1"] },
///     { name = "rack1", up = ["spine0", "spine1"] },
///     { name = "spine0" },
///     { name = "spine1" },
/// ]
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologySpec {
    /// From left to right.
    pub hosts: Vec<HostSpec>,
    /// In any order.
    pub switches: Vec<SwitchSpec>,
}

/// A host, or several alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// For people; no other host or switch has it.
    pub name: String,
    /// So many hosts, named `name` and a number from 0. One without a number when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Switches at the upper ends of its links; a name that stands twice is two links.
    pub up: Vec<String>,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// For people; no other host or switch has it.
    pub name: String,
    /// Switches at the upper ends of its links; none at the top.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub up: Vec<String>,
}

impl TopologySpec {
    /// The graph that the file means. Numbers of hosts and switches are their places in the file.
    ///
    /// # Errors
    /// See [`TopologyError`]: it names what is wrong.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        self.check_sizes()?;
        let mut topology = Topology::empty();
        for spec in &self.switches {
            topology.switches.push(Switch { name: spec.name.clone(), ..Switch::default() });
        }
        let names = self.names()?;
        let parent = |node: &str, up: &str| match names.get(up) {
            Some(Node::Switch(switch)) => Ok(*switch),
            found => Err(TopologyError::Unknown {
                node: node.into(),
                up: up.into(),
                host: found.is_some(),
            }),
        };
        for spec in &self.hosts {
            let up =
                spec.up.iter().map(|up| parent(&spec.name, up)).collect::<Result<Vec<_>, _>>()?;
            for name in spec.names() {
                let host = Node::Host(topology.add_host(name));
                up.iter().for_each(|&parent| topology.join(host, parent));
            }
        }
        for (number, spec) in (0u32..).zip(&self.switches) {
            for up in &spec.up {
                topology.join(Node::Switch(SwitchId(number)), parent(&spec.name, up)?);
            }
        }
        topology.set_levels()?;
        topology.check_connected()?;
        Ok(topology)
    }

    fn check_sizes(&self) -> Result<(), TopologyError> {
        let count = |spec: &HostSpec| u64::from(spec.count.unwrap_or(1));
        let hosts = self.hosts.iter().map(count).fold(0u64, u64::saturating_add);
        let of_hosts =
            self.hosts.iter().map(|spec| count(spec).saturating_mul(spec.up.len() as u64));
        let of_switches = self.switches.iter().map(|spec| spec.up.len() as u64);
        let links = of_hosts.chain(of_switches).fold(0u64, u64::saturating_add);
        let too_large = |what, count, most| {
            if count > most { Err(TopologyError::TooLarge { what, count }) } else { Ok(()) }
        };
        too_large("hosts", hosts, MOST_HOSTS)?;
        too_large("switches", self.switches.len() as u64, MOST_SWITCHES as u64)?;
        too_large("links", links, MOST_LINKS as u64)?;
        if hosts == 0 {
            return Err(TopologyError::NoHosts);
        }
        match self.hosts.iter().find(|spec| count(spec) > 0 && spec.up.is_empty()) {
            Some(spec) => Err(TopologyError::Loose(spec.name.clone())),
            None => Ok(()),
        }
    }

    fn names(&self) -> Result<BTreeMap<String, Node>, TopologyError> {
        let mut names = BTreeMap::new();
        let mut add = |list, at, name: String, node| {
            if name.is_empty() {
                return Err(TopologyError::NoName { list, at });
            }
            match names.insert(name.clone(), node) {
                Some(_) => Err(TopologyError::DoubleName(name)),
                None => Ok(()),
            }
        };
        let mut host = 0;
        for (at, spec) in self.hosts.iter().enumerate() {
            if spec.name.is_empty() {
                return Err(TopologyError::NoName { list: "hosts", at });
            }
            for name in spec.names() {
                add("hosts", at, name, Node::Host(HostId(host)))?;
                host += 1;
            }
        }
        for (number, spec) in (0u32..).zip(&self.switches) {
            add("switches", number as usize, spec.name.clone(), Node::Switch(SwitchId(number)))?;
        }
        Ok(names)
    }
}

impl HostSpec {
    fn names(&self) -> impl Iterator<Item = String> + '_ {
        let one = self.count.is_none();
        (0..self.count.unwrap_or(1)).map(move |number| {
            if one { self.name.clone() } else { format!("{}{number}", self.name) }
        })
    }
}

impl Topology {
    /// What a file would say of it: `topology.spec().build()` is the same topology.
    #[must_use]
    pub fn spec(&self) -> TopologySpec {
        let up = |node| {
            let parents = self.up(node).iter().map(|&link| self.link(link).parent);
            parents.map(|parent| self.switches[parent.index()].name.clone()).collect()
        };
        let hosts = (0u32..).zip(&self.hosts).map(|(number, host)| HostSpec {
            name: host.name.clone(),
            count: None,
            up: up(Node::Host(HostId(number))),
        });
        let switches = (0u32..).zip(&self.switches).map(|(number, switch)| SwitchSpec {
            name: switch.name.clone(),
            up: up(Node::Switch(SwitchId(number))),
        });
        TopologySpec { hosts: hosts.collect(), switches: switches.collect() }
    }

    /// The longest way down from each switch, found from the hosts up. What is never reached has no
    /// host below it, or lies on a cycle.
    fn set_levels(&mut self) -> Result<(), TopologyError> {
        let mut waiting: Vec<usize> =
            self.switches.iter().map(|switch| switch.down.len()).collect();
        if let Some(bare) = self.switches.iter().find(|switch| switch.down.is_empty()) {
            return Err(TopologyError::Bare(bare.name.clone()));
        }
        let mut open: Vec<Node> =
            (0u32..).zip(&self.hosts).map(|(n, _)| Node::Host(HostId(n))).collect();
        while let Some(node) = open.pop() {
            let above = match node {
                Node::Host(_) => 1,
                Node::Switch(switch) => self.switches[switch.index()].level + 1,
            };
            for link in self.up(node).to_vec() {
                let parent = self.link(link).parent;
                let switch = &mut self.switches[parent.index()];
                switch.level = switch.level.max(above);
                if switch.level > MOST_LEVELS {
                    let count = u64::from(switch.level);
                    return Err(TopologyError::TooLarge { what: "levels", count });
                }
                waiting[parent.index()] -= 1;
                if waiting[parent.index()] == 0 {
                    open.push(Node::Switch(parent));
                }
            }
        }
        match waiting.iter().position(|&children| children > 0) {
            None => Ok(()),
            Some(stuck) => Err(TopologyError::Cycle(self.cycle(stuck, &waiting))),
        }
    }

    /// From a switch that waits for ever for a child, down to such a child, and so on: sooner or
    /// later a switch comes again. Returned from the lower to the higher.
    fn cycle(&self, stuck: usize, waiting: &[usize]) -> Vec<String> {
        let mut place = vec![None; self.switches.len()];
        let (mut way, mut last) = (Vec::new(), stuck);
        loop {
            if let Some(at) = place[last] {
                let names = way[at..].iter().rev();
                return names.map(|&s: &usize| self.switches[s].name.clone()).collect();
            }
            place[last] = Some(way.len());
            way.push(last);
            let children = self.switches[last].down.iter().map(|&link| self.link(link).child);
            last = children
                .filter_map(|child| match child {
                    Node::Switch(switch) => Some(switch.index()),
                    Node::Host(_) => None,
                })
                .find(|&child| waiting[child] > 0)
                .expect("a switch waits for a child that waits itself");
        }
    }

    fn check_connected(&self) -> Result<(), TopologyError> {
        let mut seen = (vec![false; self.hosts.len()], vec![false; self.switches.len()]);
        let mut open = vec![Node::Host(HostId(0))];
        while let Some(node) = open.pop() {
            let mark = match node {
                Node::Host(host) => &mut seen.0[host.index()],
                Node::Switch(switch) => &mut seen.1[switch.index()],
            };
            if std::mem::replace(mark, true) {
                continue;
            }
            open.extend(self.up(node).iter().map(|&link| Node::Switch(self.link(link).parent)));
            if let Node::Switch(switch) = node {
                let down = &self.switches[switch.index()].down;
                open.extend(down.iter().map(|&link| self.link(link).child));
            }
        }
        // A switch has a host below it: when all hosts are reached, all switches are.
        match seen.0.iter().position(|reached| !reached) {
            None => Ok(()),
            Some(other) => Err(TopologyError::Unconnected(
                self.hosts[0].name.clone(),
                self.hosts[other].name.clone(),
            )),
        }
    }
}

#[cfg(test)]
mod tests;
