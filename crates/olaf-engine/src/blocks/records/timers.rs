//! N timers: each looks at 1/N of the table, one after the other, so that every record is looked at
//! once in an interval (Trio-ML §5).

use crate::time::Instant;
use core::ops::Range;
use core::time::Duration;

/// When which part of the table is looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Timers {
    interval: Duration,
    threads: u32,
    /// The next look, counted from time 0; none: nothing can age out.
    next: Option<u64>,
}

impl Timers {
    pub(super) const fn new(interval: Duration, threads: u32) -> Self {
        Self { interval, threads, next: None }
    }

    /// Time between two threads: 1/N of the interval.
    fn step_ns(&self) -> u64 {
        let interval = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        (interval / u64::from(self.threads)).max(1)
    }

    /// Something can age out from `now` on.
    pub(super) fn start(&mut self, now: Instant) {
        if self.next.is_none() {
            self.next = Some(now.0 / self.step_ns() + 1);
        }
    }

    /// Nothing can.
    pub(super) const fn stop(&mut self) {
        self.next = None;
    }

    /// When the next thread starts.
    pub(super) fn due(&self) -> Option<Instant> {
        self.next.map(|next| Instant(next.saturating_mul(self.step_ns())))
    }

    /// Which thread starts next; none: none does.
    #[cfg(all(test, feature = "model"))]
    pub(super) fn phase(&self) -> Option<u64> {
        self.next.map(|next| next % u64::from(self.threads))
    }

    /// The part of the table that the next thread looks at, if it starts by `now`. After a pause each
    /// part is looked at once, however long the pause was.
    pub(super) fn begin(&mut self, now: Instant, buckets: usize) -> Option<Range<usize>> {
        let due = now.0 / self.step_ns();
        let next = self.next.as_mut().filter(|next| **next <= due)?;
        let threads = u64::from(self.threads);
        *next = (*next).max((due + 1).saturating_sub(threads));
        let part = (*next % threads) as usize;
        *next += 1;
        let threads = self.threads as usize;
        Some(part * buckets / threads..(part + 1) * buckets / threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn every_part_is_looked_at_once_in_an_interval() {
        let mut timers = Timers::new(Duration::from_millis(10), 5);
        assert_eq!((timers.due(), timers.begin(Instant(0), 64)), (None, None));
        timers.start(Instant(7 * MS));
        let mut seen = alloc::vec![0; 64];
        for step in 4..9 {
            assert_eq!(timers.due(), Some(Instant(step * 2 * MS)));
            assert_eq!(timers.begin(Instant(step * 2 * MS - 1), 64), None);
            let part = timers.begin(Instant(step * 2 * MS), 64).expect("it is due");
            seen[part].iter_mut().for_each(|seen| *seen += 1);
        }
        assert_eq!(seen, alloc::vec![1; 64]);
    }

    #[test]
    fn after_a_pause_every_part_is_looked_at_once() {
        let mut timers = Timers::new(Duration::from_millis(10), 4);
        timers.start(Instant(0));
        let parts = core::iter::from_fn(|| timers.begin(Instant(1000 * MS), 8));
        assert_eq!(parts.count(), 4);
        assert!(timers.due().is_some_and(|due| due > Instant(1000 * MS)));
    }
}
