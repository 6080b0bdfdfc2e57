//! A role's statistics as Prometheus metrics.
//!
//! What this is: one walk over the JSON document that a role reports. The [`table`] says for each
//! field which metric it is, or why it is none. No engine knows of metrics.

mod path;
mod table;
#[cfg(test)]
mod tests;

use path::{Found, Path};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;
use table::{Kind, Row};

/// What a scraper is told that the text is.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Elements of a list that become metrics; what is beyond stays in the document alone. A scrape
/// stays short however many clusters a job has.
const MOST_OF_A_LIST: usize = 1024;

/// The metrics of a status document, in the text format of OpenMetrics, which Prometheus reads.
#[must_use]
pub fn metrics(status: &Value) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families::of(status)));
    let mut out = String::new();
    text::encode(&mut out, &registry).expect("a string takes everything");
    out
}

/// The fields of a status document that the table neither makes metrics nor leaves out by name.
#[must_use]
pub fn unmapped(status: &Value) -> Vec<String> {
    let rows = rows_of(status);
    let mut unknown = Vec::new();
    path::leaves(status, &mut |leaf| {
        if !rows.iter().any(|(row, path)| row.covers(path, leaf)) {
            unknown.push(leaf.join("."));
        }
    });
    unknown.sort();
    unknown.dedup();
    unknown
}

/// Every metric's name as a scraper sees it, its type and its help.
#[must_use]
pub fn catalogue() -> Vec<(String, &'static str, &'static str)> {
    let mut all = BTreeMap::new();
    let shared = table::OWN.iter().chain(table::KEYS);
    for row in table::ROLES.iter().flat_map(|(_, rows)| *rows).chain(shared) {
        let (name, kind) = match row.kind {
            Kind::Counter => (format!("{}_total", row.name), "counter"),
            Kind::Gauge | Kind::Count(_) => (row.name.to_owned(), "gauge"),
            Kind::Info(_) => (format!("{}_info", row.name), "info"),
            Kind::Left => continue,
        };
        all.entry(name).or_insert((kind, row.help));
    }
    all.into_iter().map(|(name, (kind, help))| (name, kind, help)).collect()
}

/// The rows that are for a document's role, with their paths.
fn rows_of(status: &Value) -> &'static [(Row, Path)] {
    type Parsed = BTreeMap<&'static str, Vec<(Row, Path)>>;
    static PARSED: OnceLock<Parsed> = OnceLock::new();
    let parsed = PARSED.get_or_init(|| {
        let parse = |rows: &'static [Row]| {
            let shared = table::OWN.iter().chain(table::KEYS);
            shared.chain(rows).map(|row| (*row, Path::parse(row.path))).collect()
        };
        table::ROLES.iter().map(|(role, rows)| (*role, parse(rows))).collect()
    });
    let role = status["role"].as_str().unwrap_or_default();
    parsed.get(role).map_or(&[], Vec::as_slice)
}

impl Row {
    /// Returns true if this row speaks for that field.
    fn covers(&self, path: &Path, leaf: &[String]) -> bool {
        match self.kind {
            Kind::Left => path.begins(leaf),
            Kind::Counter | Kind::Gauge => path.is(leaf),
            Kind::Info(fields) | Kind::Count(fields) => {
                let Some((last, above)) = leaf.split_last() else { return false };
                fields.contains(&last.as_str()) && path.is(above)
            }
        }
    }
}

/// The samples of one name.
#[derive(Debug)]
struct Family {
    kind: MetricType,
    help: &'static str,
    samples: Vec<(Labels, f64)>,
}

type Labels = Vec<(String, String)>;

