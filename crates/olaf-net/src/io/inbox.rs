//! Buffers for what one call receives.

use crate::io::socket::{BUFFERS, Received};
use crate::io::statistics::IoStatistics;
use olaf_engine::TrafficClass;
use olaf_engine::engine::Ecn;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// One buffer takes what receive offload coalesces: up to 64 KB of datagrams.
const BUFFER_BYTES: usize = 1 << 16;

/// What one call received.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    buffer_bytes: usize,
    received: [Received; BUFFERS],
    filled: usize,
}

/// Datagrams of one traffic class that came together from one peer.
#[derive(Clone, Copy, Debug)]
pub struct Burst<'a> {
    /// The peer's address.
    pub from: SocketAddr,
    /// The address of this machine that they came to, where the system says it.
    pub came_to: Option<IpAddr>,
    /// The traffic class of each of them, as far as the socket carries it.
    pub class: TrafficClass,
    bytes: &'a [u8],
    stride: usize,
}

impl<'a> Burst<'a> {
    /// Each datagram.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // An empty datagram is one, too.
        let empty = self.bytes.is_empty().then_some(self.bytes);
        empty.into_iter().chain(self.bytes.chunks(self.stride.max(1)))
    }

    /// The number of datagrams.
    fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.stride.max(1)).max(1)
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbox {
    /// Buffers for the longest datagrams.
    #[must_use]
    pub fn new() -> Self {
        Self::with_buffers(BUFFER_BYTES)
    }

    pub(super) fn with_buffers(buffer_bytes: usize) -> Self {
        Self {
            bytes: vec![0; BUFFERS * buffer_bytes],
            buffer_bytes,
            received: [Received::default(); BUFFERS],
            filled: 0,
        }
    }

    pub(crate) fn fill(
        &mut self,
        receive: impl FnOnce([&mut [u8]; BUFFERS], &mut [Received; BUFFERS]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.filled = 0;
        let mut chunks = self.bytes.chunks_exact_mut(self.buffer_bytes);
        let buffers =
            std::array::from_fn(|_| chunks.next().expect("the bytes are BUFFERS buffers"));
        self.filled = receive(buffers, &mut self.received)?;
        Ok(())
    }

    /// Whether the call may have left something behind.
    pub(crate) const fn is_full(&self) -> bool {
        self.filled == BUFFERS
    }

    /// Each burst that is whole.
    pub fn bursts(&self) -> impl Iterator<Item = Burst<'_>> {
        let buffers = self.bytes.chunks_exact(self.buffer_bytes);
        let received = self.received[..self.filled].iter().zip(buffers);
        received.filter(|(received, _)| !received.is_truncated).map(|(received, buffer)| Burst {
            from: received.from,
            came_to: received.came_to,
            class: received.class,
            bytes: &buffer[..received.len],
            stride: received.stride,
        })
    }

    /// Counts what the last call received.
    pub(crate) fn count(&self, statistics: &mut IoStatistics) {
        for burst in self.bursts() {
            let datagrams = burst.count() as u64;
            statistics.received_datagrams += datagrams;
            statistics.received_bytes += burst.bytes.len() as u64;
            if burst.class.ecn() == Ecn::Marked {
                statistics.ecn_marked += datagrams;
            }
        }
        let received = &self.received[..self.filled];
        let truncated = received.iter().filter(|received| received.is_truncated);
        statistics.truncated += truncated.count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_splits_at_its_stride_and_an_empty_datagram_counts() {
        let from = "127.0.0.1:1".parse().expect("an address");
        let split = |bytes, stride| {
            let burst = Burst { from, came_to: None, class: TrafficClass::NONE, bytes, stride };
            let lengths = burst.datagrams().map(<[u8]>::len).collect::<Vec<_>>();
            assert_eq!(burst.count(), lengths.len());
            lengths
        };
        assert_eq!(split(&[0; 10][..], 4), [4, 4, 2]);
        assert_eq!(split(&[0; 4][..], 4), [4]);
        assert_eq!(split(&[][..], 0), [0]);
    }
}
