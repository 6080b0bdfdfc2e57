//! A connection to one core of a switch: a socket, the thread that receives from it, and the
//! worker's end in the generations of that core.

use super::error::{Place, SumError, SumFailure, off};
use super::operations::{Operations, Slot, Whereabouts};
use super::{LEAVE_PATIENCE, Protocol, SumConfig, SumJoining};
use crate::client::words;
use crate::clock::{self, deadline};
use crate::driver::aged;
use crate::driver::shared::Shared;
use crate::error::{ClientError, StartError};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::keys::KeyAdvice;
use crate::watch::Source;
use crate::{keys, random};
use olaf_engine::PeerId;
use olaf_engine::keys::ConfigError;
use olaf_host::collective::{
    At, AtpWorker, Collective, Commit, Config, FAREWELL, Failure, FallBack, IswitchWorker,
    Operation, OperationId, Reducer, Standing, TrioWorker,
};
use olaf_wire::ids::{JobId, Session};
use olaf_wire::reduce::Reason;
use serde_json::{Value, json};
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
    place: Place,
    second: Option<Place>,
    at: Arc<Whereabouts>,
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
        let mut peers = Peers::new();
        let mut place = |switch| {
            let silence = options.silence;
            let place = Place { protocol: config.protocol, switch, job, rank, silence };
            (place, peers.fix(switch))
        };
        let own = |(of, peer): &(Place, PeerId), mtu| {
            Ok::<_, StartError>(Config {
                rank,
                workers: workers.unwrap_or(0),
                datagram_bytes: config.datagram_bytes(of.switch.is_ipv6(), mtu)?,
                options: options.clone(),
                ..Config::new(JobId(job), Session(random::draw()), *peer)
            })
        };
        let keys = keys::secrets_for(job, config.key_file.as_ref(), None)?;
        let (socket, first, second, end): (_, _, _, Box<dyn Collective + Send>) =
            match &config.fall_back {
                None => {
                    let (socket, switch) = Socket::towards(switch, bind)?;
                    let first = place(switch);
                    let end = end(config, own(&first, socket.path_mtu())?)?;
                    (socket, first, None, end)
                }
                Some(second) => {
                    let (socket, both, mtu) = Socket::towards_both(switch, second, bind)?;
                    let [first, second] = both.map(&mut place);
                    let own = (own(&first, socket.path_mtu())?, own(&second, mtu)?);
                    let end = FallBack::new(own.0, own.1, config.operation_timeout);
                    (socket, first, Some(second), Box::new(end))
                }
            };
        let socket = socket.losing(config.receive_loss)?;
        let local = socket.local();
        let operations = Operations::new(end);
        let at = operations.whereabouts();
        let (place, peer) = first;
        let shared = match second {
            None => Shared::new(socket, peers, peer, operations, keys),
            Some((_, other)) => Shared::of_two(socket, peers, [peer, other], operations, keys),
        };
        let shared =
            shared.map_err(|error| StartError::System("cannot open a connection".into(), error))?;
        let (shared, second) = (Arc::new(shared), second.map(|(place, _)| place));
        shared.renew_keys()?;
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("olaf-sum".into())
            .spawn(move || theirs.run())
            .map_err(|error| StartError::System("cannot start a thread".into(), error))?;
        Ok(Self { shared, place, second, at, local, thread: Mutex::new(Some(thread)) })
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
            Some(operations.begin(now, timeout, operation, slot.clone(), part))
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

    /// The switch that it is, or was last, connected to.
    pub(super) fn place(&self) -> &Place {
        let is_there = |operations: &mut Operations| {
            operations.end.second_switch().is_some_and(|of| of.at == At::Second)
        };
        match &self.second {
            Some(second) if self.shared.with(is_there) => second,
            _ => &self.place,
        }
    }

    /// The error for the failure of an operation that took `took`. `refused`: the switch's machine says that no program
    /// listens there.
    pub(super) fn error(&self, failure: Failure, took: Duration, refused: bool) -> SumError {
        self.error_of(failure, took, refused, true)
    }

    /// The same. `is_whole`: the operation has no parts at other cores.
    pub(super) fn error_of(
        &self,
        failure: Failure,
        took: Duration,
        refused: bool,
        is_whole: bool,
    ) -> SumError {
        let (of, clash) =
            self.shared.with(|operations| (operations.end.second_switch(), operations.end.clash()));
        match (&self.second, of.and_then(|of| Some((of, of.no_way?)))) {
            (Some(second), Some((of, why))) if of.left_because == Some(failure) => {
                let other = self.shared.with(|operations| operations.end.other_version());
                let (refused_here, refused_there) = self.shared.refused_by_both();
                let refused = refused || refused_here;
                self.place.error_of_both(failure, refused, (second, why), refused_there, other)
            }
            _ => match (failure, clash) {
                (Failure::Closed { reason: Reason::Mismatch, culprit }, Some(clash)) => {
                    self.place().clashed(culprit, &clash, is_whole)
                }
                _ => self.place().error(failure, took, refused),
            },
        }
    }

    /// Waits until the worker goes on through the second switch. Returns what to tell people then; none when the time is
    /// over, or it never will.
    pub(super) fn await_move(&self, timeout: Duration) -> Option<String> {
        if !self.at.wait(timeout) {
            return None;
        }
        let of = self.shared.with(|operations| operations.end.second_switch())?;
        let why = self.place.why_left(of.left_because?, self.shared.refused_by_both().0);
        Some(format!(
            "olaf: THE SWITCH {} FAILED ({why}). Worker {} goes on through the second switch {}, from \
             operation {} on. There is no third one: connect again when the first switch runs.",
            self.place.switch,
            of.rank,
            self.second.as_ref()?.switch,
            of.operation
        ))
    }

    /// Returns true if [`Self::await_move`] has nothing to wait for.
    pub(super) fn is_where_it_stays(&self) -> bool {
        self.second.is_none() || self.at.is_final()
    }

    /// Begins a last operation, if other workers may still need something of this one.
    pub(super) fn say_farewell(&self, slot: &Arc<Slot>) -> Option<OperationId> {
        let id = self
            .shared
            .with(|operations| operations.say_farewell(clock::now(), FAREWELL, slot.clone()))?;
        self.shared.transmit();
        Some(id)
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
        statistics(&self.shared, self.local, (&self.place, self.second.as_ref()))
    }

    /// Says the statistics, the time since now, and the newest events to those who watch.
    pub(super) fn source(&self) -> Source {
        let (shared, local) = (self.shared.clone(), self.local);
        let places = (self.place.clone(), self.second.clone());
        let started = clock::now();
        Box::new(move || {
            let mut all = statistics(&shared, local, (&places.0, places.1.as_ref()));
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
fn statistics(
    shared: &Shared<Operations>,
    local: SocketAddr,
    (first, second): (&Place, Option<&Place>),
) -> Value {
    let mut all = shared.report();
    all["role"] = "sum".into();
    all["address"] = local.to_string().into();
    all["switch"] = first.switch.to_string().into();
    let of = shared.with(|operations| operations.end.second_switch());
    if let Some((second, of)) = second.zip(of) {
        if of.at == At::Second {
            all["switch"] = second.switch.to_string().into();
        }
        all["fall_back"] = json!({
            "switch": second.switch.to_string(), "state": of.at.name(), "off": of.off.map(off),
            "operation": of.operation, "taken": of.taken, "given": of.given, "again": of.again,
            "kept_bytes": of.kept_bytes,
        });
    }
    all["io"] = serde_json::to_value(shared.io_statistics()).expect("counts are plain data");
    all
}
