//! When an end asks for results that it misses, what it says it holds, and when the switch counts as
//! silent.

use super::Worker;
use super::operations::{Open, State};
use crate::collective::path::micros;
use crate::collective::{Failure, Recovery};
use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::{Instant, WorkerEvent};
use olaf_wire::trio::Ask;

/// The time-out doubles at most this often while nothing comes.
const MOST_DOUBLINGS: u32 = 16;
/// Most blocks to ask for when the time-out passes; twice as many the next time.
const FIRST_BURST: usize = 16;
/// Operations that end before the switch must be told that their results are held.
const UNTOLD_OPERATIONS: u16 = 8;

/// The timers of questions and acknowledgements.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// When to look for results that are overdue.
    check: Option<Instant>,
    /// When to say that this end is there.
    keepalive: Option<Instant>,
    /// How often in a row the time-out passed without a result.
    doublings: u32,
    /// Questions that are due: a generation, its first block, and a mask.
    due: VecDeque<(u16, u32, u64)>,
    /// What the switch was told last: a generation, and the blocks before.
    told: (u16, u64),
}

impl Asking {
    /// A term begins.
    pub(super) fn start(&mut self, now: Instant, keepalive: Duration) {
        *self = Self { keepalive: Some(now + keepalive), ..Self::default() };
    }

    /// Nothing is awaited any more.
    pub(super) fn stop(&mut self) {
        (self.check, self.keepalive) = (None, None);
        self.due.clear();
    }

    /// Results are awaited from now on.
    pub(super) fn awaits(&mut self, now: Instant, patience: Duration) {
        self.check.get_or_insert(now + patience);
    }

    /// A result came.
    pub(super) const fn progressed(&mut self) {
        self.doublings = 0;
    }

    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        [self.check, self.keepalive].into_iter().flatten().min()
    }
}

impl Worker {
    /// A piece without a result for this time is likely lost, and a question can be answered within it.
    pub(super) fn patience(&self) -> Duration {
        let least = self.path.quickest().map_or(Duration::ZERO, |quickest| quickest * 5 / 4);
        self.path.patience().max(least)
    }

    /// Puts the blocks whose results are overdue into the list of questions.
    pub(super) fn look_for_missing(&mut self, now: Instant) {
        if self.asking.check.is_none_or(|at| at > now) {
            return;
        }
        let recovery = self.config.options.recovery;
        let patience = self.patience();
        let longest = self.config.options.longest_wait().max(patience);
        let time_out = match recovery {
            Recovery::Ask => (patience * (1 << self.asking.doublings.min(8))).min(longest),
            Recovery::Timer => self.config.options.timer,
            Recovery::Off => return self.asking.check = None,
        };
        let Some(term) = self.term.as_mut().filter(|term| !term.open.is_empty()) else {
            self.asking.check = None;
            return;
        };
        let mut next = time_out;
        let mut left = match recovery {
            Recovery::Timer => usize::MAX,
            _ => FIRST_BURST << self.asking.doublings.min(6),
        };
        let mut is_late = false;
        for open in &mut term.open {
            for block in open.held..open.next {
                let slot = open.slots[block as usize];
                if !matches!(slot.state, State::Sent | State::Again) {
                    continue;
                }
                let waits = now.since(slot.at);
                if waits < time_out {
                    next = next.min(time_out - waits);
                } else if left > 0 {
                    left -= 1;
                    is_late = true;
                    ask_for(&mut self.asking.due, open, block, now, recovery);
                }
            }
        }
        if is_late {
            self.asking.doublings = (self.asking.doublings + 1).min(MOST_DOUBLINGS);
            self.counts.time_outs += 1;
        }
        self.asking.check = Some(now + next.max(Duration::from_micros(100)));
    }

    /// The next question.
    pub(super) fn emit_ask(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let (generation, block, mask) = self.asking.due.pop_front()?;
        self.counts.asks += 1;
        self.counts.asked_blocks += u64::from(mask.count_ones());
        self.write_ask(now, (generation, block, mask), buf)
    }

