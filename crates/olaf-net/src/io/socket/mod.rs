//! A UDP socket as large and as fast as the system allows.
//!
//! There are two kinds, which differ in their [`Calls`]:
//!
//! | kind | carries of the traffic class | systems |
//! |---|---|---|
//! | [`Socket::bind`] | the two bits of ECN | all |
//! | [`Socket::bind_whole_class`] | the whole byte | Linux |
//!
//! `docs/design/025-traffic-classes.md` says why the second one is there. The feature `portable`
//! leaves it out on Linux too, so that its error is tested where the tests run.

mod calls;
mod ecn;
#[cfg(test)]
mod tests;
#[cfg_attr(any(not(target_os = "linux"), feature = "portable"), path = "whole_portable.rs")]
mod whole;

pub use calls::Batch;
pub(crate) use calls::{BUFFERS, Received};

use self::calls::Calls;
use self::ecn::EcnOnly;
use self::whole::WholeClass;
use crate::error::StartError;
use crate::io::address::{canonical, mapped, resolve};
use crate::io::inbox::Inbox;
use crate::io::loss::ReceiveLoss;
use crate::io::statistics::IoStatistics;
use crate::system;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Wanted of the kernel: what a few large models in one burst need.
const BUFFER_BYTES: usize = 16 << 20;
/// Below this a burst of a few updates already overflows.
const SMALL_BUFFER_BYTES: usize = 1 << 20;

/// A bound UDP socket that never blocks.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    calls: Box<dyn Calls>,
    local: SocketAddr,
    v6: bool,
    loss: Option<ReceiveLoss>,
}

impl Socket {
    /// Binds to `address`. A wildcard IPv6 address takes IPv4 as well. Of a traffic class the
    /// socket carries the two bits of ECN.
    ///
    /// # Errors
    /// [`StartError::System`] says what to do.
    pub fn bind(address: SocketAddr) -> Result<Self, StartError> {
        Self::bind_with(address, |socket| Ok(Box::new(EcnOnly::new(socket)?)))
    }

    /// As [`Self::bind`], for a protocol that says something by the six bits of class: the socket
    /// carries the whole byte.
    ///
    /// # Errors
    /// [`StartError::System`] says what to do; systems other than Linux have no such socket.
    pub fn bind_whole_class(address: SocketAddr) -> Result<Self, StartError> {
        Self::bind_with(address, |socket| Ok(Box::new(WholeClass::new(socket)?)))
    }

