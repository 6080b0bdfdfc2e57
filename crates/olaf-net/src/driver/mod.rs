//! The loops that turn datagrams and time into calls of an engine, the same for every engine.
//!
//! A [`Driver`] is for an engine that one thread owns; [`Running`] is that thread. A
//! [`Shared`](shared::Shared) driver is for an engine that many threads call.

pub(crate) mod events;
mod log;
pub(crate) mod report;
mod running;
pub(crate) mod shared;
#[cfg(test)]
mod tests;
mod turned;
mod turns;

pub(crate) use running::Running;

use crate::clock;
use crate::io::address::{self, canonical};
use crate::io::inbox::Inbox;
use crate::io::outgoing::Outgoing;
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::io::statistics::IoStatistics;
use crate::io::waker::Waker;
use crate::keys::{Given, Renewed, Sources};
use log::Log;
use olaf_engine::seal::{self, Secrets};
use olaf_engine::{
    DropReason, Engine, Instant, PeerId, PortId, Refused, Sealed, Source, Verdict, Wiring,
};
use olaf_wire::Refusal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Receive calls before due work is looked at again, so that a flood starves no receiver.
const CALLS_A_TURN: usize = 16;
/// A wait shorter than this costs more than it saves.
const SPIN: Duration = Duration::from_micros(15);
/// While the socket is full, time still passes.
const FULL_SOCKET_PAUSE: Duration = Duration::from_millis(1);

/// An engine, its socket and all between them.
pub(crate) struct Driver<E> {
    pub(crate) engine: Sealed<E>,
    /// Where its keys are from.
    sources: Option<Arc<Sources>>,
    role: &'static str,
    wiring: Wiring,
    peers: Peers,
    socket: Option<Socket>,
    address: String,
    inbox: Option<Inbox>,
    out: Outgoing,
    statistics: IoStatistics,
    log: Log,
    started: Instant,
}

impl<E: Engine> Driver<E> {
    /// A driver of `engine`, which plays `role` for people. `peers` numbers the peers that
    /// `wiring` places.
    pub(crate) fn new(
        role: &'static str,
        engine: E,
        wiring: Wiring,
        peers: Peers,
        socket: Socket,
    ) -> Self {
        Self {
            engine: Sealed::clear(engine),
            sources: None,
            role,
            wiring,
            peers,
            address: socket.local().to_string(),
            socket: Some(socket),
            inbox: Some(Inbox::new()),
            out: Outgoing::new(),
            statistics: IoStatistics::default(),
            log: Log::default(),
            started: clock::now(),
        }
    }

    /// The same behind keys, if there are any. The peers that are wired to the uplink are above.
    pub(crate) fn behind(mut self, keys: Option<Box<dyn Secrets>>) -> Self {
        let Some(keys) = keys else { return self };
        self.engine = Sealed::with_keys(self.engine.into_inner(), keys);
        for peer in self.wiring.peers_of(PortId::UPLINK) {
            self.engine.set_above(peer);
        }
        self
    }

    /// The same behind keys, if there are any, whose files may be replaced while it runs.
    pub(crate) fn behind_files(mut self, keys: Option<Given>) -> Self {
        let Some(Given { secrets, sources }) = keys else { return self };
        self.sources = Some(sources);
        self.behind(Some(secrets))
    }

    /// Takes what has become of its key files.
    pub(crate) fn take_renewed(&mut self, renewed: Renewed) {
        let Some(sources) = &self.sources else { return };
        self.log.take_renewed(&mut self.engine, clock::now(), sources, renewed);
    }

    /// The same, which begins handshakes with these peers at once, if it has keys.
    pub(crate) fn beginning_with(mut self, peers: &[PeerId]) -> Self {
        peers.iter().for_each(|peer| self.engine.set_above(*peer));
        self.engine.open_all(clock::now(), PortId(0));
        self
    }

