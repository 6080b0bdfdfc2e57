//! The operations of a worker: each has a time limit and somebody who waits for its end.

use olaf_engine::report::Report;
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_host::collective::{At, Collective, Done, Failure, Operation, OperationId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{self, Duration};

/// The end of an operation, for those who wait for it. The operation may have several parts, each on a
/// core of the switch.
#[derive(Debug)]
pub(super) struct Slot {
    id: u64,
    has_ended: AtomicBool,
    /// A part has failed. The others may wait for long.
    has_failed: AtomicBool,
    parts: Mutex<Parts>,
    changed: Condvar,
}

#[derive(Debug)]
struct Parts {
    ended: Vec<Option<Done>>,
    /// The part that failed first.
    failed: Option<usize>,
    /// Who is told of the end.
    told: Option<Arc<Told>>,
}

/// How the parts of an operation ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) parts: Vec<Done>,
    /// The part that failed first.
    pub(super) failed: Option<usize>,
}

impl Slot {
    pub(super) fn new(id: u64, parts: usize) -> Self {
        let ended = (0..parts).map(|_| None).collect();
        Self {
            id,
            has_ended: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            parts: Mutex::new(Parts { ended, failed: None, told: None }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Returns true if that part has ended, or another has failed.
    pub(super) fn has_ended_part(&self, part: usize) -> bool {
        let parts = self.lock();
        self.has_failed() || parts.ended.get(part).is_none_or(Option::is_some)
    }

    /// How the parts of the operation ended, once all have; only once.
    pub(super) fn take(&self) -> Option<Ended> {
        let mut parts = self.lock();
        if !self.has_ended() || parts.ended.is_empty() {
            return None;
        }
        let ended: Option<Vec<Done>> = core::mem::take(&mut parts.ended).into_iter().collect();
        ended.map(|ended| Ended { parts: ended, failed: parts.failed })
    }

    /// Waits until all parts have ended or one has failed; whether that is so.
    pub(super) fn wait(&self, deadline: time::Instant) -> bool {
        self.wait_until(deadline, || self.has_ended() || self.has_failed())
    }

    /// Waits for the end of all parts; whether it has come.
    pub(super) fn wait_for_all(&self, deadline: time::Instant) -> bool {
        self.wait_until(deadline, || self.has_ended())
    }

    fn wait_until(&self, deadline: time::Instant, is_over: impl Fn() -> bool) -> bool {
        let mut parts = self.lock();
        while !is_over() {
            let left = deadline.saturating_duration_since(time::Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(parts, left);
            parts = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Has the end told; whether it is still to come.
    pub(super) fn tell(&self, told: &Arc<Told>) -> bool {
        let mut parts = self.lock();
        if self.has_ended() {
            return false;
        }
        parts.told = Some(told.clone());
        true
    }

    fn end(&self, part: usize, done: Done) {
        let mut parts = self.lock();
        if done.outcome.is_err() {
            parts.failed.get_or_insert(part);
            self.has_failed.store(true, Ordering::Release);
            self.changed.notify_all();
        }
        parts.ended[part] = Some(done);
        if parts.ended.iter().all(Option::is_some) {
            self.has_ended.store(true, Ordering::Release);
            self.changed.notify_all();
            if let Some(told) = parts.told.take() {
                told.push(self.id);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Operations that have ended and whose caller wants to be told, in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Told {
    ended: Mutex<(VecDeque<u64>, bool)>,
    changed: Condvar,
}

impl Told {
    /// The next one. Waits for it; none at the deadline, and after the last one of a client that is
    /// closed.
    pub(super) fn next(&self, timeout: Duration) -> Option<u64> {
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

    fn push(&self, id: u64) {
        self.lock().0.push_back(id);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, (VecDeque<u64>, bool)> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a worker with two switches is, for those who wait for a move.
#[derive(Debug)]
pub(super) struct Whereabouts {
    at: Mutex<At>,
    changed: Condvar,
}

impl Whereabouts {
    /// Waits until the worker has moved. False: it does not, or the time is over.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let is_open = |at: &mut At| matches!(*at, At::First | At::Moving);
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, is_open);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == At::Second
    }

    /// Returns true if the worker goes to no second switch any more, or is there.
    pub(super) fn is_final(&self) -> bool {
        !matches!(*self.lock(), At::First | At::Moving)
    }

    fn note(&self, at: At) {
        if std::mem::replace(&mut *self.lock(), at) != at {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, At> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker, whose operations end at their time limits and tell those who wait.
pub(super) struct Operations {
    /// The end of the job's protocol.
    pub(super) end: Box<dyn Collective + Send>,
    open: BTreeMap<OperationId, Open>,
    /// Where the worker is between its two switches.
    at: Arc<Whereabouts>,
}

struct Open {
    began: Instant,
    timeout: Duration,
    slot: Arc<Slot>,
    part: usize,
}

impl Operations {
    pub(super) fn new(end: Box<dyn Collective + Send>) -> Self {
        let at = Whereabouts { at: Mutex::new(At::First), changed: Condvar::new() };
        Self { end, open: BTreeMap::new(), at: Arc::new(at) }
    }

    /// Where the worker is between its two switches.
    pub(super) fn whereabouts(&self) -> Arc<Whereabouts> {
        self.at.clone()
    }

    /// The generation in which an operation that begins now has its place; none while that is open.
    pub(super) fn begins_in(&self) -> Option<u32> {
        self.end.begins_in()
    }

    /// Begins a part of an operation, which is given up after `timeout`.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        timeout: Duration,
        operation: Operation,
        slot: Arc<Slot>,
        part: usize,
    ) -> Result<OperationId, (Failure, Operation)> {
        let id = self.end.begin(now, operation)?;
        self.open.insert(id, Open { began: now, timeout, slot, part });
        self.settle();
        Ok(id)
    }

    /// Begins the last operation of a worker, if others may need something of it.
    pub(super) fn say_farewell(
        &mut self,
        now: Instant,
        timeout: Duration,
        slot: Arc<Slot>,
    ) -> Option<OperationId> {
        let id = self.end.say_farewell(now)?;
        self.open.insert(id, Open { began: now, timeout, slot, part: 0 });
        self.settle();
        Some(id)
    }

    pub(super) fn give_up(&mut self, now: Instant, id: OperationId) {
        if self.open.contains_key(&id) {
            self.end.give_up(now, id);
            self.settle();
        }
    }

    /// Pipelined sums without a result fail at all workers.
    pub(super) fn end_pipeline(&mut self, now: Instant) {
        self.end.end_pipeline(now);
        self.settle();
    }

    /// Leaves the job; open operations fail.
    pub(super) fn leave(&mut self, now: Instant) {
        self.end.leave(now);
        self.settle();
    }

    /// Returns true if no operation is open.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Hands the operations that have ended to those who wait for them.
    fn settle(&mut self) {
        while let Some(done) = self.end.poll_done() {
            let id = done.id;
            let Some(open) = self.open.remove(&id) else { continue };
            open.slot.end(open.part, done);
        }
        if let Some(second) = self.end.second_switch() {
            self.at.note(second.at);
        }
    }

    /// When each operation is given up; none while the job moves.
    fn limits(&self) -> impl Iterator<Item = (OperationId, Instant)> {
        let since = self.end.limits_since();
        let limit = move |open: &Open| Some(open.began.max(since?) + open.timeout);
        self.open.iter().filter_map(move |(id, open)| Some((*id, limit(open)?)))
    }

    fn first_limit(&self) -> Option<Instant> {
        self.limits().map(|(_, at)| at).min()
    }
}

impl Engine for Operations {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let verdict = self.end.handle_packet(now, from, bytes);
        self.settle();
        verdict
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.end.poll_transmit(now, port, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let limit = self.first_limit().map(|at| (at, Why::BlockDeadline));
        [self.end.poll_timeout(), limit].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.first_limit().is_some_and(|at| at <= now) {
            let late = self.limits().filter(|(_, at)| *at <= now);
            let late: Vec<_> = late.map(|(id, _)| id).collect();
            late.into_iter().for_each(|id| self.end.give_up(now, id));
        }
        if self.end.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.end.handle_timeout(now);
        }
        self.settle();
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.end.poll_event()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.end.peers(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.end.report(now, to);
    }

    fn handle_too_long(&mut self, now: Instant, bytes: usize, largest: Option<u32>) {
        self.end.handle_too_long(now, bytes, largest);
    }
}
