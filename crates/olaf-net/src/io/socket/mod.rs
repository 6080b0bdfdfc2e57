//! A UDP socket as large and as fast as the system allows.

use crate::error::StartError;
use crate::io::address::{canonical, mapped};
use crate::io::inbox::Inbox;
use crate::io::statistics::IoStatistics;
use crate::system;
use quinn_udp::{Transmit, UdpSocketState};
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Wanted of the kernel: what a few large models in one burst need.
const BUFFER_BYTES: usize = 16 << 20;
/// Below this a burst of a few updates already overflows.
const SMALL_BUFFER_BYTES: usize = 1 << 20;

/// The socket.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    v6: bool,
}

impl Socket {
    /// Binds to `address`. A wildcard IPv6 address takes IPv4 as well.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, StartError> {
        Self::open(address).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "{address} is in use by another program: stop that one (`{}` names it) or \
                     listen on another port",
                    system::WHO_LISTENS
                ),
                io::ErrorKind::AddrNotAvailable => format!(
                    "{address} is no address of this machine: listen on one that `{}` lists, \
                     or on 0.0.0.0 or [::]",
                    system::OWN_ADDRESSES
                ),
                io::ErrorKind::PermissionDenied => {
                    format!("{address} needs rights this user has not: take a port above 1023")
                }
                _ => format!("cannot open a UDP socket on {address}"),
            };
            StartError::System(what, error)
        })
    }

    fn open(address: SocketAddr) -> io::Result<Self> {
        let socket =
            socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            // Only a wildcard hears both; and what cannot be both says so when it binds.
            let _ = socket.set_only_v6(!address.ip().is_unspecified());
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        system::enlarge(&socket, BUFFER_BYTES);
        let socket: UdpSocket = socket.into();
        let state = UdpSocketState::new((&socket).into())?;
        let local = canonical(socket.local_addr()?);
        Ok(Self { socket, state, local, v6: address.is_ipv6() })
    }

    /// Takes datagrams of that peer only, and hears when nobody listens there.
    pub(crate) fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(mapped(peer, self.v6))?;
        self.local = canonical(self.socket.local_addr()?);
        Ok(())
    }

    /// The largest IP packet that the system would send to the connected peer, as far as it knows.
    pub(crate) fn path_mtu(&self) -> Option<u32> {
        system_mtu(&self.socket, self.v6)
    }

    /// The address it is bound to.
    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether it can send to that address.
    pub(crate) const fn reaches(&self, address: &SocketAddr) -> bool {
        self.v6 || address.is_ipv4()
    }

    /// Whether what is sent to that address would arrive here.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        let address = canonical(address);
        if self.local.port() != address.port() {
            return false;
        }
        // Bound to the wildcard it listens on each address that is this machine's own, which is
        // what a socket can be bound to.
        self.local.ip() == address.ip()
            || self.local.ip().is_unspecified()
                && (address.ip().is_unspecified() || UdpSocket::bind((address.ip(), 0)).is_ok())
    }

    /// Which of its addresses a datagram came to, where it has several.
    pub(crate) fn reply_from(&self, came_to: Option<IpAddr>) -> Option<IpAddr> {
        came_to.filter(|_| self.local.ip().is_unspecified())
    }

    /// Datagrams of one size that one call may send.
    pub(crate) fn segments_per_send(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Fills the inbox.
    pub(crate) fn receive(&self, inbox: &mut Inbox) -> io::Result<()> {
        inbox.fill(|buffers, metas| self.state.recv((&self.socket).into(), buffers, metas))
    }

    /// Sends `contents`, split into datagrams of `segment` bytes, of which the last may be shorter.
    pub(crate) fn send(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        contents: &[u8],
        segment: usize,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: mapped(to, self.v6),
            ecn: None,
            contents,
            segment_size: (segment < contents.len()).then_some(segment),
            src_ip: from,
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    /// Fills in what the system knows about the socket.
    pub(crate) fn describe(&self, statistics: &mut IoStatistics) {
        let size =
            |reported: rustix::io::Result<usize>| system::buffer_bytes(reported.unwrap_or(0));
        statistics.receive_buffer_bytes = size(sockopt::socket_recv_buffer_size(&self.socket));
        statistics.send_buffer_bytes = size(sockopt::socket_send_buffer_size(&self.socket));
        statistics.segments_per_send = self.segments_per_send();
        if let Some(drops) = system::kernel_drops(&self.socket) {
            statistics.kernel_drops = drops;
        }
        statistics.warnings.clear();
        if statistics.receive_buffer_bytes < SMALL_BUFFER_BYTES {
            statistics.warnings.push(format!(
                "the receive buffer holds only {} bytes and bursts will overflow it: raise it with \
                 `{}`",
                statistics.receive_buffer_bytes,
                system::raise_buffers(BUFFER_BYTES)
            ));
        }
        if statistics.kernel_drops > 0 {
            statistics.warnings.push(format!(
                "the kernel dropped {} datagrams because this process was too slow to take them",
                statistics.kernel_drops
            ));
        }
    }
}

#[cfg(target_os = "linux")]
fn system_mtu(socket: &UdpSocket, v6: bool) -> Option<u32> {
    // IPv6's own question is in no safe library of ours: there the probes find it out.
    if v6 { None } else { sockopt::ip_mtu(socket).ok() }
}

/// Elsewhere there is no such question: the probes find it out.
#[cfg(not(target_os = "linux"))]
fn system_mtu(_socket: &UdpSocket, _v6: bool) -> Option<u32> {
    None
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_says_what_to_do() {
        let first = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let error = Socket::bind(first.local()).expect_err("the port is taken");
        let text = error.to_string();
        assert!(
            text.contains(&first.local().to_string()) && text.contains("another port"),
            "{text}"
        );
    }

    #[test]
    fn a_wildcard_is_at_every_address_of_this_machine_and_no_other() {
        let socket = Socket::bind("0.0.0.0:0".parse().expect("an address")).expect("a free port");
        let port = socket.local().port();
        let at = |ip: &str, port| socket.is_at((ip.parse::<IpAddr>().expect("an IP"), port).into());
        assert!(at("127.0.0.1", port) && at("0.0.0.0", port));
        assert!(!at("127.0.0.1", port ^ 1));
        assert!(!at("192.0.2.1", port), "of the addresses for documentation");
        let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        assert!(socket.is_at(socket.local()));
    }
}
