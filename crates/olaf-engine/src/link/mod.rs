//! A link: what waits for it, a pacer that says when, and what becomes of the update on the wire.
//!
//! A socket never pushes back. Without a pacer no update would wait, and an update that does not
//! wait cannot merge.
//!
//! Every departure goes through [`Link`]: those of a switch's ports, up and down, and those of the
//! simulated network, the replay and the studies.

mod backlog;
mod head;
pub mod pacer;
mod rounds;
mod service;
mod shares;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod tests;

pub use backlog::Datagram;
pub use head::Head;
pub use shares::Shares;

use crate::engine::TrafficClass;
use crate::ids::{Flow, JobId};
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, Outcome};
use crate::queue::kind::QueueKind;
use crate::queue::merging::Gate;
use crate::queue::slots::Ready;
use crate::table::Hint;
use crate::time::Instant;
use alloc::boxed::Box;
use backlog::Backlog;
use core::convert::Infallible;
use core::time::Duration;
use pacer::{Acknowledged, Pacer};
use service::Service;

/// What leaves the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// The datagram at the front.
    Datagram,
    /// The update at the head of the queue.
    Update,
}

/// A departure under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// What leaves.
    pub what: Leaving,
    /// When its first bit leaves.
    pub start: Instant,
    /// When its last bit leaves.
    pub end: Instant,
    /// Whether the backlog was at least as deep as the link's ECN depth when its first bit left.
    pub congested: bool,
}

impl Departure {
    /// The class that the datagram leaves with: a congested link marks those that understand marks.
    #[must_use]
    pub const fn mark(self, class: TrafficClass) -> TrafficClass {
        if self.congested { class.marked() } else { class }
    }
}

/// Where a flow was found last on a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    /// Its job.
    part: Hint,
    /// Its open entry.
    open: Hint,
}

/// Since when a datagram has been ready to leave.
#[derive(Clone, Copy)]
enum Since {
    /// Since it came.
    At(Instant),
    /// Since before the link was free, which it is from this nanosecond on.
    Before(Instant),
}

/// A link. Datagrams of type `D` go ahead of the updates of its queue.
pub struct Link<D = Infallible> {
    backlog: Backlog<D>,
    pacer: Pacer,
    departure: Option<Departure>,
    service: Service,
    ecn_depth: Option<usize>,
}

impl<D: Datagram> Link<D> {
    /// An idle link that takes neither datagrams nor updates yet.
    #[must_use]
    pub fn new(pacer: Pacer) -> Self {
        Self {
            backlog: Backlog::new(),
            pacer,
            departure: None,
            service: Service::default(),
            ecn_depth: None,
        }
    }

    /// The same link for `limit` waiting datagrams.
    #[must_use]
    pub fn with_datagrams(mut self, limit: usize) -> Self {
        self.backlog.set_limit(limit);
        self
    }

    /// The same link with a queue of updates.
    #[must_use]
    pub fn with_queue(mut self, queue: Box<dyn Discipline + Send>) -> Self {
        self.backlog.set_queue(queue);
        self
    }

    /// The same link, which jobs share: its time, and the datagrams that wait.
    #[must_use]
    pub fn shared_by_jobs(mut self, shares: Shares) -> Self {
        self.backlog.set_shares(shares);
        self
    }

    /// The same shared link with `slots` slots, which jobs share as well. Each job has a queue of that
    /// kind.
    #[must_use]
    pub fn with_queues(mut self, kind: QueueKind, gate: Gate, slots: usize) -> Self {
        self.backlog.set_queues(kind, gate, slots);
        self
    }

    /// The same link with another view of the update on the wire.
    #[must_use]
    pub fn with_head(mut self, head: Head) -> Self {
        self.backlog.set_head(head);
        self
    }

    /// The same link, which reports congestion from that backlog on; `None`: never.
    #[must_use]
    pub fn with_ecn_depth(mut self, depth: Option<usize>) -> Self {
        self.ecn_depth = depth;
        self
    }

    /// An update arrives at `now`. Departures that end by `now` come first: take them out with
    /// [`Link::due`] and [`Link::release`] before.
    #[inline(never)]
    pub fn arrive(&mut self, now: Instant, arrival: &Arrival<'_>) -> Outcome {
        self.arrive_at(now, arrival, None, &mut Hints::default())
    }

    /// The same. The hints say where the arrival's flow was found last; `ready` is the sum of its lanes and
    /// the waiting entry's, where [`Link::prepare`] made one just before.
    #[inline(always)]
    pub fn arrive_at(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
        hints: &mut Hints,
    ) -> Outcome {
        let outcome = self.backlog.arrive(arrival, ready, hints);
        self.begin_paced(now);
        outcome
    }

    /// Adds an arrival's lanes to those of the entry that it would merge with, and measures them. The
    /// entry stays as it is. Nothing where there is no such entry, or no finite sum.
    #[inline]
    pub fn prepare(&mut self, arrival: &Arrival<'_>, hints: &mut Hints) -> Option<Ready> {
        self.backlog.prepare(arrival, hints)
    }

    /// A datagram is to leave; false where too many wait already.
    pub fn send(&mut self, now: Instant, datagram: D) -> bool {
        let fits = self.backlog.push(datagram);
        if fits {
            self.begin_paced(now);
        }
        fits
    }

