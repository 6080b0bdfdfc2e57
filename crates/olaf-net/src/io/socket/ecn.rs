//! The calls of `quinn-udp`, on every system. They carry the two bits of ECN and leave the six
//! bits of class at 0.

use super::calls::{BUFFERS, Batch, Calls, Received};
use olaf_engine::TrafficClass;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;

#[derive(Debug)]
pub(super) struct EcnOnly(UdpSocketState);

impl EcnOnly {
    pub(super) fn new(socket: &UdpSocket) -> io::Result<Self> {
        UdpSocketState::new(socket.into()).map(Self)
    }
}

impl Calls for EcnOnly {
    fn segments_per_send(&self) -> usize {
        self.0.max_gso_segments()
    }

    fn send(&self, socket: &UdpSocket, batch: &Batch<'_>) -> io::Result<()> {
        let transmit = Transmit {
            destination: batch.to,
            ecn: EcnCodepoint::from_bits(batch.class.0),
            contents: batch.contents,
            segment_size: batch.split_at(),
            src_ip: batch.from,
        };
        self.0.try_send(socket.into(), &transmit)
    }

    fn receive(
        &self,
        socket: &UdpSocket,
        buffers: [&mut [u8]; BUFFERS],
        received: &mut [Received; BUFFERS],
    ) -> io::Result<usize> {
        let mut metas = [RecvMeta::default(); BUFFERS];
        let mut buffers = buffers.map(IoSliceMut::new);
        let filled = self.0.recv(socket.into(), &mut buffers, &mut metas)?;
        for (received, meta) in received.iter_mut().zip(&metas[..filled]) {
            *received = Received {
                from: meta.addr,
                came_to: meta.dst_ip,
                class: TrafficClass(meta.ecn.map_or(0, |ecn| ecn as u8)),
                len: meta.len,
                stride: meta.stride,
                // A buffer takes the longest datagram, and quinn-udp would not say.
                is_truncated: false,
            };
        }
        Ok(filled)
    }
}
