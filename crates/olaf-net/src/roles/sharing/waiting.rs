//! Waiting to the microsecond, and how late it was.
//!
//! A socket's read timeout is counted in ticks of the kernel's scheduler, 4 ms at 250 Hz: a grant
//! that is due in between comes after its operation has started. `ppoll` and `nanosleep` use the
//! kernel's fine timers; the last microseconds are spun away.

use super::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::UdpSocket;
use std::time::Duration;

/// Timer slack: the kernel may wake a sleeper this late. Most wake-ups are earlier than that.
const SPIN_NS: u64 = 60_000;

/// Returns when there is something to read, or at `at`, a time of [`monotonic_ns`].
pub(super) fn readable(socket: &UdpSocket, at: u64) -> std::io::Result<bool> {
    loop {
        let now = monotonic_ns();
        // Spinning here would take a core from the hosts of a small machine for a gain of nothing:
        // what is sent at `at` is ahead of its time by more than a wake is late.
        let timeout = timespec(at.saturating_sub(now));
        let mut polled = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) if monotonic_ns() < at => {}
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sleeps until shortly before `at`, at most this long, and spins the rest.
pub(super) fn sleep_until(at: u64, most_ns: u64) {
    let left = at.saturating_sub(monotonic_ns());
    if left > SPIN_NS {
        std::thread::sleep(Duration::from_nanos((left - SPIN_NS).min(most_ns)));
    }
    if left <= most_ns {
        while monotonic_ns() < at {
            std::hint::spin_loop();
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    let [seconds, rest] = [ns / 1_000_000_000, ns % 1_000_000_000];
    Timespec { tv_sec: seconds.min(1 << 30).cast_signed(), tv_nsec: rest.cast_signed() as _ }
}

/// How late timers were: counts by size, each class an eighth of a power of two wide.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    counts: Vec<u64>,
    total: u64,
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
    fn a_wait_ends_at_its_time_or_when_something_comes() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let at = monotonic_ns() + 3_000_000;
        assert!(!readable(&socket, at).expect("a socket"));
        assert!(monotonic_ns() >= at);
        let here = socket.local_addr().expect("it is bound");
        socket.send_to(b"x", here).expect("to itself");
        assert!(readable(&socket, monotonic_ns() + 10_000_000_000).expect("a socket"));
        let at = monotonic_ns() + 2_000_000;
        sleep_until(at, 50_000_000);
        assert!(monotonic_ns() >= at);
        sleep_until(monotonic_ns() + 10_000_000_000, 1_000_000); // no longer than it may
    }
}
