//! The configuration of a switch as a process runs it.

use crate::error::StartError;
use crate::io::ReceiveLoss;
use crate::json;
use crate::keys::KeyText;
use crate::roles::ONLY_WHERE_SET;
use crate::roles::tenants::{self, JobConfig};
use olaf_engine::party::Tenants;
use olaf_engine::switch::{atp, iswitch, native as switch, reduce, trio};
use olaf_host::collective::atp::ServerConfig as AtpServerConfig;
use olaf_wire::reduce::MAX_CORES;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A kind of engine that a switch may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// Updates wait in a queue for a parameter server, and merge.
    Queue,
    /// An all-reduce: pieces of the same block are summed, and all workers get the sum.
    Reduce,
    /// The same in the packets of the iSwitch paper.
    Iswitch,
    /// The same in the packets of the Trio-ML paper.
    Trio,
    /// The same in the packets of the ATP paper, with the help of `atp_server`.
    Atp,
    /// The parameter server of ATP.
    AtpServer,
}

impl EngineKind {
    /// Every kind, in the order in which people read of them.
    pub const EACH: [Self; 6] =
        [Self::Queue, Self::Reduce, Self::Iswitch, Self::Trio, Self::Atp, Self::AtpServer];

    /// The name in configurations, statistics and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Reduce => "reduce",
            Self::Iswitch => "iswitch",
            Self::Trio => "trio",
            Self::Atp => "atp",
            Self::AtpServer => "atp_server",
        }
    }

    /// What it does, for a person who chooses.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Queue => "merges updates on their way to a parameter server",
            Self::Reduce => "sums arrays of all workers (all-reduce)",
            Self::Iswitch => "sums them as iSwitch does",
            Self::Trio => "sums them as Trio-ML does",
            Self::Atp => "sums them as ATP does, with the help of a server",
            Self::AtpServer => "is the server of ATP",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The set-up: the engines' own, and what a process has besides.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct SwitchConfig {
    /// The engines that the process runs, each in a thread with a socket of its own.
    pub engines: Vec<EngineKind>,
    /// Address and port of the first engine, for workers and servers alike. Each engine that
    /// `listen_at` does not name takes the next port. Loopback, so that nothing is offered to a
    /// network by accident.
    pub listen: String,
    /// Addresses of single engines.
    pub listen_at: BTreeMap<EngineKind, String>,
    /// The server of every job not named in `routes`, or the next switch on the way to it. The
    /// address that a server has by default on the same machine.
    pub upstream: String,
    /// Servers of single jobs.
    pub routes: BTreeMap<u32, String>,
    /// Files with keys, each of one job or of any: only parties with a key are let in. None: everybody
    /// is.
    pub key_files: Vec<String>,
    /// Texts of such files, from the program that started this one.
    #[serde(skip_serializing)]
    pub keys: Vec<KeyText>,
    /// Listens beyond this machine without a key, so that anybody there may take part.
    pub insecure: bool,
    /// The jobs that are served, each with its key and what it may take. None: every job, without
    /// limits.
    pub jobs: Vec<JobConfig>,
    /// Addresses of the switches below. A join that has passed another switch is refused. None: each sender
    /// may be a switch; without keys a stranger, too.
    pub switches_from: Vec<String>,
    /// Addresses whose datagrams of other protocols go up to `upstream`, and those of other classes to
    /// `iswitch.upstream`, paced as all others. None: such datagrams are dropped and counted.
    pub pass_from: Vec<String>,
    /// Address to serve metrics, health and a status page on, by HTTP. None: they are not served.
    pub metrics: Option<String>,
    /// File with the token that readers of `metrics` send; an address beyond loopback needs one.
    pub metrics_token_file: Option<String>,
    /// The core to run on, for all engines. Off: the system chooses.
    pub core: Option<usize>,
    /// For tests and experiments: lose some of the datagrams that arrive, at each engine; none:
    /// lose nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_loss: Option<ReceiveLoss>,
    /// What the decisions of the engine `queue` depend on.
    #[serde(flatten)]
    pub engine: switch::Config,
    /// The engine `reduce`.
    pub reduce: ReduceConfig,
    /// The engine `iswitch`.
    pub iswitch: SumsConfig<iswitch::Config>,
    /// The engine `trio`.
    pub trio: SumsConfig<trio::Config>,
    /// The engine `atp`. Its `upstream` names up to four servers, with commas between them, or the
    /// switch above. Off: the engine `atp_server` of this switch.
    pub atp: AtpConfig,
    /// The engine `atp_server`.
    pub atp_server: AtpServerOptions,
}

