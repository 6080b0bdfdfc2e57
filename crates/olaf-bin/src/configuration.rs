//! Merges a file, the options and `--set` into one table; later values take precedence.

use olaf_engine::units;
use olaf_net::logging::Level;
use olaf_net::{AskError, StartError};
use serde_json::{Map, Value};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A table of the configuration.
pub type Table = Map<String, Value>;

/// Tables within a program's table, whose keys `--set` takes one by one.
const INNER_TABLES: [(&str, &str); 2] = [("switch", "listen_at"), ("switch", "reduce")];

/// The options of both programs.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// TOML file; `olaf config` prints one with every key explained. The program reads only its
    /// own table.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set any key of the table, as in --set silent_after=2s. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Print the effective configuration as TOML and stop.
    #[arg(long)]
    pub print_config: bool,
    /// Interval between status lines: 5s, 500ms.
    #[arg(long = "stats-every", visible_alias = "every", value_name = "TIME", default_value = "5s",
          value_parser = every)]
    pub every: Duration,
    /// Serve metrics, health and a status page on this address, by HTTP.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// File with the token that readers of --metrics send; other machines need one.
    #[arg(long, value_name = "FILE")]
    metrics_token_file: Option<String>,
    /// Lines of the log: sentences, or JSON objects with their time and level.
    #[arg(long, value_name = "text|json", default_value = "text")]
    pub log_format: LogFormat,
    /// Least level of the lines: debug, info, warning, error.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = str::parse::<Level>)]
    pub log_level: Level,
    /// Print one JSON object per line to stdout: every event, and nothing left out.
    #[arg(long)]
    pub json: bool,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// A sentence.
    Text,
    /// A JSON object with `time_unix_s` and `level`.
    Json,
}

fn every(text: &str) -> Result<Duration, String> {
    // A plain number is seconds, as for `olaf switch --every`.
    let ns = match text.trim().parse::<f64>() {
        Ok(_) => units::parse_time(&format!("{}s", text.trim())),
        Err(_) => units::parse_time(text),
    };
    match ns.map_err(|error| error.to_string())? {
        ns if ns < 10_000_000 => Err("must be at least 10ms".into()),
        ns => Ok(Duration::from_nanos(ns)),
    }
}

/// An error that ends a program, with its exit code; the codes are those of `olaf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Message for the user.
    pub text: String,
    /// 1 failed, 2 configuration, 4 port in use.
    pub code: u8,
}

impl Failure {
    /// The failure for an invalid configuration.
    #[must_use]
    pub fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 2 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let code = match &error {
            StartError::Config(_) => 2,
            StartError::System(_, why) if why.kind() == std::io::ErrorKind::AddrInUse => 4,
            StartError::System(..) => 1,
        };
        Self { text: error.to_string(), code }
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        Self { text: error.to_string(), code: 1 }
    }
}

/// The value of `key_files`: the files of the options, or that of `OLAF_KEY_FILE`.
#[must_use]
pub fn key_files(given: &[String]) -> Option<Value> {
    let of_environment = || std::env::var("OLAF_KEY_FILE").ok().filter(|file| !file.is_empty());
    let files =
        if given.is_empty() { of_environment().into_iter().collect() } else { given.to_vec() };
    (!files.is_empty()).then(|| files.into())
}

/// The table of that name from the file, changed by the named options, then by `--set`.
///
/// # Errors
/// A [`Failure`] that names the file, the option or the key.
pub fn table(
    name: &str,
    common: &Common,
    options: &[(&str, Option<Value>)],
) -> Result<Table, Failure> {
    let mut table = match &common.config {
        Some(file) => from_file(name, file)?,
        None => Table::new(),
    };
    for (key, value) in options {
        if let Some(value) = value {
            table.insert((*key).into(), value.clone());
        }
    }
    let own = [("metrics", &common.metrics), ("metrics_token_file", &common.metrics_token_file)];
    for (key, value) in own {
        if let Some(value) = value {
            table.insert(key.into(), value.clone().into());
        }
    }
    for text in &common.overrides {
        let (key, value) = assignment(name, text)?;
        let Some((inner, key)) = key.split_once('.') else {
            put(&mut table, key, value);
            continue;
        };
        match table.entry(inner).or_insert_with(|| Table::new().into()) {
            Value::Object(inner) => put(inner, key.into(), value),
            _ => return Err(Failure::usage(format!("--set {text}: {inner} is not a table"))),
        }
    }
    Ok(table)
}

