//! A link: a queue of updates, control datagrams ahead of it, and a pacer that says when.
//!
//! A socket never pushes back, so without a pacer nothing would ever wait, and what does not wait
//! cannot merge.

use crate::ids::{Flow, PeerId};
use crate::link::pacer::{Acknowledged, Pacer};
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, Outcome};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

/// A control datagram that goes ahead of updates.
#[derive(Clone, Debug)]
pub struct Control {
    /// To whom.
    pub peer: PeerId,
    /// The datagram.
    pub bytes: Vec<u8>,
}

/// What leaves the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// The control datagram at the front.
    Control,
    /// The locked entry.
    Update,
}

/// A departure under way: what, and from when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// What leaves.
    pub what: Leaving,
    /// When its first bit left the queue.
    pub start: Instant,
    /// When its last bit leaves the link.
    pub end: Instant,
}

/// Since when a datagram has been ready to leave.
#[derive(Clone, Copy)]
enum Ready {
    /// Since it came.
    At(Instant),
    /// Since before the link was free, which it is from this nanosecond on.
    Before(Instant),
}

/// The link.
pub struct Egress {
    queue: Box<dyn Discipline + Send>,
    control: VecDeque<Control>,
    control_limit: usize,
    pacer: Pacer,
    departure: Option<Departure>,
    service: Service,
}

/// How long a departing update takes the link, as measured.
#[derive(Default)]
struct Service {
    time: Duration,
    /// Of credits: when the last one left, where another update waited then.
    backlogged_since: Option<Instant>,
    /// Credits that had expired by then.
    expired: u64,
}

impl Service {
    /// Smoothed: the last segment of a model may be shorter than the others.
    fn take(&mut self, sample: Duration) {
        let first = self.time.is_zero();
        self.time = if first { sample } else { (self.time * 7 + sample) / 8 };
    }
}

impl Egress {
    /// An idle link. `control_limit` bounds the control datagrams that may wait.
    #[must_use]
    pub fn new(queue: Box<dyn Discipline + Send>, pacer: Pacer, control_limit: usize) -> Self {
        Self {
            queue,
            control: VecDeque::new(),
            control_limit,
            pacer,
            departure: None,
            service: Service::default(),
        }
    }

    /// An update arrives at `now`. Departures that end by `now` come first: take them out with
    /// [`Egress::due`] and [`Egress::release`] before.
    pub fn arrive(&mut self, now: Instant, arrival: &Arrival<'_>) -> Outcome {
        let outcome = self.queue.arrive(arrival);
        self.begin_paced(now);
        outcome
    }

    /// A control datagram is to leave; false where too many wait already.
    pub fn send_control(&mut self, now: Instant, control: Control) -> bool {
        if self.control.len() >= self.control_limit {
            return false;
        }
        self.control.push_back(control);
        self.begin_paced(now);
        true
    }

    /// The departure whose last bit has left by `now`, if any. What leaves is
    /// [`Egress::leaving_control`] or [`Egress::leaving_update`] until [`Egress::release`].
    pub fn due(&mut self, now: Instant) -> Option<Departure> {
        if self.departure.is_none() {
            self.begin(Ready::At(now));
        }
        self.departure.filter(|departure| departure.end <= now)
    }

    /// The control datagram that leaves.
    #[must_use]
    pub fn leaving_control(&self) -> Option<&Control> {
        self.control.front()
    }

    /// The entry that leaves.
    #[must_use]
    pub fn leaving_update(&self) -> Option<&Entry> {
        self.queue.departing()
    }

    /// The due departure has been sent: its slot is free and, on a paced link, the next starts
    /// that instant. A credit is spent on `sent_as` where one is given.
    pub fn release(&mut self, now: Instant, sent_as: Option<(Flow, u32)>) -> Option<EntryId> {
        let departure = self.departure.take()?;
        let entry = match departure.what {
            Leaving::Control => {
                self.control.pop_front();
                None
            }
            Leaving::Update => {
                let entry = self.queue.end_departure();
                self.measure(now, departure);
                entry
            }
        };
        if let (Pacer::Credit(pacer), Some((flow, hop_sequence))) = (&mut self.pacer, sent_as) {
            pacer.spend(now, flow, hop_sequence);
        }
        if let Pacer::Rate(_) = self.pacer {
            self.begin(Ready::Before(departure.end));
        }
        entry
    }

    /// Somebody above acknowledged everything of a job or flow up to `up_to`; 0: nothing.
    pub fn acknowledge(&mut self, of: Acknowledged, up_to: u32) {
        if let Pacer::Credit(pacer) = &mut self.pacer
            && up_to != 0
        {
            pacer.acknowledge(of, up_to);
        }
    }

    /// Takes back credits that nobody acknowledged in time.
    pub fn expire(&mut self, now: Instant) {
        if let Pacer::Credit(pacer) = &mut self.pacer {
            pacer.expire(now);
        }
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
        self.service.time
    }

