//! A switch behind a socket: datagrams wait there for the processor, and a full socket drops them.

use olaf_engine::switch::reduce::Switch;
use olaf_engine::{
    DropReason, Engine, Event, Instant, PeerId, PortId, Report, Source, Transmit, Verdict, Why,
};
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes that a datagram takes in a socket beside its own.
const OVERHEAD: usize = 2304;

pub(super) struct Socket {
    switch: Switch,
    waiting: VecDeque<(Source, Vec<u8>)>,
    bytes: usize,
    /// Bytes that fit.
    room: usize,
    /// Time that the processor needs for a datagram.
    each: Duration,
    free_at: Instant,
    pub(super) came: u64,
    pub(super) dropped: u64,
}

impl Socket {
    pub(super) fn new(switch: Switch, room: usize, each: Duration) -> Self {
        Self {
            switch,
            waiting: VecDeque::new(),
            bytes: 0,
            room,
            each,
            free_at: Instant(0),
            came: 0,
            dropped: 0,
        }
    }
}

impl Engine for Socket {
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict {
        self.came += 1;
        if self.bytes + bytes.len() + OVERHEAD > self.room {
            self.dropped += 1;
            return Verdict::Drop(DropReason::LinkFull);
        }
        if self.waiting.is_empty() {
            self.free_at = self.free_at.max(now) + self.each;
        }
        self.bytes += bytes.len() + OVERHEAD;
        self.waiting.push_back((from, bytes.to_vec()));
        Verdict::Absorb
    }

    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit> {
        self.switch.poll_transmit(now, port, buf)
    }

    fn poll_timeout(&self) -> Option<(Instant, Why)> {
        let own = self.waiting.front().map(|_| (self.free_at, Why::Departure));
        own.into_iter().chain(self.switch.poll_timeout()).min_by_key(|(at, _)| *at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.free_at <= now
            && let Some((from, bytes)) = self.waiting.pop_front()
        {
            self.bytes -= bytes.len() + OVERHEAD;
            self.free_at = now + self.each;
            self.switch.handle_packet(now, from, &bytes);
        }
        self.switch.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.switch.poll_event()
    }

    fn ports(&self) -> u16 {
        self.switch.ports()
    }

    fn peers(&self, keep: &mut dyn FnMut(PeerId)) {
        self.switch.peers(keep);
    }

    fn report(&self, now: Instant, to: &mut dyn Report) {
        self.switch.report(now, to);
    }
}
