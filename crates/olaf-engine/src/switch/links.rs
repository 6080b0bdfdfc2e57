//! The two links of a switch that sums: up, to the switch above or a server, and down, to its members.

use crate::engine::{Receivers, TrafficClass};
use crate::ids::{PeerId, PortId};
use crate::link::pacer::Pacer;
use crate::link::{Datagram, Leaving, Link};
use crate::time::{BitsPerSecond, Instant};

/// What waits for a link.
pub(super) trait Message {
    /// Bytes of its datagram, at most.
    fn bytes(&self) -> usize;

    /// The traffic class it leaves with, where the link is not congested.
    fn class(&self) -> TrafficClass {
        TrafficClass::ECN_CAPABLE
    }
}

/// A message with its receivers.
pub(super) struct Waiting<M> {
    pub(super) to: Receivers,
    pub(super) message: M,
}

impl<M: Message> Datagram for Waiting<M> {
    /// Each receiver gets a copy of its own, which takes the link's time.
    fn bytes(&self) -> u32 {
        let bytes = self.message.bytes().saturating_mul(self.to.as_slice().len());
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// How the links are set up.
pub(super) struct Rates {
    pub(super) up: Option<BitsPerSecond>,
    pub(super) down: Option<BitsPerSecond>,
    /// Datagrams that may wait for each link.
    pub(super) limit: usize,
    /// Datagrams leave with a mark while that many wait.
    pub(super) ecn_depth: Option<usize>,
}

/// The links, and what the protocol counts of its messages.
pub(super) struct Links<M, Sent> {
    up: Link<Waiting<M>>,
    down: Link<Waiting<M>>,
    above: Option<PeerId>,
    pub(super) sent: Sent,
    /// Datagrams that found the link up full; each receiver counts.
    pub(super) full_up: u64,
    /// The same of the link down.
    pub(super) full_down: u64,
    /// Departures with a mark of these links.
    pub(super) marked: u64,
}

impl<M: Message, Sent: Default> Links<M, Sent> {
    pub(super) fn new(rates: &Rates) -> Self {
        let link = |rate| {
            Link::new(Pacer::at(rate)).with_datagrams(rates.limit).with_ecn_depth(rates.ecn_depth)
        };
        Self {
            up: link(rates.up),
            down: link(rates.down),
            above: None,
            sent: Sent::default(),
            full_up: 0,
            full_down: 0,
            marked: 0,
        }
    }

    /// The switch above.
    pub(super) const fn above(&self) -> Option<PeerId> {
        self.above
    }

    pub(super) fn set_above(&mut self, peer: PeerId) {
        self.above = Some(peer);
    }

    /// A message waits for the link down from now on. Where the link is full it is dropped and counted:
    /// its receivers ask again.
    pub(super) fn send(&mut self, now: Instant, to: Receivers, message: impl Into<M>) {
        let copies = to.as_slice().len() as u64;
        if copies > 0 && !self.down.send(now, Waiting { to, message: message.into() }) {
            self.full_down += copies;
        }
    }

    /// Sends to one peer below.
    pub(super) fn tell(&mut self, now: Instant, peer: PeerId, message: impl Into<M>) {
        self.send(now, Receivers::One(peer), message);
    }

    /// Sends to one peer above.
    pub(super) fn send_up(&mut self, now: Instant, peer: PeerId, message: impl Into<M>) {
        let waiting = Waiting { to: Receivers::One(peer), message: message.into() };
        self.full_up += u64::from(!self.up.send(now, waiting));
    }

    /// Sends to the switch above, where there is one.
    pub(super) fn tell_above(&mut self, now: Instant, message: impl Into<M>) {
        if let Some(peer) = self.above {
            self.send_up(now, peer, message);
        }
    }

    /// Datagrams that found a link full.
    pub(super) const fn full(&self) -> u64 {
        self.full_up + self.full_down
    }

    /// The message whose last bit has left by `now`, with its class.
    pub(super) fn leave(
        &mut self,
        now: Instant,
        port: PortId,
    ) -> Option<(Waiting<M>, TrafficClass)> {
        let link = match port {
            PortId::UPLINK => &mut self.up,
            PortId::DOWNLINK => &mut self.down,
            _ => return None,
        };
        let departure = link.due(now)?;
        debug_assert_eq!(departure.what, Leaving::Datagram, "there is no queue of updates");
        let waiting = link.take()?;
        self.marked += u64::from(departure.congested);
        let class = departure.mark(waiting.message.class());
        Some((waiting, class))
    }

    pub(super) fn next_departure(&self) -> Option<Instant> {
        [&self.up, &self.down].into_iter().filter_map(Link::next_departure).min()
    }

    /// Datagrams that wait; each receiver counts.
    pub(super) fn waiting(&self) -> usize {
        let both = self.up.datagrams().chain(self.down.datagrams());
        both.map(|waiting| waiting.to.as_slice().len()).sum()
    }
}
