//! What a kind of socket does in its own way: the calls that send and receive.

use olaf_engine::TrafficClass;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

/// Buffers that one call fills. More buffers would not stay in the cache; fewer would make calls
/// cost more per datagram.
pub(crate) const BUFFERS: usize = 8;

/// Datagrams of one size and one traffic class for one receiver. They leave in one call.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The receiver's address.
    pub to: SocketAddr,
    /// The address of this machine that the datagrams leave from; none: the system chooses.
    pub from: Option<IpAddr>,
    /// The traffic class of each datagram.
    pub class: TrafficClass,
    /// The bytes of all datagrams, one behind the other.
    pub contents: &'a [u8],
    /// The bytes of each datagram; the last one may be shorter.
    pub segment: usize,
}

impl Batch<'_> {
    /// The size at which the system must split the contents, where there are several datagrams.
    pub(super) fn split_at(&self) -> Option<usize> {
        (self.segment < self.contents.len()).then_some(self.segment)
    }
}

/// What the system says about the bytes in one buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    /// The address of this machine that the datagrams came to.
    pub(crate) came_to: Option<IpAddr>,
    pub(crate) class: TrafficClass,
    pub(crate) len: usize,
    /// The bytes of each datagram; the last one may be shorter.
    pub(crate) stride: usize,
    /// The system cut off bytes, or what it says about them. The buffer's contents are worth
    /// nothing.
    pub(crate) is_truncated: bool,
}

impl Received {
    /// The number of datagrams. An empty datagram is one, too.
    pub(crate) fn datagrams(&self) -> u64 {
        self.len.div_ceil(self.stride.max(1)).max(1) as u64
    }
}

impl Default for Received {
    /// A value that a call overwrites.
    fn default() -> Self {
        Self {
            from: (Ipv6Addr::UNSPECIFIED, 0).into(),
            came_to: None,
            class: TrafficClass::NONE,
            len: 0,
            stride: 0,
            is_truncated: false,
        }
    }
}

/// The calls of one kind of socket. [`super::Socket`] is the same for both kinds but for these.
pub(super) trait Calls: Debug + Send + Sync {
    /// Datagrams of one size that one call may send.
    fn segments_per_send(&self) -> usize;

    /// Sends the batch. Its receiver is written as the socket's family takes it.
    fn send(&self, socket: &UdpSocket, batch: &Batch<'_>) -> io::Result<()>;

    /// Fills buffers, and says of each of them what the system says. Returns the number of them.
    fn receive(
        &self,
        socket: &UdpSocket,
        buffers: [&mut [u8]; BUFFERS],
        received: &mut [Received; BUFFERS],
    ) -> io::Result<usize>;
}
