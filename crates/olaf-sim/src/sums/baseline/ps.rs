//! Parameter servers that wait for whole vectors (iSwitch §2.3, Figure 8a).

use super::super::party::Worked;
use super::stream::{Stream, StreamConfig};
use super::{Ends, add, part, poll_streams};
use core::time::Duration;
use olaf_engine::report::Report;
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, Transmit, Verdict, Why};
use olaf_host::collective::{Collective, Done, Failure, Operation, OperationId, Standing};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A worker. Each server has a part of every vector.
pub(crate) struct PsWorker {
    ends: Ends,
    open: BTreeMap<u32, Open>,
}

struct Open {
    operation: Operation,
    began: Instant,
    /// Servers whose part has not come.
    missing: usize,
}

impl PsWorker {
    pub(crate) fn new(rank: u32, workers: u32, servers: &[PeerId], config: StreamConfig) -> Self {
        Self { ends: Ends::new(rank, workers, servers, config), open: BTreeMap::new() }
    }

    pub(crate) fn counts(&self) -> Worked {
        self.ends.counts()
    }

    fn take(&mut self, now: Instant, server: usize, message: u32, lanes: &[u8]) {
        let servers = self.ends.streams.len();
        let open = self.open.get_mut(&message).expect("a server answers what this worker began");
        let bytes = open.operation.buffer.bytes_mut();
        let range = part(bytes.len() / 4, servers, server);
        bytes[4 * range.start..4 * range.end].copy_from_slice(lanes);
        open.missing -= 1;
        if open.missing == 0 {
            let open = self.open.remove(&message).expect("it was there");
            self.ends.end(now, open.began, OperationId(message.into()), open.operation);
        }
    }
}

impl Engine for PsWorker {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let streams = &mut self.ends.streams;
        let server = streams.iter().position(|stream| stream.peer() == from.peer);
        let server = server.expect("only servers send to a worker");
        if let Some((message, lanes)) = streams[server].receive(now, from.class, bytes) {
            self.take(now, server, message, &lanes);
        }
        Verdict::Absorb
    }

    fn poll_transmit(&mut self, now: Instant, _: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.ends.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        self.ends.timeout().map(|at| (at, Why::Retransmission))
    }

    fn handle_timeout(&mut self, now: Instant) {
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

impl Collective for PsWorker {
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
        let message = u32::try_from(id.0).expect("the scenario was checked");
        let servers = self.ends.streams.len();
        let bytes = operation.buffer.bytes();
        for (server, stream) in self.ends.streams.iter_mut().enumerate() {
            let range = part(bytes.len() / 4, servers, server);
            stream.send(message, bytes[4 * range.start..4 * range.end].into());
        }
        self.open.insert(message, Open { operation, began: now, missing: servers });
        Ok(id)
    }

    fn poll_done(&mut self) -> Option<Done> {
        self.ends.poll_done()
    }

    fn give_up(&mut self, now: Instant, operation: OperationId) {
        let open = u32::try_from(operation.0).ok().and_then(|id| self.open.remove(&id));
        if let Some(Open { operation: given_up, began, .. }) = open {
            let (outcome, buffer) = (Err(Failure::TimedOut), given_up.buffer);
            self.ends.done.push(Done { id: operation, outcome, buffer, took: now.since(began) });
        }
    }
}

/// A server: it adds the vectors of all workers once it has them, and sends the sum to each worker.
pub(crate) struct PsServer {
    streams: Vec<Stream>,
    gathering: BTreeMap<u32, Gathering>,
    /// Time to add a byte of one worker's vector; none: no time.
    adds: Option<AddRate>,
    /// Sums that are ready then, in order.
    adding: Vec<(Instant, u32, Arc<[u8]>)>,
    busy_until: Instant,
}

/// How fast a machine adds vectors, bits per second.
pub(crate) type AddRate = u64;

struct Gathering {
    sum: Vec<u8>,
    missing: usize,
}

impl PsServer {
    pub(crate) fn new(workers: &[PeerId], config: StreamConfig, adds: Option<AddRate>) -> Self {
        Self {
            streams: workers.iter().map(|worker| Stream::new(*worker, config)).collect(),
            gathering: BTreeMap::new(),
            adds,
            adding: Vec::new(),
            busy_until: Instant::default(),
        }
    }

    fn take(&mut self, now: Instant, message: u32, lanes: Vec<u8>) {
        let workers = self.streams.len();
        let gathering = self
            .gathering
            .entry(message)
            .or_insert_with(|| Gathering { sum: vec![0; lanes.len()], missing: workers });
        add(&mut gathering.sum, &lanes);
        gathering.missing -= 1;
        if gathering.missing > 0 {
            return;
        }
        let sum = self.gathering.remove(&message).expect("it was there").sum;
        let took = self.adds.map_or(Duration::ZERO, |rate| time_to_add(workers * sum.len(), rate));
        self.busy_until = self.busy_until.max(now) + took;
        self.adding.push((self.busy_until, message, sum.into()));
        self.send_ready(now);
    }

    fn send_ready(&mut self, now: Instant) {
        while self.adding.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, message, sum) = self.adding.remove(0);
            self.streams.iter_mut().for_each(|stream| stream.send(message, sum.clone()));
        }
    }
}

/// Time to add that many bytes.
pub(super) fn time_to_add(bytes: usize, rate: AddRate) -> Duration {
    let ns = bytes as u128 * 8 * 1_000_000_000 / u128::from(rate);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

impl Engine for PsServer {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        let stream = self.streams.iter_mut().find(|stream| stream.peer() == from.peer);
        let stream = stream.expect("only its workers send to a server");
        if let Some((message, lanes)) = stream.receive(now, from.class, bytes) {
            self.take(now, message, lanes);
        }
        Verdict::Absorb
    }

    fn poll_transmit(&mut self, now: Instant, _: PortId, buf: &mut [u8]) -> Option<Transmit> {
        poll_streams(&mut self.streams, now, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let of_streams = self.streams.iter().filter_map(Stream::timeout).min();
        let added = self.adding.first().map(|(at, ..)| *at);
        let first = [of_streams, added].into_iter().flatten().min()?;
        Some((first, Why::Retransmission))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.send_ready(now);
        self.streams.iter_mut().for_each(|stream| stream.handle_timeout(now));
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.streams.iter().for_each(|stream| keep(stream.peer()));
    }

    fn report(&self, _: Instant, _: &mut dyn Report) {}
}
