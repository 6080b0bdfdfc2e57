//! The generation that an end is in: its packets, in order, and what is known of each.

use super::operations::Open;
use crate::collective::Failure;
use alloc::collections::{BTreeSet, VecDeque};
use core::time::Duration;
use olaf_engine::Instant;
use olaf_wire::Call;
use olaf_wire::iswitch::Admission;

/// Results of later packets that came while one is missing: it is lost. A path keeps its order nearly always.
const OVERTAKEN_BY: u64 = 3;
/// A pipelined sum waits for whichever workers are the first. Its results are asked for in this interval.
const AWAITED: Duration = Duration::from_millis(20);
/// As many of the results that nothing has come behind are asked for at a time.
const AWAITED_AT_ONCE: u64 = 64;

/// How far a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unsent,
    Sent,
    /// Of a pipelined sum: its result is awaited, whether this end sends packets or not.
    Awaited,
    Done,
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) state: State,
    /// When it was sent first.
    pub(super) at: Instant,
    /// When its result was asked for last.
    pub(super) asked: Option<Instant>,
    /// It was sent more than once.
    pub(super) resent: bool,
    /// Later results came first.
    pub(super) overtaken: bool,
    /// Of a pipelined sum: it was sent, and takes room in the window.
    pub(super) takes_room: bool,
}

impl Entry {
    const NEW: Self = Self {
        state: State::Unsent,
        at: Instant(0),
        asked: None,
        resent: false,
        overtaken: false,
        takes_room: false,
    };
}

/// A time with one set of workers.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) number: u8,
    pub(super) rank: u32,
    pub(super) workers: u32,
    pub(super) slots: u64,
    pub(super) packet_floats: u32,
    /// Operations that began in it.
    pub(super) begun: u32,
    /// What this end called last. Before the first operation of a generation that is a sum.
    pub(super) call: Call,
    pub(super) open: VecDeque<Open>,
    /// Packets from `holds` to `next_index`.
    pub(super) entries: VecDeque<Entry>,
    /// The results of all packets below this one are here.
    pub(super) holds: u64,
    /// The first packet of the next operation.
    next_index: u64,
    next_to_send: u64,
    /// One behind the latest packet with a result.
    newest: u64,
    /// When a result came last.
    progressed_at: Instant,
    /// The operation that began last is a pipelined sum.
    is_pipelined: bool,
    /// The same, also after it failed.
    last_is_sum: bool,
    /// One behind the latest result that came before its operation began.
    pub(super) early: u64,
    /// Packets to send again, and the numbers of their vectors.
    pub(super) resend: BTreeSet<(u64, u32)>,
    /// No operation begins in it any more: it ends, or an operation was given up.
    pub(super) is_closing: bool,
    /// It has ended: results of the open operations are all at the switch.
    pub(super) has_ended: bool,
    /// Its first packet without a result, and how operations from there on fail; once it has ended.
    pub(super) halted: Option<(u64, Failure)>,
    /// SetH is repeated then, until the switch confirms it.
    pub(super) set_h_at: Option<Instant>,
    /// When to look for missing results next.
    pub(super) ask_at: Option<Instant>,
    /// When to look for packets that go without missing workers.
    pub(super) force_at: Option<Instant>,
    /// When the next heartbeat is due.
    pub(super) heartbeat_at: Instant,
    /// What the switch knows of `holds`.
    pub(super) told: u64,
}

impl Generation {
    pub(super) fn new(now: Instant, number: u8, admission: &Admission, sets_h: bool) -> Self {
        Self {
            number,
            rank: admission.rank,
            workers: admission.workers,
            slots: admission.slots.into(),
            packet_floats: admission.packet_floats,
            begun: 0,
            call: Call::default(),
            open: VecDeque::new(),
            entries: VecDeque::new(),
            holds: 0,
            next_index: 0,
            next_to_send: 0,
            newest: 0,
            is_pipelined: false,
            last_is_sum: false,
            early: 0,
            progressed_at: now,
            resend: BTreeSet::new(),
            is_closing: false,
            has_ended: false,
            halted: None,
            set_h_at: sets_h.then_some(now),
            ask_at: None,
            force_at: None,
            heartbeat_at: now,
            told: 0,
        }
    }

    pub(super) const fn next_index(&self) -> u64 {
        self.next_index
    }

