//! When an end asks for results that it misses, and when the switch counts as silent.

use super::Reducer;
use super::blocks::State;
use super::generation::Generation;
use crate::collective::path::{micros, since};
use crate::collective::{Failure, Recovery};
use core::time::Duration;
use olaf_engine::{Instant, WorkerEvent};
use olaf_wire::reduce::{Ask, Blocks};

/// The time-out doubles at most this often while nothing comes.
const MOST_DOUBLINGS: u32 = 16;
/// An end that finds results overdue waits for a part of the time-out, and at most for this time,
/// before it asks for them.
const LONGEST_GRACE: Duration = Duration::from_millis(2);
/// Most blocks to ask for when the time-out passes; twice as many the next time.
const FIRST_BURST: u32 = 4;
/// An end that sends no pieces asks for at most that many blocks that nobody has been seen to have.
const AHEAD: u32 = 64;

/// The timers of questions and acknowledgements.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// When to look for results that are overdue.
    check: Option<Instant>,
    /// When to say that this end is there.
    keepalive: Option<Instant>,
    /// How often in a row the time-out passed without a result.
    doublings: u32,
    /// Results were overdue when the timer was looked at last.
    is_late: bool,
    /// Most blocks to ask for at the next time-out.
    burst: u32,
    /// When the last result came, microseconds.
    progress_us: u32,
    /// When the last question left, microseconds.
    last_us: u32,
    /// `holds` as the switch was told last.
    told_holds: u32,
}

impl Asking {
    /// A generation begins.
    pub(super) fn start(&mut self, now: Instant, keepalive: Duration) {
        let keepalive = Some(now + keepalive);
        *self = Self { keepalive, progress_us: micros(now), ..Self::default() };
    }

    /// Nothing is awaited any more.
    pub(super) fn stop(&mut self) {
        (self.check, self.keepalive) = (None, None);
    }

    /// Results are awaited from now on.
    pub(super) fn awaits(&mut self, now: Instant, patience: Duration) {
        if self.check.is_none() {
            self.check = Some(now + patience);
            self.progress_us = micros(now);
        }
    }

    /// A result came.
    pub(super) const fn progressed(&mut self, now_us: u32) {
        self.doublings = 0;
        self.progress_us = now_us;
    }

    /// The end sent something that has `holds`.
    pub(super) fn told(&mut self, now: Instant, holds: u32, keepalive: Duration) {
        self.told_holds = holds;
        self.keepalive = Some(now + keepalive);
    }

    pub(super) const fn last_us(&self) -> u32 {
        self.last_us
    }

    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        [self.check, self.keepalive].into_iter().flatten().min()
    }
}

impl Reducer {
    /// The switch owes an answer while this end awaits a result or a welcome.
    pub(super) fn await_answer(&mut self, now: Instant) {
        let opens = self.generation.as_ref().is_some_and(|generation| !generation.open.is_empty());
        if opens || self.joins_at().is_some() {
            self.quiet.expect(now);
        }
    }

    /// How long an answer is waited for by now.
    fn time_out(&self) -> Duration {
        let patience = self.path.patience();
        let longest = self.config.options.longest_wait().max(patience * 2);
        patience.saturating_mul(1 << self.asking.doublings).min(longest)
    }

