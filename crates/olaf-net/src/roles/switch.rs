//! The switch as a process runs it: the engine and its socket.

use crate::driver::{Driver, Party, PassOn};
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::roles::switch_config::SwitchConfig;
use crate::running::Running;
use crate::{clock, events, io::address, random};
use olaf_engine::switch::native::{self as switch, Ruling, Statistics};
use olaf_engine::{
    ClusterId, Engine, Event, Instant, JobId, PeerId, PortId, Source, Transmit, Verdict,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An aggregation switch with its socket, in a thread of its own once started.
pub struct Switch(Running<Body>);

impl Switch {
    /// Binds the socket and finds the servers; nothing runs yet.
    ///
    /// # Errors
    /// [`StartError::Config`] names the key; [`StartError::System`] says what to do.
    pub fn bind(config: &SwitchConfig) -> Result<Self, StartError> {
        let engine = config.engine()?;
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
        let body = Body { engine, servers, upstream };
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
}

impl Party for Body {
    fn handle_packet(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> PassOn {
        let above = self.servers.contains(&from);
        let port = if above { PortId::UPLINK } else { PortId::DOWNLINK };
        match self.engine.handle_packet(now, Source::new(port, from), bytes) {
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
        self.engine.must_drain()
    }

    fn peers(&self) -> BTreeSet<PeerId> {
        let mut known = BTreeSet::new();
        self.engine.peers(&mut |peer| {
            known.insert(peer);
        });
        known
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
