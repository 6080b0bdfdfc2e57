//! One host of a job: a synchronisation thread and an execution thread around one state machine.

use super::config::{SharingHostConfig, resolve, steps};
use super::log::{Cost, Log};
use super::rehearsal::Gathering;
use super::waiting::{self, Lateness};
use super::{MOST_DATAGRAMS, monotonic_ns, send};
use crate::error::{AskError, StartError};
use olaf_sched::protocol::{Host, Launch, NotNow, Packet, Party};
use olaf_sched::{JobId, Steps};
use olaf_wire::mina::Here;
use serde_json::json;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two sayings that it is there.
const AGAIN_NS: u64 = 2_000_000;
/// How long a host that is done still answers.
const LINGER_NS: u64 = 300_000_000;
/// The first all-reduce waits for hosts that are still starting.
const START_NS: u64 = 60_000_000_000;

/// See [`SharingHostConfig`].
#[derive(Debug)]
pub struct SharingHost {
    shared: Arc<Shared>,
    execution: Mutex<Option<JoinHandle<Result<String, String>>>>,
    synchronisation: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    job: JobId,
    rank: u16,
    controller: SocketAddr,
    hosts: Vec<SocketAddr>,
    socket: UdpSocket,
    state: Mutex<State>,
    /// Something was heard: a round has ended, or another host is there.
    heard: Condvar,
    stop: AtomicBool,
}

#[derive(Debug)]
struct State {
    host: Host,
    gathering: Gathering,
    /// The last that was launched.
    last: Option<Launch>,
}

/// A datagram of the controller or of another host of the job.
#[derive(Debug)]
enum Heard {
    Packet(Packet),
    Here(Here),
}

impl SharingHost {
    /// Takes its port and begins to answer and to play.
    ///
    /// # Errors
    /// What of the set-up cannot be, or why the port cannot be had.
    pub fn start(config: &SharingHostConfig) -> Result<Self, StartError> {
        let steps = steps("pattern", &config.pattern, &config.network, config.hosts.len())?;
        let named = |(at, text): (usize, &String)| resolve(&format!("hosts[{at}]"), text);
        let hosts = config.hosts.iter().enumerate().map(named).collect::<Result<Vec<_>, _>>()?;
        let Some(listen) = hosts.get(usize::from(config.rank)).copied() else {
            let (rank, all) = (config.rank, hosts.len());
            return Err(StartError::Config(format!("rank: {rank}, of {all} hosts from 0")));
        };
        let system = |error| StartError::System(format!("cannot listen on {listen}"), error);
        let log = Log::open(&config.log, config.job, config.rank)?;
        let (job, all) = (JobId(config.job), hosts.len());
        let ranks = u16::try_from(all).expect("steps() checked it");
        let socket = UdpSocket::bind(listen).map_err(system)?;
        socket.set_nonblocking(true).map_err(system)?;
        let shared = Arc::new(Shared {
            job,
            rank: config.rank,
            controller: resolve("controller", &config.controller)?,
            hosts,
            socket,
            state: Mutex::new(State {
                host: Host::new(job, config.rank, ranks, SharingHostConfig::timing()),
                gathering: Gathering::new(all),
                last: None,
            }),
            heard: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let theirs = shared.clone();
        let synchronisation =
            thread("olaf-synchronise").spawn(move || theirs.synchronise()).map_err(system)?;
        let mut player = Player {
            shared: shared.clone(),
            steps,
            count: config.steps,
            patience_ns: config.patience_ns,
            log,
            total: Total::default(),
            lateness: Lateness::default(),
        };
        let execution = thread("olaf-execute").spawn(move || player.play()).map_err(system)?;
        Ok(Self {
            shared,
            execution: Mutex::new(Some(execution)),
            synchronisation: Mutex::new(Some(synchronisation)),
        })
    }

    /// Has it played everything, or failed?
    #[must_use]
    pub fn is_done(&self) -> bool {
        let execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner);
        execution.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it, and says what it did, as JSON.
    ///
    /// # Errors
    /// What broke; the outer one a bug, the inner one with the peer's name.
    pub fn finish(&self) -> Result<Result<String, String>, AskError> {
        if !self.is_done() {
            self.shared.stop.store(true, Ordering::Release);
            self.shared.heard.notify_all();
        }
        let execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner).take();
        let died = |_| AskError::Died("the execution thread panicked".into());
        let said = match execution {
            Some(thread) => thread.join().map_err(died)?,
            None => Err("it was ended before".to_owned()),
        };
        self.shared.stop.store(true, Ordering::Release);
        let mut thread = self.synchronisation.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            thread
                .join()
                .map_err(|_| AskError::Died("its synchronisation thread panicked".into()))?;
        }
        Ok(said)
    }
}

