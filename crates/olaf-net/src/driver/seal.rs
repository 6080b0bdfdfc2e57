//! What stands between the socket and an engine: datagrams are opened on the way in and sealed on
//! the way out, so that no engine knows of keys.

use olaf_engine::{Instant, PeerId};

/// Opens and seals datagrams.
pub(crate) trait Seal: Send {
    /// The message in a datagram; none if its seal is not valid. The caller that drops
    /// a datagram counts it.
    fn open<'a>(&'a mut self, now: Instant, from: PeerId, datagram: &'a [u8]) -> Option<&'a [u8]>;

    /// Seals the message in the first `len` bytes of `buf`; returns the datagram's length.
    /// A message for several receivers is sealed for each of them.
    fn seal(&mut self, to: PeerId, buf: &mut [u8], len: usize) -> usize;

    /// Whether a datagram is its message, the same for every receiver.
    fn is_clear(&self) -> bool {
        false
    }
}

/// Datagrams are messages: nothing is checked and nothing is hidden.
pub(crate) struct Clear;

impl Seal for Clear {
    fn open<'a>(&'a mut self, _: Instant, _: PeerId, datagram: &'a [u8]) -> Option<&'a [u8]> {
        Some(datagram)
    }

    fn seal(&mut self, _: PeerId, _: &mut [u8], len: usize) -> usize {
        len
    }

    fn is_clear(&self) -> bool {
        true
    }
}
