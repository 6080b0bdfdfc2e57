//! Whether the switch is there: since when it owes an answer, and when it counts as silent.

use alloc::collections::VecDeque;
use core::time::Duration;
use olaf_engine::Instant;

/// Since when the switch owes an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quiet {
    since: Option<Instant>,
    is_silent: bool,
}

impl Quiet {
    /// The worker sent something that the switch answers.
    pub(crate) fn expect(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// The worker waits for nothing any more.
    pub(crate) const fn excuse(&mut self) {
        self.since = None;
    }

    /// The switch was heard. Returns true if it had been silent.
    pub(crate) const fn heard(&mut self) -> bool {
        self.since = None;
        core::mem::replace(&mut self.is_silent, false)
    }

    /// How long an answer has been awaited.
    pub(crate) fn lasts(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(crate) const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// When the switch has been silent for too long. `oldest` is when the oldest open operation began: once the switch is
    /// silent, only operations have something to lose, and each waits for the same time.
    pub(crate) fn falls_silent_at(
        &self,
        silence: Duration,
        oldest: impl FnOnce() -> Option<Instant>,
    ) -> Option<Instant> {
        let since = self.since?;
        let from = if self.is_silent { oldest()?.max(since) } else { since };
        Some(from + silence)
    }

    /// The switch counts as silent from now on. Returns true if it did not before.
    pub(crate) const fn fall_silent(&mut self) -> bool {
        !core::mem::replace(&mut self.is_silent, true)
    }

    /// Takes the operations that have waited for the silent switch for long enough. They wait in their order, and `began`
    /// says since when.
    pub(crate) fn take_overdue<T>(
        &self,
        now: Instant,
        silence: Duration,
        waiting: &mut VecDeque<T>,
        began: impl Fn(&T) -> Instant,
    ) -> VecDeque<T> {
        let since = self.since.unwrap_or(now);
        let later = waiting.partition_point(|one| now.since(began(one).max(since)) >= silence);
        let later = waiting.split_off(later);
        core::mem::replace(waiting, later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(5);

    const fn at(s: u64) -> Instant {
        Instant(s * 1_000_000_000)
    }

    #[test]
    fn a_switch_is_silent_from_the_first_message_on_that_it_does_not_answer() {
        let mut quiet = Quiet::default();
        assert_eq!(quiet.falls_silent_at(SILENCE, || Some(at(0))), None, "it owes nothing");
        quiet.expect(at(1));
        quiet.expect(at(4));
        assert_eq!(
            (quiet.lasts(at(4)), quiet.lasts(at(1))),
            (Duration::from_secs(3), Duration::ZERO)
        );
        assert_eq!(quiet.falls_silent_at(SILENCE, || None), Some(at(6)));
        assert!(!quiet.heard(), "it is back before");
        assert_eq!(quiet.falls_silent_at(SILENCE, || None), None);
    }

    #[test]
    fn an_operation_that_begins_later_waits_as_long() {
        let mut quiet = Quiet::default();
        quiet.expect(at(1));
        assert!(quiet.fall_silent() && !quiet.fall_silent(), "it is told once");
        assert_eq!(quiet.falls_silent_at(SILENCE, || None), None, "nothing is to fail");
        assert_eq!(quiet.falls_silent_at(SILENCE, || Some(at(4))), Some(at(9)));
        let mut waiting = VecDeque::from([at(0), at(4), at(5)]);
        let mut overdue = |now| quiet.take_overdue(now, SILENCE, &mut waiting, |began| *began);
        assert_eq!(overdue(at(5)), []);
        assert_eq!(overdue(at(6)), [at(0)]);
        assert_eq!(overdue(at(8)), []);
        assert_eq!(overdue(at(9)), [at(4)]);
        assert!(quiet.heard(), "it was silent");
        assert!(!quiet.is_silent());
    }
}
