//! The switch's ports: what waits at each is kept as meaning, and becomes bytes when it leaves.
//!
//! Port 0 leads up to the servers: its link has the queue of updates. The ports from 1 on lead down
//! to workers and other switches; a datagram for one of them leaves by the port on which the switch
//! heard it.

use super::job::Job;
use super::{Config, Switch};
use crate::drop::DropReason;
use crate::engine::{Receivers, Source, TrafficClass, Transmit, Verdict};
use crate::ids::{JobId, PeerId, PortId};
use crate::link::{Datagram, Departure, Leaving, Link};
use crate::time::Instant;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::iter;
use olaf_wire::{Answer, Join, Notice, Welcome};

/// Where a party is: the peer, and the port on which the switch heard it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) port: PortId,
    pub(super) peer: PeerId,
}

impl From<Source> for Place {
    fn from(source: Source) -> Self {
        Self { port: source.port, peer: source.peer }
    }
}

/// A message that waits for a port.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// Passed on as it came.
    Untouched(Vec<u8>),
    /// A worker's join, on its way up.
    Join(Join),
    /// The server's or this switch's word on a join, on its way down.
    Welcome(Welcome),
    /// Tells a worker that an update of its cluster was taken in.
    Notice(Notice),
    /// An answer on its way down: when it leaves, it takes the queue's status along. The lanes are
    /// in wire order, and all receivers share them.
    Answer(Answer, Arc<[u8]>),
}

impl Message {
    /// The job that it is of. A datagram of another protocol is of none.
    fn job(&self) -> Option<JobId> {
        match self {
            Self::Untouched(bytes) => olaf_wire::packet::job_of(bytes).map(JobId),
            Self::Join(join) => Some(join.address.job),
            Self::Welcome(welcome) => Some(welcome.address.job),
            Self::Notice(notice) => Some(notice.address.job),
            Self::Answer(answer, _) => Some(answer.address.job),
        }
    }

    /// The bytes of its datagram.
    fn len(&self) -> usize {
        match self {
            Self::Untouched(bytes) => bytes.len(),
            Self::Join(join) => join.datagram_len(),
            Self::Welcome(welcome) => welcome.datagram_len(),
            Self::Notice(_) => olaf_wire::offsets::notice::LEN,
            Self::Answer(_, lanes) => olaf_wire::offsets::answer::PAYLOAD + lanes.len(),
        }
    }
}

/// A message with its receivers.
pub(super) struct Waiting {
    to: Receivers,
    class: TrafficClass,
    message: Message,
    /// The job that a server has let in; of other messages, strangers' among them, none.
    job: Option<JobId>,
}

impl Datagram for Waiting {
    /// Each receiver gets a copy of its own, which takes the link's time.
    fn bytes(&self) -> u32 {
        let bytes = self.message.len().saturating_mul(self.to.as_slice().len());
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    fn job(&self) -> Option<JobId> {
        self.job
    }
}

impl Waiting {
    /// The datagrams that it becomes: each receiver gets a copy of its own.
    fn copies(&self) -> u64 {
        self.to.as_slice().len() as u64
    }
}

/// What one port counts. A datagram for a group counts once for each receiver.
///
/// At all times `forwarded = sent + waiting` for the datagrams that are no updates; the fates count
/// the updates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortCounts {
    /// Datagrams that found room, updates aside.
    pub(super) forwarded: u64,
    /// Datagrams of these that have left.
    pub(super) sent: u64,
    /// Datagrams that found the link full.
    pub(super) dropped: u64,
    /// Departures, updates included, on which this port put the mark "congestion experienced".
    pub(super) marked: u64,
}

/// The links of a switch's ports.
pub(super) struct Ports {
    pub(super) up: Link<Waiting>,
    down: Vec<Link<Waiting>>,
    /// Of each port, by its number.
    counts: Vec<PortCounts>,
}

impl Ports {
    pub(super) fn new(config: &Config) -> Self {
        let up = Link::new(config.pacer())
            .shared_by_jobs(config.shares.clone())
            .with_queues(config.queue, config.gate, config.slots)
            .with_datagrams(config.control_limit)
            .with_ecn_depth(config.uplink_ecn_depth);
        let down = || {
            Link::new(config.downlink_pacer())
                .shared_by_jobs(config.shares.clone())
                .with_datagrams(config.downlink_limit)
                .with_ecn_depth(config.downlink_ecn_depth)
        };
        let down: Vec<_> = iter::repeat_with(down).take(config.downlinks.into()).collect();
        let counts = vec![PortCounts::default(); down.len() + 1];
        Self { up, down, counts }
    }

