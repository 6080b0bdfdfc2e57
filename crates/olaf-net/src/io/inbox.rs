//! Buffers for what one call receives.

use quinn_udp::RecvMeta;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

/// One buffer takes what receive offload coalesces: up to 64 KB of datagrams.
const BUFFER_BYTES: usize = 1 << 16;
/// Buffers for each call: so many that a call costs little, so few that they stay in the cache.
const BUFFERS: usize = 8;

/// What one call received.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    metas: [RecvMeta; BUFFERS],
    filled: usize,
}

/// Datagrams that came together from one peer.
pub(crate) struct Burst<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) came_to: Option<IpAddr>,
    bytes: &'a [u8],
    stride: usize,
}

impl<'a> Burst<'a> {
    /// Each datagram.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // An empty datagram is one, too.
        let empty = self.bytes.is_empty().then_some(self.bytes);
        empty.into_iter().chain(self.bytes.chunks(self.stride.max(1)))
    }
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BUFFERS * BUFFER_BYTES],
            metas: [RecvMeta::default(); BUFFERS],
            filled: 0,
        }
    }

    pub(crate) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.filled = 0;
        let mut chunks = self.bytes.chunks_exact_mut(BUFFER_BYTES);
        let mut buffers: [IoSliceMut<'_>; BUFFERS] = std::array::from_fn(|_| {
            IoSliceMut::new(chunks.next().expect("the bytes are so many buffers"))
        });
        self.filled = receive(&mut buffers, &mut self.metas)?;
        Ok(())
    }

    /// Whether the call may have left something behind.
    pub(crate) const fn is_full(&self) -> bool {
        self.filled == BUFFERS
    }

    pub(crate) fn bursts(&self) -> impl Iterator<Item = Burst<'_>> {
        let buffers = self.bytes.chunks_exact(BUFFER_BYTES);
        self.metas[..self.filled].iter().zip(buffers).map(|(meta, buffer)| Burst {
            from: meta.addr,
            came_to: meta.dst_ip,
            bytes: &buffer[..meta.len],
            stride: meta.stride,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_splits_at_its_stride_and_an_empty_datagram_counts() {
        let from = "127.0.0.1:1".parse().expect("an address");
        let split = |bytes, stride| {
            let burst = Burst { from, came_to: None, bytes, stride };
            burst.datagrams().map(<[u8]>::len).collect::<Vec<_>>()
        };
        assert_eq!(split(&[0; 10][..], 4), [4, 4, 2]);
        assert_eq!(split(&[0; 4][..], 4), [4]);
        assert_eq!(split(&[][..], 0), [0]);
    }
}
