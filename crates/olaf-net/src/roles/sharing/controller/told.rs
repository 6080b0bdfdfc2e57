//! What the controller's thread tells its caller: every event, in order, as a JSON line.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Told {
    lines: Mutex<Lines>,
    urgent: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    lines: Vec<String>,
    urgent: bool,
}

impl Told {
    /// Adds a line; an urgent line ends the caller's wait.
    pub(super) fn add(&self, line: String, urgent: bool) {
        let mut lines = self.lock();
        lines.lines.push(line);
        lines.urgent |= urgent;
        if urgent {
            self.urgent.notify_all();
        }
    }

    /// Waits until `time` has passed or an urgent line is there.
    pub(super) fn wait(&self, time: Duration) {
        let begin = Instant::now();
        let mut lines = self.lock();
        while !lines.urgent {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return;
            }
            let waited = self.urgent.wait_timeout(lines, left);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The lines since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock()).lines
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_urgent_line_ends_a_wait_and_every_line_comes_once() {
        let told = Told::default();
        told.add("one".into(), false);
        told.wait(Duration::from_millis(1));
        told.add("two".into(), true);
        told.wait(Duration::MAX);
        assert_eq!(told.take(), ["one", "two"]);
        told.wait(Duration::from_millis(1));
        assert!(told.take().is_empty());
    }
}
