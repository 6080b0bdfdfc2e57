//! Who receives: the driver's thread, or a caller that waits.
//!
//! The thread rests while a caller receives, and for [`PATIENCE`] afterwards: a program that reduces
//! in a loop comes back sooner, and no datagram wakes two threads.
//!
//! A caller that ends does not wake the thread, if the thread looks up in time by itself. A wake-up
//! for each operation would cost more than the operation's own system calls: two changes of
//! threads, and the lock changes hands twice.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The thread rests for this time after a caller has received.
const PATIENCE: Duration = Duration::from_millis(2);
/// A resting thread looks up after this time, even if nobody wakes it.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// The turns.
#[derive(Debug)]
pub(super) struct Turns {
    longest_rest: Duration,
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Default for Turns {
    fn default() -> Self {
        Self::looking_up_after(LONGEST_REST)
    }
}

#[derive(Debug, Default)]
struct Turn {
    caller_receives: bool,
    /// A caller has ended since the thread last looked: callers receive for short times.
    has_ended: bool,
    /// The thread rests until then.
    rests_until: Option<Instant>,
    /// The thread sleeps, and looks up by itself then.
    looks_up_at: Option<Instant>,
}

impl Turn {
    /// For how long the thread sleeps from now on; none where it goes on.
    fn sleep(&mut self, now: Instant, longest: Duration) -> Option<Duration> {
        let has_ended = std::mem::take(&mut self.has_ended);
        if self.caller_receives {
            // Where callers come and go, the one that receives now will end within this time, too.
            return Some(if has_ended { PATIENCE } else { longest });
        }
        let left = self.rests_until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

impl Turns {
    fn looking_up_after(longest_rest: Duration) -> Self {
        Self { longest_rest, turn: Mutex::default(), changed: Condvar::new() }
    }

    /// A caller begins to receive.
    pub(super) fn begin(&self) {
        self.lock().caller_receives = true;
    }

    /// The caller has ended. Wakes the thread only if it would sleep for longer than it is to rest
    /// from now on. Returns whether it did.
    pub(super) fn end(&self) -> bool {
        let mut turn = self.lock();
        turn.caller_receives = false;
        turn.has_ended = true;
        let until = Instant::now() + PATIENCE;
        turn.rests_until = Some(until);
        // A thread that does not sleep looks at the turn before it does.
        let is_late = turn.looks_up_at.is_some_and(|at| at > until);
        drop(turn);
        if is_late {
            self.changed.notify_all();
        }
        is_late
    }

    /// The thread's patience is over.
    pub(super) fn hand_over(&self) {
        self.lock().rests_until = None;
        self.changed.notify_all();
    }

    /// The thread rests while callers receive, at most until `is_over`. Calls `first` where a caller
    /// receives just now. Says whether the thread had to rest.
    pub(super) fn rest(&self, is_over: impl Fn() -> bool, first: impl FnOnce()) -> bool {
        let mut turn = self.lock();
        if turn.caller_receives {
            first();
        }
        let mut has_rested = false;
        while !is_over() {
            let now = Instant::now();
            let Some(sleep) = turn.sleep(now, self.longest_rest) else {
                turn.rests_until = None;
                break;
            };
            has_rested = true;
            turn.looks_up_at = Some(now + sleep);
            let waited = self.changed.wait_timeout(turn, sleep);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
            turn.looks_up_at = None;
        }
        has_rested
    }

    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_rests_while_a_caller_receives_and_a_moment_longer() {
        let turns = Turns::default();
        assert!(!turns.rest(|| false, || ()), "nobody receives");
        turns.begin();
        turns.end();
        let began = Instant::now();
        assert!(turns.rest(|| false, || ()));
        assert!(began.elapsed() >= PATIENCE / 2);
        assert!(!turns.rest(|| false, || ()), "its patience is over");
    }

    /// Longer than a busy machine keeps a thread waiting.
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_caller_that_ends_wakes_a_thread_that_would_oversleep() {
        let turns = Turns::looking_up_after(LONG);
        turns.begin();
        let began = Instant::now();
        std::thread::scope(|scope| {
            let resting = scope.spawn(|| turns.rest(|| false, || ()));
            while turns.lock().looks_up_at.is_none() {
                std::thread::yield_now();
            }
            assert!(turns.end(), "it would sleep for {LONG:?}");
            assert!(resting.join().expect("it only rests"));
        });
        assert!(began.elapsed() < LONG / 2, "{:?}", began.elapsed());
        assert!(!turns.end(), "it does not sleep, and looks before it does");
    }

    #[test]
    fn a_caller_that_ends_lets_a_thread_sleep_that_looks_up_in_time() {
        let (turns, now) = (Turns::default(), Instant::now());
        turns.begin();
        assert!(!turns.end());
        turns.begin();
        // Callers come and go.
        assert_eq!(turns.lock().sleep(now, LONG), Some(PATIENCE));
        turns.lock().looks_up_at = Some(now + PATIENCE);
        assert!(!turns.end());
        turns.begin();
        assert_eq!(turns.lock().sleep(now, LONG), Some(PATIENCE));
        // The next one receives for long, and the thread need not look often.
        assert_eq!(turns.lock().sleep(now, LONG), Some(LONG));
    }

    #[test]
    fn the_thread_goes_on_after_the_last_of_many_callers() {
        let turns = Turns::looking_up_after(LONG);
        turns.begin();
        let began = Instant::now();
        std::thread::scope(|scope| {
            let resting = scope.spawn(|| turns.rest(|| false, || ()));
            // On a busy machine the thread may begin after all callers.
            while turns.lock().looks_up_at.is_none() {
                std::thread::yield_now();
            }
            for _ in 0..1000 {
                turns.begin();
                turns.end();
            }
            assert!(resting.join().expect("it only rests"));
        });
        assert!(began.elapsed() < LONG / 2, "{:?}", began.elapsed());
    }

    #[test]
    fn it_goes_on_at_once_where_it_is_told_to_and_at_the_end() {
        let turns = Turns::default();
        turns.begin();
        assert!(!turns.rest(|| true, || ()), "it is over");
        std::thread::scope(|scope| {
            let resting = scope.spawn(|| turns.rest(|| false, || ()));
            turns.end();
            turns.hand_over();
            resting.join().expect("it only rests");
        });
    }
}
