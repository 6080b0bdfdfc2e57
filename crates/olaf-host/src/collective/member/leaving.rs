//! A leave on its way to the switch.

use super::REPEAT;
use olaf_engine::Instant;

/// A leave that nobody confirms is sent this often, over 200 ms. A switch that hears none of them ends the generation
/// when the worker is silent.
const MOST_LEAVES: u32 = 10;

/// A leave, repeated until the switch confirms it. One that is lost would cost the other workers the switch's
/// `silence_ms`, and name this worker as dead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving<L> {
    /// The last leave, also once it is confirmed.
    last: Option<L>,
    next: Option<Instant>,
    /// How often it is still sent.
    left: u32,
    is_repeated: bool,
    is_unanswered: bool,
}

impl<L> Default for Leaving<L> {
    fn default() -> Self {
        Self { last: None, next: None, left: 0, is_repeated: false, is_unanswered: false }
    }
}

impl<L: Copy> Leaving<L> {
    /// Sends a leave, and repeats it until [`stop`](Self::stop).
    pub(crate) const fn begin(&mut self, now: Instant, leave: L) {
        self.send(now, leave, MOST_LEAVES);
    }

    /// Sends a leave that is not repeated: the join behind it tells the worker whether the switch has heard it.
    pub(crate) const fn once(&mut self, now: Instant, leave: L) {
        self.send(now, leave, 1);
    }

    const fn send(&mut self, now: Instant, leave: L, times: u32) {
        (self.last, self.next, self.left) = (Some(leave), Some(now), times);
        (self.is_repeated, self.is_unanswered) = (times > 1, false);
    }

    /// When there is something to do; none: there is no leave, or it is confirmed or given up. Until then the worker
    /// sends no join, which could overtake the leave.
    pub(crate) const fn at(&self) -> Option<Instant> {
        self.next
    }

    /// The leave, where its time has come.
    pub(crate) fn take(&mut self, now: Instant) -> Option<L> {
        self.look(now);
        self.next.filter(|at| *at <= now)?;
        self.left -= 1;
        self.next = self.is_repeated.then(|| now + REPEAT);
        self.last
    }

    /// Returns true, once, if nobody has answered the last leave.
    pub(crate) fn gives_up(&mut self, now: Instant) -> bool {
        self.look(now);
        core::mem::take(&mut self.is_unanswered)
    }

    fn look(&mut self, now: Instant) {
        if self.left == 0 && self.next.take_if(|at| *at <= now).is_some() {
            self.is_unanswered = true;
        }
    }

    /// The last leave, if it is such a one.
    pub(crate) fn last(&self, such: impl FnOnce(&L) -> bool) -> Option<L> {
        self.last.filter(such)
    }

    /// The switch has confirmed the leave, or it need not know any more.
    pub(crate) const fn stop(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    /// What is sent while nobody answers, with its time in milliseconds, and when the worker gives up.
    fn unanswered(leaving: &mut Leaving<u8>) -> (Vec<(u64, u8)>, Option<u64>) {
        let mut sent = Vec::new();
        while let Some(at) = leaving.at() {
            let ms = at.0 / 1_000_000;
            if leaving.gives_up(at) {
                return (sent, Some(ms));
            }
            sent.extend(leaving.take(at).map(|leave| (ms, leave)));
        }
        (sent, None)
    }

    #[test]
    fn a_leave_is_repeated_every_20_ms_and_10_times_at_most() {
        let mut leaving = Leaving::default();
        leaving.begin(at(0), 7);
        let all: Vec<(u64, u8)> = (0..10).map(|time| (20 * time, 7)).collect();
        assert_eq!(unanswered(&mut leaving), (all, Some(200)));
        leaving.once(at(0), 8);
        assert_eq!(unanswered(&mut leaving), (Vec::from([(0, 8)]), None));
    }

    #[test]
    fn a_leave_that_is_confirmed_is_sent_no_more() {
        let mut leaving = Leaving::default();
        leaving.begin(at(0), 7);
        assert_eq!((leaving.take(at(0)), leaving.take(at(0))), (Some(7), None));
        leaving.stop();
        assert_eq!(unanswered(&mut leaving), (Vec::new(), None));
        assert_eq!(leaving.last(|leave| *leave == 7), Some(7), "a late answer to it is known");
    }
}