    /// Puts the blocks whose results are overdue into the list of questions.
    pub(super) fn look_for_missing(&mut self, now: Instant) {
        if self.asking.check.is_none_or(|at| at > now) {
            return;
        }
        let recovery = self.config.options.recovery;
        let time_out = match recovery {
            Recovery::Ask => self.time_out(),
            Recovery::Timer => self.config.options.timer,
            Recovery::Off => return self.asking.check = None,
        };
        let Some(generation) = &mut self.generation else { return self.asking.stop() };
        let blocks = &mut generation.blocks;
        if generation.open.is_empty() {
            self.asking.check = None;
            return;
        }
        let most = match recovery {
            Recovery::Timer => usize::MAX,
            _ => self.asking.burst.max(FIRST_BURST) as usize,
        };
        let seen = blocks.newest().max(blocks.holds()) + AHEAD;
        let progress_us = self.asking.progress_us;
        let asked_at = |state, at_us: u32| match state {
            // Others decide when it is sent: it is overdue when nothing else comes either.
            State::Awaited if since(now, progress_us) < since(now, at_us) || at_us == 0 => {
                progress_us
            }
            _ => at_us,
        };
        let mut next = time_out;
        let mut overdue = alloc::vec::Vec::new();
        for (block, entry) in blocks.awaited(generation.next_block) {
            if entry.state == State::Awaited && block >= seen {
                break;
            }
            let waits = since(now, asked_at(entry.state, entry.at_us));
            if waits < time_out {
                next = next.min(time_out - waits);
            } else if overdue.len() < most {
                overdue.push(block);
            }
        }
        let is_late = !overdue.is_empty() && recovery == Recovery::Ask;
        if is_late && !core::mem::replace(&mut self.asking.is_late, true) {
            // This end may be late itself: what has arrived meanwhile is taken in first.
            self.asking.check = Some(now + (time_out / 8).min(LONGEST_GRACE));
            return;
        }
        self.asking.is_late = false;
        if !overdue.is_empty() {
            self.asking.doublings = (self.asking.doublings + 1).min(MOST_DOUBLINGS);
            self.counts.time_outs += 1;
            // Their results come all at once, so that there may not be more than the window.
            let most = self.window.state().0.max(FIRST_BURST);
            self.asking.burst = (self.asking.burst.max(FIRST_BURST) * 2).min(most);
            next = self.path.patience();
        } else if self.asking.doublings == 0 {
            self.asking.burst = FIRST_BURST;
        }
        for block in overdue {
            match (recovery, blocks.entry(block).state) {
                (Recovery::Timer, State::Sent) => {
                    blocks.want(block);
                }
                _ => blocks.ask(block),
            }
        }
        if recovery == Recovery::Timer {
            next = time_out;
        }
        self.asking.check = Some(now + next.max(Duration::from_micros(100)));
    }

    /// The next question.
    pub(super) fn emit_ask(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let generation = self.generation.as_mut()?;
        let (first, mask) = generation.blocks.next_to_ask(micros(now))?;
        self.counts.asks += 1;
        self.counts.asked_blocks += u64::from(mask.count_ones());
        self.write_ask(now, Blocks { first, mask }, buf)
    }

    /// What an end says that has no piece to say it with: up to where it holds results, and that it
    /// is there.
    pub(super) fn emit_acknowledgement(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let blocks = &self.generation.as_ref()?.blocks;
        let untold = blocks.holds().saturating_sub(self.asking.told_holds);
        let is_due = self.asking.keepalive.is_some_and(|at| at <= now);
        if untold < (blocks.slots() / 4).max(1) && !is_due {
            return None;
        }
        self.counts.acknowledgements += 1;
        self.write_ask(now, Blocks::default(), buf)
    }

    fn write_ask(&mut self, now: Instant, blocks: Blocks, buf: &mut [u8]) -> Option<usize> {
        let generation = self.generation.as_ref()?;
        let open = generation.open_of(blocks.first).filter(|_| blocks.mask != 0);
        let awaits = open.map(|open| open.block(blocks.first));
        let awaits = awaits.map(|block| (block.operation, block.called()));
        let ask = Ask {
            address: generation.address,
            operation: generation.next_operation.saturating_sub(1),
            blocks,
            holds: generation.blocks.holds(),
            sent_at_us: micros(now),
            awaits,
        };
        self.asking.last_us = ask.sent_at_us;
        self.asking.told(now, ask.holds, self.config.options.keepalive);
        self.await_answer(now);
        Some(ask.emit(buf))
    }

    /// When the switch has been silent for too long.
    pub(super) fn falls_silent_at(&self) -> Option<Instant> {
        let opens = self.generation.iter().filter_map(|generation| generation.open.front());
        let oldest = || self.waiting.front().into_iter().chain(opens).map(|open| open.began).min();
        self.quiet.falls_silent_at(self.config.options.silence, oldest)
    }

    /// The operations fail, and the end looks for the switch.
    pub(super) fn switch_is_silent(&mut self, now: Instant) {
        if self.quiet.fall_silent() {
            self.events.tell(WorkerEvent::SwitchSilent);
        }
        self.note_place();
        // With nothing open, this end loses nothing: it stays where it is. Would it be welcomed to the same generation again,
        // it would count its operations there from 0, and the others go on.
        let is_idle = |one: &mut Generation| one.open.is_empty() && one.closing.is_none();
        if let Some(mut generation) = self.generation.take_if(|one| !is_idle(one)) {
            let open = core::mem::take(&mut generation.open);
            self.abandon(&generation);
            self.fail(now, open, Failure::SwitchSilent);
            self.begin_to_join(now, generation.address.generation);
        }
        let silence = self.config.options.silence;
        let failed = self.quiet.take_overdue(now, silence, &mut self.waiting, |open| open.began);
        self.fail_unplaced(now, failed, Failure::SwitchSilent);
        if !self.joining.standing().is_part() {
            self.quiet.excuse();
        }
    }
}
