//! The parameter server as a process runs it: configuration, the host, its socket.

use crate::checkpoint::{Files, Keeper};
use crate::driver::{Driver, Party, PassOn};
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::roles::switch::in_key;
use crate::running::Running;
use crate::{events, io::address, random};
use olaf_engine::{Instant, JobId, PeerId, Transmit};
use olaf_host::push_pull::server::{self, Aggregate, RuleConfig, RuleKind, ServerGate, Step};
use olaf_host::{Host, push_pull::server::Server as Brain};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// How updates change the model, as `docs/reference/statistics.md` describes it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address and port.
    pub listen: String,
    /// `delta` or `paper-literal`.
    pub rule: String,
    /// Gamma in `w += gamma g`.
    pub learning_rate: f64,
    /// `overlap`, `mean` or `sum`.
    pub step: String,
    /// `none`, `best` or `recent`.
    pub gate: String,
    /// How far below the gate's reference an update may be.
    pub gate_margin: f64,
    /// An update counts `(1 + versions behind)^-power`.
    pub staleness_power: f64,
    /// `each`, `periodic` or `round`.
    pub aggregate: String,
    /// `periodic`: so many contributions change the model together; none: only time does.
    pub aggregate_updates: Option<u32>,
    /// `periodic`: at the latest so long after the first; `round`: a round ends so long after its
    /// first contribution, without those that are missing.
    pub aggregate_ms: u64,
    /// Versions kept for workers that ask for missing segments.
    pub keep_versions: usize,
    /// Lanes of a segment, where the server is to insist on them; the first worker's otherwise.
    pub segment_lanes: Option<u32>,
    /// A worker unheard for so long is reported silent.
    pub silent_after_ms: u64,
    /// Several segments: a cluster is answered at the latest so long after its first one.
    pub round_ms: u64,
    /// The core to run on; none: the system chooses.
    pub core: Option<usize>,
    /// File that the model and all that goes with it is kept in; `{job}` stands for the job.
    pub checkpoint: Option<String>,
    /// How often that is written while anything changes.
    pub checkpoint_every_ms: u64,
    /// A file that exists is not taken up.
    pub fresh: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let (brain, rule) = (server::ServerConfig::default(), RuleConfig::default());
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        Self {
            listen: "127.0.0.1:5556".into(),
            rule: "delta".into(),
            learning_rate: rule.learning_rate,
            step: "overlap".into(),
            gate: "none".into(),
            gate_margin: rule.gate_margin,
            staleness_power: rule.staleness_power,
            aggregate: "each".into(),
            aggregate_updates: Some(8),
            aggregate_ms: 2000,
            keep_versions: brain.keep_versions,
            segment_lanes: None,
            silent_after_ms: ms(brain.silent_after),
            round_ms: ms(brain.round),
            core: None,
            checkpoint: None,
            checkpoint_every_ms: 30_000,
            fresh: false,
        }
    }
}

impl ServerConfig {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        crate::json::read("server", text)
    }

    /// Reads a table of a configuration file, in which `off` stands for what is not set.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_table(
        table: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, StartError> {
        crate::json::read_value("server", crate::json::with_nothing_for_off(table))
    }

    /// The table that [`Self::from_table`] reads, with every key.
    #[must_use]
    pub fn to_table(&self) -> serde_json::Map<String, serde_json::Value> {
        crate::json::written(self)
    }

    /// The rule alone.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn rule(&self) -> Result<RuleConfig, StartError> {
        let kinds = [("delta", RuleKind::Delta), ("paper-literal", RuleKind::PaperLiteral)];
        let steps = [("overlap", Step::Overlap), ("mean", Step::Mean), ("sum", Step::Sum)];
        let gates = [
            ("none", ServerGate::None),
            ("best", ServerGate::Best),
            ("recent", ServerGate::Recent),
        ];
        RuleConfig {
            kind: one_of("rule", &self.rule, &kinds)?,
            learning_rate: self.learning_rate,
            step: one_of("step", &self.step, &steps)?,
            gate: one_of("gate", &self.gate, &gates)?,
            gate_margin: self.gate_margin,
            staleness_power: self.staleness_power,
        }
        .check()
        .map_err(|error| StartError::Config(error.to_string()))
    }

    fn aggregate(&self) -> Result<Aggregate, StartError> {
        let above_0 = |key: &str| StartError::Config(format!("{key}: must be above 0"));
        if self.aggregate_ms == 0 {
            return Err(above_0("aggregate_ms"));
        }
        let (after, contributions) =
            (Duration::from_millis(self.aggregate_ms), self.aggregate_updates);
        if contributions == Some(0) {
            return Err(above_0("aggregate_updates"));
        }
        let known = [
            ("each", Aggregate::Each),
            ("periodic", Aggregate::Periodic { contributions, after }),
            ("round", Aggregate::Round { deadline: after }),
        ];
        one_of("aggregate", &self.aggregate, &known)
    }

    fn keeper(&self, brain: &mut Brain) -> Result<Option<Keeper>, StartError> {
        if self.checkpoint_every_ms == 0 {
            return Err(StartError::Config("checkpoint_every_ms: must be above 0".into()));
        }
        let Some(path) = &self.checkpoint else { return Ok(None) };
        let every = Duration::from_millis(self.checkpoint_every_ms);
        Keeper::new(Files::new(path)?, every, self.fresh, brain).map(Some)
    }

    /// What the server's decisions depend on: without its address, its core and its files.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn brain(&self) -> Result<server::ServerConfig, StartError> {
        let positive = |key: &str, value: u64| match value {
            0 => Err(StartError::Config(format!("{key}: must be above 0"))),
            value => Ok(value),
        };
        Ok(server::ServerConfig {
            rule: self.rule()?,
            aggregate: self.aggregate()?,
            segment_lanes: self.segment_lanes,
            keep_versions: usize::try_from(positive("keep_versions", self.keep_versions as u64)?)
                .unwrap_or(usize::MAX),
            silent_after: Duration::from_millis(positive("silent_after_ms", self.silent_after_ms)?),
            round: Duration::from_millis(positive("round_ms", self.round_ms)?),
            ..server::ServerConfig::default()
        })
    }
}

