//! What waits for the links. A result, or a sum on its way up, is kept as its block's key: its
//! gradients stay in their record until it leaves.

use super::config::Config;
use super::statistics::Sent;
use crate::blocks::records::Key;
use crate::engine::{Receivers, TrafficClass};
use crate::ids::{PeerId, PortId};
use crate::link::pacer::Pacer;
use crate::link::{Datagram, Leaving, Link};
use crate::time::Instant;
use olaf_wire::trio::{Ask, Closed, Gone, Hello, Leave, Straggler, Want, Welcome};

/// A message on its way down or up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    /// The result of a block, with the bytes of its datagram; to one worker: again.
    Result {
        key: Key,
        bytes: usize,
        again: bool,
    },
    /// A lower switch's sum of a block.
    Sum {
        key: Key,
        bytes: usize,
        again: bool,
    },
    Welcome(Welcome),
    Want(Want),
    Gone(Gone),
    Closed(Closed),
    Straggler(Straggler),
    Hello(Hello),
    Ask(Ask),
    Leave(Leave),
}

/// A message with its receivers.
pub(super) struct Waiting {
    pub(super) to: Receivers,
    pub(super) message: Message,
}

/// Bytes of the longest message without gradients.
const CONTROL: usize = 40;

impl Datagram for Waiting {
    /// Each receiver gets a copy of its own, which takes the link's time.
    fn bytes(&self) -> u32 {
        let one = match self.message {
            Message::Result { bytes, .. } | Message::Sum { bytes, .. } => bytes,
            _ => CONTROL,
        };
        u32::try_from(one.saturating_mul(self.to.as_slice().len())).unwrap_or(u32::MAX)
    }
}

/// The links: up, and down.
pub(super) struct Outbox {
    up: Link<Waiting>,
    down: Link<Waiting>,
    above: Option<PeerId>,
    pub(super) sent: Sent,
}

impl Outbox {
    pub(super) fn new(config: &Config) -> Self {
        let link = |rate| Link::new(Pacer::at(rate)).with_datagrams(config.downlink_limit);
        let (up, down) = (link(config.uplink), link(config.downlink));
        Self { up, down, above: None, sent: Sent::default() }
    }

    /// The switch above.
    pub(super) const fn above(&self) -> Option<PeerId> {
        self.above
    }

    pub(super) fn set_above(&mut self, peer: PeerId) {
        self.above = Some(peer);
    }

    /// A message waits for the link from now on. Where the link is full it is dropped and counted:
    /// its receivers ask again.
    pub(super) fn send(&mut self, now: Instant, to: Receivers, message: Message) {
        let copies = to.as_slice().len() as u64;
        if copies > 0 && !self.down.send(now, Waiting { to, message }) {
            self.sent.link_full += copies;
        }
    }

    /// Sends to one peer.
    pub(super) fn tell(&mut self, now: Instant, peer: PeerId, message: Message) {
        self.send(now, Receivers::One(peer), message);
    }

    /// Sends to the switch above, where there is one.
    pub(super) fn tell_above(&mut self, now: Instant, message: Message) {
        let Some(peer) = self.above else { return };
        let to = Receivers::One(peer);
        self.sent.link_full += u64::from(!self.up.send(now, Waiting { to, message }));
    }

    /// The message whose last bit has left by `now`.
    pub(super) fn leave(&mut self, now: Instant, port: PortId) -> Option<(Waiting, TrafficClass)> {
        let link = match port {
            PortId::UPLINK => &mut self.up,
            PortId::DOWNLINK => &mut self.down,
            _ => return None,
        };
        let departure = link.due(now)?;
        debug_assert_eq!(departure.what, Leaving::Datagram, "there is no queue of updates");
        Some((link.take()?, departure.mark(TrafficClass::ECN_CAPABLE)))
    }

    pub(super) fn next_departure(&self) -> Option<Instant> {
        [&self.up, &self.down].into_iter().filter_map(Link::next_departure).min()
    }

    pub(super) fn waiting(&self) -> usize {
        let waiting = self.up.datagrams().chain(self.down.datagrams());
        waiting.map(|waiting| waiting.to.as_slice().len()).sum()
    }
}
