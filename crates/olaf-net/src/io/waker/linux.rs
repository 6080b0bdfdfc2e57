//! `ppoll` on the socket and on an `eventfd`.

use super::Ready;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Wakes a thread that waits for its socket.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

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
