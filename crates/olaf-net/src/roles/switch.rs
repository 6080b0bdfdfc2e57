//! The switch as a process runs it: the engine and its socket.

use crate::driver::{Driver, Running};
use crate::error::{AskError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::roles::switch_config::SwitchConfig;
use crate::{clock, io::address, random};
use olaf_engine::party::Ruling;
use olaf_engine::switch::native as switch;
use olaf_engine::{ClusterId, JobId, PortId, Wiring};

/// An aggregation switch with its socket, in a thread of its own once started.
pub struct Switch(Running<switch::Switch>);

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
        let socket = Socket::bind(listen)?.losing(config.receive_loss)?;
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
        let mut wiring = Wiring::new(PortId::DOWNLINK).with(upstream, PortId::UPLINK);
        for (job, text) in &config.routes {
            let peer = server(&format!("routes.{job}"), text)?;
            engine.set_server(JobId(*job), peer);
            wiring.place(peer, PortId::UPLINK);
        }
        let driver = Driver::new("switch", engine, wiring, peers, socket);
        Ok(Self(Running::new(driver, config.core)))
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
        self.0.ask(move |driver| driver.engine.decide(clock::now(), job, cluster, ruling))
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
