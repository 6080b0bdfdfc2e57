//! The sharing protocol over UDP (MINA §IV-B): the controller as a process, and one host of a job.
//!
//! Sockets, clocks and threads around `olaf_sched::protocol`, which decides everything. A
//! [`SharingHost`] has MINA's two threads: one that answers the controller and the other hosts, one
//! that launches the job's all-reduces in their recorded times. What an all-reduce is here stands in
//! `rehearsal`.

mod config;
mod controller;
mod host;
mod log;
mod rehearsal;
mod waiting;

pub use config::{SharingConfig, SharingHostConfig};
pub use controller::SharingController;
pub use host::SharingHost;

use rustix::time::{ClockId, clock_gettime};
use std::net::UdpSocket;

/// Taken in at once. What else has come waits until timers were looked at, and is lost if the
/// socket has no room for it: the protocol sends again.
const MOST_DATAGRAMS: usize = 64;

/// Nanoseconds of the clock that all processes of a machine share and that never jumps.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Sends what a state machine said. A datagram that the system refuses is as good as lost.
fn send(socket: &UdpSocket, bytes: &[u8], to: std::net::SocketAddr) {
    let _ = socket.send_to(bytes, to);
}
