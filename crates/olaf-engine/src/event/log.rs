//! The events of a switch that sums, until a driver fetches them.

use super::{Event, MEMBERSHIP_LINES, SumEvent};
use crate::ids::JobId;
use crate::party::Bucket;
use crate::time::Instant;
use alloc::collections::VecDeque;

/// Events kept for a driver that does not fetch them.
const KEPT: usize = 1024;

/// Events that wait. Those that strangers can cause are throttled: see [`MEMBERSHIP_LINES`].
#[derive(Debug, Default)]
pub struct Log {
    waiting: VecDeque<Event>,
    clock: Instant,
    lines: Bucket,
    forgotten: u64,
}

impl Log {
    /// What is told from here on happens now.
    pub fn at(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
    }

    /// An event of a job.
    pub fn push(&mut self, job: JobId, event: SumEvent) {
        let event = Event::Sum(job, event);
        if event.is_of_membership() && !self.lines.take(self.clock, MEMBERSHIP_LINES) {
            self.forgotten += 1;
            return;
        }
        if self.waiting.len() == KEPT {
            self.waiting.pop_front();
            self.forgotten += 1;
        }
        self.waiting.push_back(event);
    }

    /// The oldest event that waits.
    pub fn poll(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }

    /// Events that were throttled, or not fetched in time.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PeerId;
    use core::time::Duration;

    const JOB: JobId = JobId(1);

    #[test]
    fn what_strangers_cause_is_throttled_and_the_rest_is_not() {
        let mut log = Log::default();
        let mut now = Instant(1 << 40);
        let left = SumEvent::WorkerLeft { rank: 1, peer: PeerId(1) };
        let not_finite = SumEvent::NonFinite { rank: 1, operation: 1 };
        let told = |log: &mut Log, now, event| {
            log.at(now);
            let all = (0..10_000).filter(|_| {
                log.push(JOB, event);
                log.poll().is_some()
            });
            all.count()
        };
        assert_eq!(told(&mut log, now, left), 4_096);
        assert_eq!((log.forgotten(), told(&mut log, now, not_finite)), (5_904, 10_000));
        now = now + Duration::from_secs(1);
        assert_eq!(told(&mut log, now, left), 100);
    }

    #[test]
    fn what_nobody_fetches_gives_way() {
        let mut log = Log::default();
        log.at(Instant(1 << 40));
        (0..2_000).for_each(|operation| log.push(JOB, SumEvent::NonFinite { rank: 1, operation }));
        assert_eq!(log.forgotten(), 2_000 - KEPT as u64);
        let first = SumEvent::NonFinite { rank: 1, operation: 976 };
        assert_eq!(log.poll(), Some(Event::Sum(JOB, first)));
    }
}
