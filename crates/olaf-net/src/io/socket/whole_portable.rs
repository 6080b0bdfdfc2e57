//! In place of the calls that carry the whole traffic class, where only Linux has them.

use super::calls::{BUFFERS, Batch, Calls, Received};
use std::io;
use std::net::UdpSocket;

/// Cannot be made, so that its calls are never made either.
#[derive(Debug)]
pub(super) enum WholeClass {}

impl WholeClass {
    pub(super) fn new(_: &UdpSocket) -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "only Linux sockets carry the whole traffic class: run this role on Linux",
        ))
    }
}

impl Calls for WholeClass {
    fn segments_per_send(&self) -> usize {
        match *self {}
    }

    fn send(&self, _: &UdpSocket, _: &Batch<'_>) -> io::Result<()> {
        match *self {}
    }

    fn receive(
        &self,
        _: &UdpSocket,
        _: [&mut [u8]; BUFFERS],
        _: &mut [Received; BUFFERS],
    ) -> io::Result<usize> {
        match *self {}
    }
}
