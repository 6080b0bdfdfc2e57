//! Nodes, links, and the one order in which everything happens: by time, then by when it was
//! planned.

use crate::chance::Chance;
use crate::trace::{Lot, Record};
use crate::wire::{Carrier, Wire, WireCounts};
use olaf_engine::{Engine, Event, Instant, PeerId, PortId, Source, TrafficClass, Wiring};
use olaf_wire::offsets::MAX_DATAGRAM;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What lives at a place of a network: any engine.
pub trait Node: Engine + Any + Send {}

impl<E: Engine + Any + Send> Node for E {}

/// Makes a node; told which life of it this is, from 0, and when it begins.
pub type Factory = Box<dyn FnMut(u32, Instant) -> Box<dyn Node> + Send>;

/// A node that asks to be woken so often at one instant makes no progress.
const SPINS: usize = 100_000;

/// A network in virtual time.
pub struct Network {
    now: Instant,
    seed: u64,
    places: BTreeMap<PeerId, Place>,
    carriers: BTreeMap<(PeerId, PeerId), Carrier>,
    plans: BTreeMap<(Instant, u64), Plan>,
    planned: u64,
    events: Vec<(Instant, PeerId, Event)>,
    trace: Vec<Record>,
    /// Whether events and the trace are kept.
    keeps_records: bool,
    buf: Vec<u8>,
}

/// Where a node lives, and is born again.
struct Place {
    factory: Factory,
    wiring: Wiring,
    lives: u32,
    node: Option<Box<dyn Node>>,
    /// Those that died here, in order.
    dead: Vec<Box<dyn Node>>,
    /// The earliest wake-up that is planned.
    woken_at: Option<Instant>,
}

enum Plan {
    Arrive { from: PeerId, to: PeerId, class: TrafficClass, bytes: Arc<[u8]> },
    Wake(PeerId),
    Kill(PeerId),
    Start(PeerId),
}

impl Network {
    /// An empty network at time `now`.
    #[must_use]
    pub fn new(seed: u64, now: Instant) -> Self {
        Self {
            now,
            seed,
            places: BTreeMap::new(),
            carriers: BTreeMap::new(),
            plans: BTreeMap::new(),
            planned: 0,
            events: Vec::new(),
            trace: Vec::new(),
            keeps_records: true,
            buf: vec![0; MAX_DATAGRAM],
        }
    }

    /// The same, which keeps neither events nor a trace: a long run would fill the memory.
    #[must_use]
    pub fn without_records(mut self) -> Self {
        self.keeps_records = false;
        self
    }

    /// Puts an end of the network at a place, alive from now on.
    pub fn place(
        &mut self,
        id: PeerId,
        factory: impl FnMut(u32, Instant) -> Box<dyn Node> + Send + 'static,
    ) {
        self.place_wired(id, Wiring::end(), factory);
    }

    /// Puts a node at a place, alive from now on, with its peers behind the ports that `wiring`
    /// names.
    pub fn place_wired(
        &mut self,
        id: PeerId,
        wiring: Wiring,
        factory: impl FnMut(u32, Instant) -> Box<dyn Node> + Send + 'static,
    ) {
        let place = Place {
            factory: Box::new(factory),
            wiring,
            lives: 0,
            node: None,
            dead: Vec::new(),
            woken_at: None,
        };
        assert!(self.places.insert(id, place).is_none(), "{id:?} has its place already");
        self.start(id);
    }

    /// Joins two places, in both directions alike. Places that are joined already change their wire from
    /// now on.
    pub fn join(&mut self, a: PeerId, b: PeerId, wire: Wire) {
        self.join_one_way(a, b, wire);
        self.join_one_way(b, a, wire);
    }

    /// Joins two places in one direction.
    pub fn join_one_way(&mut self, from: PeerId, to: PeerId, wire: Wire) {
        let chance = Chance::new(self.seed, u64::from(from.0) << 32 | u64::from(to.0));
        let carrier = self.carriers.entry((from, to)).or_insert_with(|| Carrier::new(wire, chance));
        carrier.set(wire);
    }

