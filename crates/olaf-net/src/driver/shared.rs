//! A driver for an engine that many threads call: the callers send from their own threads, and one
//! thread receives and keeps time.
//!
//! There are two locks. The first is on the engine, and a thread holds it only while it feeds or
//! asks the engine. The second is on the datagrams on their way out, and the thread that sends
//! holds it. Nobody waits for the second lock: a thread that finds it taken sets `again`, and the
//! thread that holds the lock then looks once more.
//!
//! A caller that waits may receive in its own thread ([`Shared::receive_until`]): what it waits for
//! then wakes it at once, without a hop through the driver's thread, which rests meanwhile
//! ([`Turns`]).

use super::FULL_SOCKET_PAUSE;
use super::log::Log;
use super::turned::Turned;
use super::turns::Turns;
use crate::clock;
use crate::error::StartError;
use crate::io::address::{canonical, header_bytes};
use crate::io::inbox::Inbox;
use crate::io::outgoing::{Outgoing, Trouble};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::io::statistics::IoStatistics;
use crate::io::waker::{self, Waker};
use crate::keys::{self, Given, KeyAdvice, Renewed, Sources};
use olaf_engine::seal::Standing;
use olaf_engine::{Engine, PeerId, PortId, Sealed, Source, Transmit};
use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// An engine, its socket, and the locks between its callers and its thread.
pub(crate) struct Shared<E> {
    socket: Socket,
    peers: Peers,
    /// Where each datagram comes from, if the socket is connected to one peer. If not, a datagram
    /// comes from the peer with its address.
    connected: Option<Source>,
    /// Where its keys are from.
    sources: Option<Arc<Sources>>,
    /// The peer to whom the socket turns, where it is connected to one of several.
    turned_to: Option<Turned>,
    state: Mutex<State<E>>,
    changed: Condvar,
    /// Callers that wait for `changed`.
    waiting: AtomicUsize,
    turns: Turns,
    /// For the caller that receives.
    inbox: Mutex<Inbox>,
    sending: Mutex<Sending>,
    /// Somebody found `sending` taken and wants it looked at again.
    again: AtomicBool,
    /// Everything taken from the engine has left.
    sent: AtomicBool,
    /// The thread must wait for room in the socket.
    full: AtomicBool,
    refused: AtomicU64,
    waker: Waker,
    stop: AtomicBool,
}

/// The engine and what goes with it.
pub(crate) struct State<E> {
    pub(crate) engine: Sealed<E>,
    /// When the thread wakes by itself.
    wakes_at: u64,
    log: Log,
    received: IoStatistics,
}

struct Sending {
    out: Outgoing,
    statistics: IoStatistics,
}

impl<E: Engine> Shared<E> {
    /// A driver of `engine`, whose socket is connected to `peer`.
    pub(crate) fn new(
        socket: Socket,
        peers: Peers,
        peer: PeerId,
        engine: E,
        keys: Option<Given>,
    ) -> io::Result<Self> {
        let (mut engine, sources) = behind(engine, keys);
        engine.set_above(peer);
        Self::open(socket, peers, Some(Source::end(peer)), engine, sources)
    }

    /// A driver of `engine`, which talks to these two peers, one after the other. The socket is connected to the first.
    pub(crate) fn of_two(
        socket: Socket,
        peers: Peers,
        both: [PeerId; 2],
        engine: E,
        keys: Option<Given>,
    ) -> io::Result<Self> {
        let (mut engine, sources) = behind(engine, keys);
        both.into_iter().for_each(|peer| engine.set_above(peer));
        let shared = Self::open(socket, peers, None, engine, sources)?;
        Ok(Self { turned_to: Some(Turned::to(both[0])), ..shared })
    }

    /// A driver of `engine`, which talks to all of `peers`. Datagrams of strangers are counted and
    /// dropped: the engine never sees them. With keys it begins handshakes with those `above` at once.
    pub(crate) fn among(
        socket: Socket,
        peers: Peers,
        engine: E,
        keys: Option<Given>,
        above: &[PeerId],
    ) -> io::Result<Self> {
        let (mut engine, sources) = behind(engine, keys);
        above.iter().for_each(|peer| engine.set_above(*peer));
        engine.open_all(clock::now(), PortId(0));
        Self::open(socket, peers, None, engine, sources)
    }

