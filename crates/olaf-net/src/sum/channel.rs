//! A connection to one core of a switch: a socket, the thread that receives from it, and the
//! worker's end in the generations of that core.

use super::error::{Place, SumError, SumFailure};
use super::operations::{Operations, Slot};
use super::{LEAVE_PATIENCE, Protocol, SumConfig, SumJoining};
use crate::client::words;
use crate::clock::{self, deadline};
use crate::driver::aged;
use crate::driver::shared::{KeyAdvice, Shared};
use crate::error::{ClientError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::watch::Source;
use crate::{keys, random};
use olaf_engine::keys::ConfigError;
use olaf_host::collective::{
    AtpWorker, Collective, Commit, Config, Failure, IswitchWorker, Operation, OperationId, Reducer,
    Standing, TrioWorker,
};
use olaf_wire::ids::{JobId, Session};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A worker's place in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) generation: u32,
    pub(super) rank: u32,
    pub(super) workers: u32,
    /// Cores of the switch.
    pub(super) cores: u32,
}

/// The message, and what else may be wrong.
fn with_advice(text: String, advice: Option<KeyAdvice>) -> String {
    match advice {
        None => text,
        // Something came back: it is no question of the address or the path.
        Some(KeyAdvice { is_answer: true, text }) => text,
        Some(KeyAdvice { text: advice, .. }) => format!("{text}; {advice}"),
    }
}

