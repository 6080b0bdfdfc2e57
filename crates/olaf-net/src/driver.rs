//! The loop that turns datagrams and time into calls, the same for a switch and for a server.

use crate::io::address::canonical;
use crate::io::inbox::Inbox;
use crate::io::outgoing::{Outgoing, Trouble};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::io::statistics::IoStatistics;
use crate::io::waker::Waker;
use crate::{clock, events};
use olaf_engine::{Instant, PeerId, Transmit};
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

/// Receive calls before what is due is looked at again, so that a flood starves nobody.
const CALLS_A_TURN: usize = 16;
/// A wait shorter than this costs more than it saves.
const SPIN: Duration = Duration::from_micros(15);
/// While the socket is full, time still passes.
const FULL_SOCKET_PAUSE: Duration = Duration::from_millis(1);
/// Events kept for whoever fetches them; the oldest give way.
const EVENT_LIMIT: usize = 4096;
/// Trouble with sending is told at most so often.
pub(crate) const TELL_TROUBLE_EVERY: Duration = Duration::from_secs(1);

/// What is driven: a switch or a server.
pub(crate) trait Party: Send + 'static {
    /// One datagram arrived. Names the peer to whom it is to be passed on untouched, if any.
    fn handle_packet(&mut self, now: Instant, from: PeerId, bytes: &[u8]) -> PassOn;
    /// The next datagram to send, or nothing.
    fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit>;
    /// When to call [`Party::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;
    /// Time has come.
    fn handle_timeout(&mut self, now: Instant);
    /// What happened.
    fn poll_event(&mut self, peers: &Peers) -> Option<Value>;
    /// Whether what is due must leave before the next datagram is taken in.
    fn must_send_first(&self) -> bool;
    /// Parties whose addresses must be remembered.
    fn peers(&self) -> BTreeSet<PeerId>;
    /// Its own part of the statistics, an object.
    fn statistics(&self, now: Instant, peers: &Peers) -> Value;
}

/// What else is to be done with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassOn {
    /// Nothing.
    No,
    /// It goes to that peer as it is.
    To(PeerId),
    /// It should go on, but there is nobody to take it.
    Nobody,
}

/// A party, its socket and all between them.
pub(crate) struct Driver<P> {
    pub(crate) party: P,
    pub(crate) peers: Peers,
    socket: Option<Socket>,
    address: String,
    inbox: Option<Inbox>,
    out: Outgoing,
    statistics: IoStatistics,
    events: VecDeque<Value>,
    started: Instant,
    told_trouble: Option<Instant>,
}

impl<P: Party> Driver<P> {
    pub(crate) fn new(party: P, peers: Peers, socket: Socket) -> Self {
        Self {
            party,
            peers,
            address: socket.local().to_string(),
            socket: Some(socket),
            inbox: Some(Inbox::new()),
            out: Outgoing::new(),
            statistics: IoStatistics::default(),
            events: VecDeque::new(),
            started: clock::now(),
            told_trouble: None,
        }
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
        let mut timeout = self.party.poll_timeout().map(|at| at.since(clock::now()));
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
        if self.party.poll_timeout().is_some_and(|at| at <= now) {
            self.party.handle_timeout(now);
            self.drain(now);
        }
        self.flush();
        self.collect_events(now);
        if self.peers.is_crowded() {
            let known = self.party.peers();
            self.peers.keep(|peer| known.contains(&peer));
        }
    }

    /// Events since the last call, as JSON.
    pub(crate) fn take_events(&mut self) -> Vec<String> {
        self.collect_events(clock::now());
        self.events.drain(..).map(|event| event.to_string()).collect()
    }

    /// Everything counted so far, as JSON.
    pub(crate) fn statistics(&mut self) -> String {
        let now = clock::now();
        if let Some(socket) = &self.socket {
            socket.describe(&mut self.statistics);
        }
        let mut all = self.party.statistics(now, &self.peers);
        all["address"] = self.address.clone().into();
        all["uptime_s"] = now.since(self.started).as_secs_f64().into();
        all["io"] = serde_json::to_value(&self.statistics).expect("counts are plain data");
        all.to_string()
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
                Ok(()) => self.feed(&inbox),
                Err(error) => {
                    self.note_receive_error(&error);
                    more = false;
                    break;
                }
            }
            more = true;
            if !inbox.is_full() {
                // The socket was empty a moment ago: most likely it still is, and who asks again
                // is the wait.
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
            let from = self.peers.id(canonical(burst.from), reply_from);
            for datagram in burst.datagrams() {
                self.statistics.received_datagrams += 1;
                self.statistics.received_bytes += datagram.len() as u64;
                if self.party.must_send_first() {
                    self.drain(now);
                }
                match self.party.handle_packet(now, from, datagram) {
                    PassOn::No => {}
                    PassOn::To(peer) => self.pass_on(peer, datagram),
                    PassOn::Nobody => self.statistics.unroutable += 1,
                }
            }
        }
        self.drain(now);
        self.flush();
        self.collect_events(now);
    }

    fn pass_on(&mut self, peer: PeerId, datagram: &[u8]) {
        let Some(socket) = &self.socket else { return };
        let len = datagram.len();
        let taken = self.out.take(socket, &self.peers, &mut self.statistics, |buf| {
            buf[..len].copy_from_slice(datagram);
            Some(Transmit::to(peer, len))
        });
        // Nobody waits for what is not ours, but it is counted.
        self.statistics.send_errors += u64::from(!taken);
    }

    fn drain(&mut self, now: Instant) {
        let Some(socket) = &self.socket else { return };
        let party = &mut self.party;
        while self
            .out
            .take(socket, &self.peers, &mut self.statistics, |buf| party.poll_transmit(now, buf))
        {
        }
    }

    fn flush(&mut self) {
        let Some(socket) = &self.socket else { return };
        self.out.flush(socket, &mut self.statistics);
    }

    fn collect_events(&mut self, now: Instant) {
        while let Some(event) = self.party.poll_event(&self.peers) {
            self.keep_event(now, event);
        }
        if let Some(trouble) = self.out.poll_trouble()
            && !trouble.is_probe
            && self.told_trouble.is_none_or(|told| now.since(told) >= TELL_TROUBLE_EVERY)
        {
            self.told_trouble = Some(now);
            self.keep_event(now, told(&trouble));
        }
    }

    fn keep_event(&mut self, now: Instant, event: Value) {
        if self.events.len() == EVENT_LIMIT {
            self.events.pop_front();
            self.statistics.events_forgotten += 1;
        }
        self.events.push_back(events::stamped(event, now));
    }
}

/// Trouble as an event.
pub(crate) fn told(trouble: &Trouble) -> Value {
    let event = if trouble.is_too_large() { "datagram_too_large" } else { "send_failed" };
    serde_json::json!({
        "event": event, "address": trouble.to.to_string(), "bytes": trouble.bytes,
        "reason": trouble.advice(),
    })
}
