//! What waits for a link: datagrams, and behind them a queue of updates.
//!
//! A link that jobs share keeps both for each job. The jobs take turns ([`Rounds`]); within a job
//! datagrams go ahead of updates. Slots are for all: a job may use those that the others leave free,
//! and gives one back when another job comes that holds fewer in proportion to its share.

use super::head::Head;
use super::pacer::Pacer;
use super::rounds::{Rounds, Standing};
use super::shares::Shares;
use super::{Hints, Leaving};
use crate::ids::JobId;
use crate::queue::discipline::{Arrival, Discipline, Entry, EntryId, GivenUp, Outcome};
use crate::queue::kind::QueueKind;
use crate::queue::merging::Gate;
use crate::queue::slots::Ready;
use crate::table::{Hint, Table};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::convert::Infallible;

/// A datagram that waits for a link, in whatever form its owner keeps it until it leaves.
pub trait Datagram {
    /// The bytes that it takes on the link.
    fn bytes(&self) -> u32;

    /// The job whose share of the link it takes. All datagrams without a job have one share together.
    fn job(&self) -> Option<JobId> {
        None
    }
}

/// The datagram of a link that carries nothing but updates.
impl Datagram for Infallible {
    fn bytes(&self) -> u32 {
        match *self {}
    }
}

type Queue = Box<dyn Discipline + Send>;

/// A job whose share something takes. A link that is not shared has one part for all.
type Key = Option<JobId>;

/// What one job has waiting.
struct Part<D> {
    datagrams: VecDeque<D>,
    /// None where no update of the job has come yet.
    queue: Option<Queue>,
    /// The link's count of departures when one of this job began last; 0: none yet.
    served: u64,
}

impl<D> Part<D> {
    fn new() -> Self {
        Self { datagrams: VecDeque::new(), queue: None, served: 0 }
    }

    fn used(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.used())
    }

    /// Entries that could give up their slots: those that wait.
    fn may_give_up(&self) -> bool {
        self.queue
            .as_ref()
            .is_some_and(|queue| queue.used() > usize::from(queue.departing().is_some()))
    }
}

/// How jobs share.
struct Sharing {
    shares: Shares,
    /// The queue of each job, and the slots of all together.
    queue: Option<(QueueKind, Gate, usize)>,
    /// The entry that is named next.
    next: EntryId,
}

/// What waits.
pub(super) struct Backlog<D> {
    parts: Table<Key, Part<D>>,
    rounds: Rounds<Key>,
    sharing: Option<Sharing>,
    /// Whose departure is under way.
    on_wire: Key,
    /// Where that job's part is.
    on_wire_at: Hint,
    /// Datagrams that wait, and how many may.
    datagrams: usize,
    limit: usize,
    /// Entries of all queues.
    used: usize,
    /// Departures that began.
    departures: u64,
    head: Head,
    /// The update on the wire, where it has left its slot.
    gone: Option<Entry>,
}

