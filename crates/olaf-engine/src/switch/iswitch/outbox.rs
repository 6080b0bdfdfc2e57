//! What waits for the links. A sum is kept as its packet's index: its floats stay in their cell until it leaves.

use super::config::Config;
use super::counters::Sent;
use crate::engine::{Ecn, TrafficClass};
use crate::ids::JobId;
use crate::switch::links::{self, Links, Rates};
use alloc::boxed::Box;
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
#[derive(Clone, Debug)]
pub(super) enum Message {
    Data(Outgoing),
    Control(Control),
    /// Regular traffic, with its class.
    Untouched(Box<[u8]>, TrafficClass),
}

impl From<Control> for Message {
    fn from(control: Control) -> Self {
        Self::Control(control)
    }
}

impl links::Message for Message {
    fn bytes(&self) -> usize {
        match self {
            Self::Data(data) => data.bytes,
            Self::Control(_) => LONGEST_CONTROL,
            Self::Untouched(bytes, _) => bytes.len(),
        }
    }

    fn class(&self) -> TrafficClass {
        match self {
            Self::Data(data) if data.congested => TrafficClass::new(DATA_CLASS, Ecn::Marked),
            Self::Data(_) => TrafficClass::new(DATA_CLASS, Ecn::Capable0),
            Self::Control(_) => TrafficClass::new(CONTROL_CLASS, Ecn::NotCapable),
            Self::Untouched(_, class) => *class,
        }
    }
}

/// The links of a switch.
pub(super) type Outbox = Links<Message, Sent>;

impl Outbox {
    pub(super) fn of(config: &Config) -> Self {
        Self::new(&Rates {
            up: config.uplink,
            down: config.downlink,
            limit: config.downlink_limit,
            ecn_depth: config.downlink_ecn_depth,
        })
    }
}
