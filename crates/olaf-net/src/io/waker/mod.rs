//! Waiting for a socket, a call from another thread, or a time.
//!
//! On Linux `ppoll` and an `eventfd`, which end a wait to the nanosecond for one system call;
//! elsewhere the system's own poller (`portable`), through `mio`. The feature `portable` takes
//! that one on Linux too, so that its tests run where the tests run.

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod linux;
#[cfg(any(not(target_os = "linux"), feature = "portable", test))]
#[cfg_attr(all(target_os = "linux", not(feature = "portable")), allow(dead_code))]
mod portable;
#[cfg(test)]
mod tests;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use linux::Waker;
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
pub(crate) use portable::Waker;

use std::io;

/// What a wait ended with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// Makes waits of the calling thread end when they should, not up to 50 us later. Only Linux
/// delays them so.
pub(crate) fn end_waits_on_time() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Keeps the calling thread on one core.
#[cfg(target_os = "linux")]
pub(crate) fn pin(core: usize) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Keeps the calling thread on one core; this system does not offer it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_: usize) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only Linux pins a thread to a core: leave `core` off",
    ))
}
