//! What a client's callers and its thread share, and who sends.
//!
//! Two locks: one on the worker, held for as long as it takes to feed or ask it; one on what is
//! on its way out, held by whoever sends. The second is never waited for: who finds it taken
//! leaves a note, and the one who holds it looks again.

use crate::driver::{self, TELL_TROUBLE_EVERY};
use crate::error::ClientError;
use crate::io::inbox::Inbox;
use crate::io::outgoing::{Outgoing, Trouble};
use crate::io::peers::Peers;
use crate::io::socket::Socket;
use crate::io::statistics::IoStatistics;
use crate::io::waker::{self, Waker};
use crate::{clock, events};
use olaf_engine::PeerId;
use olaf_host::push_pull::worker::{Standing, TooNarrow, WorkerStatistics};
use olaf_host::{Host, HostEvent, Worker};
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Events kept for whoever fetches them; the oldest give way.
const EVENT_LIMIT: usize = 4096;
/// While the socket is full, time still passes.
const FULL_SOCKET_PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Shared {
    socket: Socket,
    peers: Peers,
    switch: PeerId,
    state: Mutex<State>,
    changed: Condvar,
    sending: Mutex<Sending>,
    /// Somebody found `sending` taken and wants it looked at again.
    again: AtomicBool,
    /// Everything taken from the worker has left.
    sent: AtomicBool,
    /// The thread must wait for room in the socket.
    full: AtomicBool,
    refused: AtomicU64,
    waker: Waker,
    stop: AtomicBool,
}

/// The worker and what goes with it.
pub(super) struct State {
    pub(super) worker: Worker,
    /// When the thread wakes by itself.
    wakes_at: u64,
    events: VecDeque<(olaf_engine::Instant, Event)>,
    told_trouble: Option<olaf_engine::Instant>,
    received: IoStatistics,
}

enum Event {
    Host(HostEvent),
    Other(Value),
}

struct Sending {
    out: Outgoing,
    statistics: IoStatistics,
}

impl Shared {
    pub(super) fn new(
        socket: Socket,
        peers: Peers,
        switch: PeerId,
        worker: Worker,
    ) -> io::Result<Self> {
        let received = IoStatistics::default();
        let state =
            State { worker, wakes_at: 0, events: VecDeque::new(), told_trouble: None, received };
        let sending = Sending { out: Outgoing::new(), statistics: IoStatistics::default() };
        Ok(Self {
            socket,
            peers,
            switch,
            state: Mutex::new(state),
            changed: Condvar::new(),
            sending: Mutex::new(sending),
            again: AtomicBool::new(false),
            sent: AtomicBool::new(true),
            full: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
        })
    }

