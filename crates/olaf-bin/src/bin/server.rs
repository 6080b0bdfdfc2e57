//! `olaf-server`: a parameter server, without Python.

use clap::Parser;
use olaf_bin::{Common, Failure, Role, Table, finish, key_files, serve, table};
use olaf_net::{AskError, Server, ServerConfig, StartError};
use serde_json::Value;
use std::process::ExitCode;

/// Run a parameter server until SIGTERM or Ctrl-C.
///
/// The first worker of a job sends the first model. Every update that arrives changes the model,
/// and the server sends the new model back to the update's cluster.
#[derive(Debug, Parser)]
#[command(
    name = "olaf-server",
    version = olaf_bin::version(),
    after_help = "\
Examples:
  olaf-server --listen 0.0.0.0:5556 --key-file job.key
  olaf-server --key-file job.key --checkpoint lander.npz --checkpoint-every 1min
  olaf-server --config server.toml --json --stats-every 1s

Exit codes:
  0: stopped by a signal   1: failed   2: invalid options or configuration   4: port in use"
)]
struct Options {
    /// Address that the switch sends to.
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Let in only parties with this key (`olaf keys`). Repeatable: a key for each job.
    #[arg(long = "key-file", value_name = "FILE")]
    key_files: Vec<String>,
    /// Listen beyond this machine without a key, so that anybody there may take part.
    #[arg(long)]
    insecure: bool,
    /// How an update changes the model.
    #[arg(long, value_name = "delta|paper-literal")]
    rule: Option<String>,
    /// Factor on every update: gamma in w += gamma * g.
    #[arg(long, value_name = "GAMMA")]
    learning_rate: Option<f64>,
    /// Save the job to this file, and load it at start.
    #[arg(long, value_name = "FILE.npz")]
    checkpoint: Option<String>,
    /// Interval between two saves: 30s.
    #[arg(long, value_name = "TIME")]
    checkpoint_every: Option<String>,
    /// Ignore an existing checkpoint.
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    common: Common,
}

fn main() -> ExitCode {
    let options = Options::parse();
    finish("olaf-server", run(&options))
}

#[allow(clippy::print_stdout, reason = "this is a program")]
fn run(options: &Options) -> Result<(), Failure> {
    let named = [
        ("listen", options.listen.clone().map(Value::from)),
        ("key_files", key_files(&options.key_files)),
        ("insecure", options.insecure.then_some(Value::Bool(true))),
        ("rule", options.rule.clone().map(Value::from)),
        ("learning_rate", options.learning_rate.map(Value::from)),
        ("checkpoint", options.checkpoint.clone().map(Value::from)),
        ("checkpoint_every", options.checkpoint_every.clone().map(Value::from)),
        ("fresh", options.fresh.then_some(Value::Bool(true))),
    ];
    let config = ServerConfig::from_table(table("server", &options.common, &named)?)?;
    if options.common.print_config {
        print!("{}", printed(config.to_table()));
        return Ok(());
    }
    serve("server", &Served(Server::bind(&config)?), &options.common)
}

fn printed(config: Table) -> String {
    let tables: Table = [("server".to_owned(), Value::Object(config))].into_iter().collect();
    toml::to_string(&tables).expect("a configuration is a table of plain data")
}

struct Served(Server);

impl Role for Served {
    fn address(&self) -> &str {
        self.0.address()
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
    /// The last checkpoint, while its failure can still be told.
    fn before_stop(&self) -> Result<(), Failure> {
        Ok(self.0.finish()?)
    }
    fn stop(&self) -> Result<(), AskError> {
        self.0.stop()
    }
}
