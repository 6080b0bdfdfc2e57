//! Buffers for what one call receives.

use crate::io::loss::ReceiveLoss;
use crate::io::socket::{BUFFERS, Received};
use crate::io::statistics::IoStatistics;
use olaf_engine::TrafficClass;
use olaf_engine::engine::Ecn;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// One buffer takes what receive offload coalesces: up to 64 KB of datagrams.
const BUFFER_BYTES: usize = 1 << 16;
/// Bytes of a cache line. The buffers start at a line: an engine adds the lanes of a datagram that
/// starts at a line faster than those of another one.
const LINE: usize = 64;

/// What one call received.
#[derive(Debug)]
pub struct Inbox {
    bytes: Vec<u8>,
    /// Where the first buffer starts.
    start: usize,
    buffer_bytes: usize,
    received: [Received; BUFFERS],
    filled: usize,
    /// What came before the last call, in datagrams.
    before: u64,
    loss: Option<ReceiveLoss>,
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
    /// The number of its first datagram, counted from the start.
    first: u64,
    loss: Option<ReceiveLoss>,
}

impl<'a> Burst<'a> {
    /// Each datagram that is not lost on purpose.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // An empty datagram is one, too.
        let empty = self.bytes.is_empty().then_some(self.bytes);
        let all = empty.into_iter().chain(self.bytes.chunks(self.stride.max(1)));
        let loss = self.loss;
        (self.first..)
            .zip(all)
            .filter(move |(number, _)| !loss.is_some_and(|loss| loss.takes(*number)))
            .map(|(_, datagram)| datagram)
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
        let bytes = vec![0; LINE + BUFFERS * buffer_bytes];
        Self {
            start: bytes.as_ptr().align_offset(LINE).min(LINE),
            bytes,
            buffer_bytes,
            received: [Received::default(); BUFFERS],
            filled: 0,
            before: 0,
            loss: None,
        }
    }

    /// Takes in what `receive` receives, except what `loss` takes.
    pub(crate) fn fill(
        &mut self,
        loss: Option<ReceiveLoss>,
        receive: impl FnOnce([&mut [u8]; BUFFERS], &mut [Received; BUFFERS]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.before += self.received[..self.filled].iter().map(Received::datagrams).sum::<u64>();
        self.filled = 0;
        self.loss = loss;
        let mut chunks = self.bytes[self.start..].chunks_exact_mut(self.buffer_bytes);
        let buffers =
            std::array::from_fn(|_| chunks.next().expect("the bytes are BUFFERS buffers"));
        self.filled = receive(buffers, &mut self.received)?;
        Ok(())
    }

    /// Returns true if the call may have left something behind.
    pub(crate) const fn is_full(&self) -> bool {
        self.filled == BUFFERS
    }

    /// Each burst that is whole.
    pub fn bursts(&self) -> impl Iterator<Item = Burst<'_>> {
        let buffers = self.bytes[self.start..].chunks_exact(self.buffer_bytes);
        let mut next = self.before;
        self.received[..self.filled].iter().zip(buffers).filter_map(move |(received, buffer)| {
            let first = next;
            next += received.datagrams();
            (!received.is_truncated).then(|| Burst {
                from: received.from,
                came_to: received.came_to,
                class: received.class,
                bytes: &buffer[..received.len],
                stride: received.stride,
                first,
                loss: self.loss,
            })
        })
    }

    /// Counts what the last call received.
    pub(crate) fn count(&self, statistics: &mut IoStatistics) {
        let mut kept = 0;
        for burst in self.bursts() {
            let marked = burst.class.ecn() == Ecn::Marked;
            for datagram in burst.datagrams() {
                kept += 1;
                statistics.received_bytes += datagram.len() as u64;
                statistics.ecn_marked += u64::from(marked);
            }
        }
        statistics.received_datagrams += kept;
        let received = &self.received[..self.filled];
        let truncated = received.iter().filter(|received| received.is_truncated);
        statistics.truncated += truncated.count() as u64;
        let whole = received.iter().filter(|received| !received.is_truncated);
        statistics.lost_on_purpose += whole.map(Received::datagrams).sum::<u64>() - kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_splits_at_its_stride_and_an_empty_datagram_counts() {
        let from = "127.0.0.1:1".parse().expect("an address");
        let split = |bytes, stride| {
            let class = TrafficClass::NONE;
            let burst = Burst { from, came_to: None, class, bytes, stride, first: 0, loss: None };
            let lengths = burst.datagrams().map(<[u8]>::len).collect::<Vec<_>>();
            let received = Received { len: bytes.len(), stride, ..Received::default() };
            assert_eq!(received.datagrams(), lengths.len() as u64);
            lengths
        };
        assert_eq!(split(&[0; 10][..], 4), [4, 4, 2]);
        assert_eq!(split(&[0; 4][..], 4), [4]);
        assert_eq!(split(&[][..], 0), [0]);
    }
}
