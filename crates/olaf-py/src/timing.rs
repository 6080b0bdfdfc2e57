//! How long a switch's engine takes for an update, without sockets around it.
//!
//! The driver's own sequence, [`Engine::handle_packet`] and then [`Engine::poll_transmit`] until
//! nothing more leaves, on datagrams as they come from the wire.

use olaf_engine::engine::{Source, Verdict};
use olaf_engine::switch::native::Config;
use olaf_engine::{Engine, Instant, PeerId, PortId, Switch};
use olaf_wire::offsets::{MAX_DATAGRAM, MAX_SEGMENT_LANES};
use olaf_wire::{
    Address, Answer, ClusterId, JobId, Join, QueueStatus, Session, Update, Welcome, WelcomeCode,
    WorkerId,
};
use std::hint::black_box;

/// Departures between two looks at the clock, which itself takes some tens of nanoseconds.
const BATCH: usize = 64;
const SERVER: PeerId = PeerId(0);

/// What to time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Lanes of an update: one segment.
    pub(crate) lanes: usize,
    /// Updates that leave as one: 1 is only passing on.
    pub(crate) merged: usize,
    /// How often 64 departures are timed.
    pub(crate) batches: usize,
}

/// Nanoseconds an update that arrives and leaves alone, or merges and leaves together, takes the
/// engine: one number a batch of 64 departures.
///
/// # Errors
/// What of the setting cannot be.
pub(crate) fn time_engine(timing: Timing) -> Result<Vec<f64>, &'static str> {
    if !(1..=MAX_SEGMENT_LANES).contains(&timing.lanes) {
        return Err("lanes: must fit a datagram");
    }
    if timing.merged == 0 || timing.batches == 0 {
        return Err("merged and batches: at least 1");
    }
    let mut bench = Bench::new(timing);
    // The first two rounds meet cold caches and memory that was never touched.
    bench.batch();
    bench.batch();
    let times = (0..timing.batches).map(|_| bench.batch()).collect();
    bench.check(timing.batches + 2);
    Ok(times)
}

struct Bench {
    timing: Timing,
    switch: Switch,
    now: Instant,
    sequence: u32,
    /// The datagrams of a batch, made before the clock starts.
    datagrams: Vec<Vec<u8>>,
    lanes: Vec<f32>,
    buf: Vec<u8>,
}

impl Bench {
    fn new(timing: Timing) -> Self {
        let config = Config::default();
        let mut switch = Switch::new(config, 1).expect("the default configuration");
        switch.set_default_server(SERVER);
        let size = Update::datagram_len(timing.lanes);
        let mut bench = Self {
            timing,
            switch,
            now: Instant(1),
            sequence: 0,
            datagrams: vec![vec![0; size]; BATCH * timing.merged],
            lanes: vec![1.0; timing.lanes],
            buf: vec![0; MAX_DATAGRAM],
        };
        for worker in 0..timing.merged {
            bench.enters(worker);
        }
        bench
    }

    /// Nanoseconds for an update.
    fn batch(&mut self) -> f64 {
        self.now = Instant(self.now.0 + 1_000_000);
        for index in 0..BATCH * self.timing.merged {
            let (worker, departure) = (index % self.timing.merged, index / self.timing.merged);
            let update = update(worker, self.sequence + departure as u32, self.now);
            update.emit(&self.lanes, &mut self.datagrams[index]);
        }
        let (port, began) = (PortId::UPLINK, std::time::Instant::now());
        let mut left = 0;
        for departure in self.datagrams.chunks_exact(self.timing.merged) {
            for (worker, datagram) in departure.iter().enumerate() {
                let verdict = self.switch.handle_packet(self.now, source(worker), datagram);
                assert_eq!(verdict, Verdict::Absorb, "every update is a good one");
            }
            while black_box(self.switch.poll_transmit(self.now, port, &mut self.buf)).is_some() {
                left += 1;
            }
        }
        let took = began.elapsed();
        assert_eq!(left, BATCH, "what arrives together leaves as one");
        self.sequence += BATCH as u32;
        self.is_answered();
        took.as_nanos() as f64 / (BATCH * self.timing.merged) as f64
    }

