//! Waiting for a socket, a call from another thread, or a time.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Wakes a thread that waits for its socket.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

/// What a wait ended with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// Ends the wait under way, or else the next one.
    pub(crate) fn wake(&self) {
        // The only failure is a full counter, and then the thread is about to wake anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Waits until `socket` is readable, or writable where that is asked for, somebody called
    /// [`Waker::wake`], or `timeout` has passed.
    pub(crate) fn wait(
        &self,
        socket: impl AsFd,
        for_writable: bool,
        timeout: Option<Duration>,
    ) -> io::Result<Ready> {
        let interest = if for_writable { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = [PollFd::new(&socket, interest), PollFd::new(&self.0, PollFlags::IN)];
        let timeout = timeout.map(|d| Timespec {
            tv_sec: i64::try_from(d.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(d.subsec_nanos()),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let (socket, waker) = (fds[0].revents(), fds[1].revents());
        if waker.contains(PollFlags::IN) {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.0, &mut count);
        }
        Ok(Ready {
            // An error shows at the next receive.
            readable: socket.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP),
            writable: socket.contains(PollFlags::OUT),
        })
    }
}

/// Makes waits of the calling thread end when they should, not up to 50 us later.
pub(crate) fn end_waits_on_time() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Keeps the calling thread on one core.
pub(crate) fn pin(core: usize) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}