fn from_file(name: &str, file: &PathBuf) -> Result<Table, Failure> {
    let wrong = |what: String| Failure::usage(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let tables: Table =
        toml::from_str(&text).map_err(|error| wrong(format!("not TOML: {error}")))?;
    match tables.get(name) {
        Some(Value::Object(table)) => Ok(table.clone()),
        Some(_) => Err(wrong(format!("{name} is not a table: write [{name}]"))),
        None => Err(wrong(format!("it has no table [{name}]"))),
    }
}

/// The key and value of a `--set`: TOML, or else a bare word.
fn assignment(name: &str, text: &str) -> Result<(String, Value), Failure> {
    let wrong = || Failure::usage(format!("--set {text}: write it --set KEY=VALUE"));
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let key = key.trim();
    // `olaf switch --set switch.slots=4` works here as well.
    let key = key.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')).unwrap_or(key);
    let is_inner = key.split_once('.').is_some_and(|(inner, key)| {
        INNER_TABLES.contains(&(name, inner)) && !key.is_empty() && !key.contains('.')
    });
    if key.is_empty() || (key.contains('.') && !is_inner) {
        return Err(wrong());
    }
    let read = toml::from_str::<Table>(&format!("value = {value}")).ok();
    let value = read.and_then(|mut table| table.remove("value"));
    Ok((key.into(), value.unwrap_or_else(|| text[text.len() - value_len(text)..].trim().into())))
}

fn value_len(text: &str) -> usize {
    text.split_once('=').map_or(0, |(_, value)| value.len())
}

/// Sets a key, whether the file spelled it with its unit in the name or without.
fn put(table: &mut Table, key: String, value: Value) {
    let alike = |other: &str| {
        let (short, long) = if other.len() < key.len() { (other, &*key) } else { (&*key, other) };
        let unit = long.strip_prefix(short);
        unit.is_some_and(|unit| matches!(unit, "_ms" | "_s" | "_ns" | "_bps" | "_bytes"))
    };
    table.retain(|other, _| !alike(other));
    table.insert(key, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn common(overrides: &[&str]) -> Common {
        Common {
            config: None,
            overrides: overrides.iter().map(ToString::to_string).collect(),
            print_config: false,
            metrics: None,
            metrics_token_file: None,
            every: Duration::from_secs(5),
            log_format: LogFormat::Text,
            log_level: Level::Info,
            json: true,
        }
    }

    #[test]
    fn the_last_word_wins() {
        let options = [("slots", Some(json!(3))), ("queue", None)];
        let said = common(&["slots=4", "switch.queue=fifo", "active=2s"]);
        let table = table("switch", &said, &options).expect("a table");
        assert_eq!(Value::Object(table), json!({"slots": 4, "queue": "fifo", "active": "2s"}));
    }

    #[test]
    fn a_key_of_an_inner_table_is_set_alone() {
        let said = common(&["reduce.slots=64", "switch.reduce.silence=1s", "reduce.slots=32"]);
        let table = table("switch", &said, &[]).expect("a table");
        let expected = json!({"reduce": {"slots": 32, "silence": "1s"}});
        assert_eq!(Value::Object(table), expected);
    }

    #[test]
    fn a_key_replaces_its_other_spelling() {
        let mut table = Table::new();
        put(&mut table, "active_ms".into(), json!(7));
        put(&mut table, "active".into(), json!("1s"));
        assert_eq!(Value::Object(table.clone()), json!({"active": "1s"}));
        put(&mut table, "active_ms".into(), json!(7));
        put(&mut table, "uplink".into(), json!("1mbit"));
        assert_eq!(Value::Object(table), json!({"active_ms": 7, "uplink": "1mbit"}));
    }

    #[test]
    fn what_is_no_assignment_is_refused() {
        for text in ["slots", "=4", "leaf.slots=4", "reduce.=4", "reduce.slots.most=4"] {
            let failure = table("switch", &common(&[text]), &[]).expect_err(text);
            assert!(failure.code == 2 && failure.text.contains("KEY=VALUE"), "{failure}");
        }
    }

    #[test]
    fn how_often_is_a_time() {
        assert_eq!(every("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(every("2min"), Ok(Duration::from_secs(120)));
        assert!(every("1ms").is_err() && every("soon").is_err() && every("-1").is_err());
    }
}
