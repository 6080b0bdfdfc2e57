//! A file that says which switches there are, which is above which, and where each worker is
//! (ATP §3.2).
//!
//! ```json
//! {
//!   "switches": {"top": null, "rack1": "top", "rack2": "top"},
//!   "workers": {"rack1": ["0-3"], "rack2": [4, 5, "6-7"]},
//!   "jobs": {"7": {"rack1": [0], "rack2": [1]}}
//! }
//! ```
//!
//! `switches` names the switch above each, `null` above the last one before the server. `workers` names
//! the ranks at each switch. `jobs` does so for single jobs.
//!
//! differs: in the paper the hosts know the topology, and a job's fan-in degrees follow from it alone.
//! Here the joins of the workers are checked against it, and where they differ the joins hold: a sum
//! would wait for a worker that never comes.

use super::seats::Path;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use olaf_wire::atp::{MAX_WORKERS, switch_id};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

/// What is wrong with a topology, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError(String);

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for TopologyError {}

#[derive(Clone, Debug)]
struct Switch {
    name: String,
    id: u32,
    above: Option<usize>,
}

/// The switches of a network, and the places of workers.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    switches: Vec<Switch>,
    /// The switch of each rank; without a job: of all jobs that are not named.
    ranks: BTreeMap<Option<u16>, BTreeMap<u32, usize>>,
}

/// An object whose keys are all different, in the order of the file.
#[derive(Debug)]
struct Pairs<T>(Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Each<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs: Vec<(String, T)> = Vec::new();
                let mut known = alloc::collections::BTreeSet::new();
                while let Some(key) = map.next_key::<String>()? {
                    if !known.insert(key.clone()) {
                        return Err(A::Error::custom(format!("{key:?} is named twice: keep one")));
                    }
                    pairs.push((key, map.next_value()?));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Each(PhantomData))
    }
}

/// `4`, or `"0-3"`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Ranks {
    One(u32),
    Range(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    switches: Pairs<Option<String>>,
    #[serde(default)]
    workers: Pairs<Vec<Ranks>>,
    #[serde(default)]
    jobs: Pairs<Pairs<Vec<Ranks>>>,
}

impl Ranks {
    /// First and last rank.
    fn bounds(&self) -> Option<(u32, u32)> {
        let (first, last) = match self {
            Self::One(rank) => (*rank, *rank),
            Self::Range(text) => {
                let (first, last) = text.split_once('-')?;
                (first.trim().parse().ok()?, last.trim().parse().ok()?)
            }
        };
        (first <= last && last < MAX_WORKERS).then_some((first, last))
    }
}

impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(rank) => write!(f, "{rank}"),
            Self::Range(text) => write!(f, "{text:?}"),
        }
    }
}

impl Topology {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The line or the key that is wrong, and what to do.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        let file: File = serde_json::from_str(text).map_err(|e| TopologyError(e.to_string()))?;
        let mut topology = Self { switches: switches(&file.switches)?, ranks: BTreeMap::new() };
        topology.place(None, "workers", &file.workers)?;
        for (job, workers) in &file.jobs.0 {
            let key = format!("jobs.{job}");
            let number = job.parse().map_err(|_| {
                TopologyError(format!("{key}: a job of ATP is a number from 0 to 65535"))
            })?;
            topology.place(Some(number), &key, workers)?;
        }
        Ok(topology)
    }

    fn place(
        &mut self,
        job: Option<u16>,
        key: &str,
        workers: &Pairs<Vec<Ranks>>,
    ) -> Result<(), TopologyError> {
        let mut ranks: BTreeMap<u32, usize> = BTreeMap::new();
        for (name, each) in &workers.0 {
            let key = format!("{key}.{name}");
            let at = find(&self.switches, &key, name)?;
            for some in each {
                let (first, last) = some.bounds().ok_or_else(|| {
                    let most = MAX_WORKERS - 1;
                    TopologyError(format!(
                        "{key}: {some}: write a rank from 0 to {most}, or a range as \"0-3\""
                    ))
                })?;
                for rank in first..=last {
                    if let Some(before) = ranks.insert(rank, at) {
                        let before = &self.switches[before].name;
                        return Err(TopologyError(format!(
                            "{key}: worker {rank} is also at {before:?}: keep one of the two"
                        )));
                    }
                }
            }
        }
        self.ranks.insert(job, ranks);
        Ok(())
    }

    /// The way of a worker to its server; none where the file does not name the worker.
    #[must_use]
    pub fn path(&self, job: u16, rank: u32) -> Option<Path> {
        let ranks = self.ranks.get(&Some(job)).or_else(|| self.ranks.get(&None))?;
        let first = *ranks.get(&rank)?;
        let way = core::iter::successors(Some(first), |at| self.switches[*at].above);
        let mut path = Path::default();
        path.0.iter_mut().zip(way).for_each(|(id, at)| *id = self.switches[at].id);
        Some(path)
    }

    /// The switches of a way, in words: by name, or by number where the file does not have them.
    #[must_use]
    pub fn names(&self, path: &Path) -> Vec<String> {
        let name = |id: u32| {
            let known = self.switches.iter().find(|switch| switch.id == id);
            known.map_or_else(|| id.to_string(), |switch| switch.name.clone())
        };
        path.switches().map(name).collect()
    }
}