/// All metrics of one document.
#[derive(Debug)]
struct Families(BTreeMap<&'static str, Family>);

impl Families {
    fn of(status: &Value) -> Self {
        let mut all = Self(BTreeMap::new());
        for (row, path) in rows_of(status) {
            all.take(row, path, status);
        }
        all.take_own(status);
        all
    }

    fn take(&mut self, row: &Row, path: &Path, status: &Value) {
        let (kind, mut samples) = match row.kind {
            Kind::Left => return,
            Kind::Counter => (MetricType::Counter, Vec::new()),
            Kind::Gauge | Kind::Count(_) => (MetricType::Gauge, Vec::new()),
            Kind::Info(_) => (MetricType::Info, Vec::new()),
        };
        let mut counted = BTreeMap::new();
        path.find(status, MOST_OF_A_LIST, &mut |found: Found<'_>| match row.kind {
            Kind::Left => {}
            Kind::Counter | Kind::Gauge => {
                if let Some(number) = number(found.value) {
                    samples.push((found.labels, number * unit(path.last())));
                }
            }
            Kind::Info(fields) => {
                let named = fields.iter().filter_map(|name| {
                    let value = found.value.get(name).filter(|value| !value.is_null())?;
                    Some((table::label(name).to_owned(), plain(value)))
                });
                samples.push((found.labels.into_iter().chain(named).collect(), 1.0));
            }
            Kind::Count(fields) => {
                for name in fields {
                    let Some(value) = found.value.get(name) else { continue };
                    let state = (table::label(name).to_owned(), plain(value));
                    let labels: Labels = found.labels.iter().cloned().chain([state]).collect();
                    *counted.entry(labels).or_insert(0.0) += 1.0;
                }
            }
        });
        samples.extend(counted);
        if samples.is_empty() {
            return;
        }
        let family = Family { kind, help: row.help, samples: Vec::new() };
        self.0.entry(row.name).or_insert(family).samples.extend(samples);
    }

    /// What is known without the document.
    fn take_own(&mut self, status: &Value) {
        let labels = [
            ("role", status["role"].as_str().unwrap_or_default().to_owned()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("wire_version", olaf_wire::offsets::VERSION.to_string()),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let family = Family {
            kind: MetricType::Info,
            help: "The role, the version of Olaf, and the version of its messages.",
            samples: vec![(labels, 1.0)],
        };
        self.0.insert("olaf_build", family);
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, family) in &self.0 {
            let unit = UNITS.iter().find(|(suffix, _)| name.ends_with(suffix));
            let bare = unit.map_or(*name, |(suffix, _)| &name[..name.len() - suffix.len()]);
            let unit = unit.map(|(_, unit)| unit.clone());
            let mut metric =
                encoder.encode_descriptor(bare, family.help, unit.as_ref(), family.kind)?;
            for (labels, value) in &family.samples {
                if let MetricType::Info = family.kind {
                    metric.encode_info(labels)?;
                    continue;
                }
                let is_counter = matches!(family.kind, MetricType::Counter);
                if labels.is_empty() {
                    sample(&mut metric, is_counter, *value)?;
                } else {
                    sample(&mut metric.encode_family(labels)?, is_counter, *value)?;
                }
            }
        }
        Ok(())
    }
}

fn sample(metric: &mut MetricEncoder<'_>, is_counter: bool, value: f64) -> fmt::Result {
    if is_counter {
        return metric.encode_counter(&value, None::<&Exemplar<Labels, f64>>);
    }
    metric.encode_gauge(&value)
}

const UNITS: [(&str, Unit); 2] = [("_seconds", Unit::Seconds), ("_bytes", Unit::Bytes)];

/// The factor that makes a field's number one in base units, which the field's name says.
fn unit(field: &str) -> f64 {
    match field {
        "bits_per_second" => 1.0 / 8.0,
        _ if field.ends_with("_ns") => 1e-9,
        _ if field.ends_with("_us") => 1e-6,
        _ if field.ends_with("_ms") || field.ends_with("_ms_ago") => 1e-3,
        _ => 1.0,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(yes) => Some(f64::from(u8::from(*yes))),
        value => value.as_f64(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
