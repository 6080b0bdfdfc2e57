//! Updates that leave at once, alone or merged.

use olaf_engine::switch::native::Config;
use olaf_engine::{Engine, Instant, PeerId, PortId, Source, Switch, Verdict};
use olaf_samples::{answer, join, welcome};
use olaf_wire::offsets::MAX_DATAGRAM;
use olaf_wire::{Address, Update};
use std::hint::black_box;

/// Departures of a batch: as many as have one look at the clock, which itself takes some tens of
/// nanoseconds.
pub(crate) const BATCH: usize = 64;
const SERVER: Source = Source::new(PortId::UPLINK, PeerId(0));

/// A switch that sends on what it gets.
pub(crate) struct Forwarding {
    /// Updates that leave as one.
    merged: usize,
    switch: Switch,
    now: Instant,
    sequence: u32,
    /// The datagrams of a batch, made before the clock starts.
    datagrams: Vec<Vec<u8>>,
    lanes: Vec<f32>,
    buf: Vec<u8>,
}

impl Forwarding {
    /// Each update has `lanes` lanes, and the switch merges `merged` updates into one.
    pub(crate) fn new(lanes: usize, merged: usize) -> Self {
        let mut switch = Switch::new(Config::default(), 1).expect("the default configuration");
        switch.set_default_server(SERVER.peer);
        let size = Update::datagram_len(lanes);
        let mut bench = Self {
            merged,
            switch,
            now: Instant(1),
            sequence: 0,
            datagrams: vec![vec![0; size]; BATCH * merged],
            lanes: vec![1.0; lanes],
            buf: vec![0; MAX_DATAGRAM],
        };
        for worker in 0..merged {
            bench.enters(worker);
        }
        bench
    }

    /// One batch. What is to be measured is handed over as a call.
    pub(crate) fn batch(&mut self, measure: impl FnOnce(&mut dyn FnMut())) {
        self.now = Instant(self.now.0 + 1_000_000);
        let merged = self.merged;
        for (index, datagram) in self.datagrams.iter_mut().enumerate() {
            let (worker, departure) = (index % merged, index / merged);
            let update = Update {
                generated_oldest_ns: self.now.0,
                generated_newest_ns: self.now.0,
                ..olaf_samples::update(address(worker), self.sequence + departure as u32)
            };
            update.emit(&self.lanes, datagram);
        }
        let mut left = 0;
        measure(&mut || left += self.departures());
        assert_eq!(left, BATCH, "what arrives together leaves as one");
        self.sequence += BATCH as u32;
        self.is_answered();
    }

    /// Datagrams in and out; the number of those that left.
    fn departures(&mut self) -> usize {
        let (mut left, merged) = (0, self.merged);
        for departure in self.datagrams.chunks_exact(merged) {
            for (worker, datagram) in departure.iter().enumerate() {
                let verdict = self.switch.handle_packet(self.now, source(worker), datagram);
                assert_eq!(verdict, Verdict::Absorb, "every update is a good one");
            }
            while black_box(self.switch.poll_transmit(self.now, PortId::UPLINK, &mut self.buf))
                .is_some()
            {
                left += 1;
            }
        }
        left
    }

    /// Every update that was timed has left, alone or merged, and nothing waits.
    pub(crate) fn check(&mut self, batches: usize) {
        let fates = self.switch.statistics(self.now).fates;
        let updates = (batches * BATCH * self.merged) as u64;
        let expected = if self.merged == 1 { (updates, 0) } else { (0, updates) };
        assert_eq!((fates.sent_alone, fates.merged), expected, "{fates:?}");
        assert!(!self.leaves(PortId::UPLINK) && !self.leaves(PortId::DOWNLINK));
    }

    /// The server answers the whole batch, so that nothing piles up in the switch.
    fn is_answered(&mut self) {
        for departure in (0..BATCH as u32).rev() {
            let len = answer(address(0), self.sequence - departure).emit(&[], &mut self.buf);
            self.switch.handle_packet(self.now, SERVER, &self.buf[..len]);
            while self.leaves(PortId::DOWNLINK) {}
        }
        while self.switch.poll_event().is_some() {}
    }

    fn enters(&mut self, worker: usize) {
        let lanes = self.lanes.len() as u32;
        let join = join(address(worker), lanes, lanes);
        let len = join.emit(&mut self.buf);
        self.switch.handle_packet(self.now, source(worker), &self.buf[..len]);
        while self.leaves(PortId::UPLINK) {}
        let len = welcome(&join).emit(&mut self.buf);
        self.switch.handle_packet(self.now, SERVER, &self.buf[..len]);
        while self.leaves(PortId::DOWNLINK) {}
    }

    fn leaves(&mut self, port: PortId) -> bool {
        self.switch.poll_transmit(self.now, port, &mut self.buf).is_some()
    }
}

fn source(worker: usize) -> Source {
    Source::new(PortId::DOWNLINK, PeerId(1 + worker as u32))
}

fn address(worker: usize) -> Address {
    olaf_samples::address(1, 0, worker as u32)
}