    fn open(
        socket: Socket,
        peers: Peers,
        connected: Option<Source>,
        engine: Sealed<E>,
        sources: Option<Arc<Sources>>,
    ) -> io::Result<Self> {
        let received = IoStatistics::default();
        let state = State { engine, wakes_at: 0, log: Log::default(), received };
        let sending = Sending { out: Outgoing::new(), statistics: IoStatistics::default() };
        Ok(Self {
            socket,
            peers,
            connected,
            sources,
            turned_to: None,
            state: Mutex::new(state),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            turns: Turns::default(),
            inbox: Mutex::new(Inbox::new()),
            sending: Mutex::new(sending),
            again: AtomicBool::new(false),
            sent: AtomicBool::new(true),
            full: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
        })
    }

    /// The thread: receives, keeps time, and sends the datagrams that no caller sends.
    pub(crate) fn run(&self) {
        waker::end_waits_on_time();
        let mut inbox = Inbox::new();
        while !self.is_stopped() {
            // What woke this thread may have been for the caller that receives now.
            self.turns.rest(|| self.is_stopped(), || self.waker.wake());
            self.turn(&mut inbox, None);
            self.lock().received.cpu_s = clock::thread_cpu_s();
        }
    }

    /// Takes in what has come, sends what is due, and waits until there is more to do, at most for
    /// `most`.
    fn turn(&self, inbox: &mut Inbox, most: Option<Duration>) {
        let more = self.receive(inbox);
        self.pass_time();
        self.transmit();
        if !more {
            self.wait(most);
        }
    }

    fn wait(&self, most: Option<Duration>) {
        let full = self.full.load(Ordering::SeqCst);
        let timeout = self.next_timeout();
        let timeout = if full { timeout.map(|t| t.max(FULL_SOCKET_PAUSE)) } else { timeout };
        let timeout = match (timeout, most) {
            (Some(timeout), Some(most)) => Some(timeout.min(most)),
            (timeout, most) => timeout.or(most),
        };
        if self.waker.wait(&self.socket, full, timeout).is_err() {
            std::thread::sleep(FULL_SOCKET_PAUSE);
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        self.turns.hand_over();
        self.notify();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Does something with the engine, and sees to it that the thread wakes in time afterwards.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut E) -> T) -> T {
        let mut state = self.lock();
        let result = work(&mut state.engine);
        let next = state.engine.poll_timeout().map_or(u64::MAX, |(at, _)| at.0);
        if next < state.wakes_at {
            state.wakes_at = next;
            self.waker.wake();
        }
        result
    }