    fn bind_with(
        address: SocketAddr,
        calls: impl FnOnce(&UdpSocket) -> io::Result<Box<dyn Calls>>,
    ) -> Result<Self, StartError> {
        Self::open(address, calls).map_err(|error| {
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
                    format!("this user may not listen on {address}: use a port above 1023")
                }
                _ => format!("cannot open a UDP socket on {address}"),
            };
            StartError::System(what, error)
        })
    }

    fn open(
        address: SocketAddr,
        calls: impl FnOnce(&UdpSocket) -> io::Result<Box<dyn Calls>>,
    ) -> io::Result<Self> {
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
        let calls = calls(&socket)?;
        system::without_arrival_times(&socket)?;
        let local = canonical(socket.local_addr()?);
        Ok(Self { socket, calls, local, v6: address.is_ipv6(), loss: None })
    }

    /// The same socket, which on purpose loses some of the datagrams that it receives.
    ///
    /// # Errors
    /// [`StartError::Config`] where the share is not from 0 to 1.
    pub fn losing(self, loss: Option<ReceiveLoss>) -> Result<Self, StartError> {
        let loss = loss.map(ReceiveLoss::check).transpose()?;
        Ok(Self { loss, ..self })
    }

    /// A socket on a free port that is connected to a switch, which `host:port` names. Returns the
    /// switch's address, too. `bind` is [`Self::bind`] or [`Self::bind_whole_class`].
    ///
    /// # Errors
    /// [`StartError`] says what to do.
    pub(crate) fn towards(
        switch: &str,
        bind: impl FnOnce(SocketAddr) -> Result<Self, StartError>,
    ) -> Result<(Self, SocketAddr), StartError> {
        let switch = address_of(switch)?;
        let socket = Self::connected(switch.is_ipv6(), switch, bind)?;
        Ok((socket, switch))
    }

    /// The same for two switches, one after the other: the socket is connected to the first, and can be
    /// [connected anew](Self::turn_to) to the second. Returns both addresses, and the largest IP packet that the system
    /// would send to the second, as far as it knows.
    ///
    /// # Errors
    /// [`StartError`] says what to do.
    pub(crate) fn towards_both(
        first: &str,
        second: &str,
        bind: impl FnOnce(SocketAddr) -> Result<Self, StartError>,
    ) -> Result<(Self, [SocketAddr; 2], Option<u32>), StartError> {
        let (first, second) = (address_of(first)?, address_of(second)?);
        let mut socket = Self::connected(first.is_ipv6() || second.is_ipv6(), second, bind)?;
        let mtu = socket.path_mtu();
        socket.turn_to(first).map_err(|error| no_route(first, error))?;
        socket.local = socket.socket.local_addr().map(canonical).map_err(|e| no_route(first, e))?;
        Ok((socket, [first, second], mtu))
    }

    fn connected(
        is_ipv6: bool,
        peer: SocketAddr,
        bind: impl FnOnce(SocketAddr) -> Result<Self, StartError>,
    ) -> Result<Self, StartError> {
        let any: IpAddr =
            if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let mut socket = bind((any, 0).into())?;
        socket.connect(peer).map_err(|error| no_route(peer, error))?;
        Ok(socket)
    }

    /// Takes datagrams of that peer only, and learns if no program listens there.
    pub(crate) fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(mapped(peer, self.v6))?;
        self.local = canonical(self.socket.local_addr()?);
        Ok(())
    }

    /// The same for a socket that is connected already. Datagrams of the peer before may still come: they wait in the
    /// socket.
    pub(crate) fn turn_to(&self, peer: SocketAddr) -> io::Result<()> {
        // Else it would keep the address of this machine from which it has reached the peer before. Some systems say
        // that they do not know this family, and do it.
        let _ = rustix::net::connect_unspec(&self.socket);
        self.socket.connect(mapped(peer, self.v6))
    }

    /// The largest IP packet that the system would send to the connected peer, as far as it knows.
    pub(crate) fn path_mtu(&self) -> Option<u32> {
        system_mtu(&self.socket, self.v6)
    }

    /// The address it is bound to.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns true if it can send to that address.
    pub(crate) const fn reaches(&self, address: &SocketAddr) -> bool {
        self.v6 || address.is_ipv4()
    }

    /// Returns true if what is sent to that address would arrive here.
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
    #[must_use]
    pub fn reply_from(&self, came_to: Option<IpAddr>) -> Option<IpAddr> {
        came_to.filter(|_| self.local.ip().is_unspecified())
    }

    /// Datagrams of one size that one call may send.
    #[must_use]
    pub fn segments_per_send(&self) -> usize {
        self.calls.segments_per_send()
    }

    /// Fills the inbox with what has come.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` when nothing has come.
    pub fn receive(&self, inbox: &mut Inbox) -> io::Result<()> {
        inbox.fill(self.loss, |buffers, received| {
            self.calls.receive(&self.socket, buffers, received)
        })
    }

    /// Sends the batch.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` when the socket is full.
    pub fn send(&self, batch: &Batch<'_>) -> io::Result<()> {
        let batch = Batch { to: mapped(batch.to, self.v6), ..*batch };
        self.calls.send(&self.socket, &batch)
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

fn address_of(switch: &str) -> Result<SocketAddr, StartError> {
    let switch = resolve(switch, |_| true).map(canonical).map_err(StartError::Config)?;
    if switch.port() == 0 {
        return Err(StartError::Config(format!(
            "address {switch}: no program listens on port 0; give the switch's port"
        )));
    }
    Ok(switch)
}

fn no_route(peer: SocketAddr, error: io::Error) -> StartError {
    StartError::System(format!("no route to {peer}"), error)
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
