//! What waits for the downlink. A result is kept as its block's number: its lanes stay in their cell
//! until it leaves.

use super::config::Config;
use super::counters::Sent;
use crate::engine::{Receivers, TrafficClass};
use crate::ids::{JobId, PeerId};
use crate::link::pacer::Pacer;
use crate::link::{Datagram, Leaving, Link};
use crate::time::Instant;
use olaf_wire::reduce::{Block, Closed, Want, Welcome, offsets::HEADER};

/// The result of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) job: JobId,
    pub(super) generation: u32,
    pub(super) block: Block,
    /// The rank and the session of the one receiver; none: all members.
    pub(super) to: Option<(u32, u32)>,
    pub(super) sent_at_us: u32,
    /// Bytes of its datagram.
    pub(super) bytes: usize,
}

/// A message on its way down.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    Result(Outgoing),
    Want(Want),
    Welcome(Welcome),
    Closed(Closed),
}

/// A message with its receivers.
pub(super) struct Waiting {
    pub(super) to: Receivers,
    pub(super) message: Message,
}

impl Datagram for Waiting {
    /// Each receiver gets a copy of its own, which takes the link's time.
    fn bytes(&self) -> u32 {
        let one = match &self.message {
            Message::Result(result) => result.bytes,
            Message::Want(_) | Message::Welcome(_) | Message::Closed(_) => HEADER,
        };
        u32::try_from(one.saturating_mul(self.to.as_slice().len())).unwrap_or(u32::MAX)
    }
}

/// The downlink.
pub(super) struct Outbox {
    link: Link<Waiting>,
    pub(super) sent: Sent,
}

impl Outbox {
    pub(super) fn new(config: &Config) -> Self {
        let link = Link::new(Pacer::at(config.downlink))
            .with_datagrams(config.downlink_limit)
            .with_ecn_depth(config.downlink_ecn_depth);
        Self { link, sent: Sent::default() }
    }

    /// A message waits for the link from now on. Where the link is full it is dropped and counted:
    /// its receivers ask again.
    pub(super) fn send(&mut self, now: Instant, to: Receivers, message: Message) {
        let copies = to.as_slice().len() as u64;
        if copies > 0 && !self.link.send(now, Waiting { to, message }) {
            self.sent.link_full += copies;
        }
    }

    /// Sends to one peer.
    pub(super) fn tell(&mut self, now: Instant, peer: PeerId, message: Message) {
        self.send(now, Receivers::One(peer), message);
    }

    /// The message whose last bit has left by `now`, with its class.
    pub(super) fn leave(&mut self, now: Instant) -> Option<(Waiting, TrafficClass)> {
        let departure = self.link.due(now)?;
        debug_assert_eq!(departure.what, Leaving::Datagram, "there is no queue of updates");
        let waiting = self.link.take()?;
        let class = departure.mark(TrafficClass::ECN_CAPABLE);
        self.sent.marked += u64::from(departure.congested);
        Some((waiting, class))
    }

    pub(super) fn next_departure(&self) -> Option<Instant> {
        self.link.next_departure()
    }

    pub(super) fn waiting(&self) -> usize {
        self.link.datagrams().map(|waiting| waiting.to.as_slice().len()).sum()
    }
}