/// The set-up of the engine `atp`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct AtpConfig {
    /// The servers, or the switch above.
    pub upstream: Option<String>,
    /// The switch's name in a topology file. Off: it has a random number in place of a name.
    pub name: Option<String>,
    /// What the engine's decisions depend on.
    #[serde(flatten)]
    pub engine: atp::Config,
}

/// The set-up of the engine `atp_server`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct AtpServerOptions {
    /// A file that says which switches there are and where each worker is. Off: joins say it.
    pub topology: Option<String>,
    /// What the engine's decisions depend on.
    #[serde(flatten)]
    pub engine: AtpServerConfig,
}

/// The set-up of an engine that sums in the packets of a paper.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, bound(deserialize = "E: Default + Deserialize<'de>"))]
pub struct SumsConfig<E> {
    /// The switch above, which sums further. Off: this one is the uppermost.
    pub upstream: Option<String>,
    /// What the engine's decisions depend on.
    #[serde(flatten)]
    pub engine: E,
}

/// The set-up of the engine `reduce`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct ReduceConfig {
    /// The switch above, which sums further. Off: this one is the uppermost.
    pub upstream: Option<String>,
    /// Cores to sum on, at most 256. Each has an engine, a thread and a port of its own: the ports
    /// follow each other. Workers of fixed jobs divide their operations among them. 1.
    pub cores: u32,
    /// What the engine's decisions depend on.
    #[serde(flatten)]
    pub engine: reduce::Config,
}

impl Default for ReduceConfig {
    fn default() -> Self {
        Self { upstream: None, cores: 1, engine: reduce::Config::default() }
    }
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            engines: vec![EngineKind::Queue],
            listen: "127.0.0.1:5555".into(),
            listen_at: BTreeMap::new(),
            upstream: super::ServerConfig::default().listen,
            routes: BTreeMap::new(),
            key_files: Vec::new(),
            keys: Vec::new(),
            insecure: false,
            jobs: Vec::new(),
            switches_from: Vec::new(),
            pass_from: Vec::new(),
            metrics: None,
            metrics_token_file: None,
            core: None,
            receive_loss: None,
            engine: switch::Config::default(),
            reduce: ReduceConfig::default(),
            iswitch: SumsConfig::default(),
            trio: SumsConfig::default(),
            atp: AtpConfig::default(),
            atp_server: AtpServerOptions::default(),
        }
    }
}