    /// Says up to where this end holds results, and that it is there: after everything else.
    pub(super) fn emit_acknowledgement(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let is_due = self.asking.keepalive.is_some_and(|at| at <= now);
        let least = (self.term.as_ref()?.window / 4).max(1);
        self.acknowledge(now, least, is_due, buf)
    }

    /// The same, before further pieces. Where a link is slower than its host, a piece always waits. The switch has records
    /// for four windows, and would drop the pieces behind them until it hears what this end holds.
    pub(super) fn emit_urgent_acknowledgement(
        &mut self,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<usize> {
        // More than one: with a window of one block each piece would wait for an acknowledgement.
        let least = self.term.as_ref()?.window / 2 + 2;
        self.acknowledge(now, least, false, buf)
    }

    fn acknowledge(
        &mut self,
        now: Instant,
        least: u64,
        is_due: bool,
        buf: &mut [u8],
    ) -> Option<usize> {
        let (generation, block, position) = self.term.as_ref()?.holds();
        let (told, told_position) = self.asking.told;
        let untold = position.saturating_sub(told_position);
        let are_many =
            untold >= least || untold > 0 && generation.wrapping_sub(told) >= UNTOLD_OPERATIONS;
        if !is_due && !are_many {
            return None;
        }
        self.counts.acknowledgements += 1;
        self.write_ask(now, (generation, block, 0), buf)
    }

    fn write_ask(
        &mut self,
        now: Instant,
        (generation, block, mask): (u16, u32, u64),
        buf: &mut [u8],
    ) -> Option<usize> {
        let term = self.term.as_ref()?;
        let (held_generation, held_block, position) = term.holds();
        let ask = Ask {
            job: u8::try_from(self.config.job.0).unwrap_or(u8::MAX),
            term: term.number,
            source: term.source,
            session: self.config.session,
            generation,
            block,
            mask,
            held_generation,
            held_block,
            sent_at_us: micros(now),
        };
        self.asking.told = (held_generation, position);
        self.asking.keepalive = Some(now + self.config.options.keepalive);
        self.quiet.expect(now);
        Some(ask.emit(buf))
    }

    /// When the switch has been silent for too long.
    pub(super) fn falls_silent_at(&self) -> Option<Instant> {
        let opens = self.term.iter().filter_map(|term| term.open.front());
        let oldest = || self.waiting.front().into_iter().chain(opens).map(|open| open.began).min();
        self.quiet.falls_silent_at(self.config.options.silence, oldest)
    }

    /// The operations fail, and the end looks for the switch.
    pub(super) fn switch_is_silent(&mut self, now: Instant) {
        if self.quiet.fall_silent() {
            self.events.tell(WorkerEvent::SwitchSilent);
        }
        self.leaving.stop();
        self.end_term(now, Failure::SwitchSilent);
        let silence = self.config.options.silence;
        let failed = self.quiet.take_overdue(now, silence, &mut self.waiting, |open| open.began);
        self.fail_waiting(now, failed, Failure::SwitchSilent);
        if !self.joining.standing().is_part() {
            self.quiet.excuse();
        }
    }
}

/// Asks for the result of a block, or sends its piece again.
fn ask_for(
    due: &mut VecDeque<(u16, u32, u64)>,
    open: &mut Open,
    block: u32,
    now: Instant,
    recovery: Recovery,
) {
    open.slots[block as usize] = super::operations::Slot { state: State::Again, at: now };
    if recovery == Recovery::Timer {
        open.want(block);
        return;
    }
    if let Some((generation, first, mask)) = due.back_mut()
        && *generation == open.generation
        && (*first..*first + 64).contains(&block)
    {
        *mask |= 1 << (block - *first);
        return;
    }
    due.push_back((open.generation, block, 1));
}