    /// What the engine is for people.
    pub(crate) const fn role(&self) -> &'static str {
        self.role
    }

    /// The address it is bound to.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Takes in what has come, sends what is due, and waits until there is more to do.
    ///
    /// # Errors
    /// Where the system cannot even wait.
    pub(crate) fn turn(&mut self, waker: &Waker) -> io::Result<()> {
        let more = self.receive();
        let now = clock::now();
        self.catch_up(now);
        let mut timeout = self.engine.poll_timeout().map(|(at, _)| at.since(clock::now()));
        if self.out.is_blocked() {
            // What is due cannot leave: there is no point in being woken for it.
            timeout = timeout.map(|timeout| timeout.max(FULL_SOCKET_PAUSE));
        }
        if more || timeout.is_some_and(|timeout| timeout < SPIN) {
            return Ok(());
        }
        let Some(socket) = &self.socket else { return Ok(()) };
        let ready = waker.wait(socket, self.out.is_blocked(), timeout)?;
        if ready.writable && self.out.is_blocked() {
            self.flush();
        }
        Ok(())
    }

    /// Sends what is due by now, and lets time pass.
    pub(crate) fn catch_up(&mut self, now: Instant) {
        self.drain(now);
        if self.engine.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.engine.handle_timeout(now);
            self.drain(now);
        }
        self.flush();
        self.collect_events(now);
        if self.peers.is_crowded() {
            let mut known = BTreeSet::new();
            self.engine.peers(&mut |peer| {
                known.insert(peer);
            });
            self.peers.keep(|peer| known.contains(&peer));
        }
    }

    /// Events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        self.collect_events(clock::now());
        self.log.take()
    }

    /// Everything counted so far, as JSON.
    pub(crate) fn statistics(&mut self) -> String {
        self.report().to_string()
    }

    /// Everything counted so far.
    pub(crate) fn report(&mut self) -> Value {
        let now = clock::now();
        if let Some(socket) = &self.socket {
            socket.describe(&mut self.statistics);
        }
        self.statistics.events_forgotten = self.log.forgotten();
        let mut all = report::of_engine(&self.engine, now, &self.peers);
        all["role"] = self.role.into();
        all["address"] = self.address.clone().into();
        all["uptime_s"] = now.since(self.started).as_secs_f64().into();
        all["io"] = serde_json::to_value(&self.statistics).expect("counts are plain data");
        all
    }

    /// The report, and the newest events with the seconds since each.
    pub(crate) fn status(&mut self) -> Value {
        let mut all = self.report();
        all["recent_events"] = aged(self.log.recent(), clock::now()).into();
        all
    }

    /// Notes the processor time of the thread that drives.
    pub(crate) fn note_cpu(&mut self) {
        self.statistics.cpu_s = clock::thread_cpu_s();
    }

    /// Frees the port; what was counted stays.
    pub(crate) fn close(&mut self) {
        self.take_events_before_close();
        if let Some(socket) = self.socket.take() {
            socket.describe(&mut self.statistics);
        }
    }

    fn take_events_before_close(&mut self) {
        self.flush();
        self.collect_events(clock::now());
    }

    /// Takes in some batches; whether there may be more.
    fn receive(&mut self) -> bool {
        let Some(mut inbox) = self.inbox.take() else { return false };
        let mut more = false;
        for _ in 0..CALLS_A_TURN {
            let Some(socket) = &self.socket else { break };
            self.statistics.receive_calls += 1;
            match socket.receive(&mut inbox) {
                Ok(()) => {
                    inbox.count(&mut self.statistics);
                    self.feed(&inbox);
                }
                Err(error) => {
                    self.note_receive_error(&error);
                    more = false;
                    break;
                }
            }
            more = true;
            if !inbox.is_full() {
                // The socket was just empty: `wait` will say when it is not.
                more = false;
                break;
            }
        }
        self.inbox = Some(inbox);
        more
    }

    fn note_receive_error(&mut self, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::WouldBlock => {}
            io::ErrorKind::ConnectionRefused => self.statistics.connection_refused += 1,
            _ => {
                self.statistics.receive_errors += 1;
                // Whatever it is, it must not become a busy loop.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn feed(&mut self, inbox: &Inbox) {
        let now = clock::now();
        // Departures that end by now come before what arrives now.
        self.drain(now);
        for burst in inbox.bursts() {
            let reply_from = self.socket.as_ref().and_then(|s| s.reply_from(burst.came_to));
            let peer = self.peers.id(canonical(burst.from), reply_from);
            let from = Source { port: self.wiring.port(peer), peer, class: burst.class };
            self.engine.comes_from(address::bytes(burst.from));
            for datagram in burst.datagrams() {
                if self.engine.must_drain() {
                    self.drain(now);
                }
                self.handle(now, from, datagram);
            }
        }
        self.drain(now);
        self.flush();
        self.collect_events(now);
    }

    fn handle(&mut self, now: Instant, from: Source, datagram: &[u8]) {
        match self.engine.handle_packet(now, from, datagram) {
            // The engine counts what it drops under the reason.
            Verdict::Drop(reason) => {
                if let Some((have, speaks)) = other_version(reason) {
                    self.log.note_version(now, &self.peers.name(from.peer), have, speaks);
                }
                if let DropReason::Seal(reason) = reason
                    && let Some(advice) = reason.advice()
                {
                    self.log.note_key(now, &self.peers.name(from.peer), reason.name(), advice);
                }
            }
            Verdict::Absorb => {}
        }
    }

    /// Takes all that has left the engine's links by now, port by port.
    fn drain(&mut self, now: Instant) {
        let Some(socket) = &self.socket else { return };
        let engine = &mut self.engine;
        for port in (0..engine.ports()).map(PortId) {
            while self.out.take(socket, &self.peers, &mut self.statistics, |buf| {
                engine.poll_transmit(now, port, buf)
            }) {}
        }
    }

    fn flush(&mut self) {
        let Some(socket) = &self.socket else { return };
        self.out.flush(socket, &mut self.statistics);
    }

    fn collect_events(&mut self, now: Instant) {
        self.log.collect(now, &mut self.engine, &self.peers);
        if let Some(trouble) = self.out.poll_trouble() {
            self.log.note(now, &trouble);
        }
    }
}

/// The version of a datagram that is of another one, and the version of this side.
const fn other_version(reason: DropReason) -> Option<(u8, u8)> {
    match reason {
        DropReason::Malformed(Refusal::WrongVersion { have, speaks })
        | DropReason::End(Refused::Malformed(Refusal::WrongVersion { have, speaks })) => {
            Some((have, speaks))
        }
        DropReason::Seal(seal::Reason::OtherVersion { have }) => {
            Some((have, olaf_wire::sealed::VERSION))
        }
        _ => None,
    }
}

/// Events with the seconds that have passed since each, in place of a time that no reader knows.
pub(crate) fn aged(events: Vec<Value>, now: Instant) -> Vec<Value> {
    let aged = events.into_iter().map(|mut event| {
        if let Some(fields) = event.as_object_mut()
            && let Some(at) = fields.remove("at_ns").and_then(|at| at.as_u64())
        {
            fields.insert("s_ago".into(), now.since(Instant(at)).as_secs_f64().into());
        }
        event
    });
    aged.collect()
}