    pub(super) fn count(&self) -> u16 {
        u16::try_from(self.down.len() + 1).expect("Config::downlinks is below 65,535")
    }

    /// The link of a port; of a number that no port has, nothing.
    fn link(&mut self, port: PortId) -> Option<&mut Link<Waiting>> {
        match usize::from(port.0).checked_sub(1) {
            None => Some(&mut self.up),
            Some(at) => self.down.get_mut(at),
        }
    }

    /// The counts of each port, the uplink's first.
    pub(super) fn counts(&self) -> &[PortCounts] {
        &self.counts
    }

    /// Datagrams, updates aside, that wait for each port or are on its wire, the uplink's first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u64> {
        let links = iter::once(&self.up).chain(&self.down);
        links.map(|link| link.datagrams().map(Waiting::copies).sum())
    }

    /// The class with which a port sends datagrams of that class in that departure. A mark that
    /// the port puts on them is counted.
    pub(super) fn mark(
        &mut self,
        port: PortId,
        departure: Departure,
        class: TrafficClass,
        copies: u64,
    ) -> TrafficClass {
        let marked = departure.mark(class);
        if marked != class {
            self.counts[usize::from(port.0)].marked += copies;
        }
        marked
    }

    /// Forgets what the links keep for jobs that are not known any more.
    pub(super) fn forget_jobs(&mut self, is_known: impl Fn(JobId) -> bool) {
        iter::once(&mut self.up).chain(&mut self.down).for_each(|link| link.keep_jobs(&is_known));
    }

    /// When the next departure of any port ends.
    pub(super) fn next_departure(&self) -> Option<Instant> {
        iter::once(&self.up).chain(&self.down).filter_map(Link::next_departure).min()
    }
}

impl Switch {
    /// A message of that class waits for its port from now on.
    pub(super) fn send(
        &mut self,
        now: Instant,
        place: Place,
        class: TrafficClass,
        message: Message,
    ) -> Verdict {
        self.send_to(now, place.port, Receivers::One(place.peer), class, message)
    }

    /// The same, for a group of receivers behind one port.
    pub(super) fn send_to(
        &mut self,
        now: Instant,
        port: PortId,
        to: Receivers,
        class: TrafficClass,
        message: Message,
    ) -> Verdict {
        let is_known = |job: &JobId| self.jobs.get(job).is_some_and(Job::is_confirmed);
        let job = message.job().filter(is_known);
        let waiting = Waiting { to, class, message, job };
        let copies = waiting.copies();
        let Some(link) = self.ports.link(port) else {
            return Verdict::Drop(DropReason::LinkFull);
        };
        let fits = link.send(now, waiting);
        let counts = &mut self.ports.counts[usize::from(port.0)];
        if !fits {
            counts.dropped += copies;
            return Verdict::Drop(DropReason::LinkFull);
        }
        counts.forwarded += copies;
        Verdict::Absorb
    }

    /// Sends a message of this switch's own. A message that finds the link full is counted.
    pub(super) fn say(&mut self, now: Instant, place: Place, message: Message) {
        if let Verdict::Drop(reason) = self.send(now, place, TrafficClass::NONE, message) {
            self.counters.refuse(reason);
        }
    }

    /// Sends a welcome of this switch's own.
    pub(super) fn reply(&mut self, now: Instant, place: impl Into<Place>, welcome: Welcome) {
        self.say(now, place.into(), Message::Welcome(welcome));
    }

    /// The datagram of a port whose last bit has left by `now`.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        port: PortId,
        buf: &mut [u8],
    ) -> Option<Transmit> {
        let link = self.ports.link(port)?;
        let departure = link.due(now)?;
        match departure.what {
            Leaving::Datagram => {
                let waiting = link.take()?;
                let copies = waiting.copies();
                self.ports.counts[usize::from(port.0)].sent += copies;
                let class = self.ports.mark(port, departure, waiting.class, copies);
                let len = self.emit(now, &waiting.message, buf);
                Some(Transmit { to: waiting.to, len, class })
            }
            Leaving::Update => Some(self.depart(now, departure, buf)),
        }
    }

    fn emit(&self, now: Instant, message: &Message, buf: &mut [u8]) -> usize {
        match message {
            Message::Untouched(bytes) => {
                buf[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            }
            Message::Join(join) => join.emit(buf),
            Message::Welcome(welcome) => welcome.emit(buf),
            Message::Notice(notice) => notice.emit(buf),
            // OLAF §5: of several queues on the path, the answer tells of the most crowded one.
            Message::Answer(answer, lanes) => {
                let queue = answer.queue.passing(self.queue_status(now));
                Answer { queue, ..*answer }.emit_in_wire_order(lanes, buf)
            }
        }
    }
}