fn find(switches: &[Switch], key: &str, name: &str) -> Result<usize, TopologyError> {
    switches.iter().position(|switch| switch.name == name).ok_or_else(|| {
        TopologyError(format!("{key}: {name:?} is not in `switches`: add it there, or correct it"))
    })
}

fn switches(named: &Pairs<Option<String>>) -> Result<Vec<Switch>, TopologyError> {
    if named.0.is_empty() {
        return Err(TopologyError("switches: there is none: name at least one".into()));
    }
    let mut switches: Vec<Switch> = Vec::new();
    for (name, _) in &named.0 {
        let id = switch_id(name);
        if let Some(other) = switches.iter().find(|other| other.id == id) {
            let other = &other.name;
            return Err(TopologyError(format!(
                "switches.{name}: its number is that of {other:?} by chance: give it another name"
            )));
        }
        switches.push(Switch { name: name.clone(), id, above: None });
    }
    for (at, (name, above)) in named.0.iter().enumerate() {
        let above = above.as_ref().map(|above| find(&switches, &format!("switches.{name}"), above));
        switches[at].above = above.transpose()?;
    }
    for at in 0..switches.len() {
        let mut way = core::iter::successors(Some(at), |at| switches[*at].above);
        if way.nth(switches.len()).is_some() {
            let name = &switches[at].name;
            return Err(TopologyError(format!(
                "switches.{name}: the way up from it is a circle: one of them is the last switch, \
                 with null above it"
            )));
        }
    }
    Ok(switches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::atp::Seating;
    use olaf_wire::atp::LEVELS;

    const TEXT: &str = r#"{
        "switches": {"rack1": "pod", "rack2": "pod", "pod": "core", "core": "top", "top": null},
        "workers": {"rack1": ["0-2", 5], "rack2": [3, 4], "core": ["6-6"]},
        "jobs": {"7": {"rack2": [0], "top": [1]}}
    }"#;

    fn ways(topology: &Topology, job: u16, workers: u32) -> Vec<Vec<String>> {
        let ways = (0..workers).map(|rank| topology.path(job, rank).expect("it is named"));
        ways.map(|way| topology.names(&way)).collect()
    }

    #[test]
    fn the_ways_of_workers_follow_from_the_file() {
        let topology = Topology::parse(TEXT).expect("it is well-formed");
        let of = ways(&topology, 1, 7);
        assert_eq!(of[0], ["rack1", "pod", "core", "top"]);
        assert_eq!((&of[2], &of[5]), (&of[0], &of[0]));
        assert_eq!(of[3], ["rack2", "pod", "core", "top"]);
        assert_eq!(of[6], ["core", "top"]);
        assert_eq!(ways(&topology, 7, 2), [of[3].clone(), alloc::vec!["top".to_string()]]);
        assert_eq!(topology.path(1, 7), None);
        assert_eq!(topology.path(7, 2), None, "a named job has no others");
    }

    #[test]
    fn bits_and_fan_in_degrees_follow_from_the_file() {
        let topology = Topology::parse(TEXT).expect("it is well-formed");
        let paths: Vec<Path> = (0..7).filter_map(|rank| topology.path(1, rank)).collect();
        let seating = Seating::new(&paths, LEVELS);
        assert_eq!(seating.seats[0].fan_ins, [4, 2, 2, 1]);
        assert_eq!(seating.seats[4].fan_ins, [2, 2, 2, 1]);
        assert_eq!((seating.seats[6].fan_ins, seating.seats[6].level), ([1, 1, 2, 1], 2));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_or_key_and_what_to_do() {
        for (text, told) in [
            ("{", "EOF while parsing"),
            ("{\"switches\": {\"a\": null},\n \"workrs\": {}}", "unknown field `workrs`"),
            ("{\"switches\": {\"a\": null},\n \"workrs\": {}}", "line 2 column"),
            (
                "{\"switches\": {\"a\": null,\n\"a\": null}}",
                "\"a\" is named twice: keep one at line 2",
            ),
            (r#"{"switches": {}}"#, "switches: there is none"),
            (r#"{"switches": {"a": "b"}}"#, "switches.a: \"b\" is not in `switches`: add it"),
            (r#"{"switches": {"a": "a"}}"#, "switches.a: the way up from it is a circle"),
            (
                r#"{"switches": {"t": null, "c": "a", "a": "b", "b": "a"}}"#,
                "switches.c: the way up from it is a circle",
            ),
            (
                r#"{"switches": {"a": null}, "workers": {"b": [1]}}"#,
                "workers.b: \"b\" is not in `switches`",
            ),
            (
                r#"{"switches": {"a": null, "b": null}, "workers": {"a": ["0-3"], "b": [3]}}"#,
                "workers.b: worker 3 is also at \"a\": keep one of the two",
            ),
            (
                r#"{"switches": {"a": null}, "workers": {"a": ["3-1"]}}"#,
                "workers.a: \"3-1\": write a rank from 0 to 32767",
            ),
            (r#"{"switches": {"a": null}, "workers": {"a": ["0-99999999"]}}"#, "write a rank"),
            (r#"{"switches": {"a": null}, "jobs": {"x": {}}}"#, "jobs.x: a job of ATP is a number"),
            (
                r#"{"switches": {"a": null}, "jobs": {"1": {"a": [2, 2]}}}"#,
                "jobs.1.a: worker 2 is also at \"a\"",
            ),
        ] {
            let error = Topology::parse(text).expect_err(told).to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
