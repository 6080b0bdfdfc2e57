//! The operations of a worker: each has a time limit and somebody who waits for its end.

use olaf_engine::report::Report;
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_host::collective::{Collective, Done, Failure, Operation, OperationId, Reducer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{self, Duration};

/// The end of an operation, for those who wait for it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    has_ended: AtomicBool,
    done: Mutex<Option<Done>>,
    changed: Condvar,
}

impl Slot {
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// How the operation ended; only once.
    pub(super) fn take(&self) -> Option<Done> {
        self.lock().take()
    }

    /// Waits for the end; whether it has come.
    pub(super) fn wait(&self, deadline: time::Instant) -> bool {
        let mut done = self.lock();
        while !self.has_ended() {
            let left = deadline.saturating_duration_since(time::Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(done, left);
            done = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn end(&self, done: Done) {
        let mut slot = self.lock();
        *slot = Some(done);
        self.has_ended.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Done>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Operations that have ended and whose caller wants to be told, in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Told {
    ended: Mutex<(VecDeque<OperationId>, bool)>,
    changed: Condvar,
}

impl Told {
    /// The next one. Waits for it; none at the deadline, and after the last one of a client that is
    /// closed.
    pub(super) fn next(&self, timeout: Duration) -> Option<OperationId> {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |(ended, is_closed)| {
            ended.is_empty() && !*is_closed
        });
        waited.unwrap_or_else(PoisonError::into_inner).0.0.pop_front()
    }

    pub(super) fn is_closed(&self) -> bool {
        let told = self.lock();
        told.1 && told.0.is_empty()
    }

    pub(super) fn close(&self) {
        self.lock().1 = true;
        self.changed.notify_all();
    }

    fn push(&self, id: OperationId) {
        self.lock().0.push_back(id);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, (VecDeque<OperationId>, bool)> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker, whose operations end at their time limits and tell those who wait.
pub(super) struct Operations {
    pub(super) reducer: Reducer,
    open: BTreeMap<OperationId, Open>,
    told: Arc<Told>,
}

struct Open {
    until: Instant,
    slot: Arc<Slot>,
    tells: bool,
}

impl Operations {
    pub(super) fn new(reducer: Reducer, told: Arc<Told>) -> Self {
        Self { reducer, open: BTreeMap::new(), told }
    }

    /// Begins an operation that is given up at `until`. `tells`: its end is told to [`Told`].
    pub(super) fn begin(
        &mut self,
        now: Instant,
        until: Instant,
        operation: Operation,
        tells: bool,
    ) -> Result<(OperationId, Arc<Slot>), (Failure, Operation)> {
        let id = self.reducer.begin(now, operation)?;
        let slot = Arc::new(Slot::default());
        self.open.insert(id, Open { until, slot: slot.clone(), tells });
        self.settle();
        Ok((id, slot))
    }

    /// Tells the end of this operation, too; whether it is still open.
    pub(super) fn tell(&mut self, id: OperationId) -> bool {
        self.open.get_mut(&id).map(|open| open.tells = true).is_some()
    }

    pub(super) fn give_up(&mut self, now: Instant, id: OperationId) {
        if self.open.contains_key(&id) {
            self.reducer.give_up(now, id);
            self.settle();
        }
    }

    /// Leaves the job; open operations fail.
    pub(super) fn leave(&mut self, now: Instant) {
        self.reducer.leave(now);
        self.settle();
    }

    /// Whether no operation is open.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Hands the operations that have ended to those who wait for them.
    fn settle(&mut self) {
        while let Some(done) = self.reducer.poll_done() {
            let id = done.id;
            let Some(open) = self.open.remove(&id) else { continue };
            open.slot.end(done);
            if open.tells {
                self.told.push(id);
            }
        }
    }

    fn first_limit(&self) -> Option<Instant> {
        self.open.values().map(|open| open.until).min()
    }
}

impl Engine for Operations {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let verdict = self.reducer.handle_packet(now, from, bytes);
        self.settle();
        verdict
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.reducer.poll_transmit(now, port, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let limit = self.first_limit().map(|at| (at, Why::BlockDeadline));
        [self.reducer.poll_timeout(), limit].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.first_limit().is_some_and(|at| at <= now) {
            let late = self.open.iter().filter(|(_, open)| open.until <= now);
            let late: Vec<_> = late.map(|(id, _)| *id).collect();
            late.into_iter().for_each(|id| self.reducer.give_up(now, id));
        }
        if self.reducer.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.reducer.handle_timeout(now);
        }
        self.settle();
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.reducer.poll_event()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.reducer.peers(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.reducer.report(now, to);
    }

    fn handle_too_long(&mut self, now: Instant, bytes: usize, largest: Option<u32>) {
        self.reducer.handle_too_long(now, bytes, largest);
    }
}
