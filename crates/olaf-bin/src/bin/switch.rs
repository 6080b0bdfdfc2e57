//! `olaf-switch`: an aggregation switch, without Python.

use clap::Parser;
use olaf_bin::{Common, Failure, Role, Table, finish, key_files, serve, table};
use olaf_net::{AskError, EngineKind, StartError, Switch, SwitchConfig};
use serde_json::Value;
use std::process::ExitCode;

/// Run an aggregation switch until SIGTERM or Ctrl-C.
///
/// Workers send their updates to the switch. It queues them for the server, replaces and merges
/// waiting updates, and sends the answers back. Its upstream may be another switch. The engine
/// `reduce` sums the arrays of all workers instead, and sends each of them the sum.
#[derive(Debug, Parser)]
#[command(
    name = "olaf-switch",
    version = olaf_bin::version(),
    after_help = "\
Examples:
  olaf-switch --listen 0.0.0.0:5555 --upstream 10.0.0.2:5556 --key-file switch.key
  olaf-switch --config switch.toml --json --stats-every 1s
  olaf-switch --engines reduce --listen 127.0.0.1:5555            sums arrays; needs no server
  olaf-switch --engines queue,reduce --listen 127.0.0.1:5555      reduce listens on port 5556
  olaf-switch --engines queue,reduce --listen reduce=127.0.0.1:7000
  olaf-switch --engines reduce --cores 4 --listen 127.0.0.1:5555  ports 5555 to 5558
  olaf-switch --engines reduce --listen 0.0.0.0:5555 --insecure   for anybody who reaches it

Exit codes:
  0: stopped by a signal   1: failed   2: invalid options or configuration   4: port in use"
)]
struct Options {
    /// Engines that the switch runs, with commas between them.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help = engines())]
    engines: Vec<String>,
    /// Address that workers and servers send to. It is the first engine's; each next engine takes
    /// the next port. With ENGINE= before it, the address of that engine. Repeatable.
    #[arg(long, value_name = "[ENGINE=]HOST:PORT")]
    listen: Vec<String>,
    /// The parameter server, or the next switch, of the engine `queue`. With ENGINE= before it, the
    /// switch that sums the sums of that engine. Repeatable.
    #[arg(long, value_name = "[ENGINE=]HOST:PORT")]
    upstream: Vec<String>,
    /// Cores that the engine `reduce` sums on. Each has a port: those after the engine's own.
    #[arg(long, value_name = "N")]
    cores: Option<u32>,
    /// Let in only parties with this key (`olaf keys`). Repeatable: a key for each job.
    #[arg(long = "key-file", value_name = "FILE")]
    key_files: Vec<String>,
    /// Listen beyond this machine without a key, so that anybody there may take part.
    #[arg(long)]
    insecure: bool,
    /// Discipline of the uplink's queue.
    #[arg(long, value_name = "NAME", help = queues())]
    queue: Option<String>,
    /// Number of segments that the queue holds.
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// Reward gate.
    #[arg(long, value_name = "THRESHOLD|off")]
    gate: Option<String>,
    /// Bandwidth of the uplink: 400kbit, 1.9mbit.
    #[arg(long, value_name = "RATE|off")]
    uplink: Option<String>,
    /// Most unanswered updates on the way to a server.
    #[arg(long, value_name = "N|off")]
    credits: Option<String>,
    /// Bandwidth of the link towards the workers: 10mbit.
    #[arg(long, value_name = "RATE|off")]
    downlink: Option<String>,
    /// Number of datagrams that may wait for the downlink; more are dropped.
    #[arg(long, value_name = "N")]
    downlink_limit: Option<u32>,
    /// Mark updates (ECN) while N or more datagrams wait for the uplink.
    #[arg(long, value_name = "N|off")]
    uplink_ecn_depth: Option<String>,
    /// Mark answers (ECN) while N or more datagrams wait for the downlink.
    #[arg(long, value_name = "N|off")]
    downlink_ecn_depth: Option<String>,
    #[command(flatten)]
    common: Common,
}

fn queues() -> String {
    let names = olaf_engine::switch::native::QueueKind::ALL;
    let told: Vec<_> =
        names.iter().map(|(name, kind)| format!("{name} {}", kind.about())).collect();
    format!("Discipline of the uplink's queue: {}", told.join("; "))
}

fn engines() -> String {
    let told = EngineKind::EACH.map(|kind| format!("{kind} {}", kind.about()));
    format!("Engines that the switch runs, with commas between them: {}", told.join("; "))
}

fn main() -> ExitCode {
    let options = Options::parse();
    finish("olaf-switch", run(&options))
}

