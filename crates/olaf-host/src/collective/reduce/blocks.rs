//! Which blocks of a generation this end has sent, holds, and misses.

use alloc::collections::VecDeque;
use olaf_engine::blocks::pool::MAX_SLOTS;

/// Results of that many later blocks say that a result is lost.
const LATER: usize = 3;

/// What this end knows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum State {
    /// Its piece was not sent.
    #[default]
    Unsent,
    /// Its piece was sent, and the result is awaited.
    Sent,
    /// Nothing is sent for it, and the result is awaited.
    Awaited,
    /// The result is here.
    Held,
}

/// A block from `holds` on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) state: State,
    /// The block is in the list of pieces to send again.
    is_wanted: bool,
    /// The block is in the list of results to ask for.
    is_asked: bool,
    /// When its piece, or the last question for it, was sent: microseconds, 0 for never.
    pub(super) at_us: u32,
    /// It was asked for, or its piece sent again: an answer says nothing of how long the path takes.
    pub(super) is_repeated: bool,
    /// The loss of its piece or its result is counted.
    pub(super) is_lost: bool,
}

/// What a block number means to this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its result is here.
    Held,
    /// Its result is missing.
    Missing,
    /// Nobody can have its result yet.
    TooEarly,
}

/// The blocks of a generation.
#[derive(Debug)]
pub(super) struct Blocks {
    asks: bool,
    slots: u32,
    /// The results of all blocks before this one are here.
    holds: u32,
    /// The blocks from `holds` on.
    entries: VecDeque<Entry>,
    /// The next block to look at for sending.
    pub(super) next: u32,
    /// The highest blocks whose results are here, plus one; in falling order.
    newest: [u32; LATER],
    /// Blocks before this one that were missed are in the list of questions.
    scanned: u32,
    to_resend: VecDeque<u32>,
    to_ask: VecDeque<u32>,
}

impl Blocks {
    /// `asks`: results that later ones have overtaken are asked for.
    pub(super) fn new(slots: u32, asks: bool) -> Self {
        Self {
            asks,
            slots: slots.clamp(1, MAX_SLOTS),
            holds: 0,
            entries: VecDeque::new(),
            next: 0,
            newest: [0; LATER],
            scanned: 0,
            to_resend: VecDeque::new(),
            to_ask: VecDeque::new(),
        }
    }

    pub(super) const fn holds(&self) -> u32 {
        self.holds
    }

    pub(super) const fn slots(&self) -> u32 {
        self.slots
    }

    /// One after the highest block whose result is here.
    pub(super) const fn newest(&self) -> u32 {
        self.newest[0]
    }

    pub(super) fn place(&self, block: u32) -> Place {
        match block.checked_sub(self.holds) {
            None => Place::Held,
            // Another end may be one window ahead of this one, and its window is `slots`.
            Some(ahead) if ahead >= 2 * self.slots => Place::TooEarly,
            Some(_) if self.entry(block).state == State::Held => Place::Held,
            Some(_) => Place::Missing,
        }
    }

    pub(super) fn entry(&self, block: u32) -> Entry {
        let at = block.checked_sub(self.holds);
        at.and_then(|at| self.entries.get(at as usize)).copied().unwrap_or_default()
    }

    /// The entry of a block that [`place`](Self::place) calls missing.
    pub(super) fn entry_mut(&mut self, block: u32) -> &mut Entry {
        let at = block.saturating_sub(self.holds) as usize;
        if at >= self.entries.len() {
            self.entries.resize(at + 1, Entry::default());
        }
        &mut self.entries[at]
    }

    /// Returns true if the piece of the next block may be sent: the result one window before is
    /// here.
    pub(super) const fn may_send_next(&self) -> bool {
        self.next - self.holds < self.slots
    }

    /// Returns true if the next block may be awaited.
    pub(super) const fn may_await_next(&self) -> bool {
        self.next - self.holds < 2 * self.slots
    }