    /// The thread: receives, keeps time, and sends what nobody else does.
    pub(super) fn run(&self) {
        waker::end_waits_on_time();
        let mut inbox = Inbox::new();
        while !self.stop.load(Ordering::Acquire) {
            let more = self.receive(&mut inbox);
            self.pass_time();
            self.transmit();
            if more {
                continue;
            }
            let full = self.full.load(Ordering::SeqCst);
            let timeout = self.next_timeout();
            let timeout = if full { timeout.map(|t| t.max(FULL_SOCKET_PAUSE)) } else { timeout };
            if self.waker.wait(&self.socket, full, timeout).is_err() {
                std::thread::sleep(FULL_SOCKET_PAUSE);
            }
        }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Does something with the worker, and sees to it that the thread wakes in time afterwards.
    pub(super) fn with_worker<T>(
        &self,
        work: impl FnOnce(&mut State) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut state = self.lock();
        let result = work(&mut state);
        let next = state.worker.poll_timeout().map_or(u64::MAX, |(at, _)| at.0);
        if next < state.wakes_at {
            state.wakes_at = next;
            self.waker.wake();
        }
        result
    }

    /// Waits until `look` finds something, at most to the deadline.
    pub(super) fn wait_until<T>(
        &self,
        deadline: Instant,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stop.load(Ordering::Acquire) {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends all that is due, in this thread, unless another is at it.
    pub(super) fn transmit(&self) {
        self.again.store(true, Ordering::SeqCst);
        while self.again.load(Ordering::SeqCst) {
            let mut sending = match self.sending.try_lock() {
                Ok(sending) => sending,
                Err(TryLockError::Poisoned(sending)) => sending.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.again.store(false, Ordering::SeqCst);
            self.send_due(&mut sending);
        }
        // Under the lock, so that nobody who is about to wait misses it.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Whether all that was taken from the worker has left.
    pub(super) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::SeqCst)
    }

    /// Why the path keeps the worker out, where it does.
    pub(super) fn too_narrow(&self) -> Option<TooNarrow> {
        self.lock().worker.too_narrow()
    }

    /// How often the switch's machine has said that nothing listens there.
    pub(super) fn connections_refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    pub(super) fn worker_statistics(&self) -> (WorkerStatistics, Standing) {
        let state = self.lock();
        (state.worker.statistics(clock::now()), state.worker.standing())
    }

    pub(super) fn io_statistics(&self) -> IoStatistics {
        let received = self.lock().received.clone();
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = sending.statistics.clone();
        drop(sending);
        all.received_datagrams = received.received_datagrams;
        all.received_bytes = received.received_bytes;
        all.receive_calls = received.receive_calls;
        all.receive_errors = received.receive_errors;
        all.cpu_s = received.cpu_s;
        all.events_forgotten = received.events_forgotten;
        all.connection_refused = self.connections_refused();
        self.socket.describe(&mut all);
        all
    }

    pub(super) fn take_events(&self, job: u32, switch: &str) -> Vec<String> {
        let events: Vec<_> = self.lock().events.drain(..).collect();
        let named = |event| match event {
            Event::Host(event) => events::of_client(&event, job, switch),
            Event::Other(event) => event,
        };
        events
            .into_iter()
            .map(|(at, event)| events::stamped(named(event), at).to_string())
            .collect()
    }

    fn send_due(&self, sending: &mut Sending) {
        let Sending { out, statistics } = sending;
        let refused = statistics.connection_refused;
        self.sent.store(false, Ordering::SeqCst);
        let now = clock::now();
        if out.flush(&self.socket, statistics) {
            // The worker is locked for one datagram at a time: what arrives meanwhile is taken in.
            while out.take(&self.socket, &self.peers, statistics, |buf| {
                self.lock().worker.poll_transmit(now, buf)
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

    /// Something did not get out: the worker hears of what is too long, people of the rest and of
    /// what is no question of its own, at most once a second.
    fn take_trouble(&self, now: olaf_engine::Instant, trouble: &Trouble) {
        let mut state = self.lock();
        if trouble.is_too_large() {
            let headers = super::config::headers(trouble.to.is_ipv6());
            let headers = u32::try_from(headers).unwrap_or_default();
            let largest = self.socket.path_mtu().map(|mtu| mtu.saturating_sub(headers));
            state.worker.handle_too_long(now, trouble.bytes, largest);
            state.collect(now);
        }
        let lately = state.told_trouble.is_some_and(|told| now.since(told) < TELL_TROUBLE_EVERY);
        if !trouble.is_probe && !lately {
            state.told_trouble = Some(now);
            state.keep(now, Event::Other(driver::told(trouble)));
        }
        drop(state);
        // What the worker planned for it may be due soon.
        self.waker.wake();
    }

    /// Takes in one batch; whether there may be more.
    fn receive(&self, inbox: &mut Inbox) -> bool {
        let result = self.socket.receive(inbox);
        let mut state = self.lock();
        state.received.receive_calls += 1;
        match result {
            Ok(()) => {}
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
        for burst in inbox.bursts() {
            for datagram in burst.datagrams() {
                state.received.received_datagrams += 1;
                state.received.received_bytes += datagram.len() as u64;
                // A refusal is in the worker's own counts.
                let _ = state.worker.handle_packet(now, self.switch, datagram);
            }
        }
        state.collect(now);
        drop(state);
        self.changed.notify_all();
        inbox.is_full()
    }

    fn pass_time(&self) {
        let now = clock::now();
        let mut state = self.lock();
        if state.worker.poll_timeout().is_some_and(|(at, _)| at <= now) {
            state.worker.handle_timeout(now);
            state.collect(now);
        }
        state.received.cpu_s = clock::thread_cpu_s();
    }

    fn next_timeout(&self) -> Option<Duration> {
        let mut state = self.lock();
        let next = state.worker.poll_timeout().map(|(at, _)| at);
        state.wakes_at = next.map_or(u64::MAX, |at| at.0);
        next.map(|at| at.since(clock::now()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn collect(&mut self, now: olaf_engine::Instant) {
        while let Some(event) = self.worker.poll_event() {
            self.keep(now, Event::Host(event));
        }
    }

    fn keep(&mut self, now: olaf_engine::Instant, event: Event) {
        if self.events.len() == EVENT_LIMIT {
            self.events.pop_front();
            self.received.events_forgotten += 1;
        }
        self.events.push_back((now, event));
    }
}
