//! Messages from one party to another, in order of nothing but their numbers, over links that lose datagrams.

use core::time::Duration;
use olaf_engine::{Ecn, Instant, PeerId, TrafficClass, Transmit};
use olaf_host::collective::{Aimd, Fixed, Window};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const DATA: u8 = 1;
const ACKNOWLEDGEMENT: u8 = 2;
/// Bytes before the payload: kind, number of the datagram, message, index in it, bytes of the message, and which
/// transmission of the stream it is.
const HEADER: usize = 24;
/// Datagrams that one acknowledgement answers.
const TOGETHER: usize = 8;
/// An acknowledgement waits for others for this time at most.
const PATIENCE: Duration = Duration::from_micros(50);
/// A datagram is lost once that many were answered that were sent after it.
const OVERTAKEN: u32 = 3;
/// Where nothing tells of a loss, the first unanswered datagram is sent again after the usual round trip, four times its
/// variation, and this time: a probe, whose answer tells of the others (RFC 9002 §6.2).
const LEAST: Duration = Duration::from_millis(1);
/// After that many probes without an answer, all that was on its way counts as lost.
const PROBES: u32 = 2;
/// The same, as long as no round trip is known.
const UNKNOWN: Duration = Duration::from_millis(20);
/// The time doubles that many times.
const MOST_DOUBLED: u32 = 6;
/// The first windows of all senders to a party together have this many bytes, and each has at most `FIRST_BYTES`, as
/// for `reduce`.
const FIRST_BYTES_OF_ALL: u32 = 256 << 10;
const FIRST_BYTES: u32 = 64 << 10;
/// Datagrams of a window, at most.
const MOST_WINDOW: u32 = 16_384;

/// How a stream is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamConfig {
    /// Bytes of the longest datagram.
    pub(crate) datagram_bytes: usize,
    /// Datagrams on their way; none: the window follows the path.
    pub(crate) window: Option<u32>,
    /// Streams that end at the same party.
    pub(crate) senders: u32,
    /// Datagrams may be marked.
    pub(crate) ecn: bool,
}

impl StreamConfig {
    fn window(&self) -> Box<dyn Window> {
        if let Some(datagrams) = self.window {
            return Box::new(Fixed::new(datagrams));
        }
        let bytes = (FIRST_BYTES_OF_ALL / self.senders.max(1)).min(FIRST_BYTES);
        Box::new(Aimd::new((bytes / self.datagram_bytes as u32).max(2), MOST_WINDOW))
    }
}

/// Both directions between two parties.
pub(super) struct Stream {
    peer: PeerId,
    payload: usize,
    class: TrafficClass,
    // What is sent.
    waiting: VecDeque<Outgoing>,
    /// Those from `base` on.
    flights: VecDeque<Flight>,
    base: u32,
    /// Numbers of datagrams to send again.
    lost: BTreeSet<u32>,
    transmissions: u32,
    newest_answered: u32,
    window: Box<dyn Window>,
    /// The usual round trip, and its variation.
    smoothed: Option<(Duration, Duration)>,
    doubled: u32,
    sent: u64,
    resent: u64,
    // What comes.
    next: u32,
    beyond: BTreeSet<u32>,
    messages: BTreeMap<u32, Incoming>,
    /// Numbers, and which transmission each was.
    to_answer: Vec<[u32; 2]>,
    marked: bool,
    answer_by: Option<Instant>,
}

#[derive(Clone)]
struct Outgoing {
    message: u32,
    index: u32,
    bytes: Arc<[u8]>,
}

struct Flight {
    packet: Outgoing,
    sent_at: Instant,
    /// Which transmission of the stream it was, the last time.
    order: u32,
    is_answered: bool,
}

struct Incoming {
    bytes: Vec<u8>,
    missing: u32,
}

impl core::fmt::Debug for Stream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "stream to {:?}: {} sent, {} again", self.peer, self.sent, self.resent)
    }
}

impl Stream {
    pub(super) fn new(peer: PeerId, config: StreamConfig) -> Self {
        Self {
            peer,
            // Whole lanes.
            payload: (config.datagram_bytes - HEADER) / 4 * 4,
            class: TrafficClass::with_ecn(config.ecn),
            waiting: VecDeque::new(),
            flights: VecDeque::new(),
            base: 0,
            lost: BTreeSet::new(),
            transmissions: 0,
            newest_answered: 0,
            window: config.window(),
            smoothed: None,
            doubled: 0,
            sent: 0,
            resent: 0,
            next: 0,
            beyond: BTreeSet::new(),
            messages: BTreeMap::new(),
            to_answer: Vec::new(),
            marked: false,
            answer_by: None,
        }
    }

    pub(super) const fn peer(&self) -> PeerId {
        self.peer
    }

