//! The switch as a process runs it: its engines, each with a socket and a thread of its own.

use crate::driver::{Driver, Running};
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::keys::{self, Given, Takes};
use crate::roles::reduce::{engines, together};
use crate::roles::summing::engine;
use crate::roles::switch_config::{EngineKind, SwitchConfig};
use crate::roles::{atp, exposure, tenants};
use crate::watch::{Setting, Watch};
use crate::{clock, io::address, random};
use olaf_engine::party::Ruling;
use olaf_engine::switch::{iswitch, native, trio};
use olaf_engine::{ClusterId, Engine, JobId, PortId, Wiring};
use olaf_wire::sealed::OVERHEAD;
use serde_json::{Map, Value, json};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// An aggregation switch with its sockets. Each engine is in a thread of its own once started; the
/// engine `reduce` is in one for each core.
pub struct Switch {
    /// In the order of the configuration.
    engines: Arc<Vec<Served>>,
    watch: Option<Watch>,
    /// Events that no engine tells; whoever asks first takes them.
    own_events: Mutex<Vec<Value>>,
}

/// An engine that is served.
enum Served {
    Queue(Running<native::Switch>),
    /// An engine that sums: one for each core.
    Sums(EngineKind, Vec<Box<dyn Serving>>),
}

impl Switch {
    /// Binds the sockets and finds the servers; nothing runs yet.
    ///
    /// # Errors
    /// [`StartError::Config`] names the key; [`StartError::System`] says what to do.
    pub fn bind(config: &SwitchConfig) -> Result<Self, StartError> {
        // Where the server of ATP listens, if it is one of the engines.
        let mut atp_server = None;
        let places = config.places()?.into_iter();
        // It is made first.
        let (first, others): (Vec<_>, Vec<_>) =
            places.partition(|(kind, _)| *kind == EngineKind::AtpServer);
        let engines = first.into_iter().chain(others).map(|(kind, listen)| {
            let key = match config.listen_at.contains_key(&kind) {
                true => format!("listen_at.{kind}"),
                false => "listen".into(),
            };
            Ok(match kind {
                EngineKind::Queue => Served::Queue(queue(config, &key, &listen)?),
                EngineKind::Iswitch => {
                    let engine = engine::<iswitch::Switch>(config, &config.iswitch, &key, &listen)?;
                    Served::Sums(kind, vec![Box::new(engine)])
                }
                EngineKind::Trio => {
                    let engine = engine::<trio::Switch>(config, &config.trio, &key, &listen)?;
                    Served::Sums(kind, vec![Box::new(engine)])
                }
                EngineKind::Atp => {
                    let engine = atp::switch(config, &key, &listen, atp_server.as_deref())?;
                    Served::Sums(kind, vec![Box::new(engine)])
                }
                EngineKind::AtpServer => {
                    let engine = atp::server(config, &key, &listen)?;
                    atp_server = Some(engine.address().to_owned());
                    Served::Sums(kind, vec![Box::new(engine)])
                }
                EngineKind::Reduce => Served::Sums(kind, boxed(engines(config, &key, &listen)?)),
            })
        });
        let mut engines: Vec<Served> = engines.collect::<Result<_, StartError>>()?;
        let place = |served: &Served| config.engines.iter().position(|kind| *kind == served.kind());
        engines.sort_by_key(place);
        let watch = Watch::bind(Setting {
            metrics: config.metrics.as_deref(),
            metrics_token_file: config.metrics_token_file.as_deref(),
        })?;
        let own_events = Mutex::new(keys_of_jobs(config));
        Ok(Self { engines: Arc::new(engines), watch, own_events })
    }

    /// The address of its first engine.
    #[must_use]
    pub fn address(&self) -> &str {
        self.engines[0].first().address()
    }

    /// The address of each engine, by the engine's name.
    #[must_use]
    pub fn addresses(&self) -> Vec<(&'static str, &str)> {
        self.engines.iter().map(|e| (e.kind().name(), e.first().address())).collect()
    }

    /// The address that it serves metrics on, if it does.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.watch.as_ref().map(Watch::address)
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// Where the system has no thread to give, or the switch was stopped.
    pub fn start(&self) -> Result<(), StartError> {
        self.running().try_for_each(Serving::start)?;
        let Some(watch) = &self.watch else { return Ok(()) };
        let engines = self.engines.clone();
        watch.start(Box::new(move || all_of(&engines, |engine| engine.status())))
    }

