//! Who receives: the driver's thread, or a caller that waits.
//!
//! The thread rests while a caller receives, and for [`PATIENCE`] afterwards: a program that reduces
//! in a loop comes back sooner, and no datagram wakes two threads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The thread rests for this time after a caller has received.
const PATIENCE: Duration = Duration::from_millis(2);
/// A resting thread looks up after this time, whatever it was told.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// The turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Turn {
    caller_receives: bool,
    /// The thread rests until then.
    rests_until: Option<Instant>,
}

impl Turns {
    /// A caller begins to receive.
    pub(super) fn begin(&self) {
        self.lock().caller_receives = true;
    }

    /// The caller has ended.
    pub(super) fn end(&self) {
        let mut turn = self.lock();
        turn.caller_receives = false;
        turn.rests_until = Some(Instant::now() + PATIENCE);
        // The thread rests that long from now on, not as long as while a caller receives.
        self.changed.notify_all();
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
            let rest = match turn.rests_until {
                _ if turn.caller_receives => LONGEST_REST,
                Some(until) => until.saturating_duration_since(Instant::now()),
                None => Duration::ZERO,
            };
            if rest.is_zero() {
                turn.rests_until = None;
                break;
            }
            has_rested = true;
            let waited = self.changed.wait_timeout(turn, rest);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
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
