//! What happened to every datagram of a run, in order.

use olaf_engine::{Instant, PeerId};
use std::sync::Arc;

/// What became of one datagram at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lot {
    /// Put on its link.
    Sent,
    /// Lost by its link.
    Lost,
    /// Repeated by its link.
    Repeated,
    /// Arrived.
    Delivered,
    /// Arrived at a place without a party.
    ToTheDead,
    /// Sent where no link leads.
    NoLink,
}

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// Its sender.
    pub from: PeerId,
    /// Its receiver.
    pub to: PeerId,
    /// What became of it.
    pub lot: Lot,
    /// The datagram.
    pub bytes: Arc<[u8]>,
}
