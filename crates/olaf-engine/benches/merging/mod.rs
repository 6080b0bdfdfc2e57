//! A switch whose updates all merge into one waiting entry, and the datagrams that it gets.

use olaf_engine::party::Limits;
use olaf_engine::switch::native::{Config, Pacing};
use olaf_engine::{Engine, Instant, PeerId, PortId, Source, Switch, Verdict};
use olaf_samples::{join, welcome};
use olaf_wire::offsets::update as at;
use olaf_wire::{Address, Update};
use std::hint::black_box;
use std::time::Duration;

/// Rate of the link on which the updates come, in bits a second.
pub(crate) const LINK_BPS: u64 = 10_000_000_000;
const SERVER: PeerId = PeerId(0);

/// The nanoseconds that a datagram takes on the link, with the headers and gaps of Ethernet, IP and UDP.
pub(crate) fn wire_ns(datagram: usize) -> u64 {
    (datagram as u64 + 66) * 8 * 1_000_000_000 / LINK_BPS
}

/// A datagram where a driver has it: at the start of a page.
pub(crate) struct Datagram {
    page: Vec<u8>,
    start: usize,
    len: usize,
}

impl Datagram {
    /// The datagram of an update that has `lanes` lanes, each a small number.
    pub(crate) fn new(update: &Update, lanes: usize) -> Self {
        let len = Update::datagram_len(lanes);
        let page = vec![0; 4096 + len];
        let start = page.as_ptr().align_offset(4096);
        let mut datagram = Self { page, start, len };
        update.emit(&vec![1e-3; lanes], datagram.bytes_mut());
        datagram
    }

    /// All its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.page[self.start..self.start + self.len]
    }

    /// All its bytes, to write into.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.page[self.start..self.start + self.len]
    }
}

/// The whole switch, from the bytes of a datagram on.
pub(crate) struct Packets {
    switch: Switch,
    now: Instant,
    /// The time between two updates.
    every: Duration,
    /// An update, and its possible senders.
    datagram: Datagram,
    headers: Vec<[u8; 16]>,
    /// Whose turn it is, and with which update.
    worker: usize,
    sequence: u32,
}

impl Packets {
    /// A switch with these limits. `workers` workers are in, and one update waits, whose lanes are `lanes`.
    pub(crate) fn new(limits: Limits, lanes: usize, workers: u32) -> Self {
        // One credit, spent at once and never given back: all that follows waits, and merges.
        let pacing = Pacing::Credits { credits: 1, timeout: Duration::from_secs(1 << 30) };
        let config = Config { limits, ..Config::default() }.paced(pacing);
        let mut switch = Switch::new(config, 1).expect("a configuration");
        switch.set_default_server(SERVER);
        let addresses: Vec<_> = (1..=workers).map(address).collect();
        let now = Instant(1_000_000_000);
        let mut buf = vec![0; 65_536];
        for (peer, address) in (1..).map(PeerId).zip(&addresses) {
            let join = join(*address, lanes as u32, lanes as u32);
            let len = join.emit(&mut buf);
            let from = Source::new(PortId::DOWNLINK, peer);
            assert_eq!(switch.handle_packet(now, from, &buf[..len]), Verdict::Absorb);
            let len = welcome(&join).emit(&mut buf);
            let above = Source::new(PortId::UPLINK, SERVER);
            assert_eq!(switch.handle_packet(now, above, &buf[..len]), Verdict::Absorb);
        }
        let headers = addresses.iter().map(|address| {
            let datagram = Datagram::new(&update(*address), lanes);
            datagram.bytes()[8..24].try_into().expect("16 bytes")
        });
        let headers = headers.collect();
        let datagram = Datagram::new(&update(addresses[0]), lanes);
        let every = Duration::from_nanos(wire_ns(datagram.len));
        let mut packets = Self { switch, now, every, datagram, headers, worker: 0, sequence: 1 };
        packets.call();
        for port in [PortId::UPLINK, PortId::DOWNLINK] {
            while packets.switch.poll_transmit(now, port, &mut buf).is_some() {}
        }
        packets.call();
        packets
    }

    /// The next update, of the next worker.
    pub(crate) fn call(&mut self) {
        let bytes = black_box(self.datagram.bytes_mut());
        // One datagram's bytes serve for all workers, so that the lanes are in the same cache as
        // the baseline's.
        bytes[8..24].copy_from_slice(&self.headers[self.worker]);
        for field in [at::SEQUENCE, at::HOP_SEQUENCE, at::FLOW_SEQUENCE] {
            bytes[field..field + 4].copy_from_slice(&self.sequence.to_be_bytes());
        }
        let from = Source::new(PortId::DOWNLINK, PeerId(self.worker as u32 + 1));
        let verdict = self.switch.handle_packet(self.now, from, black_box(self.datagram.bytes()));
        assert_eq!(verdict, Verdict::Absorb, "every update is a good one");
        self.now = self.now + self.every;
        self.worker += 1;
        if self.worker == self.headers.len() {
            (self.worker, self.sequence) = (0, self.sequence + 1);
        }
    }

    /// All updates were taken, and wait as one.
    pub(crate) fn check(&mut self) {
        assert_eq!(self.switch.queue_status(self.now).used, 1, "all waits in one slot");
        let fates = self.switch.statistics(self.now).fates;
        let of_workers = self.headers.len() as u64;
        let updates = u64::from(self.sequence - 1) * of_workers + self.worker as u64;
        assert_eq!(fates.sent_alone + fates.waiting, updates, "{fates:?}");
        assert!(fates.rejected.is_empty(), "{fates:?}");
    }
}

/// The address of one of the workers.
pub(crate) fn address(worker: u32) -> Address {
    olaf_samples::address(1, 1, worker)
}

/// An update of it.
pub(crate) fn update(address: Address) -> Update {
    Update { reward: 0.5, ..olaf_samples::update(address, 0) }
}