    /// Takes in an operation that was given its packets.
    pub(super) fn push(&mut self, now: Instant, open: Open) {
        let is_pipelined = open.iteration().is_some();
        self.is_pipelined = is_pipelined;
        self.last_is_sum = is_pipelined;
        if self.has_ended {
            self.early = self.early.max(open.end);
        }
        for index in open.first..open.end {
            let entry = if is_pipelined {
                let overtaken = index < self.early;
                Entry { state: State::Awaited, at: now, overtaken, ..Entry::NEW }
            } else {
                Entry::NEW
            };
            self.entries.push_back(entry);
        }
        if is_pipelined {
            let look = if open.first < self.early { now } else { now + AWAITED };
            self.ask_at = Some(self.ask_at.map_or(look, |at| at.min(look)));
        }
        self.next_index = open.end;
        if !is_pipelined {
            self.call = open.call();
        }
        self.open.push_back(open);
    }

    /// Returns true if the program of this end does not know yet that its training has failed: no sum that it
    /// has begun did. It begins further sums. The switch has results of some, where other workers were ahead;
    /// the first sum without a result fails.
    pub(super) fn has_more_sums(&self) -> bool {
        self.is_pipelined && self.halted.is_some_and(|(end, _)| self.next_index <= end)
    }

    /// Returns true if operations began here, and the last one was no pipelined sum.
    pub(super) const fn ends_without_sum(&self) -> bool {
        self.next_index > 0 && !self.last_is_sum
    }

    /// The program begins no more sums. Returns true if the operation before was a sum.
    pub(super) fn forgo_sums(&mut self) -> bool {
        core::mem::take(&mut self.is_pipelined)
    }

    /// The operation that a packet belongs to.
    pub(super) fn open_of(&mut self, index: u64) -> Option<&mut Open> {
        let at = self.open.partition_point(|open| open.end <= index);
        self.open.get_mut(at).filter(|open| open.first <= index)
    }

    pub(super) fn entry(&mut self, index: u64) -> Option<&mut Entry> {
        let at = index.checked_sub(self.holds)?;
        self.entries.get_mut(usize::try_from(at).ok()?)
    }

    /// The next packet to send for the first time, which the switch has a place for.
    pub(super) fn next_to_send(&mut self) -> Option<u64> {
        if self.set_h_at.is_some() {
            return None;
        }
        self.next_to_send = self.next_to_send.max(self.holds);
        loop {
            let index = self.next_to_send;
            if index >= self.holds + self.slots {
                return None;
            }
            match self.entry(index)?.state {
                State::Unsent => {
                    let is_ready = self.open_of(index).is_some_and(|open| open.is_ready(index));
                    return Some(index).filter(|_| !self.is_closing && is_ready);
                }
                // Its result came, or comes, without this end's packet.
                State::Sent | State::Awaited | State::Done => self.next_to_send += 1,
            }
        }
    }

    /// A packet was sent, for the first time or again.
    pub(super) fn sent(
        &mut self,
        now: Instant,
        index: u64,
        patience: Duration,
        deadline: Option<Duration>,
        keepalive: Duration,
    ) {
        self.next_to_send = self.next_to_send.max(index + 1);
        self.ask_at.get_or_insert(now + patience);
        if let Some(deadline) = deadline {
            self.force_at.get_or_insert(now + deadline);
        }
        self.heartbeat_at = now + keepalive;
        self.told = self.told.max((index + 1).saturating_sub(self.slots));
    }

    /// Returns true if the switch should hear what is here: after a time of silence, or because other workers
    /// may wait for the places of results that are here.
    pub(super) fn owes_heartbeat(&self, now: Instant) -> bool {
        let is_pipelined = self.open.front().is_some_and(|open| open.iteration().is_some());
        let is_idle = is_pipelined || self.next_to_send >= self.next_index;
        self.heartbeat_at <= now || is_idle && self.holds >= self.told + (self.slots / 2).max(1)
    }

    /// A result came.
    pub(super) fn done(&mut self, now: Instant, index: u64) {
        if let Some(entry) = self.entry(index) {
            entry.state = State::Done;
        }
        while let Some(again) = self.resend.range((index, 0)..=(index, u32::MAX)).next().copied() {
            self.resend.remove(&again);
        }
        while self.entries.front().is_some_and(|entry| entry.state == State::Done) {
            self.entries.pop_front();
            self.holds += 1;
        }
        // Each new result says of the packet before the last ones that its own should be here.
        for newer in self.newest.max(self.holds + OVERTAKEN_BY)..=index {
            let Some(entry) = self.entry(newer - OVERTAKEN_BY) else { continue };
            if entry.state != State::Done && entry.asked.is_none() {
                entry.overtaken = true;
                self.ask_at = Some(now);
            }
        }
        self.newest = self.newest.max(index + 1);
        self.progressed_at = now;
    }