#[allow(clippy::print_stdout, reason = "this is a program")]
fn run(options: &Options) -> Result<(), Failure> {
    let mut table = table("switch", &options.common, &options.named())?;
    for (engine, address) in by_engine("listen", &options.listen)? {
        put_inner(&mut table, "listen_at", engine, address)?;
    }
    for (engine, address) in by_engine("upstream", &options.upstream)? {
        match engine {
            "queue" => drop(table.insert("upstream".into(), address.into())),
            summing => put_inner(&mut table, summing, "upstream", address)?,
        }
    }
    if let Some(cores) = options.cores {
        put_inner(&mut table, "reduce", "cores", cores)?;
    }
    without_the_verifier(&mut table)?;
    let config = SwitchConfig::from_table(table)?;
    if options.common.print_config {
        print!("{}", printed(config.to_table()));
        return Ok(());
    }
    serve("switch", &Served(Switch::bind(&config)?), &options.common)
}

impl Options {
    fn named(&self) -> [(&'static str, Option<Value>); 14] {
        let engines = (!self.engines.is_empty()).then(|| self.engines.clone().into());
        let bare = |given: &[String]| {
            given.iter().rev().find(|text| !text.contains('=')).cloned().map(Value::from)
        };
        let text = |value: &Option<String>| value.clone().map(Value::from);
        // A number where a number is meant; what is none is refused with the key.
        let number = |value: &Option<String>| {
            value.as_ref().map(|text| serde_json::from_str(text).unwrap_or(text.clone().into()))
        };
        [
            ("engines", engines),
            ("listen", bare(&self.listen)),
            ("upstream", bare(&self.upstream)),
            ("key_files", key_files(&self.key_files)),
            ("insecure", self.insecure.then_some(Value::Bool(true))),
            ("queue", text(&self.queue)),
            ("slots", self.slots.map(Value::from)),
            ("gate", number(&self.gate)),
            ("uplink", text(&self.uplink)),
            ("credits", number(&self.credits)),
            ("downlink", text(&self.downlink)),
            ("downlink_limit_datagrams", self.downlink_limit.map(Value::from)),
            ("uplink_ecn_depth_datagrams", number(&self.uplink_ecn_depth)),
            ("downlink_ecn_depth_datagrams", number(&self.downlink_ecn_depth)),
        ]
    }
}

/// The engine and the address of each `ENGINE=HOST:PORT`.
fn by_engine<'a>(option: &str, given: &'a [String]) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    let named = given.iter().filter_map(|text| text.split_once('='));
    let known = |(engine, address): (&'a str, &'a str)| {
        if EngineKind::EACH.iter().any(|kind| kind.name() == engine) {
            return Ok((engine, address));
        }
        let known = EngineKind::EACH.map(EngineKind::name).join(", ");
        Err(Failure::usage(format!(
            "--{option} {engine}={address}: there is no engine {engine}; engines: {known}"
        )))
    };
    named.map(known).collect()
}

/// Sets a key of a table within the table.
fn put_inner(
    table: &mut Table,
    inner: &str,
    key: &str,
    value: impl Into<Value>,
) -> Result<(), Failure> {
    match table.entry(inner).or_insert_with(|| Table::new().into()) {
        Value::Object(inner) => inner.insert(key.into(), value.into()),
        _ => return Err(Failure::usage(format!("{inner} is not a table: write [switch.{inner}]"))),
    };
    Ok(())
}

/// The verifier answers for `olaf switch` alone: it is Python.
fn without_the_verifier(table: &mut Table) -> Result<(), Failure> {
    match table.remove("admission") {
        None => {}
        Some(off) if off == "off" => {}
        Some(_) => {
            return Err(Failure::usage(
                "admission: this program cannot ask the verifier; run `olaf switch`, or set it to off",
            ));
        }
    }
    // Timeouts of answers that never come.
    table.retain(|key, _| !key.starts_with("admission_timeout") && key != "admission_mismatch");
    Ok(())
}

fn printed(config: Table) -> String {
    let tables: Table = [("switch".to_owned(), Value::Object(config))].into_iter().collect();
    toml::to_string(&tables).expect("a configuration is a table of plain data")
}

struct Served(Switch);

impl Role for Served {
    fn address(&self) -> &str {
        self.0.address()
    }
    fn engines(&self) -> Vec<(&'static str, &str)> {
        self.0.addresses()
    }
    fn metrics_address(&self) -> Option<std::net::SocketAddr> {
        self.0.metrics_address()
    }
    fn start(&self) -> Result<(), StartError> {
        self.0.start()
    }
    fn statistics(&self) -> Result<String, AskError> {
        self.0.statistics()
    }
    fn events(&self) -> Result<Vec<String>, AskError> {
        self.0.events()
    }
    fn stop(&self) -> Result<(), AskError> {
        self.0.stop()
    }
}