    /// Datagrams with data, sent for the first time.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// The same, sent again.
    pub(super) const fn resent(&self) -> u64 {
        self.resent
    }

    /// Sends a message, after those before it.
    pub(super) fn send(&mut self, message: u32, bytes: Arc<[u8]>) {
        self.waiting.push_back(Outgoing { message, index: 0, bytes });
    }

    /// A datagram came. Returns the message that is whole with it.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        class: TrafficClass,
        datagram: &[u8],
    ) -> Option<(u32, Vec<u8>)> {
        match datagram[0] {
            DATA => self.take(now, class, datagram),
            _ => {
                self.acknowledge(now, datagram);
                None
            }
        }
    }

    fn take(
        &mut self,
        now: Instant,
        class: TrafficClass,
        datagram: &[u8],
    ) -> Option<(u32, Vec<u8>)> {
        let [number, message, index, total, order] =
            [4, 8, 12, 16, 20].map(|at| word(datagram, at));
        let is_in_order = number == self.next;
        self.to_answer.push([number, order]);
        self.marked |= class.ecn() == Ecn::Marked;
        if number < self.next || !is_in_order && !self.beyond.insert(number) {
            self.answer_by = Some(now);
            return None;
        }
        if is_in_order {
            self.next += 1;
            while self.beyond.remove(&self.next) {
                self.next += 1;
            }
        }
        let whole = self.put(message, index, total as usize, &datagram[HEADER..]);
        let is_due = !is_in_order || whole.is_some() || self.to_answer.len() >= TOGETHER;
        let by = if is_due { now } else { now + PATIENCE };
        self.answer_by = Some(self.answer_by.map_or(by, |earlier| earlier.min(by)));
        whole
    }

    fn put(
        &mut self,
        message: u32,
        index: u32,
        total: usize,
        lanes: &[u8],
    ) -> Option<(u32, Vec<u8>)> {
        let payload = self.payload;
        let incoming = self.messages.entry(message).or_insert_with(|| Incoming {
            bytes: vec![0; total],
            missing: packets_of(total, payload),
        });
        let at = index as usize * payload;
        incoming.bytes[at..at + lanes.len()].copy_from_slice(lanes);
        incoming.missing -= 1;
        if incoming.missing > 0 {
            return None;
        }
        self.messages.remove(&message).map(|whole| (message, whole.bytes))
    }

    fn acknowledge(&mut self, now: Instant, datagram: &[u8]) {
        let marked = datagram[1] != 0;
        for at in (8..datagram.len()).step_by(8) {
            let [number, order] = [at, at + 4].map(|at| word(datagram, at));
            self.newest_answered = self.newest_answered.max(order);
            if number >= self.base {
                self.answer(now, (number - self.base) as usize, Some(order), marked);
            }
        }
        // What an acknowledgement that was lost had answered.
        for at in 0..word(datagram, 4).saturating_sub(self.base) {
            self.answer(now, at as usize, None, marked);
        }
        while self.flights.front().is_some_and(|flight| flight.is_answered) {
            self.flights.pop_front();
            self.base += 1;
        }
        self.doubled = 0;
        self.find_losses(now);
    }

    /// The datagram at that place has arrived. `order`: which transmission of it, where that is known.
    fn answer(&mut self, now: Instant, at: usize, order: Option<u32>, marked: bool) {
        let number = self.base + at as u32;
        let Some(flight) = self.flights.get_mut(at).filter(|flight| !flight.is_answered) else {
            return;
        };
        flight.is_answered = true;
        let is_last = order == Some(flight.order);
        let round_trip = is_last.then(|| now.since(flight.sent_at));
        self.lost.remove(&number);
        if let Some(sample) = round_trip {
            self.measure(sample);
        }
        self.window.on_result(now, round_trip, marked);
    }

    fn measure(&mut self, sample: Duration) {
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / 2),
            Some((usual, varies)) => {
                let off = usual.abs_diff(sample);
                ((usual * 7 + sample) / 8, (varies * 3 + off) / 4)
            }
        });
    }

    /// Datagrams that others have overtaken are lost.
    fn find_losses(&mut self, now: Instant) {
        let newest = self.newest_answered;
        let is_suspect =
            |flight: &Flight| !flight.is_answered && flight.order + OVERTAKEN <= newest;
        if !self.flights.front().is_some_and(is_suspect) {
            return;
        }
        for (at, flight) in self.flights.iter().enumerate() {
            if is_suspect(flight) && self.lost.insert(self.base + at as u32) {
                self.window.on_loss(now);
            }
        }
    }

    /// Returns true if an acknowledgement is due.
    pub(super) fn owes_answer(&self, now: Instant) -> bool {
        self.answer_by.is_some_and(|at| at <= now)
    }

    /// Returns true if data may be sent.
    pub(super) fn may_send(&self) -> bool {
        !self.lost.is_empty() || !self.waiting.is_empty() && self.window.room() > 0
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if self.owes_answer(now) {
            return Some(self.write_acknowledgement(buf));
        }
        if let Some(number) = self.lost.pop_first() {
            return Some(self.write_again(now, number, buf));
        }
        if self.window.room() == 0 {
            return None;
        }
        let packet = self.next_packet()?;
        let number = self.base + self.flights.len() as u32;
        self.transmissions += 1;
        let len = write(&packet, [number, self.transmissions], self.payload, buf);
        self.sent += 1;
        self.window.on_sent();
        let order = self.transmissions;
        self.flights.push_back(Flight { packet, sent_at: now, order, is_answered: false });
        Some(self.transmit(len, self.class))
    }

    fn write_again(&mut self, now: Instant, number: u32, buf: &mut [u8]) -> Transmit {
        let at = (number - self.base) as usize;
        let flight = self.flights.get_mut(at).expect("an answered datagram is not lost");
        self.transmissions += 1;
        self.resent += 1;
        flight.sent_at = now;
        flight.order = self.transmissions;
        let len = write(&flight.packet, [number, flight.order], self.payload, buf);
        self.transmit(len, self.class)
    }

    fn next_packet(&mut self) -> Option<Outgoing> {
        let first = self.waiting.front_mut()?;
        let packet = first.clone();
        first.index += 1;
        if first.index >= packets_of(first.bytes.len(), self.payload) {
            self.waiting.pop_front();
        }
        Some(packet)
    }

    fn write_acknowledgement(&mut self, buf: &mut [u8]) -> Transmit {
        let count = self.to_answer.len().min(TOGETHER);
        buf[..4].copy_from_slice(&[ACKNOWLEDGEMENT, u8::from(self.marked), 0, 0]);
        buf[4..8].copy_from_slice(&self.next.to_le_bytes());
        for (at, word) in self.to_answer.drain(..count).flatten().enumerate() {
            buf[8 + 4 * at..12 + 4 * at].copy_from_slice(&word.to_le_bytes());
        }
        if self.to_answer.is_empty() {
            self.marked = false;
            self.answer_by = None;
        }
        self.transmit(8 + 8 * count, TrafficClass::NONE)
    }

    fn transmit(&self, len: usize, class: TrafficClass) -> Transmit {
        Transmit { class, ..Transmit::to(self.peer, len) }
    }

    /// When to call [`Stream::handle_timeout`] next.
    pub(super) fn timeout(&self) -> Option<Instant> {
        let repeats = self.flights.front().map(|flight| flight.sent_at + self.repeats_after());
        [repeats, self.answer_by].into_iter().flatten().min()
    }

    fn repeats_after(&self) -> Duration {
        let usual = self.smoothed.map_or(UNKNOWN, |(usual, varies)| usual + varies * 4 + LEAST);
        usual * (1 << self.doubled)
    }

    /// Time has come.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let after = self.repeats_after();
        let is_overdue = |flight: &Flight| !flight.is_answered && flight.sent_at + after <= now;
        if !self.flights.front().is_some_and(is_overdue) {
            return;
        }
        self.lost.insert(self.base);
        if self.doubled >= PROBES {
            let overdue = self.flights.iter().enumerate().filter(|(_, flight)| is_overdue(flight));
            self.lost.extend(overdue.map(|(at, _)| self.base + at as u32));
            self.window.on_timeout(now);
        }
        self.doubled = (self.doubled + 1).min(MOST_DOUBLED);
    }
}

fn word(datagram: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(datagram[at..at + 4].try_into().expect("four bytes"))
}

/// Datagrams of a message; one, where it is empty.
fn packets_of(bytes: usize, payload: usize) -> u32 {
    u32::try_from(bytes.div_ceil(payload).max(1)).expect("the scenario was checked")
}

/// Writes a datagram with data. Returns its length.
fn write(packet: &Outgoing, [number, order]: [u32; 2], payload: usize, buf: &mut [u8]) -> usize {
    let from = packet.index as usize * payload;
    let lanes = &packet.bytes[from..packet.bytes.len().min(from + payload)];
    let total = u32::try_from(packet.bytes.len()).expect("the scenario was checked");
    buf[..4].copy_from_slice(&[DATA, 0, 0, 0]);
    for (at, word) in [number, packet.message, packet.index, total, order].into_iter().enumerate() {
        buf[4 + 4 * at..8 + 4 * at].copy_from_slice(&word.to_le_bytes());
    }
    buf[HEADER..HEADER + lanes.len()].copy_from_slice(lanes);
    HEADER + lanes.len()
}