impl Drop for SharingHost {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.heard.notify_all();
        let _ = self.finish();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The synchronisation thread: answers, whatever the execution thread does.
    fn synchronise(&self) {
        while !self.stop.load(Ordering::Acquire) {
            let due = self.lock().host.poll_timeout().unwrap_or(u64::MAX);
            // `stop` is looked at again soon, whatever comes.
            let _ = waiting::readable(&self.socket, due.min(monotonic_ns() + 20_000_000));
            let heard = self.receive();
            let mut state = self.lock();
            for (from, heard) in heard {
                self.take_in(&mut state, from, &heard);
            }
            state.host.handle_timeout(monotonic_ns());
            self.give_out(&mut state);
            drop(state);
            self.heard.notify_all();
        }
    }

    /// What has come from those who may speak; not all of a flood, and without the lock, so that
    /// neither timers nor the execution thread wait for strangers.
    fn receive(&self) -> Vec<(SocketAddr, Heard)> {
        let mut buf = [0; 128];
        let mut heard = Vec::new();
        for _ in 0..MOST_DATAGRAMS {
            // A refusal of something sent before says nothing about what may come.
            let Ok((len, from)) = self.socket.recv_from(&mut buf) else { break };
            heard.extend(self.heard_from(&buf[..len], from).map(|heard| (from, heard)));
        }
        heard
    }

    fn heard_from(&self, bytes: &[u8], from: SocketAddr) -> Option<Heard> {
        if let Ok(packet) = Packet::parse(bytes) {
            let of = match packet.from {
                Party::Controller => Some(&self.controller),
                Party::Host(rank) => self.hosts.get(usize::from(rank)),
            };
            return (of == Some(&from)).then_some(Heard::Packet(packet));
        }
        let here = Here::parse(bytes).ok()?;
        let of = self.hosts.get(usize::from(here.rank));
        (here.job == self.job && of == Some(&from)).then_some(Heard::Here(here))
    }

    fn take_in(&self, state: &mut State, from: SocketAddr, heard: &Heard) {
        match heard {
            Heard::Packet(packet) => state.host.handle_packet(monotonic_ns(), packet),
            Heard::Here(here) => {
                state.gathering.saw(here, state.last);
                if let Some(last) = state.last.filter(|last| last.index >= here.index)
                    && !here.answer
                {
                    self.say_here(last, from, true);
                }
            }
        }
    }

    fn give_out(&self, state: &mut State) {
        while let Some(packet) = state.host.poll_transmit() {
            let to = match packet.to {
                Party::Controller => Some(&self.controller),
                Party::Host(rank) => self.hosts.get(usize::from(rank)),
            };
            if let Some(to) = to {
                send(&self.socket, &packet.emit(), *to);
            }
        }
    }

    fn say_here(&self, launch: Launch, to: SocketAddr, answer: bool) {
        let Launch { index, in_network } = launch;
        let here = Here { job: self.job, rank: self.rank, index, in_network, answer };
        send(&self.socket, &here.emit(), to);
    }
}

/// The execution thread.
struct Player {
    shared: Arc<Shared>,
    steps: Steps,
    count: u64,
    patience_ns: u64,
    log: Log,
    total: Total,
    lateness: Lateness,
}