fn one_of<T: Copy>(key: &str, name: &str, known: &[(&str, T)]) -> Result<T, StartError> {
    known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(known, _)| *known).collect();
        StartError::Config(format!("{key} = {name:?}: must be one of {}", names.join(", ")))
    })
}

/// A parameter server with its socket, in a thread of its own once started.
pub struct Server(Running<Body>);

impl Server {
    /// Binds the socket; nothing runs yet.
    ///
    /// # Errors
    /// [`StartError::Config`] names the key; [`StartError::System`] says what to do.
    pub fn bind(config: &ServerConfig) -> Result<Self, StartError> {
        let brain = config.brain()?;
        let listen = address::resolve(&config.listen, |_| true).map_err(in_key("listen"))?;
        // Never from a seed: a life that looked like the one before would pass for it.
        let epoch = random::draw();
        let mut brain =
            Brain::new(brain, epoch).map_err(|error| StartError::Config(error.to_string()))?;
        let socket = Socket::bind(listen)?;
        // Only whoever has the port writes the file.
        let keeper = config.keeper(&mut brain)?;
        let body = Body { brain, keeper, finished: false };
        let driver = Driver::new(body, Peers::new(), socket);
        Ok(Self(Running::new("server", driver, config.core)))
    }

    /// The address it is bound to.
    #[must_use]
    pub fn address(&self) -> &str {
        self.0.address()
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system has no thread to give, or the server was stopped.
    pub fn start(&self) -> Result<(), StartError> {
        self.0.start()
    }

    /// Everything counted so far, as JSON.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn statistics(&self) -> Result<String, AskError> {
        self.0.ask(Driver::statistics)
    }

    /// What happened since the last call, a JSON object each.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn events(&self) -> Result<Vec<String>, AskError> {
        self.0.ask(Driver::take_events)
    }

    /// A job's model now: its version and parameters; nothing while it has none.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn model(&self, job: u32) -> Result<Option<(u32, Vec<f32>)>, AskError> {
        self.0.ask(move |driver| {
            let (version, segments) = driver.party.brain.model(JobId(job))?;
            Some((version, segments.flatten().copied().collect()))
        })
    }

    /// Takes nothing in any more, and writes the last checkpoint where there is one to write;
    /// events tell what failed. Nothing when that was done before.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn finish(&self) -> Result<(), AskError> {
        let finish = self.0.ask(|driver| {
            let body = &mut driver.party;
            body.finished = true;
            body.keeper.as_mut().and_then(|keeper| keeper.finish(&body.brain))
        })?;
        let Some(finish) = finish else { return Ok(()) };
        let finished = finish.wait();
        self.0.ask(|driver| {
            if let Some(keeper) = &mut driver.party.keeper {
                keeper.finished(finished);
            }
        })
    }

    /// Finishes, stops the thread and frees the port.
    ///
    /// # Errors
    /// [`AskError::Died`] when the thread had panicked.
    pub fn stop(&self) -> Result<(), AskError> {
        let finished = self.finish();
        self.0.stop().and(finished)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

struct Body {
    brain: Brain,
    keeper: Option<Keeper>,
    /// The last checkpoint is written: nothing may change any more.
    finished: bool,
}

impl Party for Body {
    fn handle_packet(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> PassOn {
        if self.finished {
            return PassOn::No;
        }
        // A refusal is in the server's own counts.
        let _ = self.brain.handle_packet(now, from, bytes);
        PassOn::No
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        self.brain.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.finished {
            return None;
        }
        let brain = self.brain.poll_timeout().map(|(at, _)| at);
        brain.into_iter().chain(self.keeper.as_ref().map(Keeper::poll_timeout)).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.finished {
            return;
        }
        self.brain.handle_timeout(now);
        if let Some(keeper) = &mut self.keeper {
            keeper.handle_timeout(now, &self.brain);
        }
    }

    fn poll_event(&mut self, peers: &Peers) -> Option<Value> {
        let event = self.brain.poll_event().map(|event| events::of_server_host(&event, peers));
        event.or_else(|| self.keeper.as_mut()?.poll_event())
    }

    fn must_send_first(&self) -> bool {
        // The answers to one batch go out together: of one cluster only the newest is needed.
        false
    }

    fn peers(&self) -> BTreeSet<PeerId> {
        self.brain.peers()
    }

    fn statistics(&self, now: Instant, _: &Peers) -> Value {
        let mut value =
            serde_json::to_value(self.brain.statistics(now)).expect("statistics are plain data");
        value["role"] = "server".into();
        value["checkpoint"] =
            self.keeper.as_ref().map_or(Value::Null, |keeper| keeper.statistics());
        value
    }
}