impl SwitchConfig {
    /// Reads JSON, which names the upstream.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        json::parsed("switch", text).and_then(Self::from_value)
    }

    /// Reads JSON that was parsed already and names the upstream, where anything goes up.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_value(value: Value) -> Result<Self, StartError> {
        let names_upstream = value.get("upstream").is_some();
        let config: Self = json::read_flat("switch", value, ONLY_WHERE_SET)?;
        if !names_upstream && config.engines.contains(&EngineKind::Queue) {
            // A program that starts a switch knows where its updates shall go.
            return Err(StartError::Config("switch configuration: missing key `upstream`".into()));
        }
        Ok(config)
    }

    /// Reads a table of a configuration file, in which `off` stands for what is not set.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_table(table: Map<String, Value>) -> Result<Self, StartError> {
        json::read_flat("switch", json::with_nothing_for_off(table), ONLY_WHERE_SET)
    }

    /// The table that [`Self::from_table`] reads, with every key.
    #[must_use]
    pub fn to_table(&self) -> Map<String, Value> {
        json::written(self)
    }

    /// The jobs that are served.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the place in the list.
    pub(super) fn tenants(&self) -> Result<Tenants, StartError> {
        tenants::tenants(&self.jobs)
    }

    /// Returns true if parties need a key.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        tenants::has_keys(&self.key_files, &self.keys, &self.jobs)
    }

    /// Returns true if other machines may reach it: each of its keys is secret, or it serves anybody.
    pub(super) fn may_be_reached(&self) -> bool {
        self.insecure || tenants::has_secret_keys(&self.key_files, &self.keys, &self.jobs)
    }

    /// What the decisions of the engine `queue` depend on: without its address, its servers and its
    /// core.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn engine(&self) -> Result<switch::Config, StartError> {
        let shares = tenants::shares(&self.engine.shares, &self.jobs)?;
        let (own, slots) = (shares.own_slots(), self.engine.slots);
        if own > slots {
            return Err(StartError::Config(format!(
                "jobs: slots: the jobs have {own} slots of their own, and the switch has {slots} \
                 (`slots`): give it more, or the jobs fewer"
            )));
        }
        let engine = switch::Config { tenants: self.tenants()?, shares, ..self.engine.clone() };
        engine.check().map_err(|error| StartError::Config(error.to_string()))
    }

    /// What the decisions of the engine `reduce` depend on, on each of its cores. They share its
    /// memory.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key and its value.
    pub fn reduce(&self) -> Result<reduce::Config, StartError> {
        let cores = self.reduce.cores;
        if !(1..=MAX_CORES).contains(&cores) {
            return Err(StartError::Config(format!(
                "reduce.cores = {cores}: must be from 1 to {MAX_CORES}"
            )));
        }
        let engine = self.reduce.engine.clone();
        let memory_bytes = engine.memory_bytes / u64::from(cores);
        let engine = reduce::Config { cores, memory_bytes, tenants: self.tenants()?, ..engine };
        engine.check().map_err(|error| {
            let written = json::plain(&self.reduce);
            let value = written.get(error.key).map(|value| format!(" = {value}"));
            StartError::Config(format!(
                "reduce.{}{}: {}",
                error.key,
                value.unwrap_or_default(),
                error.allowed
            ))
        })
    }

    /// Each engine and the address that it shall listen on.
    ///
    /// # Errors
    /// [`StartError::Config`] where there is no engine, or where an engine or an address is given
    /// twice or for nothing.
    pub fn places(&self) -> Result<Vec<(EngineKind, String)>, StartError> {
        let wrong = |what: String| Err(StartError::Config(what));
        if self.engines.is_empty() {
            let known = EngineKind::EACH.map(EngineKind::name).join(", ");
            return wrong(format!("engines = []: name at least one of {known}"));
        }
        let mut places = Vec::new();
        let mut next = 0;
        for (at, kind) in self.engines.iter().enumerate() {
            if self.engines[..at].contains(kind) {
                return wrong(format!("engines: {kind} is named twice"));
            }
            let named = self.listen_at.get(kind).cloned();
            places.push((*kind, named.map_or_else(|| port_after(&self.listen, next), Ok)?));
            next += match kind {
                EngineKind::Reduce => self.reduce.cores as usize,
                _ => 1,
            };
        }
        match self.listen_at.iter().find(|(kind, _)| !self.engines.contains(kind)) {
            Some((kind, address)) => wrong(format!(
                "listen_at.{kind} = {address:?}: this switch does not run the engine {kind}: add \
                 it to `engines`"
            )),
            None => Ok(places),
        }
    }
}

