//! The switch as a process runs it: configuration, the engine, its socket.

use crate::driver::{Driver, Party, PassOn};
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::running::Running;
use crate::{clock, events, io::address, random};
use olaf_engine::switch::native::{
    self as switch, Admission, AnswerTo, Pacing, QueueKind, Ruling, Statistics,
};
use olaf_engine::{
    BitsPerSecond, ClusterId, Engine, Event, Instant, JobId, PeerId, PortId, Source, Transmit,
    Verdict,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The set-up, as `docs/reference/statistics.md` describes it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Address and port for workers and servers alike.
    #[serde(default = "default_listen")]
    pub listen: String,
    /// The server of every job not named in `routes`, or the next switch on the way to it.
    pub upstream: String,
    /// Servers of single jobs.
    #[serde(default)]
    pub routes: BTreeMap<u32, String>,
    /// The name of a [`QueueKind`].
    #[serde(default = "default_queue")]
    pub queue: String,
    /// Segments the queue holds, the one on the wire included.
    #[serde(default = "default_slots")]
    pub slots: usize,
    /// The reward gate's threshold; none: off.
    #[serde(default)]
    pub gate: Option<f64>,
    /// The rate pacer, bits of UDP payload per second.
    #[serde(default)]
    pub uplink_bps: Option<u64>,
    /// The credit pacer: updates outstanding towards servers.
    #[serde(default)]
    pub credits: Option<usize>,
    /// An unanswered credit comes back after so long.
    #[serde(default = "default_credit_timeout_ms")]
    pub credit_timeout_ms: u64,
    /// Who hears an answer: `shared` or `cluster`.
    #[serde(default = "default_answer_to")]
    pub answer_to: String,
    /// Asking before a cluster joins: how long an answer may take; none: nobody is asked.
    #[serde(default)]
    pub admission_timeout_ms: Option<u64>,
    /// The answer when time runs out: `admit` or `refuse`.
    #[serde(default = "default_admission_unanswered")]
    pub admission_unanswered: String,
    /// A refused cluster is not asked about again for so long.
    #[serde(default = "default_admission_refused_for_ms")]
    pub admission_refused_for_ms: u64,
    /// A cluster heard within so long is active.
    #[serde(default = "default_active_ms")]
    pub active_ms: u64,
    /// A peer unheard for so long is reported silent.
    #[serde(default = "default_silent_after_ms")]
    pub silent_after_ms: u64,
    /// The largest model a job may announce.
    #[serde(default = "default_max_parameters")]
    pub max_parameters: u32,
    /// Switches that an update or a join may pass; more are a circle.
    #[serde(default = "default_max_hops")]
    pub max_hops: u8,
    /// The core to run on; none: the system chooses.
    #[serde(default)]
    pub core: Option<usize>,
}

fn default_listen() -> String {
    "127.0.0.1:5555".into()
}
fn default_queue() -> String {
    "olaf".into()
}
fn default_slots() -> usize {
    8
}
fn default_credit_timeout_ms() -> u64 {
    1000
}
fn default_answer_to() -> String {
    "shared".into()
}
fn default_admission_unanswered() -> String {
    Ruling::Refuse.name().into()
}
fn default_admission_refused_for_ms() -> u64 {
    10_000
}
fn default_active_ms() -> u64 {
    1000
}
fn default_silent_after_ms() -> u64 {
    2000
}
fn default_max_hops() -> u8 {
    16
}
fn default_max_parameters() -> u32 {
    1 << 28
}

impl SwitchConfig {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        crate::json::read("switch", text)
    }

    /// Reads a table of a configuration file, in which `off` stands for what is not set.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_table(
        table: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Self, StartError> {
        crate::json::read_value("switch", crate::json::with_nothing_for_off(table))
    }

    /// The table that [`Self::from_table`] reads, with every key.
    #[must_use]
    pub fn to_table(&self) -> serde_json::Map<String, serde_json::Value> {
        crate::json::written(self)
    }

    /// What the switch's decisions depend on: without its address, its servers and its core.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn engine(&self) -> Result<switch::Config, StartError> {
        let queue = QueueKind::parse(&self.queue).ok_or_else(|| {
            StartError::Config(format!("queue = {:?}: must be {}", self.queue, QueueKind::names()))
        })?;
        let answer_to = match self.answer_to.as_str() {
            "shared" => AnswerTo::Shared,
            "cluster" => AnswerTo::Cluster,
            other => {
                return Err(StartError::Config(format!(
                    "answer_to = {other:?}: must be shared or cluster"
                )));
            }
        };
        let unanswered = Ruling::parse(&self.admission_unanswered).ok_or_else(|| {
            StartError::Config(format!(
                "admission_unanswered = {:?}: must be admit or refuse",
                self.admission_unanswered
            ))
        })?;
        let admission = self.admission_timeout_ms.map(|timeout| Admission {
            timeout: Duration::from_millis(timeout),
            unanswered,
            refused_for: Duration::from_millis(self.admission_refused_for_ms),
            ..Admission::default()
        });
        let timeout = Duration::from_millis(self.credit_timeout_ms);
        let pacing = match (self.uplink_bps, self.credits) {
            (None, None) => Pacing::Unlimited,
            (Some(rate), None) => Pacing::Rate(BitsPerSecond::new(rate).ok_or_else(|| {
                let max = BitsPerSecond::MAX;
                StartError::Config(format!("uplink_bps = {rate}: must be from 1 to {max}"))
            })?),
            (None, Some(credits)) => Pacing::Credits { credits, timeout },
            (Some(_), Some(_)) => {
                return Err(StartError::Config(
                    "uplink_bps and credits: give at most one of the two".into(),
                ));
            }
        };
        let config = switch::Config {
            queue,
            slots: self.slots,
            gate: self.gate,
            pacing,
            answer_to,
            admission,
            active: Duration::from_millis(self.active_ms),
            silent_after: Duration::from_millis(self.silent_after_ms),
            max_parameters: self.max_parameters,
            max_hops: self.max_hops,
            ..switch::Config::default()
        };
        config.check().map_err(|error| StartError::Config(error.to_string()))
    }
}

