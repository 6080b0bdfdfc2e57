//! Who sits at the nodes of a network: ends and switches, behind one face.

use olaf_engine::engine::{Engine, Source, Transmit, Verdict};
use olaf_engine::event::Event;
use olaf_engine::{Instant, PeerId, PortId};
use olaf_host::{Host, HostEvent};
use std::any::Any;
use std::collections::{BTreeSet, VecDeque};

/// What a node said of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// An end.
    Host(HostEvent),
    /// A switch.
    Switch(Event),
}

/// A party in a network. The order is that of [`Engine`]: after every input notices, then
/// transmissions, then the next timeout.
pub trait Node: Any + Send {
    /// One datagram arrived.
    fn receive(&mut self, now: Instant, from: PeerId, bytes: &[u8]);
    /// The next datagram, written into `buf`.
    fn transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit>;
    /// When to call [`Node::timeout`] next.
    fn next_timeout(&self) -> Option<Instant>;
    /// Time has come.
    fn timeout(&mut self, now: Instant);
    /// The link would not take a datagram of so many bytes, but takes `longest`.
    fn too_long(&mut self, _now: Instant, _bytes: usize, _longest: usize) {}
    /// What it has to say.
    fn notice(&mut self) -> Option<Notice>;
}

/// An end: a worker or a server.
pub struct End<H>(pub H);

impl<H: Host + Send + 'static> Node for End<H> {
    fn receive(&mut self, now: Instant, from: PeerId, bytes: &[u8]) {
        // Why it was refused is in its own counters.
        let _ = self.0.handle_packet(now, from, bytes);
    }

    fn transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        self.0.poll_transmit(now, buf)
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout().map(|(at, _)| at)
    }

    fn timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }

    fn too_long(&mut self, now: Instant, bytes: usize, longest: usize) {
        self.0.handle_too_long(now, bytes, u32::try_from(longest).ok());
    }

    fn notice(&mut self) -> Option<Notice> {
        self.0.poll_event().map(Notice::Host)
    }
}

/// A switch, and which of its peers are towards the servers.
pub struct Middle<E> {
    /// Its brain.
    pub engine: E,
    above: BTreeSet<PeerId>,
    /// Where a datagram that is not ours goes, up and down.
    default_peers: (Option<PeerId>, Option<PeerId>),
    untouched: VecDeque<(PeerId, Vec<u8>)>,
}

impl<E> Middle<E> {
    /// A switch with those peers above it; all others are below.
    pub fn new(engine: E, above: impl IntoIterator<Item = PeerId>) -> Self {
        let above: BTreeSet<PeerId> = above.into_iter().collect();
        let default_peers = (above.first().copied(), None);
        Self { engine, above, default_peers, untouched: VecDeque::new() }
    }

    /// The same, which sends down to that peer what is not ours.
    #[must_use]
    pub fn with_default_below(mut self, peer: PeerId) -> Self {
        self.default_peers.1 = Some(peer);
        self
    }
}

impl<E: Engine + Send + 'static> Node for Middle<E> {
    fn receive(&mut self, now: Instant, from: PeerId, bytes: &[u8]) {
        let port = if self.above.contains(&from) { PortId::UPLINK } else { PortId::DOWNLINK };
        let verdict = self.engine.handle_packet(now, Source::new(port, from), bytes);
        if let Verdict::Forward(port) = verdict {
            let (up, down) = self.default_peers;
            let to = if port == PortId::UPLINK { up } else { down };
            self.untouched.extend(to.map(|to| (to, bytes.to_vec())));
        }
    }

    fn transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if let Some((peer, bytes)) = self.untouched.pop_front() {
            buf[..bytes.len()].copy_from_slice(&bytes);
            return Some(Transmit::to(peer, bytes.len()));
        }
        let up = self.engine.poll_transmit(now, PortId::UPLINK, buf);
        up.or_else(|| self.engine.poll_transmit(now, PortId::DOWNLINK, buf))
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout().map(|(at, _)| at)
    }

    fn timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
    }

    fn notice(&mut self) -> Option<Notice> {
        self.engine.poll_event().map(Notice::Switch)
    }
}
