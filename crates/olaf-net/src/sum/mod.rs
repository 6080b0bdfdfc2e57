//! A worker's end of `reduce`: all workers of a job sum their arrays through a switch.
//!
//! Every call may come from any thread. A thread that waits for an operation receives datagrams
//! itself, so that a small operation costs no hop between threads.

mod config;
mod error;
mod operations;

pub use config::SumConfig;
pub use error::{SumError, SumFailure};

use crate::clock::{self, deadline};
use crate::driver::shared::Shared;
use crate::error::{ClientError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::random;
use error::Place;
use olaf_engine::Engine;
use olaf_host::collective::{Config, Done, Operation, OperationId, Reducer, Standing, Sum};
use olaf_wire::ids::{JobId, Session};
use olaf_wire::reduce::MAX_RANKS;
use operations::{Operations, Slot, Told};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time in which a worker that leaves says good-bye.
const LEAVE_PATIENCE: Duration = Duration::from_millis(300);

/// A worker that reduces.
pub struct SumClient {
    shared: Arc<Shared<Operations>>,
    told: Arc<Told>,
    place: Place,
    local: SocketAddr,
    operation_timeout: Duration,
    /// The rank and the number of workers in the newest generation.
    last: Mutex<Option<(u32, u32)>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A join under way.
#[derive(Debug)]
pub struct SumJoining {
    since: Instant,
    refused_before: u64,
}

/// An operation that has begun.
#[derive(Debug)]
pub struct Pending {
    id: OperationId,
    slot: Arc<Slot>,
    refused_before: u64,
}

impl Pending {
    /// Names the operation among those of its client.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id.0
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.slot.has_ended()
    }
}

impl SumClient {
    /// Opens the socket and starts the thread; sends nothing yet. `workers`: workers of the job;
    /// none: any number, which may change. `rank`: the wanted rank; none: any that is free.
    ///
    /// # Errors
    /// [`StartError::Config`] for an address or a key that cannot be used.
    pub fn open(
        switch: &str,
        job: u32,
        workers: Option<u32>,
        rank: Option<u32>,
        config: &SumConfig,
    ) -> Result<Self, StartError> {
        check("workers", workers, 1..=MAX_RANKS)?;
        check("rank", rank, 0..=workers.unwrap_or(MAX_RANKS) - 1)?;
        let options = config.options()?;
        let (socket, switch) = Socket::towards(switch)?;
        let socket = socket.losing(config.receive_loss)?;
        let mut peers = Peers::new();
        let peer = peers.fix(switch);
        let place = Place { switch, job, silence: options.silence };
        let reducer = Reducer::new(Config {
            rank,
            workers: workers.unwrap_or(0),
            datagram_bytes: config.datagram_bytes(switch.is_ipv6(), socket.path_mtu())?,
            options,
            ..Config::new(JobId(job), Session(random::draw()), peer)
        });
        let (local, told) = (socket.local(), Arc::new(Told::default()));
        let operations = Operations::new(reducer, told.clone());
        let shared = Shared::new(socket, peers, peer, operations)
            .map_err(|error| StartError::System("cannot open a connection".into(), error))?;
        let shared = Arc::new(shared);
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("olaf-sum".into())
            .spawn(move || theirs.run())
            .map_err(|error| StartError::System("cannot start a thread".into(), error))?;
        let (thread, operation_timeout) = (Mutex::new(Some(thread)), config.operation_timeout);
        Ok(Self { shared, told, place, local, operation_timeout, last: Mutex::new(None), thread })
    }

    /// The address it sends from.
    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The time limit of an operation that has none of its own.
    #[must_use]
    pub const fn operation_timeout(&self) -> Duration {
        self.operation_timeout
    }

    /// Asks to be let in, and returns at once.
    ///
    /// # Errors
    /// [`ClientError::Failed`] when the client's thread has died.
    pub fn start_join(&self) -> Result<SumJoining, ClientError> {
        self.alive()?;
        let refused_before = self.shared.connections_refused();
        self.shared.with(|operations| operations.reducer.join(clock::now()));
        self.shared.transmit();
        Ok(SumJoining { since: Instant::now(), refused_before })
    }

    /// Waits until the worker is in its job, or is turned away; none while that is open.
    pub fn await_join(&self, timeout: Duration) -> Option<Result<(), ClientError>> {
        self.shared.wait_until(deadline(timeout), |operations| {
            match operations.reducer.standing() {
                Standing::In { rank, workers, .. } => {
                    *self.last() = Some((rank, workers));
                    Some(Ok(()))
                }
                Standing::Joining { .. } => None,
                Standing::Refused(code) => {
                    Some(Err(ClientError::Refused(self.place.refusal(code))))
                }
                Standing::Left => Some(Err(ClientError::Usage("this connection is closed".into()))),
            }
        })
    }

    /// Why nothing has come of the join so far.
    #[must_use]
    pub fn why_not_in(&self, joining: &SumJoining) -> SumError {
        let waited = joining.since.elapsed();
        let (standing, other) = self.shared.with(|operations| {
            let counts = operations.reducer.statistics(clock::now());
            (operations.reducer.standing(), counts.other_version)
        });
        match standing {
            Standing::Joining { here, workers } if here > 0 => {
                SumError::TimedOut(self.place.alone(waited, here, workers))
            }
            _ => {
                let refused = self.shared.connections_refused() > joining.refused_before;
                SumError::Failed(SumFailure {
                    reason: "switch_silent",
                    culprit: None,
                    counts: None,
                    text: self.place.no_answer(waited, refused, other),
                })
            }
        }
    }

    /// The rank and the number of workers in the newest generation; none before the first.
    #[must_use]
    pub fn place_in_job(&self) -> Option<(u32, u32)> {
        let standing = self.shared.with(|operations| operations.reducer.standing());
        let mut last = self.last();
        if let Standing::In { rank, workers, .. } = standing {
            *last = Some((rank, workers));
        }
        *last
    }

    /// Begins an operation, which ends with an error after `timeout`. Whoever begins it without
    /// waiting for it calls [`Self::go_on`] then.
    ///
    /// # Errors
    /// [`SumError`] where it cannot begin.
    pub fn begin(&self, operation: Operation, timeout: Duration) -> Result<Pending, SumError> {
        let refused_before = self.shared.connections_refused();
        let begun = self.shared.with(|operations| {
            let now = clock::now();
            operations.begin(now, now + timeout, operation, false)
        });
        let (id, slot) =
            begun.map_err(|(failure, _)| self.place.error(failure, Duration::ZERO, false))?;
        self.shared.transmit();
        Ok(Pending { id, slot, refused_before })
    }

    /// Nobody waits for the operations that have begun: the client's own thread sees to them.
    pub fn go_on(&self) {
        self.shared.hand_over();
    }

    /// Waits for the end of an operation; whether it has come. This thread receives meanwhile, where
    /// no other one does.
    #[must_use]
    pub fn wait(&self, pending: &Pending, timeout: Duration) -> bool {
        if pending.has_ended() {
            return true;
        }
        let deadline = deadline(timeout);
        let ended = |_: &mut Operations| pending.has_ended().then_some(());
        match self.shared.receive_until(deadline, ended, Operations::is_idle) {
            Some(found) => found.is_some(),
            None => pending.slot.wait(deadline),
        }
    }

    /// How an operation that has ended did end: once.
    ///
    /// # Errors
    /// [`SumError`] says what went wrong.
    pub fn outcome(&self, pending: &Pending) -> Option<Result<Sum, SumError>> {
        let Done { outcome, took, .. } = pending.slot.take()?;
        Some(outcome.map_err(|failure| {
            let refused = self.shared.connections_refused() > pending.refused_before;
            self.place.error(failure, took, refused)
        }))
    }

    /// Gives an operation up: it ends now, with an error.
    pub fn give_up(&self, pending: &Pending) {
        self.shared.with(|operations| operations.give_up(clock::now(), pending.id));
        self.shared.transmit();
    }

    /// Tells the end of this operation through [`Self::next_told`]; whether it is still open.
    pub fn tell(&self, pending: &Pending) -> bool {
        self.shared.with(|operations| operations.tell(pending.id))
    }

    /// The next operation to be told of that has ended; none at the deadline, and when the client is
    /// closed.
    #[must_use]
    pub fn next_told(&self, timeout: Duration) -> Option<u64> {
        self.told.next(timeout).map(|id| id.0)
    }

    /// Whether nothing will be told any more.
    #[must_use]
    pub fn has_told_all(&self) -> bool {
        self.told.is_closed()
    }

    /// Everything counted so far, as JSON.
    #[must_use]
    pub fn statistics(&self) -> String {
        let mut value = self.shared.report();
        value["role"] = "sum".into();
        value["address"] = self.local.to_string().into();
        value["switch"] = self.place.switch.to_string().into();
        value["io"] =
            serde_json::to_value(self.shared.io_statistics()).expect("counts are plain data");
        value.to_string()
    }

    /// What happened since the last call, a JSON object each.
    ///
    /// # Errors
    /// [`ClientError::Failed`] when the client's thread has died.
    pub fn events(&self) -> Result<Vec<String>, ClientError> {
        self.alive()?;
        Ok(self.shared.take_events())
    }

    /// Tells the job good-bye and stops the thread; nothing when that was done before. Open
    /// operations fail.
    pub fn leave(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        self.shared.with(|operations| operations.leave(clock::now()));
        self.shared.transmit();
        // A full socket gets a moment, and a good-bye that is lost is said again.
        let gone = |operations: &mut Operations| {
            // A reducer that awaits nothing has said good-bye, and was heard.
            let is_quiet = operations.reducer.poll_timeout().is_none();
            (is_quiet && self.shared.is_sent()).then_some(())
        };
        self.shared.hand_over();
        let _ = self.shared.wait_until(deadline(LEAVE_PATIENCE), gone);
        self.shared.stop();
        let _ = thread.join();
        self.told.close();
    }

    fn last(&self) -> MutexGuard<'_, Option<(u32, u32)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Drop for SumClient {
    fn drop(&mut self) {
        self.leave();
    }
}

fn check(
    key: &str,
    value: Option<u32>,
    allowed: std::ops::RangeInclusive<u32>,
) -> Result<(), StartError> {
    match value.filter(|value| !allowed.contains(value)) {
        Some(value) => Err(StartError::Config(format!(
            "{key} = {value}: must be from {} to {}",
            allowed.start(),
            allowed.end()
        ))),
        None => Ok(()),
    }
}