/// An aggregation switch with its socket, in a thread of its own once started.
pub struct Switch(Running<Body>);

impl Switch {
    /// Binds the socket and finds the servers; nothing runs yet.
    ///
    /// # Errors
    /// [`StartError::Config`] names the key; [`StartError::System`] says what to do.
    pub fn bind(config: &SwitchConfig) -> Result<Self, StartError> {
        let engine = config.engine()?;
        let unlimited = engine.pacing == Pacing::Unlimited;
        let listen = address::resolve(&config.listen, |_| true).map_err(in_key("listen"))?;
        // Never from a seed: a life that looked like the one before would pass for it.
        let epoch = random::draw();
        let mut engine = switch::Switch::new(engine, epoch)
            .map_err(|error| StartError::Config(error.to_string()))?;
        let socket = Socket::bind(listen)?;
        let mut peers = Peers::new();
        let mut server = |key: &str, text: &str| {
            let found = address::resolve(text, |a| socket.reaches(a)).map_err(in_key(key))?;
            if socket.is_at(found) {
                return Err(StartError::Config(format!(
                    "{key} = {text:?}: is this switch itself, which listens on {}: name the server, \
                     or the next switch on the way to it",
                    socket.local()
                )));
            }
            Ok(peers.fix(found))
        };
        let upstream = server("upstream", &config.upstream)?;
        engine.set_default_server(upstream);
        let mut servers = BTreeSet::from([upstream]);
        for (job, text) in &config.routes {
            let peer = server(&format!("routes.{job}"), text)?;
            engine.set_server(JobId(*job), peer);
            servers.insert(peer);
        }
        let body = Body { engine, servers, upstream, unlimited };
        Ok(Self(Running::new("switch", Driver::new(body, peers, socket), config.core)))
    }

    /// The address it is bound to.
    #[must_use]
    pub fn address(&self) -> &str {
        self.0.address()
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system has no thread to give, or the switch was stopped.
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

    /// The answer to the question whether that cluster may join, which an `admission_wanted` among
    /// the events put; none: it is not known, so that the stated answer is given now. Says whether
    /// the question was still open.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn decide(&self, job: u32, cluster: u32, admitted: Option<bool>) -> Result<bool, AskError> {
        let ruling = admitted.map(|yes| if yes { Ruling::Admit } else { Ruling::Refuse });
        let (job, cluster) = (JobId(job), ClusterId(cluster));
        self.0.ask(move |driver| driver.party.engine.decide(clock::now(), job, cluster, ruling))
    }

    /// Stops the thread and frees the port.
    ///
    /// # Errors
    /// [`AskError::Died`] when the thread had panicked.
    pub fn stop(&self) -> Result<(), AskError> {
        self.0.stop()
    }
}

pub(crate) fn in_key(key: &str) -> impl Fn(String) -> StartError + use<> {
    let key = key.to_owned();
    move |error| StartError::Config(format!("{key}: {error}"))
}

/// The engine and who is above it.
struct Body {
    engine: switch::Switch,
    servers: BTreeSet<PeerId>,
    upstream: PeerId,
    unlimited: bool,
}

impl Party for Body {
    fn handle_packet(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> PassOn {
        let above = self.servers.contains(&from);
        let port = if above { PortId::UPLINK } else { PortId::DOWNLINK };
        match self.engine.handle_packet(now, Source { port, peer: from }, bytes) {
            Verdict::Forward(PortId::UPLINK) => PassOn::To(self.upstream),
            // Nothing in it says for which of the workers it is.
            Verdict::Forward(_) => PassOn::Nobody,
            Verdict::Absorb | Verdict::Drop(_) => PassOn::No,
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        self.engine
            .poll_transmit(now, PortId::UPLINK, buf)
            .or_else(|| self.engine.poll_transmit(now, PortId::DOWNLINK, buf))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout().map(|(at, _)| at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
    }

    fn poll_event(&mut self, peers: &Peers) -> Option<Value> {
        let event = self.engine.poll_event()?;
        let mut told = events::of_switch(&event, peers);
        if let Event::AdmissionWanted(_) = event {
            let running = self.engine.running().into_iter();
            told["running"] =
                running.map(|(job, cluster)| json!({"job": job.0, "cluster": cluster.0})).collect();
        }
        Some(told)
    }

    fn must_send_first(&self) -> bool {
        // Without a pacer what came in one batch has waited together in the socket, and merges.
        !self.unlimited || self.engine.must_send_first()
    }

    fn peers(&self) -> BTreeSet<PeerId> {
        self.engine.peers()
    }

    fn statistics(&self, now: Instant, peers: &Peers) -> Value {
        let mut statistics: Statistics = self.engine.statistics(now);
        let named = |address: &mut switch::PeerAddress| {
            if let switch::PeerAddress::Peer(peer) = address {
                *address = switch::PeerAddress::Named(peers.name(*peer));
            }
        };
        statistics.workers.iter_mut().for_each(|worker| named(&mut worker.address));
        statistics.switches.iter_mut().for_each(|switch| named(&mut switch.address));
        statistics.servers.iter_mut().for_each(|server| named(&mut server.address));
        let mut value = serde_json::to_value(statistics).expect("statistics are plain data");
        value["role"] = "switch".into();
        value
    }
}
