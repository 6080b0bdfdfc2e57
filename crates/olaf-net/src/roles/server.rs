//! The parameter server as a process runs it: the host and its socket.

use crate::checkpoint::Keeper;
use crate::driver::{Driver, Party, PassOn};
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::roles::server_config::ServerConfig;
use crate::roles::switch::in_key;
use crate::running::Running;
use crate::{events, io::address, random};
use olaf_engine::{Instant, JobId, PeerId, Transmit};
use olaf_host::{Host, push_pull::server::Server as Brain};
use serde_json::Value;
use std::collections::BTreeSet;

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
