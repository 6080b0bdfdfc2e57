//! Which lines of a role's log are printed: their level, and a limit for lines of one kind.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

/// Lines of one kind that may come at once.
const BURST: f64 = 20.0;
/// Lines of one kind a second after that.
const PER_SECOND: f64 = 2.0;
/// Kinds that are told apart; kinds beyond share one limit. There are fewer by far.
const MOST_KINDS: usize = 256;

/// How much a line matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for whoever looks for a fault.
    Debug,
    /// What happens in the ordinary course.
    #[default]
    Info,
    /// Something that a person may have to see to.
    Warning,
    /// Something is lost, or does not work.
    Error,
}

impl Level {
    /// Every level, from the least.
    pub const EACH: [Self; 4] = [Self::Debug, Self::Info, Self::Warning, Self::Error];

    /// The level of an event, by the event's name.
    #[must_use]
    pub fn of(event: &str) -> Self {
        match event {
            "checkpoint_failed" | "loop" | "cores_differ" | "model_forged" | "signature_forged" => {
                Self::Error
            }
            "worker_silent"
            | "server_silent"
            | "switch_silent"
            | "worker_refused"
            | "job_forgotten"
            | "sum_worker_refused"
            | "join_refused"
            | "key_refused"
            | "key_of_a_job"
            | "turned_away"
            | "cluster_refused"
            | "admission_mismatch"
            | "admission_unanswered"
            | "admission_not_asked"
            | "contribution_rejected"
            | "contribution_clipped"
            | "round_without"
            | "model_missing"
            | "model_unsigned"
            | "models_unchecked"
            | "path_too_narrow"
            | "generation_closed"
            | "straggler"
            | "sum_straggler"
            | "non_finite"
            | "sum_worker_misplaced"
            | "send_failed"
            | "datagram_too_large"
            | "other_version"
            | "checkpoint_skipped"
            | "checkpoint_not_locked"
            | "suppressed" => Self::Warning,
            _ => Self::Info,
        }
    }

    /// The name in options and lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::EACH.map(Self::name).join(", ");
        let found = Self::EACH.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| format!("must be one of {names}"))
    }
}

/// Lets lines through from a level on, and not too many of one kind.
#[derive(Clone, Debug)]
pub struct LogFilter {
    least: Level,
    kinds: BTreeMap<String, Kind>,
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    /// Lines that may come now.
    room: f64,
    at: Instant,
    suppressed: u64,
}

impl LogFilter {
    /// A filter from `least` on.
    #[must_use]
    pub const fn new(least: Level) -> Self {
        Self { least, kinds: BTreeMap::new() }
    }

    /// Returns true if the line of an event is printed now; if so, how many of its kind were left out
    /// before it. A role's beginning and end are always printed.
    pub fn take(&mut self, event: &str, now: Instant) -> Option<u64> {
        if matches!(event, "listening" | "ready" | "stopped") {
            return Some(0);
        }
        // Reports come at the interval that was asked for.
        if matches!(event, "stats" | "update" | "turn") && self.least <= Level::Info {
            return Some(0);
        }
        if Level::of(event) < self.least {
            return None;
        }
        let known = self.kinds.contains_key(event) || self.kinds.len() < MOST_KINDS;
        let name = if known { event } else { "" };
        let new = Kind { room: BURST, at: now, suppressed: 0 };
        let kind = self.kinds.entry(name.to_owned()).or_insert(new);
        let passed = now.saturating_duration_since(kind.at).as_secs_f64();
        kind.room = (kind.room + passed * PER_SECOND).min(BURST);
        kind.at = now;
        if kind.room < 1.0 {
            kind.suppressed += 1;
            return None;
        }
        kind.room -= 1.0;
        Some(std::mem::take(&mut kind.suppressed))
    }

    /// Number of left-out lines, by kind, that no printed line has counted yet.
    pub fn end(&mut self) -> Vec<(String, u64)> {
        let left = self.kinds.iter_mut().filter(|(_, kind)| kind.suppressed > 0);
        left.map(|(name, kind)| (name.clone(), std::mem::take(&mut kind.suppressed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_flood_of_one_kind_is_cut_and_counted_and_hides_no_other() {
        let mut filter = LogFilter::new(Level::Info);
        let began = Instant::now();
        let printed = (0..1000).filter(|_| filter.take("worker_refused", began).is_some()).count();
        assert_eq!(printed, 20);
        assert_eq!(filter.take("server_silent", began), Some(0));
        let later = began + Duration::from_secs(1);
        assert_eq!(filter.take("worker_refused", later), Some(980), "the next line tells of them");
        assert_eq!(filter.take("worker_refused", later), Some(0));
        assert_eq!(filter.take("worker_refused", later), None);
        assert_eq!(filter.end(), [("worker_refused".to_owned(), 1)]);
        assert!(filter.end().is_empty(), "it was told");
        let rested = later + Duration::from_secs_f64(BURST / PER_SECOND);
        let again = (0..100).filter(|_| filter.take("worker_refused", rested).is_some()).count();
        assert_eq!(again, 20);
    }

    #[test]
    fn a_level_hides_what_matters_less() {
        let now = Instant::now();
        let mut errors = LogFilter::new(Level::Error);
        assert_eq!(errors.take("worker_joined", now), None);
        assert_eq!(errors.take("server_silent", now), None);
        assert_eq!(errors.take("stats", now), None);
        assert_eq!(errors.take("checkpoint_failed", now), Some(0));
        assert_eq!(errors.take("listening", now), Some(0), "a start is always told");
        let mut debug = LogFilter::new(Level::Debug);
        assert_eq!(debug.take("stats", now), Some(0));
    }

    #[test]
    fn names_without_end_take_no_memory_without_end() {
        let mut filter = LogFilter::new(Level::Debug);
        let now = Instant::now();
        for at in 0..10_000 {
            filter.take(&format!("event_{at}"), now);
        }
        assert!(filter.kinds.len() <= MOST_KINDS + 1);
    }

    #[test]
    fn a_level_is_read_by_its_name() {
        assert_eq!("warning".parse(), Ok(Level::Warning));
        assert!("loud".parse::<Level>().expect_err("none").contains("debug, info, warning"));
    }
}
