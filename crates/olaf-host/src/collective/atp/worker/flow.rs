//! The stream of fragments between a worker and one server: what is sent, answered and lost.

use super::overtaken::Overtaken;
use crate::collective::atp::allocation::Allocated;
use crate::collective::atp::factors::Factors;
use crate::collective::atp::{AtpWindow, Options};
use crate::collective::member::Joins;
use crate::push_pull::round_trip::RoundTrip;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::atp::{Header, Welcome, datagram_len};

/// Fragments that are sent again when a time-out passes; twice as many the next time.
const FIRST_BURST: u32 = 4;
const MOST_BURST: u32 = 64;
/// The time-out doubles at most this often while nothing comes.
const MOST_DOUBLINGS: u32 = 6;
/// A fragment that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    is_answered: bool,
    /// The aggregator that it asks for, also when it is sent again: another worker may have put its part there.
    index: u16,
    /// The server wants it in f32.
    in_floats: bool,
    /// When it was sent last.
    at: Instant,
    /// Its last packet, counted from the first one of the flow.
    packet: u64,
    again: bool,
    /// It waits to be sent again.
    is_queued: bool,
}

/// What an answer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// The first result of the fragment.
    New,
    /// It was here already.
    Repeated,
    /// The fragment was never sent.
    TooEarly,
}

/// The stream to one server.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) seat: Option<Welcome>,
    /// Operations between the beginning of this flow's life and that of the worker's: the flow's tensors are counted
    /// from the former. Servers that begin at different times may know different counts.
    pub(super) skipped: u64,
    /// The life of the job that this end has finished with.
    pub(super) closed: u16,
    /// The server has said that the generation ends with that operation.
    pub(super) ends_at: Option<u64>,
    /// The sequence number behind the last operation's.
    pub(super) next: u64,
    /// The next fragment that was never sent.
    next_to_send: u64,
    /// The first fragment without an answer: the *expected* one of ATP §3.6.
    expected: u64,
    sent: VecDeque<Sent>,
    /// Fragments to send again.
    again: VecDeque<u64>,
    /// The first ones of them that need no room in the window: what a time-out is for is lost in a
    /// window that is full.
    urgent: u32,
    window: AtpWindow,
    overtaken: Overtaken,
    allocated: Allocated,
    factors: Factors,
    /// Indices that the server replaced.
    pub(super) replaced: u64,
    /// From a fragment to its answer: with the wait for other workers.
    round_trip: RoundTrip,
    /// From a join to its answer.
    pub(super) path: RoundTrip,
    /// The shortest time from a fragment to its answer.
    shortest: Option<Duration>,
    /// The time of the newest join, microseconds.
    pub(super) asked_us: u32,
    least: Duration,
    /// When to look for answers that are overdue.
    timer: Option<Instant>,
    doublings: u32,
    burst: u32,
    /// A join is the heartbeat, too.
    pub(super) joins: Joins,
    /// Since when the server owes an answer.
    pub(super) owed: Option<Instant>,
}

