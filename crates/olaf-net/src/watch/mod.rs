//! What an operator sees of a role over HTTP: metrics, health, readiness, its status and a page.
//!
//! What this is: two threads beside a role. One serves HTTP; one asks the role for its statistics,
//! at most four times a second however many ask, so that no reader slows the packet thread.
//!
//! What it is not: it decides nothing, and nothing waits for it. A role without the setting
//! `metrics` has none of it.

mod http;
mod metrics;
mod places;
mod ready;
mod sampler;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod tests;
mod token;

pub use metrics::{catalogue, metrics, unmapped};
pub(crate) use sampler::Source;

use crate::error::StartError;
use crate::io::address;
use crate::roles::in_key;
use crate::system;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use token::Token;

/// Where to serve, for people: two keys of every role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) metrics: Option<&'a str>,
    pub(crate) metrics_token_file: Option<&'a str>,
}

/// The HTTP side of a role: bound, running or stopped.
pub(crate) struct Watch {
    address: SocketAddr,
    state: Mutex<State>,
}

enum State {
    Bound(TcpListener, Option<Token>),
    Running(Threads),
    Stopped,
}

struct Threads {
    stop: tokio::sync::watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Watch {
    /// Binds the address; none where the setting names none.
    ///
    /// # Errors
    /// [`StartError::Config`] names the key: an address beyond loopback needs a token.
    /// [`StartError::System`] where the address is in use.
    pub(crate) fn bind(setting: Setting<'_>) -> Result<Option<Self>, StartError> {
        let token = setting.metrics_token_file.map(Token::read).transpose()?;
        let Some(text) = setting.metrics else { return Ok(None) };
        let wanted = address::resolve(text, |_| true).map_err(in_key("metrics"))?;
        if token.is_none() && !wanted.ip().is_loopback() {
            return Err(StartError::Config(format!(
                "metrics = {text:?}: other machines could read it: give metrics_token_file, or \
                 listen on 127.0.0.1"
            )));
        }
        let system = |error: io::Error| {
            let what = match error.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "cannot serve metrics on {wanted}: another program has the port: stop that one \
                     (`{}` names it), or choose another port with --metrics HOST:PORT (port 0 picks \
                     a free one)",
                    system::WHO_LISTENS_TCP
                ),
                _ => format!("cannot serve metrics on {wanted}"),
            };
            StartError::System(what, error)
        };
        let listener = TcpListener::bind(wanted).map_err(system)?;
        listener.set_nonblocking(true).map_err(system)?;
        let address = listener.local_addr().map_err(system)?;
        Ok(Some(Self { address, state: Mutex::new(State::Bound(listener, token)) }))
    }

    /// The address it is bound to.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves what `source` says; nothing when it serves already.
    ///
    /// # Errors
    /// Where the system has no thread to give, or it was stopped.
    pub(crate) fn start(&self, source: Source) -> Result<(), StartError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Stopped) {
            State::Bound(listener, token) => {
                *state = State::Running(self.threads(listener, token, source)?);
                Ok(())
            }
            State::Running(threads) => {
                *state = State::Running(threads);
                Ok(())
            }
            State::Stopped => Err(StartError::Config("metrics: was stopped".into())),
        }
    }

    fn threads(
        &self,
        listener: TcpListener,
        token: Option<Token>,
        source: Source,
    ) -> Result<Threads, StartError> {
        let system = |error| StartError::System("cannot serve metrics".into(), error);
        let samples = sampler::start(source).map_err(system)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(system)?;
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let site = http::Site { samples, token };
        let serving = std::thread::Builder::new()
            .name("olaf-metrics".into())
            .spawn(move || runtime.block_on(http::serve(listener, site, stopped)))
            .map_err(system)?;
        Ok(Threads { stop, serving })
    }

    /// Ends the threads and frees the port.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Running(threads) = std::mem::replace(&mut *state, State::Stopped) {
            let _ = threads.stop.send(true);
            let _ = threads.serving.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}
