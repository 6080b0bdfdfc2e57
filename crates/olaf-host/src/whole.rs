//! A whole engine by the name of its role: one face for C, ns-3, test benches and Python.
//!
//! A [`Whole`] is an [`Engine`]; what only one role can do (a worker pushes, a switch has servers)
//! is a method that says so where the role is another.

use crate::collective::atp::{AtpServer, ServerConfig as AtpServerConfig};
use crate::push_pull::worker::{PushError, WorkerOptions};
use crate::push_pull::{Server, ServerConfig, Worker, WorkerConfig};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use olaf_engine::report::Report;
use olaf_engine::switch::native::{Config as SwitchConfig, Switch};
use olaf_engine::switch::{atp, iswitch, reduce, trio};
use olaf_engine::{Engine, Event, Instant, JobId, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::{Address, ClusterId, Session, WorkerId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Every role. `sum_switch` is the switch of `reduce`; `iswitch`, `trio` and `atp` are those of their papers.
pub const ROLES: [&str; 8] =
    ["switch", "sum_switch", "iswitch", "trio", "atp", "atp_server", "server", "worker"];

/// An engine of any role.
pub enum Whole {
    /// A switch.
    Switch(Box<Switch>),
    /// A switch that sums, by the name of its role.
    Sums(&'static str, Box<dyn Engine + Send>),
    /// A parameter server.
    Server(Box<Server>),
    /// A worker.
    Worker(Box<Worker>),
}

/// Why there is no such engine, or why it does not do that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WholeError {
    /// No role has that name.
    Role(String),
    /// The configuration: which key, and what is wrong with it.
    Config(String),
    /// Only an engine of that role does this.
    OnlyA(&'static str),
    /// The worker cannot send this.
    Push(PushError),
    /// The buffer does not have as many values as the model has parameters.
    ModelSize {
        /// Values in the buffer.
        have: usize,
        /// Parameters of the model.
        need: usize,
    },
}

impl fmt::Display for WholeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(name) => {
                write!(f, "role = {name:?}: must be one of {}", ROLES.join(", "))
            }
            Self::Config(what) => f.write_str(what),
            Self::OnlyA(role) => write!(f, "only a {role} does this"),
            Self::Push(error) => error.fmt(f),
            Self::ModelSize { have, need } => {
                write!(f, "the buffer has {have} values; the model has {need} parameters")
            }
        }
    }
}

impl core::error::Error for WholeError {}

/// Where a switch's updates go.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Above {
    /// Number of the peer that is the server of every job.
    server: u32,
}

/// Where the sums of a lower switch go.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Upper {
    /// Number of the peer that is the switch above; none: this one is the uppermost.
    above: Option<u32>,
    /// The longest datagram that the path to it takes; none: as long as a datagram may be.
    above_datagram_bytes: Option<u32>,
}

impl Upper {
    /// The switch above, and the longest datagram that the path to it takes.
    fn above(&self) -> Option<(PeerId, u32)> {
        let longest = self.above_datagram_bytes.unwrap_or(MAX_DATAGRAM as u32);
        self.above.map(|above| (PeerId(above), longest))
    }
}

/// A worker's identity.
#[derive(Deserialize, Serialize)]
#[serde(default)]
struct Identity {
    job: u32,
    cluster: u32,
    worker: u32,
    /// Number of the peer that is its switch, or its server without one.
    switch: u32,
    /// Values of a segment.
    segment_lanes: u32,
    /// Seed of the draws of transmission control.
    seed: u64,
}

impl Default for Identity {
    fn default() -> Self {
        let nobody = Address {
            job: JobId(1),
            cluster: ClusterId(0),
            worker: WorkerId(0),
            session: Session(1),
        };
        let usual = WorkerConfig::new(nobody, PeerId(0));
        Self {
            job: 1,
            cluster: 0,
            worker: 0,
            switch: 0,
            segment_lanes: usual.segment_lanes,
            seed: usual.chance_seed,
        }
    }
}