    /// Everything counted so far, as JSON: the counts of the engine `queue`, and those of each other
    /// engine in a table with its name.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn statistics(&self) -> Result<String, AskError> {
        all_of(&self.engines, |engine| engine.report()).map(|all| all.to_string())
    }

    /// What happened since the last call, a JSON object each. An event of an engine other than
    /// `queue` names the engine, and its core where there are several.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn events(&self) -> Result<Vec<String>, AskError> {
        let own =
            std::mem::take(&mut *self.own_events.lock().unwrap_or_else(PoisonError::into_inner));
        let mut all: Vec<String> = own.iter().map(Value::to_string).collect();
        for engine in self.engines.iter() {
            let each = engine.each();
            let has_cores = each.len() > 1;
            for (core, running) in each.into_iter().enumerate() {
                let events = running.events()?.into_iter().map(|mut event| {
                    if engine.kind() != EngineKind::Queue {
                        event["engine"] = engine.kind().name().into();
                    }
                    if has_cores {
                        event["core"] = core.into();
                    }
                    event.to_string()
                });
                all.extend(events);
            }
        }
        Ok(all)
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
        let queue = self.engines.iter().find_map(|engine| match engine {
            Served::Queue(running) => Some(running),
            Served::Sums(..) => None,
        });
        // Only the queue asks.
        let Some(queue) = queue else { return Ok(false) };
        queue.ask(move |driver| driver.engine.decide(clock::now(), job, cluster, ruling))
    }

    /// Stops the threads and frees the ports.
    ///
    /// # Errors
    /// [`AskError::Died`] when a thread had panicked.
    pub fn stop(&self) -> Result<(), AskError> {
        self.watch.iter().for_each(Watch::stop);
        // All of them, whatever became of the first.
        let ends: Vec<_> = self.running().map(Serving::stop).collect();
        ends.into_iter().collect()
    }

    fn running(&self) -> impl Iterator<Item = &dyn Serving> {
        self.engines.iter().flat_map(Served::each)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // Whoever still asks for statistics holds no port.
        let _ = self.stop();
    }
}

/// What each engine says, in one table: that of the engine `queue`, and that of each other engine in a
/// table with its name.
fn all_of(
    engines: &[Served],
    say: impl Fn(&dyn Serving) -> Result<Value, AskError>,
) -> Result<Value, AskError> {
    let mut all = Map::new();
    let mut recent = Vec::new();
    for engine in engines {
        let mut each = engine.each().into_iter().map(&say).collect::<Result<Vec<_>, _>>()?;
        for one in &mut each {
            let events = one.as_object_mut().and_then(|one| one.remove("recent_events"));
            if let Some(Value::Array(events)) = events {
                recent.extend(events);
            }
        }
        match (engine, together(each)) {
            (Served::Queue(_), Value::Object(counts)) => all.extend(counts),
            (_, counts) => {
                for shared in ["role", "address", "uptime_s"] {
                    all.entry(shared).or_insert_with(|| counts[shared].clone());
                }
                all.insert(engine.kind().name().into(), counts);
            }
        }
    }
    if !recent.is_empty() {
        // The newest last, whichever engine it is of.
        let ago = |event: &Value| event["s_ago"].as_f64().unwrap_or(0.0);
        recent.sort_by(|a, b| ago(b).total_cmp(&ago(a)));
        all.insert("recent_events".into(), recent.into());
    }
    Ok(Value::Object(all))
}

impl Served {
    const fn kind(&self) -> EngineKind {
        match self {
            Self::Queue(_) => EngineKind::Queue,
            Self::Sums(kind, _) => *kind,
        }
    }

    /// The first of them.
    fn first(&self) -> &dyn Serving {
        match self {
            Self::Queue(running) => running,
            Self::Sums(_, cores) => &*cores[0],
        }
    }

    fn each(&self) -> Vec<&dyn Serving> {
        match self {
            Self::Queue(running) => vec![running],
            Self::Sums(_, cores) => cores.iter().map(|running| &**running).collect(),
        }
    }
}

/// What a switch does alike with each of its engines.
trait Serving: Send + Sync {
    fn address(&self) -> &str;
    fn start(&self) -> Result<(), StartError>;
    fn report(&self) -> Result<Value, AskError>;
    fn status(&self) -> Result<Value, AskError>;
    fn events(&self) -> Result<Vec<Value>, AskError>;
    fn stop(&self) -> Result<(), AskError>;
}

impl<E: Engine + Send + 'static> Serving for Running<E> {
    fn address(&self) -> &str {
        self.address()
    }
    fn start(&self) -> Result<(), StartError> {
        self.start()
    }
    fn report(&self) -> Result<Value, AskError> {
        self.ask(Driver::report)
    }
    fn status(&self) -> Result<Value, AskError> {
        self.ask(Driver::status)
    }
    fn events(&self) -> Result<Vec<Value>, AskError> {
        self.ask(Driver::take_events)
    }
    fn stop(&self) -> Result<(), AskError> {
        self.stop()
    }
}