    /// The node at a place dies at that time, and whatever it had not said with it.
    pub fn kill_at(&mut self, at: Instant, id: PeerId) {
        self.plan(at, Plan::Kill(id));
    }

    /// The place's factory makes a new node at that time.
    pub fn start_at(&mut self, at: Instant, id: PeerId) {
        self.plan(at, Plan::Start(id));
    }

    /// Runs to that time, everything planned for it included.
    pub fn run_until(&mut self, then: Instant) {
        while self.step(then) {}
    }

    /// Carries out the next step that is planned for `then` or earlier. If there is none, sets the
    /// time to `then` and returns false.
    pub fn step(&mut self, then: Instant) -> bool {
        let next = self.plans.first_entry().filter(|entry| entry.key().0 <= then);
        let Some(entry) = next else {
            self.now = self.now.max(then);
            return false;
        };
        let ((at, _), plan) = entry.remove_entry();
        self.now = self.now.max(at);
        self.carry_out(plan);
        true
    }

    /// Runs for that long.
    pub fn run_for(&mut self, duration: core::time::Duration) {
        self.run_until(self.now + duration);
    }

    /// Does something with the living node at a place, which then says what it has to say.
    /// None if the place has no party.
    ///
    /// # Panics
    /// When the node is of another type.
    pub fn with<N: Node, T>(
        &mut self,
        id: PeerId,
        act: impl FnOnce(&mut N, Instant) -> T,
    ) -> Option<T> {
        let now = self.now;
        let node = self.places.get_mut(&id)?.node.as_mut()?;
        let result = act(concrete_mut(&mut **node), now);
        self.service(id);
        Some(result)
    }

    /// The living node at a place.
    ///
    /// # Panics
    /// When the node is of another type.
    #[must_use]
    pub fn node<N: Node>(&self, id: PeerId) -> Option<&N> {
        self.places.get(&id)?.node.as_deref().map(concrete)
    }