/// The address with the port that comes `steps` after its own. Port 0 stays: it is any free port.
pub(super) fn port_after(listen: &str, steps: usize) -> Result<String, StartError> {
    let trimmed = listen.trim().trim_end_matches('/');
    let Some((host, port)) = trimmed.rsplit_once(':') else { return Ok(listen.into()) };
    // What is no port is told with the address, when that is resolved.
    let Ok(port) = port.parse::<u16>() else { return Ok(listen.into()) };
    if steps == 0 || port == 0 {
        return Ok(listen.into());
    }
    let next = u16::try_from(steps).ok().and_then(|steps| port.checked_add(steps));
    next.map(|next| format!("{host}:{next}")).ok_or_else(|| {
        StartError::Config(format!(
            "listen = {listen:?}: there is no port {steps} after it for the next engine: give \
             that engine an address in `listen_at`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> Result<SwitchConfig, String> {
        SwitchConfig::from_json(json).map_err(|error| error.to_string())
    }

    fn places(json: &str) -> Result<Vec<(EngineKind, String)>, String> {
        config(json)?.places().map_err(|error| error.to_string())
    }

    #[test]
    fn each_engine_takes_the_next_port_unless_it_has_an_address() {
        use EngineKind::{Queue, Reduce};
        let both = r#""upstream": "a:1", "engines": ["queue", "reduce"]"#;
        for (rest, expected) in [
            (r#""listen": "0.0.0.0:7000""#, ["0.0.0.0:7000", "0.0.0.0:7001"]),
            (r#""listen": "[::]:7000""#, ["[::]:7000", "[::]:7001"]),
            (r#""listen": "udp://a:7000/""#, ["udp://a:7000/", "udp://a:7001"]),
            (r#""listen": "127.0.0.1:0""#, ["127.0.0.1:0", "127.0.0.1:0"]),
            (r#""listen_at": {"reduce": "b:9"}"#, ["127.0.0.1:5555", "b:9"]),
            (r#""listen": "a:1", "listen_at": {"queue": "b:9"}"#, ["b:9", "a:2"]),
        ] {
            let found = places(&format!("{{{both}, {rest}}}")).expect(rest);
            let expected = expected.map(String::from);
            assert_eq!(found, [(Queue, expected[0].clone()), (Reduce, expected[1].clone())]);
        }
    }

    #[test]
    fn engines_that_cannot_be_are_named() {
        for (json, told) in [
            (r#"{"upstream": "a:1", "engines": []}"#, "engines = []"),
            (r#"{"upstream": "a:1", "engines": ["queue", "queue"]}"#, "queue is named twice"),
            (r#"{"upstream": "a:1", "engines": ["sharp"]}"#, "unknown variant `sharp`, expected"),
            (
                r#"{"upstream": "a:1", "listen_at": {"reduce": "b:9"}}"#,
                "listen_at.reduce = \"b:9\"",
            ),
            (
                r#"{"upstream": "a:1", "engines": ["queue", "reduce"], "listen": "a:65535"}"#,
                "no port 1 after it",
            ),
        ] {
            let error = places(json).expect_err(told);
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn only_a_queue_needs_an_upstream() {
        assert!(config(r#"{"engines": ["reduce"]}"#).is_ok());
        let error = config(r#"{"engines": ["reduce", "queue"]}"#).expect_err("no upstream");
        assert!(error.contains("missing key `upstream`"), "{error}");
    }

    #[test]
    fn a_key_of_reduce_is_named_with_its_table_and_value() {
        for (reduce, told) in [
            (r#"{"slts": 4}"#, "unknown field `reduce.slts`, expected one of `cores`"),
            (r#"{"silence": 3}"#, "reduce.silence = 3: a time needs its unit"),
            (r#"{"slots": "many"}"#, "reduce.slots: invalid type: string"),
            (r#"{"non_finite": "keep"}"#, "reduce.non_finite = \"keep\": must be pass or refuse"),
        ] {
            let error = config(&format!(r#"{{"engines": ["reduce"], "reduce": {reduce}}}"#));
            let error = error.expect_err(told);
            assert!(error.contains(told), "{error}");
        }
        let zero = config(r#"{"engines": ["reduce"], "reduce": {"slots": 0}}"#).expect("a number");
        let error = zero.reduce().expect_err("no slots").to_string();
        assert!(error.contains("reduce.slots = 0: must be from 1"), "{error}");
    }

    #[test]
    fn the_table_of_reduce_has_its_units_and_reads_back() {
        let config = config(
            r#"{"engines": ["reduce"],
                "reduce": {"memory": "64MiB", "deadline": "20ms", "downlink": "1gbit"}}"#,
        );
        let table = config.expect("a configuration").to_table();
        assert_eq!(table["reduce"]["memory"], "64MiB");
        assert_eq!(table["reduce"]["downlink_ecn_depth_datagrams"], "off");
        let again = SwitchConfig::from_table(table.clone()).expect("its own words");
        assert_eq!(again.to_table(), table);
        assert_eq!(again.reduce.engine.deadline, Some(std::time::Duration::from_millis(20)));
    }
}