#[derive(Default)]
struct Total {
    launches: u64,
    in_network: u64,
    locked: u64,
    locked_ns: u64,
    longest_locked_ns: u64,
    decide_ns: u64,
    longest_decide_ns: u64,
}

impl Player {
    /// All steps, one all-reduce at a time, each no earlier than recorded.
    fn play(&mut self) -> Result<String, String> {
        let mut began = monotonic_ns();
        let mut step_begin = began;
        for _ in 0..self.count {
            let mut free = step_begin;
            for operation in 0..self.steps.len() {
                self.sleep_until(free.max(step_begin + self.steps.start_ns[operation]))?;
                let (gathered, end) = self.all_reduce(step_begin, operation)?;
                free = end;
                if self.total.launches == 1 {
                    // Other hosts may have started later: the job begins when all are there.
                    step_begin = gathered.saturating_sub(self.steps.start_ns[operation]);
                    began = step_begin;
                }
            }
            let compute = step_begin + self.steps.compute_ns;
            self.sleep_until(compute)?;
            step_begin = compute.max(free);
        }
        let said = self.summary(monotonic_ns() - began);
        self.log.ended(&said).map_err(|error| format!("log: {error}"))?;
        let until = monotonic_ns() + LINGER_NS;
        while monotonic_ns() < until && !self.shared.stop.load(Ordering::Acquire) {
            let mut state = self.shared.lock();
            state.host.leave();
            self.shared.give_out(&mut state);
            drop(state);
            std::thread::sleep(Duration::from_nanos(LINGER_NS / 6));
        }
        Ok(said)
    }

    /// Launches the next one, and returns when all hosts had and when it ended.
    fn all_reduce(&mut self, step_begin: u64, operation: usize) -> Result<(u64, u64), String> {
        let (launch, cost) = self.launch()?;
        let begin = monotonic_ns();
        let lost = |error: std::io::Error| format!("log: {error}");
        self.log.launched(begin, launch, cost).map_err(lost)?;
        self.total.add(launch, cost);
        self.gather(launch)?;
        let durations =
            if launch.in_network { &self.steps.with_ns } else { &self.steps.without_ns };
        let (gathered, duration) = (monotonic_ns(), durations[operation]);
        self.began(launch, gathered, step_begin, operation);
        self.sleep_until(gathered + duration)?;
        // Before the protocol hears of it: what is logged as its time covers its time.
        let end = monotonic_ns();
        self.log.done(end, launch.index).map_err(lost)?;
        let mut state = self.shared.lock();
        state.host.done(launch.index);
        self.shared.give_out(&mut state);
        Ok((gathered, end))
    }

    /// The controller hears how far the job is.
    fn began(&self, launch: Launch, gathered: u64, step_begin: u64, operation: usize) {
        // Of the first the recorded time: other hosts may have started later.
        let recorded = self.steps.start_ns[operation];
        let age = if launch.index == 0 { recorded } else { gathered.saturating_sub(step_begin) };
        let mut state = self.shared.lock();
        state.host.began(age);
        self.shared.give_out(&mut state);
    }

    fn launch(&self) -> Result<(Launch, Cost), String> {
        let mut cost = Cost::default();
        let asked = monotonic_ns();
        let mut state = self.shared.lock();
        loop {
            let begin = monotonic_ns();
            match state.host.launch() {
                Ok(launch) => {
                    state.last = Some(launch);
                    state.gathering.launched(self.shared.rank, launch.index);
                    cost.decide_ns = monotonic_ns() - asked - cost.locked_ns;
                    return Ok((launch, cost));
                }
                // The synchronisation thread ends this in bounded time, one way or the other.
                Err(NotNow::Locked) => state = self.wait(state, AGAIN_NS)?,
                Err(error) => return Err(error.to_string()),
            }
            cost.locked_ns += monotonic_ns() - begin;
        }
    }