    /// All nodes that ever lived at a place, in order.
    ///
    /// # Panics
    /// When a node is of another type.
    pub fn lives<N: Node>(&self, id: PeerId) -> impl Iterator<Item = &N> {
        let place = self.places.get(&id).into_iter();
        place.flat_map(|place| place.dead.iter().chain(&place.node)).map(|node| concrete(&**node))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What happened at the nodes so far.
    #[must_use]
    pub fn events(&self) -> &[(Instant, PeerId, Event)] {
        &self.events
    }

    /// What became of every datagram so far.
    #[must_use]
    pub fn trace(&self) -> &[Record] {
        &self.trace
    }

    /// What the wire from one place to another did so far.
    #[must_use]
    pub fn counts(&self, from: PeerId, to: PeerId) -> WireCounts {
        self.carriers.get(&(from, to)).map(|carrier| carrier.counts).unwrap_or_default()
    }

    /// Datagrams on their way.
    #[must_use]
    pub fn on_the_way(&self) -> usize {
        self.plans.values().filter(|plan| matches!(plan, Plan::Arrive { .. })).count()
    }

    fn record(&mut self, record: Record) {
        if self.keeps_records {
            self.trace.push(record);
        }
    }

    fn plan(&mut self, at: Instant, plan: Plan) {
        self.planned += 1;
        self.plans.insert((at.max(self.now), self.planned), plan);
    }

    fn carry_out(&mut self, plan: Plan) {
        match plan {
            Plan::Arrive { from, to, class, bytes } => self.arrive(from, to, class, bytes),
            Plan::Wake(id) => {
                if let Some(place) = self.places.get_mut(&id) {
                    place.woken_at = None;
                }
                self.service(id);
            }
            Plan::Kill(id) => {
                if let Some(place) = self.places.get_mut(&id) {
                    let dead = place.node.take();
                    place.dead.extend(dead);
                }
            }
            Plan::Start(id) => self.start(id),
        }
    }

    fn start(&mut self, id: PeerId) {
        let now = self.now;
        let Some(place) = self.places.get_mut(&id) else { return };
        if place.node.is_none() {
            place.node = Some((place.factory)(place.lives, now));
            place.lives += 1;
            self.service(id);
        }
    }

    fn arrive(&mut self, from: PeerId, to: PeerId, class: TrafficClass, bytes: Arc<[u8]>) {
        let now = self.now;
        let place = self.places.get_mut(&to);
        let living = place.and_then(|place| Some((place.node.as_mut()?, &place.wiring)));
        let lot = if living.is_some() { Lot::Delivered } else { Lot::ToTheDead };
        if let Some(carrier) = self.carriers.get_mut(&(from, to)) {
            match lot {
                Lot::Delivered => carrier.counts.delivered += 1,
                _ => carrier.counts.to_the_dead += 1,
            }
        }
        if let Some((node, wiring)) = living {
            let source = Source { port: wiring.port(from), peer: from, class };
            // An engine counts what it drops under the reason.
            node.handle_packet(now, source, &bytes);
        }
        self.record(Record { at: now, from, to, lot, bytes: bytes.clone() });
        self.service(to);
    }

    /// Lets a node say what it has to say, wakes it as often as it asks for now, and plans its
    /// next waking.
    fn service(&mut self, id: PeerId) {
        let now = self.now;
        let mut buf = core::mem::take(&mut self.buf);
        for spin in 0.. {
            assert!(spin < SPINS, "{id:?} asks to be woken at {now:?} again and again");
            let Some(node) = self.places.get_mut(&id).and_then(|place| place.node.as_mut()) else {
                break;
            };
            while let Some(event) = node.poll_event() {
                if self.keeps_records {
                    self.events.push((now, id, event));
                }
            }
            let mut ports = (0..node.ports()).map(PortId);
            if let Some(sent) = ports.find_map(|port| node.poll_transmit(now, port, &mut buf)) {
                let bytes: Arc<[u8]> = buf[..sent.len].into();
                for to in sent.to.as_slice() {
                    self.send(id, *to, sent.class, bytes.clone());
                }
                continue;
            }
            match node.poll_timeout() {
                Some((at, _)) if at <= now => node.handle_timeout(now),
                Some((at, _)) => {
                    self.wake(id, at);
                    break;
                }
                None => break,
            }
        }
        self.buf = buf;
    }

    fn wake(&mut self, id: PeerId, at: Instant) {
        let Some(place) = self.places.get_mut(&id) else { return };
        if place.woken_at.is_none_or(|planned| at < planned) {
            place.woken_at = Some(at);
            self.plan(at, Plan::Wake(id));
        }
    }

    fn send(&mut self, from: PeerId, to: PeerId, class: TrafficClass, bytes: Arc<[u8]>) {
        let at = self.now;
        let keeps_records = self.keeps_records;
        let mut note = |lot| {
            if keeps_records {
                self.trace.push(Record { at, from, to, lot, bytes: bytes.clone() });
            }
        };
        let Some(carrier) = self.carriers.get_mut(&(from, to)) else {
            note(Lot::NoLink);
            return;
        };
        let told = carrier.is_too_long(bytes.len()) && carrier.wire.says_too_long;
        let longest = carrier.wire.longest;
        note(Lot::Sent);
        let arrivals = carrier.carry(at, bytes.len());
        if arrivals.is_empty() {
            note(Lot::Lost);
        }
        for _ in arrivals.iter().skip(1) {
            note(Lot::Repeated);
        }
        for then in arrivals {
            self.plan(then, Plan::Arrive { from, to, class, bytes: bytes.clone() });
        }
        if told && let Some(node) = self.places.get_mut(&from).and_then(|p| p.node.as_mut()) {
            node.handle_too_long(at, bytes.len(), u32::try_from(longest).ok());
        }
    }
}

fn concrete<N: Node>(node: &dyn Node) -> &N {
    let node: &dyn Any = node;
    node.downcast_ref().expect("the caller knows what it placed there")
}

fn concrete_mut<N: Node>(node: &mut dyn Node) -> &mut N {
    let node: &mut dyn Any = node;
    node.downcast_mut().expect("the caller knows what it placed there")
}