fn boxed<E: Engine + Send + 'static>(each: Vec<Running<E>>) -> Vec<Box<dyn Serving>> {
    each.into_iter().map(|running| Box::new(running) as Box<dyn Serving>).collect()
}

/// The engine `queue`, with its servers.
fn queue(
    config: &SwitchConfig,
    key: &str,
    listen: &str,
) -> Result<Running<native::Switch>, StartError> {
    let engine = config.engine()?;
    // Never from a seed: a life that looked like the one before would pass for it.
    let epoch = random::draw();
    let mut engine = native::Switch::new(engine, epoch)
        .map_err(|error| StartError::Config(error.to_string()))?;
    // Behind keys a handshake has proved each address.
    if !config.has_keys() {
        engine.demand_proofs(Box::new(random::draw));
    }
    let listen = listen_of(config, key, listen)?;
    let socket = Socket::bind(listen)?.losing(config.receive_loss)?;
    let mut peers = Peers::new();
    let mut server = |key: &str, text: &str| {
        let found =
            above(&socket, key, text, "name the server, or the next switch on the way to it");
        Ok::<_, StartError>(peers.fix(found?))
    };
    let upstream = server("upstream", &config.upstream)?;
    engine.set_default_server(upstream);
    let mut wiring = Wiring::new(PortId::DOWNLINK).with(upstream, PortId::UPLINK);
    for (job, text) in &config.routes {
        let peer = server(&format!("routes.{job}"), text)?;
        engine.set_server(JobId(*job), peer);
        wiring.place(peer, PortId::UPLINK);
    }
    for text in &config.switches_from {
        let found =
            address::resolve(text, |a| socket.reaches(a)).map_err(in_key("switches_from"))?;
        engine.allow_switch(peers.fix(found));
    }
    for text in &config.pass_from {
        let found = address::resolve(text, |a| socket.reaches(a)).map_err(in_key("pass_from"))?;
        engine.pass_on_from(peers.fix(found));
    }
    let driver =
        Driver::new("switch", engine, wiring, peers, socket).behind_files(keys_of(config)?);
    Ok(Running::new(driver, config.core))
}

/// The keys of the parties that may talk to the switch's engines; none: everybody may.
pub(super) fn keys_of(config: &SwitchConfig) -> Result<Option<Given>, StartError> {
    tenants::secrets(Takes::Both, &config.key_files, &config.keys, &config.jobs)
}

/// An event for each file of a job's key: with it the switch could sign models. That does no harm on
/// one machine, so the switch serves all the same.
fn keys_of_jobs(config: &SwitchConfig) -> Vec<Value> {
    let listed = config.jobs.iter().filter_map(|one| one.key_file.as_deref());
    let files = config.key_files.iter().map(String::as_str).chain(listed);
    let told = |file| json!({"at_ns": clock::now().0, "event": "key_of_a_job", "file": file});
    keys::files_of_jobs(files).into_iter().map(told).collect()
}

/// Where an engine listens, if this switch may listen there.
pub(super) fn listen_of(
    config: &SwitchConfig,
    key: &str,
    listen: &str,
) -> Result<SocketAddr, StartError> {
    let found = address::resolve(listen, |_| true).map_err(in_key(key))?;
    exposure::check("switch", key, found, config.may_be_reached())?;
    Ok(found)
}

/// The address above this switch that a key names.
pub(super) fn above(
    socket: &Socket,
    key: &str,
    text: &str,
    advice: &str,
) -> Result<SocketAddr, StartError> {
    let found = address::resolve(text, |a| socket.reaches(a)).map_err(in_key(key))?;
    if socket.is_at(found) {
        return Err(StartError::Config(format!(
            "{key} = {text:?}: is this switch itself, which listens on {}: {advice}",
            socket.local()
        )));
    }
    Ok(found)
}

/// The longest message that the path to that address takes, as the system says.
pub(super) fn longest_datagram_to(
    config: &SwitchConfig,
    address: SocketAddr,
) -> Result<u32, StartError> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let mut probe = Socket::bind(any)?;
    probe
        .connect(address)
        .map_err(|error| StartError::System(format!("no route to {address}"), error))?;
    let longest = address::longest_datagram(address.is_ipv6(), probe.path_mtu());
    let seal = if config.has_keys() { OVERHEAD as u32 } else { 0 };
    Ok(longest.saturating_sub(seal))
}

pub(crate) fn in_key(key: &str) -> impl Fn(String) -> StartError + use<> {
    let key = key.to_owned();
    move |error| StartError::Config(format!("{key}: {error}"))
}