impl Whole {
    /// An engine. `config` is a JSON object with the keys of the role's configuration in
    /// `docs/reference/statistics.md`; what it leaves out has its default. A switch has the key
    /// `server` besides. A `sum_switch` has the keys of `[switch.reduce]`; `iswitch`, `trio`, `atp` and `atp_server`
    /// have those of their tables. Those of a switch that sums also have `above`; for `atp` this is the
    /// server of ATP or the switch on the way to it. A worker has `job`, `cluster`, `worker`, `switch`, `segment_lanes` and `seed`. `life` names this life of the engine: draw it at random, above 0.
    ///
    /// Example: `Whole::new("switch", r#"{"slots": 4, "server": 9}"#, 7)`.
    ///
    /// # Errors
    /// [`WholeError::Role`], [`WholeError::Config`].
    pub fn new(role: &str, config: &str, life: u32) -> Result<Self, WholeError> {
        let mut table: Map<String, Value> = serde_json::from_str(config)
            .map_err(|error| WholeError::Config(format!("configuration: {error}")))?;
        let wrong = |error: &dyn fmt::Display| WholeError::Config(error.to_string());
        let whole = match role {
            "switch" => {
                let above: Above = taken(&mut table)?;
                let config: SwitchConfig = taken(&mut table)?;
                let mut switch = Switch::new(config, life).map_err(|error| wrong(&error))?;
                switch.set_default_server(PeerId(above.server));
                Self::Switch(Box::new(switch))
            }
            "sum_switch" => {
                let upper: Upper = taken(&mut table)?;
                let config: reduce::Config = taken(&mut table)?;
                let mut switch = reduce::Switch::new(config, life).map_err(|e| wrong(&e))?;
                if let Some((above, longest)) = upper.above() {
                    switch.set_upstream(above, longest);
                }
                Self::Sums("sum_switch", Box::new(switch))
            }
            "iswitch" => {
                let upper: Upper = taken(&mut table)?;
                let config: iswitch::Config = taken(&mut table)?;
                let mut switch = iswitch::Switch::new(config, life).map_err(|e| wrong(&e))?;
                if let Some((above, longest)) = upper.above() {
                    switch.set_upstream(above, longest);
                }
                Self::Sums("iswitch", Box::new(switch))
            }
            "trio" => {
                let upper: Upper = taken(&mut table)?;
                let config: trio::Config = taken(&mut table)?;
                let mut switch = trio::Switch::new(config, life).map_err(|e| wrong(&e))?;
                if let Some((above, _)) = upper.above() {
                    switch.set_upstream(above);
                }
                Self::Sums("trio", Box::new(switch))
            }
            "atp" => {
                let upper: Upper = taken(&mut table)?;
                let config: atp::Config = taken(&mut table)?;
                let mut switch = atp::Switch::new(config, life).map_err(|e| wrong(&e))?;
                if let Some((above, _)) = upper.above() {
                    switch.set_servers(&[above]);
                }
                Self::Sums("atp", Box::new(switch))
            }
            "atp_server" => {
                let config: AtpServerConfig = taken(&mut table)?;
                // A life of ATP has 16 bits.
                let server = AtpServer::new(config, life as u16).map_err(|e| wrong(&e))?;
                Self::Sums("atp_server", Box::new(server))
            }
            "server" => {
                let config: ServerConfig = taken(&mut table)?;
                Self::Server(Box::new(Server::new(config, life).map_err(|error| wrong(&error))?))
            }
            "worker" => {
                let who: Identity = taken(&mut table)?;
                let options: WorkerOptions = taken(&mut table)?;
                let options = options.check().map_err(|error| wrong(&error))?;
                Self::Worker(Box::new(worker(&who, &options, life).map_err(|e| wrong(&e))?))
            }
            other => return Err(WholeError::Role(other.into())),
        };
        match table.keys().next() {
            Some(key) => Err(WholeError::Config(format!("{key}: a {role} has no such key"))),
            None => Ok(whole),
        }
    }

