//! Calls that carry the whole traffic class, on Linux.
//!
//! quinn-udp sets the class on each send to the two bits of ECN, so a socket option cannot add the
//! other six. These calls are `sendmsg` and `recvmmsg` with control messages of our own. The
//! options of the socket (offloads, path MTU, addresses of this machine) are those of quinn-udp.

use super::calls::{BUFFERS, Batch, Calls, Received};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage,
    recvmmsg, sendmsg,
};
use olaf_engine::TrafficClass;
use quinn_udp::UdpSocketState;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Control messages of a send: the class, the segment size, the address it leaves from.
const MESSAGES: usize = 3;

#[derive(Debug)]
pub(super) struct WholeClass {
    segments: AtomicUsize,
}

impl WholeClass {
    pub(super) fn new(socket: &UdpSocket) -> io::Result<Self> {
        // It sets the options and says how many segments the system takes.
        let options = UdpSocketState::new(socket.into())?;
        Ok(Self { segments: AtomicUsize::new(options.max_gso_segments()) })
    }
}

impl Calls for WholeClass {
    fn segments_per_send(&self) -> usize {
        self.segments.load(Ordering::Relaxed)
    }

    fn send(&self, socket: &UdpSocket, batch: &Batch<'_>) -> io::Result<()> {
        let v4_class = batch.class.0;
        let v6_class = i32::from(v4_class);
        let class = if goes_as_v4(batch.to.ip()) {
            // Also on an IPv6 socket: what leaves as IPv4 takes its class from this message alone.
            ControlMessage::Ipv4Tos(&v4_class)
        } else {
            ControlMessage::Ipv6TClass(&v6_class)
        };
        let mut messages = [class; MESSAGES];
        let mut count = 1;
        let split_at = batch.split_at().map(|bytes| u16::try_from(bytes).unwrap_or(u16::MAX));
        if let Some(bytes) = &split_at {
            messages[count] = ControlMessage::UdpGsoSegments(bytes);
            count += 1;
        }
        let (v4_from, v6_from);
        match batch.from {
            Some(IpAddr::V4(ip)) => {
                v4_from = v4_info(ip);
                messages[count] = ControlMessage::Ipv4PacketInfo(&v4_from);
                count += 1;
            }
            Some(IpAddr::V6(ip)) => {
                v6_from = v6_info(ip);
                messages[count] = ControlMessage::Ipv6PacketInfo(&v6_from);
                count += 1;
            }
            None => {}
        }
        let to = SockaddrStorage::from(batch.to);
        let contents = [IoSlice::new(batch.contents)];
        let sent = uninterrupted(|| {
            let (flags, messages) = (MsgFlags::empty(), &messages[..count]);
            sendmsg(socket.as_raw_fd(), &contents, messages, flags, Some(&to))
        });
        if split_at.is_some() && matches!(sent, Err(Errno::EIO | Errno::EINVAL)) {
            // The device cannot split. The caller sends these datagrams one by one.
            self.segments.store(1, Ordering::Relaxed);
        }
        sent?;
        Ok(())
    }

    fn receive(
        &self,
        socket: &UdpSocket,
        buffers: [&mut [u8]; BUFFERS],
        received: &mut [Received; BUFFERS],
    ) -> io::Result<usize> {
        // Made anew for each call: a call shortens the room for control messages to what came.
        let room = cmsg_space!(in6_pktinfo, in_pktinfo, i32, i32, i32);
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BUFFERS, Some(room));
        let mut slices = buffers.map(|buffer| [IoSliceMut::new(buffer)]);
        let fd = socket.as_raw_fd();
        let messages = recvmmsg(fd, &mut headers, slices.iter_mut(), MsgFlags::empty(), None)
            .map_err(
                // To the caller an interrupted call is an empty one: it waits, and asks again.
                |error| if error == Errno::EINTR { Errno::EAGAIN } else { error },
            )?;
        let mut filled = 0;
        for (received, message) in received.iter_mut().zip(messages) {
            *received = understood(&message);
            filled += 1;
        }
        Ok(filled)
    }
}

/// What the control messages of a receive say.
fn understood<'a>(message: &RecvMsg<'a, 'a, SockaddrStorage>) -> Received {
    let mut received = Received {
        len: message.bytes,
        stride: message.bytes,
        is_truncated: message.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC),
        ..Received::default()
    };
    match message.address.as_ref().and_then(address) {
        Some(from) => received.from = from,
        None => received.is_truncated = true,
    }
    for control in message.cmsgs().into_iter().flatten() {
        match control {
            ControlMessageOwned::Ipv4Tos(class) => received.class = TrafficClass(class),
            // The kernel puts the byte into an int.
            ControlMessageOwned::Ipv6TClass(class) => received.class = TrafficClass(class as u8),
            ControlMessageOwned::UdpGroSegments(bytes) => {
                received.stride = usize::try_from(bytes).unwrap_or(received.len);
            }
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let ip = Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes());
                received.came_to = Some(ip.into());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                received.came_to = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            _ => {}
        }
    }
    received
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::from(*v4));
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::from(*v6)))
}

/// Returns true if a datagram to that address has an IPv4 header.
fn goes_as_v4(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => true,
        IpAddr::V6(ip) => ip.to_ipv4_mapped().is_some(),
    }
}

fn v4_info(ip: Ipv4Addr) -> in_pktinfo {
    in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
        ipi_addr: in_addr { s_addr: 0 },
    }
}

fn v6_info(ip: Ipv6Addr) -> in6_pktinfo {
    in6_pktinfo { ipi6_addr: in6_addr { s6_addr: ip.octets() }, ipi6_ifindex: 0 }
}

fn uninterrupted<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}
