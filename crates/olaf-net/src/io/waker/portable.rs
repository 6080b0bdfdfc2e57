//! The system's poller through `mio`: kqueue on macOS and the BSDs, epoll on Linux.

use super::Ready;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);

/// Wakes a thread that waits for its socket.
#[derive(Debug)]
pub(crate) struct Waker {
    waker: mio::Waker,
    /// One thread waits; the lock only says so to the compiler.
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    poll: Poll,
    events: Events,
    registered: Option<RawFd>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), WAKER)?;
        let waiting = Waiting { poll, events: Events::with_capacity(4), registered: None };
        Ok(Self { waker, waiting: Mutex::new(waiting) })
    }

    /// Ends the wait under way, or else the next one.
    pub(crate) fn wake(&self) {
        // The only failure is that of a system without resources, and then waits end in errors.
        let _ = self.waker.wake();
    }

    /// Waits until `socket` is readable, or writable where that is asked for, somebody called
    /// [`Waker::wake`], or `timeout` has passed.
    pub(crate) fn wait(
        &self,
        socket: impl AsFd,
        for_writable: bool,
        timeout: Option<Duration>,
    ) -> io::Result<Ready> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { poll, events, registered } = &mut *waiting;
        let fd = socket.as_fd().as_raw_fd();
        let interest =
            if for_writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        // Anew for each wait: this poller tells of a change once, and what is still in the socket
        // since the wait before counts here as well.
        let registry = poll.registry();
        let again = *registered == Some(fd)
            && registry.reregister(&mut SourceFd(&fd), SOCKET, interest).is_ok();
        if !again {
            // Another socket, or one closed and opened anew under the same number: the system has
            // forgotten what was closed.
            if let Some(before) = registered.take() {
                let _ = registry.deregister(&mut SourceFd(&before));
            }
            registry.register(&mut SourceFd(&fd), SOCKET, interest)?;
            *registered = Some(fd);
        }
        match poll.poll(events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Ok(Ready::default());
            }
            Err(error) => return Err(error),
        }
        let mut ready = Ready::default();
        for event in events.iter().filter(|event| event.token() == SOCKET) {
            // An error shows at the next receive.
            ready.readable |= event.is_readable() || event.is_error() || event.is_read_closed();
            ready.writable |= event.is_writable();
        }
        Ok(ready)
    }
}