    /// The departure whose last bit has left by `now`, if any. A datagram is taken out with
    /// [`Link::take`]; an update is [`Link::leaving_update`] until [`Link::release`].
    pub fn due(&mut self, now: Instant) -> Option<Departure> {
        if self.departure.is_none() {
            self.begin(Since::At(now));
        }
        let departure = self.departure.filter(|departure| departure.end <= now)?;
        if departure.what == Leaving::Update {
            self.backlog.lock();
        }
        Some(departure)
    }

    /// The datagram that leaves.
    #[must_use]
    pub fn leaving_datagram(&self) -> Option<&D> {
        self.backlog.first()
    }

    /// The update that leaves.
    #[must_use]
    pub fn leaving_update(&self) -> Option<&Entry> {
        self.backlog.departing()
    }

    /// Takes out the due datagram. On a paced link the next departure starts that instant.
    pub fn take(&mut self) -> Option<D> {
        let departure = self.departure.take_if(|departure| departure.what == Leaving::Datagram)?;
        let datagram = self.backlog.pop();
        self.begin_next(departure);
        datagram
    }

    /// The due update has been sent: its slot is free. On a paced link the next departure starts
    /// that instant. A credit is spent on `sent_as` where one is given.
    pub fn release(&mut self, now: Instant, sent_as: Option<(Flow, u32)>) -> Option<EntryId> {
        let departure = self.departure.take_if(|departure| departure.what == Leaving::Update)?;
        let entry = self.backlog.end();
        let others_wait = self.backlog.used() > 0;
        self.service.measure(now, &self.pacer, departure, others_wait);
        if let (Pacer::Credit(pacer), Some((flow, hop_sequence))) = (&mut self.pacer, sent_as) {
            pacer.spend(now, flow, hop_sequence);
        }
        self.begin_next(departure);
        entry
    }

    /// The next hop acknowledged everything of a job or flow up to `up_to`; 0: nothing.
    pub fn acknowledge(&mut self, of: Acknowledged, up_to: u32) {
        if let Pacer::Credit(pacer) = &mut self.pacer
            && up_to != 0
        {
            pacer.acknowledge(of, up_to);
        }
    }

    /// Takes back the credits whose timeout has passed without an acknowledgement.
    pub fn expire(&mut self, now: Instant) {
        if let Pacer::Credit(pacer) = &mut self.pacer {
            pacer.expire(now);
        }
    }

    /// The departure under way.
    #[must_use]
    pub const fn departure(&self) -> Option<Departure> {
        self.departure
    }

    /// When the departure under way ends.
    #[must_use]
    pub fn next_departure(&self) -> Option<Instant> {
        self.departure.map(|departure| departure.end)
    }

    /// When the next credit comes back by itself.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        match &self.pacer {
            Pacer::Credit(pacer) => pacer.next_expiry(),
            _ => None,
        }
    }

    /// How long one update takes the link, smoothed: its time on the wire at a rate, or, with
    /// credits, the time between departures while updates wait. Zero without a pacer, and before
    /// anything was measured.
    #[must_use]
    pub const fn service(&self) -> Duration {
        self.service.time()
    }

    /// Segments that the link's slots can hold, the departing one included.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.backlog.slots()
    }

    /// Segments that the link's slots hold, the departing one included.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.backlog.used()
    }

    /// Every entry in a slot: of each job the departing one first, then the others in the order of their
    /// turns as far as it is known.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.backlog.entries()
    }

    /// Forgets what is kept for other jobs, but not what waits.
    pub fn keep_jobs(&mut self, is_known: impl Fn(JobId) -> bool) {
        self.backlog.keep_jobs(is_known);
    }

    /// Every update that the link holds: one on the wire without a slot, then those of the queue.
    pub fn updates(&self) -> impl Iterator<Item = &Entry> {
        self.backlog.updates()
    }

    /// Every datagram that the link holds, the one on the wire included.
    pub fn datagrams(&self) -> impl Iterator<Item = &D> {
        self.backlog.datagrams()
    }

    /// Datagrams and updates that the link holds, the one on the wire included.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.backlog.len()
    }

    /// The pacer.
    #[must_use]
    pub const fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    /// A paced link begins to send the instant it is free. On another one a datagram waits, open,
    /// until the driver asks for it.
    fn begin_paced(&mut self, now: Instant) {
        if self.departure.is_none() && self.pacer.takes_time() {
            self.begin(Since::At(now));
        }
    }

    fn begin_next(&mut self, after: Departure) {
        if self.pacer.takes_time() {
            self.begin(Since::Before(after.end));
        }
    }

    fn begin(&mut self, ready: Since) {
        let backlog = self.backlog.len();
        let Some((what, bytes)) = self.backlog.begin(&self.pacer) else {
            return;
        };
        let (start, end) = match ready {
            Since::At(now) => self.pacer.begin(now, bytes),
            Since::Before(free) => self.pacer.follow(free, bytes),
        };
        let congested = self.ecn_depth.is_some_and(|depth| backlog >= depth);
        self.departure = Some(Departure { what, start, end, congested });
    }
}
