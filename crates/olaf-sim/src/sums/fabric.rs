//! Parties, the links between them, and the one order in which everything happens: by time, then by when it was
//! planned.

use super::link::{Link, LinkCounts};
use super::party::Party;
use core::cmp::Ordering;
use olaf_engine::{Engine, Instant, PeerId, PortId, Source, TrafficClass, Transmit, Wiring};
use olaf_host::collective::Done;
use olaf_wire::offsets::MAX_DATAGRAM;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// A party that asks to be woken so often at one instant makes no progress.
const SPINS: usize = 100_000;
/// Bytes of the memory of a usual datagram.
const USUAL: usize = 1536;
/// There is no path.
const NONE: u32 = u32::MAX;

/// What the caller planned, and what it asked to be told at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alarm {
    pub(super) job: usize,
    pub(super) worker: usize,
    pub(super) what: What,
}

/// What an alarm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The job begins.
    Begin,
    /// A tensor of the worker is ready.
    Tensor(usize),
    /// The worker has updated its model.
    Updated,
    /// An ideal network has the sum of a tensor.
    Ideal(usize),
}

/// What a step did.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing is planned any more.
    Over,
    /// An alarm's time has come.
    Alarm(Alarm),
    /// A party had something to do.
    Served(PeerId),
    /// A frame went on to its next link.
    Forwarded,
}

/// Links between parties. A party's id counts from 1.
pub(super) struct Fabric {
    now: Instant,
    places: Vec<Place>,
    links: Vec<Link>,
    /// Frames on their way over each link, in the order of their arrival.
    flights: Vec<VecDeque<Flight>>,
    /// By sender and receiver, an index of `paths`.
    routes: Vec<Vec<u32>>,
    /// Links of each path, in order.
    paths: Vec<Box<[u32]>>,
    plans: BinaryHeap<Plan>,
    planned: u64,
    /// Bytes of a frame around its datagram.
    header_bytes: u32,
    done: VecDeque<(PeerId, Done)>,
    events: u64,
    buf: Vec<u8>,
    /// Memory of datagrams that have arrived, for others. It is in the processor's cache.
    spare: Vec<Arc<[u8]>>,
}

struct Place {
    party: Party,
    wiring: Wiring,
    /// The link of its host, which may be busy; a switch has none.
    own_link: Option<u32>,
    /// The earliest wake-up that is planned.
    woken_at: Option<Instant>,
}

struct Flight {
    at: Instant,
    order: u64,
    frame: Frame,
}

#[derive(Clone)]
struct Frame {
    from: PeerId,
    to: PeerId,
    class: TrafficClass,
    path: u32,
    /// Links behind it.
    hops: u32,
    bytes: Datagram,
}

/// The first `len` bytes of some memory, which receivers share.
#[derive(Clone)]
struct Datagram {
    memory: Arc<[u8]>,
    len: usize,
}

struct Plan {
    at: Instant,
    order: u64,
    then: Then,
}

enum Then {
    /// The first frame on its way over that link arrives.
    Arrive(u32),
    Wake(PeerId),
    Tell(Alarm),
}

impl Ord for Plan {
    /// The earliest one is the greatest, which a heap yields first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Plan {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Plan {}

impl Fabric {
    pub(super) fn new(header_bytes: u32) -> Self {
        Self {
            now: Instant::default(),
            places: Vec::new(),
            links: Vec::new(),
            flights: Vec::new(),
            routes: Vec::new(),
            paths: Vec::new(),
            plans: BinaryHeap::new(),
            planned: 0,
            header_bytes,
            done: VecDeque::new(),
            events: 0,
            buf: vec![0; MAX_DATAGRAM],
            spare: Vec::new(),
        }
    }

    /// The id that the next party gets.
    pub(super) fn next_id(&self) -> PeerId {
        PeerId(u32::try_from(self.places.len() + 1).expect("the scenario was checked"))
    }

    pub(super) fn place(&mut self, party: Party, wiring: Wiring) -> PeerId {
        let id = self.next_id();
        self.places.push(Place { party, wiring, own_link: None, woken_at: None });
        id
    }

