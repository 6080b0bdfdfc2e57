//! When an end asks for results that it misses, what it says it holds, and when the switch counts as
//! silent.

use super::Worker;
use super::operations::{Open, State};
use crate::collective::{Failure, Recovery, Standing};
use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::{Instant, WorkerEvent};
use olaf_wire::trio::Ask;

/// A question that is repeated sooner than this costs more than it wins.
const LEAST: Duration = Duration::from_millis(1);
/// As long as nothing is known.
const UNKNOWN: Duration = Duration::from_millis(20);
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
    /// The quickest answer to a question.
    quickest: Option<Duration>,
}

impl Asking {
    /// A term begins.
    pub(super) fn start(&mut self, now: Instant, keepalive: Duration) {
        let (keepalive, quickest) = (Some(now + keepalive), self.quickest);
        *self = Self { keepalive, quickest, ..Self::default() };
    }

    /// A question that left at `sent_at_us` is answered.
    pub(super) fn answered(&mut self, now: Instant, sent_at_us: u32) {
        let took = Duration::from_micros(micros(now).wrapping_sub(sent_at_us).into());
        self.quickest = Some(self.quickest.map_or(took, |quickest| quickest.min(took)));
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

/// Since when the switch owes a sign of life.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    since: Option<Instant>,
    is_silent: bool,
}

impl Quiet {
    pub(super) fn expect(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    pub(super) const fn excuse(&mut self) {
        self.since = None;
    }

    /// It was heard; whether it was silent.
    pub(super) fn heard(&mut self) -> bool {
        self.since = None;
        core::mem::replace(&mut self.is_silent, false)
    }

    pub(super) fn lasts(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(super) const fn is_silent(&self) -> bool {
        self.is_silent
    }
}

impl Worker {
    /// A piece without a result for this time is likely lost. Slow workers make the time longer, up to
    /// a limit: after the last block of an operation only this time reveals a loss.
    pub(super) fn patience(&self) -> Duration {
        let quickest = self.asking.quickest;
        let least = quickest.map_or(LEAST, |quickest| (quickest * 5 / 4).max(LEAST));
        let most = quickest.map_or(Duration::MAX, |quickest| quickest * 4 + UNKNOWN);
        let by_questions = || quickest.map(|quickest| quickest * 3);
        let patience = self.path.patience().or_else(by_questions).unwrap_or(UNKNOWN);
        patience.clamp(least, most.max(least))
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

    /// Says up to where this end holds results, and that it is there.
    pub(super) fn emit_acknowledgement(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let term = self.term.as_ref()?;
        let (generation, block, position) = term.holds();
        let (told, told_position) = self.asking.told;
        let untold = position.saturating_sub(told_position);
        let is_due = self.asking.keepalive.is_some_and(|at| at <= now);
        let are_many = untold >= (term.window / 4).max(1)
            || untold > 0 && generation.wrapping_sub(told) >= UNTOLD_OPERATIONS;
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
        let since = self.quiet.since?;
        let silence = self.config.options.silence;
        if !self.quiet.is_silent {
            return Some(since + silence);
        }
        // Operations that began since then wait as long.
        let opens = self.term.iter().filter_map(|term| term.open.front());
        let first = self.waiting.front().into_iter().chain(opens).map(|open| open.began).min()?;
        Some(first.max(since) + silence)
    }

    /// The operations fail, and the end looks for the switch.
    pub(super) fn switch_is_silent(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.quiet.is_silent, true) {
            self.tell(WorkerEvent::SwitchSilent);
        }
        self.leaving.stop();
        self.end_term(now, Failure::SwitchSilent);
        let silence = self.config.options.silence;
        let since = self.quiet.since.unwrap_or(now);
        while let Some(open) = self.waiting.pop_front() {
            if now.since(open.began.max(since)) < silence {
                self.waiting.push_front(open);
                break;
            }
            self.fail_waiting(now, [open], Failure::SwitchSilent);
        }
        if matches!(self.standing, Standing::Left | Standing::Refused(_)) {
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

/// `now` in microseconds, as messages carry it.
pub(super) const fn micros(now: Instant) -> u32 {
    (now.0 / 1000) as u32
}
