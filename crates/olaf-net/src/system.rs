//! What systems do each in their own way: buffers of sockets, counts of the kernel, and the
//! commands that an error tells people to run.

use rustix::net::sockopt;
use std::net::UdpSocket;

/// Names the program that listens on a port.
pub(crate) const WHO_LISTENS: &str =
    if cfg!(target_os = "linux") { "ss -lunp" } else { "lsof -nP -iUDP" };
/// Names the program that listens on a TCP port.
pub(crate) const WHO_LISTENS_TCP: &str =
    if cfg!(target_os = "linux") { "ss -ltnp" } else { "lsof -nP -iTCP -sTCP:LISTEN" };
/// Lists the addresses of this machine.
pub(crate) const OWN_ADDRESSES: &str =
    if cfg!(target_os = "linux") { "ip address" } else { "ifconfig" };

/// The command that lets sockets have buffers of `bytes` bytes.
pub(crate) fn raise_buffers(bytes: usize) -> String {
    let key = if cfg!(target_os = "linux") { "net.core.rmem_max" } else { "kern.ipc.maxsockbuf" };
    format!("sysctl -w {key}={bytes}")
}

/// Asks for buffers of `bytes` bytes; the system may give smaller ones.
#[cfg(target_os = "linux")]
pub(crate) fn enlarge(socket: &socket2::Socket, bytes: usize) {
    // A privileged user may exceed the limit. For other users the kernel reduces the size itself.
    let _ = sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes));
    let _ = sockopt::set_socket_send_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, bytes));
}

/// Asks for buffers of `bytes` bytes; the system may give smaller ones.
#[cfg(not(target_os = "linux"))]
pub(crate) fn enlarge(socket: &socket2::Socket, bytes: usize) {
    halving(bytes, |size| sockopt::set_socket_recv_buffer_size(socket, size).is_ok());
    halving(bytes, |size| sockopt::set_socket_send_buffer_size(socket, size).is_ok());
}

/// Other systems refuse a size above their limit: asks for half of it until they agree.
#[cfg(any(not(target_os = "linux"), test))]
fn halving(bytes: usize, mut agrees: impl FnMut(usize) -> bool) {
    let mut size = bytes;
    while size > 1024 && !agrees(size) {
        size /= 2;
    }
}

/// Bytes of a buffer whose size the system reports. Linux reports twice what was asked for: the
/// other half is its own bookkeeping.
pub(crate) const fn buffer_bytes(reported: usize) -> usize {
    if cfg!(target_os = "linux") { reported / 2 } else { reported }
}

/// Takes back quinn-udp's wish for the time at which each datagram arrived.
///
/// Nobody here reads these times, and the control messages of a coalesced receive then take 120
/// bytes. quinn-udp 0.6.3 has room for 96: the kernel would cut off the last message, the one with
/// the traffic class.
#[cfg(target_os = "linux")]
pub(crate) fn without_arrival_times(socket: &UdpSocket) -> std::io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
    Ok(setsockopt(socket, ReceiveTimestampns, &false)?)
}

/// Only Linux is asked for arrival times.
#[cfg(not(target_os = "linux"))]
pub(crate) fn without_arrival_times(_: &UdpSocket) -> std::io::Result<()> {
    Ok(())
}

/// The kernel's count of datagrams that overflowed the receive buffer. One system call, so that a
/// report costs the thread that moves data nothing to speak of. Kernels before 4.12 do not have
/// the option: there the table of all sockets says it.
#[cfg(target_os = "linux")]
pub(crate) fn kernel_drops(socket: &UdpSocket) -> Option<u64> {
    memory::drops(socket).or_else(|| drops_in_table(socket))
}

/// The same, from the last column of the socket's line, which its inode names. The kernel writes a
/// line for each UDP socket of the machine: 6 ms for 2,000 of them.
#[cfg(target_os = "linux")]
fn drops_in_table(socket: &UdpSocket) -> Option<u64> {
    let inode = rustix::fs::fstat(socket).ok()?.st_ino.to_string();
    ["/proc/net/udp", "/proc/net/udp6"].into_iter().find_map(|table| {
        let table = std::fs::read_to_string(table).ok()?;
        let line = table.lines().find(|line| line.split_whitespace().nth(9) == Some(&inode))?;
        line.split_whitespace().last()?.parse().ok()
    })
}

/// The option `SO_MEMINFO`, which neither `rustix` nor `nix` has by name.
#[cfg(target_os = "linux")]
mod memory {
    use nix::libc::{self, SK_MEMINFO_DROPS, SO_MEMINFO, SOL_SOCKET};
    use nix::sys::socket::GetSockOpt;
    use nix::{getsockopt_impl, sockopt_impl};
    use std::net::UdpSocket;

    /// Numbers in the kernel's answer; the drops are the last one.
    const NUMBERS: usize = SK_MEMINFO_DROPS as usize + 1;

    sockopt_impl!(MemoryInfo, GetOnly, SOL_SOCKET, SO_MEMINFO, [u32; NUMBERS]);

    pub(super) fn drops(socket: &UdpSocket) -> Option<u64> {
        let numbers = MemoryInfo.get(socket).ok()?;
        numbers.last().copied().map(u64::from)
    }
}

/// Nobody counts it here for a single socket.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kernel_drops(_: &UdpSocket) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_refuses_large_buffers_gets_the_largest_it_takes() {
        let mut asked = Vec::new();
        halving(16 << 20, |size| {
            asked.push(size);
            size <= 5 << 20
        });
        assert_eq!(asked, [16 << 20, 8 << 20, 4 << 20]);
        let mut tries = 0;
        halving(16 << 20, |_| {
            tries += 1;
            false
        });
        assert_eq!(tries, 14, "one that takes nothing is not asked for ever");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernels_drops_are_found_both_ways() {
        let here = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        assert_eq!((kernel_drops(&here), drops_in_table(&here)), (Some(0), Some(0)));
        sockopt::set_socket_recv_buffer_size(&here, 4096).expect("a small buffer");
        let there = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let to = here.local_addr().expect("bound");
        for _ in 0..100 {
            there.send_to(&[0; 1024], to).expect("loopback");
        }
        let drops = kernel_drops(&here).expect("Linux counts them");
        assert!(drops > 50 && drops < 100, "{drops} of 100");
        assert_eq!(drops_in_table(&here), Some(drops));
        assert_eq!(memory::drops(&here), Some(drops), "the table is for old kernels");
    }
}