impl<D: Datagram> Backlog<D> {
    pub(super) fn new() -> Self {
        Self {
            parts: Table::new(),
            rounds: Rounds::default(),
            sharing: None,
            on_wire: None,
            on_wire_at: Hint::default(),
            datagrams: 0,
            limit: 0,
            used: 0,
            departures: 0,
            head: Head::default(),
            gone: None,
        }
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub(super) fn set_queue(&mut self, queue: Queue) {
        self.parts.get_or_insert(None, Part::new).queue = Some(queue);
    }

    pub(super) fn set_head(&mut self, head: Head) {
        self.head = head;
    }

    /// Jobs share the link from now on.
    pub(super) fn set_shares(&mut self, shares: Shares) {
        self.sharing = Some(Sharing { shares, queue: None, next: EntryId(0) });
    }

    /// Jobs share these slots, too. Each has a queue of that kind.
    pub(super) fn set_queues(&mut self, kind: QueueKind, gate: Gate, slots: usize) {
        let sharing = self.sharing.as_mut().expect("set_shares goes before");
        sharing.queue = Some((kind, gate, slots));
    }

    /// A datagram comes; false where too many wait already. Where `limit` wait, a job may still have its
    /// share of them waiting: all together are at most twice `limit`, and one for each job.
    pub(super) fn push(&mut self, datagram: D) -> bool {
        let key = self.sharing.as_ref().and_then(|_| datagram.job());
        if self.datagrams >= self.limit && !self.is_below_share(key) {
            return false;
        }
        self.parts.get_or_insert(key, Part::new).datagrams.push_back(datagram);
        self.datagrams += 1;
        self.wake(key);
        true
    }

    /// See [`Link::prepare`](super::Link::prepare).
    #[inline]
    pub(super) fn prepare(&mut self, arrival: &Arrival<'_>, hints: &mut Hints) -> Option<Ready> {
        let key = self.sharing.as_ref().map(|_| arrival.contribution.flow.job);
        let part = self.parts.at(&key, &mut hints.part)?;
        part.queue.as_mut()?.prepare(arrival, &mut hints.open)
    }

    /// See [`Link::arrive_at`](super::Link::arrive_at).
    #[inline]
    pub(super) fn arrive(
        &mut self,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
        hints: &mut Hints,
    ) -> Outcome {
        let key = self.sharing.as_ref().map(|_| arrival.contribution.flow.job);
        let queue = self.parts.at(&key, &mut hints.part).and_then(|part| part.queue.as_mut());
        // Whatever meets an open entry takes no slot, and needs none.
        if let Some(queue) = queue
            && let Some(outcome) = queue.meet(arrival, ready, &mut hints.open)
        {
            return outcome;
        }
        self.append(arrival, ready, hints)
    }

    /// An arrival that meets no open entry.
    #[inline(never)]
    fn append(
        &mut self,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
        hints: &mut Hints,
    ) -> Outcome {
        if self.sharing.is_some() {
            return self.append_shared(arrival, ready, hints);
        }
        let queue = self.parts.at(&None, &mut hints.part).and_then(|part| part.queue.as_mut());
        // A port without a discipline has a queue without slots.
        let Some(queue) = queue else { return Outcome::Dropped };
        let outcome = queue.join(arrival, ready);
        self.used = queue.used();
        if self.used > 0 {
            self.wake(None);
        }
        outcome
    }

    fn append_shared(
        &mut self,
        arrival: &Arrival<'_>,
        ready: Option<Ready>,
        hints: &mut Hints,
    ) -> Outcome {
        let job = arrival.contribution.flow.job;
        let key = Some(job);
        let victim = if self.used >= self.slots() { self.victim_of(key) } else { None };
        let sharing = self.sharing.as_mut().expect("only a shared link comes here");
        let Some((kind, gate, slots)) = sharing.queue else { return Outcome::Dropped };
        let part = self.parts.at_or_insert(key, &mut hints.part, Part::new);
        let queue = part.queue.get_or_insert_with(|| kind.queue(slots, gate));
        let before = queue.used();
        let free = slots.saturating_sub(self.used).max(usize::from(victim.is_some()));
        let own = sharing.shares.slots_of(key).map_or(free, |own| own.saturating_sub(before));
        let free = free.min(own);
        queue.share(before + free, sharing.next);
        let outcome = queue.join(arrival, ready);
        if let Outcome::Appended(entry) | Outcome::Evicted { entry, .. } = outcome {
            sharing.next = EntryId(entry.0 + 1);
        }
        let grown = queue.used() - before;
        if grown == 0 {
            return outcome;
        }
        self.used += grown;
        self.wake(key);
        match (outcome, victim) {
            (Outcome::Appended(entry), Some(victim)) => {
                let gone = self.take_slot_from(victim);
                let GivenUp { entry: evicted, flow, contributors: dropped } = gone;
                Outcome::Evicted { entry, evicted, flow, dropped }
            }
            _ => outcome,
        }
    }

    /// The job that gives a slot to an arrival of `key` while all are taken: the one that holds most in
    /// proportion to its share, where that is more than the arrival's job would hold. Of equals, one
    /// whose last departure was after the last one of the arrival's job: so more jobs than slots take
    /// turns.
    ///
    /// A job with slots of its own gives none up, for it holds no others. It gets one while it holds
    /// fewer than its own.
    fn victim_of(&self, key: Key) -> Option<Key> {
        let sharing = self.sharing.as_ref()?;
        let (held, served) = self.parts.get(&key).map_or((0, 0), |part| (part.used(), part.served));
        let own_slots = sharing.shares.slots_of(key);
        if own_slots.is_some_and(|own| held >= own) {
            return None;
        }
        let own = (held as u64 + 1, u64::from(sharing.shares.of(key)), served);
        let others = self.rounds.sharers().filter(|other| *other != key).filter_map(|other| {
            if sharing.shares.slots_of(other).is_some() {
                return None;
            }
            let part = self.parts.get(&other).filter(|part| part.may_give_up())?;
            Some((other, (part.used() as u64, u64::from(sharing.shares.of(other)), part.served)))
        });
        let (victim, most) = others.max_by(|(_, a), (_, b)| in_proportion(*a, *b))?;
        (own_slots.is_some() || in_proportion(most, own).is_gt()).then_some(victim)
    }

    fn take_slot_from(&mut self, victim: Key) -> GivenUp {
        let part = self.parts.get_mut(&victim).expect("the victim has entries");
        let gone = part.queue.as_mut().and_then(|queue| queue.give_up());
        self.used -= 1;
        gone.expect("the victim has entries that wait")
    }

    fn is_below_share(&self, key: Key) -> bool {
        let Some(sharing) = &self.sharing else { return false };
        let waiting = |key: Key| self.parts.get(&key).map_or(0, |part| part.datagrams.len());
        let share = |key: Key| u64::from(sharing.shares.of(key));
        let others = self.rounds.sharers().filter(|other| *other != key && waiting(*other) > 0);
        let all = share(key) + others.map(share).sum::<u64>();
        all > share(key) && (waiting(key) as u64) * all < self.limit as u64 * share(key)
    }

    fn wake(&mut self, key: Key) {
        let share = self.sharing.as_ref().map_or(1, |sharing| sharing.shares.of(key));
        self.rounds.wake(key, share);
    }

    /// Begins to send what comes next: what it is, and its bytes.
    ///
    /// A job may have its share of the credits outstanding, and one at least. A job without updates, here or
    /// outstanding, leaves its share to the others. When it comes back it does not wait for their credits:
    /// they may belong to a server that answers no more.
    pub(super) fn begin(&mut self, pacer: &Pacer) -> Option<(Leaving, u32)> {
        if self.datagrams == 0 && self.used == 0 {
            return None;
        }
        let parts = &self.parts;
        let share = |key: Key| self.sharing.as_ref().map_or(1, |sharing| sharing.shares.of(key));
        let all: u64 = match pacer {
            Pacer::Credit(credits) => {
                let takes = |(key, part): &(&Key, &Part<D>)| {
                    part.used() > 0 || key.is_some_and(|job| credits.outstanding_of(job) > 0)
                };
                parts.iter().filter(takes).map(|(key, _)| u64::from(share(*key))).sum()
            }
            _ => 1,
        };
        let may_leave = |key: Key| match (pacer, key) {
            (Pacer::Credit(credits), Some(job)) => {
                let quota = credits.credits() as u64 * u64::from(share(key)) / all.max(1);
                (credits.outstanding_of(job) as u64) < quota.max(1)
            }
            (Pacer::Credit(credits), None) => credits.outstanding() < credits.credits(),
            _ => true,
        };
        // A job that sends is often the one that sent last.
        let last = self.on_wire_at;
        let turn = self.rounds.next(|key| match parts.get_at(&key, last) {
            Some(part) if !part.datagrams.is_empty() => Standing::Ready,
            Some(part) if part.used() > 0 && may_leave(key) => Standing::Ready,
            Some(part) if part.used() > 0 => Standing::Held,
            _ => Standing::Idle,
        });
        let key = turn?;
        let part = self.parts.at(&key, &mut self.on_wire_at).expect("it was just seen");
        self.departures += 1;
        part.served = self.departures;
        self.on_wire = key;
        let (what, bytes) = if let Some(datagram) = part.datagrams.front() {
            (Leaving::Datagram, datagram.bytes())
        } else {
            let queue = part.queue.as_mut().expect("it has entries");
            let bytes = match self.head {
                Head::Locked => queue.begin_departure()?.contribution.bytes,
                // The link's time is that of the first update as it is now, whatever it takes in.
                Head::Open => queue.choose()?.contribution.bytes,
                Head::Gone => {
                    let entry = queue.begin_departure()?;
                    let bytes = entry.contribution.bytes;
                    self.gone = Some(entry.clone());
                    queue.end_departure();
                    self.used -= 1;
                    bytes
                }
            };
            (Leaving::Update, bytes)
        };
        self.rounds.pay(bytes);
        Some((what, bytes))
    }

    /// The last bit of an update leaves now: the update takes nothing in any more.
    pub(super) fn lock(&mut self) {
        if self.head == Head::Open
            && let Some(queue) = self.leaving_queue()
            && queue.departing().is_none()
        {
            queue.begin_departure();
        }
    }

    /// The datagram that leaves.
    pub(super) fn first(&self) -> Option<&D> {
        self.parts.get_at(&self.on_wire, self.on_wire_at)?.datagrams.front()
    }

    pub(super) fn datagrams(&self) -> impl Iterator<Item = &D> {
        self.parts.values().flat_map(|part| &part.datagrams)
    }

    pub(super) fn pop(&mut self) -> Option<D> {
        let part = self.parts.at(&self.on_wire, &mut self.on_wire_at)?;
        let datagram = part.datagrams.pop_front()?;
        self.datagrams -= 1;
        Some(datagram)
    }

    /// The update that leaves.
    pub(super) fn departing(&self) -> Option<&Entry> {
        let part = || self.parts.get_at(&self.on_wire, self.on_wire_at);
        self.gone.as_ref().or_else(|| part()?.queue.as_ref()?.departing())
    }

    /// The update has left; its name.
    pub(super) fn end(&mut self) -> Option<EntryId> {
        if let Some(entry) = self.gone.take() {
            return Some(entry.id);
        }
        let ended = self.leaving_queue()?.end_departure();
        self.used -= usize::from(ended.is_some());
        ended
    }

    /// Datagrams and updates, the one on the wire included.
    pub(super) fn len(&self) -> usize {
        self.datagrams + self.used + usize::from(self.gone.is_some())
    }

    /// Segments that all queues can hold together.
    pub(super) fn slots(&self) -> usize {
        match &self.sharing {
            Some(sharing) => sharing.queue.map_or(0, |(_, _, slots)| slots),
            None => self.queues().map(|queue| queue.slots()).sum(),
        }
    }

    /// Segments that all queues hold.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Every entry of the queues; those of one job in the order of their turns.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.queues().flat_map(|queue| queue.entries())
    }

    pub(super) fn updates(&self) -> impl Iterator<Item = &Entry> {
        self.gone.iter().chain(self.entries())
    }

    /// Forgets what is kept for other jobs, but not what waits.
    pub(super) fn keep_jobs(&mut self, is_known: impl Fn(JobId) -> bool) {
        self.parts.retain(|key, part| {
            key.is_none_or(&is_known) || !part.datagrams.is_empty() || part.used() > 0
        });
    }

    fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.parts.values().filter_map(|part| part.queue.as_ref())
    }

    fn leaving_queue(&mut self) -> Option<&mut Queue> {
        self.parts.at(&self.on_wire, &mut self.on_wire_at)?.queue.as_mut()
    }
}

/// Orders (held, share, last departure) by what is held for each share, and then by the last departure.
fn in_proportion(a: (u64, u64, u64), b: (u64, u64, u64)) -> core::cmp::Ordering {
    (a.0 * b.1, a.2).cmp(&(b.0 * a.1, b.2))
}