    /// Every update that was timed has left, alone or merged, and nothing waits.
    fn check(&mut self, batches: usize) {
        let fates = self.switch.statistics(self.now).fates;
        let updates = (batches * BATCH * self.timing.merged) as u64;
        let expected = if self.timing.merged == 1 { (updates, 0) } else { (0, updates) };
        assert_eq!((fates.sent_alone, fates.merged), expected, "{fates:?}");
        assert!(!self.leaves(PortId::UPLINK) && !self.leaves(PortId::DOWNLINK));
    }

    /// The server has had all of it, so that nothing piles up in the switch.
    fn is_answered(&mut self) {
        for departure in (0..BATCH as u32).rev() {
            let len = answer(self.sequence - departure).emit(&[], &mut self.buf);
            self.switch.handle_packet(self.now, SERVED, &self.buf[..len]);
            while self.leaves(PortId::DOWNLINK) {}
        }
        while self.switch.poll_event().is_some() {}
    }

    fn enters(&mut self, worker: usize) {
        let join = Join {
            address: address(worker),
            have_version: 0,
            parameters: self.timing.lanes as u32,
            segment_lanes: self.timing.lanes as u32,
            clock_error_us: 0,
            sent_at_ns: 1,
            clock_offset_ns: 0,
            hops: 0,
            wants_notices: false,
            path: olaf_wire::JoinPath::default(),
        };
        let len = join.emit(&mut self.buf);
        self.switch.handle_packet(self.now, source(worker), &self.buf[..len]);
        while self.leaves(PortId::UPLINK) {}
        let len = welcome(&join).emit(&mut self.buf);
        self.switch.handle_packet(self.now, SERVED, &self.buf[..len]);
        while self.leaves(PortId::DOWNLINK) {}
    }

    fn leaves(&mut self, port: PortId) -> bool {
        self.switch.poll_transmit(self.now, port, &mut self.buf).is_some()
    }
}

const SERVED: Source = Source::new(PortId::UPLINK, SERVER);

fn source(worker: usize) -> Source {
    Source::new(PortId::DOWNLINK, PeerId(1 + worker as u32))
}

fn address(worker: usize) -> Address {
    Address {
        job: JobId(1),
        cluster: ClusterId(0),
        worker: WorkerId(worker as u32),
        session: Session(7),
    }
}

fn update(worker: usize, sequence: u32, now: Instant) -> Update {
    Update {
        address: address(worker),
        sequence,
        hop_sequence: sequence + 1,
        segment: 0,
        segments: 1,
        generated_oldest_ns: now.0,
        generated_newest_ns: now.0,
        version_oldest: 1,
        version_newest: 1,
        contributors: 1,
        weight: 1.0,
        reward: 0.0,
        hops: 0,
        flow_sequence: 0,
    }
}

fn welcome(join: &Join) -> Welcome {
    Welcome {
        address: join.address,
        code: WelcomeCode::Welcome,
        ready: true,
        version: 1,
        parameters: join.parameters,
        segment_lanes: join.segment_lanes,
        epoch: 9,
        first_missing: u32::MAX,
        echoed_sent_at_ns: 1,
        received_at_ns: 1,
        sent_at_ns: 1,
        switch_epoch: 0,
        silent_ms: 0,
        rule: None,
        layout_missing: u32::MAX,
        missing: 0,
        padded_to: 0,
    }
}

fn answer(acknowledges: u32) -> Answer {
    Answer {
        address: Address { worker: WorkerId::ALL, session: Session(0), ..address(0) },
        acknowledges,
        segment: 0,
        segments: 1,
        model_version: 1,
        parameters: 0,
        epoch: 9,
        delivered_version: 1,
        delivered_newest_ns: 1,
        server_time_ns: 1,
        queue: QueueStatus::default(),
        ages: olaf_wire::Ages::default(),
        ends: olaf_wire::Ends::NONE,
    }
}