    /// The results that were asked for are not lost: other workers' packets are missing.
    pub(super) fn wait_for_others(&mut self) {
        let sent = self.sent_entries();
        for entry in self.entries.iter_mut().take(sent).filter(|entry| entry.asked.is_some()) {
            entry.overtaken = false;
        }
    }

    /// Missing results that are overdue: the first of them and a mask of 64. They count as asked for from now on.
    pub(super) fn overdue(&mut self, now: Instant, patience: Duration) -> Option<(u64, u64)> {
        let halted = self.has_ended;
        let until = if halted { self.entries.len() } else { self.sent_entries() };
        let mut found = Found::default();
        for (at, entry) in self.entries.iter_mut().enumerate().take(until) {
            // A generation that has ended has all results that count, whether this end sent its packet or not.
            let is_missing = match entry.state {
                State::Sent | State::Awaited => true,
                State::Unsent => halted,
                State::Done => false,
            };
            if !is_missing {
                continue;
            }
            let is_overtaken = entry.overtaken && entry.asked.is_none();
            // Results come in order. As long as they come, a later one is on its way behind them.
            let is_behind = self.holds + at as u64 >= self.newest;
            let progress = if is_behind { self.progressed_at } else { Instant(0) };
            let is_awaited = entry.state == State::Awaited && is_behind && !halted;
            if is_awaited && at as u64 >= AWAITED_AT_ONCE {
                break;
            }
            let patience = if is_awaited { patience.max(AWAITED) } else { patience };
            let due = entry.asked.unwrap_or(entry.at).max(progress) + patience;
            if is_overtaken || due <= now {
                let is_asked = found.take(at as u64);
                entry.asked = if is_asked { Some(now) } else { entry.asked };
                found.look_again(if is_asked { now + patience } else { now });
            } else {
                found.look_again(due);
            }
        }
        self.ask_at = found.next;
        (found.mask != 0).then(|| (self.holds + found.first.unwrap_or(0), found.mask))
    }

    /// Packets that are without a result for `deadline` after they were sent: the first of them and a mask of
    /// 64. The same packets come again after `patience`.
    pub(super) fn forced(
        &mut self,
        now: Instant,
        deadline: Duration,
        patience: Duration,
    ) -> Option<(u64, u64)> {
        let mut found = Found::default();
        for (at, entry) in self.entries.iter().enumerate().take(self.sent_entries()) {
            if entry.state != State::Sent {
                continue;
            }
            let due = entry.at + deadline;
            let is_taken = due <= now && found.take(at as u64);
            found.look_again(if due <= now { now + patience } else { due });
            if due <= now && !is_taken {
                break;
            }
        }
        self.force_at = found.next;
        (found.mask != 0).then(|| (self.holds + found.first.unwrap_or(0), found.mask))
    }

    /// Entries up to the last packet that was sent.
    fn sent_entries(&self) -> usize {
        self.next_to_send.saturating_sub(self.holds) as usize
    }

    /// The packets from `from` on do not count any more, and nor do their operations, which are returned in
    /// order.
    pub(super) fn cut(&mut self, from: u64) -> VecDeque<Open> {
        let at = self.open.partition_point(|open| open.end <= from);
        let cut = self.open.split_off(at);
        self.is_pipelined &= cut.is_empty();
        let from = cut.front().map_or(self.next_index, |open| open.first);
        self.entries.truncate(from.saturating_sub(self.holds) as usize);
        self.next_index = from.max(self.holds);
        self.resend.retain(|(index, _)| *index < from);
        cut
    }
}

/// Packets found in a walk: the first, a mask from there, and when to walk again.
#[derive(Default)]
struct Found {
    first: Option<u64>,
    mask: u64,
    next: Option<Instant>,
}

impl Found {
    /// Takes an entry into the mask; whether there was room.
    fn take(&mut self, at: u64) -> bool {
        let bit = at - *self.first.get_or_insert(at);
        let has_room = bit < u64::from(u64::BITS);
        if has_room {
            self.mask |= 1 << bit;
        }
        has_room
    }

    fn look_again(&mut self, at: Instant) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}
