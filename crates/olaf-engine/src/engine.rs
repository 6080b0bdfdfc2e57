//! The contract between an engine and the driver that owns its sockets, its clock and its links.

use crate::drop::{DropReason, Refused};
use crate::event::Event;
use crate::ids::{PeerId, PortId};
use crate::report::Report;
use crate::seal::Signer;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// An address as the driver writes it: 16 bytes of IPv6, or of IPv4 in IPv6, and two of the port.
pub type Place = [u8; 18];

/// A switch, a server, a worker: a state machine that takes time and bytes as arguments.
///
/// `handle_*` takes in, `poll_*` gives out. After every input a driver
/// 1. drains [`poll_event`](Engine::poll_event),
/// 2. drains [`poll_transmit`](Engine::poll_transmit) for each port,
/// 3. reads [`poll_timeout`](Engine::poll_timeout) and, when that time has come, calls
///    [`handle_timeout`](Engine::handle_timeout).
///
/// Output is pulled per port because updates merge *while they wait*: an engine that answered at
/// once could not express it. Time never runs backwards from call to call.
pub trait Engine {
    /// The next datagrams come from this address. A driver that knows addresses says it before it hands
    /// datagrams over: the number of a stranger may change, its address does not.
    fn comes_from(&mut self, _address: Place) {}

    /// Models are signed, and signatures under models are checked, with these keys from here on: a key of
    /// the job was replaced. Engines without models need none.
    fn take_signer(&mut self, _now: Instant, _signer: Box<dyn Signer>) {}

    /// One datagram arrived.
    fn handle_packet(&mut self, now: Instant, from: Source, bytes: &[u8]) -> Verdict;

    /// The next datagram that has left `port`'s link by `now`, written into `buf`, or nothing.
    ///
    /// `buf` must hold the largest datagram, [`olaf_wire::offsets::MAX_DATAGRAM`].
    fn poll_transmit(&mut self, now: Instant, port: PortId, buf: &mut [u8]) -> Option<Transmit>;

    /// When to call [`handle_timeout`](Engine::handle_timeout) next, and what for.
    fn poll_timeout(&self) -> Option<(Instant, Why)>;

    /// Time has come.
    fn handle_timeout(&mut self, now: Instant);

    /// What happened, for metrics and people; never needed for correctness.
    fn poll_event(&mut self) -> Option<Event>;

    /// The number of ports: their ids are 0 to `ports() - 1`. An end of the network has one.
    fn ports(&self) -> u16 {
        1
    }

    /// Returns true if datagrams that are due must leave before the next one comes in.
    fn must_drain(&self) -> bool {
        false
    }

    /// Calls `keep` with each peer whose address the driver must not forget.
    fn peers(&self, keep: &mut dyn FnMut(PeerId));

    /// Shows every counter and gauge to a visitor, under the names of
    /// `docs/reference/statistics.md`.
    fn report(&self, now: Instant, to: &mut dyn Report);

    /// The system did not send a datagram of `bytes` bytes, because it is longer than the path
    /// carries. `largest` is the longest datagram that the system would send, where it says so.
    fn handle_too_long(&mut self, _now: Instant, _bytes: usize, _largest: Option<u32>) {}

    /// The job of a message; none if nothing says it. `at` is where the message came from, or goes to.
    /// A key of one job is not good for the messages of another.
    fn job_of(&self, _at: Source, _message: &[u8]) -> Option<u32> {
        None
    }
}

/// Where a datagram came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The link.
    pub port: PortId,
    /// The party behind it.
    pub peer: PeerId,
    /// The traffic class it came with.
    pub class: TrafficClass,
}

impl Source {
    /// A datagram without a traffic class.
    #[must_use]
    pub const fn new(port: PortId, peer: PeerId) -> Self {
        Self { port, peer, class: TrafficClass::NONE }
    }

    /// A datagram that came to the one port of an end of the network.
    #[must_use]
    pub const fn end(peer: PeerId) -> Self {
        Self::new(PortId(0), peer)
    }
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its receivers.
    pub to: Receivers,
    /// Its bytes, from the start of the buffer.
    pub len: usize,
    /// The traffic class to send it with.
    pub class: TrafficClass,
}

impl Transmit {
    /// A datagram for one peer, without a traffic class.
    #[must_use]
    pub const fn to(peer: PeerId, len: usize) -> Self {
        Self { to: Receivers::One(peer), len, class: TrafficClass::NONE }
    }
}

/// The receivers of one datagram, which is written once for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// One peer.
    One(PeerId),
    /// A group of peers; each of them gets the same bytes.
    Many(Arc<[PeerId]>),
}

impl Receivers {
    /// The receiver, where there is one.
    #[must_use]
    pub fn one(&self) -> Option<PeerId> {
        match self.as_slice() {
            [peer] => Some(*peer),
            _ => None,
        }
    }

    /// Every receiver, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[PeerId] {
        match self {
            Self::One(peer) => core::slice::from_ref(peer),
            Self::Many(peers) => peers,
        }
    }
}

/// The traffic-class byte of an IP header: six bits of class (DSCP), two bits of congestion (ECN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrafficClass(pub u8);

impl TrafficClass {
    /// No class, not ECN-capable.
    pub const NONE: Self = Self(0);
    /// No class, of a sender that understands marks: ECT(0).
    pub const ECN_CAPABLE: Self = Self::new(0, Ecn::Capable0);
    const ECN: u8 = 0b11;

    /// The class of an end's datagrams, which has ECN switched on or off.
    #[must_use]
    pub const fn with_ecn(is_on: bool) -> Self {
        if is_on { Self::ECN_CAPABLE } else { Self::NONE }
    }

    /// A class from its two parts; `dscp` below 64.
    #[must_use]
    pub const fn new(dscp: u8, ecn: Ecn) -> Self {
        Self(dscp << 2 | ecn as u8)
    }

    /// The six bits of class.
    #[must_use]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The two bits of congestion.
    #[must_use]
    pub const fn ecn(self) -> Ecn {
        match self.0 & Self::ECN {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Marked,
        }
    }

    /// The same class with the mark "congestion experienced", where the sender understands marks.
    /// Example: `Capable0` becomes `Marked`; `NotCapable` stays.
    #[must_use]
    pub const fn marked(self) -> Self {
        match self.ecn() {
            Ecn::NotCapable => self,
            _ => Self(self.0 | Self::ECN),
        }
    }
}

/// Explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not understand marks.
    NotCapable = 0,
    /// ECT(1).
    Capable1 = 1,
    /// ECT(0).
    Capable0 = 2,
    /// A link on the way was congested.
    Marked = 3,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Taken in; what follows from it comes out of `poll_transmit`.
    Absorb,
    /// Refused, and counted under the reason.
    Drop(DropReason),
}

impl Verdict {
    /// An end of the network refused the datagram.
    #[must_use]
    pub const fn refused(why: Refused) -> Self {
        Self::Drop(DropReason::End(why))
    }
}

/// What a timeout is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A datagram's last bit leaves its link.
    Departure,
    /// A credit comes back although no acknowledgement came.
    CreditExpiry,
    /// Parties are looked at for silence.
    SilenceCheck,
    /// The question whether a cluster may join has gone unanswered for too long.
    AdmissionDeadline,
    /// A host repeats itself or asks again.
    Retransmission,
    /// A server answers what it has, complete or not.
    RoundEnd,
    /// A block of a sum goes out without the missing workers.
    BlockDeadline,
    /// A server writes its models to a file.
    Checkpoint,
}
