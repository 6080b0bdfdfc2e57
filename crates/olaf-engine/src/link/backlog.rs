//! What waits for a link: datagrams, and behind them a queue of updates.

use super::Leaving;
use super::head::Head;
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, Outcome};
use crate::queue::fifo::Fifo;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::convert::Infallible;

/// A datagram that waits for a link, in whatever form its owner keeps it until it leaves.
pub trait Datagram {
    /// The bytes that it takes on the link.
    fn bytes(&self) -> u32;
}

/// The datagram of a link that carries nothing but updates.
impl Datagram for Infallible {
    fn bytes(&self) -> u32 {
        match *self {}
    }
}

/// Datagrams in the order of their arrival go ahead of the updates.
pub(super) struct Backlog<D> {
    datagrams: VecDeque<D>,
    /// Datagrams that may wait.
    limit: usize,
    /// A port without a discipline has a queue without slots.
    queue: Box<dyn Discipline + Send>,
    head: Head,
    /// The update on the wire, where it has left its slot.
    gone: Option<Entry>,
}

impl<D: Datagram> Backlog<D> {
    pub(super) fn new() -> Self {
        Self {
            datagrams: VecDeque::new(),
            limit: 0,
            queue: Box::new(Fifo::new(0)),
            head: Head::default(),
            gone: None,
        }
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub(super) fn set_queue(&mut self, queue: Box<dyn Discipline + Send>) {
        self.queue = queue;
    }

    pub(super) fn set_head(&mut self, head: Head) {
        self.head = head;
    }

    /// A datagram comes; false where too many wait already.
    pub(super) fn push(&mut self, datagram: D) -> bool {
        let fits = self.datagrams.len() < self.limit;
        if fits {
            self.datagrams.push_back(datagram);
        }
        fits
    }

    pub(super) fn arrive(&mut self, arrival: &Arrival<'_>) -> Outcome {
        self.queue.arrive(arrival)
    }

    /// Begins to send what comes next: what it is, and its bytes.
    pub(super) fn begin(&mut self, updates_may_leave: bool) -> Option<(Leaving, u32)> {
        if let Some(datagram) = self.datagrams.front() {
            return Some((Leaving::Datagram, datagram.bytes()));
        }
        if !updates_may_leave {
            return None;
        }
        let bytes = match self.head {
            Head::Locked => self.queue.begin_departure()?.contribution.bytes,
            // The link's time is that of the first update as it is now, whatever it takes in.
            Head::Open => self.queue.entries().first()?.contribution.bytes,
            Head::Gone => {
                let entry = self.queue.begin_departure()?;
                let bytes = entry.contribution.bytes;
                self.gone = Some(entry.clone());
                self.queue.end_departure();
                bytes
            }
        };
        Some((Leaving::Update, bytes))
    }

    /// The last bit of an update leaves now: the update takes nothing in any more.
    pub(super) fn lock(&mut self) {
        if self.head == Head::Open && self.queue.departing().is_none() {
            self.queue.begin_departure();
        }
    }

    pub(super) fn first(&self) -> Option<&D> {
        self.datagrams.front()
    }

    pub(super) fn datagrams(&self) -> impl Iterator<Item = &D> {
        self.datagrams.iter()
    }

    pub(super) fn pop(&mut self) -> Option<D> {
        self.datagrams.pop_front()
    }

    /// The update that leaves.
    pub(super) fn departing(&self) -> Option<&Entry> {
        self.gone.as_ref().or_else(|| self.queue.departing())
    }

    /// The update has left; its name.
    pub(super) fn end(&mut self) -> Option<EntryId> {
        match self.gone.take() {
            Some(entry) => Some(entry.id),
            None => self.queue.end_departure(),
        }
    }

    /// Datagrams and updates, the one on the wire included.
    pub(super) fn len(&self) -> usize {
        self.datagrams.len() + self.queue.used() + usize::from(self.gone.is_some())
    }

    pub(super) fn queue(&self) -> &(dyn Discipline + Send) {
        &*self.queue
    }

    pub(super) fn updates(&self) -> impl Iterator<Item = &Entry> {
        self.gone.iter().chain(self.queue.entries())
    }
}