impl Flow {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            seat: None,
            skipped: 0,
            closed: 0,
            ends_at: None,
            next: 0,
            next_to_send: 0,
            expected: 0,
            sent: VecDeque::new(),
            again: VecDeque::new(),
            urgent: 0,
            window: AtpWindow::new(1, 1, 1, 0),
            overtaken: Overtaken::default(),
            allocated: Allocated::default(),
            factors: Factors::default(),
            replaced: 0,
            round_trip: RoundTrip::default(),
            path: RoundTrip::default(),
            shortest: None,
            asked_us: 0,
            least: options.time_out,
            timer: None,
            doublings: 0,
            burst: FIRST_BURST,
            joins: Joins::default(),
            owed: None,
        }
    }

    /// A life of the job begins.
    /// `scale` as in a join: a negative one is dynamic.
    pub(super) fn begin(&mut self, welcome: &Welcome, options: &Options, scale: f64) {
        let bytes = u32::try_from(datagram_len(welcome.values.into())).unwrap_or(u32::MAX);
        let aggregators = allocated(welcome, options);
        let most = options.most_packets.min(aggregators.most_ahead(welcome.window));
        let (first, threshold) = (options.first_packets, options.threshold_packets);
        let start = welcome.sequence;
        *self = Self {
            seat: Some(*welcome),
            allocated: aggregators,
            factors: Factors::new(scale, welcome.window),
            path: self.path,
            asked_us: self.asked_us,
            closed: self.closed,
            window: AtpWindow::new(first, threshold, most, bytes).following(options.congestion),
            next: start,
            next_to_send: start,
            expected: start,
            joins: self.joins,
            ..Self::new(options)
        };
    }

    /// The workers have new places: what is on its way counts for nothing (ATP §A.3).
    pub(super) fn move_to(&mut self, welcome: &Welcome, options: &Options) {
        self.seat = Some(*welcome);
        self.allocated = allocated(welcome, options);
        for (sequence, sent) in (self.expected..).zip(&mut self.sent) {
            sent.index = self.allocated.at(sequence);
        }
        let all = self.expected..self.next_to_send;
        all.for_each(|sequence| {
            self.queue(sequence);
        });
    }

    /// Operations from that sequence number on have failed: their fragments are not sent any more.
    pub(super) fn cut(&mut self, from: u64) {
        self.next = self.next.min(from);
        self.next_to_send = self.next_to_send.min(from);
        let kept = from.saturating_sub(self.expected) as usize;
        let dropped = self.sent.drain(kept.min(self.sent.len())..);
        let on_their_way = dropped.filter(|sent| !sent.is_answered && !sent.is_queued);
        on_their_way.for_each(|_| self.window.on_gone());
        self.again.retain(|sequence| *sequence < from);
        self.urgent = self.urgent.min(self.again.len() as u32);
        if self.expected >= self.next_to_send {
            self.timer = None;
        }
    }

    /// Sent and not answered.
    pub(super) fn in_flight(&self) -> u64 {
        self.sent.iter().filter(|sent| !sent.is_answered).count() as u64
    }

    pub(super) fn window_packets(&self) -> u32 {
        self.window.packets()
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.smoothed()
    }

    pub(super) const fn expected(&self) -> u64 {
        self.expected
    }

    /// When something is overdue.
    pub(super) const fn timer(&self) -> Option<Instant> {
        self.timer
    }

    /// A fragment may wait long for other workers. This is enough for its own way.
    fn own_way(&self) -> Duration {
        let path = self.path.smoothed().or(self.shortest).unwrap_or_default();
        path * 4 + self.least
    }

    fn time_out(&self, longest: Duration) -> Duration {
        let patience = self.round_trip.patience().unwrap_or_default();
        let patience = patience.min(self.own_way()).max(self.least);
        patience.saturating_mul(1 << self.doublings).min(longest.max(patience))
    }

    /// The next fragment to send again, whether it goes as f32, or none.
    pub(super) fn take_again(&mut self, now: Instant) -> Option<(u64, bool)> {
        while self.urgent > 0 || self.window.room() > 0 {
            let sequence = self.again.pop_front()?;
            self.urgent = self.urgent.saturating_sub(1);
            let index = sequence.checked_sub(self.expected).map(|index| index as usize);
            let sent = index.and_then(|index| self.sent.get_mut(index));
            if let Some(sent) = sent.filter(|sent| !sent.is_answered) {
                (sent.at, sent.again, sent.is_queued) = (now, true, false);
                sent.packet = self.overtaken.on_sent(sequence);
                self.window.on_sent();
                return Some((sequence, sent.in_floats));
            }
        }
        None
    }

    /// The next fragment that was never sent, where the window has room for it.
    pub(super) fn take_next(&mut self, now: Instant, longest: Duration) -> Option<u64> {
        let seat = self.seat.as_ref()?;
        let sequence = self.next_to_send;
        let is_near = sequence < self.expected + u64::from(self.allocated.most_ahead(seat.window));
        if sequence >= self.next || !is_near || self.window.room() == 0 {
            return None;
        }
        self.next_to_send += 1;
        self.window.on_sent();
        self.sent.push_back(Sent {
            is_answered: false,
            index: self.allocated.at(sequence),
            in_floats: false,
            at: now,
            packet: self.overtaken.on_sent(sequence),
            again: false,
            is_queued: false,
        });
        if self.timer.is_none() {
            self.timer = Some(now + self.time_out(longest));
        }
        Some(sequence)
    }

    /// The header of a fragment's packet.
    pub(super) fn header(&self, job: u16, server: u8, sequence: u64) -> Header {
        let Some(seat) = &self.seat else { return Header::default() };
        Header {
            bitmap0: seat.bitmap0,
            bitmap1: seat.bitmap1,
            fan_in0: seat.fan_in0,
            fan_in1: seat.fan_in1,
            edge: seat.edge,
            same_switch: seat.same_switch,
            // Without an aggregator on the way nobody adds it before the server.
            resend: seat.aggregators == 0,
            job,
            server,
            sequence: sequence as u16,
            index: self.sent(sequence).map_or(0, |sent| sent.index),
            upper: seat.upper,
            ..Header::default()
        }
    }

    fn sent(&self, sequence: u64) -> Option<&Sent> {
        self.sent.get(sequence.checked_sub(self.expected)? as usize)
    }

    /// The factor of a fragment.
    pub(super) fn factor(&self, sequence: u64) -> f64 {
        self.factors.at(sequence)
    }

    /// A parameter packet says which factor the fragment a window later has, and that another index
    /// takes the place of one with a collision.
    pub(super) fn change_place(&mut self, header: &Header, sequence: u64) {
        self.factors.set(sequence, header.fan_in0);
        if header.collision {
            self.replaced += 1;
            self.allocated.collided(sequence, header.index, header.bitmap0 as u16);
        }
    }

    /// An answer to a fragment comes. Whether it was awaited, before anything changes.
    pub(super) fn awaits(&self, sequence: u64) -> Answered {
        let Some(index) = sequence.checked_sub(self.expected) else { return Answered::Repeated };
        match self.sent.get(index as usize) {
            None => Answered::TooEarly,
            Some(sent) if sent.is_answered => Answered::Repeated,
            Some(_) => Answered::New,
        }
    }

    /// The server wants the fragment in f32.
    pub(super) fn wants_floats(&mut self, sequence: u64) {
        let Some(index) = sequence.checked_sub(self.expected) else { return };
        if let Some(sent) = self.sent.get_mut(index as usize) {
            sent.in_floats = true;
            self.queue(sequence);
        }
    }

    /// What is on its way of a fragment is lost, or of no use: it waits to be sent again. False where it
    /// waits already, or has its answer.
    fn queue(&mut self, sequence: u64) -> bool {
        let index = sequence.checked_sub(self.expected).map(|index| index as usize);
        let sent = index.and_then(|index| self.sent.get_mut(index));
        let Some(sent) = sent.filter(|sent| !sent.is_answered && !sent.is_queued) else {
            return false;
        };
        sent.is_queued = true;
        self.window.on_gone();
        self.again.push_back(sequence);
        true
    }

    /// The awaited answer to a fragment came; returns how many fragments are lost.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        sequence: u64,
        ecn: bool,
        longest: Duration,
    ) -> u32 {
        let index = sequence.saturating_sub(self.expected) as usize;
        let Some(sent) = self.sent.get_mut(index) else { return 0 };
        sent.is_answered = true;
        let (again, took, packet) = (sent.again, now.since(sent.at), sent.packet);
        if !sent.is_queued {
            self.window.on_gone();
        }
        if !again {
            self.round_trip.sample(took);
            self.shortest = Some(self.shortest.map_or(took, |shortest| shortest.min(took)));
        }
        self.window.on_answer(now, (!again).then_some(took), ecn);
        self.doublings = 0;
        while self.sent.front().is_some_and(|sent| sent.is_answered) {
            self.sent.pop_front();
            self.expected += 1;
        }
        // An answer that comes too soon is one to an earlier packet of the fragment.
        if !again || self.shortest.is_some_and(|shortest| took >= shortest) {
            self.overtaken.on_answer(packet);
        }
        let lost = self.resend_overtaken(now);
        let waits = !self.sent.is_empty();
        self.timer = waits.then(|| now + self.time_out(longest));
        lost
    }

    /// Sends again what three later packets have overtaken; returns how many fragments these are.
    fn resend_overtaken(&mut self, now: Instant) -> u32 {
        let mut lost = 0;
        while let Some((packet, sequence)) = self.overtaken.pop() {
            let index = sequence.checked_sub(self.expected).map(|index| index as usize);
            let Some(sent) = index.and_then(|index| self.sent.get(index)) else { continue };
            if sent.packet == packet && self.queue(sequence) {
                self.window.on_loss(now);
                lost += 1;
            }
        }
        lost
    }

    /// Time has come; the number of fragments that are overdue and will be sent again.
    pub(super) fn look(&mut self, now: Instant, longest: Duration) -> u32 {
        if self.timer.is_none_or(|at| at > now) {
            return 0;
        }
        let overdue = self.resend_overdue(now, longest);
        if overdue > 0 {
            self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
        }
        let waits = !self.sent.is_empty();
        self.timer = waits.then(|| now + self.time_out(longest));
        overdue
    }

    /// Sends again what has waited for the time-out, the first ones first.
    fn resend_overdue(&mut self, now: Instant, longest: Duration) -> u32 {
        let time_out = self.time_out(longest);
        // What waits for room in the window waits in vain where all that fills it is lost.
        let is_due =
            |sent: &Sent| !sent.is_answered && (sent.is_queued || now.since(sent.at) >= time_out);
        let due = (self.expected..).zip(&self.sent).filter(|(_, sent)| is_due(sent));
        let due: Vec<u64> = due.map(|(sequence, _)| sequence).take(self.burst as usize).collect();
        for sequence in due.iter().rev() {
            if !self.queue(*sequence) {
                self.again.retain(|queued| queued != sequence);
                self.again.push_back(*sequence);
            }
            self.again.rotate_right(1);
        }
        let overdue = due.len() as u32;
        self.urgent = (self.urgent + overdue).min(self.again.len() as u32);
        self.burst = if overdue == 0 { FIRST_BURST } else { (self.burst * 2).min(MOST_BURST) };
        let (expected, sent) = (self.expected, &self.sent);
        self.overtaken.forget(sent.len(), |packet, sequence| {
            let index = sequence.checked_sub(expected).map(|index| index as usize);
            index.and_then(|index| sent.get(index)).is_some_and(|sent| sent.packet == packet)
        });
        overdue
    }
}

/// The aggregators that all workers begin with.
fn allocated(welcome: &Welcome, options: &Options) -> Allocated {
    let Welcome { job, server, window, aggregators, .. } = *welcome;
    Allocated::new((job, server), window, aggregators, options)
}
