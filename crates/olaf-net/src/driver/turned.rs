//! The one of several peers to whom a socket is connected: the one to whom the engine sent last.

use olaf_engine::PeerId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// That peer, and how often a machine has said that nothing listens there. Counts are those of the whole connection.
pub(super) struct Turned {
    to: AtomicU32,
    /// The count when a datagram came last.
    when_heard: AtomicU64,
    /// The count when the socket turned to this peer.
    before: AtomicU64,
}

impl Turned {
    /// A socket that is connected to this peer.
    pub(super) const fn to(peer: PeerId) -> Self {
        Self {
            to: AtomicU32::new(peer.0),
            when_heard: AtomicU64::new(0),
            before: AtomicU64::new(0),
        }
    }

    /// The engine sends to this peer. Returns true if the socket has to turn to it.
    pub(super) fn turns(&self, peer: PeerId, refused: u64) -> bool {
        let is_other = self.to.swap(peer.0, Ordering::SeqCst) != peer.0;
        if is_other {
            self.before.store(refused, Ordering::SeqCst);
        }
        is_other
    }

    /// A datagram came.
    pub(super) fn heard(&self, refused: u64) {
        self.when_heard.store(refused, Ordering::SeqCst);
    }

    /// Whether a machine said that nothing listens: since the peer before was heard last, and since the socket turned to
    /// the present one.
    pub(super) fn refused(&self, refused: u64) -> (bool, bool) {
        let before = self.before.load(Ordering::SeqCst);
        (before > self.when_heard.load(Ordering::SeqCst), refused > before)
    }
}