    pub(super) fn add_link(&mut self, link: Link) -> u32 {
        self.links.push(link);
        self.flights.push(VecDeque::new());
        u32::try_from(self.links.len() - 1).expect("the scenario was checked")
    }

    /// Datagrams from one party to the other cross these links.
    pub(super) fn route(&mut self, from: PeerId, to: PeerId, links: &[u32]) {
        let own = links[0];
        if self.links[own as usize].config.own_bytes.is_some() {
            self.places[from.0 as usize - 1].own_link = Some(own);
        }
        let row = from.0 as usize;
        if self.routes.len() <= row {
            self.routes.resize(row + 1, Vec::new());
        }
        let row = &mut self.routes[row];
        if row.len() <= to.0 as usize {
            row.resize(to.0 as usize + 1, NONE);
        }
        row[to.0 as usize] = u32::try_from(self.paths.len()).expect("the scenario was checked");
        self.paths.push(links.into());
    }

    pub(super) fn tell_at(&mut self, at: Instant, alarm: Alarm) {
        self.plan(at, Then::Tell(alarm));
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Arrivals, wake-ups and alarms so far.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    pub(super) fn party(&self, id: PeerId) -> &Party {
        &self.places[id.0 as usize - 1].party
    }

    /// All parties, in the order of their ids.
    pub(super) fn parties(&self) -> impl Iterator<Item = &Party> {
        self.places.iter().map(|place| &place.party)
    }

    /// Does something with a party, which then says what it has to say.
    pub(super) fn with<T>(&mut self, id: PeerId, act: impl FnOnce(&mut Party, Instant) -> T) -> T {
        let result = act(&mut self.places[id.0 as usize - 1].party, self.now);
        self.serve(id);
        result
    }

    /// The next operation that has ended, at which worker.
    pub(super) fn poll_done(&mut self) -> Option<(PeerId, Done)> {
        self.done.pop_front()
    }

    /// Frames on their way, counted link by link.
    pub(super) fn on_the_way(&self) -> impl Iterator<Item = u64> {
        self.flights.iter().map(|flights| flights.len() as u64)
    }

    /// Carries out what is planned next.
    pub(super) fn step(&mut self) -> Step {
        let Some(plan) = self.plans.pop() else { return Step::Over };
        self.now = self.now.max(plan.at);
        self.events += 1;
        match plan.then {
            Then::Arrive(link) => self.arrive(link),
            Then::Wake(id) => {
                self.places[id.0 as usize - 1].woken_at = None;
                self.serve(id);
                Step::Served(id)
            }
            Then::Tell(alarm) => Step::Alarm(alarm),
        }
    }

    fn plan(&mut self, at: Instant, then: Then) {
        self.planned += 1;
        self.plans.push(Plan { at: at.max(self.now), order: self.planned, then });
    }

    fn arrive(&mut self, link: u32) -> Step {
        let flights = &mut self.flights[link as usize];
        let flight = flights.pop_front().expect("an arrival is planned for a frame on its way");
        if let Some(next) = flights.front() {
            self.plans.push(Plan { at: next.at, order: next.order, then: Then::Arrive(link) });
        }
        self.links[link as usize].counts.delivered += 1;
        let mut frame = flight.frame;
        frame.hops += 1;
        if (frame.hops as usize) < self.paths[frame.path as usize].len() {
            self.launch(frame);
            return Step::Forwarded;
        }
        let place = &mut self.places[frame.to.0 as usize - 1];
        let port = place.wiring.port(frame.from);
        let source = Source { port, peer: frame.from, class: frame.class };
        // An engine counts what it drops under the reason.
        let Datagram { memory, len } = &frame.bytes;
        place.party.engine().handle_packet(self.now, source, &memory[..*len]);
        self.serve(frame.to);
        self.free(frame.bytes);
        Step::Served(frame.to)
    }

    /// Lets a party say what it has to say, wakes it as often as it asks for now, and plans its next waking.
    fn serve(&mut self, id: PeerId) {
        let now = self.now;
        let mut buf = core::mem::take(&mut self.buf);
        let mut handled = false;
        for spin in 0.. {
            assert!(spin < SPINS, "{id:?} asks to be woken at {now:?} again and again");
            let place = &mut self.places[id.0 as usize - 1];
            let engine = place.party.engine();
            while engine.poll_event().is_some() {}
            let own_link = place.own_link.map(|link| &self.links[link as usize]);
            let room_at = own_link.and_then(|link| link.has_room_at(now));
            let may_send = room_at.is_none();
            if let Some(sent) = may_send.then(|| next_transmit(engine, now, &mut buf)).flatten() {
                let bytes = self.datagram(&buf[..sent.len]);
                for to in sent.to.as_slice() {
                    self.send(id, *to, sent.class, &bytes);
                }
                self.free(bytes);
                continue;
            }
            let timeout = engine.poll_timeout().map(|(at, _)| at);
            // What is due may be to send, for which there is no room.
            if timeout.is_some_and(|at| at <= now) && (may_send || !handled) {
                engine.handle_timeout(now);
                handled = true;
                continue;
            }
            if let Party::Worker(worker) = &mut place.party {
                while let Some(done) = worker.poll_done() {
                    self.done.push_back((id, done));
                }
            }
            let later = timeout.filter(|at| *at > now);
            if let Some(at) = [later, room_at].into_iter().flatten().min() {
                self.wake(id, at);
            }
            break;
        }
        self.buf = buf;
    }

    fn wake(&mut self, id: PeerId, at: Instant) {
        let place = &mut self.places[id.0 as usize - 1];
        if place.woken_at.is_none_or(|planned| at < planned) {
            place.woken_at = Some(at);
            self.plan(at, Then::Wake(id));
        }
    }

    fn send(&mut self, from: PeerId, to: PeerId, class: TrafficClass, bytes: &Datagram) {
        let routes = self.routes.get(from.0 as usize);
        let path = routes.and_then(|row| row.get(to.0 as usize)).copied().unwrap_or(NONE);
        assert!(path != NONE, "{from:?} sends to {to:?}, and no links lead there");
        self.launch(Frame { from, to, class, path, hops: 0, bytes: bytes.clone() });
    }

    /// Puts a frame before the next link of its path.
    fn launch(&mut self, mut frame: Frame) {
        let number = self.paths[frame.path as usize][frame.hops as usize];
        let bytes = u32::try_from(frame.bytes.len).unwrap_or(u32::MAX) + self.header_bytes;
        let link = &mut self.links[number as usize];
        let Some((at, class)) = link.carry(self.now, bytes, frame.class) else {
            self.free(frame.bytes);
            return;
        };
        frame.class = class;
        self.planned += 1;
        let order = self.planned;
        let flights = &mut self.flights[number as usize];
        if flights.is_empty() {
            self.plans.push(Plan { at, order, then: Then::Arrive(number) });
        }
        flights.push_back(Flight { at, order, frame });
    }

    fn datagram(&mut self, bytes: &[u8]) -> Datagram {
        let len = bytes.len();
        while let Some(mut memory) = self.spare.pop() {
            if let Some(room) = Arc::get_mut(&mut memory).filter(|room| room.len() >= len) {
                room[..len].copy_from_slice(bytes);
                return Datagram { memory, len };
            }
        }
        // One length for all of them, but for a few long ones, so that memory fits the next datagram.
        let mut room = vec![0; len.max(USUAL)];
        room[..len].copy_from_slice(bytes);
        Datagram { memory: room.into(), len }
    }

    /// The datagram has arrived, or is lost; others may have it still.
    fn free(&mut self, Datagram { mut memory, .. }: Datagram) {
        if Arc::get_mut(&mut memory).is_some() {
            self.spare.push(memory);
        }
    }

    /// Every frame has one fate.
    pub(super) fn account(&self) -> Result<(), String> {
        for (link, on_the_way) in self.links.iter().zip(self.on_the_way()) {
            let LinkCounts { offered, delivered, lost, dropped, .. } = link.counts;
            if offered != delivered + lost + dropped + on_the_way {
                return Err(format!("{}: {:?}, {on_the_way} on the way", link.name, link.counts));
            }
        }
        Ok(())
    }
}

fn next_transmit(engine: &mut dyn Engine, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
    (0..engine.ports()).find_map(|port| engine.poll_transmit(now, PortId(port), buf))
}
