//! A ring all-reduce: each of n workers sends a part of its vector to the next worker, 2(n-1) times (iSwitch §2.3).

use super::super::party::Worked;
use super::ps::{AddRate, time_to_add};
use super::stream::StreamConfig;
use super::{Ends, add, part};
use olaf_engine::report::Report;
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_host::collective::{Collective, Done, Failure, Operation, OperationId, Standing};
use std::collections::{BTreeMap, VecDeque};

/// The stream to the next worker, and the stream from the one before.
const NEXT: usize = 0;
const BEFORE: usize = 1;

/// A worker of a ring. Its operations run one after the other.
pub(crate) struct RingWorker {
    ends: Ends,
    open: VecDeque<Open>,
    /// Parts that have come, by number.
    came: BTreeMap<u32, Vec<u8>>,
    /// The number of the part that comes next: the same at all workers.
    next: u32,
    /// Time to add a byte; none: no time.
    adds: Option<AddRate>,
    /// The part that has come is added by then.
    added_at: Option<Instant>,
}

struct Open {
    id: OperationId,
    operation: Operation,
    began: Instant,
    /// Parts that have come.
    step: u32,
}

impl RingWorker {
    /// `next`, `before`: the neighbours of the worker.
    pub(crate) fn new(
        rank: u32,
        workers: u32,
        [next, before]: [PeerId; 2],
        config: StreamConfig,
        adds: Option<AddRate>,
    ) -> Self {
        let ends = Ends::new(rank, workers, &[next, before], config);
        let (open, came) = (VecDeque::new(), BTreeMap::new());
        Self { ends, open, came, next: 0, adds, added_at: None }
    }

    pub(crate) fn counts(&self) -> Worked {
        self.ends.counts()
    }

    /// Parts that a worker sends in an operation.
    const fn steps(&self) -> u32 {
        2 * (self.ends.workers - 1)
    }

    /// Lanes of the part that this worker sends in a step; what it gets is sent in the same step by the one before.
    fn range(&self, lanes: usize, rank: u32, step: u32) -> core::ops::Range<usize> {
        let workers = self.ends.workers;
        let number = (rank + 2 * workers - step % workers) % workers;
        let lanes = part(lanes, workers as usize, number as usize);
        4 * lanes.start..4 * lanes.end
    }

    fn send_part(&mut self) {
        let Some(open) = self.open.front() else { return };
        let bytes = open.operation.buffer.bytes();
        let range = self.range(bytes.len() / 4, self.ends.rank, open.step);
        let part = bytes[range].into();
        self.ends.streams[NEXT].send(self.next, part);
    }

    /// Takes parts that have come, as far as operations are open.
    fn go_on(&mut self, now: Instant) {
        while let Some(open) = self.open.front() {
            let Some(part) = self.came.get(&self.next) else { return };
            let is_sum = open.step < self.ends.workers - 1;
            if let Some(rate) = self.adds.filter(|_| is_sum) {
                let took = time_to_add(part.len(), rate);
                if *self.added_at.get_or_insert(now + took) > now {
                    return;
                }
            }
            self.added_at = None;
            self.take_part(now, is_sum);
        }
    }

    fn take_part(&mut self, now: Instant, is_sum: bool) {
        let part = self.came.remove(&self.next).expect("it has come");
        let (workers, rank, steps) = (self.ends.workers, self.ends.rank, self.steps());
        let before = (rank + workers - 1) % workers;
        let open = self.open.front().expect("an operation is open");
        let range = self.range(open.operation.buffer.bytes().len() / 4, before, open.step);
        let open = self.open.front_mut().expect("an operation is open");
        let place = &mut open.operation.buffer.bytes_mut()[range];
        if is_sum {
            add(place, &part);
        } else {
            place.copy_from_slice(&part);
        }
        open.step += 1;
        self.next += 1;
        if open.step < steps {
            self.send_part();
        } else {
            self.end_first(now);
        }
    }

    fn end_first(&mut self, now: Instant) {
        let ended = self.open.pop_front().expect("an operation is open");
        self.ends.end(now, ended.began, ended.id, ended.operation);
        self.send_part();
    }
}

impl Engine for RingWorker {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        // A ring of two workers has one neighbour: data comes from the worker before, answers from the next one.
        let is_data = bytes[0] == 1;
        let stream = if is_data { BEFORE } else { NEXT };
        if let Some((number, part)) = self.ends.streams[stream].receive(now, from.class, bytes) {
            self.came.insert(number, part);
            self.go_on(now);
        }
        Verdict::Absorb
    }

    fn poll_transmit(&mut self, now: Instant, _: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.ends.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let first = [self.ends.timeout(), self.added_at].into_iter().flatten().min()?;
        Some((first, Why::Retransmission))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.go_on(now);
        self.ends.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.ends.streams.iter().for_each(|stream| keep(stream.peer()));
    }

    fn report(&self, _: Instant, _: &mut dyn Report) {}
}

impl Collective for RingWorker {
    fn join(&mut self, _: Instant) {
        self.ends.join();
    }

    fn leave(&mut self, _: Instant) {
        self.ends.standing = Standing::Left;
    }

    fn standing(&self) -> Standing {
        self.ends.standing
    }

    fn begin(
        &mut self,
        now: Instant,
        operation: Operation,
    ) -> Result<OperationId, (Failure, Operation)> {
        let id = self.ends.next_operation();
        if self.ends.workers == 1 {
            self.ends.end(now, now, id, operation);
            return Ok(id);
        }
        self.open.push_back(Open { id, operation, began: now, step: 0 });
        if self.open.len() == 1 {
            self.send_part();
            self.go_on(now);
        }
        Ok(id)
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.ends.poll_done()
    }

    fn give_up(&mut self, now: Instant, operation: OperationId) {
        let at = self.open.iter().position(|open| open.id == operation);
        if let Some(given_up) = at.and_then(|at| self.open.remove(at)) {
            let buffer = given_up.operation.buffer;
            let took = now.since(given_up.began);
            let outcome = Err(Failure::TimedOut);
            self.ends.done.push(Done { id: operation, outcome, buffer, took });
        }
    }
}