    /// The result is here. Returns what was known of the block.
    pub(super) fn hold(&mut self, block: u32) -> Entry {
        let entry = self.entry_mut(block);
        let before = *entry;
        entry.state = State::Held;
        while self.entries.front().is_some_and(|entry| entry.state == State::Held) {
            self.entries.pop_front();
            self.holds += 1;
        }
        self.next = self.next.max(self.holds);
        self.note_newest(block + 1);
        self.scan();
        before
    }

    fn note_newest(&mut self, mut end: u32) {
        for newest in &mut self.newest {
            if end > *newest {
                core::mem::swap(newest, &mut end);
            }
        }
    }

    /// Asks for the blocks that have just been overtaken by enough later ones.
    fn scan(&mut self) {
        if !self.asks {
            return;
        }
        let until = self.newest[LATER - 1].saturating_sub(1).min(self.next);
        for block in self.scanned.max(self.holds)..until {
            self.ask(block);
        }
        self.scanned = self.scanned.max(until);
    }

    /// Puts a missing block into the list of questions.
    pub(super) fn ask(&mut self, block: u32) {
        if self.place(block) != Place::Missing {
            return;
        }
        let entry = self.entry_mut(block);
        if matches!(entry.state, State::Sent | State::Awaited) && !entry.is_asked {
            entry.is_asked = true;
            self.to_ask.push_back(block);
        }
    }

    /// Puts a piece into the list of those to send again, if it was sent. Returns true if its loss is new.
    pub(super) fn want(&mut self, block: u32) -> bool {
        if self.place(block) != Place::Missing {
            return false;
        }
        let entry = self.entry_mut(block);
        if entry.state != State::Sent {
            return false;
        }
        if !entry.is_wanted {
            entry.is_wanted = true;
            entry.is_repeated = true;
            self.to_resend.push_back(block);
        }
        let entry = self.entry_mut(block);
        !core::mem::replace(&mut entry.is_lost, true)
    }

    /// The next piece to send again.
    pub(super) fn next_to_resend(&mut self) -> Option<u32> {
        while let Some(block) = self.to_resend.pop_front() {
            if self.place(block) == Place::Missing {
                self.entry_mut(block).is_wanted = false;
                return Some(block);
            }
        }
        None
    }

    /// The next up to 64 blocks to ask for: the first, and a mask from it on.
    pub(super) fn next_to_ask(&mut self, now_us: u32) -> Option<(u32, u64)> {
        let mut first = None;
        let mut mask = 0;
        while let Some(block) = self.to_ask.front().copied() {
            if self.place(block) == Place::Missing {
                let bit = block.wrapping_sub(*first.get_or_insert(block));
                if bit >= u64::BITS {
                    break;
                }
                let entry = self.entry_mut(block);
                entry.is_asked = false;
                entry.at_us = now_us;
                entry.is_repeated = true;
                mask |= 1 << bit;
            }
            self.to_ask.pop_front();
        }
        first.map(|first| (first, mask))
    }

    /// The blocks before `end` whose results are awaited, in order.
    pub(super) fn awaited(&self, end: u32) -> impl Iterator<Item = (u32, Entry)> + '_ {
        let entries = (self.holds..end).zip(self.entries.iter().copied());
        entries.filter(|(_, entry)| matches!(entry.state, State::Sent | State::Awaited))
    }

    /// Blocks from this one on are given up. Results that came before their operation stay: it may
    /// still begin.
    pub(super) fn end_at(&mut self, end: u32) {
        let keep = end.saturating_sub(self.holds) as usize;
        for entry in self.entries.iter_mut().skip(keep) {
            if entry.state != State::Held {
                *entry = Entry::default();
            }
        }
        self.next = self.next.min(end.max(self.holds));
        self.to_ask.retain(|block| *block < end);
        self.to_resend.retain(|block| *block < end);
    }
}
