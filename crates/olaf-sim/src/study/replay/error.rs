//! What keeps a trace from being replayed, and what to do about it.

use super::trace::COLUMNS;
use std::fmt;

/// Why a trace cannot be replayed. Its text says what to do; the caller knows the file's name.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The number of slots is none a queue can have.
    Slots,
    /// The gate's threshold is none.
    Gate,
    /// The file cannot be read.
    Read(String),
    /// The header lacks a column.
    MissingColumn {
        /// The column.
        column: &'static str,
        /// The first line.
        found: String,
    },
    /// The header names a column twice.
    RepeatedColumn {
        /// The column.
        column: &'static str,
    },
    /// A line has more or fewer fields than the header.
    Columns {
        /// The line.
        line: u64,
        /// Its fields.
        found: usize,
        /// The header's.
        expected: usize,
    },
    /// A line is not text in UTF-8.
    NotUtf8 {
        /// The line.
        line: u64,
    },
    /// A field does not hold what its column holds.
    Field {
        /// The line.
        line: u64,
        /// The column.
        column: &'static str,
        /// What it holds.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A line is earlier than the one before.
    Order {
        /// The line.
        line: u64,
        /// Its time.
        at: u64,
        /// The time before.
        before: u64,
        /// The line before.
        before_line: u64,
    },
    /// More lines, clusters or workers than can be counted here.
    TooLong,
}

impl ReplayError {
    /// The line of the trace it is about, where there is one.
    #[must_use]
    pub const fn line(&self) -> Option<u64> {
        match self {
            Self::MissingColumn { .. } | Self::RepeatedColumn { .. } => Some(1),
            Self::Columns { line, .. }
            | Self::NotUtf8 { line }
            | Self::Field { line, .. }
            | Self::Order { line, .. } => Some(*line),
            Self::Slots | Self::Gate | Self::Read(_) | Self::TooLong => None,
        }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line() {
            write!(f, "line {line}: ")?;
        }
        match self {
            Self::Slots => write!(f, "slots must be from 1 to {}", super::MAX_SLOTS),
            Self::Gate => write!(f, "gate must be a number of at least 0, or off"),
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::MissingColumn { column, found } => {
                let (header, shown) = (COLUMNS.join(","), Shown(found));
                write!(f, "no column {column}: the first line must be {header}, but is {shown}")
            }
            Self::RepeatedColumn { column } => {
                write!(f, "column {column} occurs more than once: keep one of them")
            }
            Self::Columns { found, expected, .. } => {
                write!(f, "{found} fields; the header has {expected}: write one field per column")
            }
            Self::NotUtf8 { .. } => write!(f, "not UTF-8 text: save the trace as UTF-8"),
            Self::Field { column, value, expected, .. } => {
                write!(f, "{column} is {}: it must be {expected}", Shown(value))
            }
            Self::Order { at, before, before_line, .. } => write!(
                f,
                "t_ns {at} is before line {before_line}'s {before}: sort the trace by t_ns"
            ),
            Self::TooLong => write!(f, "more than 4294967295 lines: split the trace"),
        }
    }
}

impl std::error::Error for ReplayError {}

/// A text from the trace, quoted and cut to what a terminal shows.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 80;
        match self.0.char_indices().nth(MOST) {
            Some((end, _)) => write!(f, "{:?}..", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}
