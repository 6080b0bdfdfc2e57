//! The parameter server as a process runs it: the host and its socket.

use crate::checkpoint::Keeper;
use crate::driver::{Driver, Running, events};
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::keys::Takes;
use crate::roles::server_config::ServerConfig;
use crate::roles::switch::in_key;
use crate::roles::{exposure, tenants};
use crate::watch::{Setting, Watch};
use crate::{io::address, random};
use olaf_engine::report::{self, Report};
use olaf_engine::seal::Signer;
use olaf_engine::{
    Engine, Event, Instant, JobId, PeerId, PortId, Source, Transmit, Verdict, Why, Wiring,
};
use olaf_host::push_pull::server::Server as Brain;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// A parameter server with its socket, in a thread of its own once started.
pub struct Server {
    running: Arc<Running<Kept>>,
    watch: Option<Watch>,
}

impl Server {
    /// Binds the socket; nothing runs yet.
    ///
    /// # Errors
    /// [`StartError::Config`] names the key; [`StartError::System`] says what to do.
    pub fn bind(config: &ServerConfig) -> Result<Self, StartError> {
        let brain = config.brain()?;
        let listen = address::resolve(&config.listen, |_| true).map_err(in_key("listen"))?;
        exposure::check("server", "listen", listen, config.may_be_reached())?;
        // Never from a seed: a life that looked like the one before would pass for it.
        let epoch = random::draw();
        let mut brain =
            Brain::new(brain, epoch).map_err(|error| StartError::Config(error.to_string()))?;
        // Behind keys a handshake has proved each address.
        if !config.has_keys() {
            brain.demand_proofs(Box::new(random::draw));
        }
        let socket = Socket::bind(listen)?.losing(config.receive_loss)?;
        let mut peers = Peers::new();
        for text in &config.switches_from {
            let found = address::resolve(text, |a| socket.reaches(a));
            brain.allow_switch(peers.fix(found.map_err(in_key("switches_from"))?));
        }
        let keys = tenants::secrets(Takes::Jobs, &config.key_files, &config.keys, &config.jobs)?;
        if let Some(keys) = &keys {
            brain.sign_models(keys.secrets.signer());
        }
        // Only the process that has the port writes the file.
        let keeper = config.keeper(&mut brain)?;
        let kept = Kept { brain, keeper, finished: false };
        // An end has one port, and nobody is above a server.
        let driver = Driver::new("server", kept, Wiring::end(), peers, socket).behind_files(keys);
        let watch = Watch::bind(Setting {
            metrics: config.metrics.as_deref(),
            metrics_token_file: config.metrics_token_file.as_deref(),
        })?;
        Ok(Self { running: Arc::new(Running::new(driver, config.core)), watch })
    }

    /// The address it is bound to.
    #[must_use]
    pub fn address(&self) -> &str {
        self.running.address()
    }

    /// The address that it serves metrics on, if it does.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.watch.as_ref().map(Watch::address)
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system has no thread to give, or the server was stopped.
    pub fn start(&self) -> Result<(), StartError> {
        self.running.start()?;
        let Some(watch) = &self.watch else { return Ok(()) };
        let running = self.running.clone();
        watch.start(Box::new(move || running.ask(Driver::status)))
    }

    /// Everything counted so far, as JSON.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn statistics(&self) -> Result<String, AskError> {
        self.running.ask(Driver::statistics)
    }

    /// What happened since the last call, a JSON object each.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn events(&self) -> Result<Vec<String>, AskError> {
        let events = self.running.ask(Driver::take_events)?;
        Ok(events.into_iter().map(|event| event.to_string()).collect())
    }

    /// A job's model now: its version and parameters; nothing while it has none.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn model(&self, job: u32) -> Result<Option<(u32, Vec<f32>)>, AskError> {
        self.running.ask(move |driver| {
            let (version, segments) = driver.engine.brain.model(JobId(job))?;
            Some((version, segments.flatten().copied().collect()))
        })
    }

    /// Takes nothing in any more, and writes the last checkpoint where there is one to write;
    /// events tell what failed. Nothing when that was done before.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn finish(&self) -> Result<(), AskError> {
        let finish = self.running.ask(|driver| {
            let kept: &mut Kept = &mut driver.engine;
            kept.finished = true;
            kept.keeper.as_mut().and_then(|keeper| keeper.finish(&kept.brain))
        })?;
        let Some(finish) = finish else { return Ok(()) };
        let finished = finish.wait();
        self.running.ask(|driver| {
            if let Some(keeper) = &mut driver.engine.keeper {
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
        self.watch.iter().for_each(Watch::stop);
        self.running.stop().and(finished)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.finish();
        // Whoever still asks for statistics holds no port.
        let _ = self.running.stop();
    }
}

/// A server and its checkpoints.
struct Kept {
    brain: Brain,
    keeper: Option<Keeper>,
    /// The last checkpoint is written: nothing may change any more.
    finished: bool,
}

impl Engine for Kept {
    fn comes_from(&mut self, address: olaf_engine::engine::Place) {
        self.brain.comes_from(address);
    }

    fn take_signer(&mut self, now: Instant, signer: Box<dyn Signer>) {
        self.brain.take_signer(now, signer);
    }

    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        if self.finished { Verdict::Absorb } else { self.brain.handle_packet(now, from, bytes) }
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.brain.poll_transmit(now, port, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        if self.finished {
            return None;
        }
        let keeper = self.keeper.as_ref().map(|keeper| (keeper.poll_timeout(), Why::Checkpoint));
        self.brain.poll_timeout().into_iter().chain(keeper).min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.finished {
            return;
        }
        self.brain.handle_timeout(now);
        if let Some(keeper) = &mut self.keeper {
            keeper.handle_timeout(now, &mut self.brain);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.brain.poll_event();
        event.or_else(|| Some(events::of_json(&self.keeper.as_mut()?.poll_event()?)))
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.brain.peers(keep);
    }

    fn job_of(&self, at: Source, message: &[u8]) -> Option<u32> {
        self.brain.job_of(at, message)
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.brain.report(now, to);
        let checkpoint = self.keeper.as_ref().map(Keeper::statistics);
        report::walk(&BTreeMap::from([("checkpoint", checkpoint)]), to);
    }
}
