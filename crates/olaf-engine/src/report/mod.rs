//! How an engine tells its counters and its state: one walk, many visitors.
//!
//! An engine calls [`walk`] on its statistics, which are plain data. A visitor turns the calls into
//! JSON, into Python objects or into the text that a metrics server reads. Only a visitor knows the
//! addresses of peers, so an engine reports a peer by its number.

mod walk;

use crate::ids::PeerId;
use serde::Serialize;

/// A visitor of an engine's statistics.
///
/// Example: `{"queue": {"slots": 8}, "workers": [{"worker": 1}]}` arrives as
/// `open("queue", Map)`, `value("slots", Count(8))`, `close()`, `open("workers", List)`,
/// `open("", Map)`, `value("worker", Count(1))`, `close()`, `close()`.
pub trait Report {
    /// A value; its name is empty in a list.
    fn value(&mut self, name: &str, value: Value<'_>);
    /// A group begins; its name is empty in a list.
    fn open(&mut self, name: &str, group: Group);
    /// The group that was opened last ends.
    fn close(&mut self);
}

/// A value of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// There is none.
    Nothing,
    /// Yes or no.
    Flag(bool),
    /// A number that is never negative: a count, an id, bytes, nanoseconds.
    Count(u64),
    /// A number that may be negative.
    Integer(i64),
    /// A fraction; not always finite.
    Number(f64),
    /// A name.
    Text(&'a str),
    /// A peer.
    Peer(PeerId),
}

/// The two kinds of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Values with names.
    Map,
    /// Values in order.
    List,
}

/// Shows statistics to a visitor, field by field.
///
/// # Panics
/// Where the statistics are not a struct or a map, or hold bytes: no engine's do.
pub fn walk(statistics: &impl Serialize, to: &mut dyn Report) {
    statistics.serialize(walk::Root(to)).expect("an engine's statistics are plain named values");
}

#[cfg(test)]
mod tests;
