//! A worker's end of a job: sends from the caller's thread, receives in one of its own.

mod config;
mod probe;
pub(crate) mod words;

pub use config::ClientConfig;
pub use probe::{Probing, ProbingConfig};

use crate::clock::{self, deadline};
use crate::driver::aged;
use crate::driver::shared::Shared;
use crate::error::{ClientError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::watch::{Setting, Watch};
use crate::{keys, random};
use olaf_host::push_pull::worker::{PushError, Standing, TooNarrow};
use olaf_host::{Worker, WorkerConfig};
use olaf_wire::{Address, ClusterId, JobId, Session, WelcomeCode, WorkerId};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a leave waits for a full socket.
const LEAVE_PATIENCE: Duration = Duration::from_millis(200);

/// A worker with its socket. Every call may come from any thread.
pub struct Client {
    shared: Arc<Shared<Worker>>,
    address: Address,
    switch: SocketAddr,
    local: SocketAddr,
    /// Updates without a known end that an earlier flush has told of.
    unconfirmed_told: AtomicU64,
    watch: Option<Watch>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A join under way.
#[derive(Clone, Copy, Debug)]
pub struct Joining {
    since: Instant,
    parameters: usize,
    refused_before: u64,
}

/// A flush under way.
#[derive(Clone, Copy, Debug)]
pub struct Flushing {
    unconfirmed: u64,
}

impl Flushing {
    /// Waits for the end of the flush, at most for `timeout`. Returns whether it has ended.
    #[must_use]
    pub fn await_flush(self, client: &Client, timeout: Duration) -> bool {
        let known = |worker: &mut Worker| {
            let (awaited, unconfirmed) = worker.without_end();
            let sent = !worker.has_unsent() && client.shared.is_sent();
            (sent && awaited == 0 && unconfirmed <= self.unconfirmed).then_some(())
        };
        client.shared.wait_until(deadline(timeout), known).is_some()
    }
}

impl Client {
    /// Opens the socket and starts the thread; sends nothing yet. Without a `worker` id one is
    /// drawn.
    ///
    /// # Errors
    /// [`StartError::Config`] for an address or a key that cannot be used.
    pub fn open(
        switch: &str,
        job: u32,
        cluster: u32,
        worker: Option<u32>,
        config: &ClientConfig,
    ) -> Result<Self, StartError> {
        let drawn = config.seed.map_or_else(random::draw, random::from_seed);
        // Never from the seed: a worker that starts again with the same one lives another life,
        // and its updates count from 0 again.
        let session = random::draw();
        let worker = worker.unwrap_or(drawn);
        if worker == WorkerId::ALL.0 {
            return Err(StartError::Config(format!(
                "worker: {worker} stands for all workers; give another id"
            )));
        }
        let (socket, switch) = Socket::towards(switch, Socket::bind)?;
        let address = Address {
            job: JobId(job),
            cluster: ClusterId(cluster),
            worker: WorkerId(worker),
            session: Session(session),
        };
        let mut peers = Peers::new();
        let peer = peers.fix(switch);
        let set_up = config.worker(address, peer, switch.is_ipv6(), socket.path_mtu())?;
        let chance_seed = u64::from(worker) << 32 | u64::from(session);
        let mut worker = Worker::new(WorkerConfig { chance_seed, ..set_up });
        let local = socket.local();
        let keys = keys::secrets_for(job, config.key_file.as_ref(), config.key.as_ref())?;
        if let Some(keys) = &keys {
            worker.check_models(keys.secrets.signer());
        }
        let shared = Shared::new(socket, peers, peer, worker, keys)
            .map_err(|error| StartError::System("cannot open a client".into(), error))?;
        let shared = Arc::new(shared);
        shared.renew_keys()?;
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("olaf-client".into())
            .spawn(move || theirs.run())
            .map_err(|error| StartError::System("cannot start a client's thread".into(), error))?;
        let watch = Watch::bind(Setting {
            metrics: config.metrics.as_deref(),
            metrics_token_file: config.metrics_token_file.as_deref(),
        })?;
        let unconfirmed_told = AtomicU64::new(0);
        let thread = Mutex::new(Some(thread));
        if let Some(watch) = &watch {
            let (shared, started) = (shared.clone(), clock::now());
            watch.start(Box::new(move || Ok(status(&shared, local, started))))?;
        }
        Ok(Self { shared, address, switch, local, unconfirmed_told, watch, thread })
    }

    /// This worker's id in the job.
    #[must_use]
    pub const fn worker(&self) -> u32 {
        self.address.worker.0
    }

    /// The address it sends from.
    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Joins the job, offering `weights` as its first model; returns the model's version.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] at the deadline, [`ClientError::Refused`] with the reason.
    pub fn join(&self, weights: &[&[f32]], timeout: Duration) -> Result<u32, ClientError> {
        let joining = self.start_join(weights, None)?;
        self.await_join(&joining, timeout).unwrap_or_else(|| Err(self.give_up(&joining)))
    }

    /// Asks to be let in, and returns at once. `layout` tells the server the names and shapes of
    /// the model's arrays: see [`Worker::describe`].
    ///
    /// # Errors
    /// [`ClientError::Usage`] for a model that cannot be, or a layout that is not the model's.
    pub fn start_join(
        &self,
        weights: &[&[f32]],
        layout: Option<&str>,
    ) -> Result<Joining, ClientError> {
        self.alive()?;
        let refused_before = self.shared.connections_refused();
        self.shared.with(|worker| {
            if worker.standing() == Standing::Left {
                return Err(ClientError::Usage("this client has left: open a new one".into()));
            }
            if let Some(layout) = layout {
                let parameters = weights.iter().map(|part| part.len()).sum::<usize>();
                let parameters = u32::try_from(parameters).unwrap_or(u32::MAX);
                let described = worker.describe(layout, parameters);
                described.map_err(|error| ClientError::Usage(format!("layout: {error}")))?;
            }
            let result = worker.join(clock::now(), weights);
            result.map_err(|error| match error {
                PushError::NonFinite { index } => ClientError::Usage(format!(
                    "weight {index} is NaN or infinite: give finite weights"
                )),
                _ => ClientError::Usage("the model has no parameters, or too many".into()),
            })
        })?;
        self.shared.transmit();
        let parameters = weights.iter().map(|part| part.len()).sum();
        Ok(Joining { since: Instant::now(), parameters, refused_before })
    }

    /// Waits for the outcome: the model's version, or why not; nothing when it is still open.
    pub fn await_join(
        &self,
        joining: &Joining,
        timeout: Duration,
    ) -> Option<Result<u32, ClientError>> {
        self.shared.wait_until(deadline(timeout), |worker| match worker.standing() {
            Standing::Joined => Some(Ok(worker.model().map_or(0, |model| model.version))),
            Standing::Joining => None,
            // These pass when the owner of the id, perhaps this worker's own earlier life, is
            // forgotten: the worker tries on.
            Standing::TurnedAway(code) if code.may_pass() => None,
            Standing::TurnedAway(code) => {
                Some(Err(self.refused_because(code, joining.parameters, worker.too_narrow())))
            }
            Standing::Outside | Standing::Left => {
                Some(Err(ClientError::Usage("this client has left: open a new one".into())))
            }
        })
    }

    /// Why nothing has come of the join so far.
    #[must_use]
    pub fn give_up(&self, joining: &Joining) -> ClientError {
        let (statistics, standing) =
            self.shared.with(|worker| (worker.statistics(clock::now()), worker.standing()));
        if let Standing::TurnedAway(code) = standing {
            return self.refused(code, joining.parameters);
        }
        ClientError::Unreachable(words::unreachable(
            self.switch,
            self.address.job,
            joining.since.elapsed(),
            &statistics,
            self.shared.connections_refused() > joining.refused_before,
            self.shared.key_advice(),
            self.shared.key_is_taken(),
        ))
    }

    /// Sends one update and returns its sequence number. Never waits for an answer.
    ///
    /// # Errors
    /// [`ClientError::Usage`] for values that cannot be sent.
    pub fn push(&self, parts: &[&[f32]], reward: f64, weight: f64) -> Result<u32, ClientError> {
        let refused = |worker: &Worker, error| match (error, worker.standing()) {
            (PushError::NotJoined, Standing::TurnedAway(code)) => {
                let parameters = parts.iter().map(|part| part.len()).sum();
                self.refused_because(code, parameters, worker.too_narrow())
            }
            (error, _) => ClientError::Usage(error.to_string()),
        };
        let sent = self.shared.send_lent(
            |worker| {
                let lent = worker.push_lent(clock::now(), parts, reward, weight);
                lent.map_err(|error| refused(worker, error))
            },
            |worker, lent, now, buf| worker.poll_transmit_lent(now, lent, buf),
            |worker, lent| worker.keep(lent),
        );
        if let Some(sent) = sent {
            return sent.map(|lent| lent.sequence());
        }
        // Another thread sends, and sends this, too.
        let sequence = self.shared.with(|worker| {
            let pushed = worker.push(clock::now(), parts, reward, weight);
            pushed.map_err(|error| refused(worker, error))
        })?;
        self.shared.transmit();
        Ok(sequence)
    }

    /// Copies the newest complete model into `parts` if its version is above `newer_than`.
    ///
    /// # Errors
    /// [`ClientError::Usage`] when `parts` are not of the model's size.
    pub fn pull(
        &self,
        parts: &mut [&mut [f32]],
        newer_than: u32,
    ) -> Result<Option<u32>, ClientError> {
        let have: usize = parts.iter().map(|part| part.len()).sum();
        self.shared.with(|worker| {
            let Some(model) = worker.model().filter(|m| worker.is_newer(m.version, newer_than))
            else {
                return Ok(None);
            };
            if model.lanes.len() != have {
                return Err(ClientError::Usage(format!(
                    "the parts have {have} values together; the job's model has {}",
                    model.lanes.len()
                )));
            }
            let mut rest = model.lanes.as_slice();
            for part in parts {
                let (now, later) = rest.split_at(part.len());
                part.copy_from_slice(now);
                rest = later;
            }
            let version = model.version;
            worker.taken(version);
            Ok(Some(version))
        })
    }

    /// Waits until a complete model above `newer_than` is here; its version, or nothing at the
    /// deadline.
    #[must_use]
    pub fn wait(&self, newer_than: u32, timeout: Duration) -> Option<u32> {
        self.shared.wait_until(deadline(timeout), |worker| {
            let version = worker.model().map(|model| model.version);
            version.filter(|version| worker.is_newer(*version, newer_than))
        })
    }

    /// Asks the server for its newest model. Never waits; see [`Client::wait_refreshed`].
    pub fn refresh(&self) {
        self.shared.with(Worker::refresh);
        self.shared.transmit();
    }

    /// Waits until the answer to the last [`Client::refresh`] is here; false at the deadline.
    #[must_use]
    pub fn wait_refreshed(&self, timeout: Duration) -> bool {
        let is_here = |worker: &mut Worker| (!worker.is_refreshing()).then_some(());
        self.shared.wait_until(deadline(timeout), is_here).is_some()
    }

    /// Returns true if an update is under way: it waits here, or its end is not known yet.
    #[must_use]
    pub fn awaits_end(&self) -> bool {
        self.shared.with(|worker| worker.awaits_end())
    }

    /// Returns true if transmission control holds back what was pushed, so that no answer to it
    /// comes.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.shared.with(|worker| worker.statistics(clock::now()).held > 0)
    }

    /// Sends what transmission control holds back, and waits until it is known what became of each
    /// update sent so far: it reached the server, or it ended on the way. False at the deadline; so
    /// also where an update was lost, or its answer.
    #[must_use]
    pub fn flush(&self, timeout: Duration) -> bool {
        let all = self.start_flush().await_flush(self, timeout);
        self.end_flush();
        all
    }

    /// Begins a flush, for a caller that waits for it in pieces.
    #[must_use]
    pub fn start_flush(&self) -> Flushing {
        self.send_held();
        Flushing { unconfirmed: self.unconfirmed_told.load(Ordering::SeqCst) }
    }

    /// Ends the flush. Updates whose end will never be known have been reported once.
    pub fn end_flush(&self) {
        let told = self.shared.with(|worker| worker.without_end().1);
        self.unconfirmed_told.store(told, Ordering::SeqCst);
    }

    /// Waits until all that was pushed has left the socket; false at the deadline.
    fn drain(&self, timeout: Duration) -> bool {
        self.send_held();
        let sent =
            |worker: &mut Worker| (!worker.has_unsent() && self.shared.is_sent()).then_some(());
        self.shared.wait_until(deadline(timeout), sent).is_some()
    }

    fn send_held(&self) {
        self.shared.with(Worker::send_held);
        self.shared.transmit();
    }

    /// What the server does with an update, as its newest welcome says, as JSON; nothing before
    /// the first welcome.
    #[must_use]
    pub fn rule(&self) -> Option<String> {
        let rule = self.shared.with(|worker| worker.statistics(clock::now()).rule)?;
        Some(serde_json::to_string(&rule).expect("a rule is plain data"))
    }

    /// Everything counted so far, as JSON.
    #[must_use]
    pub fn statistics(&self) -> String {
        statistics(&self.shared, self.local).to_string()
    }

    /// The address that it serves metrics on, if it does.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.watch.as_ref().map(Watch::address)
    }

    /// What happened since the last call, a JSON object each.
    ///
    /// # Errors
    /// [`ClientError::Failed`] when the client's thread has died.
    pub fn events(&self) -> Result<Vec<String>, ClientError> {
        self.alive()?;
        Ok(self.shared.take_events().iter().map(ToString::to_string).collect())
    }

    /// Goes on in another cluster of the job.
    ///
    /// # Errors
    /// [`ClientError::Failed`] when the client's thread has died.
    pub fn move_to(&self, cluster: u32) -> Result<(), ClientError> {
        self.alive()?;
        self.shared.with(|worker| worker.move_to(clock::now(), ClusterId(cluster)));
        self.shared.transmit();
        Ok(())
    }

    /// Leaves the job and stops the thread; nothing when that was done before.
    pub fn leave(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        self.watch.iter().for_each(Watch::stop);
        self.shared.with(Worker::leave);
        self.shared.transmit();
        // What a full socket still holds was counted as sent: it gets a moment to leave.
        let _ = self.drain(LEAVE_PATIENCE);
        self.shared.stop();
        let _ = thread.join();
    }

    fn refused(&self, code: WelcomeCode, parameters: usize) -> ClientError {
        self.refused_because(code, parameters, self.shared.with(|worker| worker.too_narrow()))
    }

    fn refused_because(
        &self,
        code: WelcomeCode,
        parameters: usize,
        narrow: Option<TooNarrow>,
    ) -> ClientError {
        ClientError::Refused(match narrow {
            Some(narrow) => words::too_narrow(self.switch, self.address.job, &narrow),
            None => words::refusal(code, &self.address, parameters),
        })
    }

    fn alive(&self) -> Result<(), ClientError> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        match &*thread {
            Some(thread) if thread.is_finished() => {
                Err(ClientError::Failed("the client's thread died, which is a bug in Olaf".into()))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Everything counted so far.
fn statistics(shared: &Shared<Worker>, local: SocketAddr) -> Value {
    let mut all = shared.report();
    all["role"] = "worker".into();
    all["address"] = local.to_string().into();
    all["io"] = serde_json::to_value(shared.io_statistics()).expect("counts are plain data");
    all
}

/// The statistics, the time since the start, and the newest events.
fn status(shared: &Shared<Worker>, local: SocketAddr, started: olaf_engine::Instant) -> Value {
    let mut all = statistics(shared, local);
    let now = clock::now();
    all["uptime_s"] = now.since(started).as_secs_f64().into();
    all["recent_events"] = aged(shared.recent_events(), now).into();
    all
}
