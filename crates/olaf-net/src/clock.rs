//! The clock of this process: Unix time that never runs backwards.

use olaf_engine::Instant;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

static ORIGIN: OnceLock<(std::time::Instant, u64)> = OnceLock::new();

/// Nanoseconds of Unix time as it was when the process first asked, plus what has passed since:
/// a step of the system's clock shifts nothing while the process lives.
pub(crate) fn now() -> Instant {
    let (origin, unix_ns) = ORIGIN.get_or_init(|| {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (std::time::Instant::now(), u64::try_from(unix.as_nanos()).unwrap_or(0))
    });
    Instant(unix_ns.saturating_add(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)))
}

/// The time limit of a wait that begins now: far away where the clock cannot hold it.
pub(crate) fn deadline(timeout: Duration) -> std::time::Instant {
    let now = std::time::Instant::now();
    now.checked_add(timeout).unwrap_or_else(|| now + Duration::from_secs(86_400 * 365))
}

/// Nanoseconds of the clock that all processes of a machine share and that never jumps: the times
/// in logs that are compared with those of other processes.
pub(crate) fn machine_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Seconds of processor time that the calling thread has used.
pub(crate) fn thread_cpu_s() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    #[test]
    fn time_is_of_this_century_and_goes_on() {
        let (a, b) = (super::now(), super::now());
        assert!(a.0 > 1_600_000_000_000_000_000 && b >= a);
    }
}