    /// The name of its role.
    #[must_use]
    pub const fn role(&self) -> &'static str {
        match self {
            Self::Switch(_) => "switch",
            Self::Sums(role, _) => role,
            Self::Server(_) => "server",
            Self::Worker(_) => "worker",
        }
    }

    /// Worker: joins its job and offers `parameters` as the first model. See [`Worker::join`].
    ///
    /// # Errors
    /// [`WholeError::OnlyA`], [`WholeError::Push`].
    pub fn join(&mut self, now: Instant, parameters: &[f32]) -> Result<(), WholeError> {
        self.worker()?.join(now, &[parameters]).map_err(WholeError::Push)
    }

    /// Worker: sends one update; its sequence number. See [`Worker::push`].
    ///
    /// # Errors
    /// [`WholeError::OnlyA`], [`WholeError::Push`].
    pub fn push(
        &mut self,
        now: Instant,
        update: &[f32],
        reward: f64,
        weight: f64,
    ) -> Result<u32, WholeError> {
        self.worker()?.push(now, &[update], reward, weight).map_err(WholeError::Push)
    }

    /// Worker: copies the newest whole model into `into` where its version is above `newer_than`;
    /// that version.
    ///
    /// # Errors
    /// [`WholeError::OnlyA`], [`WholeError::ModelSize`].
    pub fn pull(&mut self, into: &mut [f32], newer_than: u32) -> Result<Option<u32>, WholeError> {
        let worker = self.worker()?;
        let Some(model) = worker.model().filter(|model| model.version > newer_than) else {
            return Ok(None);
        };
        let (have, need) = (into.len(), model.lanes.len());
        if have != need {
            return Err(WholeError::ModelSize { have, need });
        }
        into.copy_from_slice(model.lanes.as_slice());
        let version = model.version;
        worker.taken(version);
        Ok(Some(version))
    }

    /// Worker: leaves. See [`Worker::leave`].
    ///
    /// # Errors
    /// [`WholeError::OnlyA`].
    pub fn leave(&mut self) -> Result<(), WholeError> {
        self.worker()?.leave();
        Ok(())
    }

    /// Server: a job's model, its version and its parameters; nothing before there is one.
    ///
    /// # Errors
    /// [`WholeError::OnlyA`].
    pub fn model(&self, job: JobId) -> Result<Option<(u32, Vec<f32>)>, WholeError> {
        let Self::Server(server) = self else { return Err(WholeError::OnlyA("server")) };
        let model = server.model(job);
        Ok(model.map(|(version, segments)| (version, segments.flatten().copied().collect())))
    }

    fn worker(&mut self) -> Result<&mut Worker, WholeError> {
        match self {
            Self::Worker(worker) => Ok(worker),
            _ => Err(WholeError::OnlyA("worker")),
        }
    }

    fn engine(&self) -> &dyn Engine {
        match self {
            Self::Switch(switch) => &**switch,
            Self::Sums(_, switch) => &**switch,
            Self::Server(server) => &**server,
            Self::Worker(worker) => &**worker,
        }
    }

    fn engine_mut(&mut self) -> &mut dyn Engine {
        match self {
            Self::Switch(switch) => &mut **switch,
            Self::Sums(_, switch) => &mut **switch,
            Self::Server(server) => &mut **server,
            Self::Worker(worker) => &mut **worker,
        }
    }
}

impl Engine for Whole {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.engine_mut().handle_packet(now, from, bytes)
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.engine_mut().poll_transmit(now, port, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.engine().poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.engine_mut().handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.engine_mut().poll_event()
    }

    fn ports(&self) -> u16 {
        self.engine().ports()
    }

    fn must_drain(&self) -> bool {
        self.engine().must_drain()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.engine().peers(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.engine().report(now, to);
    }

    fn handle_too_long(&mut self, now: Instant, bytes: usize, largest: Option<u32>) {
        self.engine_mut().handle_too_long(now, bytes, largest);
    }
}

/// Takes the keys of a `T` out of the table and reads them; a missing key has its default.
fn taken<T: DeserializeOwned + Serialize + Default>(
    table: &mut Map<String, Value>,
) -> Result<T, WholeError> {
    let wrong = |what: serde_json::Error| WholeError::Config(format!("configuration: {what}"));
    let Value::Object(known) = serde_json::to_value(T::default()).map_err(wrong)? else {
        return Ok(T::default());
    };
    let mut own = Map::new();
    for key in known.keys() {
        own.extend(table.remove_entry(key));
    }
    // Each key is read alone: the error then names it.
    for (key, value) in &own {
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        serde_json::from_value::<T>(Value::Object(alone))
            .map_err(|what| WholeError::Config(format!("{key}: {what}")))?;
    }
    serde_json::from_value(Value::Object(own)).map_err(wrong)
}

fn worker(who: &Identity, options: &WorkerOptions, life: u32) -> Result<Worker, String> {
    let address = Address {
        job: JobId(who.job),
        cluster: ClusterId(who.cluster),
        worker: WorkerId(who.worker),
        session: Session(life),
    };
    let transmission = options.transmission.read().map_err(|error| error.to_string())?;
    Ok(Worker::new(WorkerConfig {
        segment_lanes: who.segment_lanes,
        keepalive: options.keepalive,
        silent_after: options.silent_after,
        ecn: options.ecn,
        transmission,
        chance_seed: who.seed,
        ..WorkerConfig::new(address, PeerId(who.switch))
    }))
}