    /// Waits until `look` finds something, at most to the deadline.
    pub(crate) fn wait_until<T>(
        &self,
        deadline: Instant,
        mut look: impl FnMut(&mut E) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state.engine) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopped() {
                return None;
            }
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let waited = self.changed.wait_timeout(state, left);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits as [`Self::wait_until`] does, and receives meanwhile in this thread; none if another
    /// caller does that already. `is_idle` says at the end whether the engine has nothing open: the
    /// driver's thread otherwise goes on at once.
    pub(crate) fn receive_until<T>(
        &self,
        deadline: Instant,
        mut look: impl FnMut(&mut E) -> Option<T>,
        is_idle: impl FnOnce(&E) -> bool,
    ) -> Option<Option<T>> {
        let mut inbox = match self.inbox.try_lock() {
            Ok(inbox) => inbox,
            Err(TryLockError::Poisoned(inbox)) => inbox.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.turns.begin();
        let found = loop {
            if let Some(found) = look(&mut self.lock().engine) {
                break Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopped() {
                break None;
            }
            self.wait(Some(left));
            while self.receive(&mut inbox) {
                self.transmit();
            }
            self.pass_time();
            self.transmit();
        };
        // A caller that found nothing comes back at once, or else the thread goes on by itself.
        let goes_on = found.is_some() && !is_idle(&self.lock().engine);
        self.turns.end();
        if goes_on || self.waiting.load(Ordering::SeqCst) > 0 {
            self.turns.hand_over();
        }
        Some(found)
    }

    /// The driver's thread goes on now, if it rests for callers: nobody will wait for what was
    /// begun.
    pub(crate) fn hand_over(&self) {
        self.turns.hand_over();
    }

    /// Sends what a caller lends for as long as it takes to send it, in this thread: `begin` takes it
    /// into the engine, `poll` writes the datagrams that are due, and `end` ends the loan. None if
    /// another thread sends just now: nothing was done.
    pub(crate) fn send_lent<T, X>(
        &self,
        begin: impl FnOnce(&mut E) -> Result<T, X>,
        poll: impl Fn(&mut E, &T, olaf_engine::Instant, &mut [u8]) -> Option<Transmit>,
        end: impl FnOnce(&mut E, &T),
    ) -> Option<Result<T, X>> {
        let mut sending = match self.sending.try_lock() {
            Ok(sending) => sending,
            Err(TryLockError::Poisoned(sending)) => sending.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let begun = self.with(begin);
        if let Ok(lent) = &begun {
            self.send_due(&mut sending, |engine, now, buf| {
                engine
                    .poll_transmit_by(now, PortId(0), buf, |inner, buf| poll(inner, lent, now, buf))
            });
            self.with(|engine| end(engine, lent));
        }
        drop(sending);
        // Others may have found it taken.
        self.transmit();
        Some(begun)
    }

    /// Sends all that is due, in this thread, unless another is at it.
    pub(crate) fn transmit(&self) {
        self.again.store(true, Ordering::SeqCst);
        while self.again.load(Ordering::SeqCst) {
            let mut sending = match self.sending.try_lock() {
                Ok(sending) => sending,
                Err(TryLockError::Poisoned(sending)) => sending.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.again.store(false, Ordering::SeqCst);
            self.send_due(&mut sending, |engine, now, buf| {
                engine.poll_transmit(now, PortId(0), buf)
            });
        }
        self.notify();
    }

    /// Wakes the callers that wait for a change.
    fn notify(&self) {
        // Under the lock, so that a caller that is about to wait does not miss it.
        drop(self.lock());
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.changed.notify_all();
        }
    }

    /// Returns true if all that was taken from the engine has left.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::SeqCst)
    }

    /// What the keys may have to do with a switch that does not answer, and what to do about it.
    pub(crate) fn key_advice(&self) -> Option<KeyAdvice> {
        let standing = self.lock().engine.standing();
        KeyAdvice::of(standing)
    }

    /// From here on it takes up key files that are replaced.
    pub(crate) fn renew_keys(self: &Arc<Self>) -> Result<(), StartError>
    where
        E: Send + 'static,
    {
        let Some(sources) = &self.sources else { return Ok(()) };
        let shared = Arc::downgrade(self);
        keys::renew(sources, move |renewed| {
            let Some(shared) = shared.upgrade().filter(|shared| !shared.is_stopped()) else {
                return false;
            };
            if let (Some(sources), false) = (&shared.sources, matches!(renewed, Renewed::Nothing)) {
                let mut state = shared.lock();
                let State { engine, log, .. } = &mut *state;
                log.take_renewed(engine, clock::now(), sources, renewed);
                drop(state);
                shared.transmit();
                // What is to be repeated may be due earlier than anything before.
                shared.waker.wake();
            }
            true
        })
    }

    /// Returns true if the switch has shown that it has this worker's key.
    pub(crate) fn key_is_taken(&self) -> bool {
        self.lock().engine.standing() == Standing::Open
    }

    /// How often the switch's machine has said that nothing listens there.
    pub(crate) fn connections_refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// What the engine reports, as JSON with the addresses of its peers.
    pub(crate) fn report(&self) -> Value {
        super::report::of_engine(&self.lock().engine, clock::now(), &self.peers)
    }

    pub(crate) fn io_statistics(&self) -> IoStatistics {
        let state = self.lock();
        let (received, forgotten) = (state.received.clone(), state.log.forgotten());
        drop(state);
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = sending.statistics.clone();
        drop(sending);
        all.received_datagrams = received.received_datagrams;
        all.received_bytes = received.received_bytes;
        all.ecn_marked = received.ecn_marked;
        all.truncated = received.truncated;
        all.lost_on_purpose = received.lost_on_purpose;
        all.receive_calls = received.receive_calls;
        all.receive_errors = received.receive_errors;
        all.not_opened = received.not_opened;
        all.cpu_s = received.cpu_s;
        all.events_forgotten = forgotten;
        all.connection_refused = self.connections_refused();
        self.socket.describe(&mut all);
        all
    }

    /// Events since the last call, as JSON.
    pub(crate) fn take_events(&self) -> Vec<Value> {
        self.lock().log.take()
    }

    /// The newest events, whether they were fetched or not.
    pub(crate) fn recent_events(&self) -> Vec<Value> {
        self.lock().log.recent()
    }

    /// Sends what `poll` has the engine write.
    fn send_due(
        &self,
        sending: &mut Sending,
        poll: impl Fn(&mut Sealed<E>, olaf_engine::Instant, &mut [u8]) -> Option<Transmit>,
    ) {
        let Sending { out, statistics } = sending;
        let refused = statistics.connection_refused;
        self.sent.store(false, Ordering::SeqCst);
        let now = clock::now();
        if out.flush(&self.socket, statistics) {
            // The engine is locked for one datagram at a time: what arrives meanwhile is taken in.
            while out.take(&self.socket, &self.peers, statistics, |buf| {
                let transmit = poll(&mut self.lock().engine, now, buf)?;
                self.turn_to_receiver(&transmit);
                Some(transmit)
            }) {}
            out.flush(&self.socket, statistics);
        }
        self.refused.fetch_add(statistics.connection_refused - refused, Ordering::SeqCst);
        self.sent.store(out.is_empty(), Ordering::SeqCst);
        let full = out.is_blocked();
        if full && !self.full.swap(true, Ordering::SeqCst) {
            // The thread waits for room.
            self.waker.wake();
        } else if !full {
            self.full.store(false, Ordering::SeqCst);
        }
        if let Some(trouble) = out.poll_trouble() {
            self.take_trouble(clock::now(), &trouble);
        }
    }

    /// The socket hears the peer to whom the engine speaks, and learns if nobody listens there.
    fn turn_to_receiver(&self, transmit: &Transmit) {
        let Some(turned) = &self.turned_to else { return };
        let Some(&peer) = transmit.to.as_slice().first() else { return };
        if let Some(place) = self.peers.place(peer)
            && turned.turns(peer, self.connections_refused())
        {
            // Where that fails, the datagram itself says why it cannot leave.
            let _ = self.socket.turn_to(place.address);
        }
    }

    /// Whether a machine said that nothing listens: since the peer before was heard last, and since the socket turned to
    /// the present one.
    pub(crate) fn refused_by_both(&self) -> (bool, bool) {
        let turned = self.turned_to.as_ref();
        turned.map_or((false, false), |turned| turned.refused(self.connections_refused()))
    }

    /// A datagram did not leave. The engine learns of a datagram that is too long. All
    /// other trouble becomes an event.
    fn take_trouble(&self, now: olaf_engine::Instant, trouble: &Trouble) {
        let mut state = self.lock();
        if trouble.is_too_large() {
            let headers = u32::try_from(header_bytes(trouble.to.is_ipv6())).unwrap_or_default();
            let largest = self.socket.path_mtu().map(|mtu| mtu.saturating_sub(headers));
            state.engine.handle_too_long(now, trouble.bytes, largest);
            self.collect(&mut state, now);
        }
        state.log.note(now, trouble);
        drop(state);
        // What the engine planned for it may be due soon.
        self.waker.wake();
    }

    /// Takes in one batch; whether there may be more.
    fn receive(&self, inbox: &mut Inbox) -> bool {
        let result = self.socket.receive(inbox);
        let mut state = self.lock();
        state.received.receive_calls += 1;
        match result {
            Ok(()) => {
                inbox.count(&mut state.received);
                if let Some(turned) = &self.turned_to {
                    turned.heard(self.connections_refused());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) => {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    self.refused.fetch_add(1, Ordering::SeqCst);
                } else {
                    state.received.receive_errors += 1;
                    drop(state);
                    // Whatever it is, it must not become a busy loop.
                    std::thread::sleep(FULL_SOCKET_PAUSE);
                }
                return false;
            }
        }
        let now = clock::now();
        let State { engine, received, .. } = &mut *state;
        for burst in inbox.bursts() {
            let of = || self.peers.known(canonical(burst.from)).map(Source::end);
            let from = self.connected.or_else(of);
            let from = from.map(|from| Source { class: burst.class, ..from });
            for datagram in burst.datagrams() {
                match from {
                    // The engine counts what it refuses; an end of the network passes nothing on.
                    Some(from) => drop(engine.handle_packet(now, from, datagram)),
                    None => received.not_opened += 1,
                }
            }
        }
        self.collect(&mut state, now);
        drop(state);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.changed.notify_all();
        }
        inbox.is_full()
    }

    fn pass_time(&self) {
        let now = clock::now();
        let mut state = self.lock();
        if state.engine.poll_timeout().is_some_and(|(at, _)| at <= now) {
            state.engine.handle_timeout(now);
            self.collect(&mut state, now);
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        let mut state = self.lock();
        let next = state.engine.poll_timeout().map(|(at, _)| at);
        state.wakes_at = next.map_or(u64::MAX, |at| at.0);
        next.map(|at| at.since(clock::now()))
    }

    /// Does something while this thread is the one that sends.
    #[cfg(test)]
    pub(crate) fn while_sending(&self, work: impl FnOnce()) {
        let _sending = self.sending.lock();
        work();
    }

    fn collect(&self, state: &mut State<E>, now: olaf_engine::Instant) {
        let State { engine, log, .. } = state;
        log.collect(now, engine, &self.peers);
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine behind its keys, if there are any, and where they are from.
fn behind<E: Engine>(engine: E, keys: Option<Given>) -> (Sealed<E>, Option<Arc<Sources>>) {
    match keys {
        Some(Given { secrets, sources }) => (Sealed::with_keys(engine, secrets), Some(sources)),
        None => (Sealed::clear(engine), None),
    }
}