    fn measure(&mut self, now: Instant, departure: Departure) {
        let service = &mut self.service;
        match &self.pacer {
            Pacer::Unlimited => {}
            Pacer::Rate(_) => service.take(departure.end.since(departure.start)),
            Pacer::Credit(pacer) => {
                let expired = pacer.expired();
                // What ended because nobody answered says nothing of how fast the server is.
                let honest = core::mem::replace(&mut service.expired, expired) == expired;
                match service.backlogged_since {
                    Some(before) if honest => service.take(now.since(before)),
                    Some(_) => {}
                    // Nothing waited: it is faster than was thought.
                    None => service.time = service.time * 7 / 8,
                }
                service.backlogged_since = (self.queue.used() > 0).then_some(now);
            }
        }
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &(dyn Discipline + Send) {
        &*self.queue
    }

    /// The pacer.
    #[must_use]
    pub const fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    /// On a paced link the next datagram is locked the instant the link is free. Elsewhere it
    /// waits, open, until the driver asks for it.
    fn begin_paced(&mut self, now: Instant) {
        if self.departure.is_none() && matches!(self.pacer, Pacer::Rate(_)) {
            self.begin(Ready::At(now));
        }
    }

    fn begin(&mut self, ready: Ready) {
        let (what, bytes) = if let Some(control) = self.control.front() {
            (Leaving::Control, u32::try_from(control.bytes.len()).unwrap_or(u32::MAX))
        } else {
            if let Pacer::Credit(pacer) = &self.pacer
                && pacer.outstanding() >= pacer.credits()
            {
                return;
            }
            let Some(entry) = self.queue.begin_departure() else { return };
            (Leaving::Update, entry.bytes)
        };
        let (start, end) = match (&mut self.pacer, ready) {
            (Pacer::Rate(pacer), Ready::At(now)) => pacer.begin(now, bytes),
            (Pacer::Rate(pacer), Ready::Before(_)) => pacer.follow(bytes),
            (Pacer::Unlimited | Pacer::Credit(_), Ready::At(now) | Ready::Before(now)) => {
                (now, now)
            }
        };
        self.departure = Some(Departure { what, start, end });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::JobId;
    use crate::link::pacer::{CreditPacer, RatePacer};
    use crate::time::BitsPerSecond;

    fn flow(job: u32, cluster: u32) -> Flow {
        Flow { job: JobId(job), cluster: crate::ids::ClusterId(cluster), segment: 0 }
    }

    fn update_of(worker: u32) -> Arrival<'static> {
        Arrival {
            flow: crate::ids::Flow::default(),
            worker: crate::ids::WorkerId(worker),
            sequence: 0,
            segments: 1,
            contributors: 1,
            weight: 1.0,
            reward: 0.0,
            generated_ns: (0, 0),
            versions: (0, 0),
            hops: 0,
            bytes: 125,
            lanes: &[],
        }
    }

    #[test]
    fn the_service_time_is_measured_only_while_updates_wait() {
        let rate = BitsPerSecond::new(1_000_000).expect("a rate");
        let mut link = Egress::new(
            Box::new(crate::queue::fifo::Fifo::new(4)),
            Pacer::Rate(RatePacer::new(rate)),
            1,
        );
        link.arrive(Instant(0), &update_of(1));
        assert_eq!(link.service(), Duration::ZERO);
        link.due(Instant(1_000_000)).expect("a millisecond has passed");
        link.release(Instant(1_000_000), None);
        assert_eq!(link.service(), Duration::from_millis(1));

        let pacer = Pacer::Credit(CreditPacer::new(8, Duration::from_secs(1)));
        let mut link = Egress::new(Box::new(crate::queue::fifo::Fifo::new(4)), pacer, 1);
        let leave = |link: &mut Egress, at| {
            link.due(Instant(at)).expect("credits are left");
            link.release(Instant(at), Some((flow(1, 0), 1)));
        };
        for worker in 0..3 {
            link.arrive(Instant(0), &update_of(worker));
        }
        leave(&mut link, 10);
        leave(&mut link, 30);
        assert_eq!(link.service(), Duration::from_nanos(20));
        leave(&mut link, 130);
        assert_eq!(link.service(), Duration::from_nanos(30));
        link.arrive(Instant(5_000), &update_of(7));
        leave(&mut link, 5_000);
        let idle = Duration::from_nanos(30) * 7 / 8;
        assert_eq!(link.service(), idle, "nothing waited: not 4,870, but less than before");
    }

    #[test]
    fn an_outage_of_the_server_is_not_taken_for_a_slow_link() {
        let pacer = Pacer::Credit(CreditPacer::new(1, Duration::from_secs(1)));
        let mut link = Egress::new(Box::new(crate::queue::fifo::Fifo::new(4)), pacer, 1);
        for worker in 0..4 {
            link.arrive(Instant(0), &update_of(worker));
        }
        let leave = |link: &mut Egress, at, sequence| {
            link.due(Instant(at)).expect("a credit is left");
            link.release(Instant(at), Some((flow(1, 0), sequence)));
        };
        leave(&mut link, 0, 1);
        link.acknowledge(Acknowledged::Job(JobId(1)), 1);
        leave(&mut link, 1_000, 2);
        assert_eq!(link.service(), Duration::from_nanos(1_000));
        // Nobody answers: the credit comes back by itself, and others wait all the while.
        link.expire(Instant(1_000_001_000));
        leave(&mut link, 1_000_001_000, 3);
        assert_eq!(link.service(), Duration::from_nanos(1_000));
        link.acknowledge(Acknowledged::Job(JobId(1)), 3);
        leave(&mut link, 1_000_002_000, 4);
        assert_eq!(link.service(), Duration::from_nanos(1_000));
    }
}