/// A connection.
pub(super) struct Channel {
    shared: Arc<Shared<Operations>>,
    pub(super) place: Place,
    pub(super) local: SocketAddr,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Channel {
    /// Opens the socket and starts the thread; sends nothing yet.
    pub(super) fn open(
        switch: &str,
        job: u32,
        workers: Option<u32>,
        rank: Option<u32>,
        config: &SumConfig,
    ) -> Result<Self, StartError> {
        let options = config.options()?;
        let bind = match config.protocol {
            // It tells its messages apart by the class.
            Protocol::Iswitch => Socket::bind_whole_class,
            Protocol::Reduce | Protocol::Trio | Protocol::Atp => Socket::bind,
        };
        let (socket, switch) = Socket::towards(switch, bind)?;
        let socket = socket.losing(config.receive_loss)?;
        let mut peers = Peers::new();
        let peer = peers.fix(switch);
        let silence = options.silence;
        let place = Place { protocol: config.protocol, switch, job, rank, silence };
        let own = Config {
            rank,
            workers: workers.unwrap_or(0),
            datagram_bytes: config.datagram_bytes(switch.is_ipv6(), socket.path_mtu())?,
            options,
            ..Config::new(JobId(job), Session(random::draw()), peer)
        };
        let end = end(config, own)?;
        let local = socket.local();
        let keys = keys::secrets_for(job, config.key_file.as_ref(), None)?;
        let shared = Shared::new(socket, peers, peer, Operations::new(end), keys)
            .map_err(|error| StartError::System("cannot open a connection".into(), error))?;
        let shared = Arc::new(shared);
        shared.renew_keys()?;
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("olaf-sum".into())
            .spawn(move || theirs.run())
            .map_err(|error| StartError::System("cannot start a thread".into(), error))?;
        Ok(Self { shared, place, local, thread: Mutex::new(Some(thread)) })
    }

    /// Asks to be let in, and returns at once.
    pub(super) fn start_join(&self) -> Result<SumJoining, ClientError> {
        self.alive()?;
        let refused_before = self.connections_refused();
        self.shared.with(|operations| operations.end.join(clock::now()));
        self.shared.transmit();
        Ok(SumJoining { since: Instant::now(), refused_before })
    }

    /// Waits until the worker is in its job, or is turned away; none while that is open.
    pub(super) fn await_join(&self, deadline: Instant) -> Option<Result<Seat, ClientError>> {
        self.shared.wait_until(deadline, |operations| {
            let cores = operations.end.switch_cores();
            match operations.end.standing() {
                Standing::In { generation, rank, workers } => {
                    Some(Ok(Seat { generation, rank, workers, cores }))
                }
                Standing::Joining { .. } => None,
                Standing::Refused(code) => {
                    Some(Err(ClientError::Refused(self.place.refusal(code))))
                }
                Standing::Left => Some(Err(ClientError::Usage("this connection is closed".into()))),
            }
        })
    }

    /// Rank and workers in the generation that runs; none where the worker is in none.
    pub(super) fn seat(&self) -> Option<(u32, u32)> {
        match self.shared.with(|operations| operations.end.standing()) {
            Standing::In { rank, workers, .. } => Some((rank, workers)),
            _ => None,
        }
    }

    /// Why nothing has come of the join so far.
    pub(super) fn why_not_in(&self, joining: &SumJoining) -> SumError {
        let waited = joining.since.elapsed();
        let (standing, other) = self
            .shared
            .with(|operations| (operations.end.standing(), operations.end.other_version()));
        match standing {
            Standing::Joining { here, workers } if here > 0 => {
                SumError::TimedOut(self.place.alone(waited, here, workers))
            }
            _ => {
                let refused = self.connections_refused() > joining.refused_before;
                SumError::Failed(SumFailure {
                    reason: "switch_silent",
                    culprit: None,
                    counts: None,
                    text: if other.is_none() && !refused && self.shared.key_is_taken() {
                        words::no_such_job(self.place.switch, self.place.job)
                    } else {
                        with_advice(
                            self.place.no_answer(waited, refused, other),
                            self.shared.key_advice().filter(|_| other.is_none()),
                        )
                    },
                })
            }
        }
    }

    /// Begins a part of an operation, which ends with an error after `timeout`. None, and the part
    /// does not begin, where it has no place in that generation.
    pub(super) fn begin(
        &self,
        operation: Operation,
        timeout: Duration,
        (slot, part): (&Arc<Slot>, usize),
        generation: Option<u32>,
    ) -> Option<Result<OperationId, Failure>> {
        let begun = self.shared.with(|operations| {
            if generation.is_some() && operations.begins_in() != generation {
                return None;
            }
            let now = clock::now();
            Some(operations.begin(now, now + timeout, operation, slot.clone(), part))
        })?;
        self.shared.transmit();
        Some(begun.map_err(|(failure, _)| failure))
    }

    /// Sends a vector for the first pipelined sum that is open, and returns what becomes of it.
    pub(super) fn contribute(
        &self,
        (began, bound): (u64, u64),
        vector: Vec<u8>,
    ) -> Result<Commit, Failure> {
        let commit = self.shared.with(|operations| {
            operations.end.contribute(clock::now(), began, bound, Box::new(vector))
        });
        self.shared.transmit();
        commit
    }

    /// Pipelined sums without a result fail at all workers.
    pub(super) fn end_pipeline(&self) {
        self.shared.with(|operations| operations.end_pipeline(clock::now()));
        self.shared.transmit();
    }

    /// How often the switch's machine has said that nothing listens there.
    pub(super) fn connections_refused(&self) -> u64 {
        self.shared.connections_refused()
    }

    /// Nobody waits for the operations that have begun: the thread sees to them.
    pub(super) fn go_on(&self) {
        self.shared.hand_over();
    }

    /// Waits for the end of a part, and receives meanwhile; none where another caller does that.
    pub(super) fn receive(&self, slot: &Slot, part: usize, deadline: Instant) -> Option<bool> {
        let ended = |_: &mut Operations| slot.has_ended_part(part).then_some(());
        let found = self.shared.receive_until(deadline, ended, Operations::is_idle)?;
        Some(found.is_some())
    }

    pub(super) fn give_up(&self, id: OperationId) {
        self.shared.with(|operations| operations.give_up(clock::now(), id));
        self.shared.transmit();
    }

    pub(super) fn statistics(&self) -> Value {
        statistics(&self.shared, self.local, self.place.switch)
    }

    /// Says the statistics, the time since now, and the newest events to those who watch.
    pub(super) fn source(&self) -> Source {
        let (shared, local, switch) = (self.shared.clone(), self.local, self.place.switch);
        let started = clock::now();
        Box::new(move || {
            let mut all = statistics(&shared, local, switch);
            let now = clock::now();
            all["uptime_s"] = now.since(started).as_secs_f64().into();
            all["recent_events"] = aged(shared.recent_events(), now).into();
            Ok(all)
        })
    }

    pub(super) fn events(&self) -> Result<Vec<Value>, ClientError> {
        self.alive()?;
        Ok(self.shared.take_events())
    }

    /// Leaves the job. Open operations fail.
    pub(super) fn say_goodbye(&self) {
        self.shared.with(|operations| operations.leave(clock::now()));
        self.shared.transmit();
        self.shared.hand_over();
    }

    /// Stops the thread, once the leave was heard or the time for it is over. Whether it ran.
    pub(super) fn close(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return false };
        // A full socket gets a moment, and a leave that is lost is said again.
        let gone = |operations: &mut Operations| {
            // An end that awaits nothing has left, and was heard.
            let is_quiet = operations.end.poll_timeout().is_none();
            (is_quiet && self.shared.is_sent()).then_some(())
        };
        let _ = self.shared.wait_until(deadline(LEAVE_PATIENCE), gone);
        self.shared.stop();
        let _ = thread.join();
        true
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

/// The worker's end of the protocol.
fn end(config: &SumConfig, own: Config) -> Result<Box<dyn Collective + Send>, StartError> {
    let wrong = |error: ConfigError| StartError::Config(error.to_string());
    Ok(match config.protocol {
        Protocol::Reduce => Box::new(Reducer::new(own)),
        Protocol::Iswitch => {
            Box::new(IswitchWorker::new(own, config.iswitch.clone()).map_err(wrong)?)
        }
        Protocol::Trio => Box::new(TrioWorker::new(own, config.trio.clone()).map_err(wrong)?),
        Protocol::Atp => Box::new(AtpWorker::new(own, config.atp.clone()).map_err(wrong)?),
    })
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.close();
    }
}

/// Everything counted so far.
fn statistics(shared: &Shared<Operations>, local: SocketAddr, switch: SocketAddr) -> Value {
    let mut all = shared.report();
    all["role"] = "sum".into();
    all["address"] = local.to_string().into();
    all["switch"] = switch.to_string().into();
    all["io"] = serde_json::to_value(shared.io_statistics()).expect("counts are plain data");
    all
}
