//! What waits for the links. A sum is kept as its packet's index: its floats stay in their cell until it leaves.

use super::config::Config;
use super::counters::Sent;
use crate::engine::{Ecn, Receivers, TrafficClass};
use crate::ids::{JobId, PeerId, PortId};
use crate::link::pacer::Pacer;
use crate::link::{Datagram, Leaving, Link};
use crate::time::Instant;
use olaf_wire::iswitch::offsets::LONGEST_CONTROL;
use olaf_wire::iswitch::{CONTROL_CLASS, Control, DATA_CLASS};

/// A data packet on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) job: JobId,
    /// This switch's number of the generation.
    pub(super) generation: u8,
    pub(super) index: u64,
    /// A sum on its way up; otherwise a result on its way down.
    pub(super) up: bool,
    /// It was sent before.
    pub(super) again: bool,
    /// Bytes of its datagram.
    pub(super) bytes: usize,
    /// A piece met congestion.
    pub(super) congested: bool,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message {
    Data(Outgoing),
    Control(Control),
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
            Message::Data(data) => data.bytes,
            Message::Control(_) => LONGEST_CONTROL,
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
        let link = |rate| {
            Link::new(Pacer::at(rate))
                .with_datagrams(config.downlink_limit)
                .with_ecn_depth(config.downlink_ecn_depth)
        };
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

    /// Sends a control message to one peer below.
    pub(super) fn tell(&mut self, now: Instant, peer: PeerId, message: Control) {
        self.send(now, Receivers::One(peer), Message::Control(message));
    }

    /// Sends to the switch above, where there is one.
    pub(super) fn tell_above(&mut self, now: Instant, message: Message) {
        let Some(peer) = self.above else { return };
        let to = Receivers::One(peer);
        self.sent.link_full += u64::from(!self.up.send(now, Waiting { to, message }));
    }

    /// The message whose last bit has left by `now`, with its class.
    pub(super) fn leave(&mut self, now: Instant, port: PortId) -> Option<(Waiting, TrafficClass)> {
        let link = match port {
            PortId::UPLINK => &mut self.up,
            PortId::DOWNLINK => &mut self.down,
            _ => return None,
        };
        let departure = link.due(now)?;
        debug_assert_eq!(departure.what, Leaving::Datagram, "there is no queue of updates");
        let waiting = link.take()?;
        let class = match &waiting.message {
            Message::Data(data) if data.congested => TrafficClass::new(DATA_CLASS, Ecn::Marked),
            Message::Data(_) => TrafficClass::new(DATA_CLASS, Ecn::Capable0),
            Message::Control(_) => TrafficClass::new(CONTROL_CLASS, Ecn::NotCapable),
        };
        self.sent.marked += u64::from(departure.congested);
        Some((waiting, departure.mark(class)))
    }

    pub(super) fn next_departure(&self) -> Option<Instant> {
        [&self.up, &self.down].into_iter().filter_map(Link::next_departure).min()
    }

    pub(super) fn waiting(&self) -> usize {
        let both = self.up.datagrams().chain(self.down.datagrams());
        both.map(|waiting| waiting.to.as_slice().len()).sum()
    }
}
