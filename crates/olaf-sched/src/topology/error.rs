//! Why there is no such topology, or no such capacity: what is wrong, where, and what would do.

use super::fat_tree::FatTreeError;
use super::{MOST_HOSTS, MOST_LEVELS, MOST_LINKS, MOST_SWITCHES};
use std::fmt;

/// Why a topology is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// The text is of no form that is known.
    Form(String),
    /// A part of the text that should be a number from 1 is not.
    Number {
        /// All of the text.
        text: String,
        /// The part.
        part: String,
    },
    /// See there.
    FatTree(FatTreeError),
    /// A leaf-spine without leaves, hosts or spines.
    LeafSpine(String),
    /// No hosts.
    NoHosts,
    /// A host or switch without a name.
    NoName {
        /// `hosts` or `switches`.
        list: &'static str,
        /// Its place there.
        at: usize,
    },
    /// Two nodes of one name.
    DoubleName(String),
    /// A link up to a switch that is not there, or to a host.
    Unknown {
        /// Whose link.
        node: String,
        /// What its `up` says.
        up: String,
        /// The name is a host's.
        host: bool,
    },
    /// A host without a link up.
    Loose(String),
    /// A switch without a host below it.
    Bare(String),
    /// Links lead up and come back: the switches on the way, each below the next, the last below
    /// the first.
    Cycle(Vec<String>),
    /// No way leads from the first node to the second.
    Unconnected(String, String),
    /// More than [`MOST_HOSTS`], [`MOST_SWITCHES`], [`MOST_LINKS`] or [`MOST_LEVELS`].
    TooLarge {
        /// `hosts`, `switches`, `links` or `levels`.
        what: &'static str,
        /// How many there would be, at least.
        count: u64,
    },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(text) => write!(
                f,
                "topology {text:?}: must be fat-tree:DEGREE, \
                 fat-tree:HOSTS,TORS,PODS:AGGS,CORES, leaf-spine:LEAVES,HOSTS,SPINES"
            ),
            Self::Number { text, part } => {
                write!(f, "topology {text:?}: {part:?} must be a whole number from 1")
            }
            Self::FatTree(error) => write!(f, "{error}"),
            Self::LeafSpine(text) => write!(
                f,
                "topology {text:?}: a leaf-spine has at least one leaf, one host per leaf and one \
                 spine, and at most {MOST_HOSTS} hosts and links between switches"
            ),
            Self::NoHosts => write!(f, "hosts: none; a cluster needs at least one"),
            Self::NoName { list, at } => write!(f, "{list}[{at}].name: empty; give a name"),
            Self::DoubleName(name) => {
                write!(f, "name {name:?}: given twice; each host and switch needs its own name")
            }
            Self::Unknown { node, up, host: false } => {
                write!(f, "{node}.up: no switch is called {up:?}")
            }
            Self::Unknown { node, up, host: true } => {
                write!(f, "{node}.up: {up:?} is a host; links lead up to switches")
            }
            Self::Loose(host) => {
                write!(f, "{host}.up: empty; a host has at least one link up to a switch")
            }
            Self::Bare(switch) => {
                write!(f, "switch {switch:?}: no host is below it; leave it out or link to it")
            }
            Self::Cycle(names) => {
                let first = names.first().map_or("", String::as_str);
                write!(f, "up: a cycle, {} -> {first}; links lead up only", names.join(" -> "))
            }
            Self::Unconnected(one, other) => {
                write!(f, "{one} and {other} are not connected; link them to a common switch")
            }
            Self::TooLarge { what, count } => {
                let most = match *what {
                    "switches" => MOST_SWITCHES as u64,
                    "links" => MOST_LINKS as u64,
                    "levels" => u64::from(MOST_LEVELS),
                    _ => MOST_HOSTS,
                };
                write!(f, "{count} {what}: at most {most}")
            }
        }
    }
}

impl std::error::Error for TopologyError {}

impl From<FatTreeError> for TopologyError {
    fn from(error: FatTreeError) -> Self {
        Self::FatTree(error)
    }
}

/// A text that says no capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityError(pub(super) String);

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "capacity {text:?}: must be port:JOBS, switch:JOBS or slots:SLOTS, with a whole number \
             from 1 to {}",
            u32::MAX
        )
    }
}

impl std::error::Error for CapacityError {}
