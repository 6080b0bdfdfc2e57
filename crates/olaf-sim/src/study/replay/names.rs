//! Clusters and workers as a trace names them.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// What a trace calls a cluster or a worker. Integers stay integers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Written as an integer is.
    Integer(i64),
    /// Anything else, `007` and `+1` among it.
    Text(String),
}

impl Name {
    fn parse(text: &str) -> Self {
        match text.parse::<i64>() {
            Ok(integer) if integer.to_string() == text => Self::Integer(integer),
            _ => Self::Text(text.to_owned()),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(integer) => serializer.serialize_i64(*integer),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Names and the numbers that stand for them while a replay runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    by_text: BTreeMap<String, u32>,
    names: Vec<Name>,
}

impl Names {
    /// The number of a name, new or known; nothing when no number is left.
    pub(super) fn index(&mut self, text: &str) -> Option<u32> {
        if let Some(index) = self.by_text.get(text) {
            return Some(*index);
        }
        let index = u32::try_from(self.names.len()).ok()?;
        self.by_text.insert(text.to_owned(), index);
        self.names.push(Name::parse(text));
        Some(index)
    }

    pub(super) fn get(&self, index: u32) -> &Name {
        &self.names[index as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}