    /// Until all hosts have launched it.
    fn gather(&self, launch: Launch) -> Result<(), String> {
        let patience = if launch.index == 0 { START_NS } else { self.patience_ns };
        let (late, mut say) = (monotonic_ns() + patience, 0);
        let mut state = self.shared.lock();
        while let Some(missing) = state.gathering.missing(launch.index) {
            let now = monotonic_ns();
            if let Some(gone) = state.host.failed() {
                return Err(NotNow::Failed(gone).to_string());
            }
            if now >= late {
                let (index, s) = (launch.index, patience / 1_000_000_000);
                return Err(format!("host {missing} has not launched operation {index} for {s} s"));
            }
            if now >= say {
                for (rank, to) in (0..).zip(&self.shared.hosts) {
                    if rank != self.shared.rank {
                        self.shared.say_here(launch, *to, false);
                    }
                }
                say = now + AGAIN_NS;
            }
            state = self.wait(state, AGAIN_NS)?;
        }
        Ok(())
    }

    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        ns: u64,
    ) -> Result<MutexGuard<'a, State>, String> {
        if self.shared.stop.load(Ordering::Acquire) {
            return Err("it was told to stop".into());
        }
        let waited = self.shared.heard.wait_timeout(state, Duration::from_nanos(ns));
        Ok(waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn sleep_until(&mut self, at: u64) -> Result<(), String> {
        let slept = monotonic_ns() < at;
        loop {
            if self.shared.stop.load(Ordering::Acquire) {
                return Err("it was told to stop".into());
            }
            let now = monotonic_ns();
            if now >= at {
                if slept {
                    self.lateness.add(now - at);
                }
                return Ok(());
            }
            waiting::sleep_until(at, 50_000_000);
        }
    }

    fn summary(&self, took_ns: u64) -> String {
        let (total, steps) = (&self.total, &self.steps);
        let mixed = self.shared.lock().gathering.mixed;
        json!({
            "job": self.shared.job, "host": self.shared.rank, "took_ns": took_ns,
            "none_ns": steps.none_ns * self.count, "all_ns": steps.all_ns * self.count,
            "launches": total.launches, "in_network": total.in_network, "mixed": mixed,
            "locked": total.locked, "locked_ns": total.locked_ns,
            "longest_locked_ns": total.longest_locked_ns,
            "decide_ns": total.decide_ns, "longest_decide_ns": total.longest_decide_ns,
            "late_us_p50": self.lateness.quantile_us(500),
            "late_us_p99": self.lateness.quantile_us(990),
        })
        .to_string()
    }
}

impl Total {
    fn add(&mut self, launch: Launch, cost: Cost) {
        self.launches += 1;
        self.in_network += u64::from(launch.in_network);
        self.locked += u64::from(cost.locked_ns > 0);
        self.locked_ns += cost.locked_ns;
        self.longest_locked_ns = self.longest_locked_ns.max(cost.locked_ns);
        self.decide_ns += cost.decide_ns;
        self.longest_decide_ns = self.longest_decide_ns.max(cost.decide_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_taken_in_by_parts_and_strangers_are_left_out() {
        let [ours, theirs, stranger] =
            [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a free port"));
        ours.set_nonblocking(true).expect("a socket");
        let [to, other, controller] =
            [&ours, &theirs, &stranger].map(|socket| socket.local_addr().expect("it is bound"));
        let job = JobId(1);
        let host = Host::new(job, 0, 2, SharingHostConfig::timing());
        let shared = Shared {
            job,
            rank: 0,
            controller,
            hosts: vec![to, other],
            socket: ours,
            state: Mutex::new(State { host, gathering: Gathering::new(2), last: None }),
            heard: Condvar::new(),
            stop: AtomicBool::new(false),
        };
        let here = Here { job, rank: 1, index: 0, in_network: false, answer: true }.emit();
        let held = shared.lock(); // what comes in needs no lock
        for _ in 0..100 {
            stranger.send_to(&here, to).expect("it is there");
        }
        theirs.send_to(&here, to).expect("it is there");
        assert!(shared.receive().is_empty(), "64 datagrams of a stranger");
        let heard = shared.receive();
        assert!(matches!(heard[..], [(from, Heard::Here(_))] if from == other), "{heard:?}");
        drop(held);
    }
}
