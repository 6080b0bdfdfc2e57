//! Sleeping to the microsecond, and how late timers were.
//!
//! `nanosleep` uses the kernel's fine timers; the last microseconds are spun away.

use crate::clock::machine_ns;
use serde::Serialize;
use std::time::Duration;

/// Timer slack: the kernel may wake a sleeper this late. Most wake-ups are earlier than that.
const SPIN_NS: u64 = 60_000;

/// Sleeps until shortly before `at`, at most this long, and spins the rest.
pub(super) fn sleep_until(at: u64, most_ns: u64) {
    let left = at.saturating_sub(machine_ns());
    if left > SPIN_NS {
        std::thread::sleep(Duration::from_nanos((left - SPIN_NS).min(most_ns)));
    }
    if left <= most_ns {
        while machine_ns() < at {
            std::hint::spin_loop();
        }
    }
}

/// How late timers were: counts by size, each class an eighth of a power of two wide.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    counts: Vec<u64>,
    total: u64,
}

/// Of half of the timers, and of all but a hundredth, the most that one was late.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Late {
    p50_us: f64,
    p99_us: f64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; 64 * 8], total: 0 }
    }
}

impl Lateness {
    pub(super) fn add(&mut self, ns: u64) {
        self.counts[class(ns)] += 1;
        self.total += 1;
    }

    /// Of `per_mille` of the timers, the most that one was late: the upper end of its class.
    pub(super) fn quantile_us(&self, per_mille: u64) -> f64 {
        let wanted = (self.total * per_mille).div_ceil(1000);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return upper_ns(at) as f64 / 1000.0;
            }
        }
        0.0
    }

    /// For those who watch.
    pub(super) fn shown(&self) -> Late {
        Late { p50_us: self.quantile_us(500), p99_us: self.quantile_us(990) }
    }

    pub(super) const fn total(&self) -> u64 {
        self.total
    }
}

fn class(ns: u64) -> usize {
    let Some(power) = ns.checked_ilog2().filter(|power| *power > 2) else {
        return usize::try_from(ns).expect("below eight");
    };
    let eighth = usize::try_from((ns >> (power - 3)) & 7).expect("below eight");
    (power as usize - 2) * 8 + eighth
}

fn upper_ns(class: usize) -> u64 {
    let (power, eighth) = (class / 8, (class % 8) as u64);
    if power == 0 { eighth } else { (((9 + eighth) as u128) << (power - 1)) as u64 - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_falls_into_it() {
        for ns in (0..5000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX >> 1]) {
            let class = class(ns);
            assert!(ns <= upper_ns(class), "{ns}: class {class} ends at {}", upper_ns(class));
            assert!(class == 0 || ns > upper_ns(class - 1), "{ns}: class {class}");
            assert!(upper_ns(class) - ns <= ns / 8, "{ns}: {}", upper_ns(class));
        }
    }

    #[test]
    fn quantiles_are_of_all_that_was_added() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile_us(500), 0.0);
        for ns in 1..=1000 {
            lateness.add(ns * 1000);
        }
        let within = |us: f64, wanted: f64| (wanted..wanted * 1.13).contains(&us);
        assert!(within(lateness.quantile_us(500), 500.0), "{}", lateness.quantile_us(500));
        assert!(within(lateness.quantile_us(990), 990.0), "{}", lateness.quantile_us(990));
    }

    #[test]
    fn a_sleep_ends_at_its_time_and_is_no_longer_than_it_may() {
        let at = machine_ns() + 2_000_000;
        sleep_until(at, 50_000_000);
        assert!(machine_ns() >= at);
        let begin = machine_ns();
        sleep_until(begin + 10_000_000_000, 1_000_000);
        assert!(machine_ns() < begin + 5_000_000_000);
    }
}
