//! Which metric each field of a role's statistics is. Names, units and help as Prometheus has them:
//! base units, `_total` for counters (the encoder adds it), one meaning a name.
//!
//! A label is never `job` or `instance`, because Prometheus gives those names to its own labels.

mod every;
mod keys;
mod server;
mod sharing;
mod sum;
mod switch;
mod worker;

pub(super) use every::OWN;
pub(super) use keys::KEYS;

/// What a field becomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Only grows while the role runs.
    Counter,
    /// A state; a truth is 1 or 0.
    Gauge,
    /// Texts of a table, as labels of the constant 1.
    Info(&'static [&'static str]),
    /// The number of elements by each value of these fields.
    Count(&'static [&'static str]),
    /// No metric. The help says why.
    Left,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) help: &'static str,
}

const fn counter(path: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { path, kind: Kind::Counter, name, help }
}

const fn gauge(path: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { path, kind: Kind::Gauge, name, help }
}

const fn info(
    path: &'static str,
    fields: &'static [&'static str],
    name: &'static str,
    help: &'static str,
) -> Row {
    Row { path, kind: Kind::Info(fields), name, help }
}

const fn count(
    path: &'static str,
    fields: &'static [&'static str],
    name: &'static str,
    help: &'static str,
) -> Row {
    Row { path, kind: Kind::Count(fields), name, help }
}

/// No metric, with everything below it.
const fn left(path: &'static str, why: &'static str) -> Row {
    Row { path, kind: Kind::Left, name: "", help: why }
}

/// The name of the label that a field becomes.
pub(super) fn label(field: &str) -> &str {
    match field {
        "job" => "job_id",
        "cluster" => "cluster_id",
        "worker" => "worker_id",
        "alive" => "is_alive",
        "left" => "has_left",
        other => other,
    }
}

/// The value of a label that is a field's name, without what the label or the metric's unit says already.
pub(super) fn value<'a>(label: &str, field: &'a str) -> &'a str {
    let suffixes: &[&str] = match label {
        "direction" => &["_datagrams", "_bytes"],
        "call" => &["_calls"],
        "buffer" => &["_buffer_bytes"],
        "peer" => &["_alive"],
        _ => &[],
    };
    if label == "closed" {
        return field.strip_prefix("closed_").unwrap_or(field);
    }
    suffixes.iter().find_map(|suffix| field.strip_suffix(suffix)).unwrap_or(field)
}

/// The rows of each role.
pub(super) const ROLES: [(&str, &[Row]); 6] = [
    ("switch", switch::ROWS),
    ("server", server::ROWS),
    ("worker", worker::ROWS),
    ("sum", sum::ROWS),
    ("sharing controller", sharing::CONTROLLER),
    ("sharing host", sharing::HOST),
];

const ADDRESS: &str = "the label `instance` of a scrape says it";
const IDENTITY: &str = "a number drawn at the start; it measures nothing";
const MANY: &str = "one series a worker would be too many; /status.json has it";
const TEXT: &str = "a text; /status.json has it";
