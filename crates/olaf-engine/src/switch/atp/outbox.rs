//! What waits for the links. A packet is written when the switch decides about it: its aggregator may
//! serve another fragment before the packet leaves.

use super::config::Config;
use crate::engine::{Receivers, TrafficClass};
use crate::ids::PortId;
use crate::link::pacer::Pacer;
use crate::link::{Datagram, Link};
use crate::time::Instant;
use alloc::vec::Vec;
use serde::Serialize;

/// A datagram with its receivers.
pub(super) struct Waiting {
    pub(super) to: Receivers,
    pub(super) bytes: Vec<u8>,
}

impl Datagram for Waiting {
    /// Each receiver gets a copy of its own, which takes the link's time.
    fn bytes(&self) -> u32 {
        let all = self.bytes.len().saturating_mul(self.to.as_slice().len());
        u32::try_from(all).unwrap_or(u32::MAX)
    }
}

/// What became of datagrams that the switch sends, each receiver counted.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sent {
    pub(super) sent_up: u64,
    pub(super) sent_down: u64,
    /// The link had no room.
    pub(super) link_full_up: u64,
    pub(super) link_full_down: u64,
    /// Departures with a mark of this switch's links.
    pub(super) marked: u64,
}

/// The two links.
pub(super) struct Outbox {
    up: Link<Waiting>,
    down: Link<Waiting>,
    pub(super) sent: Sent,
}

impl Outbox {
    pub(super) fn new(config: &Config) -> Self {
        let link = |rate| {
            Link::new(Pacer::at(rate))
                .with_datagrams(config.link_limit)
                .with_ecn_depth(config.ecn_depth)
        };
        Self { up: link(config.uplink), down: link(config.downlink), sent: Sent::default() }
    }

    /// A datagram waits for its link from now on. Where the link is full it is dropped and counted.
    pub(super) fn send(&mut self, now: Instant, port: PortId, to: Receivers, bytes: Vec<u8>) {
        let copies = to.as_slice().len() as u64;
        if copies == 0 {
            return;
        }
        let (link, full) = match port {
            PortId::UPLINK => (&mut self.up, &mut self.sent.link_full_up),
            _ => (&mut self.down, &mut self.sent.link_full_down),
        };
        if !link.send(now, Waiting { to, bytes }) {
            *full += copies;
        }
    }

    /// The datagram whose last bit has left by `now`, with its class.
    pub(super) fn leave(&mut self, now: Instant, port: PortId) -> Option<(Waiting, TrafficClass)> {
        let (link, sent) = match port {
            PortId::UPLINK => (&mut self.up, &mut self.sent.sent_up),
            PortId::DOWNLINK => (&mut self.down, &mut self.sent.sent_down),
            _ => return None,
        };
        let departure = link.due(now)?;
        let waiting = link.take()?;
        *sent += waiting.to.as_slice().len() as u64;
        self.sent.marked += u64::from(departure.congested);
        Some((waiting, departure.mark(TrafficClass::ECN_CAPABLE)))
    }

    pub(super) fn next_departure(&self) -> Option<Instant> {
        [&self.up, &self.down].into_iter().filter_map(Link::next_departure).min()
    }

    pub(super) fn waiting(&self) -> usize {
        let both = self.up.datagrams().chain(self.down.datagrams());
        both.map(|waiting| waiting.to.as_slice().len()).sum()
    }
}
