//! A probe of the path to a switch or a server, with its socket.

use crate::clock::{self, deadline};
use crate::driver::shared::Shared;
use crate::error::StartError;
use crate::io::address::{header_bytes, longest_datagram};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::{json, keys, random};
use olaf_host::push_pull::{Probe, ProbeConfig};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::sealed::OVERHEAD;
use olaf_wire::{Address, ClusterId, JobId, Session, WorkerId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// What a probe asks, as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbingConfig {
    /// Job that the questions name; no such job begins.
    pub job: u32,
    /// Parameters of the model that the questions name.
    pub parameters: u32,
    /// Number of short questions. The loss is that of these.
    pub questions: u32,
    /// Milliseconds between two of them.
    pub every_ms: u64,
    /// The probe ends after this many milliseconds without an answer.
    pub patience_ms: u64,
    /// File with the key of the job. Off: none is needed.
    pub key_file: Option<String>,
}

impl Default for ProbingConfig {
    fn default() -> Self {
        Self {
            job: 1,
            parameters: 1,
            questions: 100,
            every_ms: 10,
            patience_ms: 3_000,
            key_file: None,
        }
    }
}

impl ProbingConfig {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`StartError::Config`] that names the key.
    pub fn from_json(text: &str) -> Result<Self, StartError> {
        let config: Self = json::read("probe", text)?;
        let above_zero = [
            ("parameters", u64::from(config.parameters)),
            ("questions", u64::from(config.questions)),
            ("every_ms", config.every_ms),
            ("patience_ms", config.patience_ms),
        ];
        match above_zero.into_iter().find(|(_, value)| *value == 0) {
            Some((key, _)) => Err(StartError::Config(format!("probe: {key} = 0: must be above 0"))),
            None => Ok(config),
        }
    }
}

/// A probe under way. The thread ends with it.
pub struct Probing {
    shared: Arc<Shared<Probe>>,
    to: String,
    local: String,
    is_v6: bool,
    thread: Option<JoinHandle<()>>,
}

impl Probing {
    /// Opens a socket towards `to` and begins to ask.
    ///
    /// # Errors
    /// [`StartError::Config`] for an address or a key that cannot be used.
    pub fn begin(to: &str, config: &ProbingConfig) -> Result<Self, StartError> {
        let system = |error| StartError::System("cannot open a probe".into(), error);
        let (socket, there) = Socket::towards(to, Socket::bind)?;
        let address = Address {
            job: JobId(config.job),
            cluster: ClusterId(0),
            // Only the number that stands for all workers may not be one's own.
            worker: WorkerId(random::draw().min(u32::MAX - 1)),
            session: Session(random::draw()),
        };
        let mut peers = Peers::new();
        let peer = peers.fix(there);
        let keys = keys::secrets_for(config.job, config.key_file.as_ref(), None)?;
        let seal = if keys.is_some() { OVERHEAD } else { 0 };
        let is_v6 = there.is_ipv6();
        let small = |bytes: usize| u32::try_from(bytes).expect("headers are short");
        let largest = match socket.path_mtu() {
            Some(mtu) => longest_datagram(is_v6, Some(mtu)),
            None => small(MAX_DATAGRAM),
        };
        let probe = Probe::new(ProbeConfig {
            address,
            peer,
            parameters: config.parameters,
            questions: config.questions,
            every: Duration::from_millis(config.every_ms),
            patience: Duration::from_millis(config.patience_ms),
            largest: largest.saturating_sub(small(seal)),
            headers: small(header_bytes(is_v6) + seal),
        });
        let local = socket.local().to_string();
        let shared = Arc::new(Shared::new(socket, peers, peer, probe, keys).map_err(system)?);
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("olaf-probe".into())
            .spawn(move || theirs.run())
            .map_err(system)?;
        shared.with(|probe| probe.begin(clock::now()));
        Ok(Self { shared, to: there.to_string(), local, is_v6, thread: Some(thread) })
    }

    /// Waits at most for `timeout`; what was found, as JSON, once all was asked.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<String> {
        let done = |probe: &mut Probe| probe.is_done().then_some(());
        self.shared.wait_until(deadline(timeout), done)?;
        let mut told = self.shared.report();
        told["address"] = self.to.clone().into();
        told["local_address"] = self.local.clone().into();
        told["ipv6"] = self.is_v6.into();
        let advice = self.shared.key_advice();
        told["key_refused"] = advice.as_ref().is_some_and(|advice| advice.is_answer).into();
        told["key_advice"] = advice.map(|advice| advice.text).into();
        told["io"] =
            serde_json::to_value(self.shared.io_statistics()).expect("counts are plain data");
        Some(told.to_string())
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
